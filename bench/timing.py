"""Interleaved best-of-many timing. The machine is noisy: only ratios of best times, taken in turns, mean anything.

A contestant is a function that does the work and returns the seconds it took, and the people it did it for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Contestant", "NotRunError", "Outcome", "local", "ratio"]


class NotRunError(Exception):
    """A row cannot run here (no compiler, no peer); the message says why."""


@dataclass(frozen=True)
class Contestant:
    """`run` does the work once for `people` people and returns the seconds it took."""

    run: Callable[[], float]
    people: int


@dataclass(frozen=True)
class Outcome:
    """One line of the table: how many times faster (or smaller) we are, and what was asked for."""

    what: str
    against: str
    ratio: float | None
    required: float | None
    note: str = ""

    @property
    def missed(self) -> bool:
        return self.ratio is not None and self.required is not None and self.ratio < self.required

    @property
    def verdict(self) -> str:
        if self.ratio is None:
            return f"not run: {self.note}"
        if self.required is None:
            return "for orientation"
        return "missed" if self.missed else "reached"


def local(work: Callable[[], Any], people: int) -> Contestant:
    """A contestant that runs in this process."""

    def run() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return Contestant(run, people)


def ratio(ours: Contestant, rival: Contestant, repeats: int) -> float:
    """How many times more people a second we serve: best times of `repeats` turns, after one that is not counted."""
    ours.run(), rival.run()  # compiles, fills caches
    best_ours = best_rival = math.inf
    for _ in range(repeats):
        best_ours = min(best_ours, ours.run())
        best_rival = min(best_rival, rival.run())
    return (best_rival / rival.people) / (best_ours / ours.people)
