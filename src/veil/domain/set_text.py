"""Sets as text: items between separators, as they stand in CSV files."""

from __future__ import annotations

from typing import Any

import numpy as np

from veil.errors import InputError

__all__ = ["SEPARATOR", "as_sets", "as_whole_items"]

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
