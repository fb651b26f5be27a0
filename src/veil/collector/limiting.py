"""At most so many requests a minute from one address, without keeping addresses.

An address becomes two numbers at once, by a hash with a key that was drawn when the collector started; only counts
stand under these numbers, in a table of fixed size. Every minute the key is replaced by its own hash and the old one
forgotten: nobody can say afterwards whether an address was here. Two addresses that share both numbers share their
limit, which is rare in so large a table; the smaller of the two counts decides.
"""

from __future__ import annotations

import hashlib
import mmap
import secrets
import socket
import time
from collections.abc import Callable

__all__ = ["AddressLimit"]

_WINDOW_SECONDS = 60
_CELLS = 1 << 16
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
        self._memory = mmap.mmap(-1, 2 * 4 * _CELLS)
        self._counts = memoryview(self._memory).cast("I")
        self._key = secrets.token_bytes(32)
        self._window = int(clock()) // _WINDOW_SECONDS

    def wait(self, address: str) -> int:
        """Count a request: 0 where it may go on, otherwise the seconds until the next minute begins."""
        now = self._clock()
        window = int(now) // _WINDOW_SECONDS
        if window != self._window:
            self._turn(window)
        digest = hashlib.blake2b(_packed(address), key=self._key, digest_size=8).digest()
        # the low half of a cell counts, the high half says for which minute: nobody has to empty the table
        mark = (window & 0xFFFF) << 16
        fewest = 0xFFFF
        for row in range(2):
            cell = row * _CELLS + int.from_bytes(digest[4 * row : 4 * row + 2], "little")
            found = self._counts[cell]
            count = (found & 0xFFFF) + 1 if found & 0xFFFF0000 == mark else 1
            self._counts[cell] = mark | min(count, 0xFFFF)
            fewest = min(fewest, count)
        return 0 if fewest <= self._most else max(1, int((window + 1) * _WINDOW_SECONDS - now))

    def _turn(self, window: int) -> None:
        """All processes turn the same key in the same way, each when it notices the new minute."""
        for _ in range(min(max(window - self._window, 0), 1 << 20)):
            self._key = hashlib.blake2b(self._key, digest_size=32).digest()
        self._window = max(window, self._window)


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
