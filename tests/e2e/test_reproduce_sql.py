"""`veil reproduce sql` without any data folder: every exhibit is there, claims have verdicts; and its own parts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.e2e.reproductions import Run, claims_of, reproduced, verdict_of

from veil import Integers, Record
from veil.sql import HI, HIO, MG, Grids, QuadTree, Table
from veil_papers.datasets import Records, Tabular, census_like
from veil_papers.sql.asking import Collection, schema
from veil_papers.sql.law import Box, Design, People, answers, cells_taken, height, levels_taken, pieces, quads_taken
from veil_papers.sql.queries import Drawn, Kind
from veil_papers.sql.runs import boxes, ways

EXHIBITS = [*(f"figure-7.{i}" for i in range(3, 11)), "table-7.2", "table-7.3", "beyond-1", "beyond-2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("sql", tmp_path_factory.mktemp("sql"))


@pytest.mark.acceptance
def test_every_exhibit_has_its_picture_and_its_table(run: Run) -> None:
    folder, document = run
    assert [exhibit["name"] for exhibit in document["exhibits"]] == EXHIBITS
    for name in EXHIBITS:
        assert (folder / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        assert len((folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()) >= 3
    assert "stand-in" in document["cps"]
    assert "stand-in" in document["shop"]


@pytest.mark.acceptance
def test_every_claim_has_a_verdict(run: Run) -> None:
    assert sum(claim["says"].startswith("(goal)") for claim in claims_of(run)) >= 13


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "begins",
    [
        "(goal) HI has at least 2 times HIO's error",
        "(goal) 1+0: HIO read from all levels has at most half",
        "(goal) normal: `auto` errs at most as much as HDG and as HIO",
        "At volumes of 0.5 and more HIO is at least 3 times better",
        "256 x 256: otherwise HIO is",
    ],
)
def test_what_the_thesis_is_about_holds_on_the_stand_in(run: Run, begins: str) -> None:
    assert verdict_of(run, begins) == "holds"


# -- the law -----------------------------------------------------------------------------------------------------------


@given(st.integers(2, 6), st.integers(2, 700), st.data())
def test_pieces_are_disjoint_nodes_that_make_up_the_range(fan_out: int, size: int, data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, size - 1))
    hi = data.draw(st.integers(lo + 1, size))
    levels = height(size, fan_out)
    runs = []
    for level, some in pieces(lo, hi, size, fan_out).items():
        width = fan_out ** (levels - level)
        assert all(start % width == 0 and stop % width == 0 for start, stop in some)
        assert sum(stop - start for start, stop in some) // width <= 2 * (fan_out - 1) or level == 0
        runs += some
    runs.sort()
    assert runs[0][0] == lo
    assert min(runs[-1][1], size) == hi
    assert all(before[1] == after[0] for before, after in pairwise(runs))


def test_the_law_takes_the_nodes_that_the_shipped_designs_read() -> None:
    sizes = (125, 64)
    record = Record.of(a=Integers(0, 124), b=Integers(0, 63))
    rng = np.random.default_rng(0)
    asked: list[Box] = [*boxes(sizes, 0.1, 5, rng), ((3, 90), None), (None, (0, 33))]
    for box in asked:
        runs = tuple(None if side is None else (side,) for side in box)
        for design, taken in ((HIO(5, "OLH"), levels_taken(box, sizes)), (MG(oracle="OLH"), cells_taken(box, sizes))):
            if isinstance(design, MG) and None in box:
                continue  # the law knows marginals over the dimensions in the predicate alone
            table = Table(1.0, record, design=design, reading="plain")
            counts = np.full(len(table.survey.ask), 1_000)
            assert table.design.values(table, [runs], counts).cells == sum(one.nodes for one in taken)
    assert ways(2.0, sizes, ["HIO"])["HIO"][0].groups == len(Table(2.0, record, design=HIO(5)).survey.ask)


def test_squares_of_a_quadtree_cover_the_box_once() -> None:
    for box in boxes((16, 16), 0.3, 10, np.random.default_rng(1)):
        marks = np.zeros((16, 16), np.int64)
        for one in quads_taken(box, (16, 16)):
            assert isinstance(one.marks, np.ndarray)
            marks += one.marks
        (a, b), (c, d) = (side for side in box if side is not None)
        inside = np.zeros((16, 16), np.int64)
        inside[a:b, c:d] = 1
        assert (marks == inside).all()


@pytest.fixture(scope="module")
def people() -> Tabular:
    return census_like(source="adult", ordinal=(64, 64)).resample(20_000, seed=3)


@pytest.mark.parametrize(
    ("name", "shipped"),
    [("HIO", HIO(5, "OLH")), ("HI", HI(5, "OLH")), ("MG", MG(oracle="OLH"))],
)
def test_real_reports_err_as_the_law_says(people: Tabular, name: str, shipped: HIO | HI | MG) -> None:
    """40 real collections beside 4,000 drawn ones: the same mean and, within chance, the same deviation."""
    box = (5, 40), (10, 60)
    asked = People(people)
    design, take = ways(2.0, asked.sizes, [name])[name]
    drawn = answers(design, asked, take(box, asked.sizes), 4_000, np.random.default_rng(4))
    real = np.array([Collection(people, 2.0, shipped, seed).sums(box, "plain")[0] for seed in range(40)])
    truth = asked.truth(box)[0]
    assert abs(drawn.mean() - truth) < 4 * drawn.std() / np.sqrt(4_000)
    assert abs(real.mean() - truth) < 4 * drawn.std() / np.sqrt(40)
    assert 0.6 < real.std() / drawn.std() < 1.5


def test_a_law_with_half_of_the_groups_is_caught(people: Tabular) -> None:
    box = (5, 40), (10, 60)
    asked = People(people)
    design, take = ways(2.0, asked.sizes, ["HIO"])["HIO"]
    wrong = Design("HIO", 2.0, design.groups // 4)
    drawn = [
        answers(one, asked, take(box, asked.sizes), 4_000, np.random.default_rng(4)).std() for one in (design, wrong)
    ]
    assert drawn[0] / drawn[1] > 1.5


def test_sums_of_a_measure_are_unbiased(people: Tabular) -> None:
    asked = People(people, "hours")
    box = (5, 40), None
    design, take = ways(2.0, asked.sizes, ["HIO"])["HIO"]
    drawn = answers(design, asked, take(box, asked.sizes), 4_000, np.random.default_rng(5))
    assert abs(drawn.mean() - asked.truth(box)[1]) < 4 * drawn.std() / np.sqrt(4_000)


# -- real reports ------------------------------------------------------------------------------------------------------


def test_queries_select_what_they_were_drawn_for() -> None:
    data = census_like(source="adult", ordinal=(625, 25), categorical=2).resample(50_000, seed=1)
    drawn = Drawn(data, "hours", [1])
    for kind, share in ((Kind(1, 0), 0.8), (Kind(1, 1), 0.1), (Kind(2, 2), 0.05)):
        found = drawn.queries(kind, share, 5)
        assert len(found) == 5
        for one in found:
            assert share / 1.4 < one.count / data.people < share * 1.4
            sides = [side is not None for side in one.box]
            assert (sum(sides[:2]), sum(sides[2:])) == (kind.ordinal, kind.categorical)
    assert drawn.queries(Kind(2, 2), 0.9, 5) == []


@pytest.mark.parametrize("design", [HIO(), Grids(fine=8, coarse=4), MG()])
def test_a_collection_answers_sums_and_counts(design: HIO | Grids | MG) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 16, (60_000, 2)).astype(np.uint8)
    record = Record.of(a=Integers(0, 15), b=Integers(0, 15))
    data = Tabular(Records(record, codes, "made", stand_in=False), {"w": np.full(60_000, 3)})
    assert schema(data) == record
    count, total = Collection(data, 4.0, design, 7, "w").sums(((4, 12), (0, 8)))
    assert count == pytest.approx(15_000, rel=0.15)
    assert total == pytest.approx(3 * count)


def test_the_shipped_quadtree_is_the_one_of_the_law() -> None:
    record = Record.of(a=Integers(0, 15), b=Integers(0, 15))
    table = Table(1.0, record, design=QuadTree())
    assert len(table.survey.ask) == ways(1.0, (16, 16), ["QuadTree"])["QuadTree"][0].groups
