"""Files of values and of reports: CSV, Parquet and Arrow in, Arrow out, always in chunks.

Values are cut into chunks of CHUNK_ROWS whatever the file's own blocks are, so that a result does not depend on them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Interval, Items, Record, Text
from veil.durable import replacing
from veil.entropy import CHUNK_ROWS
from veil.errors import EmptyError, InputError, MismatchError, WireError
from veil.report import Field, Reports
from veil.set_text import SEPARATOR, as_sets, as_whole_items
from veil.survey import Survey
from veil.times import as_times, is_time, parse_time
from veil.wire import VERSION

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "EXPORTED_TIME",
    "ReportWriter",
    "count_rows",
    "describe_reports",
    "from_arrow",
    "read_reports",
    "read_sets",
    "read_values",
    "to_arrow",
]

PathLike = str | os.PathLike[str]
_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
EXPORTED_TIME = "time"
"""The column of truncated times in what a collector exports."""
_ENDINGS = (*_TEXT, *_PARQUET, *_ARROW)
_EXPECTED = {
    True: "UTF-8 text with a header, as many cells in every row, and one type of value in a column",
    False: "a whole file of the kind that its ending says",
}


def read_values(
    path: PathLike, survey: Survey, column: str | None = None, separator: str = SEPARATOR
) -> Iterator[pa.Table]:
    """Tables of at most CHUNK_ROWS rows with the columns that the survey asks about, then its public ones.

    `separator` stands between the items of a set, in text files.
    """
    names, domain = _wanted(Path(path), survey, column), survey.domain
    types = {name: _csv_type(part) for name, part in _column_domains(domain, names)}
    given = {name: kind for name, kind in types.items() if kind is not None}
    for table in _rechunked(_batches(Path(path), names, given), names):
        if isinstance(domain, Items) and _is_text(Path(path)):
            sets = as_sets(table.column(0), separator)
            held = sets if _is_textual(domain.universe) else as_whole_items(sets)
            yield table.set_column(0, names[0], held)
        else:
            yield table


def read_sets(path: PathLike, column: str | None = None, separator: str = SEPARATOR) -> Iterator[pa.Table]:
    """Tables of one column of lists, whatever their items are; of a text file, lists of text."""
    import pyarrow as pa

    name = _only_column(Path(path), []) if column is None else column
    for table in _rechunked(_batches(Path(path), [name], {name: pa.string()}), [name]):
        yield table.set_column(0, name, as_sets(table.column(0), separator)) if _is_text(Path(path)) else table


def values_of(table: pa.Table, survey: Survey) -> Any:
    """The held values in a table made by `read_values`; times may be written as text, in ISO 8601."""
    for name, domain in _column_domains(survey.domain, table.column_names):
        if is_time(domain):
            table = table.set_column(table.column_names.index(name), name, as_times(table.column(name)))
    if isinstance(survey.domain, Record):
        return table
    return table.column(0)


def public_of(table: pa.Table, survey: Survey) -> Any:
    """The public columns in a table made by `read_values`."""
    return table if survey.public else None


class ReportWriter:
    """Reports to an Arrow file, chunk by chunk; the file appears only once it is whole."""

    def __init__(self, path: PathLike, survey: Survey) -> None:
        self._survey = survey
        self._stack = contextlib.ExitStack()
        self._path = path
        self._writer: Any = None
        self.rows = 0

    def __enter__(self) -> ReportWriter:
        import pyarrow as pa

        with contextlib.ExitStack() as stack:
            temporary = stack.enter_context(replacing(self._path))
            sink = stack.enter_context(pa.OSFile(str(temporary), "wb"))
            self._writer = stack.enter_context(pa.ipc.new_file(sink, arrow_schema(self._survey)))
            self._stack = stack.pop_all()
        return self

    def write(self, reports: Reports) -> None:
        self._writer.write_batch(to_arrow(reports, self._survey))
        self.rows += len(reports)

    def __exit__(self, *problem: Any) -> bool | None:
        return self._stack.__exit__(*problem)


def read_reports(path: PathLike, survey: Survey) -> Iterator[Reports]:
    """Runs at the collector: the reports of a file, a record batch at a time, each checked against the task.

    An Arrow file that devices' reports were written to, or a Parquet file that a collector exported.
    """
    if Path(path).suffix.lower() in _PARQUET:
        yield from _exported_reports(Path(path), survey)
        return
    with _open_arrow(Path(path)) as file:
        _check_schema(file.schema, survey)
        for i in range(file.num_record_batches):
            yield from_arrow(_record_batch(file, i), survey)


def _exported_reports(path: Path, survey: Survey) -> Iterator[Reports]:
    """Reports as `veil survey export` writes them; the truncated time beside them is left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(CHUNK_ROWS):
                names = [name for name in batch.schema.names if name != EXPORTED_TIME]
                plain = batch.select(names).replace_schema_metadata(file.schema_arrow.metadata)
                yield from_arrow(plain, survey)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (pa.ArrowException, OSError):
        raise WireError(f"{path} is not a complete Parquet file") from None


def describe_reports(path: PathLike) -> tuple[str, list[str]]:
    """The task id and the columns that a file of reports declares, without a task to check them against."""
    with _open_arrow(Path(path)) as file:
        metadata = file.schema.metadata or {}
        if metadata.get(b"veil.wire") != str(VERSION).encode():
            raise WireError(f"expected a file of veil reports of wire version {VERSION}")
        return metadata.get(b"veil.task", b"").decode("ascii", errors="replace"), list(file.schema.names)


def count_rows(path: PathLike) -> int | None:
    """How many rows a file has, where it says so without being read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = Path(path).suffix.lower()
    try:
        if kind in _PARQUET:
            return int(pq.ParquetFile(path).metadata.num_rows)
        if kind in _ARROW:
            with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:  # maps the columns, reads none
                return sum(int(file.get_batch(i).num_rows) for i in range(file.num_record_batches))
    except (pa.ArrowException, OSError):
        return None
    return None


def arrow_schema(survey: Survey) -> pa.Schema:
    """The columns of an Arrow file of reports; the task stands in its metadata, once."""
    import pyarrow as pa

    fields = [pa.field(field.name, _arrow_type(field), nullable=False) for field in survey.layout.fields]
    return pa.schema(fields, metadata={"veil.task": survey.task, "veil.wire": str(VERSION)})


def to_arrow(reports: Reports, survey: Survey) -> pa.RecordBatch:
    """Reports as an Arrow record batch."""
    import pyarrow as pa

    if reports.task != survey.task:
        raise MismatchError("these reports were made for another task")
    arrays = []
    for field in survey.layout.fields:
        column = np.ascontiguousarray(reports.columns[field.name])
        if not field.is_vector:
            arrays.append(pa.array(column, type=_arrow_type(field)))
        elif field.width == 1:
            data = pa.py_buffer(column)
            arrays.append(pa.Array.from_buffers(pa.binary(field.count), len(column), [None, data]))
        else:
            arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), field.count))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(survey))


def from_arrow(batch: pa.RecordBatch, survey: Survey) -> Reports:
    """Runs at the collector: an Arrow record batch as reports, strictly checked."""
    _check_schema(batch.schema, survey)
    columns: dict[str, NDArray[Any]] = {}
    for field in survey.layout.fields:
        array = batch.column(field.name)
        if array.null_count:
            raise WireError(f"column {field.name!r} has missing entries")
        columns[field.name] = _from_arrow_column(array, field)
    reports = Reports(survey.task, survey.layout, columns)
    survey.layout.check(columns)
    survey.parts(reports)
    return reports


def _from_arrow_column(array: Any, field: Field) -> NDArray[Any]:
    if not field.is_vector:
        return np.asarray(array.to_numpy())
    if field.width == 1:
        start = array.offset * field.count
        data = np.frombuffer(array.buffers()[1], dtype=np.uint8)[start : start + len(array) * field.count]
        return data.reshape(len(array), field.count)
    return np.asarray(array.flatten().to_numpy()).reshape(len(array), field.count)


def _arrow_type(field: Field) -> pa.DataType:
    import pyarrow as pa

    if field.is_vector and field.width == 1:
        return pa.binary(field.count)
    scalar = pa.from_numpy_dtype(field.dtype)
    return pa.list_(scalar, field.count) if field.is_vector else scalar


def _check_schema(schema: pa.Schema, survey: Survey) -> None:
    metadata = schema.metadata or {}
    if metadata.get(b"veil.wire") != str(VERSION).encode():
        raise WireError(f"expected a file of veil reports of wire version {VERSION}")
    if metadata.get(b"veil.task") != survey.task.encode():
        raise MismatchError("these reports were made for another task")
    expected = arrow_schema(survey)
    if schema.names != expected.names or schema.types != expected.types:
        raise WireError(f"expected the columns {', '.join(expected.names)}")


@contextlib.contextmanager
def _open_arrow(path: Path) -> Iterator[Any]:
    import pyarrow as pa

    try:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
            yield reader
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (PermissionError, IsADirectoryError):
        raise InputError(f"{path} cannot be opened as a file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise WireError(f"{path} is not a complete Arrow file") from None


def _record_batch(file: Any, index: int) -> Any:
    import pyarrow as pa

    try:
        batch = file.get_batch(index)
        batch.validate(full=True)
    except (pa.ArrowException, OSError):
        raise WireError(f"record batch {index} of the file is damaged") from None
    return batch


def _wanted(path: Path, survey: Survey, column: str | None) -> list[str]:
    public = [beside.name for beside in survey.public]
    if isinstance(survey.domain, Record):
        if column is not None:
            raise InputError("this survey asks about several columns, by their own names: give no column")
        return [*survey.domain.names, *public]
    if column is None:
        column = _only_column(path, public)
        if _is_text(path) and _could_be_held(column, survey.domain):  # else the first person would be lost in silence
            raise InputError(f"the first line of {path} looks like a value: add a line above it that names the column")
    return [column, *public]


def _only_column(path: Path, public: list[str]) -> str:
    others = [name for name in _column_names(path) if name not in public]
    if len(others) != 1:
        raise InputError(f"{path} has {_named(path, others)}: say which one holds the values (--column)")
    return others[0]


def _column_domains(domain: Domain, names: list[str]) -> list[tuple[str, Domain]]:
    return list(domain.attributes) if isinstance(domain, Record) else [(names[0], domain)]


def _csv_type(domain: Domain) -> pa.DataType | None:
    """What a column of text is read as, where guessing from the first rows could be wrong."""
    import pyarrow as pa

    if _is_textual(domain) or is_time(domain) or isinstance(domain, Items):
        return pa.string()
    return pa.float64() if isinstance(domain, Interval) else None


def _is_textual(domain: Domain) -> bool:
    if isinstance(domain, Categories):
        return domain.labels is not None and any(isinstance(label, str) for label in domain.labels)
    return isinstance(domain, Text)


def _column_names(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    with _readable(path):
        kind = path.suffix.lower()
        if kind not in _ENDINGS:
            raise InputError(f"expected a file that ends in {', '.join(_ENDINGS)}, got {path.name}")
        if kind in _PARQUET:
            return list(pq.read_schema(path).names)
        if kind in _ARROW:
            with _open_arrow(path) as file:
                return list(file.schema.names)
        with path.open(encoding="utf-8-sig") as file:
            import csv

            header = next(csv.reader(file, delimiter=_delimiter(path)), None)
            if header is None:
                raise EmptyError(f"{path} is empty: expected a first line that names the columns")
            return header


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _is_text(path: Path) -> bool:
    return path.suffix.lower() in _TEXT


def _could_be_held(cell: str, domain: Domain) -> bool:
    """Whether a column's name is also a value of the domain, of which text has too many to tell."""
    try:
        domain.encode([cell if _is_textual(domain) else parse_time(cell) if is_time(domain) else float(cell)])
    except (InputError, ValueError):
        return False
    return not isinstance(domain, Text)


def _named(path: Path, names: list[str]) -> str:
    """Columns for a message. A text file's first line may be somebody's answer, if its header was forgotten."""
    if _is_text(path):
        return f"{len(names)} column{'s' if len(names) != 1 else ''} to choose from, named in its first line"
    return f"the columns {', '.join(names)}"


def _batches(path: Path, names: list[str], types: dict[str, pa.DataType]) -> Iterator[Any]:
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    have = _column_names(path)
    if any(have.count(name) > 1 for name in names):
        raise InputError(f"{path} has several columns of the same name")
    lacking = [name for name in names if name not in have]
    if lacking:
        raise InputError(f"{path} has no column {', '.join(lacking)}; it has {_named(path, have)}")
    with _readable(path):
        kind = path.suffix.lower()
        if kind in _PARQUET:
            yield from pq.ParquetFile(path).iter_batches(CHUNK_ROWS, columns=names)
        elif kind in _ARROW:
            with _open_arrow(path) as file:
                for i in range(file.num_record_batches):
                    yield _record_batch(file, i).select(names)
        else:
            convert = pacsv.ConvertOptions(
                include_columns=names,
                column_types=types,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],  # "NA" may be a label: Namibia
            )
            parsing = pacsv.ParseOptions(delimiter=_delimiter(path), ignore_empty_lines=False)
            with pacsv.open_csv(path, parse_options=parsing, convert_options=convert) as reader:
                yield from reader


def _rechunked(batches: Iterator[Any], names: list[str]) -> Iterator[pa.Table]:
    import pyarrow as pa

    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch.select(names))
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            table = pa.Table.from_batches(waiting)
            whole = rows // CHUNK_ROWS * CHUNK_ROWS
            for start in range(0, whole, CHUNK_ROWS):
                yield table.slice(start, CHUNK_ROWS)
            rest = table.slice(whole)
            waiting, rows = rest.to_batches(), rest.num_rows
    if rows:
        yield pa.Table.from_batches(waiting)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (pa.ArrowException, UnicodeDecodeError) as problem:
        # pyarrow quotes the offending cell, which may be somebody's answer: don't pass its message on
        if "conversion error to double" in str(problem):
            raise InputError(
                f"{path} holds text where numbers are expected, in the column that was asked for"
            ) from None
        raise InputError(f"{path} cannot be read: expected {_EXPECTED[_is_text(path)]}") from None
