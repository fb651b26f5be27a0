"""The rows of a table whose reports are counted by the tasks of a cluster: the driver's side of a query.

Tasks run the two passes of a query over their rows (`parts`), and the driver adds up what they found. Everything that
is added up is an integer, so the split does not show: answers are those of one machine, bit by bit.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from veil.errors import EmptyError
from veil.sql.gram import Grams, add_words
from veil.sql.locked import LockedDuckDB, select
from veil.sql.parts import as_bytes, as_table
from veil.sql.passes import Passes
from veil.sql.rows import CollectedRows, Counted, Rows, anything, counted_by
from veil.sql.weights import combined

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from veil.sql.query import Query
    from veil.sql.readings import Reading
    from veil.sql.table import Table
    from veil.study import Collected
    from veil.survey import Survey

__all__ = ["DistributedRows", "rows_of"]

_HERE = "veil.sql.parts"
_STATE_BYTES = 16 << 20


@runtime_checkable
class Distributed(Protocol):
    """Reports that a cluster goes through: `veil.engines.spark.SparkCollected`."""

    survey: Survey

    @property
    def people(self) -> int: ...

    def parts(self, part: str, arguments: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
        """Run a function over all reports, each task over its share."""


def rows_of(table: Table, collected: Collected) -> Rows:
    """The rows of a table whose reports were collected, wherever they are."""
    return DistributedRows(table, collected) if isinstance(collected, Distributed) else CollectedRows(table, collected)


class DistributedRows(CollectedRows):
    """Runs at the driver: the rows of a table, gone through by the tasks of a cluster."""

    @cached_property
    def _database(self) -> _Far:
        assert isinstance(self._collected, Distributed)
        return _Far(self.table, self._collected)

    def count(
        self,
        sums: Sequence[str],
        atoms: Sequence[str] = (),
        keys: Sequence[str] = (),
        where: str | None = None,
        admit: Callable[[int, int], None] = anything,
    ) -> Counted:
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

    def fill(self, query: Query, reading: Reading) -> None:
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


class _Far(LockedDuckDB):
    """A database without rows that knows what expressions mean; what depends on rows it asks the cluster."""

    def __init__(self, table: Table, collected: Distributed) -> None:
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
