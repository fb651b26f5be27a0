"""Figures 1 to 3 of the consistency paper: mean, bias and variance of the counts that each method gives, by rank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veil.post.selection import quietly
from veil_papers.common.exhibits import Claim, Curve, Exhibit, Panel, Watch, brief
from veil_papers.consistency.runs import HOW, LABELS, LEFT, METHODS, RIGHT, Plan, collections, zipf

__all__ = ["figures"]

Floats = NDArray[np.float64]

_ALONE = 8  # ranks shown one by one; beyond, neighbours are averaged
_FAR = 5.0  # standard errors: one value in a thousand experiments strays as far by chance
_UNBIASED, _SCALED = ("base", "norm", "base-pos", "post-pos"), ("norm-mul",)
_SHIFTED, _MODELLED = ("norm-sub", "mle-apx", "base-cut", "norm-cut"), ("power", "power-ns", "auto")


@dataclass(frozen=True, eq=False)
class _Moments:
    """Bias and variance of a method's count of each value, in people, from so many runs."""

    bias: Floats
    variance: Floats
    runs: int

    @property
    def z(self) -> Floats:
        """The bias in standard errors; a count that never varies has none."""
        error = np.sqrt(self.variance / self.runs)
        return np.divide(self.bias, error, out=np.zeros_like(self.bias), where=error > 0)


_Found = dict[str, _Moments]


def figures(plan: Plan, seed: int, watch: Watch) -> tuple[Exhibit, ...]:
    """The three figures, from the same collections."""
    held = zipf()
    sums = {name: np.zeros((2, len(held))) for name in METHODS}
    with watch("Figures 1 to 3: bias and variance", plan.long_runs) as advance:
        for run, estimate in enumerate(collections(held, 1.0, plan.long_runs, [seed, 1])):
            for name in METHODS:
                if name == "auto" and run >= plan.auto_runs:
                    continue
                off = quietly(estimate, name).shown * estimate.n - held
                sums[name] += np.stack([off, off**2])
            advance(1)
    found = {}
    for name, (first, second) in sums.items():
        runs = plan.auto_runs if name == "auto" else plan.long_runs
        variance = np.maximum(second - first**2 / runs, 0.0) / (runs - 1)
        found[name] = _Moments(first / runs, variance, runs)
    return _means(held.astype(np.float64), found), _biases(found), _variances(found)


def _bins(size: int) -> list[NDArray[np.int64]]:
    """Positions by rank: the first alone, then neighbours together, in ever larger bins."""
    edges = np.unique(np.rint(np.geomspace(_ALONE, size, 16)).astype(np.int64))
    return [np.array([i]) for i in range(_ALONE)] + [np.arange(a, b) for a, b in pairwise(edges)]


def _binned(values: Floats) -> Floats:
    return np.array([values[places].mean() for places in _bins(len(values))])


def _curve(label: str, values: Floats, *, faint: bool = False) -> Curve:
    ranks = tuple(float(np.exp(np.log(places + 1.0).mean())) for places in _bins(len(values)))
    return Curve(label, ranks, tuple(_binned(values).tolist()), faint=faint)


def _panel(title: str, y_label: str, names: tuple[str, ...], of: dict[str, Floats], y_log: bool) -> Panel:
    curves = tuple(_curve(LABELS[name], of[name], faint=name == "auto") for name in names)
    return Panel(title, "rank", y_label, curves, x_log=10, y_log=y_log)


def _means(truth: Floats, found: _Found) -> Exhibit:
    of = {name: truth + moments.bias for name, moments in found.items()}
    panels = []
    for letter, names in (("a", LEFT), ("b", RIGHT)):
        panel = _panel(f"({letter}) Zipf, eps = 1", "mean count (people)", names, of, y_log=True)
        drawn = (_curve("truth", truth), *panel.curves)
        panels.append(Panel(panel.title, panel.x_label, panel.y_label, drawn, x_log=10))
    runs, auto = found["base"].runs, found["auto"].runs
    notes = (
        f"{HOW} {runs:,} runs ({auto:,} of auto); the paper has 5,000. Ranks above {_ALONE} are averaged with their "
        "neighbours, in bins that grow with the rank. Means below zero have no place on this axis.",
    )
    top = np.abs(found["power"].bias[:4] / truth[:4]).max()
    middle = found["power"].bias[8:64].sum() / truth[8:64].sum()
    total = of["base-pos"].sum() / truth.sum()
    claims = (
        Claim(
            "Power changes little in the top values, and more in the low ones (here: the means of the first 4 by less "
            "than 2 %, those of ranks 9 to 64 by more than 10 %)",
            f"the first 4 by at most {top:.2%}, ranks 9 to 64 by {middle:+.0%} together",
            bool(top < 0.02 and abs(middle) > 0.1),
        ),
        Claim(
            "Base-Pos introduces systematic bias, which adds up (here: its counts add up to more than 1.5 times the "
            "people)",
            f"{total:.2f} times; Norm-Sub {of['norm-sub'].sum() / truth.sum():.3f}",
            bool(total > 1.5),
        ),
    )
    return Exhibit("figure-1", "Figure 1: means of the estimated counts", tuple(panels), claims, notes)


def _biases(found: _Found) -> Exhibit:
    of = {name: moments.bias for name, moments in found.items()}
    groups = (("a", _UNBIASED), ("b", _SCALED), ("c", _SHIFTED), ("d", _MODELLED))
    panels = tuple(_panel(f"({letter}) Zipf, eps = 1", "bias (people)", names, of, False) for letter, names in groups)
    one = float(np.sqrt(found["base"].variance.mean() / found["base"].runs))
    notes = (f"Mind the scales. The standard error of a single value's mean is {one:.0f} people for Base.",)
    return Exhibit("figure-2", "Figure 2: bias of the estimated counts", panels, _about_bias(found), notes)


def _about_bias(found: _Found) -> tuple[Claim, ...]:
    far = {name: float(np.abs(found[name].z).max()) for name in ("base", "norm")}
    rare = found["base-pos"].z[100:]
    cut = found["base-cut"]
    lowest, first = int(cut.bias.argmin()), float(np.abs(cut.z[:5]).max())
    binned = _binned(found["norm-sub"].bias)
    error = np.sqrt(_binned(found["norm-sub"].variance) / found["norm-sub"].runs / [len(b) for b in _bins(1024)])
    falls = float(((binned[:-1] - binned[1:]) / np.hypot(error[:-1], error[1:])).max())
    alike = float(np.corrcoef(found["power"].bias, found["power-ns"].bias)[0, 1])
    widest = float(np.abs(found["power"].bias - found["power-ns"].bias).max())
    return (
        Claim(
            f"Base and Norm are unbiased (here: no value's mean is {_FAR:g} standard errors off)",
            f"at most {far['base']:.1f} (Base) and {far['norm']:.1f} (Norm) standard errors, over 1,024 values",
            max(far.values()) < _FAR,
        ),
        Claim(
            f"Base-Pos has a positive bias (here: at least {_FAR:g} standard errors for every value beyond rank 100)",
            f"between {rare.min():.0f} and {rare.max():.0f} standard errors; on average "
            f"{brief(float(found['base-pos'].bias[100:].mean()))} people",
            bool(rare.min() > _FAR),
        ),
        Claim(
            f"Base-Cut is unbiased for the first few values (here: 5 values, within {_FAR:g} standard errors), not for "
            "values in between",
            f"the first 5 within {first:.1f} standard errors; most biased at rank {lowest + 1}, by "
            f"{brief(float(cut.bias[lowest]))} people ({cut.z[lowest]:.0f} standard errors)",
            bool(first < _FAR and cut.z[lowest] < -_FAR),
        ),
        Claim(
            "The bias of Norm-Sub is an increasing line (here: from bin to bin it never falls by 3 standard errors)",
            f"from {brief(float(binned[0]))} to {brief(float(binned[-1]))} people; the deepest fall is "
            f"{max(falls, 0.0):.1f} standard errors",
            bool(falls < 3 and binned[0] < 0 < binned[-1]),
        ),
        Claim(
            "The shape of PowerNS is close to Power's (here: correlation of their biases over all values above 0.9)",
            f"correlation {alike:.3f}; they differ by at most {brief(widest)} people",
            alike > 0.9,
        ),
    )


def _variances(found: _Found) -> Exhibit:
    people = zipf().sum()
    of = {name: moments.variance / people for name, moments in found.items()}
    panels = tuple(
        _panel(f"({letter}) Zipf, eps = 1", "variance (people squared) over n", names, of, True)
        for letter, names in (("a", LEFT), ("b", RIGHT))
    )
    flat = {name: _binned(of[name]).max() / _binned(of[name]).min() for name in ("base", "norm")}
    gain = of["norm"].mean() / of["base"].mean()
    drop = {name: of[name][-102:].mean() / of[name][:10].mean() for name in METHODS if name not in flat}
    claims = (
        Claim(
            "The variance is similar for all values in Base and Norm (here: between bins by less than a quarter), with "
            "Norm slightly smaller",
            f"largest over smallest {flat['base']:.2f} (Base), {flat['norm']:.2f} (Norm); Norm over Base {gain:.5f}",
            bool(max(flat.values()) < 1.25 and 0.95 < gain < 1),
        ),
        Claim(
            "For all other methods the variance drops with the rank (here: that of the rarest tenth is below half "
            "that of the ten most frequent)",
            "rarest tenth over the ten most frequent: "
            + ", ".join(f"{LABELS[name]} {brief(float(share))}" for name, share in drop.items()),
            max(drop.values()) < 0.5,
        ),
    )
    title = "Figure 3: variance of the estimated counts"
    return Exhibit("figure-3", title, panels, claims, ("The same runs as Figure 1.",))
