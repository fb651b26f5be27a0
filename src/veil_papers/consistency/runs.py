"""Simulated collections for the consistency paper's figures, and the error of every method on each of them.

Every method is called as an analyst calls it, `estimate.post(name)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veil import Estimate
from veil.mechanisms import OLH
from veil.post import quietly, squared_errors
from veil_papers.common.asking import DRAWN, estimate
from veil_papers.common.exhibits import Panel, Setting
from veil_papers.common.sweep import Scores, Sweep
from veil_papers.datasets import proportional

Ints = NDArray[np.int64]
Asks = dict[str, Callable[[np.random.Generator], list[Ints]]]
"""Queries by name: what each asks in a run, as lists of positions whose frequencies are added up."""

HOW = f"OLH. {DRAWN} Methods are `estimate.post`."
METHODS = {
    "Base": "base", "Base-Pos": "base-pos", "Post-Pos": "post-pos", "Base-Cut": "base-cut", "Norm": "norm",
    "Norm-Mul": "norm-mul", "Norm-Cut": "norm-cut", "Norm-Sub": "norm-sub", "MLE-Apx": "mle-apx", "Power": "power",
    "PowerNS": "power-ns", "auto (ours)": "auto",
}  # fmt: skip
"""The paper's names of the methods, and ours."""
AUTO = "auto (ours)"
PAPER = tuple(name for name in METHODS if name != AUTO)
LEFT = ("Base", "Base-Pos", "Post-Pos", "Norm", "Norm-Mul", "Norm-Sub")
RIGHT = ("Norm-Sub", "MLE-Apx", "Base-Cut", "Norm-Cut", "Power", "PowerNS", AUTO)


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch = setting.pick, setting.watch
        # More at eps = 1, where sets are asked for: Base's error on a large one is a single draw for each run.
        self.runs, self.runs_at_one = pick(30, 3), pick(300, 3)
        self.long_runs, self.auto_runs = pick(2_000, 40), pick(200, 2)  # for means and variances of single values
        self.sets = pick(100, 50)
        self.epsilons = pick((0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0), (1.0, 4.0))
        self.people = pick(tuple(range(200_000, 2_000_001, 200_000)), (200_000, 1_000_000))
        self.wide, self.narrow = pick(tuple(range(10, 91, 10)), (10, 50, 90)), pick(tuple(range(1, 11)), (1, 5, 10))
        self.top = pick((2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32), (2, 10, 32))
        self.imagined, self.imagined_runs = pick(3, 1), pick(10, 3)  # estimates that a method is selected for


def zipf(people: int = 1_000_000) -> Ints:
    """How many people hold each of 1,024 values by Zipf's law (1.5), the most frequent first."""
    return proportional(np.arange(1, 1025, dtype=np.float64) ** -1.5, people)


def collection(held: Ints, epsilon: float, seed: Sequence[int]) -> Estimate:
    """The estimate from one simulated collection."""
    return estimate(OLH(epsilon, len(held)), held, np.random.default_rng(seed))


def collections(held: Ints, epsilon: float, runs: int, seed: Sequence[int]) -> Iterator[Estimate]:
    """Estimates from as many simulated collections from the same people."""
    return (collection(held, epsilon, [*seed, run]) for run in range(runs))


def base_cut_keeps(held: Ints, runs: int, seed: Sequence[int]) -> tuple[int, float]:
    """How many values Base-Cut keeps in at least 95 % of the runs at eps = 1, and what its frequencies add up to."""
    kept, total = np.zeros(len(held)), 0.0
    for made in collections(held, 1.0, runs, seed):
        frequencies = quietly(made, "base-cut").frequencies
        kept += frequencies > 0
        total += float(frequencies.sum()) / runs
    return int((kept >= 0.95 * runs).sum()), total


def random_sets(size: int, percent: int, count: int) -> Callable[[np.random.Generator], list[Ints]]:
    """So many sets of a part of the domain, drawn anew in every run."""
    kept = max(round(size * percent / 100), 1)
    return lambda rng: list(rng.permuted(np.tile(np.arange(size), (count, 1)), axis=1)[:, :kept])


def score(held: Ints, epsilon: float, asks: Asks, seed: Sequence[int]) -> Scores:
    """The mean squared error of every method for "full", all values, and every query, from one simulated collection."""
    truth, drawn = held / held.sum(), collection(held, epsilon, seed)
    asked = {ask: draw(np.random.default_rng([*seed, 1])) for ask, draw in asks.items()}
    asked["full"] = list(np.arange(len(held))[:, None])
    made = {label: quietly(drawn, name) for label, name in METHODS.items()}
    return {
        ask: {label: float(squared_errors(of, groups, truth).mean()) for label, of in made.items()}
        for ask, groups in asked.items()
    }


def pairs(
    sweeps: Mapping[str, Sweep], at: str, axes: tuple[str, str], right: Sequence[str] = RIGHT, *, spread: bool = True
) -> Iterator[Panel]:
    """The paper's two panels for each sweep: simple methods on the left, on the right Norm-Sub with the others."""
    letters = iter("abcd")
    for label, sweep in sweeps.items():
        for names in (LEFT, right):
            yield sweep.panel(f"({next(letters)}) {label}{at}", *axes, names, faint=(AUTO,), spread=spread)
