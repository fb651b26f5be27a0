"""Figures 1 to 3 of the consistency paper: mean, bias and variance of the counts that each method gives, by rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veil.post import quietly
from veil_papers.common.claims import Says, each, span
from veil_papers.common.exhibits import Curve, Exhibit, Panel, Parts, brief, exhibit
from veil_papers.consistency.runs import AUTO, HOW, LEFT, METHODS, RIGHT, Plan, collections, zipf

Floats = NDArray[np.float64]
Groups = dict[str, tuple[str, ...]]

_ALONE = 8  # ranks shown one by one; beyond, neighbours are averaged
_FAR = 5.0  # standard errors: one value in a thousand experiments strays as far by chance
_GROUPS: Groups = {
    "a": ("Base", "Norm", "Base-Pos", "Post-Pos"),
    "b": ("Norm-Mul",),
    "c": ("Norm-Sub", "MLE-Apx", "Base-Cut", "Norm-Cut"),
    "d": ("Power", "PowerNS", AUTO),
}


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


def figures(plan: Plan, seed: int) -> tuple[Exhibit, ...]:
    """The three figures, from the same collections."""
    held = zipf()
    sums = {name: np.zeros((2, len(held))) for name in METHODS}
    with plan.watch("Figures 1 to 3: bias and variance", plan.long_runs) as advance:
        for run, estimate in enumerate(collections(held, 1.0, plan.long_runs, [seed, 1])):
            for name, method in METHODS.items():
                if name == AUTO and run >= plan.auto_runs:
                    continue
                off = quietly(estimate, method).shown * estimate.n - held
                sums[name] += np.stack([off, off**2])
            advance(1)
    found = {}
    for name, (first, second) in sums.items():
        runs = plan.auto_runs if name == AUTO else plan.long_runs
        variance = np.maximum(second - first**2 / runs, 0.0) / (runs - 1)
        found[name] = _Moments(first / runs, variance, runs)
    return _means(held.astype(np.float64), found), _biases(found), _variances(found)


def _bins(size: int) -> list[NDArray[np.int64]]:
    """Positions by rank: the first alone, then neighbours together, in ever larger bins."""
    edges = np.unique(np.rint(np.geomspace(_ALONE, size, 16)).astype(np.int64))
    return [np.array([i]) for i in range(_ALONE)] + [np.arange(a, b) for a, b in pairwise(edges)]


def _binned(values: Floats) -> Floats:
    return np.array([values[places].mean() for places in _bins(len(values))])


def _panels(groups: Groups, y_label: str, of: dict[str, Floats], *, y_log: bool = True) -> Iterator[Panel]:
    ranks = tuple(float(np.exp(np.log(places + 1.0).mean())) for places in _bins(1024))
    for letter, names in groups.items():
        curves = (Curve(name, ranks, tuple(_binned(of[name]).tolist()), faint=name == AUTO) for name in names)
        yield Panel(f"({letter}) Zipf, eps = 1", "rank", y_label, tuple(curves), x_log=10, y_log=y_log)


@exhibit
def _means(truth: Floats, found: _Found) -> Parts:
    """Figure 1: means of the estimated counts."""
    of = {"truth": truth, **{name: truth + moments.bias for name, moments in found.items()}}
    yield from _panels({"a": ("truth", *LEFT), "b": ("truth", *RIGHT)}, "mean count (people)", of)
    yield f"{HOW} {found['Base'].runs:,} runs ({found[AUTO].runs:,} of auto); the paper has 5,000."
    yield f"Ranks above {_ALONE} are averaged in bins that grow with the rank. Means below zero have no place here."
    top = np.abs(found["Power"].bias[:4] / truth[:4]).max()
    middle = found["Power"].bias[8:64].sum() / truth[8:64].sum()
    total = of["Base-Pos"].sum() / truth.sum()
    says = "Power changes top values little, low ones more (here: ranks 1 to 4 below 2 %, 9 to 64 above 10 %)"
    yield Says(says).given(
        f"the first 4 by at most {top:.2%}, ranks 9 to 64 by {middle:+.0%}", top < 0.02 and abs(middle) > 0.1
    )
    says = "Base-Pos introduces systematic bias, which adds up (here: its counts to more than 1.5 times the people)"
    yield Says(says).given(f"{total:.2f} times; Norm-Sub {of['Norm-Sub'].sum() / truth.sum():.3f}", total > 1.5)


@exhibit
def _biases(found: _Found) -> Parts:
    """Figure 2: bias of the estimated counts."""
    one = float(np.sqrt(found["Base"].variance.mean() / found["Base"].runs))
    yield f"Mind the scales. The standard error of a single value's mean is {one:.0f} people for Base."
    yield from _panels(_GROUPS, "bias (people)", {name: of.bias for name, of in found.items()}, y_log=False)
    far = {name: np.abs(found[name].z).max() for name in ("Base", "Norm")}
    says = f"Base and Norm are unbiased (here: no value's mean is {_FAR:g} standard errors off)"
    yield Says(says).given(f"at most {each(far, '.1f')} standard errors, over 1,024 values", max(far.values()) < _FAR)
    rare = found["Base-Pos"].z[100:]
    says = f"Base-Pos has a positive bias (here: at least {_FAR:g} standard errors for every value beyond rank 100)"
    yield Says(says).given(
        f"{span(rare, '.0f')} standard errors; on average {brief(found['Base-Pos'].bias[100:].mean())} people",
        rare.min() > _FAR,
    )
    cut = found["Base-Cut"]
    lowest, first = int(cut.bias.argmin()), np.abs(cut.z[:5]).max()
    says = f"Base-Cut is unbiased for the first few values (here: 5, within {_FAR:g} standard errors), not in between"
    yield Says(says).given(
        f"the first 5 within {first:.1f} standard errors; most biased at rank {lowest + 1}, by "
        f"{brief(cut.bias[lowest])} people ({cut.z[lowest]:.0f} standard errors)",
        first < _FAR and cut.z[lowest] < -_FAR,
    )
    binned = _binned(found["Norm-Sub"].bias)
    error = np.sqrt(_binned(found["Norm-Sub"].variance) / found["Norm-Sub"].runs / [len(b) for b in _bins(1024)])
    falls = ((binned[:-1] - binned[1:]) / np.hypot(error[:-1], error[1:])).max()
    says = "The bias of Norm-Sub is an increasing line (here: from bin to bin it never falls by 3 standard errors)"
    yield Says(says).given(
        f"from {brief(binned[0])} to {brief(binned[-1])} people; deepest fall {max(falls, 0.0):.1f} standard errors",
        falls < 3 and binned[0] < 0 < binned[-1],
    )
    power, normed = found["Power"].bias, found["PowerNS"].bias
    alike, widest = np.corrcoef(power, normed)[0, 1], np.abs(power - normed).max()
    says = "The shape of PowerNS is close to Power's (here: correlation of their biases over all values above 0.9)"
    yield Says(says).given(f"correlation {alike:.3f}; they differ by at most {brief(widest)} people", alike > 0.9)


@exhibit
def _variances(found: _Found) -> Parts:
    """Figure 3: variance of the estimated counts."""
    people = zipf().sum()
    of = {name: moments.variance / people for name, moments in found.items()}
    yield "The same runs as Figure 1."
    yield from _panels({"a": LEFT, "b": RIGHT}, "variance (people squared) over n", of)
    flat = {name: _binned(of[name]).max() / _binned(of[name]).min() for name in ("Base", "Norm")}
    gain = of["Norm"].mean() / of["Base"].mean()
    says = "The variance is similar for all values in Base and Norm (here: within a quarter), Norm's slightly smaller"
    yield Says(says).given(
        f"largest over smallest: {each(flat)}; Norm over Base {gain:.5f}", max(flat.values()) < 1.25 and 0.95 < gain < 1
    )
    drop = {name: of[name][-102:].mean() / of[name][:10].mean() for name in METHODS if name not in flat}
    says = (
        "For all other methods the variance drops with the rank (here: the rarest tenth has below half the top ten's)"
    )
    yield Says(says).given(f"rarest tenth over the ten most frequent: {each(drop, brief)}", max(drop.values()) < 0.5)
