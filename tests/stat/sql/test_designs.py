"""Answers of every design are unbiased with correct standard errors: COUNT, SUM and unions of boxes, with rivals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.everyday import everyday

from veil import Integers, Record
from veil.engines.local import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.reports.columns import Reports
from veil.sql.columns import Measure, identifier
from veil.sql.designs.base import Design
from veil.sql.designs.conjunction import SC
from veil.sql.designs.hio import HI, HIO
from veil.sql.designs.marginal import MG
from veil.sql.execution.engine import run as answer
from veil.sql.execution.rows import CollectedRows
from veil.sql.execution.sums import RowMoments
from veil.sql.language.query import And, Box, InRanges, Or, Output, Query, SumTerm
from veil.sql.table import Reading, Table

PRIVATE = Record.of(age=Integers(0, 26), income=Integers(0, 8), state=3)
DESIGNS: dict[str, Design] = {
    "HIO": HIO(fan_outs=3),
    "HI": HI(fan_outs=9),
    "SC": SC(fan_outs=5),
    "SC, sampled": SC(fan_outs=3, levels="sampled"),
    "MG": MG(k=2),
}
QUERIES: dict[str, tuple[Box, ...]] = {
    "a range": ((((4, 20),), None, None),),
    "a box": ((((4, 20),), ((2, 7),), None),),
    "a union": ((((4, 20),), None, ((0, 1),)), (((22, 27),), ((5, 9),), None)),
}
SPENT = Measure("spent")
PEOPLE, RUNS = 2000, 200
Floats = NDArray[np.float64]


@lru_cache(maxsize=1)
def people() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What people hold, neither evenly spread nor independent, and a measure that depends on it."""
    rng = np.random.default_rng(15)
    age = np.minimum(rng.geometric(0.08, PEOPLE) - 1, 26)
    income = np.clip(age // 4 + rng.integers(-2, 3, PEOPLE), 0, 8)
    state = rng.choice(3, PEOPLE, p=[0.6, 0.3, 0.1])
    return np.stack([age, income, state]), rng.integers(0, 50, PEOPLE) + 10 * income


def inside(boxes: Sequence[Box]) -> NDArray[np.bool_]:
    """Who lies in any of the boxes."""
    held, found = people()[0], np.zeros(PEOPLE, np.bool_)
    for box in boxes:
        mine = np.ones(PEOPLE, np.bool_)
        for codes, runs in zip(held, box, strict=True):
            if runs is not None:
                mine &= np.any([(codes >= start) & (codes < stop) for start, stop in runs], axis=0)
        found |= mine
    return found


def asked(name: str, reading: Reading) -> Table:
    return Table(2.0, PRIVATE, (SPENT,), DESIGNS[name], reading=reading)


def reported(table: Table, seed: int) -> Reports:
    held, spent = people()
    return table.survey.randomize(
        dict(zip(PRIVATE.names, held, strict=True)), SeededForExperiments(seed), {"spent": spent}
    )


@lru_cache(maxsize=16)
def answers(name: str, reading: Reading, runs: int = RUNS) -> dict[str, tuple[Floats, Floats, Floats]]:
    """For each query the truth, what was found in each run and its standard errors; COUNT and SUM side by side."""
    table, spent = asked(name, reading), people()[1]
    weights = np.stack([np.ones(PEOPLE, np.int64), spent])
    totals, products = weights.sum(axis=1).tolist(), (weights @ weights.T).tolist()
    found: dict[str, list[list[Floats]]] = {query: [] for query in QUERIES}
    for run in range(runs):
        reports = reported(table, run)
        columns = {column: reports.columns[column] for column in table.survey.ask.layout.names}
        choice = columns.get("choice", np.zeros(PEOPLE, np.uint8)).astype(np.int64)
        counts = np.bincount(choice, minlength=len(table.survey.ask) if "choice" in columns else 1)
        for query, boxes in QUERIES.items():
            values = table.design.values(table, boxes, counts)
            moments = RowMoments(values, 2, len(counts))
            moments.add(choice, values.of(columns), weights)
            told = moments.totals(counts, totals, products, np.ones(2))
            found[query].append([told.values.astype(np.float64), np.sqrt(np.diag(told.covariance).astype(np.float64))])
    return {
        query: (weights @ inside(QUERIES[query]).astype(np.float64), *np.moveaxis(np.array(every), 1, 0))
        for query, every in found.items()
    }


def off(truth: Floats, found: Floats) -> Floats:
    """By how many of its own standard errors the mean over runs is off."""
    return np.asarray((found.mean(axis=0) - truth) / (found.std(axis=0, ddof=1) / np.sqrt(len(found))))


def scale(found: Floats, errors: Floats) -> Floats:
    """The reported standard error (its root mean square) in terms of the scatter over runs."""
    return np.asarray(np.sqrt((errors**2).mean(axis=0)) / found.std(axis=0, ddof=1))


def covered(truth: Floats, found: Floats, errors: Floats) -> Floats:
    """How often the interval of 95 % holds the truth."""
    return np.asarray((np.abs(found - truth) <= 1.96 * errors).mean(axis=0))


@pytest.mark.parametrize("reading", ["levels", "plain"])
@pytest.mark.parametrize("name", everyday(DESIGNS, list(DESIGNS).index("HIO"), list(DESIGNS).index("MG")))
def test_answers_are_unbiased_with_correct_standard_errors(name: str, reading: Reading) -> None:
    told = answers(name, reading)
    for truth, found, errors in told.values():
        assert np.abs(off(truth, found)).max() < 3.5
        assert np.abs(scale(found, errors) - 1).max() < 0.2  # the scatter of 200 runs is itself known to 5 %
    assert honest(told, 1.0)
    # rivals on the same runs: a reading that is a third too large, and errors that are too small or too large
    truth, found, _ = told["a range"]
    assert np.abs(off(truth, found * 4 / 3)).min() > 3.5
    assert not honest(told, 0.75)
    assert not honest(told, 1.35)


def honest(told: dict[str, tuple[Floats, Floats, Floats]], times: float) -> bool:
    """Whether errors, multiplied so, are within 10 % of the scatter and intervals cover 92 to 98 %, over queries."""
    ratio = np.mean([scale(found, times * errors) for _, found, errors in told.values()])
    held = np.mean([covered(truth, found, times * errors) for truth, found, errors in told.values()])
    within, covers = bool(0.9 < ratio < 1.1), bool(0.92 <= held <= 0.98)
    assert within == covers  # the two say the same
    return within


@pytest.mark.parametrize("name", DESIGNS)
def test_the_engine_gives_the_same_answers(name: str) -> None:
    table = asked(name, "levels")
    rows = CollectedRows(table, MemoryCollection(table.survey, reported(table, 0)))
    for query, (_, found, errors) in answers(name, "levels", 1).items():
        where = Or(
            tuple(
                And(tuple(InRanges(place, runs) for place, runs in enumerate(box) if runs is not None))
                for box in QUERIES[query]
            )
        )
        outputs = (Output("people", SumTerm(0)), Output("spent", SumTerm(1)))
        told = answer(Query(query, ("1", identifier(SPENT.name)), outputs, where), rows)
        for i, output in enumerate(told.outputs):
            assert output.values[0] == pytest.approx(found[0, i], rel=1e-6)
            assert output.stderr[0] == pytest.approx(errors[0, i], rel=1e-6)
