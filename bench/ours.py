"""veil's side of every comparison: randomize, tally, collect, on a chosen number of threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.timing import Contestant, local
from veil.mechanisms import FrequencyOracle, PureOracle, Rappor
from veil.post.selection import redraw
from veil.reports.columns import Reports
from veil.results.estimate import Estimate


def held_values(oracle: FrequencyOracle, people: int) -> NDArray[np.int64]:
    """Everybody's values, uniform and the same every time."""
    return np.random.default_rng(0).integers(0, oracle.domain.size, people)


def reports_of(oracle: FrequencyOracle, people: int) -> Reports:
    return oracle.randomize(held_values(oracle, people))


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """veil on so many threads."""
    before = os.environ.get("VEIL_THREADS")
    os.environ["VEIL_THREADS"] = str(count)
    try:
        yield
    finally:
        del os.environ["VEIL_THREADS"]
        if before is not None:
            os.environ["VEIL_THREADS"] = before


def randomize(oracle: FrequencyOracle, people: int, cores: int = 1) -> Contestant:
    """From fresh entropy of the operating system, as everybody gets it."""
    values = held_values(oracle, people)

    def work() -> None:
        with threads(cores):
            oracle.randomize(values)

    return local(work, people)


def tally(oracle: FrequencyOracle, reports: Reports, cores: int = 1, weighted: bool = False) -> Contestant:
    """Counting alone."""
    weights = np.arange(len(reports)) % 1000 if weighted else None

    def work() -> None:
        with threads(cores):
            oracle.tally(reports, weights=weights)

    return local(work, len(reports))


def collect(oracle: FrequencyOracle, people: int) -> Contestant:
    """From reports to the estimates of all values; Rappor without its regression, which does not depend on people."""
    reports = reports_of(oracle, people)

    def work() -> None:
        with threads(1):
            counted = oracle.tally(reports)
            if not isinstance(oracle, Rappor):
                oracle.estimate(counted)

    return local(work, people)


def collected(oracle: PureOracle, held: NDArray[np.int64], random: np.random.Generator) -> Estimate:
    """Return the estimate from people who hold each value in these numbers, with redrawn counts."""
    n = int(held.sum())
    frequencies = redraw(oracle.noise, held, random)
    return Estimate(oracle.domain, frequencies, n, oracle.noise, population=n, mass=n, effective=n)
