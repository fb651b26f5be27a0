"""Simulated collections for the consistency paper's figures, and the error of every method on each of them.

Counts of support are drawn as binomials, as `clicks` explains; estimates are the shipped oracle's, and every method is
called as an analyst calls it, `estimate.post(name)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import OLH
from veil.post import PAPER_METHODS
from veil.post.queries import squared_errors
from veil.post.selection import quietly
from veil.results.estimate import Estimate
from veil.tools.shares import proportional
from veil_papers.common.asking import drawn_tally
from veil_papers.common.exhibits import Advance, Curve, Panel

__all__ = [
    "FULL",
    "HOW",
    "LABELS",
    "LEFT",
    "METHODS",
    "QUICK",
    "RIGHT",
    "Asks",
    "Plan",
    "Sweep",
    "base_cut_keeps",
    "collections",
    "every_value",
    "measure",
    "pair",
    "random_sets",
    "zipf",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = list[Ints]
Asks = dict[str, Callable[[np.random.Generator], Groups]]
"""Queries by name: what each asks in a run, as lists of positions whose frequencies are added up."""

HOW = (
    "OLH. Support counts are drawn as binomials, Bin(n_v, p) + Bin(n - n_v, q) a value, which equals simulating every "
    "person in distribution (with an ideal hash); estimates come from the shipped oracle, methods are `estimate.post`."
)
LABELS = {
    "base": "Base", "base-pos": "Base-Pos", "post-pos": "Post-Pos", "base-cut": "Base-Cut", "norm": "Norm",
    "norm-mul": "Norm-Mul", "norm-cut": "Norm-Cut", "norm-sub": "Norm-Sub", "mle-apx": "MLE-Apx", "power": "Power",
    "power-ns": "PowerNS", "auto": "auto (ours)",
}  # fmt: skip
METHODS = (*PAPER_METHODS, "auto")
LEFT = ("base", "base-pos", "post-pos", "norm", "norm-mul", "norm-sub")
RIGHT = ("norm-sub", "mle-apx", "base-cut", "norm-cut", "power", "power-ns", "auto")


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    runs: int
    runs_at_one: int
    """At eps = 1, where sets and frequent values are asked for: Base's error on a large set is one draw a run."""
    long_runs: int
    """For means and variances of single values."""
    auto_runs: int
    """The same for `auto`, which takes longer."""
    sets: int
    epsilons: tuple[float, ...]
    people: tuple[int, ...]
    wide: tuple[int, ...]
    narrow: tuple[int, ...]
    top: tuple[int, ...]
    imagined: int
    """Estimates that a method is selected for, at each eps."""
    imagined_runs: int


FULL = Plan(
    runs=30,
    runs_at_one=300,
    long_runs=2_000,
    auto_runs=200,
    sets=100,
    epsilons=(0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0),
    people=tuple(range(200_000, 2_000_001, 200_000)),
    wide=tuple(range(10, 91, 10)),
    narrow=tuple(range(1, 11)),
    top=(2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32),
    imagined=3,
    imagined_runs=10,
)
QUICK = Plan(
    runs=3,
    runs_at_one=3,
    long_runs=40,
    auto_runs=2,
    sets=50,
    epsilons=(1.0, 4.0),
    people=(200_000, 1_000_000),
    wide=(10, 50, 90),
    narrow=(1, 5, 10),
    top=(2, 10, 32),
    imagined=1,
    imagined_runs=3,
)


def zipf(people: int = 1_000_000) -> Ints:
    """How many people hold each of 1,024 values by Zipf's law (1.5), the most frequent first."""
    return proportional(np.arange(1, 1025, dtype=np.float64) ** -1.5, people)


def collections(held: Ints, epsilon: float, runs: int, seed: Sequence[int]) -> Iterator[Estimate]:
    """Estimates from as many simulated collections from the same people."""
    oracle = OLH(epsilon, len(held))
    for run in range(runs):
        yield oracle.estimate(drawn_tally(oracle, held, np.random.default_rng([*seed, run])))


def base_cut_keeps(held: Ints, runs: int, seed: Sequence[int]) -> tuple[int, float]:
    """How many values Base-Cut keeps in at least 95 % of the runs at eps = 1, and what its frequencies add up to."""
    kept, total = np.zeros(len(held)), 0.0
    for estimate in collections(held, 1.0, runs, seed):
        frequencies = quietly(estimate, "base-cut").frequencies
        kept += frequencies > 0
        total += float(frequencies.sum()) / runs
    return int((kept >= 0.95 * runs).sum()), total


def every_value(size: int) -> Callable[[np.random.Generator], Groups]:
    """Each value of the domain."""
    groups = list(np.arange(size)[:, None])
    return lambda rng: groups


def random_sets(size: int, percent: int, count: int) -> Callable[[np.random.Generator], Groups]:
    """So many sets of a part of the domain, drawn anew in every run."""
    kept = max(round(size * percent / 100), 1)
    return lambda rng: list(rng.permuted(np.tile(np.arange(size), (count, 1)), axis=1)[:, :kept])


def measure(
    held: Ints, epsilon: float, asks: Asks, runs: int, seed: Sequence[int], advance: Advance
) -> dict[str, dict[str, Floats]]:
    """Mean squared error of every method for every query, run by run."""
    truth = held / held.sum()
    found = {ask: {name: np.empty(runs) for name in METHODS} for ask in asks}
    for run, estimate in enumerate(collections(held, epsilon, runs, seed)):
        asked = {ask: draw(np.random.default_rng([*seed, run, 1])) for ask, draw in asks.items()}
        for name in METHODS:
            made = quietly(estimate, name)
            for ask, groups in asked.items():
                found[ask][name][run] = squared_errors(made, groups, truth).mean()
        advance(1)
    return found


@dataclass(frozen=True, eq=False)
class Sweep:
    """A number of every method at every point of an axis, run by run (points in rows)."""

    x: tuple[float, ...]
    values: dict[str, Floats]

    @classmethod
    def of(cls, x: Sequence[float], found: Sequence[dict[str, Floats]]) -> Sweep:
        """From what was measured at each point."""
        return cls(tuple(float(at) for at in x), {name: np.stack([of[name] for of in found]) for name in found[0]})

    def mean(self, name: str) -> Floats:
        """The mean of the runs, at every point."""
        return np.asarray(self.values[name].mean(axis=1))

    def ratio(self, name: str, other: str) -> Floats:
        """How many times the other's mean, at every point."""
        return np.asarray(self.mean(name) / self.mean(other))

    def ratio_error(self, name: str, other: str) -> Floats:
        """Its standard error: the two methods saw the same collections."""
        runs = self.values[name].shape[1]
        rest = self.values[name] - self.ratio(name, other)[:, None] * self.values[other]
        return np.asarray(rest.std(axis=1, ddof=1) / np.sqrt(runs) / self.mean(other))

    def beaten(self, name: str, others: Sequence[str]) -> list[str]:
        """Who has a smaller error where, by more than two standard errors; in words, with how many times."""
        found = []
        for other in others:
            ratio, error = self.ratio(other, name), self.ratio_error(other, name)
            found += [
                f"{LABELS[other]} at {at:g} ({ratio[i]:.2f} \N{PLUS-MINUS SIGN} {error[i]:.2f} times)"
                for i, at in enumerate(self.x)
                if ratio[i] + 2 * error[i] < 1
            ]
        return found

    def best(self, names: Sequence[str] = PAPER_METHODS) -> list[str]:
        """The method with the least mean, at every point."""
        return [min(names, key=lambda name: self.mean(name)[i]) for i in range(len(self.x))]

    def over_best(self, name: str, names: Sequence[str] = PAPER_METHODS) -> Floats:
        """How many times the least mean of these methods, at every point."""
        return np.asarray(self.mean(name) / np.min([self.mean(other) for other in names], axis=0))

    def only(self, places: Sequence[int]) -> Sweep:
        """The same at some of the points."""
        return Sweep(
            tuple(self.x[i] for i in places), {name: found[list(places)] for name, found in self.values.items()}
        )

    def where(self, points: Sequence[float]) -> list[int]:
        """The places of those of the points that were measured."""
        return [self.x.index(at) for at in points if at in self.x]

    def curve(self, name: str, *, spread: bool = True) -> Curve:
        """One method, to be drawn, with the standard deviation between runs."""
        several = spread and self.values[name].shape[1] > 1
        bars = tuple(self.values[name].std(axis=1, ddof=1).tolist()) if several else None
        return Curve(LABELS[name], self.x, tuple(self.mean(name).tolist()), bars, faint=name == "auto")


def pair(
    sweep: Sweep,
    letters: str,
    title: str,
    axes: tuple[str, str],
    *,
    right: Sequence[str] = RIGHT,
    spread: bool = True,
    y_log: bool = True,
) -> tuple[Panel, ...]:
    """The paper's two panels: simple methods on the left, on the right Norm-Sub with the others."""
    return tuple(
        Panel(f"({letter}) {title}", *axes, tuple(sweep.curve(name, spread=spread) for name in names), y_log=y_log)
        for letter, names in zip(letters, (LEFT, right), strict=True)
    )
