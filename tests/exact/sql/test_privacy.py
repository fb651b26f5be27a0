"""Proofs for the designs of tables on the code that ships: the promise over all dimensions together, and no bias.

Every path of coins and draws is followed with its exact probability. Hashing draws one of 2^64 seeds, too many to
follow: there eight seeds stand for all, under which any two of seven cells fall into two buckets in all four ways
equally often. That is all that unbiasedness needs of a hash, and privacy holds for each seed by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.everyday import everyday

from veil import AllOf, Integers, Question, Record
from veil.checks import worst_ratio
from veil.entropy import SeededForExperiments, Source, outcomes
from veil.errors import InputError, ParameterError
from veil.kernels.hashing import bucket_of, splitmix64_each
from veil.privacy import WORD, exp_below
from veil.reports.columns import Reports
from veil.sql.columns import Category, Measure
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.designs.conjunction import SC
from veil.sql.designs.grids import Grids
from veil.sql.designs.grouped import oracle_for, view_of
from veil.sql.designs.hio import HI, HIO
from veil.sql.designs.marginal import MG
from veil.sql.designs.rivals import QuadTree, Wavelet
from veil.sql.language.query import Box, Runs
from veil.sql.table import Reading, Table

DEEP = Record.of(a=Integers(0, 2), b=2)  # with fan-out 2, a has two levels below its root, the last node of one leaf
HELD = [(a, b) for a in range(3) for b in range(2)]
PUBLIC = (Measure("spent", 2), Category("os", ("x", "y")))


class FewSeeds(Source):
    """Enumerated decisions, with eight seeds in place of all."""

    def __init__(self, inner: Source) -> None:
        self.inner = inner

    def words(self, count: int) -> Any:
        return self.inner.words(count)

    def coin(self, threshold: int, count: Any = None) -> Any:
        return self.inner.coin(threshold, count)

    def below(self, bound: Any, count: Any = None) -> Any:
        if not isinstance(bound, int) or bound != WORD:
            return self.inner.below(bound, count)
        return orthogonal_seeds()[self.inner.below(8, count).astype(np.int64)]


@lru_cache(maxsize=1)
def orthogonal_seeds() -> NDArray[np.uint64]:
    """Seeds whose buckets (of two) of the cells 0 .. 6 are the eight words of the simplex code."""
    tried = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    codes = splitmix64_each(np.arange(7, dtype=np.uint64))
    words = np.stack([bucket_of(tried, np.full(len(tried), code), 2) for code in codes], axis=1)
    wanted = [[((cell + 1) & row).bit_count() % 2 for cell in range(7)] for row in range(8)]
    return np.array([tried[np.flatnonzero((words == one).all(axis=1))[0]] for one in wanted])


def chances(table: Table) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    """All reports of a table as columns, and the exact probability of each (rows) under each held value (columns)."""
    survey, found = table.survey, dict[bytes, list[Fraction]]()
    beside = {column.field.name: np.zeros(1, np.int64) for column in survey.public}
    for place, held in enumerate(HELD):
        codes = survey.domain.encode([dict(zip(table.private.names, held, strict=True))])

        def report(source: Source, codes: Any = codes) -> bytes:
            return survey.reports(codes, FewSeeds(source), beside).to_bytes()

        for sent, chance in outcomes(report).items():
            found.setdefault(sent, [Fraction(0)] * len(HELD))[place] = chance
    reports = Reports.from_bytes(survey.task, survey.layout, b"".join(found))
    return dict(reports.columns), np.array(list(found.values()), dtype=object)


def ratio(chances: NDArray[Any]) -> Fraction:
    return worst_ratio({bytes([i // 256, i % 256]): list(row) for i, row in enumerate(chances)})


# -- the conditions: every box of a 3 x 2 table, and two that are two boxes --------------------------------------------


def sides(size: int) -> list[Runs | None]:
    """Every set of codes as runs, and None for the whole dimension."""
    found: list[Runs | None] = [None]
    for bits in product((0, 1), repeat=size):
        edges = np.flatnonzero(np.diff([0, *bits, 0])).reshape(-1, 2).tolist()
        if edges:
            found.append(tuple((start, stop) for start, stop in edges))
    return found


BOXES: list[tuple[Box, ...]] = [((a, b),) for a in sides(3) for b in sides(2)]
BOXES += [((((0, 1),), None), (((1, 3),), ((1, 2),))), ((((0, 1),), ((0, 1),)), (((2, 3),), ((1, 2),)))]


def phi(boxes: Sequence[Box]) -> NDArray[np.float64]:
    """1 for the held values in any box."""

    def inside(code: int, runs: Runs | None) -> bool:
        return runs is None or any(start <= code < stop for start, stop in runs)

    return np.array([float(any(all(map(inside, held, box)) for box in boxes)) for held in HELD])


def bias(table: Table, values: RowEstimator, boxes: Sequence[Box], columns: Any, chance: Any, counts: Any) -> float:
    """How far the expected number of one row is from what it stands for, at most over all held values."""
    names = table.survey.ask.layout.names
    numbers = values.of({name: columns[name] for name in names})
    assert np.abs(numbers).max() <= values.bound * (1 + 1e-6) + 1e-12
    likely = chance.astype(np.float64)
    if "choice" in names:  # of people who made these choices so often, each is as likely to be any
        likely = likely * (counts / counts.mean())[columns["choice"].astype(np.int64)][:, None]
    return float(np.abs(numbers @ likely + values.constant - phi(boxes)).max())


def readable(design: Design, boxes: Sequence[Box]) -> bool:
    """Whether the design asks anybody about the dimensions of every box together."""
    single = (isinstance(design, MG) and design.k == 1) or (isinstance(design, HIO) and design.most == 1)
    return not single or all(None in box for box in boxes)


def uneven(table: Table) -> NDArray[np.int64]:
    """How often each choice was made, by different numbers of people."""
    many = len(table.survey.ask) if "choice" in table.survey.ask.layout.names else 1
    return np.arange(3, 3 + many)


DESIGNS = {
    "HIO": HIO(fan_outs=2),
    "HIO, one dimension at a time": HIO(fan_outs=2, most=1),
    "HI": HI(fan_outs=2),
    "SC": SC(fan_outs=2),
    "SC, sampled": SC(fan_outs=2, levels="sampled"),
    "MG, single dimensions": MG(k=1),
    "MG": MG(k=2),
    "QuadTree": QuadTree(),
    "Wavelet": Wavelet(),
}
HASHED = {
    "HIO": HIO(fan_outs=2, oracle="OLH"),
    "HI": HI(fan_outs=3, oracle="OLH"),
    "SC": SC(fan_outs=2, oracle="OLH"),
    "SC, sampled": SC(fan_outs=2, levels="sampled", oracle="OLH"),
    "MG": MG(k=2, oracle="OLH"),
    "QuadTree": QuadTree(oracle="OLH"),
}


def check(table: Table) -> None:
    columns, chance = chances(table)
    hashed = any(name.endswith("seed") for name in columns)
    tolerance = 1e-6 if hashed else 1e-12  # coefficients of hashed cells have 24 bits
    assert ratio(chance) == table.guarantee.ratio
    assert table.guarantee.within(table.epsilon)
    assert [sum(column) for column in chance.T] == [1] * len(HELD)
    counts = uneven(table)
    for read in (table, replace(table, reading="plain")):
        for boxes in BOXES:
            if readable(table.design, boxes):
                values = table.design.values(read, boxes, counts)
                assert bias(read, values, boxes, columns, chance, counts) < tolerance


@pytest.mark.parametrize("name", DESIGNS)
def test_a_report_keeps_the_promise_over_all_dimensions_and_is_unbiased(name: str) -> None:
    check(Table(1.0, DEEP, PUBLIC, DESIGNS[name]))


@pytest.mark.parametrize("name", everyday(HASHED, *(i for i, name in enumerate(HASHED) if name not in ("HI", "SC"))))
def test_a_hashed_report_keeps_the_promise_and_is_unbiased(name: str) -> None:
    check(Table(0.4, DEEP, (), HASHED[name]))


@pytest.mark.parametrize("reading", ["levels", "plain"])
@pytest.mark.parametrize("design", [HI(fan_outs=3), SC(fan_outs=2), SC(fan_outs=2, levels="sampled")])
def test_predicted_variances_are_exact_where_everybody_answers_everything(design: Design, reading: Reading) -> None:
    """For people spread evenly over all cells: the mean variance of one person's number, times their number."""
    table = Table(4.0, DEEP, (), design, reading=reading)
    columns, chance = chances(table)
    likely = chance.astype(np.float64)
    for boxes in BOXES:
        values = table.design.values(table, boxes, np.array([100]))
        numbers = values.of(columns)
        exact = (numbers**2 @ likely - (numbers @ likely) ** 2).mean()
        assert values.variance == pytest.approx(100 * exact, abs=1e-9)


def test_grids_keep_the_promise() -> None:
    """They are read all together, not row by row."""
    table = Table(1.0, DEEP, (), Grids(fine=3, coarse=2))
    _, chance = chances(table)
    assert ratio(chance) == table.guarantee.ratio
    assert table.guarantee.within(1.0)


# -- public columns ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [*DESIGNS.values(), Grids(fine=3, coarse=2)])
def test_public_columns_have_no_part_in_the_randomness(design: Design) -> None:
    table = Table(1.0, DEEP, PUBLIC, design)
    held = {"a": [a for a, _ in HELD], "b": [b for _, b in HELD]}
    beside = (
        {"spent": [1.5] * len(HELD), "os": ["x"] * len(HELD)},
        {"spent": list(range(len(HELD))), "os": ["x", "y"] * 3},
    )
    one, other = (
        table.survey.randomize(held, SeededForExperiments(7), table.encode_public(public)) for public in beside
    )
    alone = Table(1.0, DEEP, (), design).survey.randomize(held, SeededForExperiments(7))
    for column in table.survey.ask.layout.names:
        assert np.array_equal(one.columns[column], other.columns[column])
        assert np.array_equal(one.columns[column], alone.columns[column])
    assert one.columns["public.spent"].tolist() == [150] * len(HELD)
    assert other.columns["public.os"].tolist() == [0, 1] * 3


# -- rivals that must fail ---------------------------------------------------------------------------------------------


class EpsilonPerLevel(HI):
    """Asks every level with the whole budget."""

    def ask(self, private: Record, epsilon: float) -> AllOf:
        trees, levels = HIO(2).levels(private, epsilon)
        views = [view_of(private, trees, level) for level in levels.tolist()]
        return AllOf(*(Question(oracle_for("best", epsilon, view.domain), view) for view in views))


def test_a_budget_for_each_level_breaks_the_promise() -> None:
    table = Table(0.4, DEEP, (), EpsilonPerLevel(fan_outs=2))
    _, chance = chances(table)
    assert ratio(chance) == table.guarantee.ratio
    assert ratio(chance) > exp_below(1.5)


@pytest.mark.parametrize("name", ["HIO", "HIO, one dimension at a time", "MG, single dimensions", "Wavelet"])
def test_a_group_scaled_by_the_number_of_groups_is_biased_where_groups_differ(name: str) -> None:
    table = Table(1.0, DEEP, (), DESIGNS[name])
    columns, chance = chances(table)
    counts, boxes = uneven(table), [(((0, 1),), None)]
    right = table.design.values(table, boxes, counts)
    wrong = table.design.values(table, boxes, np.full_like(counts, 10))
    assert bias(table, right, boxes, columns, chance, counts) < 1e-12
    assert bias(table, wrong, boxes, columns, chance, counts) > 0.01


@pytest.mark.parametrize("name", ["HI", "SC", "SC, sampled", "MG"])
def test_a_reader_with_another_gap_is_biased(name: str) -> None:
    """Reports of epsilon 1 that are read as if they were of epsilon 0.9."""
    boxes = [(((0, 1),), ((1, 2),))]
    sent, read = (Table(epsilon, DEEP, (), DESIGNS[name]) for epsilon in (1.0, 0.9))
    assert sent.survey.layout == read.survey.layout
    columns, chance = chances(sent)
    values = read.design.values(read, boxes, uneven(read))
    assert bias(read, values, boxes, columns, chance, uneven(read)) > 0.01


# -- what a design refuses ---------------------------------------------------------------------------------------------


def test_conditions_on_more_dimensions_than_a_view_has_are_refused() -> None:
    table = Table(1.0, DEEP, (), MG(k=1))
    with pytest.raises(InputError, match=r"no view of this table holds a, b together .* with HIO or with SC"):
        table.design.values(table, [(((0, 1),), ((0, 1),))], np.array([5, 5]))


def test_hi_refuses_too_many_combinations_of_levels() -> None:
    many = Record.of(**{f"d{i}": Integers(0, 624) for i in range(5)})
    with pytest.raises(ParameterError, match="3,124 combinations of levels, more than 1,024: take HIO"):
        HI(fan_outs=5).ask(many, 1.0)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: HI(oracle="GRR"),  # type: ignore[arg-type]
        lambda: SC(levels="all"),  # type: ignore[arg-type]
        lambda: SC(oracle="SHE"),  # type: ignore[arg-type]
        lambda: MG(k=0),
        lambda: MG(k=True),
        lambda: MG(k=1, views=(("a",),)),
        lambda: MG(oracle="none"),  # type: ignore[arg-type]
        lambda: Table(1.0, DEEP, (), MG(k=3)),
        lambda: Table(1.0, DEEP, (), MG(views=(("a", "c"),))),
        lambda: Table(1.0, DEEP, (), HI(fan_outs=1)),
    ],
)
def test_parameters_are_checked(bad: Any) -> None:
    with pytest.raises(ParameterError):
        bad()


@pytest.mark.parametrize("design", [*DESIGNS.values(), MG(views=(("b", "a"), ("b",)))])
def test_designs_are_written_and_read_back(design: Design) -> None:
    fitted = Table(1.0, DEEP, (), design).design
    assert type(design).from_json(fitted.to_json()) == fitted
    assert fitted.ask(DEEP, 1.0) == design.ask(DEEP, 1.0)
