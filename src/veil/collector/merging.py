"""Many runs of ids become one, a segment at a time, so that nobody waits for long and little is held in memory.

All that a merge has done stands in the database: its plan, which names the runs that it merges, and the segments that
it has written. A step is a transaction of its own while the survey is locked, so that any collector may do the next
one, whatever became of the one that did the last. A run counts from when it has its head (page 0): the last segment
comes with it, and the heads of the runs that it replaces go in the same transaction. Their pages are erased in steps,
too. Not here: when steps are made (`blocks`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from veil.collector import seen as seen_ids
from veil.collector.seen import Run, Seen, Segment, pages_of, segments_of, sorted_names
from veil.collector.sql import Connection
from veil.errors import StoreError
from veil.wire.frames import ID_BYTES

if TYPE_CHECKING:
    from veil.collector.blocks import BlockStore

__all__ = ["Merging", "Rows", "rows_of_run"]

_HEAD = 0  # the page that makes a run: its only segment, or nothing where segments have pages -1, -2, ...
_PLANS = 0  # the run whose pages are plans: of a run that is made of others, their numbers, until they are erased
_ERASED_ROWS = 256  # in a step

Rows = list[tuple[int, bytes]]
"""Of a run: the number of a page and its data."""


def rows_of_run(ids: bytes, key: bytes) -> Rows:
    """A whole run of sorted ids."""
    segments = [Segment.of(part, key).to_bytes() for part in segments_of(ids)]
    if len(segments) == 1:
        heads = [(_HEAD, segments[0])]
    else:
        heads = [(_HEAD, b""), *((-i, data) for i, data in enumerate(segments, 1))]
    return [*heads, *enumerate(pages_of(ids), 1)]


class Merging:
    """Merges the runs of a survey, within a transaction that has locked it; `seen` is what the database holds.

    After a step, `made` has the segments that it wrote, by their places, and `is_over` says whether the runs changed.
    """

    def __init__(self, store: BlockStore, connection: Connection, survey: int, seen: Seen) -> None:
        self._store, self._connection, self._survey, self._seen = store, connection, survey, seen
        self._table = store.table("runs", survey)
        self._runs = {run.number: run for run in seen.runs}
        self.made: dict[tuple[int, int], Segment | None] = {}
        self.is_over = False

    def step(self, pages: int) -> int | None:
        """Do the next step, of about so many pages; how many they were, or None where there is nothing to do."""
        plans = self._plans()
        for target, sources in plans.items():
            if target in self._runs:
                return self._erase(target, sources)
        for level in range(seen_ids.LEVELS):
            mine = [run for run in self._seen.runs if run.level == level]
            for target, sources in plans.items():
                if any(run.number in sources for run in mine):
                    return self._write(target, [self._runs[number] for number in sources], pages)
            if len(mine) >= seen_ids.MERGED:
                chosen = sorted(mine, key=lambda run: run.count)[: seen_ids.MERGED]
                target = self._store.new_run(self._connection, self._survey)
                self._store.write_run(self._connection, self._survey, _PLANS, [(target, _listed(chosen))])
                return self._write(target, chosen, pages)
        return None

    def _plans(self) -> dict[int, list[int]]:
        statement = f"SELECT page, data FROM {self._table} WHERE survey = ? AND run = ? ORDER BY page"  # noqa: S608
        found = self._connection.execute(statement, (self._survey, _PLANS)).fetchall()
        return {target: [int(number) for number in bytes(data).split()] for target, data in found}

    def _write(self, target: int, sources: Sequence[Run], pages: int) -> int:
        """The next segment of a run, which holds all ids of its sources up to some place; after the last, its head."""
        written, after, segments = self._progress(target)
        cut = _cut(sources, after, pages)
        places = [(run.number, page) for run in sources for page in _pages_between(run, after, cut)]
        read = self._store.read_pages(self._connection, self._survey, places)
        ids = _between(sorted_names(b"".join(data for _, data in read)), after, cut)
        rows: Rows = list(enumerate(pages_of(ids), written + 1))
        if ids:
            segment = self.made[target, -segments - 1] = Segment.of(ids, sources[0].key)
            rows.append((-segments - 1, segment.to_bytes()))
        if cut is None:
            self.made[target, _HEAD] = None
            rows.append((_HEAD, b""))
        self._store.write_run(self._connection, self._survey, target, rows)
        if cut is None:
            self._replace(target, sources)
        return len(places)

    def _progress(self, target: int) -> tuple[int, bytes, int]:
        """How many pages of a run were written, the last id in them, and how many segments."""
        mine = f"FROM {self._table} WHERE survey = ? AND run = ?"
        last = f"SELECT page, data {mine} AND page > 0 ORDER BY page DESC LIMIT 1"
        row = self._connection.execute(last, (self._survey, target)).fetchone()
        if row is None:
            return 0, b"", 0
        count = f"SELECT count(*) {mine} AND page < 0"
        (segments,) = self._connection.execute(count, (self._survey, target)).fetchone()
        return row[0], bytes(row[1])[-ID_BYTES:], segments

    def _replace(self, target: int, sources: Sequence[Run]) -> None:
        """From now on the new run stands for its sources. Not an id may be missing: it would be taken twice."""
        total = f"SELECT sum(length(data)) FROM {self._table} WHERE survey = ? AND run = ? AND page > 0"  # noqa: S608
        (size,) = self._connection.execute(total, (self._survey, target)).fetchone()
        if size != ID_BYTES * sum(run.count for run in sources):
            raise StoreError("a merged run of report ids is not as long as those that it was made of")
        erase = f"DELETE FROM {self._table} WHERE survey = ? AND run = ? AND page = ?"  # noqa: S608
        self._connection.executemany(erase, [(self._survey, run.number, _HEAD) for run in sources])
        self._store.note_folded(self._connection, self._survey)
        self.is_over = True

    def _erase(self, target: int, sources: Sequence[int]) -> int:
        """Some pages of runs that were replaced; the plan is done when there are none."""
        one = f"FROM {self._table} WHERE survey = ? AND run = ?"
        some = f"DELETE {one} AND page IN (SELECT page {one} LIMIT ?)"
        for number in sources:
            which = (self._survey, number)
            if erased := self._connection.execute(some, (*which, *which, _ERASED_ROWS)).rowcount:
                return erased
        self._connection.execute(f"DELETE {one} AND page = ?", (self._survey, _PLANS, target))
        return 1


def _listed(runs: Sequence[Run]) -> bytes:
    return " ".join(str(run.number) for run in runs).encode()


def _cut(runs: Sequence[Run], after: bytes, pages: int) -> bytes | None:
    """The id where so many pages of some runs have begun beyond another id; None where fewer begin there."""
    firsts: list[bytes] = []
    for run in runs:
        start = bisect_right(run.firsts, after)
        firsts += run.firsts[start : start + pages + 1]
    return sorted(firsts)[pages] if len(firsts) > pages else None


def _pages_between(run: Run, after: bytes, cut: bytes | None) -> Iterator[int]:
    """The pages of a run with ids beyond one and before another."""
    stop = len(run.firsts) if cut is None else bisect_left(run.firsts, cut)
    return iter(range(run.page(after), stop + 1))


def _between(ids: bytes, after: bytes, cut: bytes | None) -> bytes:
    """Those of sorted ids that are beyond one and before another."""
    places = range(len(ids) // ID_BYTES)

    def name(i: int) -> bytes:
        return ids[ID_BYTES * i : ID_BYTES * (i + 1)]

    start = bisect_right(places, after, key=name) if after else 0
    stop = len(places) if cut is None else bisect_left(places, cut, key=name)
    return ids[ID_BYTES * start : ID_BYTES * stop]
