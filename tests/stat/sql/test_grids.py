"""Grids on correlated data: how far off ranges over two and three of six dimensions are, and that errors say so.

Supports are drawn from their law given what people hold. The rivals are what is left out: tables that do not agree,
people spread evenly within cells, cells cut off at 0, and HIO as it is predicted.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.everyday import everyday

from veil import Integers, Record
from veil.entropy import SeededForExperiments, Words
from veil.mechanisms import GRR
from veil.sql import HIO, Grids, Measure, Table
from veil.sql.designs.grid_reading import GridReading, GridTallies
from veil.sql.language.query import Box

DIMENSIONS, SIZE, PEOPLE, RUNS = 6, 64, 200_000, 12
PRIVATE = Record(tuple((f"d{i}", Integers(0, SIZE - 1)) for i in range(DIMENSIONS)))
TABLE = Table(1.0, PRIVATE, design=Grids(fine=32, coarse=8))
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@lru_cache(maxsize=3)
def held(kind: str = "normal") -> Ints:
    """Correlated normal or Laplace numbers, cut into 64 values; "spiky" people hold 0 half of the time."""
    rng = np.random.default_rng(11)
    covariance = np.full((DIMENSIONS, DIMENSIONS), 0.8) + 0.2 * np.eye(DIMENSIONS)
    drawn = rng.multivariate_normal(np.zeros(DIMENSIONS), covariance, PEOPLE)
    if kind == "laplace":
        drawn *= np.sqrt(rng.exponential(1.0, PEOPLE))[:, None]
    if kind == "spiky":
        drawn[rng.random(drawn.shape) < 0.5] = 0.0
    return np.clip(((drawn + 3.5) / 7 * SIZE).astype(np.int64), 0, SIZE - 1)


@lru_cache(maxsize=4)
def queries(sides: int, count: int = 24) -> list[Box]:
    """Ranges of half of some dimensions."""
    rng, found = np.random.default_rng(sides), []
    for _ in range(count):
        box: list[tuple[tuple[int, int], ...] | None] = [None] * DIMENSIONS
        for place in rng.choice(DIMENSIONS, sides, replace=False):
            start = int(rng.integers(SIZE // 2 + 1))
            box[place] = ((start, start + SIZE // 2),)
        found.append(tuple(box))
    return found


def share(codes: Ints, box: Box) -> float:
    inside = np.ones(len(codes), np.bool_)
    for column, runs in zip(codes.T, box, strict=True):
        if runs is not None:
            inside &= (column >= runs[0][0]) & (column < runs[0][1])
    return float(inside.mean())


def drawn(table: Table, codes: Ints, rng: np.random.Generator) -> GridTallies:
    """What the collector would count of these people."""
    choice = rng.integers(len(table.survey.ask), size=len(codes))
    supports, people = [], []
    for number, question in enumerate(table.survey.ask.questions):
        mine = codes[choice == number].astype(np.uint64)
        oracle, size = question.pure, question.pure.domain.size
        holders = np.bincount(question.view.apply(mine, Words(b"")).astype(np.int64), minlength=size)
        p, q = float(oracle.p), float(oracle.q)
        if isinstance(oracle, GRR):
            kept = rng.binomial(holders, p - q)
            supports.append(kept + rng.multinomial(len(mine) - kept.sum(), np.full(size, 1 / size)))
        else:
            supports.append(rng.binomial(holders, p) + rng.binomial(len(mine) - holders, q))
        people.append(len(mine))
    return GridTallies.counted(table.survey.ask, supports, people)


@lru_cache(maxsize=4)
def collections(kind: str = "normal", table: Table = TABLE) -> list[GridTallies]:
    return [drawn(table, held(kind), np.random.default_rng([17, run])) for run in range(RUNS)]


def design(table: Table) -> Grids:
    assert isinstance(table.design, Grids)
    return table.design


@lru_cache(maxsize=16)
def answered(sides: int, kind: str = "normal", table: Table = TABLE) -> tuple[Floats, Floats, Floats]:
    """The truth of each query, and what was found with its standard errors: a row for each collection."""
    boxes = queries(sides)
    truth = np.array([share(held(kind), box) for box in boxes])
    totals = [[design(table).totals(table, [box], one) for box in boxes] for one in collections(kind, table)]
    values = np.array([[one.values[0] / PEOPLE for one in row] for row in totals])
    errors = np.array([[np.sqrt(one.covariance[0, 0]) / PEOPLE for one in row] for row in totals])
    return truth, values, errors


def off(values: Floats, truth: Floats) -> float:
    return float(np.abs(values - truth).mean())


@pytest.mark.parametrize("sides", [2, 3])
def test_errors_are_far_below_the_uniform_guess_and_hio(sides: int) -> None:
    truth, values, _ = answered(sides)
    levels = Table(1.0, PRIVATE, design=HIO())
    counts = np.full(len(levels.survey.ask), PEOPLE // len(levels.survey.ask))
    predicted = [np.sqrt(levels.design.variance(levels, [box], counts)) / PEOPLE for box in queries(sides)[:3]]
    assert off(values, truth) < 0.25 * off(np.full(len(truth), 0.5**sides), truth)
    assert off(values, truth) < 0.2 * float(np.mean(predicted)) * np.sqrt(2 / np.pi)


def readings() -> list[GridReading]:
    axes = design(TABLE).axes(PRIVATE)
    found = [one.read(axes)[0] for one in collections()]
    return [one for one in found if one is not None]


def rectangles(tables: list[list[Floats]], evenly: bool) -> Floats:
    """Queries of two sides from each collection's tables of pairs alone; cells that are cut count evenly, or not."""
    axes = design(TABLE).axes(PRIVATE)
    sets = [*((place,) for place in range(DIMENSIONS)), *((i, j) for i in range(6) for j in range(i + 1, 6))]
    found = np.zeros((len(tables), len(queries(2))))
    for row, some in enumerate(tables):
        for column, box in enumerate(queries(2)):
            i, j = (place for place, runs in enumerate(box) if runs is not None)
            sides = [
                axes[place].gather(axes[place].shares(box[place]) * axes[place].even()) * axes[place].coarse
                for place in (i, j)
            ]
            if not evenly:
                sides = [np.floor(side + 1e-9) for side in sides]
            found[row, column] = sides[0] @ some[sets.index((i, j))].reshape(axes[i].coarse, axes[j].coarse) @ sides[1]
    return found


def test_rivals_without_agreement_or_response_matrix_err_more() -> None:
    truth, values, _ = answered(2)
    ours = off(values, truth)
    axes = design(TABLE).axes(PRIVATE)
    alone = []
    for one in collections():
        oracles = one.oracles
        alone.append(
            [
                (support[0] / people - float(oracle.q)) / float(oracle.p - oracle.q)
                for support, people, oracle in zip(one.supports, one.people, oracles, strict=True)
            ]
        )
    agreed = [one.coarse for one in readings()]
    cut_off = [one.fitted[1] for one in readings()]
    assert len(axes) == DIMENSIONS
    assert off(rectangles(alone, evenly=True), truth) > 1.5 * ours  # no agreement, no response matrix
    assert off(rectangles(agreed, evenly=False), truth) > 1.5 * ours  # cells that are cut are left out
    assert off(rectangles(cut_off, evenly=True), truth) > 1.15 * ours  # no negative cells, as in the paper


@pytest.mark.parametrize("sides", [1, 2])
def test_standard_errors_on_edges_are_those_of_the_noise(sides: int) -> None:
    """Where sides lie on coarse cells' edges answers are unbiased, and scatter as they say."""
    rng = np.random.default_rng(3)
    ratios, shifts = [], []
    for _ in range(12):
        box: list[tuple[tuple[int, int], ...] | None] = [None] * DIMENSIONS
        for place in rng.choice(DIMENSIONS, sides, replace=False):
            start = 8 * int(rng.integers(5))
            box[place] = ((start, start + 32),)
        boxes: list[Box] = [tuple(box)]
        totals = [design(TABLE).totals(TABLE, boxes, one) for one in collections()]
        values = np.array([one.values[0] for one in totals]) / PEOPLE
        errors = np.array([np.sqrt(one.covariance[0, 0]) for one in totals]) / PEOPLE
        ratios.append(np.mean((values - share(held(), boxes[0])) ** 2) / np.mean(errors**2))
        shifts.append((values - share(held(), boxes[0])).mean() / errors.mean() * np.sqrt(RUNS))
    assert 0.75 < np.mean(ratios) < 1.35
    assert abs(np.mean(shifts)) < 1.5
    assert not 0.75 < 2 * np.mean(ratios) < 1.35  # of half the variance


@pytest.mark.parametrize("kind", ["normal", "laplace"])
@pytest.mark.parametrize("sides", everyday([1, 2, 3], 1))
def test_intervals_cover_the_truth(kind: str, sides: int) -> None:
    truth, values, errors = answered(sides, kind)
    covered = float((np.abs(values - truth) < 1.96 * errors).mean())
    assert covered > 0.9
    assert float((np.abs(values - truth) < 0.5 * 1.96 * errors).mean()) < 0.9  # intervals half as wide do not


def test_chosen_cells_err_less_on_spikes_than_the_papers_guideline() -> None:
    """Many hold one value, as incomes of 0: where a cell is cut next to it, coarse cells cannot tell."""
    chosen = Table(1.0, PRIVATE, design=Grids(people=PEOPLE))
    paper = Table(1.0, PRIVATE, design=Grids(*Grids.guideline(DIMENSIONS, 1.0, PEOPLE)))
    fine, coarse = (off(*answered(2, "spiky", table)[1::-1]) for table in (chosen, paper))
    assert fine < 0.8 * coarse


# -- sums of public weights, from reports ------------------------------------------------------------------------------

SMALL = Record.of(age=Integers(0, 15), income=Integers(0, 7), sex=["f", "m"])
SHOP = Table(2.0, SMALL, (Measure("spent"),), Grids(fine=8, coarse=4))


@pytest.mark.acceptance
def test_sums_and_averages_have_correct_standard_errors() -> None:
    """Real reports, weights of both signs that depend on what is held, and a box on the edges of cells."""
    rng, people, runs = np.random.default_rng(5), 3000, 80
    age = np.minimum(rng.geometric(0.15, people) - 1, 15)
    codes = np.stack([age, np.minimum(age // 2, 7), rng.integers(0, 2, people)], axis=1).astype(np.uint64)
    spent = 10 * age + rng.integers(-60, 61, people)
    weights = np.stack([np.ones(people, np.int64), spent])
    inside = (age >= 4) & (age < 12) & (codes[:, 2] == 0)
    truth = np.array([inside.sum(), spent[inside].sum()])
    grids, names = design(SHOP), SHOP.survey.ask.layout.names
    found, squares = [], []
    for run in range(runs):
        reports = SHOP.survey.reports(codes, SeededForExperiments(run), {"public.spent": spent})
        tallies = grids.tallies(SHOP, 2)
        tallies.add({name: reports.columns[name] for name in names}, weights)
        totals = grids.totals(SHOP, [(((4, 12),), None, ((0, 1),))], tallies)
        slope = np.array([-totals.values[1] / totals.values[0], 1.0]) / totals.values[0]
        found.append([*totals.values, totals.values[1] / totals.values[0]])
        squares.append([*np.diag(totals.covariance), slope @ totals.covariance @ slope])
    off_by = np.array(found) - [*truth, truth[1] / truth[0]]
    ratios = (off_by**2).mean(axis=0) / np.mean(squares, axis=0)
    assert (ratios > 0.6).all()
    assert (ratios < 1.5).all()
    assert (np.abs(off_by[:, :2].mean(axis=0)) < 4 * off_by[:, :2].std(axis=0) / np.sqrt(runs)).all()
    # a rival that takes all weights for equal promises too little for the sum
    equal = np.mean(squares, axis=0)[0] * spent.mean() ** 2
    assert (off_by[:, 1] ** 2).mean() > 1.5 * equal
