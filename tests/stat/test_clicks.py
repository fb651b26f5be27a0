"""The binomial short cut of the click experiments: counts are distributed like those of real people."""

from __future__ import annotations

import numpy as np
import pytest
from tests.significance import mean_fits, variance_fits

from veil import BLH, OLH, Rappor
from veil.entropy import SeededForExperiments
from veil_papers.common.asking import drawn_tally, rappor_tally

HELD = np.array([400, 250, 100, 50, 0, 0, 0, 0])
RUNS = 400


@pytest.mark.parametrize("oracle", [OLH(2.0, 8), BLH(2.0, 8), Rappor(3.0, 8, bits=8, cohorts=2)], ids=lambda o: o.name)
def test_counts_are_distributed_like_those_of_people(oracle: OLH | BLH | Rappor) -> None:
    values = np.repeat(np.arange(8), HELD)
    real = np.array([oracle.tally(oracle.randomize(values, SeededForExperiments(seed))).counts for seed in range(RUNS)])
    draw = rappor_tally if isinstance(oracle, Rappor) else drawn_tally
    drawn = np.array([draw(oracle, HELD, np.random.default_rng(seed)).counts for seed in range(RUNS)])  # type: ignore[arg-type]
    for mine, theirs in zip(drawn.T, real.T, strict=True):
        spread = float(np.sqrt((mine.var(ddof=1) + theirs.var(ddof=1)) / RUNS))
        assert mean_fits(float(mine.mean()), float(theirs.mean()), spread)
        assert variance_fits(float(mine.var(ddof=1)), RUNS // 2, float(theirs.var(ddof=1)))
    rival = np.array(
        [draw(type(oracle)(1.0, 8, **_more(oracle)), HELD, np.random.default_rng(s)).counts for s in range(RUNS)]
    )  # type: ignore[arg-type]
    off = (rival.mean(axis=0) - real.mean(axis=0)) / np.sqrt(real.var(axis=0, ddof=1) / RUNS)
    assert np.abs(off).max() > 10  # eps = 1 is told apart on the same sample


def _more(oracle: object) -> dict[str, int]:
    return {"bits": 8, "cohorts": 2} if isinstance(oracle, Rappor) else {}
