"""The best of many candidates that are offered a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Best"]

Codes = NDArray[Any]
Counts = NDArray[np.int64]


class Best:
    """The `keep` candidates with the largest counts of all that were offered; ties go to those offered first."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self._codes: list[Codes] = []
        self._counts: list[Counts] = []
        self._waiting = 0
        self._floor: int | None = None

    def offer(self, codes: Codes, counts: Counts) -> None:
        """Take what may be among the best."""
        self.offer_at(counts, lambda places: codes[places])

    def offer_at(self, counts: Counts, codes_at: Callable[[NDArray[np.int64]], Codes]) -> None:
        """The same where codes are made only for the places that may be among the best."""
        if self._floor is not None:
            places = np.flatnonzero(counts > self._floor)
        elif len(counts) > self.keep:
            least = np.partition(counts, len(counts) - self.keep)[len(counts) - self.keep]
            places = np.flatnonzero(counts >= least)
        else:
            places = np.arange(len(counts))
        if not len(places):
            return
        self._codes.append(codes_at(places))
        self._counts.append(counts[places])
        self._waiting += len(places)
        if self._waiting > 2 * self.keep:
            self._sort()

    def _sort(self) -> None:
        codes, counts = np.concatenate(self._codes), np.concatenate(self._counts)
        order = np.argsort(-counts, kind="stable")[: self.keep]
        self._codes, self._counts, self._waiting = [codes[order]], [counts[order]], len(order)
        if len(order) == self.keep:
            self._floor = int(counts[order[-1]])

    def taken(self) -> tuple[Codes, Counts]:
        """The best so far, the largest first."""
        self._sort()
        return self._codes[0], self._counts[0]
