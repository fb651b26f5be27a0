"""Files of people's values: CSV, Parquet and Arrow, in chunks.

Values are cut into chunks of CHUNK_ROWS whatever the file's own blocks are, so that a result does not depend on them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil.domain import Categories, Domain, Interval, Items, Record, Text
from veil.domain.set_text import SEPARATOR, as_sets, as_whole_items
from veil.domain.times import as_times, is_time, parse_time
from veil.entropy import CHUNK_ROWS
from veil.errors import EmptyError, InputError
from veil.files.opening import ARROW, ENDINGS, PARQUET, TEXT, PathLike, open_arrow, record_batch
from veil.survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["column_names", "read_columns", "read_sets", "read_values", "values_of", "wanted_columns"]

_EXPECTED = {
    True: "UTF-8 text with a header, as many cells in every row, and one type of value in a column",
    False: "a whole file of the kind that its ending says",
}


def read_values(
    path: PathLike,
    survey: Survey,
    column: str | None = None,
    separator: str = SEPARATOR,
    text: Collection[str] | None = None,
) -> Iterator[pa.Table]:
    """Tables of at most CHUNK_ROWS rows with the columns that the survey asks about, then its public ones.

    `separator` stands between the items of a set, in text files. Public columns are read from them as they look, or,
    with `text`, those as text and others as numbers.
    """
    import pyarrow as pa

    names, domain = wanted_columns(Path(path), survey, column), survey.domain
    types = {name: _csv_type(part) for name, part in _column_domains(domain, names)}
    if text is not None:
        types |= {beside.name: pa.string() if beside.name in text else pa.float64() for beside in survey.public}
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


def read_columns(path: PathLike, names: Sequence[str]) -> Iterator[pa.Table]:
    """Tables of the named columns as they are; of a text file, columns of text."""
    import pyarrow as pa

    return _rechunked(_batches(Path(path), list(names), dict.fromkeys(names, pa.string())), list(names))


def values_of(table: pa.Table, survey: Survey) -> Any:
    """The held values in a table made by `read_values`.

    Times may be written as text, in ISO 8601. Booleans are read as they stand in a text file, as "true" and "false",
    where text is asked for.
    """
    import pyarrow as pa

    for name, domain in _column_domains(survey.domain, table.column_names):
        place, column = table.column_names.index(name), table.column(name)
        if is_time(domain):
            table = table.set_column(place, name, as_times(column))
        elif pa.types.is_boolean(column.type) and isinstance(domain, Text):
            table = table.set_column(place, name, column.cast(pa.string()))
    if isinstance(survey.domain, Record):
        return table
    return table.column(0)


def wanted_columns(path: Path, survey: Survey, column: str | None) -> list[str]:
    """The columns of a file that a survey asks about, then its public ones."""
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
    others = [name for name in column_names(path) if name not in public]
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


def column_names(path: Path) -> list[str]:
    """The names of all columns of a file. Of a text file they are its first line, whatever that is."""
    import pyarrow.parquet as pq

    with _readable(path):
        kind = path.suffix.lower()
        if kind not in ENDINGS:
            raise InputError(f"expected a file that ends in {', '.join(ENDINGS)}, got {path.name}")
        if kind in PARQUET:
            return list(pq.read_schema(path).names)
        if kind in ARROW:
            with open_arrow(path) as file:
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
    return path.suffix.lower() in TEXT


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

    have = column_names(path)
    if any(have.count(name) > 1 for name in names):
        raise InputError(f"{path} has several columns of the same name")
    lacking = [name for name in names if name not in have]
    if lacking:
        raise InputError(f"{path} has no column {', '.join(lacking)}; it has {_named(path, have)}")
    with _readable(path):
        kind = path.suffix.lower()
        if kind in PARQUET:
            yield from pq.ParquetFile(path).iter_batches(CHUNK_ROWS, columns=names)
        elif kind in ARROW:
            with open_arrow(path) as file:
                for i in range(file.num_record_batches):
                    yield record_batch(file, i).select(names)
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
