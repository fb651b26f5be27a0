"""A piece of memory that worker processes share: each writes in a place of its own, and reads what the others wrote.

Nothing locks. A place has two halves, which are written by turns: while one is being written, or was left half written
by a process that was killed, the other one still holds what was there before, and a sum says which of them are whole.
"""

from __future__ import annotations

import mmap
import struct
import zlib

__all__ = ["Board"]

_PLACE_BYTES = 1 << 19
_HALF_BYTES = _PLACE_BYTES // 2
_HEAD = struct.Struct("<QII")  # how often this place was written, length, CRC-32 of both and of the data


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
        if len(data) > _HALF_BYTES - _HEAD.size:
            return
        number = 1 + max(number for number, _ in self._halves(self._place))
        start = self._place * _PLACE_BYTES + number % 2 * _HALF_BYTES
        self._memory[start : start + _HEAD.size + len(data)] = _packed(number, data)

    def own(self) -> bytes | None:
        """What stands in one's own place: a process before this one may have written it."""
        return self._read(self._place)

    def others(self) -> list[bytes]:
        """What the others wrote."""
        found = [self._read(place) for place in range(self._processes) if place != self._place]
        return [data for data in found if data is not None]

    def _read(self, place: int) -> bytes | None:
        _, data = max(self._halves(place))
        return data or None

    def _halves(self, place: int) -> list[tuple[int, bytes]]:
        """Of both halves: their number and what they hold; 0 and nothing where that is not whole."""
        found = []
        for start in (place * _PLACE_BYTES, place * _PLACE_BYTES + _HALF_BYTES):
            number, length, _ = _HEAD.unpack_from(self._memory, start)
            written = self._memory[start : start + min(_HEAD.size + length, _HALF_BYTES)]
            data = written[_HEAD.size :]
            found.append((number, data) if written == _packed(number, data) else (0, b""))
        return found


def _packed(number: int, data: bytes) -> bytes:
    check = zlib.crc32(data, number & 0xFFFFFFFF)
    return _HEAD.pack(number, len(data), check) + data
