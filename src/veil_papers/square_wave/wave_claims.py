"""What the Square Wave paper says about Figures 5 to 7, held against the measured errors."""

from __future__ import annotations

import numpy as np

from veil_papers.common.exhibits import Claim
from veil_papers.common.sweep import Errors, known, mostly, not_above, with_error
from veil_papers.square_wave.methods import BETA

__all__ = ["about_buckets", "about_shapes", "about_widths"]

Sets = dict[str, Errors]


def about_shapes(found: Sets, b: float) -> tuple[Claim, ...]:
    """Section 6.4, shapes."""
    low = ("0.4", "0.2", "triangle")
    made: list[Claim] = []
    for label, errors in found.items():
        at = errors.only(b)
        rivals = tuple(name for name in errors.runs if name != "square")
        lost = {name: errors.surely_above("square", (name,)) for name in rivals}
        made += [
            not_above(
                at,
                "square",
                rivals,
                f"{label}: at the formula's b the square wave is the best of the six shapes (here: within 5 %)",
                most=1.05,
                axis="b",
            ),
            Claim(
                f"{label}: at the formula's b the square wave is better than ratios up to 0.4 and the triangle",
                "square over "
                + ", ".join(
                    f"{name}: {with_error(*(float(part[0]) for part in at.ratio('square', name)))}" for name in low
                ),
                not at.surely_above("square", low),
            ),
            Claim(
                f"{label}: the square wave is the best of the six shapes, however b is chosen",
                "; ".join(
                    f"not against {name} at b = {', '.join(f'{place:.3g}' for place in places)}"
                    for name, places in lost.items()
                    if places
                )
                or "no other is better by two standard errors at any b",
                not any(lost.values()),
            ),
        ]
    return tuple(made)


def about_widths(found: dict[float, tuple[float, Errors]]) -> tuple[Claim, ...]:
    """Section 6.4, widths: the formula's b at every eps, and the errors."""
    ratios: dict[str, dict[float, tuple[float, float, float]]] = {}
    for epsilon, (b, errors) in found.items():
        place = errors.x.index(b)
        for label in errors.runs:
            means, each = errors.mean(label), errors.standard_error(label)
            best = int(means.argmin())
            ratio = float(means[place] / means[best])
            error = (
                0.0 if best == place else ratio * float(np.hypot(each[place] / means[place], each[best] / means[best]))
            )
            ratios.setdefault(label, {})[epsilon] = (ratio, error, errors.x[best])
    return tuple(
        Claim(
            f"{label}: the formula's b is among the best (here: at most 1.25 times the best b's error, at every eps)",
            ", ".join(
                f"{with_error(ratio, error)} (eps = {epsilon:g}, best b = {best:.3g})"
                for epsilon, (ratio, error, best) in at.items()
            ),
            all(ratio - 2 * known(error) <= 1.25 for ratio, error, _ in at.values()),
        )
        for label, at in ratios.items()
    )


def about_buckets(found: Sets) -> tuple[Claim, ...]:
    """Section 6.4, numbers of buckets."""
    names = tuple(found[BETA].runs)
    others = tuple(label for label in found if label != BETA)
    return (
        not_above(found[BETA], "256 buckets", names[1:], f"{BETA}: 256 buckets are the best at every eps"),
        mostly(found, others, "1024 buckets", "On the other sets 1,024 buckets are the best in most cases", names),
    )
