"""What every peer's process does: read one JSON request a line, do the job, answer in one line. Imports no veil.

Set-up (clients, and the reports that are to be counted) is made once and not timed.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from peak import peak_mb


@dataclass(frozen=True)
class Oracle:
    """A peer's oracle: an item to a report, all reports to frequencies. `slow`: `whole` counts a few of them only."""

    randomize: Callable[[int], Any]
    collect: Callable[[list[Any]], Any]
    slow: bool = False


Build = Callable[[int, float], Oracle]
SLOW_REPORTS = 2048


def serve(oracles: Mapping[str, Build], first_item: int) -> None:
    """Answer requests until the input ends. A peer counts its items from `first_item`."""

    @lru_cache
    def prepared(job: str, oracle: str, people: int, domain: int, epsilon: float) -> Callable[[], Any]:
        made = oracles[oracle](domain, epsilon)
        items = random.Random(0).choices(range(first_item, first_item + domain), k=people)  # noqa: S311
        if job == "randomize":
            return lambda: [made.randomize(item) for item in items]
        reports = [made.randomize(item) for item in items]
        return lambda: made.collect(reports)

    def whole(oracle: str, people: int, domain: int, epsilon: float) -> dict[str, Any]:
        """Everybody's reports at once, then the estimate; person i holds value i mod domain."""
        made = oracles[oracle](domain, epsilon)
        reports = [made.randomize(first_item + i % domain) for i in range(people)]
        counted = min(people, SLOW_REPORTS) if made.slow else people
        frequencies = made.collect(reports[:counted])
        listed = None if frequencies is None else [float(share) for share in frequencies]
        return {"peak_mb": peak_mb(), "counted": counted, "frequencies": listed}

    for line in sys.stdin:
        request = json.loads(line)
        if request["oracle"] not in oracles:
            answer: dict[str, Any] = {"lacks": request["oracle"]}
        elif request["job"] == "whole":
            answer = whole(**{key: value for key, value in request.items() if key != "job"})
        else:
            work = prepared(**request)
            start = time.perf_counter()
            work()
            answer = {"seconds": time.perf_counter() - start}
        print(json.dumps(answer), flush=True)
