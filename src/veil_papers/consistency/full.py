"""Figures 4 and 5 of the consistency paper: errors over the full domain, and how many people a method saves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veil.mechanisms import OLH
from veil.post import PAPER_METHODS
from veil_papers.common.exhibits import Claim, Exhibit, Watch, brief
from veil_papers.consistency.runs import HOW, LABELS, LEFT, RIGHT, Plan, Sweep, every_value, measure, pair, zipf

__all__ = ["full_domain", "people_saved"]

_POINTS = (0.5, 1.0, 2.0, 4.0)
_EXPECTED = {
    ("norm-sub", "base"): ((0.09, 0.14, 0.21, 0.36), 2),
    ("mle-apx", "norm-sub"): ((1.003, 1.005, 1.010, 1.051), 3),
    ("power-ns", "base"): ((0.054, 0.085, 0.134, 0.243), 3),
}
"""Ratios on Zipf at those eps as they were measured before this code was written, and their digits."""


def full_domain(law: Sweep, emoji: Sweep, skewed: float, plan: Plan) -> Exhibit:
    """Figure 4. `skewed` is Base over Norm-Sub on emoji of which one has all uses."""
    axes = ("eps", "mean squared error")
    panels = (*pair(law, "ab", "Zipf", axes), *pair(emoji, "cd", "emoji", axes))
    notes = (f"{HOW} {plan.runs} runs, mean and standard deviation; all methods see the same collections.",)
    claims = (
        *_paper(law, emoji, skewed),
        *(_expected(law, name, other) for name, other in _EXPECTED),
        _against_best(law, emoji),
    )
    title = "Figure 4: squared error over the full domain"
    return Exhibit("figure-4", title, panels, claims, notes)


def _span(values: Sequence[float] | np.ndarray, digits: int = 2) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _paper(law: Sweep, emoji: Sweep, skewed: float) -> tuple[Claim, ...]:
    both = (("Zipf", law), ("emoji", emoji))
    norm = np.concatenate([sweep.ratio("norm", "base") for _, sweep in both])
    half = {label: sweep.ratio("base-pos", "base") for label, sweep in both}
    gains = {label: sweep.ratio("base", "norm-sub") for label, sweep in both}
    small = [i for i, epsilon in enumerate(law.x) if epsilon <= 1]
    same = np.concatenate([sweep.ratio("mle-apx", "norm-sub") for _, sweep in both])
    five = ("norm-sub", "mle-apx", "power", "power-ns", "base-cut")
    close = {label: [sweep.over_best(name, five).max() for name in five] for label, sweep in both}
    falls = {name: float(law.mean(name)[0] / law.mean(name)[-1]) for name in PAPER_METHODS}
    slowest = min(fall for name, fall in falls.items() if name != "norm-mul")
    return (
        Claim(
            "Base performs very close to Norm (here: within 2 %, at every eps and on both data sets)",
            f"Norm over Base {_span(norm, 4)}",
            bool(np.abs(norm - 1).max() < 0.02),
        ),
        *(
            Claim(
                f"Base-Pos has about half the error of Base, {label} (here: 0.45 to 0.6)",
                f"{_span(ratio)}, the larger the larger eps: clipping helps values that are lost in the noise",
                bool(ratio.min() > 0.45 and ratio.max() < 0.6),
            )
            for label, ratio in half.items()
        ),
        Claim(
            "Norm-Sub reduces the error of Base by about a factor of 10, Zipf (here: 5 to 20 for eps <= 1)",
            f"by {_span(gains['Zipf'][small], 1)} for eps <= 1, by {gains['Zipf'][-1]:.1f} at eps = {law.x[-1]:g}",
            bool(gains["Zipf"][small].min() > 5 and gains["Zipf"][small].max() < 20),
        ),
        Claim(
            "Norm-Sub reduces the error of Base by about a factor of 100, emoji (here: 50 to 200 for eps <= 1)",
            f"by {_span(gains['emoji'][small], 1)} for eps <= 1; these 845 emoji are less skewed than the paper's "
            f"1,573: if one of 1,573 emoji had all uses, Norm-Sub would reduce the error by {skewed:.0f} at eps = 1",
            bool(gains["emoji"][small].min() > 50 and gains["emoji"][small].max() < 200),
        ),
        Claim(
            "The error of Norm-Mul decreases much slower than others' (here: Zipf, by less than half the factor)",
            f"from eps = {law.x[0]:g} to {law.x[-1]:g} by a factor of {brief(falls['norm-mul'])}; the others by "
            f"{brief(slowest)} or more, Base by {brief(falls['base'])}",
            falls["norm-mul"] < slowest / 2,
        ),
        Claim(
            "Norm-Sub and MLE-Apx perform almost exactly the same (here: within 10 %)",
            f"MLE-Apx over Norm-Sub {_span(same, 3)}",
            bool(np.abs(same - 1).max() < 0.1),
        ),
        Claim(
            "Norm-Sub, MLE-Apx, Power, PowerNS and Base-Cut perform very similarly (here: within a factor of 2)",
            "; ".join(
                f"{label}: the worst has up to {max(ratios):.2f} times the best" for label, ratios in close.items()
            ),
            all(max(ratios) < 2 for ratios in close.values()),
        ),
        *(_best(label, sweep) for label, sweep in both),
    )


def _best(label: str, sweep: Sweep) -> Claim:
    next_best = [name for name in PAPER_METHODS if name != "power-ns"]
    ratios = 1 / sweep.over_best("power-ns", next_best)
    rivals = sweep.best(next_best)
    closest = int(ratios.argmin())
    return Claim(
        f"PowerNS is the best of the ten, {label} (here: at every eps)",
        f"the next best has {_span(ratios)} times its error, {LABELS[rivals[closest]]} the least at "
        f"eps = {sweep.x[closest]:g}",
        not sweep.beaten("power-ns", next_best),
    )


def _expected(law: Sweep, name: str, other: str) -> Claim:
    """Against earlier numbers, which were rounded."""
    known, digits = _EXPECTED[name, other]
    places = law.where(_POINTS)
    wanted = np.array([known[_POINTS.index(law.x[i])] for i in places])
    ratio, error = law.ratio(name, other)[places], law.ratio_error(name, other)[places]
    off = np.maximum(np.abs(ratio - wanted) - 0.5 * 10.0**-digits, 0.0) / error
    at = ", ".join(f"{law.x[i]:g}" for i in places)
    return Claim(
        f"(known) {LABELS[name]} over {LABELS[other]} on Zipf at eps = {at}: {', '.join(f'{w:g}' for w in wanted)} "
        "(here: within three standard errors and rounding)",
        ", ".join(f"{r:.4f} \N{PLUS-MINUS SIGN} {e:.4f}" for r, e in zip(ratio, error, strict=True)),
        bool(off.max() < 3),
    )


def _against_best(law: Sweep, emoji: Sweep) -> Claim:
    ratios = {"Zipf": law.over_best("auto"), "emoji": emoji.over_best("auto")}
    wins = {
        label: ", ".join(f"{at:g}" for at, ratio in zip(law.x, found, strict=True) if ratio < 1)
        for label, found in ratios.items()
    }
    return Claim(
        "(ours) The learned prior with Norm-Sub has at most 1.25 times the error of the best of the ten",
        "; ".join(
            f"{label} {_span(found)} times, less than 1 at eps = {wins[label] or 'none'}"
            for label, found in ratios.items()
        ),
        max(found.max() for found in ratios.values()) < 1.25,
    )


def people_saved(plan: Plan, seed: int, watch: Watch) -> Exhibit:
    """Figure 5: n' people without post-processing are as good as n with it."""
    found, oracle = [], OLH(1.0, 1024)
    with watch("Figure 5: people saved", len(plan.people) * plan.runs) as advance:
        for people in plan.people:
            asks = {"full": every_value(1024)}
            found.append(measure(zipf(people), 1.0, asks, plan.runs, [seed, 5, people], advance)["full"])
    errors = Sweep.of(plan.people, found)
    one = oracle.noise.variance(1 / 1024)  # of one person, on average over all values: linear in the frequency
    millions = tuple(people / 1e6 for people in plan.people)
    saved = {name: one / values.mean(axis=1, keepdims=True) / 1e6 for name, values in errors.values.items()}
    like = Sweep(millions, saved)
    axes = ("people n (millions)", "as good as n' people without (millions)")
    panels = pair(like, "ab", "Zipf, eps = 1", axes, y_log=False)
    notes = (
        f"{HOW} {plan.runs} runs: n' is the number of people from whom Base has the mean error that the method had "
        "from n, by the analytical variance (the paper's section V.C).",
    )
    title = "Figure 5: how many people without post-processing are as good"
    return Exhibit("figure-5", title, panels, _about_saving(like), notes)


def _about_saving(like: Sweep) -> tuple[Claim, ...]:
    n = np.array(like.x)
    slopes = np.concatenate([like.mean(name) / n for name in ("base", "norm")])
    saved = 1 - n / like.mean("power-ns")
    at = like.x.index(1.0)
    best = [LABELS[max(PAPER_METHODS, key=lambda name: like.mean(name)[i])] for i in range(len(n))]
    worse = like.mean("norm-mul") / n
    auto = 1 - n / like.mean("auto")
    order = sorted({*LEFT, *RIGHT} - {"auto"}, key=lambda name: -like.mean(name)[at])
    return (
        Claim(
            "Base and Norm are straight lines with slope 1 (here: n' within 5 % of n)",
            f"n' over n {_span(slopes, 3)}",
            bool(np.abs(slopes - 1).max() < 0.05),
        ),
        Claim(
            "Norm-Mul grows even slower than Base (here: n' over n is below 1 and falls with n)",
            f"n' over n from {worse[0]:.2f} at {n[0]:g} million people to {worse[-1]:.2f} at {n[-1]:g} million",
            bool(worse[0] < 1 and (np.diff(worse) < 0).all()),
        ),
        Claim(
            "PowerNS saves around 90 % of the people (here: 85 % to 95 % at n = 1e6)",
            f"{saved[at]:.1%} at n = 1e6, {saved.min():.1%} to {saved.max():.1%} over all n; auto {auto[at]:.1%}",
            bool(0.85 < saved[at] < 0.95),
        ),
        Claim(
            "PowerNS gives the best performance of the ten (here: the largest n' at every n)",
            f"n' in millions at n = 1e6: {', '.join(f'{LABELS[m]} {brief(like.mean(m)[at])}' for m in order)}",
            best == ["PowerNS"] * len(n),
        ),
    )
