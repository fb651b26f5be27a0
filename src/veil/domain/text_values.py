"""Values as text, as in CSV files: numbers, sets of items with separators, and times in ISO 8601."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from veil.domain import Domain, Interval
from veil.domain.inputs import refuse_at
from veil.errors import InputError


def as_numbers(column: Any, expected: str) -> Any:
    """Runs on the device: an Arrow column as it is, or numbers (or booleans) read from text.

    Spaces around them do not count, whole numbers stay whole, and what is no number is refused by its row.

    >>> import pyarrow as pa
    >>> as_numbers(pa.array([" 12", None]), "expected integers").to_pylist()
    [12, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    texts = pc.utf8_trim_whitespace(column)
    for kind in (pa.int64(), pa.uint64(), pa.float64(), pa.bool_()):
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:  # its message quotes the text
            continue
    wrong = [text is not None and not _is_number(text) for text in texts.to_pylist()]
    refuse_at(np.array(wrong, dtype=np.bool_), f"{expected}; a value is text that is no number")
    raise AssertionError("numbers that are none together")


def _is_number(text: str) -> bool:
    import pyarrow as pa

    try:
        pa.array([text]).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


SEPARATOR = ";"


def as_sets(column: Any, separator: str = SEPARATOR) -> Any:
    """Runs on the device: an Arrow column of text as one of lists of text; an empty cell is an empty set.

    Spaces around an item do not count, and neither does nothing between two separators.

    >>> import pyarrow as pa
    >>> as_sets(pa.chunked_array([["tea; milk", None, "salt;"]])).to_pylist()
    [['tea', 'milk'], [], ['salt']]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not separator:
        raise InputError("a separator is at least one character")
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    parts = pc.split_pattern(pc.fill_null(whole, ""), separator)
    items = pc.utf8_trim_whitespace(parts.flatten())
    people = np.repeat(np.arange(len(parts)), parts.value_lengths().to_numpy())
    kept = pc.not_equal(items, "")
    sizes = np.bincount(people[kept.to_numpy(zero_copy_only=False)], minlength=len(parts))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items.filter(kept))


def as_whole_items(lists: Any) -> Any:
    """Runs on the device: lists of text as lists of integers, where that is what the items are."""
    import pyarrow as pa

    try:
        return lists.cast(pa.list_(pa.int64()))
    except pa.ArrowInvalid:  # its message would quote the item
        raise InputError("expected sets of whole numbers: this survey's items have numbers for names") from None


def is_time(domain: Domain) -> bool:
    """Whether a domain holds times."""
    return isinstance(domain, Interval) and domain.unit == "time"


def parse_time(text: Any) -> dt.datetime | None:
    """A date or time in ISO 8601, in UTC unless it names another zone; None if it is no time.

    >>> parse_time("2026-01-31T12:00:00+02:00").isoformat(), parse_time("soon")
    ('2026-01-31T10:00:00+00:00', None)
    """
    try:
        found = dt.datetime.fromisoformat(text)
        return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def as_times(column: Any) -> Any:
    """Runs on the device: an Arrow column of times as it is, or read from text. Names the row of what is no time."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    try:
        return column.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # not a time, or one with a zone
        texts = column.to_pylist()
    read = [parse_time(text) for text in texts]
    wrong = [time is None and text is not None for time, text in zip(read, texts, strict=True)]
    refuse_at(np.array(wrong), "expected times in ISO 8601, as in 2026-01-31 or 2026-01-31T12:00:00")
    return pa.array(read, pa.timestamp("us", tz="UTC"))
