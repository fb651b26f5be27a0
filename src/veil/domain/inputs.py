"""People's values as columns: numpy, pandas, polars, Arrow or lists become an array and a mask of missing values.

Only this module and the domains read values. Their messages name a row, never a value.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import DomainError, InputError


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """A column of values; `missing` marks None, NaN and nulls (whose entry in `values` means nothing)."""

    values: NDArray[Any]
    missing: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


def read_column(values: Any) -> Column:
    """Read one column.

    >>> read_column([3, None, 5]).missing.tolist()
    [False, True, False]
    """
    if isinstance(values, (str, bytes, Mapping)) or not (hasattr(values, "__len__") or isinstance(values, Iterable)):
        raise InputError("expected a column of values: a list, or a numpy, pandas, polars or Arrow column")
    library = type(values).__module__.partition(".")[0]
    if library == "polars":
        values, library = values.to_arrow(), "pyarrow"
    if library == "pyarrow":
        return _from_arrow(values)
    if library == "pandas":
        return Column(_one_dimensional(values.to_numpy()), np.asarray(values.isna(), dtype=np.bool_))
    array = values if isinstance(values, np.ndarray) else _from_list(list(values))
    column = _with_missing(_one_dimensional(np.ma.getdata(array)))
    masked = (
        np.broadcast_to(np.ma.getmaskarray(values), len(column)) if isinstance(values, np.ma.MaskedArray) else False
    )
    return Column(column.values, column.missing | masked)


def read_lists(values: Any, what: str) -> tuple[NDArray[np.int64], Any]:
    """Read a column of lists: how long each is, and all their entries in one column.

    An Arrow column of lists is taken as it lies, without a Python object an entry.

    >>> read_lists([[3, 1], [], [4]], "lists")
    (array([2, 0, 1]), [3, 1, 4])
    """
    if type(values).__module__.partition(".")[0] == "pyarrow":
        import pyarrow as pa

        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if isinstance(whole, (pa.ListArray, pa.LargeListArray)) and not whole.null_count:
            return whole.value_lengths().to_numpy().astype(np.int64), whole.flatten()
    column = read_column(values)
    refuse_at(column.missing, f"expected {what}; one is missing (an empty one is a list of length 0)")
    wrong = np.array([isinstance(v, (str, bytes)) or not hasattr(v, "__iter__") for v in column.values], np.bool_)
    refuse_at(wrong, f"expected {what}")
    lists = [list(value) for value in column.values]
    return np.array([len(entries) for entries in lists], dtype=np.int64), [v for entries in lists for v in entries]


def as_columns(table: Any, names: Sequence[str]) -> list[Any]:
    """The named columns of a table: a mapping of columns, a pandas, polars or Arrow table, or a list of mappings."""
    if isinstance(table, (list, tuple)) and table and all(isinstance(row, Mapping) for row in table):
        table = {name: [row.get(name) for row in table] for name in names}
    have: Iterable[Any] = ()
    if isinstance(table, Mapping):
        have = table.keys()
    elif hasattr(table, "column_names"):
        have = table.column_names
    elif hasattr(table, "columns"):
        have = table.columns
    lacking = [name for name in names if name not in list(have)]
    if lacking:
        raise InputError(f"expected a table with the columns {', '.join(names)}; lacking: {', '.join(lacking)}")
    return [table[name] for name in names]


def as_int64(column: Column, what: str) -> NDArray[np.int64]:
    """Whole numbers, exactly; floats only where they are whole.

    >>> as_int64(read_column([1.0, 2.0]), "integers").tolist()
    [1, 2]
    """
    refuse_at(column.missing, f"expected {what}; a value is missing")
    values = column.values
    if values.dtype == object:
        refuse_at(_not_whole(values), f"expected {what}")
        refuse_at(np.array([not -(2**63) <= v < 2**63 for v in values], dtype=np.bool_), f"expected {what}")
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        refuse_at(~((np.floor(values) == values) & (np.abs(values) <= 2.0**53)), f"expected {what}")
    elif values.dtype.kind == "u":
        refuse_at(values > np.uint64(2**63 - 1), f"expected {what}")
    elif values.dtype.kind != "i":
        raise DomainError(f"expected {what}, got a column of {type_name(values)}")
    return values.astype(np.int64)


def as_seconds(column: Column, what: str) -> NDArray[np.float64]:
    """Dates and times as seconds since 1970, to the microsecond; with a zone they are taken to UTC.

    >>> import datetime as dt
    >>> as_seconds(read_column([dt.date(1970, 1, 2)]), "a date").tolist()
    [86400.0]
    """
    refuse_at(column.missing, f"expected {what}; a value is missing")
    values = column.values
    if values.dtype == object:
        refuse_at(np.array([not isinstance(v, (dt.date, np.datetime64)) for v in values], np.bool_), f"expected {what}")
        values = np.array([_without_zone(v) for v in values], dtype="datetime64[us]")
    elif values.dtype.kind != "M":
        raise DomainError(f"expected {what}, got a column of {type_name(values)}")
    fine = values.astype("datetime64[us]")
    coarse = np.datetime_data(values.dtype)[0] not in ("ns", "ps", "fs", "as")
    refuse_at(fine.astype(values.dtype) != values if coarse else np.zeros(len(values), np.bool_), f"expected {what}")
    return fine.astype(np.int64) / 1e6


def _without_zone(time: Any) -> Any:
    if not isinstance(time, dt.datetime) or time.tzinfo is None:
        return time
    with contextlib.suppress(OverflowError):  # in UTC before the year 1, or after 9999: its own clock is near enough
        time = time.astimezone(dt.UTC)
    return time.replace(tzinfo=None)


def refuse_at(wrong: NDArray[np.bool_], message: str) -> None:
    """Raise a DomainError that names the first offending row, never its value."""
    if wrong.any():
        raise DomainError(message, int(np.argmax(wrong)), int(wrong.sum()))


def type_name(values: NDArray[Any]) -> str:
    """A column's type in a word. numpy's own name would tell the length of the longest text."""
    return {"U": "text", "S": "bytes", "b": "booleans", "M": "times", "m": "durations"}.get(
        values.dtype.kind, "objects"
    )


def _not_whole(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are no integers. In a column of text, the ones that made it text are to blame, if they are few."""
    whole = [isinstance(v, (int, np.integer)) and not isinstance(v, (bool, np.bool_)) for v in values]
    wrong = ~np.array(whole, dtype=np.bool_)
    if wrong.all():
        odd = np.array([not (isinstance(v, str) and v.lstrip("-").isdigit()) for v in values], dtype=np.bool_)
        wrong = odd if odd.any() else wrong
    return wrong


def _from_arrow(values: Any) -> Column:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        raise InputError("expected an Arrow column, not a table")
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if missing.any() and pa.types.is_integer(values.type):
        values = values.fill_null(0)  # a masked placeholder, so that integers don't pass through doubles
    column = _one_dimensional(values.to_numpy(zero_copy_only=False))
    return Column(column, missing | _nan(column))


def _from_list(values: list[Any]) -> NDArray[Any]:
    plain = {type(value) for value in values}
    if plain == {int, float} and all(abs(value) <= 2**53 for value in values if type(value) is int):
        return np.array(values, dtype=np.float64)
    if plain <= {int} or plain <= {float} or (plain and all(issubclass(kind, np.number) for kind in plain)):
        try:
            array = np.array(values)
        except OverflowError:
            array = np.empty(0, dtype=object)
        whole = plain and all(issubclass(kind, (int, np.integer)) for kind in plain)
        if array.dtype.kind != "O" and not (whole and array.dtype.kind == "f"):
            return array  # integers on both sides of 2^63 would have become doubles
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # one by one: numpy would unpack lists of equal length
        array[i] = value
    return array


def _one_dimensional(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1:
        raise InputError(f"expected one value per person, got an array of {array.ndim} dimensions")
    return array


def _with_missing(array: NDArray[Any]) -> Column:
    if array.dtype == object:
        missing = [v is None or (isinstance(v, (float, dt.datetime)) and v != v) for v in array]
        return Column(array, np.array(missing, dtype=np.bool_))
    return Column(array, _nan(array))


def _nan(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    return np.asarray(np.isnat(array)) if array.dtype.kind in "mM" else np.zeros(len(array), dtype=np.bool_)
