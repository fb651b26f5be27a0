"""Predicted standard errors against simulated collections, where groups are asked by hashing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from veil import Integers, Record
from veil.entropy import SeededForExperiments
from veil.sql.designs.base import Design
from veil.sql.designs.choosing import expected_counts
from veil.sql.designs.hio import HIO
from veil.sql.designs.marginal import MG
from veil.sql.language.query import Box
from veil.sql.table import Table

PRIVATE = Record.of(a=Integers(0, 63), b=4)
PEOPLE, RUNS = 64 * 4 * 12, 160
BOX: list[Box] = [(((5, 40),), ((1, 3),))]


def scatter(table: Table, weights: np.ndarray) -> float:
    """The empirical standard error of a sum of weights, over collections of evenly spread people."""
    cells = np.arange(PEOPLE)
    held = {"a": cells % 64, "b": cells // 64 % 4}
    found = []
    for run in range(RUNS):
        reports = table.survey.randomize(held, SeededForExperiments(1000 + run))
        counts = np.bincount(reports.columns["choice"].astype(np.int64), minlength=len(table.survey.ask))
        values = table.design.values(table, BOX, counts)
        found.append(values.constant * weights.sum() + float(weights @ values.of(reports.columns)))
    truth = float(weights[(held["a"] >= 5) & (held["a"] < 40) & (held["b"] >= 1) & (held["b"] < 3)].sum())
    assert abs(np.mean(found) - truth) < 4 * np.std(found) / math.sqrt(RUNS)
    return float(np.std(found))


@pytest.mark.parametrize(
    ("design", "reading"), [(HIO(fan_outs=4), "levels"), (HIO(fan_outs=4, oracle="OLH"), "plain"), (MG(), "levels")]
)
def test_simulated_errors_are_the_predicted_ones(design: Design, reading: str) -> None:
    table = Table(1.0, PRIVATE, design=design, reading=reading)  # type: ignore[arg-type]
    counts = expected_counts(table, PEOPLE)
    predicted = math.sqrt(table.design.variance(table, BOX, counts))
    found = scatter(table, np.ones(PEOPLE))
    assert found == pytest.approx(predicted, rel=0.2)  # 3.5 standard errors of 160 runs
    if reading == "plain":  # a rival: what the other reading predicts is far off
        other = replace(table, reading="levels")
        assert found != pytest.approx(math.sqrt(other.design.variance(other, BOX, counts)), rel=0.2)


def test_sums_err_with_the_root_of_their_squared_weights() -> None:
    table = Table(1.0, PRIVATE, design=HIO(fan_outs=4))
    weights = np.random.default_rng(1).integers(0, 100, PEOPLE).astype(np.float64)
    count = table.design.variance(table, BOX, expected_counts(table, PEOPLE))
    predicted = math.sqrt(count * float(weights @ weights) / PEOPLE)
    found = scatter(table, weights)
    assert found == pytest.approx(predicted, rel=0.2)
    assert found != pytest.approx(math.sqrt(count) * weights.mean(), rel=0.1)  # a rival: the mean weight
