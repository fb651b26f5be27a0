"""Figure 3.1 and Tables 3.1 and 3.2: the variance of every oracle against eps, by analysis alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from veil.mechanisms import BLH, GRR, OLH, OUE, PGR, SHE, SUE, THE, FrequencyOracle, SubsetSelection
from veil_papers.common.exhibits import Claim, Curve, Exhibit, Panel, brief

__all__ = ["PAPER", "Maker", "figure", "star"]

Maker = Callable[[float, int], FrequencyOracle]

PEOPLE = 10_000
LARGE = 1_024
PAPER: dict[str, Maker] = {
    "DE": GRR,
    "SHE": SHE,
    "THE": lambda epsilon, size: THE(epsilon, size, theta=1.0),
    "SUE": SUE,
    "OUE": OUE,
    "BLH": BLH,
    "OLH": OLH,
}
"""The thesis's methods by its names; SHE's noise is ours, geometric on integers, and a little smaller than Laplace."""


def star(oracle: FrequencyOracle) -> float:
    """Var* over n (3.3): n times the variance of the frequency of a value that nobody holds."""
    return oracle.variance(1)


def figure(quick: bool = False) -> Exhibit:
    """Figure 3.1 with its claims; two methods that the thesis does not have are drawn dashed."""
    grid = tuple(round(0.5 + i * (0.5 if quick else 0.1), 1) for i in range(10 if quick else 46))
    curves = [_curve(f"DE, d = {size:,}", GRR, grid, size) for size in (2, 32, LARGE)]
    curves += [_curve(name, PAPER[name], grid, LARGE) for name in ("SHE", "THE", "BLH", "SUE", "OUE", "OLH")]
    curves += [_curve("SubsetSelection, d = 1,024", SubsetSelection, grid, LARGE, faint=True)]
    curves += [_curve("PGR, d = 1,024", PGR, grid, LARGE, faint=True)]
    panel = Panel("Var* of an estimated count, 10,000 people", "eps", "Var* (people squared)", tuple(curves))
    claims = (
        _ratio_claim("BLH", "OLH", 14.15),
        _ratio_claim("SUE", "OUE", 2.38),
        _crossing_claim(),
        _guideline_claim(grid),
        _quarter_claim(grid),
        _limit_claim(),
        _subset_claim(grid),
        _pgr_claim(grid),
    )
    notes = (
        "All lines are `oracle.variance` of the shipped oracles. OLH has an integer hash range and SHE geometric noise "
        "on integers, so they differ a little from Table 3.1; dashed lines are not in the thesis.",
    )
    return Exhibit("figure-3.1", "Figure 3.1: the variance of every oracle", (panel,), claims, notes)


def _curve(name: str, make: Maker, grid: tuple[float, ...], size: int, *, faint: bool = False) -> Curve:
    return Curve(name, grid, tuple(PEOPLE * star(make(epsilon, size)) for epsilon in grid), faint=faint)


def _ratio_claim(over: str, under: str, expected: float) -> Claim:
    ratio = star(PAPER[over](4.0, LARGE)) / star(PAPER[under](4.0, LARGE))
    return Claim(
        f"At eps = 4 the variance of {over} is {expected} times that of {under}",
        f"{ratio:.2f} times",
        abs(ratio / expected - 1) < 0.005,
        exact=True,
    )


def _crossing_claim() -> Claim:
    by_formula = brentq(lambda e: 8 / e**2 - ((math.exp(e) + 1) / (math.exp(e) - 1)) ** 2, 1, 4)
    shipped = brentq(lambda e: star(SHE(e, 2)) - star(BLH(e, 2)), 1, 4, xtol=1e-4)
    beyond = all(star(SHE(e, 2)) < star(BLH(e, 2)) for e in np.arange(2.5, 8.1, 0.25).tolist())
    return Claim(
        "For eps > 2.5, SHE is better than BLH (the curves cross at 2.32)",
        f"they cross at {by_formula:.2f} by the formulas and at {shipped:.2f} with our geometric noise",
        beyond and abs(by_formula - 2.32) < 0.005,
        exact=True,
    )


def _guideline_claim(grid: tuple[float, ...]) -> Claim:
    """Around the limit itself, where it is closest: the largest d below it and the smallest above, at every eps."""
    below, above = [], []
    for epsilon in grid:
        limit = 3 * math.exp(epsilon) + 2
        others = [star(PAPER[name](epsilon, 2)) for name in PAPER if name != "DE"]
        formula = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
        below.append(star(GRR(epsilon, math.ceil(limit) - 1)) / min(others))
        above.append(star(GRR(epsilon, math.floor(limit) + 1)) / formula)
    return Claim(
        "DE is the best of all for d < 3 e^eps + 2, and OUE and OLH beyond",
        f"at {len(grid)} eps, the largest d below the limit: DE over the best of the others at most {max(below):.4f};"
        f" the smallest above: DE over OUE at least {min(above):.4f}",
        max(below) < 1 < min(above),
        exact=True,
    )


def _quarter_claim(grid: tuple[float, ...]) -> Claim:
    ratios = [star(GRR(epsilon, 2)) / star(OUE(epsilon, 2)) for epsilon in grid]
    return Claim(
        "At d = 2 the variance of DE is exactly a quarter of that of OUE",
        f"between {min(ratios):.6f} and {max(ratios):.6f} of it",
        max(abs(ratio - 0.25) for ratio in ratios) < 1e-9,
        exact=True,
    )


def _limit_claim() -> Claim:
    ends = {name: star(PAPER[name](16.0, 2)) for name in PAPER}
    rest = max(value for name, value in ends.items() if name not in ("BLH", "SHE"))
    return Claim(
        "As eps grows the variance of BLH goes to n, that of all others to 0",
        f"at eps = 16, over n: BLH {ends['BLH']:.6f}, SHE {brief(ends['SHE'])}, all others at most {brief(rest)}",
        abs(ends["BLH"] - 1) < 1e-4 and ends["SHE"] < 0.05 and rest < 0.01,
        exact=True,
    )


def _subset_claim(grid: tuple[float, ...]) -> Claim:
    worst = max(
        star(SubsetSelection(epsilon, size)) / min(star(make(epsilon, size)) for make in PAPER.values())
        for epsilon in grid
        for size in (2, 4, 32, 256, LARGE)
    )
    return Claim(
        "(ours) SubsetSelection is never worse than any of them",
        f"over the best of them, at five d and {len(grid)} eps: at most {worst:.6f}",
        worst < 1 + 1e-9,
        exact=True,
    )


def _pgr_claim(grid: tuple[float, ...]) -> Claim:
    worst = max((star(PGR(epsilon, LARGE)) / star(OUE(epsilon, LARGE)), epsilon) for epsilon in grid)
    return Claim(
        "(ours) PGR stays within 1.10 of OUE's variance at d = 1,024",
        f"at most {worst[0]:.3f} of it, at eps = {worst[1]:g}",
        worst[0] <= 1.10,
        exact=True,
    )
