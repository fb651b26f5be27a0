"""Record what SQL answers: every good query of `tests/sql` under every design and reading.

    python -m tests.support.sql_records            # numbers and texts
    python -m tests.support.sql_records texts      # texts alone
    python -m tests.support.sql_records HIO SC     # some designs

`tests/fixtures/house/sql.jsonl.gz` has one record per line: the numbers, columns and structure of one answer or plan,
or the class of its error. `sql_texts.json` beside it has remarks and plans in words. `docs/decisions/0042-guards.md`
says when either may be recorded again.

The keys of a record belong to this module. Where the JSON of a result changes its keys, `answer_record` and
`plan_record` change, and the fixture stays as it is.
"""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import json
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

import veil.sql
from veil.domain import Categories, Integers, Interval, Record
from veil.entropy import SeededForExperiments
from veil.errors import SqlError, VeilError
from veil.sql import (
    HI,
    HIO,
    MG,
    SC,
    Answer,
    Category,
    Database,
    Design,
    Explanation,
    Grids,
    Measure,
    Moment,
    QuadTree,
    Table,
    Wavelet,
)

Reading = Literal["levels", "plain", "consistent"]
What = Literal["answer", "plan", "plan without rows"]

FOLDER = Path(__file__).parents[1]
HOUSE = FOLDER / "fixtures" / "house"
NUMBERS, TEXTS = HOUSE / "sql.jsonl.gz", HOUSE / "sql_texts.json"
BAD = {path.stem: path.read_text() for path in sorted(FOLDER.glob("sql/bad/*.sql"))}
GOOD = {path.stem: path.read_text() for path in sorted(FOLDER.glob("sql/good/*.sql"))} | {
    "days": "SELECT Joined, COUNT(*), AVG(Purchase) FROM T WHERE Joined >= DATE '2026-01-20' GROUP BY Joined",
    "months": "SELECT BUCKET(Joined, INTERVAL 1 MONTH) AS month, SUM(Purchase) FROM T WHERE OS <> 'Win' GROUP BY month",
    "more-than-200-rows": "SELECT Age, State, COUNT(*) AS n, AVG(Purchase) FROM T GROUP BY Age, State ORDER BY n, Age",
    "salaries": "SELECT BUCKET(Salary, 50000) AS high, SUM(Purchase) / COUNT(*) FROM T GROUP BY high ORDER BY 2 DESC",
    "three-dimensions": "SELECT COUNT(*), AVG(ActiveTime) FROM T WHERE Age < 50 AND Salary < 60000 AND State = 'NY'",
}
READINGS: tuple[Reading, ...] = get_args(Reading)
WHAT: tuple[What, ...] = get_args(What)
DESIGNS: dict[str, Design] = {
    "HIO": HIO(),
    "HIO(OLH)": HIO(oracle="OLH"),
    "HIO(most=2)": HIO(most=2),
    "HI": HI(),
    "SC": SC(),
    "SC(sampled)": SC(levels="sampled"),
    "MG": MG(),
    "Grids": Grids(),
    "QuadTree": QuadTree(),
    "Wavelet": Wavelet(),
}
MANY_GROUPS = "SELECT Age, Salary, Joined, OS, COUNT(*) FROM T GROUP BY ALL"
OVERFLOW = "SELECT SUM(Purchase * Purchase * Purchase * Purchase * Purchase * Purchase * Purchase) FROM T"
EVERYDAY = "HIO(most=2)"
"""The design that `make test` asks all queries; `make acceptance` asks them of all designs."""
SAMPLE = (
    *("average", "contradiction", "group-by-private-labels", "mixed-nested", "or-of-boxes", "salaries"),
    *("three-dimensions", "variance"),
)
"""The queries that `make test` asks of all designs."""
PEOPLE = 1000
FIRST = 4
"""Numbers of a long column that are recorded one by one. Its other numbers are recorded as a SHA-256 and a sum."""

Json = dict[str, Any]


# -- tables ------------------------------------------------------------------------------------------------------------


def table(design: Design) -> Table:
    """Return the table that the queries of `tests/sql` are about."""
    private = Record(
        (
            ("Age", Integers(18, 97)),
            ("Salary", Interval(0, 200_000, cells=20)),
            ("State", Categories(["NY", "WA", "CA", "TX"], missing="category")),
            ("Joined", Interval(dt.date(2026, 1, 1), dt.date(2026, 2, 15), cells=45)),
        )
    )
    public = (Category("OS", ("Win", "iOS", "Android")), Measure("ActiveTime", 1), Measure("Purchase", 2))
    return Table(2.0, private, (*public, Moment("Seen")), design, name="T")


@cache
def people() -> dict[str, list[Any]]:
    """Return the columns of all people. Python promises the numbers of `random.Random.random`."""
    draw = random.Random(71).random
    first = dt.date(2026, 1, 1)
    columns: dict[str, list[Any]] = {
        "Age": [18 + int(80 * draw() * draw()) for _ in range(PEOPLE)],
        "Salary": [int(200_000 * draw() ** 2) for _ in range(PEOPLE)],
        "State": [("NY", "NY", "WA", "CA", "TX", None)[int(6 * draw())] for _ in range(PEOPLE)],
        "Joined": [first + dt.timedelta(days=int(45 * draw())) for _ in range(PEOPLE)],
        "OS": [("Win", "iOS", "Android", "Android")[int(4 * draw())] for _ in range(PEOPLE)],
        "ActiveTime": [int(60 * draw()) / 10 for _ in range(PEOPLE)],
        "Purchase": [int(20_000 * draw() * draw()) / 100 for _ in range(PEOPLE)],
        "Seen": [first + dt.timedelta(days=int(180 * draw())) for _ in range(PEOPLE)],
    }
    return columns


class Asked:
    """One design's table: a folder with reports, and a study file that nobody has reported to."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.study = name, folder / "T", folder / "study.json"
        self.table = table(DESIGNS[name])
        rows = veil.sql.create(self.folder, self.table)
        public = self.table.encode_public(people())
        self.reports = self.table.survey.randomize(people(), SeededForExperiments(71), public)
        rows.append(self.reports, seeded=True)
        self.study.write_bytes(self.table.to_bytes())

    def document(self) -> Json:
        """Return the record of the table itself: its task, its reports, and what its answers promise."""
        digest = hashlib.sha256()
        for name in self.table.survey.layout.names:
            digest.update(self.reports.columns[name].tobytes())
        task = self.table.survey.task
        return {"design": self.name, "task": task, "reports": digest.hexdigest()}


# -- records of results ------------------------------------------------------------------------------------------------


def column(values: Sequence[Any]) -> Any:
    """Return a column of a record: the values, or of many the first ones, their sum and the SHA-256 of all."""
    listed = list(values)
    if len(listed) <= 2 * FIRST:
        return listed
    known = [value for value in listed if isinstance(value, (int, float))]
    text = json.dumps(listed, ensure_ascii=False).encode()
    return {
        "rows": len(listed),
        "first": listed[:FIRST],
        "unknown": sum(value is None for value in listed),
        "sum": math.fsum(known),
        "size": math.fsum(map(abs, known)),
        "sha256": hashlib.sha256(text).hexdigest()[:32],
    }


def answer_record(answer: Answer) -> Json:
    """Return the numbers, columns and structure of an answer."""
    made = answer.to_json()
    assert isinstance(made, dict)
    document: Any = made
    return {
        "n": document["n"],
        "population": document["population"],
        "people": column(document["people"]),
        "keys": _keys(document["keys"]),
        "outputs": {
            f"{place} {one['name']}": [column(one[part]) for part in ("values", "stderr", "sampling")]
            for place, one in enumerate(document["outputs"])
        },
        "promise": _digest([document["lineage"], document["guarantee"]]),
    }


def plan_record(plan: Explanation) -> Json:
    """Return the numbers, columns and structure of a plan."""
    made = plan.to_json()
    assert isinstance(made, dict)
    document: Any = made
    work = ("boxes", "groups", "cells", "pairs", "megabytes", "seconds", "rows", "n", "population")
    return {
        **{name: document[name] for name in work},
        "steps": len(document["steps"]),
        "keys": _keys(document["keys"]),
        "outputs": {
            f"{place} {one['name']}": [column(one[part]) for part in ("values", "stderr")]
            for place, one in enumerate(document["outputs"])
        },
        "promise": _digest([document["lineage"], document["guarantee"]]),
    }


def _keys(keys: Iterable[Json]) -> list[Any]:
    return [[key["name"], key["type"], column(key["labels"])] for key in keys]


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def result_record(result: Any) -> Json:
    """Return the record of an answer or of a plan."""
    return answer_record(result) if isinstance(result, Answer) else plan_record(result)


def texts_of(result: Any) -> list[str]:
    """Return what a result says in words."""
    if isinstance(result, Answer):
        return [*result.used, *result.remarks()]
    return [*(f"{step.what}: {step.how}" for step in result.steps), *result.remarks()]


# -- all queries -------------------------------------------------------------------------------------------------------


def replay(asked: Asked, queries: Iterable[str] = tuple(GOOD)) -> Iterator[tuple[str, Json, list[str]]]:
    """Yield the name, the record and the texts of everything that is asked of one design."""
    yield asked.name, asked.document(), []
    for reading in READINGS:
        with (
            veil.sql.open(asked.folder, reading=reading) as rows,
            veil.sql.open(asked.study, reading=reading) as study,
        ):
            for query in queries:
                for what in WHAT:
                    name = f"{asked.name} | {reading} | {query} | {what}"
                    yield name, *_asked(rows, study, GOOD[query], what)


def _asked(rows: Database, study: Database, text: str, what: What) -> tuple[Json, list[str]]:
    """Return the record and the texts of one result, or the class of its error."""
    try:
        result = rows.query(text) if what == "answer" else (rows if what == "plan" else study).explain(text)
    except VeilError as problem:
        return {"error": type(problem).__name__}, [str(problem)]
    return result_record(result), texts_of(result)


def replay_bad(asked: Asked) -> Iterator[tuple[str, Json]]:
    """Yield the name and the record of everything that is refused: the class of its error, and where it stands."""
    empty = veil.sql.create(asked.folder.with_name("empty"), asked.table).path
    odd: Any = "odd"
    with (
        veil.sql.open(asked.folder) as rows,
        veil.sql.open(asked.study) as study,
        veil.sql.open(empty) as nobody,
    ):
        for query, text in BAD.items():
            yield f"bad | {query}", _refused(partial(rows.query, text))
        count = GOOD["count"]
        yield "bad | a query of a study file", _refused(lambda: study.query(count))
        yield "bad | a query of an empty folder", _refused(lambda: nobody.query(count))
        yield "bad | a plan for a negative number of people", _refused(lambda: rows.explain(count, people=-1))
        yield "bad | too many groups", _refused(lambda: rows.query(MANY_GROUPS))
        yield "bad | a sum that overflows", _refused(lambda: rows.query(OVERFLOW))
        yield "bad | an unknown reading", _refused(lambda: veil.sql.open(asked.folder, reading=odd).table)
        yield "bad | an unknown output", _refused(lambda: rows.query(count).value("odd"))
        yield "bad | a folder that is not there", _refused(lambda: veil.sql.open(asked.folder / "nowhere"))


def _refused(ask: Callable[[], Any]) -> Json:
    """Return the class of an error, with its place in the query."""
    try:
        ask()
    except SqlError as problem:
        return {"error": "SqlError", "line": problem.line, "column": problem.column}
    except VeilError as problem:
        return {"error": type(problem).__name__}
    return {"error": None}


def written_texts(asked: str) -> bool:
    """Return whether the texts of a record are kept: those of the default design and reading."""
    return asked.startswith(f"{EVERYDAY} | levels | ")


def record(design: str, queries: Iterable[str] = tuple(GOOD)) -> tuple[dict[str, Json], dict[str, list[str]]]:
    """Return the records of a design, and the texts beside them, by name."""
    records, texts = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, one, said in replay(Asked(design, Path(folder)), queries):
            records[name] = one
            if written_texts(name):
                texts[name] = said
    if design == EVERYDAY:
        with tempfile.TemporaryDirectory() as folder:
            records |= dict(replay_bad(Asked(design, Path(folder))))
    return records, texts


def tolerance(name: str) -> float:
    """Return by how much the numbers of a record may differ, relative to each: see the decision on guards."""
    return 1e-9 if name.startswith("Grids | ") else 1e-12 if " | plan" in name else 0.0


def difference(expected: Any, found: Any, tolerance: float = 0.0, where: str = "") -> str | None:
    """Return where a record first differs from the recorded one, or None.

    Numbers are equal to the last bit. With a tolerance they differ by at most that share of the larger one, and
    digests are passed over.
    """
    if isinstance(expected, dict) and isinstance(found, dict) and list(expected) == list(found):
        left_out = {"sum", "sha256"} if tolerance and "size" in expected else set()
        if left_out and abs(expected["sum"] - found["sum"]) > tolerance * expected["size"]:  # terms may cancel
            return f"{where}.sum: {expected['sum']!r} became {found['sum']!r}"
        pairs = [(f".{name}", expected[name], found[name]) for name in expected if name not in left_out]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [(f"[{place}]", *pair) for place, pair in enumerate(zip(expected, found, strict=True))]
    elif tolerance and isinstance(expected, float) and isinstance(found, float):
        return None if math.isclose(expected, found, rel_tol=tolerance) else f"{where}: {expected!r} became {found!r}"
    else:
        return None if repr(expected) == repr(found) else f"{where}: {expected!r} became {found!r}"
    inner = (difference(old, new, tolerance, f"{where}{place}") for place, old, new in pairs)
    return next((one for one in inner if one is not None), None)


def read_records() -> dict[str, Json]:
    """Return the records of the fixture by name."""
    with gzip.open(NUMBERS, "rt", encoding="utf-8") as file:
        return dict(json.loads(line) for line in file)


def write_records(records: dict[str, Json]) -> None:
    """Write the fixture; the same records make the same bytes."""
    lines = "".join(f"{json.dumps(item, ensure_ascii=False)}\n" for item in sorted(records.items()))
    NUMBERS.write_bytes(gzip.compress(lines.encode(), mtime=0))


def main(words: Sequence[str]) -> None:
    """Record all designs, or those that are named; with `texts`, their texts alone."""
    HOUSE.mkdir(parents=True, exist_ok=True)
    designs = [word for word in words if word in DESIGNS] or list(DESIGNS)
    for design in [EVERYDAY] if "texts" in words else designs:
        records, texts = record(design)
        if texts:
            TEXTS.write_text(json.dumps(texts, ensure_ascii=False, indent=1) + "\n")
        if "texts" not in words:
            old = read_records() if NUMBERS.exists() else {}
            again = {name.split(" | ")[0] for name in records}
            write_records({name: one for name, one in old.items() if name.split(" | ")[0] not in again} | records)


if __name__ == "__main__":
    main(sys.argv[1:])
