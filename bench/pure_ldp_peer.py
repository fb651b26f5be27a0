"""Runs inside the peers' environment: reads one JSON request a line, answers with the seconds that pure-ldp took.

It imports nothing of veil. Set-up (clients, and the reports that are to be counted) is made once and not timed.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer


@lru_cache
def prepared(job: str, people: int, domain: int, epsilon: float) -> Callable[[], Any]:
    """The work to time. pure-ldp counts items from 1."""
    items = random.Random(0).choices(range(1, domain + 1), k=people)  # noqa: S311
    client = DEClient(epsilon, domain) if job == "grr-randomize" else LHClient(epsilon, domain, use_olh=True)
    if job in ("grr-randomize", "olh-randomize"):
        return lambda: [client.privatise(item) for item in items]
    server = LHServer(epsilon, domain, use_olh=True)
    reports = [client.privatise(item) for item in items]
    return lambda: [server.aggregate(report) for report in reports]


for line in sys.stdin:
    work = prepared(**json.loads(line))
    start = time.perf_counter()
    work()
    print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
