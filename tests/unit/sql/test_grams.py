"""Sums of products of weights: the same integers as one SQL aggregate for each pair, in memory for many weights."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from veil import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.sql import Category, Measure, Table
from veil.sql.execution import sums as sums_module
from veil.sql.execution.duckdb import select
from veil.sql.execution.engine import run
from veil.sql.execution.passes import Passes
from veil.sql.execution.rows import ClassCounts, CollectedRows
from veil.sql.execution.sums import Grams, add_gram, integers
from veil.sql.language.parsing import parse

pytest.importorskip("duckdb")

PEOPLE = 700
TABLE = Table(
    2.0,
    Record.of(age=Integers(0, 15)),
    (Measure("m", 2), Measure("big"), Measure("small"), Category("os", ("a", "b", "tv"))),
)


def rows() -> CollectedRows:
    random = np.random.default_rng(5)
    held = {"age": random.integers(0, 16, PEOPLE)}
    public = {
        "m": random.integers(-10_000, 10_000, PEOPLE) / 100,
        "big": random.integers(-(10**18) + 1, 10**18, PEOPLE),
        "small": random.integers(-3, 4, PEOPLE),
        "os": random.choice(["a", "b", "tv"], PEOPLE, p=[0.7, 0.28, 0.02]),
    }
    reports = TABLE.survey.randomize(held, SeededForExperiments(2), TABLE.encode_public(public))
    return CollectedRows(TABLE, MemoryCollection(TABLE.survey, reports))


ROWS = rows()
PIECES = [
    *("1", "m", "big", "small", "-big", "small / 4", "CAST(big AS DOUBLE) * small", "small > 0", "NULL", "0", "1e-120"),
    *("CAST(big AS DOUBLE) * 1e90", "CAST(m AS DOUBLE) / 3e40", "CAST(big AS HUGEINT) * 8", "9223372036854775807"),
    *("CAST(m AS DECIMAL(38, 10)) / 10", "CASE WHEN small > 1 THEN big END", "CAST(small AS DECIMAL(18, 9)) / 3"),
    *("CASE WHEN os = 'tv' THEN m ELSE NULL END", "CASE WHEN (os) IS NULL THEN 0 ELSE 1 END"),
    "CAST(big AS BIGINT) * 9",
]  # fmt: skip


def in_sql(passes: Passes) -> dict[Any, tuple[list[int], list[list[int]]]]:
    """The sums of each class as they were made before: an aggregate for each pair, of the low and the high 32 bits."""
    weights = [weight.sql or "CAST(1 AS BIGINT)" for weight in passes.weights]
    every = range(len(weights))
    seen = [*passes._keyed(), passes._patterned(), *(f"{sql} AS w{a}" for a, sql in enumerate(weights))]
    wide = [f"CAST(w{a} AS HUGEINT)" for a in every]
    pairs = [(a, b) for a in every for b in every]
    sums = [f"sum({wide[a]})" for a in every]
    sums += [f"sum({wide[a]} * (w{b} & {0xFFFFFFFF}))" for a, b in pairs]
    sums += [f"sum({wide[a]} * (w{b} >> 32))" for a, b in pairs]
    sql = select([*passes.groups, *sums], f"({select(seen, passes.database.people)})", "GROUP BY ALL")
    found = {}
    for row in passes.database.execute(passes.connection, sql):
        groups, made = row[: len(passes.groups)], [int(x) for x in row[len(passes.groups) :]]
        k = len(weights)
        low, high = np.array(made[k : k + k * k], object), np.array(made[k + k * k :], object)
        found[groups] = made[:k], (low + high * 2**32).reshape(k, k).tolist()
    return found


def told(counted: ClassCounts) -> dict[Any, tuple[list[int], list[list[int]]]]:
    return {(*one.keys, one.pattern): (list(one.totals), [list(r) for r in one.products]) for one in counted.classes}


@pytest.mark.parametrize("few", [1, 100], ids=["matrix", "loop"])
@pytest.mark.parametrize("seed", range(12))
def test_products_equal_sql_aggregates_of_each_pair(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_module, "FEW_SUMS", few)
    random = np.random.default_rng(seed)
    sums = [PIECES[i] for i in random.permutation(len(PIECES))[: random.integers(1, len(PIECES) + 1)]]
    keys = [[], ["os"], ["os", "small"], ["big"]][seed % 4]
    atoms = [[], ["small > 0", "m > 1"]][seed // 4 % 2]
    where = [None, "small <> 0"][seed // 2 % 2]
    counted = ROWS.count(sums, atoms, keys, where)
    assert told(counted) == in_sql(counted.passes)


@pytest.mark.parametrize("most", [1, 2**20, 2**21, 2**31 - 1, 2**31, 2**45, 2**62, 2**63 - 1])
def test_matrix_products_equal_those_of_python_integers(most: int) -> None:
    random = np.random.default_rng(most % 997)
    weights = random.integers(-most, most, (9, 3000), endpoint=True)
    weights[0], weights[3], weights[4, 5:] = 1, 0, 0
    weights[-1, :3] = -most - 1, most, 0
    numbers = random.integers(-(2**29), 2**29, 3000, endpoint=True)
    numbers[:2] = 2**29, -(2**29)
    whole, scaled = weights.astype(object), weights.astype(object) * numbers.astype(object)
    for given, mixed, expected in (
        (None, False, whole @ whole.T),
        (numbers, False, scaled @ scaled.T),
        (numbers, True, whole @ scaled.T),
    ):
        words = np.zeros((45, 4), np.uint64)
        for start, stop in ((0, 1), (1, 260), (260, 3000)):
            part = None if given is None else given[start:stop]
            add_gram(np.ascontiguousarray(weights[:, start:stop]), part, words.reshape(-1), mixed)
        assert integers(words).tolist() == [expected[a, b] for a in range(9) for b in range(a + 1)]


def test_sums_of_more_rows_than_one_matrix_product_holds() -> None:
    rows, most = (1 << 14) + 300, 2**63 - 1
    weights = np.full((8, rows), most)
    weights[1] = -most - 1
    grams = Grams(2, 8)
    grams.add(np.repeat(np.array([1, 0], np.int32), [rows - 2, 2]), weights)
    assert grams.products(1, (0, 1), (0, 1)) == (
        ((rows - 2) * most**2, -(rows - 2) * most * (most + 1)),
        (-(rows - 2) * most * (most + 1), (rows - 2) * (most + 1) ** 2),
    )
    assert grams.products(0, (0,), (0,)) == ((2 * most**2,),)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT {} FROM people WHERE age < 9",
        "SELECT os, {} FROM people WHERE age < 9 AND small <> 0 GROUP BY os",
    ],
)
def test_answers_are_identical_with_loops_and_matrix_products(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = [f"SUM(m + {i}) AS s{i}" for i in range(6)]
    outputs += [
        "AVG(small) AS a",
        "STDDEV(m) AS d",
        "SUM(m) / SUM(small * small) AS r",
        "COUNT(*) AS n",
        "SUM(small) AS t",
    ]
    found = []
    for few in (1, 1000):
        monkeypatch.setattr(sums_module, "FEW_SUMS", few)
        answer = run(parse(query.format(", ".join(outputs)), TABLE), ROWS)
        found.append([(one.values.tobytes(), one.stderr.tobytes(), one.sampling.tobytes()) for one in answer.outputs])
    assert found[0] == found[1]


_MANY = """
import json, sys
import numpy as np
from veil import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.sql import Measure, Table
from veil.sql.execution.engine import run
from veil.sql.language.parsing import parse
from veil.sql.execution.rows import CollectedRows

table = Table(2.0, Record.of(age=Integers(0, 15)), (Measure("m"),))
people = 20_000
random = np.random.default_rng(1)
held = {"age": random.integers(0, 16, people)}
public = table.encode_public({"m": random.integers(0, 1000, people)})
made = table.survey.randomize(held, SeededForExperiments(1), public)
rows = CollectedRows(table, MemoryCollection(table.survey, made))

def peak():
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

def ask(sums):
    asked = ", ".join(f"SUM(m * {i + 2}) AS s{i}" for i in range(sums))
    run(parse(f"SELECT {asked} FROM people WHERE age < 9", table), rows)

ask(10)
before = peak()
ask(100)
print(json.dumps(peak() - before))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_hundred_sums_take_little_memory() -> None:
    """With an aggregate for each pair they took more than 1 GB."""
    done = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) < 300
