"""EXPLAIN: steps of a plan, estimated work, and predicted errors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from veil import Integers, Record
from veil.engines.local import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError
from veil.results.base import Result
from veil.sql.columns import Category, Measure
from veil.sql.designs.conjunction import SC
from veil.sql.designs.grids import Grids
from veil.sql.designs.hio import HI, HIO
from veil.sql.execution.engine import run
from veil.sql.execution.explaining import Explanation, explain
from veil.sql.folder import create
from veil.sql.language.parsing import parse
from veil.sql.table import Table

PRIVATE = Record.of(age=Integers(18, 81), state=["NY", "WA", "CA"])
PUBLIC = (Measure("purchase", 2), Category("os", ("ios", "win")))
TABLE = Table(2.0, PRIVATE, PUBLIC, HIO(fan_outs=4))
PEOPLE = 20_000


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = create(tmp_path_factory.mktemp("table") / "shop", TABLE)
    random = np.random.default_rng(5)
    held = {"age": random.integers(18, 82, PEOPLE), "state": random.choice(["NY", "WA", "CA"], PEOPLE)}
    public = {"purchase": random.gamma(4, 10, PEOPLE).round(2), "os": random.choice(["ios", "win"], PEOPLE)}
    folder.append(TABLE.survey.randomize(held, SeededForExperiments(3), TABLE.encode_public(public)))
    return folder


def explained(text: str, rows: object = TABLE, n: int | None = None) -> Explanation:
    return explain(parse(text, getattr(rows, "table", rows)), rows, n)


def test_a_plan_in_words():
    found = explained("SELECT COUNT(*) AS c FROM people WHERE age BETWEEN 18 AND 33 AND os = 'ios'", TABLE, 1_000_000)
    assert [(step.what, step.how) for step in found.steps] == [
        ("public", "DuckDB evaluates \"os\" = 'ios'"),
        ("box", "age: 16 of 64 values (1 node: 1 of level 1)"),
        ("read", "HIO: 6 of 7 groups, by contrasts of all levels that refine them"),
    ]
    assert (found.boxes, found.groups, found.rows, found.n) == (1, 6, 1, 1_000_000)
    assert found.pairs == pytest.approx(found.cells * 1_000_000 / 7, rel=1e-3)
    assert found.outputs[0].values[0] == pytest.approx(250_000)
    assert found.stderr("c") == pytest.approx(math.sqrt(TABLE.design.variance(TABLE, [(((0, 16),), None)], _counts())))
    assert found.table().column_names == ["c_stderr"]
    assert Result.from_json(found.to_json()) == found


def _counts():
    from veil.sql.designs.choosing import expected_counts

    return expected_counts(TABLE, 1_000_000)


def test_errors_of_sums_are_unknown_without_reports():
    found = explained("SELECT COUNT(*) AS c, SUM(purchase) AS s FROM people WHERE age < 30", TABLE, 1000)
    assert math.isnan(found.outputs[1].stderr[0])
    assert found.outputs[0].stderr[0] > 0
    with pytest.raises(InputError, match="how many people"):
        explained("SELECT COUNT(*) FROM people", TABLE)
    for wrong in ("x", -1, 10**20):
        with pytest.raises(InputError, match="a whole number from 0 to"):
            explained("SELECT COUNT(*) FROM people WHERE age < 30", TABLE, wrong)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS c, SUM(purchase) AS s, AVG(purchase) AS a FROM people WHERE age BETWEEN 30 AND 60",
        "SELECT COUNT(*) AS c, SUM(purchase) AS s FROM people WHERE age >= 50 AND (state = 'NY' OR os = 'ios')",
        "SELECT os, COUNT(*) AS c, AVG(purchase) AS a FROM people WHERE age < 50 GROUP BY os",
        "SELECT state, COUNT(*) AS c, SUM(purchase) AS s FROM people GROUP BY state",
    ],
)
def test_errors_are_those_that_the_answer_has(rows, text):
    found, answer = explained(text, rows), run(parse(text, TABLE), rows)
    assert len(found) == len(answer)
    for one, other in zip(found.outputs, answer.outputs, strict=True):
        assert one.stderr == pytest.approx(other.stderr, rel=0.15)


def test_count_of_everybody_reads_no_report():
    found = explained("SELECT COUNT(*) AS c FROM people WHERE os = 'ios'", TABLE, 100)
    assert found.steps[-1].how == "HIO: no report, because the number of people alone is asked for"
    assert (found.stderr("c"), found.pairs) == (0.0, 0)


def test_condition_that_selects_nobody():
    found = explained("SELECT COUNT(*) AS c FROM people WHERE age < 30 AND age > 40", TABLE, 100)
    assert (found.boxes, found.stderr("c")) == (0, 0.0)


@pytest.mark.parametrize("design", [SC(), HI(fan_outs=8), Grids(), HIO(most=1)])
def test_every_design_is_explained(design):
    found = explained("SELECT COUNT(*) AS c FROM people WHERE age < 40", Table(2.0, PRIVATE, PUBLIC, design), 100_000)
    assert 0 < found.stderr("c") < 20_000
    assert type(design).__name__ in found.steps[-1].how


def test_plan_of_many_groups_shows_a_sample():
    large = Table(2.0, Record.of(a=Integers(0, 999)))
    found = explained("SELECT a, COUNT(*) AS c FROM people GROUP BY a", large, 100_000)
    assert found.rows == 1000
    assert len(found) == 200
    assert "200 of 1,000 rows" in found.remarks()[-1]


def test_more_dimensions_than_are_asked_at_once_are_refused_in_words():
    pairs = Table(2.0, PRIVATE, PUBLIC, HIO(most=1))
    with pytest.raises(InputError, match="at most 1 dimension at once"):
        explained("SELECT COUNT(*) FROM people WHERE age < 40 AND state = 'NY'", pairs, 100_000)


@pytest.mark.parametrize("design", [Grids(fine=16, coarse=4), HIO()])
def test_answers_remark_the_assumption_of_their_design(design):
    table, people = Table(2.0, PRIVATE, design=design), {"age": [20, 50] * 500, "state": ["NY", "CA"] * 500}
    reports = table.survey.randomize(people, SeededForExperiments(1))
    asked = replace(table, query="SELECT COUNT(*) AS c FROM people WHERE age < 40")
    remarks = asked.read(MemoryCollection(table.survey, [reports])).remarks()
    assert (Grids.assumption in remarks) == isinstance(design, Grids)


def test_grids_that_are_read_are_shown():
    table = Table(2.0, PRIVATE, PUBLIC, Grids(fine=16, coarse=4))
    found = explained("SELECT COUNT(*) AS c FROM people WHERE age < 40 AND state = 'NY'", table, 90_000)
    assert found.steps[-1].how == (
        "Grids: 3 of 3 grids, all together: age (16 cells); state (3 cells); age by state (12 cells)"
    )
    assert (found.groups, found.cells, found.pairs) == (3, 31, 31 * 30_000)
    assert found.remarks()[-1] == Grids.assumption
    assert Grids.assumption not in explained("SELECT COUNT(*) AS c FROM people", table, 90_000).remarks()
    many = explained("SELECT age, COUNT(*) AS c FROM people GROUP BY age", table, 90_000)
    assert (many.groups, many.cells, many.pairs) == (3, 31, 31 * 30_000)  # reports are counted once for all groups
    assert Result.from_json(found.to_json()) == found


def test_plan_without_reports_remarks_what_is_unknown():
    found = explained("SELECT os, SUM(purchase) AS s FROM people WHERE age < 40 GROUP BY os", TABLE, 5_000)
    assert found.remarks()[1] == "So it would be if 5,000 people reported."
    assert len(found.remarks()) == 4
