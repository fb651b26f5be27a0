"""Lists of submissions as bytes: an id and a number of people each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veil.shuffle.parties.kept import ID_BYTES

__all__ = ["LISTING", "ROW_BYTES", "pack", "unpack"]

LISTING = 1
"""The label of a list on the way."""

_ROW = np.dtype([("name", f"V{ID_BYTES}"), ("count", ">u4")])
ROW_BYTES = _ROW.itemsize
"""Bytes of one submission, which is of at least one person."""


def pack(submissions: Sequence[tuple[bytes, int]]) -> NDArray[np.uint8]:
    """Submissions as bytes.

    >>> unpack(pack([(bytes(16), 3)])) == [(bytes(16), 3)]
    True
    """
    return np.array(list(submissions), dtype=_ROW).view(np.uint8)


def unpack(data: NDArray[np.uint8]) -> list[tuple[bytes, int]]:
    """The same backwards."""
    rows = np.frombuffer(data.tobytes(), dtype=_ROW)
    return [(bytes(row["name"]), int(row["count"])) for row in rows]
