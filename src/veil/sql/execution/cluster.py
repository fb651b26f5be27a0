"""Queries over reports that the tasks of a cluster count: the driver's side, and the functions that tasks run.

Tasks run the passes of a query over their share of the rows, through DuckDB as on one machine, and the driver adds up
the results. Everything that is added up is an integer, so the split does not matter: answers are those of one machine,
bit by bit. `veil.engines.spark.tasks` calls `know`, `count` and `scan` by name on the workers, with text, bytes and
integers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from veil.errors import EmptyError
from veil.reports.columns import Reports
from veil.sql.execution.accumulators import reading_of
from veil.sql.execution.duckdb import LockedDuckDB, select
from veil.sql.execution.passes import Passes, combined
from veil.sql.execution.rows import ClassCounts, CollectedRows, Rows, add_products, anything, counted_by
from veil.sql.execution.sums import Grams, add_words
from veil.sql.language.parsing import parse as parse_query
from veil.sql.table import Table
from veil.study.study import read_study_file
from veil.survey import Survey
from veil.tools.json_documents import parse_json

if TYPE_CHECKING:
    import duckdb

    from veil.sql.execution.accumulators import Accumulator
    from veil.sql.language.query import Query
    from veil.study import Collection

Arguments = dict[str, Any]
_HERE = "veil.sql.execution.cluster"
_PORTION = 64 << 20
_STATE_BYTES = 16 << 20


@runtime_checkable
class ClusterReports(Protocol):
    """Reports that a cluster goes through: `veil.engines.spark.SparkCollection`."""

    survey: Survey

    @property
    def people(self) -> int: ...

    def parts(self, part: str, arguments: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
        """Run a function over all reports, each task over its share."""


def rows_of(table: Table, collected: Collection) -> Rows:
    """The rows of a table whose reports were collected, wherever they are."""
    return (
        DistributedRows(table, collected) if isinstance(collected, ClusterReports) else CollectedRows(table, collected)
    )


class DistributedRows(CollectedRows):
    """Runs at the driver: the rows of a table, gone through by the tasks of a cluster."""

    @cached_property
    def _database(self) -> _ClusterDuckDB:
        assert isinstance(self._collected, ClusterReports)
        return _ClusterDuckDB(self.table, self._collected)

    def count(
        self,
        sums: Sequence[str],
        atoms: Sequence[str] = (),
        keys: Sequence[str] = (),
        where: str | None = None,
        admit: Callable[[int, int], None] = anything,
    ) -> ClassCounts:
        passes = Passes(self._database, sums, atoms, keys, where)
        found: dict[int, list[Any]] = {0: [], 1: []}
        for block, data in self._database.parted("count", asked=passes.asked):
            found[block].append(as_table(data))
        if not found[0]:
            raise EmptyError("nobody answered: expected at least one report")
        self._add_people(passes, found[0])
        counted = counted_by(passes, admit)
        if counted.grams is not None:
            self._add_products(counted.grams, passes, found[1])
        return counted

    def _add_people(self, passes: Passes, found: Sequence[Any]) -> None:
        """Make the table of classes from the numbers of people that tasks found."""
        partial, choice, people = passes.name("partial"), passes.name("c"), passes.name("n")
        with _registered(passes, partial, found):
            whole = [*passes.groups, choice, f"CAST(sum({people}) AS BIGINT) AS {people}"]
            by_choice = select(whole, partial, "GROUP BY ALL")
            passes.database.execute(passes.connection, passes.count(by_choice))

    def _add_products(self, grams: Grams, passes: Passes, found: Sequence[Any]) -> None:
        """Add up the sums of products of weights that tasks found."""
        partial, place, words = passes.name("partial"), passes.name("i"), passes.name("words")
        rows = max(1, _STATE_BYTES // grams.words[0].nbytes)
        with _registered(passes, partial, found):
            both = f"{partial} AS a JOIN {passes.found} AS b ON {passes.same('a', 'b')}"
            placed = select([f"b.{place}", f"a.{words}"], both)
            for batch in passes.database.batches(passes.connection, placed, rows):
                for index, state in zip(*batch.columns, strict=True):
                    add_words(grams.words[index.as_py()], state.as_buffer())

    def fill(self, query: Query, reading: Accumulator) -> None:
        passes = reading.counted.passes
        shown = [passes.name("i"), *passes.groups, passes.name("choices"), passes.name("answered")]
        batches = list(passes.database.batches(passes.connection, select(shown, passes.found), 1 << 16))
        arguments = {"asked": passes.asked, "query": query.text, "classes": as_bytes(batches)}
        states: dict[int, list[bytes]] = {}
        for block, state in self._database.parted("scan", **arguments):
            states.setdefault(block, []).append(state)
        for own in zip(*(states[block] for block in sorted(states)), strict=True):
            reading.merge(own)


@contextlib.contextmanager
def _registered(passes: Passes, name: str, tables: Sequence[Any]) -> Iterator[None]:
    """What tasks found, as one table of this name."""
    import pyarrow as pa

    passes.connection.register(name, pa.concat_tables(tables, promote_options="permissive"))
    try:
        yield
    finally:
        passes.connection.unregister(name)


class _ClusterDuckDB(LockedDuckDB):
    """A database without rows that knows what expressions mean; what depends on rows it asks the cluster."""

    def __init__(self, table: Table, collected: ClusterReports) -> None:
        super().__init__(table, 0, reports=tuple)
        self._collected = collected

    def parted(self, part: str, **arguments: Any) -> Iterator[tuple[int, bytes]]:
        """What the tasks give back, by block."""
        common = {"study": self.table.to_bytes(), "token": self.token, "known": dict(self.known)}
        return self._collected.parts(f"{_HERE}:{part}", {**common, **arguments})

    def asked(self, part: str, **arguments: Any) -> list[bytes]:
        """What the tasks give back, where there is one block."""
        return [data for _, data in self.parted(part, **arguments)]

    def _aggregated(self, connection: duckdb.DuckDBPyConnection, aggregates: Sequence[str]) -> Sequence[Any]:
        found = [json.loads(data) for data in self.asked("know", aggregates=tuple(aggregates))]
        if not found:
            return super()._aggregated(connection, aggregates)
        return [combined(sql, parts) for sql, parts in zip(aggregates, zip(*found, strict=True), strict=True)]


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
