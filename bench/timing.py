"""Interleaved best-of-many timing. The machine is noisy: only ratios of best times, taken in turns, mean anything.

A contestant is a function that does the work and returns the seconds it took, and the people it did it for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Contestant", "NotRunError", "Outcome", "best_times", "local", "ratio", "several", "sized"]

_LEAST_TURNS = 5
_MOST_PEOPLE = 1_000_000


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


def sized(make: Callable[[int], Contestant], seconds: float = 0.02, most: int = _MOST_PEOPLE) -> Contestant:
    """The contestant for as many people as it serves in so many seconds, or in ten times what it takes for nobody."""
    people, nobody = 2, math.inf
    while True:
        made = make(people)
        made.run()  # compiles, fills caches
        took = min(made.run() for _ in range(3))
        nobody = min(nobody, took)
        aim = max(seconds, 10 * nobody)
        if took >= aim / 4 or people >= most:
            return make(max(1, min(most, round(people * aim / took))))
        people = min(most, people * 8)


def several(make: Callable[[int], Contestant], sizes: Sequence[int], seconds: float = 0.15) -> list[Contestant]:
    """Contestants for several numbers of people, the best of which counts; growing ends where a turn lasts too long."""
    made: list[Contestant] = []
    for people in sizes:
        made.append(make(people))
        if min(made[-1].run() for _ in range(3)) > seconds / 4:
            break
    return made


def best_times(contestants: Sequence[Contestant], repeats: int, seconds: float = math.inf) -> tuple[list[float], int]:
    """Seconds a person of each, best of so many turns after one that is not counted; and how many turns it were.

    It stops early, after five turns at least, when `seconds` have passed.
    """
    for contestant in contestants:
        contestant.run()
    best = [math.inf] * len(contestants)
    end, turns = time.monotonic() + seconds, 0
    while turns < repeats and (turns < _LEAST_TURNS or time.monotonic() < end):
        best = [min(before, contestant.run()) for before, contestant in zip(best, contestants, strict=True)]
        turns += 1
    return [time_ / contestant.people for time_, contestant in zip(best, contestants, strict=True)], turns


def ratio(ours: Contestant, rival: Contestant, repeats: int) -> float:
    """How many times more people a second we serve: best times of `repeats` turns, after one that is not counted."""
    (own, other), _ = best_times((ours, rival), repeats)
    return other / own
