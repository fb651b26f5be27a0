"""What the columns of a file hold: the domains of a record's attributes, read off public or made-up data.

What is found becomes part of a study, which everybody may read: never read it off data whose labels are private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from veil.domain import Categories, Domain, Integers
from veil.domain.text_values import parse_time
from veil.errors import EmptyError, InputError
from veil.files.opening import PathLike
from veil.files.values import read_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_VALUES", "is_whole", "read_attributes"]

MOST_VALUES = 4096
"""How many different values of a column are taken for labels, or as a range of integers."""
_FEW = 12  # so many different integers are labels, which need not follow each other; more are a range


def read_attributes(path: PathLike, names: Sequence[str]) -> dict[str, Domain]:
    """The domain of each named column: its labels in order, or the range of its integers.

    Text is one of the labels found, and booleans are the labels "false" and "true". Integers are labels where there
    are at most 12 different ones, else all those between the smallest and the largest. Where cells are empty, "missing"
    is an answer of its own. Numbers with fractions and times are refused, with what to write instead.
    """
    found: dict[str, set[Any]] = {name: set() for name in names}
    rows = 0
    for table in read_columns(path, names):
        rows += table.num_rows
        for name in names:
            found[name] |= _different(table.column(name), name)
            if len(found[name]) > MOST_VALUES + 1:
                raise InputError(_many(name, found[name]))
    if not rows:
        raise EmptyError(f"{path} holds no people: there is nothing to read attributes off")
    return {name: _domain(values, name) for name, values in found.items()}


def _different(column: pa.ChunkedArray, name: str) -> set[Any]:
    """The different values in a column; of text that writes whole numbers, still text."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        return {"false", "true"} | ({None} if column.null_count else set())
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(_continuous(name, time=pa.types.is_temporal(kind)))
    return set(column.unique().to_pylist())


def _continuous(name: str, *, time: bool) -> str:
    return (
        f"column {name} holds neither labels nor whole numbers: say in how many cells it is asked for, "
        f"as in --attribute {name}={'2026-01-01..2027-01-01/12' if time else '0..100/10'}"
    )


def _many(name: str, values: set[Any]) -> str:
    told = {value for value in values if isinstance(value, str)}
    if told and all(map(_is_number_or_time, told)) and not all(map(is_whole, told)):
        return _continuous(name, time=_has_time(told))
    return (
        f"column {name} has more than {MOST_VALUES:,} different values: put them together in fewer groups, "
        f"as in --attribute {name}=0..100/10 for numbers, or leave it out"
    )


def _domain(values: set[Any], name: str) -> Domain:
    present = values - {None}
    whole = all(isinstance(value, int) or is_whole(value) for value in present)
    if whole and len(present) > _FEW:
        integers = [int(value) for value in present]
        if None in values:
            raise InputError(f"column {name} has empty cells among its numbers: fill them, or leave it out")
        if max(integers) - min(integers) >= MOST_VALUES:
            raise InputError(
                f"column {name} has whole numbers over a range of more than {MOST_VALUES:,}: ask for it in cells, "
                f"as in --attribute {name}=0..100000/10"
            )
        return Integers(min(integers), max(integers))
    if present and not whole and all(map(_is_number_or_time, present)):  # in a text file, where all is text
        time = _has_time(present)
        listed = "2026-01-31,2026-02-28" if time else "0.5,1.0"
        raise InputError(f"{_continuous(name, time=time)}; or list its labels, as in --attribute {name}={listed}")
    if len(present) > MOST_VALUES:
        raise InputError(_many(name, present))
    if not present:
        raise EmptyError(f"column {name} is empty")
    labels = sorted(int(value) for value in present) if whole else sorted(map(str, present))
    return Categories(labels, missing="category" if None in values else "refuse")


def _is_number_or_time(value: Any) -> bool:
    """Whether a value of a text file is a number or a time; codes as 007 are labels."""
    if isinstance(value, int):
        return True
    if value.isdecimal() and not is_whole(value):
        return False
    try:
        return math.isfinite(float(value))
    except ValueError:
        return parse_time(value) is not None


def _has_time(values: set[Any]) -> bool:
    """Whether there is a time among numbers and times, as text."""
    return any(parse_time(value) is not None and not is_whole(value) for value in values)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number as it is usually written.

    >>> is_whole("-12"), is_whole("007"), is_whole("1.0")
    (True, False, False)
    """
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 15 and text == str(int(text))
