"""Simulated collections of millions of clicks, by the distribution of what the collector counts.

Counts are drawn as binomials, which is exactly how counts over people are distributed, not an approximation:

- OLH and BLH with a random function as hash: given a report's bucket, other values fall into it independently with
  probability q, so that the counts of all values are independent, Bin(n_v, p) + Bin(n - n_v, q).
- Rappor: people choose cohorts uniformly (multinomial by value), and every bit of every filter is flipped
  independently: a bit that m of a cohort's N people have set is reported by Bin(m, 1 - f/2) + Bin(N - m, f/2) of them.

The estimates come from the shipped estimators. Simulation only: numpy's generator protects nobody.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import FrequencyOracle, PureOracle, Rappor
from veil.mechanisms.bloom import design_matrix
from veil.post.redrawing import redraw_counts
from veil.tally import Tally

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["HOW", "drawn_tally", "estimate_clicks", "rappor_tally"]

HOW = (
    "Support counts are drawn as binomials (OLH, BLH: Bin(n_v, p) + Bin(n - n_v, q) a value; Rappor: cohorts "
    "multinomial by value, reported bits binomial a cohort and bit), which equals simulating every person in "
    "distribution; estimates come from the shipped estimators."
)


def estimate_clicks(oracle: FrequencyOracle, held: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """The estimated number of people of every value, from one simulated collection."""
    if isinstance(oracle, Rappor):
        return oracle.estimate(rappor_tally(oracle, held, rng)).counts
    assert isinstance(oracle, PureOracle)
    return oracle.estimate(drawn_tally(oracle, held, rng)).counts


def drawn_tally(oracle: PureOracle, held: NDArray[np.int64], rng: np.random.Generator) -> Tally:
    """What the collector counts of a pure oracle."""
    people = int(held.sum())
    counts = redraw_counts(oracle.noise, held, rng).astype(np.int64)
    return Tally(oracle.digest, counts, people, people, people)


def rappor_tally(oracle: Rappor, held: NDArray[np.int64], rng: np.random.Generator) -> Tally:
    """What the collector counts of Rappor: for every cohort its people, then how many report each bit."""
    assert oracle.instant is None, "the instantaneous step is off in the thesis's experiments"
    people, flip = int(held.sum()), float(oracle.f) / 2
    chosen = rng.multinomial(held, np.full(oracle.cohorts, 1 / oracle.cohorts))
    counts = np.empty((oracle.cohorts, oracle.bits + 1), dtype=np.int64)
    matrix = _filters(oracle.cohorts, oracle.bits, oracle.hashes, len(held))
    for cohort in range(oracle.cohorts):
        rows = matrix[cohort * oracle.bits : (cohort + 1) * oracle.bits]
        size, filled = int(chosen[:, cohort].sum()), np.rint(rows @ chosen[:, cohort]).astype(np.int64)
        counts[cohort, 0] = size
        counts[cohort, 1:] = rng.binomial(filled, 1 - flip) + rng.binomial(size - filled, flip)
    return Tally(oracle.digest, counts.reshape(-1), people, people, people)


@lru_cache(maxsize=4)
def _filters(cohorts: int, bits: int, hashes: int, values: int) -> csr_matrix:
    """Which bits each value sets in each cohort: public, and the same for every eps."""
    spread = Rappor(1.0, values).spread(np.arange(values, dtype=np.uint64))
    return design_matrix(np.arange(cohorts), spread, bits, hashes).tocsr()
