"""Whole queries over the rows of a small table, for all kinds of outputs and splits of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from veil.domain import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError
from veil.reports.columns import Reports
from veil.sql import Category, Grids, Measure, Table
from veil.sql.answer import Answer
from veil.sql.designs.base import Design
from veil.sql.designs.hio import HIO
from veil.sql.execution import cluster as parts
from veil.sql.execution.cluster import DistributedRows
from veil.sql.execution.engine import run
from veil.sql.execution.explaining import Explanation
from veil.sql.execution.rows import CollectedRows
from veil.sql.language.parsing import parse

pytest.importorskip("duckdb")

PEOPLE = 2000


def table(design: Design | None = None, **changes: Any) -> Table:
    public = (Measure("m", 2), Measure("big"), Category("os", ("a", "b", "tv")))
    return Table(1.0, Record.of(age=Integers(0, 49)), public, design or HIO(), **changes)


@lru_cache(maxsize=8)
def reports(asked: Table) -> Reports:
    random = np.random.default_rng(1)
    held = {
        "age": np.minimum(random.geometric(0.2, PEOPLE), 49),
        "m": random.integers(0, 10_000, PEOPLE) / 100,
        "big": random.integers(10**17, 10**18, PEOPLE),
        "os": np.where(np.arange(PEOPLE) < 3, "tv", random.choice(["a", "b"], PEOPLE, p=[0.9, 0.1])),
    }
    return asked.survey.randomize(held, SeededForExperiments(1), asked.encode_public(held))


def ask(query: str, asked: Table | None = None, *parts: Reports) -> Answer:
    asked = asked or table()
    return run(parse(query, asked), CollectedRows(asked, MemoryCollection(asked.survey, list(parts) or reports(asked))))


@pytest.mark.parametrize("unit", ["1e9", "1e-40", "1e60"])
@pytest.mark.parametrize("where", ["", "WHERE age < 5"])
def test_small_and_large_doubles_have_the_digits_that_their_measure_has(unit: str, where: str) -> None:
    small = ask(f"SELECT AVG(m / {unit}) AS x, STDDEV(m / {unit}) AS s, SUM(m / {unit}) AS t FROM people {where}")  # noqa: S608
    whole = ask(f"SELECT AVG(m) AS x, STDDEV(m) AS s, SUM(m) AS t FROM people {where}")  # noqa: S608
    for name in "xst":
        assert small.value(name) * float(unit) == pytest.approx(whole.value(name), rel=1e-11)
        assert small.stderr(name) * float(unit) == pytest.approx(whole.stderr(name), rel=1e-6, abs=1e-9)


def test_sums_and_spreads_of_very_large_numbers() -> None:
    large = reports(table()).columns["public.big"].astype(float)
    found = ask("SELECT SUM(big) AS t, SUM(CAST(big AS DOUBLE) * 100) AS h, STDDEV(big) AS s FROM people")
    assert found.value("t") == pytest.approx(large.sum(), rel=1e-12)
    assert found.value("h") == pytest.approx(100 * large.sum(), rel=1e-12)
    assert found.value("s") == pytest.approx(large.std(ddof=1), rel=1e-10)
    with pytest.raises(InputError, match=r"overflow; CAST\(column AS DOUBLE\) has room"):
        ask("SELECT SUM(big * 100) AS h FROM people")
    some = ask("SELECT SUM(big) AS t, STDDEV(big) AS s FROM people WHERE age < 40")
    assert 0 < some.stderr("t") < some.value("t")
    assert 0 < some.stderr("s") < some.value("s")


def test_having_order_and_arithmetic_use_consistent_counts() -> None:
    asked = table(reading="consistent")
    query = "SELECT age, COUNT(*) AS n, COUNT(*) * 2 AS twice FROM people GROUP BY age"
    found = ask(f"{query} ORDER BY n DESC", asked)
    counts = found.output("n").values
    assert counts.min() == 0
    assert (np.diff(counts) <= 0).all()
    assert found.output("twice").values.tolist() == (2 * counts).tolist()
    assert len(ask(f"{query} HAVING n >= 0", asked)) == 50
    assert len(ask(f"{query} HAVING n > 0", asked)) == (counts > 0).sum()


def test_having_an_unknown_value_is_neither_true_nor_false() -> None:
    unknown, query = "SQRT(-COUNT(*)) > 1", "SELECT os, COUNT(*) AS n FROM people GROUP BY os HAVING"
    assert [len(ask(f"{query} {test}")) for test in (unknown, f"NOT {unknown}")] == [0, 0]
    assert len(ask(f"{query} NOT ({unknown} AND n > 1e9)")) == 3
    assert len(ask(f"{query} NOT ({unknown} AND n < 1e9)")) == 0
    assert len(ask(f"{query} {unknown} OR n < 1e9")) == 3


def test_forged_measure_counts_as_null() -> None:
    asked = table()
    strange = dict(reports(asked).columns)
    strange["public.m"] = np.where(np.arange(PEOPLE) < 100, 2**63 - 1, 500)
    mixed = Reports(reports(asked).task, reports(asked).layout, strange)
    found = ask("SELECT AVG(m) AS x, COUNT(m) AS n, COUNT(*) AS every, STDDEV(m) AS s FROM people", asked, mixed)
    assert (found.value("x"), found.value("n"), found.value("every")) == (5.0, PEOPLE - 100, PEOPLE)
    assert np.isnan(found.value("s")) or found.value("s") < 1e-6


@pytest.mark.parametrize("query", ["STDDEV(m)", "SUM(big)", "AVG(m / 7)"])
def test_grids_answer_the_same_however_rows_are_split(query: str) -> None:
    asked = table(Grids())
    made = reports(asked)
    text = f"SELECT os, {query} AS x FROM people WHERE age BETWEEN 3 AND 10 GROUP BY os"  # noqa: S608
    whole = ask(text, asked, made).output("x")
    split = ask(text, asked, made[1300:], made[:7], made[7:1300]).output("x")
    assert np.array_equal(whole.values, split.values, equal_nan=True)
    assert np.array_equal(whole.stderr, split.stderr, equal_nan=True)


def test_table_with_an_explain_query_gives_the_plan() -> None:
    asked = replace(table(), query="EXPLAIN SELECT COUNT(*) AS n FROM people WHERE age < 9")
    found = asked.read(MemoryCollection(asked.survey, reports(table())))
    assert isinstance(found, Explanation)
    assert found.n == PEOPLE
    assert found.stderr("n") > 0


class Pieces:
    """Reports in pieces, each gone through by itself, as tasks of a cluster do."""

    def __init__(self, asked: Table, pieces: list[Reports]) -> None:
        self.survey, self._pieces = asked.survey, pieces

    @property
    def people(self) -> int:
        return sum(map(len, self._pieces))

    def parts(self, part: str, arguments: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
        run = getattr(parts, part.rpartition(":")[2])
        return iter([found for piece in self._pieces for found in run(self.survey, arguments, [piece])])


SPREADS = "SELECT AVG(spent) AS m, VAR_POP(spent) AS v, STDDEV(spent) AS s, SUM(spent) AS t FROM people WHERE a = 1"


def spenders(mean: int, run: int) -> tuple[Table, Reports, np.ndarray[Any, Any]]:
    """6,000 people who spend so much and up to 100 more, in hundredths; and what those with a = 1 spend beyond it."""
    asked = Table(2.0, Record.of(a=4), (Measure("spent", 2),), HIO())
    random = np.random.default_rng(5)
    held, more = random.integers(0, 4, 6000), random.integers(0, 10_000, 6000)
    public = asked.encode_public({"spent": mean + more / 100})
    return asked, asked.survey.randomize({"a": held}, SeededForExperiments(run), public), more[held == 1] / 100


def columns(answer: Answer) -> list[tuple[float, ...]]:
    return [(*one.values, *one.stderr, *one.sampling) for one in answer.outputs]


@pytest.mark.parametrize("mean", [0, 10**9])
def test_answers_do_not_depend_on_order_or_split_of_rows(mean: int) -> None:
    asked, given, _ = spenders(mean, 0)
    found = columns(ask(SPREADS, asked, given))
    mixed = given[np.random.default_rng(1).permutation(6000)]
    assert columns(ask(SPREADS, asked, mixed[:1000], mixed[1000:])) == found
    for all_of_it in (given, mixed):
        pieces = [all_of_it[start : start + 1000] for start in range(0, 6000, 1000)]
        far = run(parse(SPREADS, asked), DistributedRows(asked, Pieces(asked, pieces)))
        assert columns(far) == found


def test_errors_of_numbers_with_a_large_mean_and_little_spread() -> None:
    """The same people with 10^9 more each: AVG has the very same error, spreads have nearly the same, and all hold."""
    near, far = ([ask(SPREADS, *spenders(mean, run)[:2]) for run in range(30)] for mean in (0, 10**9))
    more = spenders(0, 0)[2]
    for name, truth in (("m", more.mean()), ("v", more.var()), ("s", more.std(ddof=1))):
        values = np.array([one.value(name) for one in far]) - (10**9 if name == "m" else 0)
        errors, before = (np.array([one.stderr(name) for one in some]) for some in (far, near))
        assert errors == pytest.approx(before, rel=1e-6 if name == "m" else 0.05)
        assert np.sqrt((errors**2).mean()) == pytest.approx(values.std(ddof=1), rel=0.4)  # known to 13 % from 30 runs
        assert abs(values.mean() - truth) < 3.5 * values.std(ddof=1) / np.sqrt(30)
