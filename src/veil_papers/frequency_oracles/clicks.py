"""Figures 3.3 to 3.5: OLH, BLH and Rappor on the click stream of a news site. How people are simulated is `clicks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.datasets import Counts
from veil.mechanisms import BLH, OLH, FrequencyOracle, Rappor
from veil.tools.normal import critical
from veil_papers.common.asking import HOW, estimate_clicks
from veil_papers.common.exhibits import Curve, Exhibit, Panel, Setting
from veil_papers.frequency_oracles import click_claims as click_claims

__all__ = ["figures"]

FREQUENT = 30
ALPHA = 0.05
SWEPT = 4.0
THRESHOLDS = tuple(range(1_000, 20_001, 1_000))
_METHODS: dict[str, Callable[[float, int], FrequencyOracle]] = {
    "OLH": OLH,
    "BLH": BLH,
    "RAP(8)": lambda epsilon, size: Rappor(epsilon, size, bits=128, hashes=2, cohorts=8),
    "RAP(16)": lambda epsilon, size: Rappor(epsilon, size, bits=128, hashes=2, cohorts=16),
}


@dataclass(frozen=True)
class _Trial:
    """What one simulated collection found. Pairs are (identified, of these true)."""

    error: float
    own: tuple[int, int]
    common: tuple[int, int]
    swept: tuple[tuple[int, int], ...]


_Trials = dict[tuple[str, float], list[_Trial]]


def figures(clicks: Counts, setting: Setting, seed: int) -> tuple[Exhibit, ...]:
    """The three figures, from the same simulated collections."""
    runs = 2 if setting.quick else 10
    grid = (1.0, SWEPT) if setting.quick else tuple(i / 2 for i in range(1, 11))
    trials: _Trials = {}
    with setting.watch("Figures 3.3 to 3.5: clicks", len(grid) * len(_METHODS) * runs) as advance:
        for place, epsilon in enumerate(grid):
            for kind, (name, make) in enumerate(_METHODS.items()):
                oracle = make(epsilon, len(clicks.held))
                for run in range(runs):
                    rng = np.random.default_rng([seed, place, kind, run])
                    trials.setdefault((name, epsilon), []).append(_trial(oracle, clicks, epsilon, rng))
                    advance(1)
    return _errors(trials, grid), _positives(trials, grid), _sweep(trials)


def _trial(oracle: FrequencyOracle, clicks: Counts, epsilon: float, rng: np.random.Generator) -> _Trial:
    held = clicks.held
    shown = estimate_clicks(oracle, held, rng)
    frequent = np.argsort(-held, kind="stable")[:FREQUENT]
    reach = critical(ALPHA / len(held))
    common = reach * np.sqrt(OLH(epsilon, len(held)).noise.variance(0.0) * clicks.people)
    if oracle.noise.known:
        own = reach * float(np.sqrt(oracle.noise.variance(0.0) * clicks.people))  # (3.13)
    else:  # Rappor has no variance: take what the estimates of pages without a click scatter by
        own = reach * float(np.std(shown[held == 0]))
    swept = tuple(_positive(shown, held, threshold) for threshold in THRESHOLDS) if epsilon == SWEPT else ()
    error = float(np.mean((shown[frequent] - held[frequent]) ** 2))
    return _Trial(error, _positive(shown, held, own), _positive(shown, held, common), swept)


def _positive(shown: NDArray[np.float64], held: NDArray[np.int64], threshold: float) -> tuple[int, int]:
    """How many are identified, and how many of them are truly above the threshold."""
    found = shown > threshold
    return int(found.sum()), int((found & (held > threshold)).sum())


def _curve(name: str, grid: tuple[float, ...], samples: list[list[float]], *, faint: bool = False) -> Curve:
    means = tuple(float(np.mean(sample)) for sample in samples)
    return Curve(name, grid, means, tuple(float(np.std(sample, ddof=1)) for sample in samples), faint=faint)


def _errors(trials: _Trials, grid: tuple[float, ...]) -> Exhibit:
    curves = tuple(_curve(name, grid, [[t.error for t in trials[name, e]] for e in grid]) for name in _METHODS)
    panel = Panel("The 30 most frequent pages", "eps", "average squared error (clicks squared)", curves)
    runs = len(trials["OLH", grid[0]])
    notes = (
        f"{HOW} {runs} runs, mean and standard deviation. Rappor: 128 bits, 2 hashes, 8 or 16 cohorts, f set by eps, "
        "decoded by LASSO and least squares.",
    )
    title = "Figure 3.3: squared error of the most frequent pages"
    return Exhibit("figure-3.3", title, (panel,), click_claims.about_errors(panel), notes)


def _positives(trials: _Trials, grid: tuple[float, ...]) -> Exhibit:
    def curve(name: str, rule: str, part: int, *, faint: bool = False) -> Curve:
        label = f"{name}, OLH's threshold" if rule == "common" else name
        samples = [[float(getattr(t, rule)[part]) for t in trials[name, e]] for e in grid]
        return _curve(label, grid, samples, faint=faint)

    panels = []
    for part, letter, what in ((1, "a", "true positives"), (0, "b", "pages identified")):
        own = [curve(name, "own", part) for name in _METHODS]
        common = [curve(name, "common", part, faint=True) for name in ("RAP(8)", "RAP(16)")]
        panels.append(Panel(f"({letter}) {what}", "eps", what, (*own, *common), y_log=False))
    notes = (
        "A page is identified if its estimate is above the significance threshold (3.13) with alpha = 0.05, and a true "
        "positive if its count is, too. Rappor has no analytical variance, and the thesis does not say what it used "
        "instead. Solid: the standard deviation of Rappor's own estimates of pages without a click, of which its "
        "regression sets most to zero. Dashed: the threshold of OLH at the same eps, added after a first look.",
    )
    title = "Figure 3.4: true positives at the significance threshold"
    return Exhibit("figure-3.4", title, tuple(panels), click_claims.about_positives(*panels), notes)


def _sweep(trials: _Trials) -> Exhibit:
    at = tuple(float(threshold) for threshold in THRESHOLDS)

    def curve(name: str, *, true: bool) -> Curve:
        chosen = [[t.swept[i] for t in trials[name, SWEPT]] for i in range(len(at))]
        return _curve(name, at, [[float(hit if true else all_ - hit) for all_, hit in pairs] for pairs in chosen])

    right, wrong = (
        Panel(f"({letter}) {what} positives", "threshold (clicks)", f"{what} positives", tuple(
            curve(name, true=what == "true") for name in _METHODS
        ), y_log=True)
        for letter, what in (("a", "true"), ("b", "false"))
    )  # fmt: skip
    notes = ("eps = 4. A false positive is a page whose estimate is above the threshold and whose count is not.",)
    title = "Figure 3.5: true and false positives against the threshold"
    return Exhibit("figure-3.5", title, (right, wrong), click_claims.about_sweep(right, wrong), notes)
