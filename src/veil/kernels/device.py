"""Where integers are counted: on this machine's cores, or on a device that was chosen for a while.

The mechanisms call the functions here; without a choice they run the compiled loops beside this file. A device gets the
same plain arrays and gives the same integers (`veil.engines.gpu` has the one for a GPU). The choice belongs to the
context that made it: to its thread, and to the threads that `threads` works with for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Device", "Hashed", "Pieces", "chosen", "count_hashed", "counting_on"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Pieces = Callable[[], Iterable[tuple[Words, NDArray[Any]]]]
"""Seeds and buckets, a piece at a time; anew with every call."""


@dataclass(frozen=True, eq=False)
class Hashed:
    """Reports of a local hash, a seed and one of `buckets` buckets each, and the spread values of candidates."""

    seeds: Words
    reported: NDArray[Any]
    buckets: int
    spread: Words


class Device(Protocol):
    """Something beside this machine's cores that counts."""

    name: str

    def count_hashed(self, given: Hashed, weights: Ints | None) -> Ints:
        """The reports, or the weight of the reports, that support each candidate."""

    def joint_hashed(self, first: Hashed, second: Hashed) -> Ints:
        """result[a, b, s, t]: people who support a in the first question or not (s), and b in the second or not (t)."""

    def decodes(self, prime: int, cells: int) -> bool:
        """Whether `cosets` is worth it for a field and a number of cells: memory grows with their product."""

    def cosets(self, pieces: Pieces, prefixes: Words, prime: int, digits: int, kept: int) -> Iterator[Ints]:
        """For each spread prefix, the support of the first `kept` values behind it by linear hashing."""


_CHOSEN: ContextVar[Device | None] = ContextVar("veil_counting_device", default=None)


def chosen() -> Device | None:
    """The device that counts here and now; None stands for this machine's cores."""
    return _CHOSEN.get()


@contextmanager
def counting_on(device: Device | None) -> Iterator[None]:
    """Count on a device while this lasts; None is this machine's cores again.

    >>> with counting_on(None):
    ...     chosen() is None
    True
    """
    before = _CHOSEN.set(device)
    try:
        yield
    finally:
        _CHOSEN.reset(before)


def count_hashed(given: Hashed, weights: Ints | None) -> Ints:
    """The reports, or the weight of the reports, that support each candidate."""
    device = chosen()
    if device is not None:
        return device.count_hashed(given, weights)
    from veil.kernels import counting
    from veil.kernels.threads import add_up

    count = counting.count_hashed if weights is None else counting.count_hashed_weighted
    by_row = (given.seeds, given.reported, weights)
    return add_up(count, by_row, given.buckets, *counting.halves(given.spread), work=len(given.spread))
