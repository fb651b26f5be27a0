"""What the tasks of a cluster do for a query: each over its share of the rows, through DuckDB as on one machine.

Called by name on the workers, with text, bytes and integers: see `veil.engines.spark.tasks`. The driver's side is
`distributed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from veil.reports.columns import Reports
from veil.sql.locked import LockedDuckDB
from veil.sql.parsing import parse as parse_query
from veil.sql.passes import Passes
from veil.sql.readings import reading_of
from veil.sql.rows import Rows, add_products, counted_by
from veil.sql.table import Table
from veil.study.study import read_study_file
from veil.survey import Survey
from veil.tools.json_documents import parse_json

__all__ = ["as_bytes", "as_table", "count", "know", "scan"]

Arguments = dict[str, Any]
_PORTION = 64 << 20


def know(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """Aggregates over some of the rows, in the order in which they are asked for."""
    for rows in _portions(arguments, chunks):
        database = rows.database()
        found = database.know(database.cursor(), arguments["aggregates"])
        yield 0, json.dumps(found).encode()


def count(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """The first passes over some of the rows, as tables of Arrow's: block 0 has numbers of people by class and choice,
    block 1 the sums of products of weights by class.
    """
    import pyarrow as pa

    for rows in _portions(arguments, chunks):
        passes = Passes(rows.database(), *arguments["asked"])
        passes.database.execute(passes.connection, passes.count())
        counted = counted_by(passes)
        if not counted.classes:
            continue
        choices, answered = passes.name("choices"), passes.name("answered")
        people = [f"unnest({choices}) AS {passes.name('c')}", f"unnest({answered}) AS {passes.name('n')}"]
        yield 0, as_bytes(passes.database.batches(passes.connection, passes.of_classes(people), 1 << 16))
        if counted.grams is not None:
            add_products(counted)
            groups = pa.Table.from_batches(passes.database.batches(passes.connection, passes.of_classes([]), 1 << 16))
            words = pa.array([one.tobytes() for one in counted.grams.words], pa.large_binary())
            yield 1, as_bytes(groups.append_column(passes.name("words"), words).to_batches())


def scan(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """The second pass over some of the rows: what the reading of the query adds up."""
    table = _table(arguments["study"])
    for rows in _portions(arguments, chunks):
        passes = Passes(rows.database(), *arguments["asked"])
        passes.connection.register(passes.found, as_table(arguments["classes"]))
        reading = reading_of(parse_query(arguments["query"], table), table, counted_by(passes))
        reading.add(rows)
        yield from enumerate(reading.state())


class _Portion(Rows):
    """Some rows of a table, in DuckDB's memory."""

    def __init__(self, table: Table, reports: list[Reports], arguments: Arguments) -> None:
        self.table = table
        self._people = sum(map(len, reports))
        self._database = LockedDuckDB(table, 0, reports=lambda: reports, token=arguments["token"])
        self._database.known = dict(arguments["known"])

    @property
    def people(self) -> int:
        return self._people

    def database(self) -> LockedDuckDB:
        return self._database


def _portions(arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[_Portion]:
    """The rows of a task, no more at a time than DuckDB holds in memory."""
    table = _table(arguments["study"])
    waiting: list[Reports] = []
    size = 0
    for chunk in chunks:
        if len(chunk):
            waiting.append(chunk)
            size += len(chunk) * table.survey.layout.size
        if size >= _PORTION:
            yield _Portion(table, waiting, arguments)
            waiting, size = [], 0
    if waiting:
        yield _Portion(table, waiting, arguments)


@lru_cache(maxsize=8)
def _table(study: bytes) -> Table:
    found = read_study_file(parse_json(study), {Table.kind: Table})
    assert isinstance(found, Table)
    return found


def as_bytes(batches: Iterable[Any]) -> bytes:
    """Record batches as bytes."""
    import pyarrow as pa

    given = list(batches)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, given[0].schema) as writer:
        for batch in given:
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def as_table(data: bytes) -> Any:
    """The table of Arrow's behind bytes."""
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_all()
