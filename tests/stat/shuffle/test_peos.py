"""Estimates from the outcome of PEOS: the distribution of the mechanism alone, without bias from fakes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.significance import mean_fits, variance_fits
from tests.support.everyday import everyday
from tests.support.in_memory import small_plan, walk

from veil import GRR, OLH
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.histogram import Histogram
from veil.mechanisms import FrequencyOracle
from veil.shuffle.peos import Peos
from veil.wire.ring import ring_of

PEOPLE, FAKES, VALUES, RUNS = 300, 200, 4, 40
HELD = np.repeat(np.arange(VALUES), (150, 90, 60, 0))


@pytest.mark.parametrize(
    "oracle", everyday([GRR(2.0, VALUES), OLH(2.0, VALUES, 6, seed_bytes=4)], 1), ids=["GRR", "OLH"]
)
def test_estimates_after_the_shuffle_are_unbiased_with_the_stated_error(oracle: FrequencyOracle) -> None:
    study = Histogram(oracle)
    ring = ring_of(study.survey)
    found, taken_for_people = [], []
    for run in range(RUNS):
        source = SeededForExperiments(run)
        reports = study.survey.randomize(HELD, source)
        elements = ring.encode(reports.columns, source)
        seen = walk([Peos(small_plan(3, fakes=FAKES)) for _ in range(3)], elements, salt=run)
        assert seen.elements is not None
        shuffled = ring.reports(seen.elements)
        found.append(study.read(MemoryCollection(study.survey, shuffled, fakes=FAKES)))
        taken_for_people.append(study.read(MemoryCollection(study.survey, shuffled)).frequencies)
    truth = np.bincount(HELD, minlength=VALUES) / PEOPLE
    estimates = np.array([one.frequencies for one in found])
    stated = found[0].variance_at(truth)
    for value in range(VALUES):
        mean, spread = estimates[:, value].mean(), estimates[:, value].var(ddof=1)
        assert mean_fits(float(mean), float(truth[value]), float(np.sqrt(stated[value] / RUNS)))
        assert variance_fits(float(spread), RUNS, float(stated[value]))
    # the rivals: fakes taken for people, and for OLH the thesis's (9.5), which subtracts n_r / (n d) too much
    biased = np.array(taken_for_people).mean(axis=0)
    assert not mean_fits(float(biased[0]), float(truth[0]), float(np.sqrt(stated[0] / RUNS)))
    if isinstance(oracle, OLH):
        printed = np.array(taken_for_people) * (PEOPLE + FAKES) / PEOPLE - FAKES / PEOPLE / VALUES
        off = printed.mean(axis=0)[3]
        assert not mean_fits(float(off), 0.0, float(np.sqrt(stated[3] / RUNS)))
