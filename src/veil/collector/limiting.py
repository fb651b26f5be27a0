"""At most so many requests a minute from one address, without keeping addresses.

An address becomes two numbers at once, by a hash with a key; only counts stand under these numbers, in a table of fixed
size. Every minute the table is emptied and another key is drawn in the place of the old one: nobody can say afterwards
whether an address was here. Key and table stand in memory that all processes share, and nowhere else: also the one that
started the others has only the key of this minute. Two addresses that share both numbers share their
limit, which is rare in so large a table; the smaller of the two counts decides.
"""

from __future__ import annotations

import hashlib
import mmap
import secrets
import socket
import struct
import time
from collections.abc import Callable

__all__ = ["AddressLimit"]

_WINDOW_SECONDS = 60
_CELLS = 1 << 16
_TABLE_BYTES = 2 * 4 * _CELLS
_KEY = struct.Struct("<q32s")  # the minute for which the key was drawn, and the key; it stands behind the table
_PREFIX_BYTES = 8  # of an address of version 6: a household has all that follow
_MAPPED = bytes(10) + b"\xff\xff"


class AddressLimit:
    """A limit that processes share if it is made before they are.

    >>> limit = AddressLimit(2, clock=lambda: 30.0)
    >>> [limit.wait("192.0.2.1") for _ in range(3)], limit.wait("192.0.2.2")
    ([0, 0, 30], 0)
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most, self._clock = most, clock
        self._memory = mmap.mmap(-1, _TABLE_BYTES + _KEY.size)
        self._counts = memoryview(self._memory)[:_TABLE_BYTES].cast("I")
        self._begin(self._minute())

    def wait(self, address: str, kind: bytes = b"", count: int = 1) -> int:
        """Count `count` requests of a kind. Return 0 if they may go on, otherwise the seconds until the next minute.

        Each kind of requests has a limit of its own.
        """
        now = self._clock()
        window = self.turn()
        digest = hashlib.blake2b(_packed(address) + kind, key=self._key, digest_size=8).digest()
        # the low half of a cell counts, the high half says for which minute: whoever is late writes what nobody reads
        mark = (window & 0xFFFF) << 16
        fewest = 0xFFFF
        for row in range(2):
            cell = row * _CELLS + int.from_bytes(digest[4 * row : 4 * row + 2], "little")
            found = self._counts[cell]
            total = (found & 0xFFFF) + count if found & 0xFFFF0000 == mark else count
            self._counts[cell] = mark | min(total, 0xFFFF)
            fewest = min(fewest, total)
        return 0 if fewest <= self._most else max(1, int((window + 1) * _WINDOW_SECONDS - now))

    def turn(self) -> int:
        """Which minute it is; in a new one, forget the last one's counts and key. Call it also when nobody sends.

        Nobody is locked out: of several processes that notice at the same moment the last one's key stays, and at worst
        a few requests of that moment are not counted.
        """
        window = self._minute()
        drawn_for, _ = _KEY.unpack_from(self._memory, _TABLE_BYTES)
        if not drawn_for - 1 <= window <= drawn_for:  # a minute before it is a process that looked at the clock earlier
            self._begin(window)
        return window

    def _minute(self) -> int:
        return int(self._clock()) // _WINDOW_SECONDS

    def _begin(self, window: int) -> None:
        self._memory[:] = bytes(_TABLE_BYTES) + _KEY.pack(window, secrets.token_bytes(32))

    @property
    def _key(self) -> bytes:
        return self._memory[_TABLE_BYTES + _KEY.size - 32 : _TABLE_BYTES + _KEY.size]


def _packed(address: str) -> bytes:
    """An address of version 4, the network part of one of version 6; whatever else it is, its text."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            packed = socket.inet_pton(family, address)
        except (OSError, ValueError):
            continue
        if len(packed) == 16:
            return packed[12:] if packed.startswith(_MAPPED) else packed[:_PREFIX_BYTES]
        return packed
    return address.encode("utf-8", "replace")
