"""Tables of attributes as tables of their bits, and back: what binary-encoded protocols share.

An attribute of d values has ceil(log2 d) bits, those of its code. Where d is no power of 2, some combinations of bits
are no value: nobody holds them, yet noise puts people there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Record
from veil.view import Bit, bits_of, width_of

__all__ = ["bit_name", "bit_record", "held_cells", "walsh", "widths_of"]

Floats = NDArray[np.float64]


def bit_name(bit: Bit) -> str:
    """A bit of an attribute as an attribute of its own.

    >>> bit_name(("age", 2))
    'age.2'
    """
    name, number = bit
    return f"{name}.{number}"


def bit_record(record: Record) -> Record:
    """The record whose attributes are the bits of another's: `age.0`, the highest bit of the age, and so on.

    >>> bit_record(Record.of(sex=2, age=5)).names
    ('sex.0', 'age.0', 'age.1', 'age.2')
    """
    return Record(tuple((bit_name(bit), Categories.range(2)) for bit in bits_of(record)))


def widths_of(record: Record) -> tuple[int, ...]:
    """How many bits each attribute has."""
    return tuple(width_of(part.size) for part in record.parts)


def held_cells(table: NDArray[Any], sizes: Sequence[int]) -> NDArray[Any]:
    """A table of all combinations of the bits of some attributes, cut to those that are values of the attributes.

    >>> held_cells(np.arange(8.0), [3, 2]).tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """
    cut: NDArray[Any] = table.reshape([1 << width_of(size) for size in sizes])[tuple(slice(size) for size in sizes)]
    return cut


def walsh(values: Floats) -> Floats:
    """The Walsh-Hadamard transform of 2^b numbers: entry i is the sum over j of (-1)^(bits that i and j share) v_j.

    >>> walsh(np.array([0.4, 0.3, 0.2, 0.1])).round(6).tolist()
    [1.0, 0.2, 0.4, 0.0]
    """
    found = np.array(values, dtype=np.float64)
    half = 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return found
