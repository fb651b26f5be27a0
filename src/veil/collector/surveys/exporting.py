"""Exports of reports as Parquet: the columns of the task and the truncated time, without ids, in a random order.

All reports are dealt at random to parts of about 2^18 rows, in a file without a name; each part is shuffled and becomes
one row group. So nothing is left of the order of arrival, and memory holds one part.
"""

from __future__ import annotations

import math
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from veil.collector.store.base import Store, StoredSurvey
from veil.collector.surveys.catalogue import parsed, read_by
from veil.errors import InputError
from veil.files import EXPORTED_TIME
from veil.files.arrow_files import create_file
from veil.files.reports import repeating
from veil.reports.columns import Reports
from veil.survey import Survey
from veil.tools.filesystem import atomic_replacement, make_private_folder, sync_folder
from veil.wire.arrow import arrow_schema, to_arrow

_MOST_ROWS = 65_536
_CHUNK_BYTES = 8 << 20
_PART_ROWS = 1 << 18
_LONG_PAYLOAD = 256  # bytes: parts of longer ones have half as many rows
_GROUPS_OF_A_FILE = 16
_MOST_GROUP = 1 << 20
_DAY = 86_400

ReportRows = NDArray[np.void]


def export_parquet(store: Store, stored: StoredSurvey, out: Path) -> int:
    """Write the reports of a survey up to its mark to a Parquet file, and return their number."""
    survey, written = read_by(stored), 0
    with (
        _dealt(store, stored, survey, out.parent, by_day=False) as dealt,
        atomic_replacement(out) as temporary,
        _writer(temporary, stored) as write,
    ):
        for _, part in dealt.parts():
            written += write(part)
    return written


def export_folder(store: Store, stored: StoredSurvey, out: Path) -> int:
    """Write the same to a folder of Parquet files, `task=.../day=YYYY-MM-DD/part-*.parquet`. Returns how many.

    The names of the folders are columns for Spark, DuckDB and others that know Hive's way. The folder appears once it
    is whole.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already: expected a new folder")
    survey, written = read_by(stored), 0
    out.parent.mkdir(parents=True, exist_ok=True)
    with _dealt(store, stored, survey, out.parent, by_day=True) as dealt:
        temporary = out.with_name(f".{out.name}.{secrets.token_hex(4)}")
        temporary.mkdir()
        try:
            for day, parts in dealt.files():
                text = datetime.fromtimestamp(day, UTC).strftime("%Y-%m-%d")
                folder = temporary / f"task={stored.task}" / f"day={text}"
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"part-{sum(1 for _ in folder.iterdir()):05d}.parquet"
                with _writer(path, stored) as write:
                    for part in parts:
                        written += write(part)
            temporary.replace(out)
            sync_folder(out.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return written


def open_export(store: Store, stored: StoredSurvey, folder: Path) -> BinaryIO:
    """A file of the same, open and without a name: whatever becomes of the reader, nothing is left of it."""
    make_private_folder(folder)
    with tempfile.TemporaryDirectory(prefix="export-", dir=folder) as private:  # its owner alone may enter
        path = Path(private) / "reports.parquet"
        export_parquet(store, stored, path)
        return path.open("rb")


@dataclass
class _Dealt:
    """Reports in a file, dealt to the parts of each day, with the positions of the pieces of each part."""

    spill: BinaryIO
    kind: np.dtype[Any]
    chance: np.random.Generator
    counts: dict[int, int]
    """How many parts each day has; without days, all are in day 0."""
    pieces: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)

    def deal(self, day: int, rows: ReportRows) -> None:
        """Give each row to a part of its day, at random."""
        parts = self.chance.integers(0, self.counts[day], len(rows))
        order = np.argsort(parts, kind="stable")
        for part in np.unique(parts).tolist():
            data = rows[order[np.searchsorted(parts[order], part) : np.searchsorted(parts[order], part, "right")]]
            self.pieces.setdefault((day, part), []).append((self.spill.tell(), data.nbytes))
            self.spill.write(data.tobytes())

    def parts(self) -> Iterator[tuple[int, ReportRows]]:
        """Each part with its day, shuffled."""
        for (day, _), pieces in sorted(self.pieces.items()):
            data = b"".join(self._piece(start, size) for start, size in pieces)
            yield day, self.chance.permutation(np.frombuffer(data, self.kind))

    def files(self) -> Iterator[tuple[int, Iterator[ReportRows]]]:
        """Some parts of one day at a time, as many as make a file."""
        parts = self.parts()
        for day, count in sorted(self.counts.items()):
            have = sum(1 for place in self.pieces if place[0] == day)  # a part may have got no row
            for start in range(0, min(count, have), _GROUPS_OF_A_FILE):
                most = min(_GROUPS_OF_A_FILE, have - start)
                yield day, (part for _, (_, part) in zip(range(most), parts, strict=False))

    def _piece(self, start: int, size: int) -> bytes:
        self.spill.seek(start)
        return self.spill.read(size)


@contextmanager
def _dealt(store: Store, stored: StoredSurvey, survey: Survey, folder: Path, *, by_day: bool) -> Iterator[_Dealt]:
    """All reports up to the survey's mark, dealt out; what is written to the disk for that is gone at the end."""
    size, now = survey.layout.size, store.survey(stored.key)
    mark = now.mark
    kind = np.dtype([("time", "<i8"), ("payload", "u1", (size,))])
    each = _PART_ROWS if size <= _LONG_PAYLOAD else _PART_ROWS // 2
    days: dict[int, int] = {}
    for bucket, count in store.buckets(stored.key, mark):
        day = bucket // _DAY * _DAY if by_day else 0
        days[day] = days.get(day, 0) + count
    counts = {day: math.ceil(count / each) for day, count in days.items()}
    most = max(1, min(_MOST_ROWS, _CHUNK_BYTES // size))
    with store.steady(), tempfile.TemporaryFile(dir=folder) as spill:
        dealt, after = _Dealt(spill, kind, np.random.default_rng(), counts), 0
        found = 0
        while chunk := store.chunk(stored.key, after, most, mark):
            after, found = chunk.last, found + chunk.missing
            if not chunk.payloads:
                continue
            rows = np.zeros(len(chunk.payloads) // size, kind)
            rows["payload"] = np.frombuffer(chunk.payloads, np.uint8).reshape(-1, size)
            times, repeats = np.array(chunk.buckets, dtype=np.int64).T
            rows["time"] = np.repeat(times, repeats)
            of = rows["time"] // _DAY * _DAY if by_day else np.zeros(len(rows), np.int64)
            for day in np.unique(of).tolist():
                dealt.deal(day, rows[of == day])
            found += len(rows)
        if found < mark:
            raise InputError("the reports of this survey were purged: there are none to export")
        yield dealt


@contextmanager
def _writer(path: Path, stored: StoredSurvey) -> Iterator[Callable[[ReportRows], int]]:
    """What writes a part to a Parquet file as one row group, and says how many rows it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    survey, wave = read_by(stored), parsed(stored.document).wave
    times = pa.field(EXPORTED_TIME, pa.timestamp("s", tz="UTC"), nullable=False)
    plain = arrow_schema(survey, wave=wave)
    schema = plain.append(times).with_metadata(plain.metadata)
    columns: Sequence[str] = [*repeating(survey), EXPORTED_TIME]
    with create_file(path) as sink, pq.ParquetWriter(sink, schema, use_dictionary=columns) as writer:

        def write(rows: ReportRows) -> int:
            reports = Reports.from_bytes(survey.task, survey.layout, rows["payload"].tobytes())
            batch = to_arrow(reports, survey)
            stamps = pa.array(rows["time"], pa.int64()).cast(times.type)
            writer.write_batch(
                pa.RecordBatch.from_arrays([*batch.columns, stamps], schema=schema), row_group_size=_MOST_GROUP
            )
            return len(rows)

        yield write
