"""Rows about intervals and significance: against a limit, and against plain normal intervals in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.timing import Row, Setting, local
from veil import OLH, Estimate, Tally
from veil.tools.numbers import proportional

VALUES, PEOPLE, EPSILON = 1_000_000, 10_000_000, 2.0
INTERVAL_SECONDS, SIGNIFICANT_SECONDS = 1.0, 0.1
MOST_TURNS = 20


def interval_rows(setting: Setting) -> Iterator[Row]:
    """Intervals and the test of a million values."""
    estimate, turns = _collected(), min(setting.repeats, MOST_TURNS)
    p, q = float(estimate.noise.p), float(estimate.noise.q)  # type: ignore[attr-defined]  # of an OLH

    def normal() -> NDArray[np.float64]:
        shares = np.clip(estimate.frequencies, 0.0, 1.0)
        variance = (q * (1 - q) + shares * (p - q) * (1 - p - q)) / ((p - q) ** 2 * PEOPLE)
        reach = 1.959963984540054 * np.sqrt(variance)
        return np.stack([estimate.frequencies - reach, estimate.frequencies + reach], axis=1)

    def threshold() -> NDArray[np.int64]:
        least = 5.45 * np.sqrt(q * (1 - q) / PEOPLE) / (p - q)
        return np.flatnonzero(estimate.frequencies > least)

    yield from _rows(f"intervals of {VALUES:,} values", estimate.interval, normal, INTERVAL_SECONDS, turns)
    yield from _rows(f"significant of {VALUES:,} values", estimate.significant, threshold, SIGNIFICANT_SECONDS, turns)


def _rows(what: str, ours: Callable[[], Any], rival: Callable[[], Any], limit: float, turns: int) -> Iterator[Row]:
    mine = local(ours, 1)
    named = f"{what} (best of {turns})"
    yield Row(named, f"a limit of {limit:g} s", 1.0, mine, limit, turns)
    yield Row(named, "the normal approximation, numpy", None, mine, local(rival, 1), turns)


def _collected() -> Estimate:
    """What people whose values follow Zipf's law would give, drawn as counts."""
    oracle = OLH(EPSILON, VALUES)
    held = proportional(1.0 / np.arange(1, VALUES + 1), PEOPLE)
    random = np.random.default_rng(1)
    counts = random.binomial(held, float(oracle.p)) + random.binomial(PEOPLE - held, float(oracle.q))
    return oracle.estimate(Tally(oracle.digest, counts, PEOPLE, PEOPLE, PEOPLE))
