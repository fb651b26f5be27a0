"""Costs of queries: estimates against measured memory, and limits that refuse and interrupt queries."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from veil import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError, LimitError
from veil.sql import HIO, Measure, Table
from veil.sql.execution.costs import Cost, admit
from veil.sql.execution.duckdb import LockedDuckDB
from veil.sql.execution.rows import CollectedRows
from veil.tools.limits import Limits, check, limited

pytest.importorskip("duckdb")

TABLE = Table(2.0, Record.of(age=Integers(0, 99), salary=Integers(0, 249)), (Measure("m"),))

_MEASURED = """
import json
import numpy as np
from veil import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.sql import Category, Grids, HIO, MG, Measure, Table
from veil.sql.execution import accumulators, engine
from veil.sql.language.parsing import parse
from veil.sql.execution.rows import CollectedRows

people = 20_000
random = np.random.default_rng(1)
held = {"age": random.integers(0, 100, people), "salary": random.integers(0, 250, people)}
shown = {"m": random.integers(0, 1000, people), "id": np.arange(people) % 5000}
shown["os"] = random.choice(["a", "b", "c"], people)
tables = {}
for design in (HIO(), MG(), Grids()):
    private = Record.of(age=Integers(0, 99), salary=Integers(0, 249))
    table = Table(2.0, private, (Measure("m"), Measure("id"), Category("os", ("a", "b", "c"))), design)
    reports = table.survey.randomize(held, SeededForExperiments(1), table.encode_public(shown))
    tables[type(design).__name__] = table, reports

def memory(which):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(which))

def sums(many):
    return ", ".join(f"SUM(m * {i + 2}) AS s{i}" for i in range(many))

def ask(design, query, rows=people):
    table, made = tables[design]
    costs = []
    engine.admit = accumulators.admit = costs.append
    open("/proc/self/clear_refs", "w").write("5")
    before = memory("VmRSS")
    engine.run(parse(query, table), CollectedRows(table, MemoryCollection(table.survey, made[:rows])))
    return [design, query[:60], memory("VmHWM") - before, max(cost.bytes for cost in costs)]

def texts(column, text, many):
    return ", ".join(f"STDDEV(length({column} || '{text}{i}') / 7) AS t{i}" for i in range(many))

few = "SELECT os, COUNT(*), AVG(m) FROM people WHERE age < 9 GROUP BY os"
for design in tables:
    ask(design, few, 500)
ask("HIO", f"SELECT {sums(9)} FROM people WHERE age < 9", 500)
found = [
    ask("HIO", "SELECT COUNT(*) FROM people WHERE age < 30"),
    ask("HIO", "SELECT AVG(m) FROM people WHERE age BETWEEN 3 AND 77 AND salary BETWEEN 11 AND 233"),
    ask("HIO", f"SELECT {sums(40)} FROM people WHERE age < 30"),
    ask("HIO", f"SELECT {sums(120)} FROM people WHERE age < 30", 4000),
    ask("HIO", f"SELECT os, {sums(30)} FROM people GROUP BY os"),
    ask("HIO", "SELECT id, COUNT(*) AS n FROM people GROUP BY id"),
    ask("HIO", "SELECT id, AVG(m) AS n FROM people WHERE age < 2 GROUP BY id", 2000),
    ask("HIO", "SELECT age, salary, COUNT(*) AS n FROM people WHERE salary < 12 GROUP BY age, salary"),
    ask("MG", "SELECT age, AVG(m) FROM people WHERE salary < 20 GROUP BY age"),
    ask("Grids", f"SELECT {sums(20)} FROM people WHERE age < 30"),
    ask("Grids", "SELECT os, age, AVG(m) FROM people GROUP BY os, age"),
    ask("HIO", f"SELECT {texts('os', 'x' * 4_000, 12)} FROM people WHERE age < 30", 4000),
    ask("HIO", f"SELECT {texts('upper(os)', chr(0x1F600) * 900, 12)} FROM people WHERE age < 30", 4000),
    ask("HIO", f"SELECT os || m || '{'x' * 40_000}' AS k, COUNT(*) AS n FROM people GROUP BY ALL", 2500),
]
print(json.dumps(found))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_estimates_are_upper_bounds_of_the_right_order() -> None:
    done = subprocess.run([sys.executable, "-c", _MEASURED], capture_output=True, text=True, check=True)
    for design, query, taken, estimate in json.loads(done.stdout):
        assert taken < estimate, (design, query)
        assert estimate < 10 * taken + 150e6, (design, query)


SMALL = Cost(
    people=1000, report_bytes=20, sums=3, outputs=3, classes=2, buckets=1, choices=7, asked_cells=0, cells=0, pairs=0
)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sums": 900, "outputs": 900}, r"[1-9][\d,]* sums at once would fit"),
        ({"classes": 90_000}, r"[1-9][\d,]* groups would fit"),
        ({"classes": 900, "key_bytes": 60_000}, r"[1-9][\d,]* groups would fit"),
        ({"text_bytes": 60_000}, "fewer sums and groups, shorter texts, or rounder ranges, would fit"),
        ({"pairs": 1 << 40}, "fewer sums and groups, shorter texts, or rounder ranges, would fit"),
    ],
)
def test_cost_over_the_limits_is_refused_with_what_would_fit(changes: dict[str, int], says: str) -> None:
    cost = replace(SMALL, **changes)
    admit(cost)  # nothing is limited
    with limited(Limits(200, 60)):
        admit(SMALL)
        with pytest.raises(LimitError, match=says) as caught:
            admit(cost)
    assert f"needs {cost}" in str(caught.value)
    assert "at most 200 MB and 60 s (query_megabytes, query_seconds)" in caught.value.expected


def rows() -> CollectedRows:
    held = {"age": np.arange(100), "salary": np.arange(100)}
    made = TABLE.survey.randomize(held, SeededForExperiments(1), TABLE.encode_public({"m": np.arange(100)}))
    return CollectedRows(TABLE, MemoryCollection(TABLE.survey, made))


class Stopping:
    """A reason to stop, once it is there."""

    def __init__(self) -> None:
        self.now = Event()

    def __call__(self) -> None:
        if self.now.is_set():
            raise LimitError("it was stopped", "less work")


def _run(database: LockedDuckDB, sql: str, batches: bool, now: Event) -> None:
    if batches:
        for _ in database.batches(database.cursor(), sql, 1000):
            now.set()
    now.set()
    database.execute(database.cursor(), f"SELECT count(*) FROM ({sql}) WHERE x = 3 AND y % 3 = 1")  # noqa: S608


@pytest.mark.parametrize("batches", [False, True])
def test_a_statement_of_duckdb_is_interrupted(batches: bool) -> None:
    """Each of these statements takes hours."""
    stopping = Stopping()
    endless = "SELECT a.range * b.range % 7 AS x, b.range AS y FROM range(10000000) a, range(10000000) b"
    with limited(Limits(1000, 10**6, stopping)):
        database = rows().database()
        with pytest.raises(LimitError, match="it was stopped"):
            _run(database, endless, batches, stopping.now)
    (found,) = database.execute(database.cursor(), "SELECT 1")
    assert found == (1,)


def test_a_limit_ends_with_its_block() -> None:
    with limited(Limits(1, 0)), pytest.raises(LimitError, match="longer than 0 seconds"):
        check()
    check()


def test_memory_of_duckdb_is_within_the_limit() -> None:
    with limited(Limits(20, 10**6)):
        database = rows().database()
        with pytest.raises(LimitError, match="too much memory in DuckDB"):
            database.execute(database.cursor(), "SELECT list(range) FROM range(10000000)")


def test_combinations_of_very_many_groups_are_not_listed() -> None:
    """A list of all of them took 25 GB before they were counted."""
    table = Table(2.0, Record.of(a=Integers(0, 19_999), b=Integers(0, 19_999)))
    made = table.survey.randomize({"a": np.arange(5), "b": np.arange(5)}, SeededForExperiments(1))
    query = "SELECT a, b, COUNT(*) AS n FROM people GROUP BY a, b"
    for text in (query, f"EXPLAIN {query}"):
        with pytest.raises(InputError, match="400,000,000 groups, more than 100,000"):
            replace(table, query=text).read(MemoryCollection(table.survey, made))


def test_reading_many_boxes_can_be_interrupted() -> None:
    """The variance takes time with the square of the number of boxes: a limit of 8 s ended one after 25 s."""
    made = TABLE.survey.randomize({"age": [1, 2], "salary": [3, 4]}, SeededForExperiments(1), public={"m": [5, 6]})
    looks = []

    def count(boxes: int) -> int:
        looks.clear()
        holes = " AND ".join(f"(age <> {2 * i} OR salary <> {2 * i})" for i in range(boxes))
        with limited(Limits(10**6, 10**6, lambda: looks.append(1))):
            query = f"SELECT COUNT(*) FROM people WHERE {holes}"  # noqa: S608
            replace(TABLE, query=query).read(MemoryCollection(TABLE.survey, [made]))
        return len(looks)

    assert count(40) - count(10) > 300  # a watching thread alone looks 20 times a second


def test_a_condition_of_many_large_boxes_is_refused_while_its_cells_are_found() -> None:
    """A query of 2 KB took 3.9 GB within a limit of 1 GB: its cells were counted when all of them were there."""
    table = Table(2.0, Record.of(**{name: Integers(0, 99) for name in "abcd"}), design=HIO())
    people = np.random.default_rng(1).integers(0, 100, (4, 2_000))
    made = table.survey.randomize(dict(zip("abcd", people, strict=True)), SeededForExperiments(1))
    holes = " AND ".join(f"(a <> {i} OR b <> {i})" for i in range(99))
    query = f"SELECT COUNT(*) FROM people WHERE {holes}"  # noqa: S608
    with limited(Limits(400, 600)), pytest.raises(LimitError, match="a condition of 100 boxes needs about"):
        replace(table, query=query).read(MemoryCollection(table.survey, [made]))
