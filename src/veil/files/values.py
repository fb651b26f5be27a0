"""Values of people, read from CSV, JSON lines, Parquet and Arrow in chunks, and the policy for missing values.

A missing value is refused, left out, or an answer of its own if the study has one. Chunks have CHUNK_ROWS rows whatever
the file's own blocks are, so that a result does not depend on them; rows that are left out do not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from veil.domain import Bits, Categories, Domain, Items, Numeric, Record, Text
from veil.domain.text_values import SEPARATOR, as_numbers, as_sets, as_times, as_whole_items, is_time, parse_time
from veil.entropy import CHUNK_ROWS
from veil.errors import DomainError, InputError
from veil.files.arrow_files import PathLike, open_arrow, open_parquet, record_batch
from veil.files.value_file import PLACE, Expected, ValueFile, as_value_file, read_lines
from veil.survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa

Missing = Literal["refuse", "skip", "category"]
_NUMBERS = (int, float)


def read_values(
    file: PathLike | ValueFile,
    survey: Survey,
    column: str | None = None,
    separator: str = SEPARATOR,
    text: Collection[str] | None = None,
    without: MissingPolicy | None = None,
) -> Iterator[pa.Table]:
    """Tables of at most CHUNK_ROWS rows with the columns that the survey asks about, its public ones, and PLACE.

    `separator` stands between the items of a set, in text files. Public columns are numbers, but for those of `text`.
    `without` says what becomes of missing values, and counts them.
    """
    import pyarrow as pa

    file, domain = as_value_file(file), survey.domain
    names = wanted_columns(file, survey, column)
    held = _column_domains(domain, names)
    public = [beside.name for beside in survey.public]
    numbers = {name: _expected(domain, name, part) for name, part in held if _is_number(part)}
    numbers |= {name: f"expected numbers (public column {name!r})" for name in public if name not in (text or ())}
    expected = {name: (_NUMBERS, words) for name, words in numbers.items()} | {
        name: ((str,), _expected(domain, name, part))
        for name, part in held
        if isinstance(part, (Categories, Numeric)) and name not in numbers
    }
    empties = [name for name, part in held if isinstance(part, Categories) and "" in (part.labels or ())]
    batches = _batches(file, names, dict.fromkeys(names, pa.string()), expected, empties)
    rows = _numbered(file, batches, numbers)
    if without is not None:
        rows = without.of(file, rows, held, public)
    for table in _rechunked(file, rows):
        if isinstance(domain, Items) and file.is_text:
            sets = as_sets(table.column(0), separator)
            items = sets if _is_textual(domain.universe) else as_whole_items(sets)
            yield table.set_column(0, names[0], items)
        else:
            yield table


def read_columns(file: PathLike | ValueFile, names: Sequence[str]) -> Iterator[pa.Table]:
    """Tables of the named columns as they are; of a text file, columns of text."""
    import pyarrow as pa

    file = as_value_file(file)
    for table in _rechunked(file, _batches(file, list(names), dict.fromkeys(names, pa.string()))):
        yield table.select(list(names))


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


def column_names(file: PathLike | ValueFile) -> list[str]:
    """The names of all columns of a file."""
    return as_value_file(file).columns()


class MissingPolicy:
    """What becomes of people without a value; `skipped` counts those who were left out.

    None is as the study says: an answer of its own where its domain has one, else refused.
    """

    def __init__(self, missing: Missing | None = None) -> None:
        if missing is not None and missing not in get_args(Missing):
            raise InputError(f"missing values are one of {', '.join(get_args(Missing))}")
        self.missing = missing
        self.skipped = 0

    def of(
        self, file: ValueFile, batches: Iterator[Any], held: Sequence[tuple[str, Domain]], public: Sequence[str]
    ) -> Iterator[Any]:
        """The batches without people who are left out; refuses what is refused, by its place in the file."""
        if self.missing == "category" and not any(has_category(domain) for _, domain in held):
            raise InputError(
                "this study has no answer for a missing value: plan it with --missing category, or leave such people"
                " out with --missing skip"
            )
        for batch in batches:
            yield self._batch(file, batch, held, public)

    def _batch(self, file: ValueFile, batch: Any, held: Sequence[tuple[str, Domain]], public: Sequence[str]) -> Any:
        if self.missing == "skip":
            named = [*(name for name, domain in held if not has_category(domain)), *public]
            lacking = np.logical_or.reduce([_missing(batch, name) for name in named]) if named else None
            if lacking is None or not lacking.any():
                return batch
            self.skipped += int(lacking.sum())
            return batch.filter(~lacking)
        for name, domain in held if self.missing == "refuse" else ():
            lacking = _missing(batch, name)
            if has_category(domain) and lacking.any():
                assert isinstance(domain, Categories)
                first, count = int(np.argmax(lacking)), int(lacking.sum())
                raise file.placed(DomainError(f"expected {domain.expected}; a value is missing", first, count), batch)
        return batch


def has_category(domain: Domain) -> bool:
    """Whether a missing value is an answer of its own."""
    return isinstance(domain, Categories) and domain.missing == "category"


def _missing(batch: Any, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    import pyarrow.compute as pc

    return np.asarray(pc.is_null(batch.column(name), nan_is_null=True).to_numpy(zero_copy_only=False))


def wanted_columns(file: ValueFile, survey: Survey, column: str | None) -> list[str]:
    """The columns of a file that a survey asks about, then its public ones."""
    public = [beside.name for beside in survey.public]
    if isinstance(survey.domain, Record):
        if column is not None:
            raise InputError("this survey asks about several columns, by their own names: give no column")
        return [*survey.domain.names, *public]
    if column is None:
        column = _only_column(file, public)
        if file.is_text and _could_be_held(column, survey.domain):  # else the first person would be lost in silence
            raise InputError(
                f"the first line of {file} looks like a value: add a line above it that names the column, or say with"
                " --column that this is its name"
            )
    return [column, *public]


def _only_column(file: ValueFile, public: list[str]) -> str:
    others = [name for name in file.columns() if name not in public]
    if len(others) != 1:
        raise InputError(f"{file} has {_named(file, others)}: say which one holds the values (--column)")
    return others[0]


def _column_domains(domain: Domain, names: list[str]) -> list[tuple[str, Domain]]:
    return list(domain.attributes) if isinstance(domain, Record) else [(names[0], domain)]


def _is_textual(domain: Domain) -> bool:
    if isinstance(domain, Categories):
        return domain.labels is not None and any(isinstance(label, str) for label in domain.labels)
    return isinstance(domain, Text)


def _is_number(domain: Domain) -> bool:
    return not (_is_textual(domain) or is_time(domain) or isinstance(domain, Items))


def _expected(whole: Domain, name: str, part: Domain) -> str:
    """What is expected of a column of numbers, as the domain itself says it."""
    assert isinstance(part, (Categories, Numeric, Bits))
    return f"{f'attribute {name!r}: ' if isinstance(whole, Record) else ''}expected {part.expected}"


def _could_be_held(cell: str, domain: Domain) -> bool:
    """Whether a column's name is also a value of the domain, or nearly: of these, text has too many to tell."""
    if isinstance(domain, Categories) and domain.is_near(cell):
        return True
    try:
        domain.encode([cell if _is_textual(domain) else parse_time(cell) if is_time(domain) else float(cell)])
    except (InputError, ValueError):
        return False
    return not isinstance(domain, Text)


def _named(file: ValueFile, names: list[str]) -> str:
    """Columns for a message. A text file's first line may be somebody's answer, if its header was forgotten."""
    if file.kind in ("text", "lines"):
        where = "first line" if file.is_text else "objects"
        return f"{len(names)} column{'s' if len(names) != 1 else ''} to choose from, named in its {where}"
    return f"the columns {', '.join(names)}"


def _batches(
    file: ValueFile,
    names: list[str],
    types: dict[str, pa.DataType],
    expected: Expected | None = None,
    empties: Collection[str] = (),
) -> Iterator[pa.Table]:
    """The named columns and PLACE, as the file has them; of text, of the given types or as they look.

    `expected` is what JSON should hold. An empty cell of text is missing; in the columns of `empties`, which have an
    empty label, a quoted one is that label.
    """
    have = file.columns()
    if any(have.count(name) > 1 for name in names):
        raise InputError(f"{file} has several columns of the same name")
    lacking = [name for name in names if name not in have]
    if lacking:
        parted = next((mark for mark in ";\t|" if file.is_text and len(have) == 1 and mark in have[0]), None)
        hint = "" if parted is None else f": are its cells parted by {parted!r}? Expected {file.delimiter!r}"
        raise InputError(f"{file} has no column {', '.join(lacking)}; it has {_named(file, have)}{hint}")
    with file.readable():
        if file.kind == "lines":
            yield from read_lines(file, names, PLACE, expected or {})
            return
        rows = 1 + file.is_text  # the header is the first record
        for batch in _unnumbered(file, names, types, empties):
            yield _with_places(batch, names, rows)
            rows += batch.num_rows


def _unnumbered(
    file: ValueFile, names: list[str], types: dict[str, pa.DataType], empties: Collection[str]
) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pacsv

    if file.kind == "parquet":
        with open_parquet(file.path) as parquet:
            yield from parquet.iter_batches(CHUNK_ROWS, columns=names)
    elif file.kind == "arrow":
        with open_arrow(Path(file.path)) as opened:
            for i in range(opened.num_record_batches):
                yield record_batch(opened, i)
    else:
        convert = pacsv.ConvertOptions(
            include_columns=names,
            column_types=types,
            strings_can_be_null=True,
            quoted_strings_can_be_null=not empties,  # who quotes every cell quotes those of missing values, too
            null_values=[""],  # "NA" may be a label: Namibia
        )
        parsing = pacsv.ParseOptions(delimiter=file.delimiter, ignore_empty_lines=False)
        with (
            file.opened() as stream,
            pacsv.open_csv(stream, parse_options=parsing, convert_options=convert) as reader,
        ):
            for batch in reader:
                yield _with_nulls(batch, [name for name in names if name not in empties]) if empties else batch


def _with_nulls(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """The same where empty text in the named columns is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        column = batch.column(name)
        held = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        batch = batch.set_column(batch.schema.get_field_index(name), name, held)
    return batch


def _with_places(batch: pa.RecordBatch, names: list[str], first: int) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    places = pa.array(np.arange(first, first + batch.num_rows))
    return pa.RecordBatch.from_arrays([*(batch.column(name) for name in names), places], names=[*names, PLACE])


def _numbered(file: ValueFile, batches: Iterator[pa.RecordBatch], numbers: dict[str, str]) -> Iterator[pa.RecordBatch]:
    """The same with numbers where these are expected, by name: also if they were written as text."""
    for batch in batches:
        made = batch
        for name, expected in numbers.items():
            place = made.schema.get_field_index(name)
            try:
                column = as_numbers(made.column(place), expected)
            except DomainError as problem:
                raise file.placed(problem, batch) from None
            made = made.set_column(place, name, column)
        yield made


def _rechunked(file: ValueFile, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            table = _joined(file, waiting)
            whole = rows // CHUNK_ROWS * CHUNK_ROWS
            for start in range(0, whole, CHUNK_ROWS):
                yield table.slice(start, CHUNK_ROWS)
            rest = table.slice(whole)
            waiting, rows = rest.to_batches(), rest.num_rows
    if rows:
        yield _joined(file, waiting)


def _joined(file: ValueFile, batches: list[Any]) -> pa.Table:
    """One table of batches, of which some may hold whole numbers and others fractions, or nothing in a column."""
    import pyarrow as pa

    with file.readable():
        tables = [pa.Table.from_batches([batch]) for batch in batches if batch.num_rows]
        table = pa.concat_tables(tables, promote_options="permissive")
    for place, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    return table
