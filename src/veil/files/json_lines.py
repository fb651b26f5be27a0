"""JSON lines: one object a line is one person; a name that is not there, or null, is a missing value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veil.entropy import CHUNK_ROWS
from veil.errors import DomainError, InputError, WireError
from veil.tools.json_documents import load_json

if TYPE_CHECKING:
    import pyarrow as pa

    from veil.files.value_file import ValueFile

__all__ = ["Expected", "read_lines"]


Expected = Mapping[str, tuple[tuple[type, ...], str]]
"""What the values of a name are in JSON, and what is said where they are something else."""


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
