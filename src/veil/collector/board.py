"""A piece of memory that worker processes share: each writes in a place of its own, and reads what the others wrote.

Nothing locks: a reader checks a sum, and takes a place that is just being written for empty.
"""

from __future__ import annotations

import mmap
import struct
import zlib

__all__ = ["Board"]

_PLACE_BYTES = 1 << 18
_HEAD = struct.Struct("<II")  # length, CRC-32


class Board:
    """Places of so many processes. Made before they are; `of(i)` is the board as process i sees it.

    >>> board = Board(2)
    >>> board.of(1).write(b"hello")
    >>> board.of(0).others(), board.of(1).own()
    ([b'hello'], b'hello')
    """

    def __init__(self, processes: int, place: int = 0, memory: mmap.mmap | None = None) -> None:
        self._processes, self._place = processes, place
        self._memory = mmap.mmap(-1, processes * _PLACE_BYTES) if memory is None else memory

    def of(self, process: int) -> Board:
        """The same board, with another place of one's own."""
        return Board(self._processes, process, self._memory)

    def write(self, data: bytes) -> None:
        """Replace what stands in one's own place; what is too long for it is left out."""
        if len(data) > _PLACE_BYTES - _HEAD.size:
            return
        start = self._place * _PLACE_BYTES
        self._memory[start + _HEAD.size : start + _HEAD.size + len(data)] = data
        self._memory[start : start + _HEAD.size] = _HEAD.pack(len(data), zlib.crc32(data))

    def own(self) -> bytes | None:
        """What stands in one's own place: a process before this one may have written it."""
        return self._read(self._place)

    def others(self) -> list[bytes]:
        """What the others wrote."""
        found = [self._read(place) for place in range(self._processes) if place != self._place]
        return [data for data in found if data is not None]

    def _read(self, place: int) -> bytes | None:
        start = place * _PLACE_BYTES
        length, check = _HEAD.unpack(self._memory[start : start + _HEAD.size])
        data = self._memory[start + _HEAD.size : start + _HEAD.size + min(length, _PLACE_BYTES - _HEAD.size)]
        return data if length and zlib.crc32(data) == check else None
