"""Figures 4.4 to 4.6 of the thesis, on random strings: thresholds, splitting people, step lengths, errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from veil.domain import Bits, Text
from veil.hitters import PEM
from veil.metrics import f1
from veil_papers.common.exhibits import Claim, Curve, Exhibit, Panel, Watch
from veil_papers.heavy_hitters.figures import Measured
from veil_papers.heavy_hitters.plan import SYNTHETIC, Plan
from veil_papers.heavy_hitters.searching import (
    BUDGET,
    HOW,
    OURS,
    PAPER,
    Method,
    Sweep,
    found_codes,
    measure,
    random_strings,
    search,
    some,
    squared,
)

__all__ = ["design", "errors", "measure_splits", "measure_steps", "thresholds"]

_THETA, _SCALE = 0.023, 0.05
_CHOSEN = (PAPER, OURS, "PEM1", "SPM", "HASH")


# -- Figure 4.4 -----------------------------------------------------------------------------------------------------


def _count(theta: float) -> int:
    """How many values of the exponential law are as frequent as that."""
    return 1 + int(math.log((1 - math.exp(-_SCALE)) / theta) / _SCALE)


def thresholds(plan: Plan, seed: int, watch: Watch) -> Exhibit:
    """Figure 4.4: values above a threshold, in place of the k most frequent."""
    by_eps = _above([(e, e, _THETA) for e in plan.epsilons], plan, [seed, 4, 0], watch)
    by_theta = [
        _above([(theta, epsilon, theta) for theta in plan.thetas], plan, [seed, 4, 1 + i], watch)
        for i, epsilon in enumerate((1.0, 2.0))
    ]
    panels = [Panel(f"(a) theta = {_THETA}", "eps", "F1", _curves(by_eps), y_log=False)]
    for letter, epsilon, sweep in zip("bc", (1, 2), by_theta, strict=True):
        panels.append(Panel(f"({letter}) eps = {epsilon}", "theta", "F1", _curves(sweep), y_log=False))
    lost = [
        f"{rival} at {x:g} ({gap:+.2f} \N{PLUS-MINUS SIGN} {error:.2f})"
        for sweep in (by_eps, *by_theta)
        for rival in ("PEM1", "SPM", "HASH")
        for x, gap, error in zip(sweep.x, *sweep.behind(PAPER, rival), strict=True)
        if gap > 2 * error
    ]
    claims = (
        Claim(
            "PEM performs better than the others with a threshold (here: no rival is better by two standard errors)",
            f"better: {', '.join(lost)}" if lost else "no rival is better",
            not lost,
        ),
        Claim(
            "At eps = 2 and theta = 0.023 PEM is much better (here: by 0.1 in F1)",
            ", ".join(f"{name} {by_eps.at(name, 2.0):.2f}" for name in by_eps.values),
            by_eps.at(PAPER, 2.0) > 0.1 + max(by_eps.at(name, 2.0) for name in ("PEM1", "SPM", "HASH")),
        ),
    )
    notes = (
        f"{HOW} k is how many values of the law lie above theta, for every method; of its k values a method returns "
        f"those estimated above theta. {plan.few} runs; SPM up to k = 16.",
    )
    return Exhibit("figure-4.4", "Figure 4.4: values above a threshold", tuple(panels), claims, notes)


def _curves(sweep: Sweep) -> tuple[Curve, ...]:
    return tuple(sweep.curve(name) for name in _CHOSEN)


def _above(points: Sequence[tuple[float, float, float]], plan: Plan, seed: list[int], watch: Watch) -> Sweep:
    """F1 of the values estimated above theta at every point (x, eps, theta)."""
    methods, runs = some(_CHOSEN), plan.few
    found = {name: np.full((len(points), runs), np.nan) for name in methods}
    with watch("Figure 4.4", runs * len(points)) as advance:
        for run in range(runs):
            crowd = random_strings(plan.people[SYNTHETIC], run)
            for place, (_, epsilon, theta) in enumerate(points):
                truth, k = crowd.above(theta), _count(theta)
                for number, (name, method) in enumerate(methods.items()):
                    if name == "SPM" and k > 16:
                        continue
                    protocol = method(epsilon, crowd.domain, k, crowd.people)
                    made = search(protocol, crowd, [*seed, run, place, number])
                    shown = made.estimates.frequencies if made.fitted is None else made.fitted
                    kept = [code for code, f in zip(found_codes(made), shown, strict=True) if f >= theta]
                    found[name][place, run] = f1(kept, truth)
                advance(1)
    return Sweep(tuple(point[0] for point in points), found)


# -- Figure 4.5 -----------------------------------------------------------------------------------------------------


def _stepped(step: int) -> Method:
    def method(epsilon: float, domain: Bits | Text, k: int, people: int) -> PEM:
        groups = -(-(domain.bits - (k - 1).bit_length()) // step)
        return PEM(epsilon, domain, k, BUDGET, keep=k, groups=groups, fit=False, last=1)

    return method


def _shared(last: int) -> Method:
    def method(epsilon: float, domain: Bits | Text, k: int, people: int) -> PEM:
        return PEM(epsilon, domain, k, BUDGET, keep=k, fit=False, last=last)

    return method


_SHARES = {f"last group {n} times": _shared(n) for n in (1, 2, 3)}


def measure_splits(plan: Plan, seed: int, watch: Watch) -> dict[str, Sweep]:
    """HASH and SPM as they were and with people split, at k = 16."""
    methods = some(("HASH", "HASH, original", "SPM", "SPM, original", PAPER, "PEM1"))
    runs, points = plan.few, [(e, e, 16) for e in plan.split_epsilons]
    with watch("Figures 4.5 and 4.6", runs * len(points)) as advance:
        return measure(
            lambda run: random_strings(plan.people[SYNTHETIC], run), points, methods, runs, [seed, 5, 0], advance
        )


def measure_steps(plan: Plan, seed: int, watch: Watch) -> dict[str, Sweep]:
    """PEM with steps of so many bits, and with other shares for the last group."""
    methods = {f"step {step}": _stepped(step) for step in plan.steps} | _SHARES
    points = [(e, e, 16) for e in plan.step_epsilons]
    with watch("Figure 4.5: steps", plan.runs * len(points)) as advance:
        return measure(
            lambda run: random_strings(plan.people[SYNTHETIC], run), points, methods, plan.runs, [seed, 5, 1], advance
        )


def design(splits: Sweep, steps: Sweep, plan: Plan) -> Exhibit:
    """Figure 4.5: the effects of design choices."""
    names = [f"step {step}" for step in plan.steps]
    panels = (
        Panel("(a) splitting people or the budget", "eps", "F1", tuple(map(splits.curve, _SPLIT)), y_log=False),
        Panel("(b) bits a step", "eps", "F1", tuple(map(steps.curve, names)), y_log=False),
        Panel("(c) shares of the groups", "eps", "F1", tuple(map(steps.curve, _SHARES)), y_log=False),
    )
    apart = max(abs(steps.mean(a) - steps.mean(b)).max() for a in _SHARES for b in _SHARES)
    claims = (
        Claim(
            "At eps = 1.2 the original HASH has F1 below 0.2, with people split nearly 0.8 (here: 0.65 to 0.9)",
            f"{splits.at('HASH, original', 1.2):.2f}, {splits.at('HASH', 1.2):.2f}",
            splits.at("HASH, original", 1.2) < 0.2 and 0.65 <= splits.at("HASH", 1.2) <= 0.9,
        ),
        Claim(
            "Splitting people is better than splitting the budget, HASH and SPM (here: at no eps worse)",
            "; ".join(f"{name} {_listed(splits, name)}" for name in _SPLIT),
            all((splits.mean(n) >= splits.mean(f"{n}, original")).all() for n in ("HASH", "SPM")),
        ),
        Claim(
            "At eps = 0.9 steps of 2 bits have F1 = 0.4, steps of 10 bits 0.8 (here: within 0.1)",
            f"{steps.at('step 2', 0.9):.2f}, {steps.at('step 10', 0.9):.2f}",
            abs(steps.at("step 2", 0.9) - 0.4) <= 0.1 and abs(steps.at("step 10", 0.9) - 0.8) <= 0.1,
        ),
        _rising(steps, names),
        Claim(
            "Other assumptions about the distribution hardly change the result (here: other shares of the last group "
            "change F1 by at most 0.1)",
            f"by at most {apart:.2f}",
            apart <= 0.1,
        ),
    )
    notes = (
        f"{HOW} k = 16. PEM needs no assumption about the distribution here: all groups are alike. What an assumption "
        f"would change is how many people the last group has: panel (c). (a) {plan.few} runs, (b) "
        f"and (c) {plan.runs}.",
    )
    return Exhibit("figure-4.5", "Figure 4.5: design choices", panels, claims, notes)


_SPLIT = ("HASH", "HASH, original", "SPM", "SPM, original")


def _rising(steps: Sweep, names: list[str]) -> Claim:
    """Rises from step to step, up to two standard errors, and clearly from the shortest to the longest."""
    at = steps.x.index(1.0)
    gaps = [steps.behind(a, b) for a, b in pairwise(names)]
    first, error = steps.behind(names[0], names[-1])
    means = ", ".join(f"{steps.at(name, 1.0):.2f} ({name.removeprefix('step ')})" for name in names)
    return Claim(
        "(goal) F1 rises with the step length at eps = 1 (here: no step falls by two standard errors)",
        means,
        bool(all(gap[at] >= -2 * off[at] for gap, off in gaps) and first[at] > 4 * error[at]),
    )


def _listed(sweep: Sweep, name: str) -> str:
    return ", ".join(f"{y:.2f} ({x:g})" for x, y in zip(sweep.x, sweep.mean(name), strict=True))


# -- Figure 4.6 -----------------------------------------------------------------------------------------------------


def errors(splits: Sweep, found: Measured) -> Exhibit:
    """Figure 4.6: squared errors of the counts of values that were found."""
    methods = (PAPER, "PEM1", "HASH, original", "SPM, original")
    ours = found[SYNTHETIC]["Var"]
    panels = (
        Panel("(a) as in the thesis: HASH and SPM split eps", "eps", "Var", _with_points(splits, methods)),
        Panel("(b) people split", "eps", "Var", _with_points(ours, _CHOSEN)),
    )
    most = splits.x[-1]
    shown = ", ".join(f"{name} {squared(splits.at(name, most))}" for name in methods)
    claims = (
        Claim(
            f"HASH, with eps/2 for its test, has a smaller variance than SPM, with eps/3 (here: at eps = {most:g})",
            shown,
            splits.at("HASH, original", most) < splits.at("SPM, original", most),
        ),
        Claim(
            f"PEM1, whose last group is smaller, has a higher variance than PEM (here: at eps = {most:g})",
            shown,
            splits.at("PEM1", most) > splits.at(PAPER, most),
        ),
        Claim(
            f"PEM's last group alone estimates about as well as HASH (here: within a factor of 3 at eps = {most:g})",
            shown,
            1 / 3 <= splits.at(PAPER, most) / splits.at("HASH, original", most) <= 3,
        ),
    )
    notes = (
        f"{HOW} k = 16. Counts of people; only values found count, so that where few are found they were found for "
        "being large. No point where a method found nothing.",
    )
    return Exhibit("figure-4.6", "Figure 4.6: squared error of the estimates", panels, claims, notes)


def _with_points(sweep: Sweep, names: Sequence[str]) -> tuple[Curve, ...]:
    return tuple(curve for curve in map(sweep.curve, names) if curve.x)
