"""Figures 5 to 7 of the Square Wave paper: wave shapes, widths and numbers of buckets, all with EMS; section 6.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from veil.mechanisms import SquareWave, best_width
from veil.metrics import wasserstein
from veil_papers.common.asking import read_waves
from veil_papers.common.claims import Says, with_error
from veil_papers.common.exhibits import Claim, Panel, Parts, exhibit
from veil_papers.common.sweep import Floats, Scores, Sweep, known, measure
from veil_papers.numeric.methods import BETA, People, Plan, panels, told

Waves = Mapping[str, tuple[People, float]]  # by name whose reports, and the ratio of the sides
SHAPES = {"square": 1.0, "0.8": 0.8, "0.6": 0.6, "0.4": 0.4, "0.2": 0.2, "triangle": 0.0}
"""By the ratio of the wave's upper to its lower side."""
_LOW = ("0.4", "0.2", "triangle")


def formula(epsilon: float) -> float:
    """The b of section 5.3."""
    return float(best_width(epsilon))


def over_widths(
    title: str, waves: Waves, epsilon: float, plan: Plan, runs: dict[str, int], seed: Sequence[int]
) -> Sweep:
    """Figures 5 and 6: the Wasserstein distance at each b of each wave.

    There are so many `runs` at each point, and more at the formula's b.
    """
    points = tuple(sorted({*plan.widths, formula(epsilon)}))

    def distances(number: int, people: People, ratio: float) -> Sequence[Floats]:
        def trial(place: int, run: int) -> Scores:
            wave = SquareWave(epsilon, people.domain, people.buckets, points[place], ratio)
            (made,) = read_waves([wave], people.codes, np.random.default_rng([*seed, number, place, run]))
            return {"": {"": wasserstein(made.masses, people.truth, length=1.0)}}

        at = [(plan.formula_runs if b == formula(epsilon) else runs)[people.label] for b in points]
        return measure(f"{title}, {people.label}", plan.watch, points, at, trial)[""].runs[""]

    found = {name: distances(number, *wave) for number, (name, wave) in enumerate(waves.items())}
    return Sweep(points, found, paired=False)


def granularities(people: People, plan: Plan, seed: Sequence[int]) -> Sweep:
    """Figure 7: the Wasserstein distance with each number of buckets, from the same reports.

    All are held against one truth, in the largest number of buckets.
    """
    truth = people.numbers.histogram(max(plan.granularities))

    def trial(place: int, run: int) -> Scores:
        waves = [SquareWave(plan.epsilons[place], people.domain, buckets) for buckets in plan.granularities]
        made = read_waves(waves, people.codes, np.random.default_rng([*seed, place, run]))
        distances = [wasserstein(of.masses, truth, length=1.0) for of in made]
        return {"": {f"{count} buckets": d for count, d in zip(plan.granularities, distances, strict=True)}}

    title, runs = f"Figure 7: {people.label}", plan.wave_runs[people.label]
    return measure(title, plan.watch, plan.epsilons, runs, trial, paired=False)[""]


def _panels(found: Iterable[tuple[str, float, Sweep]]) -> list[Panel]:
    """By b, with the formula's marked: title, eps, and distances."""
    return [
        sweep.panel(f"({letter}) {title}", "b", "Wasserstein distance", marks=(formula(epsilon),))
        for letter, (title, epsilon, sweep) in zip("abcde", found, strict=False)
    ]


@exhibit
def wave_shapes(found: Mapping[str, Sweep], epsilon: float, plan: Plan) -> Parts:
    """Figure 5: shapes of waves."""
    yield from _panels((f"{label}, eps = {epsilon:g}", epsilon, sweep) for label, sweep in found.items())
    yield "EMS. Numbers are the ratio of a trapezoid's upper to its lower side. The dotted line is the formula's b."
    yield f"{told(plan.wave_runs)} at each point, {told(plan.formula_runs)} at the formula's b."
    for label, sweep in found.items():
        at, here = sweep.only((formula(epsilon),)), f"{label}: at the formula's b the square wave is"
        says = f"{here} the best of the six shapes (here: within 5 %)"
        yield Says(says).not_above(at, "square", SHAPES, most=1.05, axis="b")
        over = {name: with_error(*(float(part[0]) for part in at.ratio("square", name))) for name in _LOW}
        yield Says(f"{here} better than ratios up to 0.4 and the triangle").given(
            f"square over {', '.join(f'{name}: {ratio}' for name, ratio in over.items())}",
            not at.surely_above("square", _LOW),
        )
        lost = ", ".join(f"{name} at b = {b:.3g}" for name, b in sweep.surely_above("square", SHAPES))
        yield Says(f"{label}: the square wave is the best of the six shapes, however b is chosen").given(
            f"not against {lost}" if lost else "no other is better by two standard errors at any b", not lost
        )


@exhibit
def wave_widths(found: Mapping[float, Sweep], plan: Plan) -> Parts:
    """Figure 6: widths of the square wave."""
    yield from _panels((f"eps = {epsilon:g}", epsilon, sweep) for epsilon, sweep in found.items())
    at, at_formula = told(plan.width_runs), told(plan.formula_runs)
    yield f"EMS. The dotted line is the formula's b. {at} at each point, {at_formula} at the formula's b."
    for label in next(iter(found.values())).runs:
        yield _among_best(label, found)


def _among_best(label: str, found: Mapping[float, Sweep]) -> Claim:
    """The formula's b against the best of the points, each with runs of its own."""
    listed, right = [], True
    for epsilon, sweep in found.items():
        means, each = sweep.mean(label), sweep.error(label)
        here, best = sweep.x.index(formula(epsilon)), int(means.argmin())
        ratio = float(means[here] / means[best])
        error = 0.0 if best == here else ratio * float(np.hypot(each[here] / means[here], each[best] / means[best]))
        listed.append(f"{with_error(ratio, error)} (eps = {epsilon:g}, best b = {sweep.x[best]:.3g})")
        right = right and ratio - 2 * known(error) <= 1.25
    says = f"{label}: the formula's b is among the best (here: at most 1.25 times the best b's error, at every eps)"
    return Says(says).given(", ".join(listed), right)


@exhibit
def buckets(found: Mapping[str, Sweep], plan: Plan) -> Parts:
    """Figure 7: numbers of buckets."""
    names, others = tuple(found[BETA].runs), {label: sweep for label, sweep in found.items() if label != BETA}
    yield from panels("Wasserstein distance", found, names)
    yield f"EMS. {told(plan.wave_runs)}, and all read the same reports."
    yield f"All are held against one truth in {max(plan.granularities):,} buckets."
    yield Says(f"{BETA}: 256 buckets are the best at every eps").not_above(found[BETA], names[0], names)
    yield Says("On the other sets 1,024 buckets are the best in most cases").mostly(others, "1024 buckets", names)
