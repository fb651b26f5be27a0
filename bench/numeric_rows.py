"""Rows about numbers: a step of EMS against the dense matrix, and people randomized against a loop over np.random.

BLAS has one thread, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from acceptance.post_cells import one_blas_thread
from numpy.typing import NDArray

from bench.timing import Row, Setting, local
from veil import Interval, SquareWave
from veil.entropy import SeededForExperiments
from veil.mechanisms.numbers.reconstruction import Stopping, Wave, reconstruct

BUCKETS, EPSILON = 1_024, 1.0
STEPS = 100
PEOPLE, LOOPED = 1_000_000, 20_000


def numeric_rows(setting: Setting) -> Iterator[Row]:
    """Every row."""
    wave = SquareWave(EPSILON, Interval(0, 1), BUCKETS)
    values = np.random.default_rng(0).beta(5, 2, PEOPLE)
    with one_blas_thread():
        yield _step_row(wave, values, setting.repeats)
        yield _randomize_row(wave, values, min(setting.repeats, 20))


def _step_row(wave: SquareWave, values: NDArray[np.float64], repeats: int) -> Row:
    """Ours does the whole step, with smoothing and stopping; the dense one its two products only."""
    counts = wave.tally(wave.randomize(values, SeededForExperiments(1))).counts
    operator = Wave.of(wave)
    matrix = np.stack([operator.reports(column) for column in np.eye(BUCKETS)], axis=1)
    x, y = np.full(BUCKETS, 1 / BUCKETS), np.ones(len(matrix))
    rule = Stopping(most=STEPS)
    return Row(
        f"a step of EMS with {BUCKETS:,} buckets, {len(matrix):,} of reports",
        "numpy's dense M @ x and M.T @ y, one BLAS thread",
        30,
        local(lambda: reconstruct(wave, counts, stopping=rule), STEPS),
        local(lambda: (matrix @ x, matrix.T @ y), 1),
        repeats,
    )


def _randomize_row(wave: SquareWave, values: NDArray[np.float64], turns: int) -> Row:
    return Row(
        f"Square Wave: {PEOPLE:,} people randomized (best of {turns})",
        f"a loop over np.random, a person at a time ({LOOPED:,} people)",
        20,
        local(lambda: wave.randomize(values), PEOPLE),
        local(lambda: _looped(values[:LOOPED], wave.b, EPSILON), LOOPED),
        turns,
    )


def _looped(values: NDArray[np.float64], b: float, epsilon: float) -> list[float]:
    """Section 5.2 as one would write it down."""
    rng = np.random.default_rng()
    near = 2 * b * np.exp(epsilon) / (2 * b * np.exp(epsilon) + 1)
    reports = []
    for value in values:
        if rng.random() < near:
            reports.append(rng.uniform(value - b, value + b))
        else:
            far = rng.random()
            reports.append(far - b if far < value else far + b)
    return reports
