"""Numbers as text: how they stand in CSV files."""

from __future__ import annotations

from typing import Any

import numpy as np

from veil.domain.inputs import refuse_at

__all__ = ["as_numbers"]


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
