"""At most so many requests a minute from one address, without keeping addresses.

A keyed hash turns an address into two numbers at once; only counts stand under these numbers, in a table of fixed size.
Every minute the table is emptied and another key takes the place of the old one: nobody can say afterwards whether an
address was here. Two addresses that share both numbers share their limit, which is rare in so large a table; the
smaller of the two counts decides.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import time
from collections.abc import Callable

__all__ = ["AddressLimit"]

_WINDOW_SECONDS = 60
_CELLS = 1 << 16
_TABLE_BYTES = 2 * 4 * _CELLS
_KEY_BYTES = 32
_PREFIX_BYTES = 8  # of an address of version 6: a household has all that follow
_MAPPED = bytes(10) + b"\xff\xff"


class AddressLimit:
    """A limit of requests by address. Runs within the collector's event loop.

    >>> limit = AddressLimit(2, clock=lambda: 30.0)
    >>> [limit.wait("192.0.2.1") for _ in range(3)], limit.wait("192.0.2.2")
    ([0, 0, 30], 0)
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most, self._clock = most, clock
        self._table, self._key = bytearray(_TABLE_BYTES), bytearray(_KEY_BYTES)
        self._counts = memoryview(self._table).cast("I")
        self._window = self._minute()
        self._forget()

    def wait(self, address: str, kind: bytes = b"", count: int = 1) -> int:
        """Count `count` requests of a kind. Return 0 if they may go on, otherwise the seconds until the next minute.

        Each kind of requests has a limit of its own.
        """
        now = self._clock()
        self.turn()
        digest = hashlib.blake2b(_packed(address) + kind, key=self._key, digest_size=8).digest()
        fewest = too_many = self._most + 1
        for row in range(2):
            cell = row * _CELLS + int.from_bytes(digest[4 * row : 4 * row + 2], "little")
            total = min(self._counts[cell] + count, too_many)
            self._counts[cell] = total
            fewest = min(fewest, total)
        return 0 if fewest < too_many else max(1, int((self._window + 1) * _WINDOW_SECONDS - now))

    def turn(self) -> None:
        """In a new minute, forget the counts and the key of the last one. Call it also when nobody sends."""
        window = self._minute()
        if window != self._window:
            self._window = window
            self._forget()

    def _minute(self) -> int:
        return int(self._clock()) // _WINDOW_SECONDS

    def _forget(self) -> None:
        """Overwrite the table and the key, so that neither stays in memory."""
        self._table[:] = bytes(_TABLE_BYTES)
        self._key[:] = secrets.token_bytes(_KEY_BYTES)


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
