"""Figures 4.4 to 4.6 of the thesis, on random strings: thresholds, splitting people, step lengths, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from veil.hitters import PEM
from veil_papers.common.claims import Says, by_point, each
from veil_papers.common.exhibits import Parts, exhibit
from veil_papers.common.sweep import Sweep, known
from veil_papers.heavy_hitters import searching as hh
from veil_papers.heavy_hitters.searching import FAINT, HOW, OURS, PAPER, SYNTHETIC, Crowd, Method, Plan

_THETA, _SCALE = 0.023, 0.05
_CHOSEN = (PAPER, OURS, "PEM1", "SPM", "HASH")
_SPLIT = ("HASH", "HASH, original", "SPM", "SPM, original")


def _crowds(plan: Plan) -> Callable[[int], Crowd]:
    return partial(hh.random_strings, plan.people[SYNTHETIC])


@exhibit
def thresholds(plan: Plan, seed: int) -> Parts:
    """Figure 4.4: values above a threshold."""
    yield (
        f"{HOW} k is how many values of the law lie above theta, for every method; of its k values a method returns "
        f"those estimated above theta. {plan.few} runs; SPM up to k = 16."
    )

    def above(points: list[tuple[float, float, float]], place: int) -> Sweep:
        # k is how many values of the exponential law are as frequent as theta
        counts = [1 + int(math.log((1 - math.exp(-_SCALE)) / theta) / _SCALE) for *_, theta in points]
        asked = [(x, epsilon, k) for (x, epsilon, _), k in zip(points, counts, strict=True)]
        thetas, draws = [theta for *_, theta in points], [seed, 4, place]
        return hh.measure("Figure 4.4", _crowds(plan), asked, hh.some(_CHOSEN), plan.few, draws, plan.watch, thetas)[
            "F1"
        ]

    by_eps = above([(e, e, _THETA) for e in plan.epsilons], 0)
    by_theta = [above([(theta, e, theta) for theta in plan.thetas], 1 + i) for i, e in enumerate((1.0, 2.0))]
    yield by_eps.panel(f"(a) theta = {_THETA}", "eps", "F1", faint=FAINT, y_log=False)
    for letter, epsilon, sweep in zip("bc", (1, 2), by_theta, strict=True):
        yield sweep.panel(f"({letter}) eps = {epsilon}", "theta", "F1", faint=FAINT, y_log=False)
    rivals, at_two = ("PEM1", "SPM", "HASH"), by_eps.each_at(2.0)
    says = "PEM performs better than the others with a threshold (here: no rival is better by two standard errors)"
    yield Says(says).not_below((by_eps, *by_theta), PAPER, rivals)
    yield Says("At eps = 2 and theta = 0.023 PEM is much better (here: by 0.1 in F1)").given(
        each(at_two), at_two[PAPER] > 0.1 + max(at_two[name] for name in rivals)
    )


def _stepped(step: int) -> Method:
    return lambda epsilon, domain, k, people: PEM(
        epsilon,
        domain,
        k,
        hh.BUDGET,
        keep=k,
        groups=-(-(domain.bits - (k - 1).bit_length()) // step),
        fit=False,
        last=1,
    )


def _shared(last: int) -> Method:
    return lambda epsilon, domain, k, people: PEM(epsilon, domain, k, hh.BUDGET, keep=k, fit=False, last=last)


_SHARES = {f"last group {n} times": _shared(n) for n in (1, 2, 3)}


def measure_splits(plan: Plan, seed: int) -> dict[str, Sweep]:
    """HASH and SPM as they were and with people split, at k = 16."""
    points, methods = [(e, e, 16) for e in plan.split_epsilons], hh.some((*_SPLIT, PAPER, "PEM1"))
    return hh.measure("Figures 4.5 and 4.6", _crowds(plan), points, methods, plan.few, [seed, 5, 0], plan.watch)


def measure_steps(plan: Plan, seed: int) -> dict[str, Sweep]:
    """PEM with steps of so many bits, and with other shares for the last group."""
    points, steps = [(e, e, 16) for e in plan.step_epsilons], {f"step {step}": _stepped(step) for step in plan.steps}
    return hh.measure("Figure 4.5: steps", _crowds(plan), points, steps | _SHARES, plan.runs, [seed, 5, 1], plan.watch)


@exhibit
def design(splits: Sweep, steps: Sweep, plan: Plan) -> Parts:
    """Figure 4.5: design choices."""
    names = [f"step {step}" for step in plan.steps]
    yield splits.panel("(a) splitting people or the budget", "eps", "F1", _SPLIT, faint=FAINT, y_log=False)
    yield steps.panel("(b) bits of a step", "eps", "F1", names, y_log=False)
    yield steps.panel("(c) shares of the groups", "eps", "F1", _SHARES, y_log=False)
    yield (
        f"{HOW} k = 16. PEM needs no assumption about the distribution here: all groups are alike. What an assumption "
        f"would change is how many people the last group has: panel (c). (a) {plan.few} runs, (b) and (c) {plan.runs}."
    )
    split, stepped = splits.each_at(1.2), steps.each_at(0.9)
    says = "At eps = 1.2 the original HASH has F1 below 0.2, with people split nearly 0.8 (here: 0.65 to 0.9)"
    yield Says(says).given(each(split), split["HASH, original"] < 0.2 and 0.65 <= split["HASH"] <= 0.9)
    yield Says("Splitting people is better than splitting the budget, HASH and SPM (here: at no eps worse)").given(
        "; ".join(f"{name} {by_point(splits.x, splits.mean(name))}" for name in _SPLIT),
        all((splits.mean(name) >= splits.mean(f"{name}, original")).all() for name in ("HASH", "SPM")),
    )
    yield Says("At eps = 0.9 steps of 2 bits have F1 = 0.4, steps of 10 bits 0.8 (here: within 0.1)").given(
        f"{stepped['step 2']:.2f}, {stepped['step 10']:.2f}",
        abs(stepped["step 2"] - 0.4) <= 0.1 and abs(stepped["step 10"] - 0.8) <= 0.1,
    )
    # F1 rises from step to step, up to two standard errors, and clearly from the shortest to the longest.
    at = steps.only((1.0,))
    gaps = [[known(part[0]) for part in at.gap(longer, shorter)] for shorter, longer in pairwise(names)]
    whole, error = (known(part[0]) for part in at.gap(names[-1], names[0]))
    yield Says("(goal) F1 rises with the step length at eps = 1 (here: no step falls by two standard errors)").given(
        each({name.removeprefix("step "): at.at(name, 1.0) for name in names}),
        all(gap >= -2 * off for gap, off in gaps) and whole > 4 * error,
    )
    apart = max(abs(steps.mean(a) - steps.mean(b)).max() for a in _SHARES for b in _SHARES)
    yield Says(
        "Other assumptions about the distribution hardly change the result (here: other shares of the last group "
        "change F1 by at most 0.1)"
    ).given(f"by at most {apart:.2f}", apart <= 0.1)


@exhibit
def errors(splits: Sweep, found: dict[str, dict[str, Sweep]]) -> Parts:
    """Figure 4.6: squared error of the estimates."""
    # of the counts of values that were found
    methods, most = (PAPER, "PEM1", "HASH, original", "SPM, original"), splits.x[-1]
    yield splits.panel("(a) as in the thesis: HASH and SPM split eps", "eps", "Var", methods, faint=FAINT)
    yield found[SYNTHETIC]["Var"].panel("(b) people split", "eps", "Var", _CHOSEN, faint=FAINT)
    yield (
        f"{HOW} k = 16. Counts of people; only values found count, so that where few are found they were found for "
        "being large. No point where a method found nothing."
    )
    var = {name: splits.at(name, most) for name in methods}
    shown, here = each(var, hh.squared), f"at eps = {most:g}"
    yield Says(f"HASH, with eps/2 for its test, has a smaller variance than SPM, with eps/3 (here: {here})").given(
        shown, var["HASH, original"] < var["SPM, original"]
    )
    says = f"PEM1, whose last group is smaller, has a higher variance than PEM (here: {here})"
    yield Says(says).given(shown, var["PEM1"] > var[PAPER])
    says = f"PEM's last group alone estimates about as well as HASH (here: within a factor of 3 {here})"
    yield Says(says).given(shown, 1 / 3 <= var[PAPER] / var["HASH, original"] <= 3)
