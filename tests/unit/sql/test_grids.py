"""Grids: questions, tables made to agree, response matrices, and regions."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import Integers, Record, Survey
from veil.entropy import SeededForExperiments, Words
from veil.errors import EmptyError, InputError, ParameterError
from veil.marginals.maxent import reconstruct
from veil.marginals.tables import Views, averaged, before_averaging
from veil.sql import Grids, Measure, Table
from veil.sql.designs.grid_cells import Axis, axes_of, cover, orthants, response_matrix
from veil.sql.designs.grid_reading import GridReading, GridTallies, grid_sets
from veil.sql.language.query import Box

Floats = NDArray[np.float64]
PEOPLE = Record.of(age=Integers(0, 15), income=Integers(0, 11), sex=["f", "m"])
CUT = Axis(8, ordered=True, fine_level=3, coarse_level=1)


def shop(design: Grids | None = None) -> Table:
    return Table(1.0, PEOPLE, (Measure("spent"),), design or Grids(fine=8, coarse=4))


def grids(table: Table) -> Grids:
    assert isinstance(table.design, Grids)
    return table.design


def held_by(people: int = 4000) -> NDArray[np.uint64]:
    rng = np.random.default_rng(1)
    age = np.minimum(rng.geometric(0.2, people) - 1, 15)
    income = np.clip(age // 2 + rng.integers(0, 5, people), 0, 11)
    return np.stack([age, income, rng.integers(0, 2, people)], axis=1).astype(np.uint64)


def without_noise(table: Table, codes: NDArray[np.uint64]) -> GridTallies:
    """Tallies with the supports that are expected, of as many people for each grid, who hold the same."""
    supports = []
    for question in table.survey.ask.questions:
        oracle = question.pure
        shown = question.view.apply(codes, Words(b"")).astype(np.int64)
        holders = np.bincount(shown, minlength=oracle.domain.size)
        supports.append(holders * float(oracle.p) + (len(codes) - holders) * float(oracle.q))
    return GridTallies.counted(table.survey.ask, supports, [len(codes)] * len(supports))


def inside(codes: NDArray[np.uint64], boxes: list[Box]) -> NDArray[np.bool_]:
    found = np.zeros(len(codes), np.bool_)
    for box in boxes:
        mine = np.ones(len(codes), np.bool_)
        for column, runs in zip(codes.T, box, strict=True):
            if runs is not None:
                mine &= np.any([(column >= start) & (column < stop) for start, stop in runs], axis=0)
        found |= mine
    return found


# -- how people are asked ----------------------------------------------------------------------------------------------


def test_every_dimension_has_a_grid_and_every_pair_has_one() -> None:
    table = shop()
    sizes = [question.pure.domain.size for question in table.survey.ask.questions]
    assert sizes == [8, 6, 2, 4 * 3, 4 * 2, 3 * 2]  # 12 values in a tree of 16 leaves: cells of 2 and of 4
    assert table.guarantee.within(1.0)
    assert Survey.from_json(table.survey.to_bytes()).task == table.survey.task


def test_one_dimension_is_one_grid_without_a_choice() -> None:
    table = Table(1.0, Record.of(age=Integers(0, 99)), design=Grids(fine=32, coarse=8))
    assert len(table.survey.ask) == 1
    assert "choice" not in table.survey.layout.names


def test_numbers_of_cells_are_chosen_once_and_stand_in_the_study_file() -> None:
    table = shop(Grids(people=100_000))
    assert grids(table).fine is not None
    again = Grids.from_json(table.design.to_json())
    assert again == table.design == again.fitted(PEOPLE, 1.0)
    few, many = (Grids(people=n).fitted(PEOPLE, 1.0) for n in (1_000, 10_000_000))
    assert (few.fine, few.coarse) < (many.fine, many.coarse)
    assert Grids(fine=8, people=1_000).fitted(PEOPLE, 1.0).fine == 8


@pytest.mark.parametrize(("people", "cells"), [(10**5, (8, 2)), (10**6, (16, 4)), (10**7, (64, 8))])
def test_the_guideline_of_the_paper(people: int, cells: tuple[int, int]) -> None:
    assert Grids.guideline(6, 1.0, people) == cells


@pytest.mark.parametrize("wrong", [{"fine": 1}, {"coarse": 1}, {"fine": 2, "coarse": 4}, {"people": 0}, {"fine": 2.5}])
def test_impossible_grids_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        Grids(**wrong)


def test_grids_with_too_many_cells_are_refused() -> None:
    with pytest.raises(ParameterError, match="'a' has 5,000 fine"):
        Grids(fine=2, coarse=2).ask(Record.of(a=5000, b=3), 1.0)
    with pytest.raises(ParameterError, match="cells: take fewer"):
        Grids(fine=2, coarse=2).ask(Record.of(a=2000, b=2000, c=2000, d=2000), 1.0)


def test_cells_are_chosen_for_large_dimensions_too() -> None:
    wide = Record(tuple((f"d{i}", Integers(0, 99_999)) for i in range(5)))
    chosen = Grids(people=10**6).fitted(wide, 1.0)
    assert chosen.fine is not None
    assert 16 <= chosen.fine <= 512
    assert len(Grids(people=10**6).ask(wide, 1.0)) == 15


# -- tables that agree -------------------------------------------------------------------------------------------------


def test_sum_of_averaged_tables_equals_a_sum_of_the_given_ones() -> None:
    rng = np.random.default_rng(2)
    views = Views((3, 2, 4), ((0,), (1,), (0, 1), (1, 2), (0, 2)))
    weights = np.array([1.0, 2.0, 0.5, 3.0, 0.0])
    wanted = rng.normal(size=views.total)
    found, constant = before_averaging(views, wanted, weights)
    for _ in range(3):
        tables = rng.normal(size=views.total)
        assert found @ tables + constant == pytest.approx(wanted @ averaged(views, tables, weights), abs=1e-12)


def made_reading(seed: int = 0, noise: float = 0.02) -> tuple[GridReading, list[Floats], list[float]]:
    """Two dimensions of 8 values in 8 fine and 2 coarse cells, with noise that differs from grid to grid."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(64, 0.5)).reshape(8, 8)
    exact = [joint.sum(axis=1), joint.sum(axis=0), CUT.gather(CUT.gather(joint), axis=1).ravel()]
    levels = [noise, 2 * noise, noise / 2]
    tables = [table + rng.normal(scale=level, size=len(table)) for table, level in zip(exact, levels, strict=True)]
    variances = [level**2 for level in levels]
    return GridReading((CUT, CUT), tables, variances), tables, variances


def test_averages_are_least_squares_over_all_joint_tables() -> None:
    reading, tables, variances = made_reading()
    rows = [np.kron(np.eye(8), np.ones((1, 8))), np.kron(np.ones((1, 8)), np.eye(8))]
    gather = np.kron(np.eye(2), np.ones((1, 4)))
    rows.append(np.kron(gather, gather))
    design = np.concatenate(
        [*(one / math.sqrt(v) for one, v in zip(rows, variances, strict=True)), np.full((1, 64), 1e7)]
    )
    given = np.concatenate([*(t / math.sqrt(v) for t, v in zip(tables, variances, strict=True)), [1e7]])
    joint = np.linalg.lstsq(design, given, rcond=None)[0].reshape(8, 8)
    assert reading.fine[0] == pytest.approx(joint.sum(axis=1), abs=1e-6)
    assert reading.fine[1] == pytest.approx(joint.sum(axis=0), abs=1e-6)
    assert reading.coarse[2] == pytest.approx(CUT.gather(CUT.gather(joint), axis=1), abs=1e-6)


def test_fitted_tables_agree_and_have_no_empty_cell() -> None:
    reading, _, _ = made_reading(noise=0.2)
    fine, coarse = reading.fitted
    assert min(table.min() for table in (*fine, *coarse)) > 0
    assert CUT.gather(fine[0]) == pytest.approx(coarse[2].sum(axis=1))
    assert CUT.gather(fine[1]) == pytest.approx(coarse[2].sum(axis=0))


@pytest.mark.parametrize("box", [(((0, 4),), ((4, 8),)), (((1, 6),), ((3, 8),)), (((2, 3), (5, 7)), None)])
def test_a_share_is_the_sum_of_its_coefficients(box: Box) -> None:
    reading, tables, _ = made_reading()
    region = reading.region([box])
    _, constant = reading.pulled_back(*_coefficients(reading, box))
    total = sum(float(part @ table) for part, table in zip(region.of_grids, tables, strict=True))
    assert region.share == pytest.approx(total + constant)


def _coefficients(reading: GridReading, box: Box) -> tuple[list[Floats], dict[tuple[int, int], Floats]]:
    sides = [axis.shares(runs) for axis, runs in zip(reading.axes, box, strict=True)]
    if box[1] is None:
        return [sides[0], np.zeros(8)], {}
    found = cover(CUT, CUT, reading.response((0, 1)), (sides[0], sides[1]))
    return [found.rows, found.columns], {(0, 1): found.pair}


# -- response matrices -------------------------------------------------------------------------------------------------


def bilinear(strength: float, axis: Axis) -> Floats:
    places = np.linspace(-1, 1, axis.fine)
    joint = np.exp(strength * np.outer(places, places) - np.add.outer(places**2, places**2))
    shares: Floats = joint / joint.sum()
    return shares


def gathered(axis: Axis, joint: Floats) -> Floats:
    found: Floats = axis.gather(axis.gather(joint), axis=1)
    return found


def test_a_response_matrix_has_the_sums_of_all_three_grids() -> None:
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.full(64, 1.0)).reshape(8, 8) * 0.9 + 0.1 / 64
    table = response_matrix(CUT, CUT, joint.sum(axis=1), joint.sum(axis=0), gathered(CUT, joint))
    assert table.min() > 0
    assert table.sum(axis=1) == pytest.approx(joint.sum(axis=1), abs=1e-7)
    assert table.sum(axis=0) == pytest.approx(joint.sum(axis=0), abs=1e-7)
    assert gathered(CUT, table) == pytest.approx(gathered(CUT, joint), abs=1e-7)


def test_response_matrix_of_independent_or_uncut_dimensions() -> None:
    rng = np.random.default_rng(5)
    rows, columns = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    independent = np.outer(rows, columns)
    assert response_matrix(CUT, CUT, rows, columns, gathered(CUT, independent)) == pytest.approx(independent)
    values = Axis(3, ordered=False, fine_level=1, coarse_level=1)
    joint = rng.dirichlet(np.ones(9)).reshape(3, 3)
    assert response_matrix(values, values, joint.sum(axis=1), joint.sum(axis=0), joint) == pytest.approx(joint)


def test_response_matrix_interpolates_dependence_within_coarse_cells() -> None:
    """The rival is the paper's, the table of largest entropy: nothing is joined within a coarse cell."""
    axis = Axis(32, ordered=True, fine_level=5, coarse_level=2)
    joint = bilinear(4.0, axis)
    rows, columns, pair = joint.sum(axis=1), joint.sum(axis=0), gathered(axis, joint)
    smooth = response_matrix(axis, axis, rows, columns, pair)
    apart = (pair / np.outer(pair.sum(axis=1), pair.sum(axis=0)))[np.ix_(axis.up, axis.up)] * np.outer(rows, columns)
    assert np.abs(smooth - joint).sum() < 0.35 * np.abs(apart - joint).sum()


def test_apart_is_the_largest_entropy_by_brute_force() -> None:
    joint = bilinear(2.0, CUT)
    rows, columns, pair = joint.sum(axis=1), joint.sum(axis=0), gathered(CUT, joint)
    # a coarse cell and a fine one within it, for both dimensions: the paper's three constraints
    free = reconstruct((2, 4, 2, 4), [((0, 1), rows.reshape(2, 4)), ((2, 3), columns.reshape(2, 4)), ((0, 2), pair)])
    sides = CUT.shares(((1, 6),)), CUT.shares(((3, 7),))
    found = cover(CUT, CUT, response_matrix(CUT, CUT, rows, columns, pair), sides)
    assert found.apart == pytest.approx(sides[0] @ free.table.reshape(8, 8) @ sides[1], abs=1e-8)
    assert found.inside != pytest.approx(found.apart, abs=1e-3)


def test_derivatives_of_a_rectangle() -> None:
    """Coefficients of the rows are the table's own derivatives, where nothing joins the dimensions."""
    rng = np.random.default_rng(6)
    rows, columns = rng.dirichlet(np.full(8, 4.0)), rng.dirichlet(np.full(8, 4.0))
    sides = CUT.shares(((1, 6),)), CUT.shares(((3, 7),))

    def answer(moved: Floats) -> float:
        pair = np.outer(CUT.gather(rows), CUT.gather(columns))
        return float(sides[0] @ response_matrix(CUT, CUT, moved, columns, pair) @ sides[1])

    found = cover(CUT, CUT, np.outer(rows, columns), sides)
    change = np.zeros(8)
    change[[4, 6]] = 1e-4, -1e-4  # within one coarse cell, so that all tables still agree
    slope = (answer(rows + change) - answer(rows - change)) / 2
    assert slope == pytest.approx(float(found.rows @ change), rel=1e-3)


# -- boxes of more sides -----------------------------------------------------------------------------------------------


def moments_of(joint: Floats) -> tuple[Floats, dict[tuple[int, int], float]]:
    """How many are inside each side and each two of them; index 0 is inside."""
    count = joint.ndim
    ones = np.array([joint.take(0, axis=i).sum() for i in range(count)])
    pairs = {(i, j): float(joint.take(0, axis=j).take(0, axis=i).sum()) for i, j in combinations(range(count), 2)}
    return ones, pairs


def test_three_sides_have_the_largest_entropy_by_brute_force() -> None:
    joint = np.random.default_rng(7).dirichlet(np.full(8, 2.0)).reshape(2, 2, 2)
    found = orthants(*moments_of(joint))
    # tables with the same pairs differ by a multiple of one pattern of signs
    signs = np.array([(-1.0) ** sum(place) for place in product((0, 1), repeat=3)]).reshape(2, 2, 2)
    low, high = -float(joint[signs > 0].min()), float(joint[signs < 0].min())
    moves = np.linspace(low, high, 2_000_001)[1:-1]
    entropy = sum(
        -(cell + sign * moves) * np.log(cell + sign * moves)
        for cell, sign in zip(joint.ravel(), signs.ravel(), strict=True)
    )
    assert found.inside == pytest.approx(joint[0, 0, 0] + moves[np.argmax(entropy)], abs=1e-6)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_derivatives_of_several_sides(count: int) -> None:
    joint = np.random.default_rng(count).dirichlet(np.full(2**count, 4.0)).reshape((2,) * count)
    ones, pairs = moments_of(joint)
    found = orthants(ones, pairs)
    step = 1e-5
    moved = {**pairs, (0, 1): pairs[0, 1] + step}, {**pairs, (0, 1): pairs[0, 1] - step}
    slope = (orthants(ones, moved[0]).inside - orthants(ones, moved[1]).inside) / (2 * step)
    assert found.pairs[0, 1] == pytest.approx(slope, abs=2e-3)
    up, down = ones.copy(), ones.copy()
    up[0], down[0] = ones[0] + step, ones[0] - step
    slope = (orthants(up, pairs).inside - orthants(down, pairs).inside) / (2 * step)
    assert found.sides[0] == pytest.approx(slope, abs=2e-3)


def test_impossible_answers_of_pairs_are_moved_to_a_possible_table() -> None:
    found = orthants(np.array([0.5, -0.1, 1.3]), {(0, 1): 0.9, (0, 2): -0.4, (1, 2): 0.2})
    assert 0 <= found.inside <= 1
    assert np.isfinite(found.sides).all()


# -- regions of a table ------------------------------------------------------------------------------------------------

WHOLE: list[list[Box]] = [
    [(((4, 12),), None, None)],
    [(((2, 10),), None, None)],  # on edges of fine cells
    [(((4, 12),), ((0, 8),), None)],
    [(((4, 8),), None, ((1, 2),))],
    [(((0, 4),), None, None), (((4, 8),), ((4, 8),), None)],
    [(None, None, None)],
]


@pytest.mark.parametrize("boxes", WHOLE)
def test_without_noise_regions_on_edges_are_exact(boxes: list[Box]) -> None:
    table = shop()
    codes = held_by()
    found = grids(table).totals(table, boxes, without_noise(table, codes))
    assert found.values == pytest.approx([6 * float(inside(codes, boxes).sum())])  # six grids


@pytest.mark.parametrize("design", [Grids(fine=8, coarse=4), Grids(fine=16, coarse=16)])
def test_without_noise_all_regions_are_near(design: Grids) -> None:
    table = shop(design)
    codes = held_by()
    boxes: list[Box] = [(((3, 9),), ((1, 7),), ((0, 1),))]
    found = grids(table).totals(table, boxes, without_noise(table, codes))
    assert found.values[0] / (6 * len(codes)) == pytest.approx(inside(codes, boxes).mean(), abs=0.02)


def reports(table: Table, spent: NDArray[np.int64]) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.uint64]]:
    codes = held_by(len(spent))
    made = table.survey.reports(codes, SeededForExperiments(3), {"public.spent": spent})
    names = table.survey.ask.layout.names
    return {name: made.columns[name] for name in names}, codes


def test_sums_of_both_signs_are_differences_of_two() -> None:
    table, rng = shop(), np.random.default_rng(8)
    spent = rng.integers(-50, 200, 4000)
    columns, codes = reports(table, spent)
    weights = np.stack([np.ones(4000, np.int64), spent, -spent, 3 * np.ones(4000, np.int64)])
    tallies = grids(table).tallies(table, 4)
    for some in np.array_split(np.arange(4000), 3):
        tallies.add({name: column[some] for name, column in columns.items()}, weights[:, some])
    boxes: list[Box] = [(((3, 9),), ((1, 7),), None)]
    found = grids(table).totals(table, boxes, tallies)
    errors = np.sqrt(np.diag(found.covariance))
    assert found.values[2] == pytest.approx(-found.values[1])
    assert found.covariance[1, 2] == pytest.approx(-found.covariance[1, 1])
    assert found.values[3] == pytest.approx(3 * found.values[0])
    assert found.covariance[3, 3] == pytest.approx(9 * found.covariance[0, 0])
    mine = inside(codes, boxes)
    assert abs(found.values[0] - mine.sum()) < 4 * errors[0]
    assert abs(found.values[1] - spent[mine].sum()) < 4 * errors[1]
    assert np.linalg.eigvalsh(found.covariance).min() > -1e-6 * errors.max() ** 2


def test_weights_that_would_overflow_are_added_in_halves() -> None:
    table = shop()
    large = np.full(4000, 3 * 2**50)
    columns, _ = reports(table, np.ones(4000, np.int64))
    small, many = grids(table).tallies(table, 1), grids(table).tallies(table, 1)
    small.add(columns, np.full((1, 4000), 3))
    many.add(columns, large[None, :])
    for one, other in zip(small.supports, many.supports, strict=True):
        assert other == pytest.approx(one * 2.0**50)


def test_grid_without_answers() -> None:
    table = shop()
    tallies = without_noise(table, held_by())
    tallies.people[3] = 0  # the pair of the first two dimensions
    with pytest.raises(EmptyError):
        grids(table).totals(table, [(((0, 4),), ((0, 4),), None)], tallies)
    assert grids(table).totals(table, [(((0, 4),), None, None)], tallies).values[0] > 0


def test_conditions_over_very_many_dimensions_are_refused() -> None:
    axes = axes_of(Record(tuple((f"d{i}", Integers(0, 3)) for i in range(13))), 4, 2)
    tables = [np.full(4, 0.25) for _ in grid_sets(13)]
    with pytest.raises(InputError, match="12 dimensions"):
        GridReading(axes, tables, [0.01] * len(tables)).region([(((0, 2),),) * 13])


def test_predicted_errors() -> None:
    design = Grids(fine=8, coarse=4)
    on_edges, cutting = ((((4, 12),), None, None),), ((((3, 11),), None, None),)
    assert design.predicted_error(PEOPLE, 1.0, cutting, 10**5) > design.predicted_error(PEOPLE, 1.0, on_edges, 10**5)
    many, few = (design.predicted_error(PEOPLE, 1.0, on_edges, n) / n**2 for n in (10**6, 10**4))
    assert few == pytest.approx(100 * many)
    assert design.predicted_error(PEOPLE, 1.0, ((None, None, None),), 10**5) == pytest.approx(0, abs=1e-6)
