"""What a store does after a commit so that later ones stay cheap: it may fail, and then waits longer each time.

Nothing depends on it but speed. A failure is logged and counted, and what is done at once becomes smaller: a server
that is slow, or far away, then gets through a part of it before its time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from veil.collector.logs import log
from veil.errors import StoreError

__all__ = ["Upkeep"]

_PAUSES = (1.0, 60.0)  # seconds after the first failure in a row, and at most
_SMALLEST = 16  # a part of the ordinary size
_GOOD = 64  # so many successes, and twice as much is done at once


class Upkeep:
    """Whether to do something now, and how much of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._again = self._pause = 0.0
        self._part, self._good = 1, 0
        self.failures = 0

    def portion(self, whole: int) -> int:
        """How much to do at once of what is ordinarily done."""
        return max(1, whole // self._part)

    def do(self, work: Callable[[], object]) -> None:
        """Do it, unless the pause after a failure is not over."""
        if self._clock() < self._again:
            return
        try:
            work()
        except StoreError as problem:
            self.failures += 1
            self._pause = min(max(_PAUSES[0], 2 * self._pause), _PAUSES[1])
            self._again = self._clock() + self._pause
            self._part, self._good = min(2 * self._part, _SMALLEST), 0
            log("warning", "upkeep-wait", problem, failures=self.failures, seconds=self._pause)
            return
        self._pause = 0.0
        self._good += 1
        if self._good >= _GOOD:
            self._part, self._good = max(1, self._part // 2), 0
