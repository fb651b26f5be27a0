"""Logs: one JSON object per line on standard error, about the service and never about a person.

No report, address or value is logged, and no line is written for a report, so that no log shows when one came.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from veil.errors import StoreFullError

_LOGGER = logging.getLogger("veil.collector")
_SELDOM_SECONDS = 10.0
_ARGUMENT = re.compile(r"\s*\[?%[-+ #0-9.]*[a-zA-Z]\]?")


def set_up(level: str) -> None:
    """Send the logs of the collector and of uvicorn to standard error, as JSON."""
    handler = _WholeLines()
    handler.setFormatter(_JsonLines())
    for name in ("veil.collector", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.setLevel(level.upper())
        logger.propagate = name == "uvicorn.error"


def log(level: str, event: str, problem: BaseException | None = None, **facts: str | int | float | None) -> None:
    """Note an event. Of a problem only its kind and place are written: its words may hold what somebody sent."""
    if problem is not None:
        facts["problem"], facts["place"] = type(problem).__name__, _place(problem)
    if isinstance(problem, StoreFullError):  # its words are our own
        facts["reason"] = "the disk is full"
    _LOGGER.log(getattr(logging, level.upper()), event, extra={"facts": facts})


def _place(problem: BaseException) -> str | None:
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None


class RateLimitedLog:
    """A log for events that requests can cause: one line per kind in ten seconds, with the number of `times`.

    >>> now = [0.0]
    >>> seldom = RateLimitedLog(lambda: now[0])
    >>> [seldom("warning", "unavailable"), seldom("warning", "unavailable"), seldom("warning", "internal")]
    [True, False, True]
    >>> now[0] = 10.0
    >>> seldom("warning", "unavailable")
    True
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str, str | None], tuple[float, int]] = {}  # of each kind: when, and how many since

    def __call__(self, level: str, event: str, problem: BaseException | None = None, **facts: str | int) -> bool:
        """Note an event as `log` does, or count it for the next line; says whether a line was written."""
        kind = (event, type(problem).__name__, None if problem is None else _place(problem))
        now = self._clock()
        when, times = self._told.get(kind, (-_SELDOM_SECONDS, 0))
        if now - when < _SELDOM_SECONDS:
            self._told[kind] = (when, times + 1)
            return False
        self._told[kind] = (now, 0)
        log(level, event, problem, times=times + 1, **facts)
        return True


class _WholeLines(logging.Handler):
    """A handler that writes each line with one call, so that lines of several threads and processes never mix."""

    def emit(self, record: logging.LogRecord) -> None:
        data = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
        try:
            while data:  # the system takes it whole, unless a reader of a pipe is slow
                data = data[os.write(sys.stderr.fileno(), data) :]
        except (OSError, ValueError):  # nobody reads any more: the service goes on
            return


def _words(template: str) -> str:
    """A line of uvicorn's without its arguments, which may be an address: its own words are fixed sentences.

    >>> _words("Started server process [%d]")
    'Started server process'
    """
    return _ARGUMENT.sub("", template).strip()


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(int(record.created), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if record.name.startswith("veil.") else _words(str(record.msg)),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["problem"] = record.exc_info[0].__name__
        return json.dumps(line)
