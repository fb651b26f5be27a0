"""Times as text, in ISO 8601: how they stand in CSV files, in JSON and on the command line."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from veil.domain import Domain, Interval
from veil.domain.inputs import refuse_at

__all__ = ["as_times", "is_time", "parse_time"]


def is_time(domain: Domain) -> bool:
    """Whether a domain holds times."""
    return isinstance(domain, Interval) and domain.unit == "time"


def parse_time(text: Any) -> dt.datetime | None:
    """A date or time in ISO 8601, in UTC unless it names another zone; None if it is no time.

    >>> parse_time("2026-01-31T12:00:00+02:00").isoformat(), parse_time("soon")
    ('2026-01-31T10:00:00+00:00', None)
    """
    try:
        found = dt.datetime.fromisoformat(text)
        return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def as_times(column: Any) -> Any:
    """Runs on the device: an Arrow column of times as it is, or read from text. Names the row of what is no time."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    try:
        return column.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # not a time, or one with a zone
        texts = column.to_pylist()
    read = [parse_time(text) for text in texts]
    wrong = [time is None and text is not None for time, text in zip(read, texts, strict=True)]
    refuse_at(np.array(wrong), "expected times in ISO 8601, as in 2026-01-31 or 2026-01-31T12:00:00")
    return pa.array(read, pa.timestamp("us", tz="UTC"))
