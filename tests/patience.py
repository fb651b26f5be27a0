"""Waiting for what must happen. The limit only catches a hang: a slow machine is not a bug."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT = 300.0
"""Seconds."""

T = TypeVar("T")


def until(look: Callable[[], T], problem: Callable[[], object] = lambda: "it does not happen") -> T:
    """What `look` returns, once that is true; `problem` says what to show where it never is."""
    end = time.monotonic() + LIMIT
    while not (found := look()):
        assert time.monotonic() < end, problem()
        time.sleep(0.01)
    return found
