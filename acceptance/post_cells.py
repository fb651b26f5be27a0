"""Cells of the post-processing tables: a shape, a number of values and an eps, collected often, with every method.

Counts of support are drawn, not people (`veil.post.selection`), so a collection costs as much as the number of values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from bench.ours import collected
from numpy.typing import NDArray

from acceptance.accuracy import zipf
from veil.errors import FitWarning
from veil.mechanisms import OLH
from veil.post import PAPER_METHODS, Prior
from veil.results.estimate import Estimate
from veil.tools.numbers import proportional
from veil_papers.datasets import kosarak_clicks

Floats = NDArray[np.float64]

PEOPLE = 1_000_000
TOP = 32
AUTO, KNOWN = "auto", "known prior"


def _pages(size: int) -> Floats:
    return np.sort(kosarak_clicks().held)[::-1][:size].astype(np.float64)


def page_origin() -> str:
    """Where the page counts come from."""
    return kosarak_clicks().origin


SHAPES: dict[str, Callable[[int], Floats]] = {
    "Zipf 1.1": lambda d: zipf(d, 1.1),
    "Zipf 1.5": lambda d: zipf(d, 1.5),
    "geometric 0.95": lambda d: 0.95 ** np.arange(d),
    "uniform": lambda d: np.ones(d),
    "Gaussian": lambda d: np.exp(-0.5 * ((np.arange(d) - d / 2) / (0.15 * d)) ** 2),
    "step 3:2": lambda d: np.where(np.arange(d) < d // 2, 3.0, 2.0),
    "page counts": _pages,
}
"""Shares of the values, up to a factor. Page counts are those of the most frequent pages of Kosarak."""

OTHER_STEPS: dict[str, Callable[[int], Floats]] = {
    "step 2:1": lambda d: np.where(np.arange(d) < d // 2, 2.0, 1.0),
    "a tenth holds half": lambda d: np.where(np.arange(d) < d // 10, 0.5 / (d // 10), 0.5 / (d - d // 10)),
    "half holds nothing": lambda d: np.where(np.arange(d) < d // 2, 1.0, 0.0),
}


@dataclass(frozen=True)
class Cell:
    """A shape, how many values it has, and how private the collection is."""

    shape: str
    size: int
    epsilon: float

    @property
    def held(self) -> NDArray[np.int64]:
        """How many of the people hold each value, the same every time: the truth has no noise."""
        return proportional((SHAPES | OTHER_STEPS)[self.shape](self.size), PEOPLE)


@dataclass(frozen=True, eq=False)
class Measured:
    """Mean squared errors of a cell, one for each seed: over all values, and over those that are the most frequent."""

    cell: Cell
    every: dict[str, Floats]
    top: dict[str, Floats]

    @property
    def best(self) -> str:
        """The best of Base and the paper's ten methods over all values."""
        return min(PAPER_METHODS, key=lambda name: float(self.every[name].mean()))

    @property
    def best_on_top(self) -> str:
        """The best of them over the most frequent values."""
        return min(PAPER_METHODS, key=lambda name: float(self.top[name].mean()))


def ratio(ours: Floats, theirs: Floats) -> tuple[float, float]:
    """Ratio of two means over the same seeds, and its standard error (delta method: seeds are paired)."""
    found = float(ours.mean() / theirs.mean())
    spread = float(np.std(ours - found * theirs, ddof=1)) if len(ours) > 1 else np.inf
    return found, spread / float(np.sqrt(len(ours)) * theirs.mean())


def collections(cell: Cell, seeds: int) -> Iterator[Estimate]:
    """The cell's people asked again and again with OLH."""
    oracle, held = OLH(cell.epsilon, cell.size), cell.held
    for seed in range(seeds):
        yield collected(oracle, held, np.random.default_rng((seed, cell.size, round(10 * cell.epsilon))))


def shown_by(estimate: Estimate, methods: Iterable[str]) -> dict[str, Floats]:
    """What methods say of each single value. PowerNS goes on from Power."""
    made: dict[str, Estimate] = {}
    for name in methods:
        made[name] = made["power"].post("norm-sub") if name == "power-ns" and "power" in made else estimate.post(name)
    return {name: result.shown for name, result in made.items()}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS compute with one thread: on a busy machine its threads wait for each other far longer than they work."""
    import scipy.linalg  # noqa: F401  # it has a BLAS of its own, which must be there to be told
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def measure_all(cells: Iterable[Cell], seeds: int) -> list[Measured]:
    """Measure every cell with Base, the ten methods, `auto`, and the true prior for reference.

    Two cells at a time. A power law that cannot fit gives way to the learned prior with a warning: that is the method's
    error then.
    """
    with warnings.catch_warnings(), one_blas_thread(), ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("ignore", FitWarning)
        return list(pool.map(lambda cell: _measure(cell, seeds), cells))


def _measure(cell: Cell, seeds: int) -> Measured:
    truth = cell.held / PEOPLE
    frequent = np.argsort(-truth, kind="stable")[:TOP]
    names = (*PAPER_METHODS, AUTO, KNOWN)
    every: dict[str, list[float]] = {name: [] for name in names}
    top: dict[str, list[float]] = {name: [] for name in names}
    prior = Prior.of_frequencies(truth)
    for estimate in collections(cell, seeds):
        made = shown_by(estimate, PAPER_METHODS)
        made[AUTO] = estimate.post(AUTO).frequencies
        made[KNOWN] = estimate.post("calibrate", prior=prior, noise="dependent").post("norm-sub").frequencies
        for name in names:
            errors = (made[name] - truth) ** 2
            every[name].append(float(errors.mean()))
            top[name].append(float(errors[frequent].mean()))
    return Measured(cell, *({name: np.array(errors) for name, errors in of.items()} for of in (every, top)))
