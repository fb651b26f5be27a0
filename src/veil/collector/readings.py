"""Results of readings: made once however many ask at the same time, and kept until there are more reports."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from veil.collector.metrics import Metrics
from veil.collector.reader_threads import ReaderThreads
from veil.results.base import Result

__all__ = ["Reading", "Readings", "size_in_memory"]

_MOST_KEPT = 32
_MOST_BYTES = 64 << 20  # of all results that are kept

Place = tuple[str, str]


def _none() -> int:
    return 0


@dataclass(frozen=True, eq=False)
class Reading:
    """What is to be read: a study of a task, by their digests, from the reports up to a mark."""

    task: str
    study: str
    mark: int
    long: bool
    """Whether it goes through the reports themselves, which may take minutes."""
    read: Callable[[], Result]
    missing: Callable[[], int] = _none
    """Return how many damaged reports the result lacks, once it is read. Blocks."""


class Readings:
    """Runs beside one event loop, which alone touches it. Quick readings never wait for long ones."""

    def __init__(self, metrics: Metrics, quick: ReaderThreads, long: ReaderThreads) -> None:
        self._metrics, self._quick, self._long = metrics, quick, long
        self._kept: OrderedDict[Place, tuple[int, Result, int]] = OrderedDict()
        self._under_way: dict[tuple[Place, int], asyncio.Task[Result]] = {}

    async def result(self, reading: Reading) -> Result:
        """What was found: remembered, under way already, or read now. Whoever goes away leaves it to the others."""
        place = reading.task, reading.study
        mark, kept, _ = self._kept.get(place, (-1, None, 0))
        if kept is not None and mark == reading.mark:
            self._kept.move_to_end(place)
            self._metrics.add("veil_readings_total", outcome="kept")
            return kept
        task = self._under_way.get((place, reading.mark))
        if task is None:
            task = asyncio.create_task(self._made(place, reading))
            self._under_way[place, reading.mark] = task
        return await asyncio.shield(task)

    async def _made(self, place: Place, reading: Reading) -> Result:
        start = time.perf_counter()
        try:
            found, size = await (self._long if reading.long else self._quick).run(lambda: _with_size(reading.read()))
        finally:
            del self._under_way[place, reading.mark]
        self._metrics.add("veil_readings_total", outcome="made")
        self._metrics.observe("veil_reading_seconds", time.perf_counter() - start)
        if size <= _MOST_BYTES and self._kept.get(place, (-1, None, 0))[0] < reading.mark:
            self._kept[place] = reading.mark, found, size
            self._kept.move_to_end(place)
        while len(self._kept) > _MOST_KEPT or sum(size for _, _, size in self._kept.values()) > _MOST_BYTES:
            self._kept.popitem(last=False)
        return found


def _with_size(result: Result) -> tuple[Result, int]:
    return result, size_in_memory(result)


def size_in_memory(value: Any) -> int:
    """Return the approximate memory of an object and of everything it refers to, in bytes; shared parts count once."""
    total, counted, waiting = 0, set[int](), [value]
    while waiting:
        item = waiting.pop()
        if id(item) in counted or isinstance(item, type):
            continue
        counted.add(id(item))
        total += sys.getsizeof(item)
        if isinstance(item, np.ndarray):
            total += item.nbytes if item.base is not None else 0
            waiting.extend(item.flat if item.dtype.hasobject else ())
        elif isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting.extend(item)
        elif hasattr(item, "__dict__"):
            waiting.append(vars(item))
    return total
