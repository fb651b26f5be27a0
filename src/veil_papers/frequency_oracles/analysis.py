"""Figure 3.1 and Tables 3.1 and 3.2: the variance of every oracle against eps, by analysis alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from veil.mechanisms import BLH, GRR, OLH, OUE, PGR, SHE, SUE, THE, FrequencyOracle, SubsetSelection
from veil_papers.common.claims import Says, span
from veil_papers.common.exhibits import Curve, Panel, Parts, Setting, brief, exhibit

Maker = Callable[[float, int], FrequencyOracle]

PEOPLE = 10_000
LARGE = 1_024
PAPER: dict[str, Maker] = {
    "DE": GRR, "SHE": SHE, "THE": lambda epsilon, size: THE(epsilon, size, theta=1.0), "SUE": SUE, "OUE": OUE,
    "BLH": BLH, "OLH": OLH,
}  # fmt: skip
"""The thesis's methods by its names; SHE's noise is ours, geometric on integers, and a little smaller than Laplace."""


def star(oracle: FrequencyOracle) -> float:
    """Var* over n (3.3): n times the variance of the frequency of a value that nobody holds."""
    return oracle.variance(1)


@exhibit
def figure(setting: Setting) -> Parts:
    """Figure 3.1: the variance of every oracle."""
    grid = tuple(round(0.5 + i * setting.pick(0.1, 0.5), 1) for i in range(setting.pick(46, 10)))

    def curve(name: str, make: Maker, size: int = LARGE, *, faint: bool = False) -> Curve:
        return Curve(name, grid, tuple(PEOPLE * star(make(epsilon, size)) for epsilon in grid), faint=faint)

    curves = [curve(f"DE, d = {size:,}", GRR, size) for size in (2, 32, LARGE)]
    curves += [curve(name, PAPER[name]) for name in ("SHE", "THE", "BLH", "SUE", "OUE", "OLH")]
    curves += [curve(f"{kind.__name__}, d = 1,024", kind, faint=True) for kind in (SubsetSelection, PGR)]
    yield Panel("Var* of an estimated count, 10,000 people", "eps", "Var* (people squared)", tuple(curves))
    yield (
        "All lines are `oracle.variance` of the shipped oracles. OLH has an integer hash range and SHE geometric noise "
        "on integers, so they differ a little from Table 3.1; dashed lines are not in the thesis."
    )
    for over, under, expected in (("BLH", "OLH", 14.15), ("SUE", "OUE", 2.38)):
        ratio = star(PAPER[over](4.0, LARGE)) / star(PAPER[under](4.0, LARGE))
        yield Says(f"At eps = 4 the variance of {over} is {expected} times that of {under}").given(
            f"{ratio:.2f} times", abs(ratio / expected - 1) < 0.005, exact=True
        )
    by_formula = brentq(lambda e: 8 / e**2 - ((math.exp(e) + 1) / (math.exp(e) - 1)) ** 2, 1, 4)
    shipped = brentq(lambda e: star(SHE(e, 2)) - star(BLH(e, 2)), 1, 4, xtol=1e-4)
    beyond = all(star(SHE(e, 2)) < star(BLH(e, 2)) for e in np.arange(2.5, 8.1, 0.25).tolist())
    yield Says("For eps > 2.5, SHE is better than BLH (the curves cross at 2.32)").given(
        f"they cross at {by_formula:.2f} by the formulas and at {shipped:.2f} with our geometric noise",
        beyond and abs(by_formula - 2.32) < 0.005,
        exact=True,
    )
    below, above = [], []
    for epsilon in grid:  # around the limit itself: the largest d below it and the smallest above
        limit, formula = 3 * math.exp(epsilon) + 2, 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
        others = [star(PAPER[name](epsilon, 2)) for name in PAPER if name != "DE"]
        below.append(star(GRR(epsilon, math.ceil(limit) - 1)) / min(others))
        above.append(star(GRR(epsilon, math.floor(limit) + 1)) / formula)
    yield Says("DE is the best of all for d < 3 e^eps + 2, and OUE and OLH beyond").given(
        f"at {len(grid)} eps, the largest d below the limit: DE over the best of the others at most {max(below):.4f}; "
        f"the smallest above: DE over OUE at least {min(above):.4f}",
        max(below) < 1 < min(above),
        exact=True,
    )
    quarters = [star(GRR(epsilon, 2)) / star(OUE(epsilon, 2)) for epsilon in grid]
    yield Says("At d = 2 the variance of DE is exactly a quarter of that of OUE").given(
        f"{span(quarters, '.6f')} of it", max(abs(ratio - 0.25) for ratio in quarters) < 1e-9, exact=True
    )
    ends = {name: star(PAPER[name](16.0, 2)) for name in PAPER}
    rest = max(value for name, value in ends.items() if name not in ("BLH", "SHE"))
    yield Says("As eps grows the variance of BLH goes to n, that of all others to 0").given(
        f"at eps = 16, over n: BLH {ends['BLH']:.6f}, SHE {brief(ends['SHE'])}, all others at most {brief(rest)}",
        abs(ends["BLH"] - 1) < 1e-4 and ends["SHE"] < 0.05 and rest < 0.01,
        exact=True,
    )
    cases = [(epsilon, size) for epsilon in grid for size in (2, 4, 32, 256, LARGE)]
    subset = max(star(SubsetSelection(*case)) / min(star(make(*case)) for make in PAPER.values()) for case in cases)
    yield Says("(ours) SubsetSelection is never worse than any of them").given(
        f"over the best of them, at five d and {len(grid)} eps: at most {subset:.6f}", subset < 1 + 1e-9, exact=True
    )
    pgr, at = max((star(PGR(epsilon, LARGE)) / star(OUE(epsilon, LARGE)), epsilon) for epsilon in grid)
    yield Says("(ours) PGR stays within 1.10 of OUE's variance at d = 1,024").given(
        f"at most {pgr:.3f} of it, at eps = {at:g}", pgr <= 1.10, exact=True
    )
