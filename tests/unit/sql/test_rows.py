"""The rows of a table through DuckDB: exact sums by class, and scans, for all kinds of storage."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veil.sql.execution.duckdb as locked
from veil import GRR, OLH, OUE, AllOf, OneOf, Question, Survey
from veil.domain import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError, MismatchError
from veil.reports.columns import Reports
from veil.sql import Category, Measure, Moment, PublicColumn, Table
from veil.sql.execution.rows import ClassCounts, CollectedRows, Rows
from veil.sql.folder import TableFolder, create

pytest.importorskip("duckdb")

PEOPLE = 3000
TABLE = Table(
    2.0,
    Record.of(age=Integers(0, 24), sex=["f", "m"]),
    (Measure("price", 2), Measure("select"), Category('the "os"', ("ios", "it's", "ü")), Moment("bought")),
)


def public(people: int = PEOPLE) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {
        "price": [Decimal(int(c)).scaleb(-2) for c in rng.integers(-5000, 9000, people)],
        "select": rng.integers(-9, 9, people),
        'the "os"': [('ios', "it's", "ü")[i] for i in rng.integers(0, 3, people)],
        "bought": [dt.date(2025, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 365, people)],
    }  # fmt: skip


def reports(people: int = PEOPLE) -> Reports:
    rng = np.random.default_rng(8)
    held = {"age": rng.integers(0, 25, people), "sex": [("f", "m")[i] for i in rng.integers(0, 2, people)]}
    return TABLE.survey.randomize(held, SeededForExperiments(1), TABLE.encode_public(public(people)))


ALL = reports()


def in_folder(folder: Path, *parts: Reports) -> TableFolder:
    made = create(folder, TABLE)
    for part in parts:
        made.append(part)
    return made


@pytest.fixture(params=["folder", "pieces", "files", "collected", "arriving"])
def rows(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    """The same rows: in a folder as one file or many, read into memory or not, and as they were collected."""
    if request.param in ("files", "arriving"):
        monkeypatch.setattr(locked, "IN_MEMORY", 0)
    if request.param == "folder":
        return in_folder(tmp_path / "t", ALL)
    if request.param in ("pieces", "files"):
        return in_folder(tmp_path / "t", ALL[:1], ALL[1:700], ALL[700:])
    return CollectedRows(TABLE, MemoryCollection(TABLE.survey, [ALL[:999], ALL[999:]]))


def scanned(rows: Rows, counted: ClassCounts, classes: Any = None, groups: frozenset[int] | None = None) -> list[Any]:
    """All rows of a scan, in an order that does not depend on the split."""
    wanted = range(len(counted.classes)) if classes is None else classes
    found = []
    for batch in rows.scan(counted, wanted, groups):
        assert batch.classes.dtype == np.int32
        assert batch.weights.shape == (len(counted.scales), len(batch.classes))
        assert batch.weights.dtype == np.int64
        columns = [batch.columns[name].tolist() for name in TABLE.survey.ask.layout.names]
        found += list(zip(batch.classes.tolist(), *columns, *batch.weights.tolist(), strict=True))
    return sorted(found)


SUMS = ["1", '"price"', '"price" * "select"', '"select" / 4', 'CASE WHEN "select" > 3 THEN "price" END', '"select" > 0']
ATOMS = ['"the ""os""" = \'it\'\'s\'', 'CASE WHEN "select" <> 0 THEN "price" > 10 END', "bought >= DATE '2025-06-01'"]


def expected() -> tuple[dict[Any, Any], list[Any]]:
    """The same by hand: for each key and pattern, counts, totals and products; and every row."""
    given = public()
    counts: Any = defaultdict(lambda: np.zeros(len(TABLE.survey.ask), np.int64))
    totals: Any = defaultdict(lambda: [0] * 6)
    products: Any = defaultdict(lambda: [[0] * 6 for _ in range(6)])
    every = []
    for i in range(PEOPLE):
        price, select, os, bought = given["price"][i], int(given["select"][i]), given['the "os"'][i], given["bought"][i]
        pattern = (os == "it's") + 2 * (select != 0 and price > 10) + 4 * (bought >= dt.date(2025, 6, 1))
        units = int(price.scaleb(2))
        weights = [1, units, units * select, select * 25 * 10**15, units if select > 3 else 0, int(select > 0)]
        key = ((os, bought.month), pattern)
        counts[key][ALL.columns["choice"][i]] += 1
        for a in range(6):
            totals[key][a] += weights[a]
            for b in range(6):
                products[key][a][b] += weights[a] * weights[b]
        columns = [int(ALL.columns[name][i]) for name in TABLE.survey.ask.layout.names]
        every.append((key, *columns, *weights))
    return {key: (counts[key].tolist(), totals[key], products[key]) for key in counts}, every


def test_classes_and_rows_match_those_counted_by_hand(rows: Rows) -> None:
    counted = rows.count(SUMS, ATOMS, ['"the ""os"""', "month(bought)"])
    assert counted.scales == (0, 2, 2, 17, 2, 0)
    assert rows.people == PEOPLE
    by_hand, every = expected()
    found = {
        (one.keys, one.pattern): (one.counts.tolist(), list(one.totals), [list(row) for row in one.products])
        for one in counted.classes
    }
    assert found == by_hand
    number = {(one.keys, one.pattern): i for i, one in enumerate(counted.classes)}
    assert [(one.keys, one.pattern) for one in counted.classes] == sorted(by_hand)
    assert scanned(rows, counted) == sorted((number[row[0]], *row[1:]) for row in every)
    some, groups = [3, 5, 6, 20], frozenset({1, 4})
    few = [(number[row[0]], *row[1:]) for row in every if number[row[0]] in some and row[1] in groups]
    assert few
    assert scanned(rows, counted, some, groups) == sorted(few)
    assert scanned(rows, counted, [], None) == scanned(rows, counted, some, frozenset()) == []


def test_classes_without_keys(rows: Rows) -> None:
    by_hand, every = expected()
    counted = rows.count(["1"], ATOMS)
    patterns = sorted({pattern for _, pattern in by_hand})
    assert [one.pattern for one in counted.classes] == patterns
    for wanted in ([2], [0, 3, 5], range(len(patterns))):
        rows_by_hand = [(patterns.index(row[0][1]), *row[1:5], 1) for row in every]
        assert scanned(rows, counted, wanted) == sorted(row for row in rows_by_hand if row[0] in list(wanted))
    (whole,) = rows.count(["1"]).classes
    assert whole.keys == ()
    assert whole.pattern == 0
    assert whole.totals == (PEOPLE,)
    assert whole.products == ((PEOPLE,),)
    assert len(scanned(rows, rows.count(["1"]))) == PEOPLE


def test_rows_that_are_left_out_are_never_evaluated(rows: Rows) -> None:
    ratio = '"price" / "select"'
    with pytest.raises(InputError, match="not finite or too large"):
        rows.count([ratio])
    counted = rows.count([ratio], ['"price" > 0'], where='"select" <> 0')
    given = public()
    exact = [Fraction(p) / int(s) for p, s in zip(given["price"], given["select"], strict=True) if s]
    total = Fraction(sum(one.totals[0] for one in counted.classes), 10 ** counted.scales[0])
    assert abs(total - sum(exact)) <= sum(map(abs, exact)) / 2**52  # as far as doubles tell
    assert sum(row[-1] for row in scanned(rows, counted)) == sum(one.totals[0] for one in counted.classes)
    (none,) = rows.count(["1", '"select" // 0'], where="false").classes
    assert none.totals == (PEOPLE, 0)


def test_forged_integers_are_null_and_null_is_not_true(tmp_path: Path) -> None:
    strange = dict(ALL[:4].columns)
    strange["public.price"] = np.array([2**63 - 1, -(2**63), 100, 200])
    strange['public.the "os"'] = np.array([3, -1, 0, 1])
    rows = in_folder(tmp_path / "t", Reports(ALL.task, ALL.layout, strange))
    counted = rows.count(['"price"', '"price" + 0'], ['"price" > 0'], ['"the ""os"""'])
    assert [(one.keys, one.pattern, one.totals) for one in counted.classes] == [
        (("ios",), 1, (100, 100)),
        (("it's",), 1, (200, 200)),
        ((None,), 0, (0, 0)),
    ]
    assert [row[0] for row in scanned(rows, counted)] == [0, 1, 2, 2]


@pytest.mark.parametrize("scale", range(10))
def test_decimals_are_taken_exactly(tmp_path: Path, scale: int) -> None:
    table = Table(1.0, Record.of(x=Integers(0, 3)), (Measure("m", scale),))
    units = np.array([0, 1, -1, 10**scale - 1, 1 - 10**scale, 10**18 - 1, 1 - 10**18, 123456789012345678, -5 * 10**17])
    made = table.survey.randomize({"x": np.zeros(len(units), int)}, SeededForExperiments(1), {"m": units})
    rows = create(tmp_path / "t", table)
    rows.append(made)
    counted = rows.count(['"m"', '-"m"', 'CAST("m" AS DECIMAL(30, 9))'] if scale == 9 else ['"m"', '-"m"'])
    (one,) = counted.classes
    total, squares = sum(units.tolist()), sum(u * u for u in units.tolist())
    assert counted.scales[:2] == (scale, scale)
    assert one.totals[:2] == (total, -total)
    assert one.products[0][:2] == (squares, -squares)
    assert scale < 9 or one.totals[2] == total


@pytest.mark.parametrize("text", ["price * 1e-9", "price * 1e40", "price * price * price * price", "price / 3e9"])
def test_large_and_small_numbers_keep_their_digits(rows: Rows, text: str) -> None:
    counted = rows.count([text])
    exact = [eval(text, {"price": Fraction(price)}) for price in public()["price"]]  # noqa: S307  # one of the above
    (one,) = counted.classes
    unit = Fraction(10) ** -counted.scales[0]
    assert abs(one.totals[0] * unit / Fraction(sum(exact)) - 1) < Fraction(1, 10**12)
    assert abs(one.products[0][0] * unit**2 / Fraction(sum(x * x for x in exact)) - 1) < Fraction(1, 10**12)
    assert sum(row[-1] for row in scanned(rows, counted)) == one.totals[0]


def test_count_of_a_measure_without_null_is_the_count_of_people(rows: Rows) -> None:
    counted = rows.count(["1", "price", 'CASE WHEN ("price") IS NULL THEN 0 ELSE 1 END'])
    assert (counted.places, counted.scales) == ((0, 1, 0), (0, 2))


@pytest.mark.parametrize(
    ("sums", "atoms", "keys", "says"),
    [
        (["bought"], [], [], "only numbers can be added up: bought is of type DATE"),
        (['"the ""os"""'], [], [], "only numbers"),
        (["1e300 * price"], [], [], "not finite or too large"),
        (["price * 1e-150"], [], [], "nearly 0 for all rows"),
        (["price * 1000000000 * price * price"], [], [], "a number is out of range"),
        (["sum(price)"], [], [], "cannot evaluate"),
        (["nothing"], [], [], "cannot evaluate nothing"),
        (["1), (2"], [], [], "one expression"),
        (["price -- "], ["1"], [], "expected a condition: 1 is of type INTEGER"),
        (["1"], ["price"], [], "expected a condition"),
        (["1"], ["price >"], [], "cannot evaluate"),
        (["1"], ["bought > 'never'"], [], "cannot evaluate"),
        (["1"], [], ["[price]"], "groups are by text"),
        (["1"], [], ["{'a': price}"], "groups are by text"),
        (["1"], ['"select" // 0 > 1'], [], "does not fit"),
        (["1"], ['CAST("the ""os""" AS INTEGER) > 1'], [], "does not fit"),
        (["1"], ["true"] * 49, [], "at most 48"),
        (["1"], ["(SELECT count(*) FROM read_csv('/etc/passwd')) > 0"], [], "cannot"),
        (["1"], ["(SELECT count(*) FROM read_text('/etc/passwd')) > 0"], [], "cannot"),
        (["1"], ["(SELECT count(*) FROM ALL) > 0"], [], "cannot evaluate"),
        (["1"], ["(SELECT count(*) FROM TABLE_) > 0"], [], "cannot evaluate"),
        (["choice"], [], [], "cannot evaluate choice"),
        (["seed"], [], [], "cannot evaluate seed"),
        (['"public.price"'], [], [], "cannot evaluate"),
    ],
)
def test_bad_expressions_are_refused(
    tmp_path: Path, sums: list[str], atoms: list[str], keys: list[str], says: str
) -> None:
    rows = in_folder(tmp_path / "secret-folder", ALL[:20])
    with pytest.raises(InputError, match=says) as caught:
        list(rows.scan(counted := rows.count(sums, atoms, keys), range(len(counted.classes)), None))
    told = str(caught.value)
    assert "secret-folder" not in told
    assert "part-" not in told
    assert "veil_" not in told
    assert not caught.value.__context__ or caught.value.__suppress_context__


def test_queries_cannot_reach_files_or_settings(rows: Rows, tmp_path: Path) -> None:
    connection = rows.database().cursor()
    target = tmp_path / "out.csv"
    for statement in (
        f"COPY (SELECT 1) TO '{target}'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM ALL",  # a variable of this module
        "SET enable_external_access = true",
        "SET threads = 1",
        "INSTALL httpfs",
        "LOAD httpfs",
        f"ATTACH '{target}'",
    ):
        with pytest.raises(Exception, match=r"\w"):
            connection.execute(statement).fetchall()
    assert not target.exists()


def test_too_many_groups_are_refused(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veil.sql.execution.rows._MOST_CLASSES", 10)
    with pytest.raises(InputError, match="groups, more than 10"):
        rows.count(["1"], [], ["bought"])


def test_rows_of_another_task_are_refused() -> None:
    other = Survey(GRR(1.0, 4))
    with pytest.raises(MismatchError):
        CollectedRows(TABLE, MemoryCollection(other, other.randomize([1], SeededForExperiments(0))))


@dataclass
class Bare:
    """What rows need of a table."""

    survey: Survey
    public: tuple[PublicColumn, ...] = field(default=(Measure("w"),))


@pytest.mark.parametrize("kept", [0, 1 << 30])
@pytest.mark.parametrize(
    "ask",
    [
        Question(OUE(1.0, 37)),
        AllOf(Question(OLH(1.0, 9)), Question(OLH(1.0, 9))),
        OneOf((1, Question(OUE(1.0, 9))), (2, Question(OUE(1.0, 9)))),
        AllOf(OneOf((1, Question(GRR(1.0, 9))), (2, Question(GRR(2.0, 9)))), Question(OUE(1.0, 9))),
    ],
)
def test_reports_of_every_shape_come_back_as_they_were(ask: Any, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked, "IN_MEMORY", kept)
    survey = Survey(ask, [Measure("w").public])
    people = 300
    made = survey.randomize(np.arange(people) % 9, SeededForExperiments(3), {"w": np.arange(people)})
    rows = CollectedRows(Bare(survey), MemoryCollection(survey, made))  # type: ignore[arg-type]
    counted = rows.count(["w"])
    (one,) = counted.classes
    assert one.counts.sum() == people
    assert (len(one.counts) == 1) == ("choice" not in survey.layout.names)
    for batch in rows.scan(counted, [0], None):
        order = np.argsort(batch.weights[0])
        for column in survey.ask.layout.fields:
            again = batch.columns[column.name][order]
            assert again.dtype == column.dtype
            assert np.array_equal(again, made.columns[column.name])
