"""Opening Arrow and Parquet files: how their names end, and one clear error for what cannot be read.

A file of reports as a row of groups that can be read by themselves: record batches of Arrow, row groups of Parquet.

Three kinds of files hold reports: Arrow and Parquet, as `veil randomize` or a collector writes them, and Parquet that
Spark wrote, with a column of payloads. Whoever reads any of them reads it here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from veil.entropy import CHUNK_ROWS
from veil.errors import InputError, MismatchError, WireError
from veil.reports.columns import Reports
from veil.survey import Survey
from veil.wire.arrow import check_schema, fakes_of, reports_of, seeded_of, wave_of
from veil.wire.frames import check_payloads, from_payloads, task_of

PathLike = str | os.PathLike[str]
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


def create_file(path: PathLike) -> Any:
    """Return a new file for Arrow to write. The name may hold any bytes: pyarrow takes some text for an address."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), "wb")


@contextlib.contextmanager
def readable(path: PathLike, kind: str) -> Iterator[None]:
    """Turn whatever is wrong with a file of `kind`, Arrow or Parquet, into one clear error."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (PermissionError, IsADirectoryError):
        raise InputError(f"{path} cannot be opened as a file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, OverflowError):  # damage shows in all of them
        raise WireError(f"{path} is not a complete {kind} file") from None


@contextlib.contextmanager
def open_parquet(path: PathLike) -> Iterator[Any]:
    """Yield a `pyarrow.parquet.ParquetFile` of exactly this file. The name may hold any bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pa.OSFile(os.fsencode(path), "rb") as source, pq.ParquetFile(source) as file:
        yield file


@contextlib.contextmanager
def open_arrow(path: Path) -> Iterator[Any]:
    """An Arrow file, opened; whatever is wrong with it is one clear error."""
    import pyarrow as pa

    with readable(path, "Arrow"), pa.OSFile(os.fsencode(path), "rb") as file, pa.ipc.open_file(file) as reader:
        yield reader


def record_batch(file: Any, index: int) -> Any:
    """One record batch of an open file, checked."""
    import pyarrow as pa

    try:
        batch = file.get_batch(index)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise WireError(f"record batch {index} of the file is damaged") from None
    return batch


EXPORTED_TIME = "time"
"""The column of truncated times in what a collector exports."""

REPORT_ID = "report_id"
"""The column of ids by which a report that arrived twice is recognised, where a file has them."""

BESIDE = (EXPORTED_TIME, REPORT_ID)
"""Columns that may stand beside those of a report and are no part of it."""


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


def is_address(path: str) -> bool:
    """Whether a path is an address of a file system that is not this machine's, as s3://bucket/key."""
    return "://" in path


def _plain_schema(schema: Any) -> Any:
    """A schema without the columns that may stand beside those of a report."""
    for name in BESIDE:
        if name in schema.names:
            schema = schema.remove(schema.names.index(name))
    return schema


@contextlib.contextmanager
def open_parquet_at(path: str) -> Iterator[Any]:
    """Yield a `pyarrow.parquet.ParquetFile` of a path, or of an address such as s3://bucket/key."""
    if not is_address(path):
        with open_parquet(path) as file:
            yield file
        return
    import pyarrow.fs as fs
    import pyarrow.parquet as pq

    system, inside = fs.FileSystem.from_uri(path)
    with system.open_input_file(inside) as source, pq.ParquetFile(source) as file:
        yield file
