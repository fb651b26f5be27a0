"""Interleaved best-of-many timing. The machine is noisy: only ratios of best times, taken in turns, mean anything.

A row of the table is a contestant of ours, and a rival or a limit; it is measured when `Row.outcome` is called.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_LEAST_TURNS = 5
_MOST_PEOPLE = 1_000_000


class NotRunError(Exception):
    """A row cannot run here (no compiler, no peer); the message says why."""


@dataclass(frozen=True)
class Contestant:
    """`run` does the work once for `people` people and returns what it cost: seconds, megabytes, or a ratio."""

    run: Callable[[], float]
    people: int
    warm: bool = True
    """Whether one run that is not counted goes before the others."""


@dataclass(frozen=True)
class Setting:
    """How much to measure: turns of a row, reports of the rows about memory, and whether rivals are started."""

    repeats: int = 100
    reports: int = 10_000_000
    rivals: bool = True
    quick: bool = False


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


@dataclass(frozen=True)
class Row:
    """A line of the table that was not measured yet. `rival` is a contestant, or a limit of our cost for one person."""

    what: str
    against: str
    required: float | None
    ours: Contestant
    rival: Contestant | Callable[[], Contestant] | float
    turns: int

    def outcome(self) -> Outcome:
        """Measure both sides in turns."""
        try:
            if isinstance(self.rival, float | int):
                (cost,), _ = best_times((self.ours,), self.turns)
                return Outcome(self.what, self.against, self.rival / cost, self.required)
            rival = self.rival if isinstance(self.rival, Contestant) else self.rival()
            (cost, other), _ = best_times((self.ours, rival), self.turns)
            return Outcome(self.what, self.against, other / cost, self.required)
        except NotRunError as why:
            return Outcome(self.what, self.against, None, self.required, str(why))


def once(cost: Callable[[], float]) -> Contestant:
    """A contestant that measures its cost by itself, in one turn."""
    return Contestant(cost, 1, warm=False)


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
    """Seconds a person of each, best of several turns after one that is not counted, and the number of turns.

    It stops early, after five turns at least, when `seconds` have passed.
    """
    for contestant in contestants:
        if contestant.warm:
            contestant.run()
    best = [math.inf] * len(contestants)
    end, turns = time.monotonic() + seconds, 0
    while turns < repeats and (turns < _LEAST_TURNS or time.monotonic() < end):
        best = [min(before, contestant.run()) for before, contestant in zip(best, contestants, strict=True)]
        turns += 1
    return [time_ / contestant.people for time_, contestant in zip(best, contestants, strict=True)], turns
