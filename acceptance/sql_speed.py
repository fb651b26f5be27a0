"""How long SQL takes over 1,000,000 people with 2+2 dimensions, what memory 10,000,000 rows need, and that files hide.

`python -m acceptance.sql_speed FOLDER ROWS` makes a table of so many rows, asks it, and prints its peak of memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from bench.peak import peak_mb
from bench.timing import best_times, local
from numpy.typing import NDArray

from veil import Integers, Record
from veil.entropy import SeededForExperiments
from veil.mechanisms import OLH
from veil.sql import HIO, Measure, Table, create
from veil.sql import open as open_table

PEOPLE, MANY, CHUNK = 1_000_000, 10_000_000, 1 << 18
ORDINAL, STATES, SYSTEMS = 625, 10, 4
SEED = 15
Columns = dict[str, NDArray[Any]]


def table_of() -> Table:
    """2 ordinal dimensions of 625 values, 2 categorical ones, and a public purchase."""
    record = Record.of(age=Integers(0, ORDINAL - 1), salary=Integers(0, ORDINAL - 1), state=STATES, system=SYSTEMS)
    return Table(2.0, record, (Measure("purchase", 2),), HIO())


def rows_of(people: int, seed: int = SEED) -> Columns:
    """So many people who lie unevenly in all dimensions."""
    rng = np.random.default_rng([seed, people])
    return {
        "age": np.minimum(rng.gamma(3.0, 70.0, people).astype(np.int64), ORDINAL - 1),
        "salary": np.minimum(rng.lognormal(5.0, 0.7, people).astype(np.int64), ORDINAL - 1),
        "state": np.minimum(rng.geometric(0.25, people) - 1, STATES - 1),
        "system": rng.choice(SYSTEMS, people, p=[0.5, 0.3, 0.15, 0.05]),
        "purchase": np.round(rng.lognormal(3.0, 0.8, people), 2),
    }


def queries(count: int, seed: int = SEED) -> list[str]:
    """Random queries about all four dimensions."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        (a, b), (c, d) = (sorted(rng.integers(0, ORDINAL, 2).tolist()) for _ in range(2))
        state, system = int(rng.integers(STATES)), int(rng.integers(SYSTEMS))
        where = f"age BETWEEN {a} AND {b} AND salary BETWEEN {c} AND {d} AND state = {state} AND system = {system}"
        found.append(f"SELECT COUNT(*) AS people, AVG(purchase) AS mean FROM people WHERE {where}")  # noqa: S608  # numbers
    return found


def simulate(table: Table, rows: Columns, seed: int) -> Any:
    """Everybody's report, with what is public beside it."""
    return table.survey.randomize(rows, SeededForExperiments(seed), public=table.encode_public(rows))


class Kernel:
    """The loop that a query's time goes into, over about 7 million pairs of a report and a cell."""

    def __init__(self, rows: int = 10_000, cells: int = 700) -> None:
        from veil.kernels.counting import halves

        rng = np.random.default_rng(0)
        self.oracle = OLH(2.0, 1 << 20)
        held = rng.integers(0, 1 << 20, rows)
        columns = self.oracle.draw(held.astype(np.uint64), SeededForExperiments(0))
        self.seeds, self.reported = self.oracle.expand(columns["seed"]), columns["bucket"].astype(np.uint64)
        self.low, self.high = halves(self.oracle.spread(np.arange(cells, dtype=np.uint64)))
        self.coefficients = rng.integers(-(1 << 22), 1 << 22, cells).astype(np.int32)
        self.rows, self.places, self.offsets = np.arange(rows), np.zeros(rows, np.int32), np.array([0, cells], np.int64)
        self.pairs = rows * cells

    def run(self) -> NDArray[np.float64]:
        """The numbers of all rows, on one thread."""
        from veil.kernels.exact_sums import hashed_values

        cells = (self.offsets, self.low, self.high, self.coefficients, np.zeros(1), np.ones(1))
        found = np.empty(len(self.rows))
        hashed_values(self.rows, self.places, self.seeds, self.reported, self.oracle.buckets, *cells, found)
        return found


def measure(turns: int = 15) -> dict[str, float]:
    """The numbers by name; seconds are those of the quickest of several turns, of the slowest query."""
    table, rows, asked = table_of(), rows_of(PEOPLE), queries(12)
    found = {"simulation of 1,000,000 rows, seconds": _quickest(turns, lambda: simulate(table, rows, 0))}
    kernel = Kernel()
    found["kernel, G pairs/s on one thread"] = kernel.pairs / _quickest(20 * turns, kernel.run) / 1e9
    reports = simulate(table, rows, 1)
    with tempfile.TemporaryDirectory() as folder:
        answers = set()
        for files in (1, 7, 40):
            path = Path(folder) / str(files)
            made = create(path, table)
            ends = np.linspace(0, PEOPLE, files + 1).astype(int).tolist()
            for start, stop in pairwise(ends):
                made.append(reports[start:stop])
            with open_table(path) as db:
                answers.add(json.dumps([db.query(text).table().to_pydict() for text in asked[:4]]))
                if files == 1:
                    found["2+2 query, seconds (slowest of 12, warm)"] = max(
                        _quickest(turns, partial(db.query, text)) for text in asked
                    )
        found["different answers of 3 splits into files"] = float(len(answers))
    return found


def memory(rows: int = MANY) -> float:
    """The peak in MB of a process that makes a table of so many rows and asks it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "acceptance.sql_speed", str(Path(folder) / "table"), str(rows)]
        root = Path(__file__).parent.parent
        done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["peak_mb"])


def judge(found: dict[str, float]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of (what, measured, required), and whether all of it holds."""
    most = {
        "2+2 query, seconds (slowest of 12, warm)": 0.1,
        "simulation of 1,000,000 rows, seconds": 2.0,
        "10,000,000 rows made and asked, MB": 1_000.0,
        "different answers of 3 splits into files": 1.0,
    }
    least = {"kernel, G pairs/s on one thread": 2.0}
    rows = [(name, f"{found[name]:.4g}", f"at most {limit:g}") for name, limit in most.items()]
    rows += [(name, f"{found[name]:.4g}", f"at least {limit:g}") for name, limit in least.items()]
    right = all(found[name] <= limit for name, limit in most.items())
    return rows, right and all(found[name] >= limit for name, limit in least.items())


def _quickest(turns: int, work: Callable[[], object]) -> float:
    return best_times((local(work, 1),), turns)[0][0]


def _chunks(rows: int) -> Iterator[Columns]:
    for number, start in enumerate(range(0, rows, CHUNK)):
        yield rows_of(min(CHUNK, rows - start), SEED + number)


def _make_and_ask(folder: str, rows: int) -> None:
    table = table_of()
    made = create(folder, table)
    for number, some in enumerate(_chunks(rows)):
        made.append(simulate(table, some, number))
    with open_table(folder) as db:
        for text in queries(4):
            db.query(text)
    print(json.dumps({"peak_mb": peak_mb()}))


if __name__ == "__main__":
    _make_and_ask(sys.argv[1], int(sys.argv[2]))
