"""Files of reports: written chunk by chunk as Arrow or Parquet, and read group by group.

Three kinds of files hold reports: Arrow and Parquet, as `veil randomize` or a collector writes them, and Parquet that
Spark wrote, with a column of payloads. A group is a record batch of an Arrow file or a row group of a Parquet file, and
can be read by itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from veil.entropy import CHUNK_ROWS
from veil.errors import InputError, MismatchError, WireError
from veil.files.arrow_files import (
    ARROW,
    PARQUET,
    PathLike,
    create_file,
    open_arrow,
    open_parquet,
    open_parquet_at,
    readable,
    record_batch,
)
from veil.reports.columns import Reports
from veil.reports.tally import check_fakes
from veil.survey import Survey
from veil.tools.filesystem import atomic_replacement
from veil.wire.arrow import arrow_schema, check_schema, fakes_of, reports_of, seeded_of, to_arrow, wave_of
from veil.wire.frames import VERSION, check_payloads, from_payloads, task_of

EXPORTED_TIME = "time"
"""The column of truncated times in what a collector exports."""

REPORT_ID = "report_id"
"""The column of ids by which a report that arrived twice is recognised, where a file has them."""

BESIDE = (EXPORTED_TIME, REPORT_ID)
"""Columns that may stand beside those of a report and are no part of it."""

_GROUP_ROWS = 1 << 17


class ReportsFile:
    """A file of reports of one survey, opened and its schema checked. A path, or an address such as s3://bucket/key.

    A file with fakes in it is refused unless `fakes` says that whoever reads takes them off, by their number.
    """

    def __init__(self, path: PathLike, survey: Survey, *, fakes: bool = False) -> None:
        self.path, self.survey = str(path), survey
        self._stack = contextlib.ExitStack()
        self._parquet = Path(self.path).suffix.lower() in PARQUET
        with readable(self.path, "Parquet" if self._parquet else "Arrow"):
            opened = open_parquet_at(self.path) if self._parquet else open_arrow(Path(self.path))
            self._file = self._stack.enter_context(opened)
        self._schema = self._file.schema_arrow if self._parquet else self._file.schema
        self.by_payload = self._parquet and task_of(self._schema) is not None
        try:
            self._check(fakes)
        except BaseException:
            self.close()
            raise

    def _check(self, fakes: bool) -> None:
        if self.by_payload:
            if task_of(self._schema) != self.survey.task:
                raise MismatchError("these reports were made for another task")
            check_payloads(self._schema.names, self.survey)
        else:
            check_schema(_plain_schema(self._schema), self.survey, fakes=fakes)

    @property
    def fakes(self) -> int:
        """How many of the reports are nobody's, by what the file says."""
        return fakes_of(self._schema)

    @property
    def wave(self) -> int:
        """Which wave of the survey the reports are of."""
        return wave_of(self._schema)

    @property
    def seeded(self) -> bool:
        """True if the reports were drawn from a seed, by what the file says."""
        return seeded_of(self._schema)

    @property
    def has_ids(self) -> bool:
        """Whether each report has an id beside it."""
        return REPORT_ID in self._schema.names

    def check_ids(self) -> None:
        """Refuse ids that are not bytes or text."""
        import pyarrow.types as kinds

        kind = self._schema.field(REPORT_ID).type if self.has_ids else None
        if kind is not None and not any(
            of(kind) for of in (kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary, kinds.is_string)
        ):
            raise WireError(f"column {REPORT_ID!r} holds bytes or text")

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """How many reports each group holds."""
        if self._parquet:
            metadata = self._file.metadata
            return tuple(int(metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups))
        import pyarrow as pa

        with (
            readable(self.path, "Parquet" if self._parquet else "Arrow"),
            pa.memory_map(os.fsencode(self.path)) as mapped,
            pa.ipc.open_file(mapped) as file,
        ):
            # maps the columns, and reads none
            return tuple(int(file.get_batch(i).num_rows) for i in range(file.num_record_batches))

    def read(self, groups: Sequence[int] | None = None, rows: int = CHUNK_ROWS) -> Iterator[Reports]:
        """The reports of some groups, or of all: of Parquet at most `rows` at a time, of Arrow a batch at a time."""
        return map(self.reports, self.batches(groups, rows))

    def reports(self, batch: Any) -> Reports:
        """The reports of one of this file's record batches, strictly checked."""
        if self.by_payload:
            return from_payloads(batch, self.survey)
        names = [name for name in batch.schema.names if name not in BESIDE]
        return reports_of(batch.select(names) if len(names) < batch.num_columns else batch, self.survey)

    def batches(self, groups: Sequence[int] | None = None, rows: int = CHUNK_ROWS) -> Iterator[Any]:
        """The same as record batches, with whatever columns stand beside the reports."""
        with readable(self.path, "Parquet" if self._parquet else "Arrow"):
            if self._parquet:
                yield from self._file.iter_batches(rows, row_groups=None if groups is None else list(groups))
                return
            for i in range(self._file.num_record_batches) if groups is None else groups:
                yield record_batch(self._file, i)

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    def __enter__(self) -> ReportsFile:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


class ReportWriter:
    """Reports to an Arrow file, chunk by chunk; the file appears only once it is whole.

    `fakes` says how many of all its reports are nobody's: uniform ones that shufflers added; `seeded` that a
    seed drew their noise. A private file may be read by its owner alone.
    """

    def __init__(
        self, path: PathLike, survey: Survey, *, fakes: int = 0, seeded: bool = False, private: bool = False
    ) -> None:
        self._survey, self._private = survey, private
        self._fakes, self._seeded = fakes, seeded
        self._stack = contextlib.ExitStack()
        self._path = path
        self._writer: Any = None
        self.rows = 0

    def __enter__(self) -> ReportWriter:
        import pyarrow as pa

        with contextlib.ExitStack() as stack:
            temporary = stack.enter_context(atomic_replacement(self._path, private=self._private))
            schema = arrow_schema(self._survey, self._fakes, seeded=self._seeded)
            sink = stack.enter_context(create_file(temporary))
            self._writer = stack.enter_context(pa.ipc.new_file(sink, schema))
            self._stack = stack.pop_all()
        return self

    def write(self, reports: Reports) -> None:
        self._writer.write_batch(to_arrow(reports, self._survey))
        self.rows += len(reports)

    def __exit__(self, *problem: Any) -> bool | None:
        if problem[0] is None and self._fakes:
            try:
                check_fakes(self._fakes, self.rows)
            except InputError as refused:  # the file does not appear
                self._stack.__exit__(type(refused), refused, refused.__traceback__)
                raise
        return self._stack.__exit__(*problem)


def write_parquet(
    path: PathLike, survey: Survey, reports: Iterable[Reports], *, fakes: int = 0, seeded: bool = False
) -> int:
    """Write reports to a Parquet file at this very place, and say how many. The same reports make the same bytes.

    `fakes` says how many of them are nobody's: uniform ones that shufflers added; `seeded` that a seed drew
    their noise.
    """
    import pyarrow.parquet as pq

    rows, schema = 0, arrow_schema(survey, fakes, seeded=seeded)
    with (
        create_file(path) as sink,
        pq.ParquetWriter(sink, schema, use_dictionary=repeating(survey), write_statistics=False) as writer,
    ):
        for some in _joined(reports):
            survey.check(some)
            writer.write_batch(to_arrow(some, survey), row_group_size=_GROUP_ROWS)
            rows += len(some)
    if fakes:
        check_fakes(fakes, rows)
    return rows


def repeating(survey: Survey) -> list[str]:
    """The columns of a survey's reports that are worth a dictionary: seeds and long rows of bits never repeat."""
    seeds = [field.name for field in survey.ask.layout.fields if field.bound > 1 << 32 or field.is_vector]
    return [name for name in survey.layout.names if name not in seeds]


def _joined(reports: Iterable[Reports]) -> Iterator[Reports]:
    """The same reports in pieces of about a row group each, however they came."""
    waiting: list[Reports] = []
    for some in reports:
        if len(some):
            waiting.append(some)
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            yield Reports.concatenate(waiting)
            waiting = []
    if waiting:
        yield Reports.concatenate(waiting)


def read_reports(path: PathLike, survey: Survey, *, fakes: bool = False) -> Iterator[Reports]:
    """Runs at the collector: the reports of a file, a record batch at a time, each checked against the task.

    An Arrow file that devices' reports were written to, or a Parquet file that a collector exported or Spark wrote. A
    file with fakes in it is refused unless `fakes` says that whoever reads takes them off, by their number: see
    `count_fakes`.
    """
    with ReportsFile(path, survey, fakes=fakes) as file:
        yield from file.read()


def describe_reports(path: PathLike) -> tuple[str, list[str]]:
    """The task id and the columns that a file of reports declares, without a task to check them against."""
    schema = _schema(Path(path))
    metadata, names = schema.metadata or {}, [name for name in schema.names if name not in BESIDE]
    by_payload = task_of(schema)
    if by_payload is not None:
        return by_payload, names
    if metadata.get(b"veil.wire") != str(VERSION).encode():
        raise WireError(f"expected a file of veil reports of wire version {VERSION}")
    return metadata.get(b"veil.task", b"").decode("ascii", errors="replace"), names


def count_fakes(path: PathLike) -> int:
    """How many of the reports in a file are nobody's, by what it says: uniform ones that shufflers added."""
    return fakes_of(_schema(Path(path)))


def is_seeded(path: PathLike) -> bool:
    """True if the reports in a file were drawn from a seed, by what the file says."""
    return seeded_of(_schema(Path(path)))


def which_wave(path: PathLike) -> int:
    """Which wave of its survey the reports in a file are of, by what it says."""
    return wave_of(_schema(Path(path)))


def _schema(path: Path) -> Any:
    if path.suffix.lower() in PARQUET:
        return _exported_schema(path)
    with open_arrow(path) as file:
        return file.schema


def _exported_schema(path: Path) -> Any:
    with readable(path, "Parquet"), open_parquet(path) as file:
        return file.schema_arrow


def count_rows(path: PathLike) -> int | None:
    """How many rows a file has, where it says so without being read."""
    import pyarrow as pa

    kind = Path(path).suffix.lower()
    try:
        if kind in PARQUET:
            with open_parquet(path) as parquet:
                return int(parquet.metadata.num_rows)
        if kind in ARROW:
            with (
                pa.memory_map(os.fsencode(path)) as mapped,
                pa.ipc.open_file(mapped) as file,
            ):  # maps the columns, reads none
                return sum(int(file.get_batch(i).num_rows) for i in range(file.num_record_batches))
    except (pa.ArrowException, OSError):
        return None
    return None


def _plain_schema(schema: Any) -> Any:
    """A schema without the columns that may stand beside those of a report."""
    for name in BESIDE:
        if name in schema.names:
            schema = schema.remove(schema.names.index(name))
    return schema
