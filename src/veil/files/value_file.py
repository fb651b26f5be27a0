"""A file of people's values, or standard input: its format, its columns, and its bytes without compression.

Standard input is read once and never written to disk: what is read twice is kept in memory. In JSON lines, each line is
one object and one person; a missing name, or null, is a missing value.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from veil.entropy import CHUNK_ROWS
from veil.errors import DomainError, EmptyError, InputError, WireError
from veil.files.arrow_files import ARROW, PARQUET, PathLike, open_arrow, open_parquet
from veil.tools.json_documents import load_json

if TYPE_CHECKING:
    import pyarrow as pa

Expected = Mapping[str, tuple[tuple[type, ...], str]]
"""What the values of a name are in JSON, and what is said where they are something else."""
Kind = Literal["text", "lines", "parquet", "arrow"]
STANDARD_INPUT = "-"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "text"),
    **dict.fromkeys((".jsonl", ".ndjson"), "lines"),
    **dict.fromkeys(PARQUET, "parquet"),
    **dict.fromkeys(ARROW, "arrow"),
}
_STREAMED = tuple(ending for ending, kind in _KINDS.items() if kind in ("text", "lines"))
_ENDINGS = (*_KINDS, *(f"{ending}.gz" for ending in _STREAMED))
FORMATS = tuple(ending[1:] for ending in (".csv", ".tsv", ".jsonl", ".csv.gz", ".tsv.gz", ".jsonl.gz"))
"""What `--format` says; Parquet and Arrow files are read from their end, and say themselves what they are."""
PLACE = "\0place"
"""The last column of tables of values: the line or the row of the file that each person stands in."""
_HEAD = 1 << 20  # bytes in which the names of all columns are looked for
_EXPECTED: dict[Kind, str] = {
    "text": "UTF-8 text with a header, as many cells in every row, and one type of value in a column",
    "lines": "UTF-8 text with one JSON object a line, and one type of value for a name",
    "parquet": "a whole file of the kind that its ending says",
    "arrow": "a whole file of the kind that its ending says",
}


@dataclass(eq=False)
class ValueFile:
    """Where people's values are: a path, or "-" for standard input; the format is that of the ending, unless given.

    >>> ValueFile("people.csv.gz").kind, ValueFile("-", "jsonl").name
    ('text', 'standard input')
    """

    path: PathLike
    format: str | None = None

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        self._standard = str(self.path) == STANDARD_INPUT
        self.name = "standard input" if self._standard else str(self.path)
        self._ending = self._known_ending()
        self.zipped = self._ending.endswith(".gz")
        self.kind: Kind = _KINDS[self._ending.removesuffix(".gz")]
        self._stream: BinaryIO | None = None
        self._head: bytes | None = None
        self._kept: bytes | None = None
        self._taken = False
        self._quotes = False

    def _known_ending(self) -> str:
        if self.format is not None:
            if self.format not in FORMATS:
                raise InputError(f"a format of values is one of {', '.join(FORMATS)}")
            return f".{self.format}"
        if self._standard:
            raise InputError(f"standard input has no ending: say its --format, one of {', '.join(FORMATS)}")
        ending = next((known for known in _ENDINGS if str(self.path).lower().endswith(known)), None)
        if ending is None:
            raise InputError(
                f"expected a file that ends in {', '.join(_KINDS)}, or in {', '.join(_ENDINGS[len(_KINDS) :])}; got"
                f" {Path(self.path).name} (--format says it of a file with another ending)"
            )
        return ending

    def __str__(self) -> str:
        return self.name

    @property
    def paths(self) -> list[Path]:
        """The file, where it is one."""
        return [] if self._standard else [Path(self.path)]

    @property
    def is_text(self) -> bool:
        """Whether all cells are text, with the names of the columns in the first line."""
        return self.kind == "text"

    @property
    def delimiter(self) -> str:
        """What stands between cells."""
        return "\t" if self._ending.startswith(".tsv") else ","

    def place(self, number: int) -> str:
        """Where something stands, for messages: a line of text, or a row of a table; both count from 1.

        Of a CSV file the number is that of a record, the first of which is the header: a cell may hold line breaks.
        Where the lines before it are gone, as on standard input, and may have held some, it stays that of the record.
        """
        what = "line" if self.kind in ("text", "lines") else "row"
        if self.kind == "text" and self._line_breaks:
            line = self._line_of(number)
            what, number = ("record", number) if line is None else (what, line)
        return f"{what} {number:,} of {self.name}"

    @property
    def _line_breaks(self) -> bool:
        """Whether cells may hold line breaks: whether something is quoted."""
        return not self._streaming or self._quotes

    @property
    def _streaming(self) -> bool:
        """Whether it is read once, as it comes."""
        return self._standard and self._kept is None

    def _line_of(self, record: int) -> int | None:
        """The line that a record begins in; None where that is not known."""
        if self._streaming:
            return None
        with contextlib.suppress(OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error), self.opened() as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            rows = csv.reader(text, delimiter=self.delimiter)
            for _ in range(record - 1):
                next(rows, None)
            return rows.line_num + 1
        return None

    def placed(self, problem: DomainError, table: Any) -> DomainError:
        """An error about a row of a table, as one about its place here: the same words for every kind of file."""
        if problem.row is None:
            return DomainError(f"{problem.expected} ({self})")
        more = f", and {problem.count - 1:,} more" if problem.count > 1 else ""
        said = f"{problem.expected} ({self.place(table.column(PLACE)[problem.row].as_py())}{more})"
        lacking = any(_is_missing(table.column(name)[problem.row].as_py()) for name in table.schema.names)
        return DomainError(said + ("; --missing skip leaves people without a value out" if lacking else ""))

    def keep(self) -> None:
        """Read standard input whole, so that it can be read more than once."""
        if self._standard and self._kept is None:
            with self.readable(), self.opened() as stream:
                self._kept = stream.read()

    @contextlib.contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The bytes of a text file, without compression. Of standard input, once unless it is kept."""
        if not self._standard:
            with gzip.open(self.path) if self.zipped else Path(self.path).open("rb") as file:
                yield file  # type: ignore[misc]  # gzip's file is as good as one
        elif self._kept is not None:
            yield io.BytesIO(self._kept)
        else:
            head, stream = self._peek(), self._stream
            assert stream is not None
            if self._taken:  # the beginning alone would pass for all of it
                raise InputError("standard input can be read once only")
            self._taken = True
            yield io.BufferedReader(_Chained(head, stream, self._look_for_quotes), _HEAD)

    def _look_for_quotes(self, some: bytes) -> None:
        self._quotes = self._quotes or b'"' in some

    def _peek(self) -> bytes:
        """The first bytes, which are read again afterwards."""
        if not self._standard or self._kept is not None:
            with self.opened() as file:
                return file.read(_HEAD)
        if self._head is None:
            raw = sys.stdin.buffer
            self._stream = gzip.GzipFile(fileobj=raw) if self.zipped else raw  # type: ignore[assignment]
            assert self._stream is not None
            self._head = self._stream.read(_HEAD)
        return self._head

    def columns(self) -> list[str]:
        """The names of all columns: of a text file its first line, whatever that is; of JSON those near the start."""
        with self.readable():
            if self.kind == "parquet":
                with open_parquet(self.path) as parquet:
                    return list(parquet.schema_arrow.names)
            if self.kind == "arrow":
                with open_arrow(Path(self.path)) as file:
                    return list(file.schema.names)
            head = self._peek()
            return _names(head) if self.kind == "lines" else self._header(head)

    def _header(self, head: bytes) -> list[str]:
        text = io.TextIOWrapper(io.BytesIO(head), encoding="utf-8-sig", newline="")
        header = next(csv.reader(text, delimiter=self.delimiter), None)
        if header is None:
            raise EmptyError(f"{self} is empty: expected a first line that names the columns")
        return header

    @contextlib.contextmanager
    def readable(self) -> Iterator[None]:
        """Whatever is wrong with the file is one clear error, which quotes nothing of it."""
        import pyarrow as pa

        try:
            yield
        except FileNotFoundError:
            raise InputError(f"there is no file {self}") from None
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InputError(f"{self} cannot be read: expected a whole gzip file") from None
        except (pa.ArrowException, UnicodeDecodeError, csv.Error):
            raise InputError(f"{self} cannot be read: expected {_EXPECTED[self.kind]}") from None


def as_value_file(file: PathLike | ValueFile) -> ValueFile:
    """A path as a file of values."""
    return file if isinstance(file, ValueFile) else ValueFile(file)


class _Chained(io.RawIOBase):
    """What was read of a stream before, and then the stream; `look` is shown all of it."""

    def __init__(self, head: bytes, rest: BinaryIO, look: Callable[[bytes], None]) -> None:
        self._head, self._rest, self._look = io.BytesIO(head), rest, look

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        some = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        self._look(some)
        buffer[: len(some)] = some
        return len(some)


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _names(head: bytes) -> list[str]:
    """The names in the JSON objects of the first lines, in order; what is no object is refused when it is read."""
    found: dict[str, None] = {}
    lines = head.split(b"\n")
    for line in lines[:-1] if len(head) == _HEAD else lines:
        with contextlib.suppress(ValueError):
            one = load_json(line)
            found.update(dict.fromkeys(one) if isinstance(one, dict) else {})
    return list(found)


def read_lines(file: ValueFile, names: Sequence[str], place: str, expected: Expected) -> Iterator[pa.RecordBatch]:
    """Batches of the named columns, and one of line numbers. Empty lines are nobody."""
    with file.opened() as stream:
        columns: dict[str, list[Any]] = {name: [] for name in (*names, place)}
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            one = _object(line, file, number)
            for name in names:
                columns[name].append(one.get(name))
            columns[place].append(number)
            if len(columns[place]) == CHUNK_ROWS:
                yield _batch(file, columns, place, expected)
                columns = {name: [] for name in columns}
        if columns[place]:
            yield _batch(file, columns, place, expected)


def _object(line: bytes, file: ValueFile, number: int) -> dict[str, Any]:
    try:
        found = load_json(line.removeprefix(b"\xef\xbb\xbf"))
    except WireError as problem:
        raise InputError(f"{problem} ({file.place(number)})") from None
    except ValueError:  # its message would quote the line
        found = None
    if not isinstance(found, dict):
        raise InputError(f"expected one JSON object a line ({file.place(number)})")
    return found


def _batch(file: ValueFile, columns: dict[str, list[Any]], place: str, expected: Expected) -> pa.RecordBatch:
    import pyarrow as pa

    made = {}
    for name, cells in columns.items():
        try:
            made[name] = _column(file, cells, columns[place])
        except _SeveralTypesError as problem:
            kinds, words = expected.get(name, ((), ""))
            wrong = [row for row, cell in enumerate(cells) if cell is not None and type(cell) not in kinds]
            if not (kinds and wrong):
                raise InputError(str(problem)) from None
            refused = DomainError(words, wrong[0], len(wrong))
            raise file.placed(refused, pa.table({place: columns[place]})) from None
    return pa.record_batch(made)


class _SeveralTypesError(Exception):
    """Values of one name that no column holds together."""


def _column(file: ValueFile, cells: list[Any], numbers: list[int]) -> pa.Array:
    """Cells of one type as a column; of none, a column of nulls. Whole numbers and others together are numbers."""
    import pyarrow as pa

    try:
        return pa.array(cells)
    except OverflowError:
        where = next(number for number, cell in zip(numbers, cells, strict=True) if _is_large(cell))
        raise InputError(f"expected whole numbers below 2^63 ({file.place(where)})") from None
    except (pa.ArrowException, UnicodeEncodeError):
        kinds = [float if type(cell) is int else type(cell) for cell in cells]
        first = next(kind for kind in kinds if kind is not type(None))
        others = (number for number, kind in zip(numbers, kinds, strict=True) if kind not in (first, type(None)))
        where = next(others, numbers[0])
        raise _SeveralTypesError(f"expected values of one type under one name ({file.place(where)})") from None


def _is_large(cell: Any) -> bool:
    """Whether a number is none of 64 bits, or a list holds such a number."""
    return any(map(_is_large, cell)) if isinstance(cell, list) else isinstance(cell, int) and abs(cell) >= 2**63
