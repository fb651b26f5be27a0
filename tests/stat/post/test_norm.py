"""Norm on simulated people: its smaller variance is the true one, for values and for sets, and the raw one is not."""

from __future__ import annotations

import numpy as np
from tests.significance import frequency_fits, mean_fits, variance_fits

from veil import OLH, simulate

RUNS, SIZE = 400, 12
VALUES = np.repeat(np.arange(SIZE), [700, 300, 200, 200, 100, *[50] * 6, 200])
TRUTH = np.bincount(VALUES, minlength=SIZE) / len(VALUES)
RAW = [simulate(OLH(1.0, SIZE), VALUES, seed=seed) for seed in range(RUNS)]
NORMED = [raw.post("norm") for raw in RAW]
HALF = range(SIZE // 2)


def test_norm_is_unbiased() -> None:
    shown = np.array([normed.frequencies for normed in NORMED])
    errors = shown.std(axis=0, ddof=1) / np.sqrt(RUNS)
    assert all(mean_fits(*case) for case in zip(shown.mean(axis=0), TRUTH, errors, strict=True))
    assert not mean_fits(float(shown.mean(axis=0)[0]), float(TRUTH[0]) + 10 * errors[0], errors[0])


def test_variances_of_sets_equal_the_errors() -> None:
    totals = np.array([normed.total(HALF).frequency for normed in NORMED])
    said = float(np.mean([normed.total(HALF).stderr ** 2 for normed in NORMED]))
    assert variance_fits(float(totals.var(ddof=1)), RUNS, said)
    rival = float(np.mean([raw.total(HALF).stderr ** 2 for raw in RAW]))
    assert not variance_fits(float(totals.var(ddof=1)), RUNS, rival)


def test_variances_of_values_equal_the_errors() -> None:
    shown = np.array([normed.frequencies for normed in NORMED])
    said = np.mean([normed.variance for normed in NORMED], axis=0)
    scores = ((shown - TRUTH) / np.sqrt(said)).var(axis=0, ddof=1)
    assert all(variance_fits(float(score), RUNS, 1.0) for score in scores)
    raw = np.mean([raw.variance for raw in RAW], axis=0)
    assert (said < raw).all()


def test_intervals_cover_as_stated() -> None:
    """Values of one run are nearly independent; sets are one a run."""
    inside = sum(
        int(((normed.interval()[:, 0] <= TRUTH) & (normed.interval()[:, 1] >= TRUTH))[:6].sum()) for normed in NORMED
    )
    assert frequency_fits(inside, RUNS * 6, 0.95)
    known = TRUTH[list(HALF)].sum()
    covered = sum(low <= known <= high for low, high in (normed.total(HALF).interval() for normed in NORMED))
    assert frequency_fits(covered, RUNS, 0.95)
    wide = sum(
        abs(normed.total(HALF).frequency - known) <= 1.96 * raw.total(HALF).stderr
        for normed, raw in zip(NORMED, RAW, strict=True)
    )
    narrow = sum(
        abs(raw.total(HALF).frequency - known) <= 1.96 * normed.total(HALF).stderr
        for normed, raw in zip(NORMED, RAW, strict=True)
    )
    assert not frequency_fits(narrow, RUNS, 0.95)  # the rival: the normed error bar on the raw total
    assert wide > covered  # and the raw one on the normed total is far too wide
