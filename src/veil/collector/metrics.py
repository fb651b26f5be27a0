"""Counters, gauges and summaries as Prometheus reads them: how the service fares, never what people answered."""

from __future__ import annotations

import threading
from functools import lru_cache

__all__ = ["Metrics"]

_HELP = {
    "veil_reports_total": ("counter", "Reports by what became of them: stored, or replayed and counted before."),
    "veil_requests_total": ("counter", "Requests by route and status."),
    "veil_refused_total": ("counter", "Refused requests by code."),
    "veil_commit_failures_total": ("counter", "Commits that the database refused; none of them was acknowledged."),
    "veil_commit_seconds": ("summary", "Durable commits: how many, and how long they took together."),
    "veil_tally_seconds": ("summary", "Updates of tallies: how many, and how long they took together."),
    "veil_readings_total": ("counter", "Results for answers: made from the reports or their tally, or kept in memory."),
    "veil_reading_seconds": ("summary", "Results that were made: how many, and how long they took together."),
    "veil_rounds_total": ("counter", "Rounds of studies that were closed and read."),
    "veil_connections": ("gauge", "Open connections, looked at every second."),
    "veil_connections_closed_total": ("counter", "Connections that were closed from here, by reason."),
    "veil_queue_reports": ("gauge", "Reports that wait for a commit."),
    "veil_body_bytes": ("gauge", "Bytes of request bodies that are being read."),
}


@lru_cache(maxsize=1024)
def _written(**labels: str) -> str:
    return ",".join(f'{label}="{value}"' for label, value in labels.items())


class Metrics:
    """All numbers of one process.

    >>> metrics = Metrics()
    >>> metrics.add("veil_refused_total", code="busy")
    >>> "veil_refused_total{code=\\"busy\\"} 1" in metrics.text()
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, str], float] = {}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count something. Labels are our own words, never a request's."""
        place = (name, _written(**labels))
        with self._lock:
            self._values[place] = self._values.get(place, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Where a gauge stands."""
        self._values[name, ""] = value

    def observe(self, name: str, seconds: float) -> None:
        """One more of something that takes time."""
        self.add(f"{name}_count")
        self.add(f"{name}_sum", seconds)

    def value(self, name: str, **labels: str) -> float:
        """One number, for tests and for logs."""
        return self._values.get((name, _written(**labels)), 0)

    def text(self) -> str:
        """Prometheus's text format, version 0.0.4."""
        with self._lock:
            values = sorted(self._values.items())
        lines: list[str] = []
        for family, (kind, what) in _HELP.items():
            members = [family] if kind != "summary" else [f"{family}_count", f"{family}_sum"]
            lines += [f"# HELP {family} {what}", f"# TYPE {family} {kind}"]
            for (name, labels), value in values:
                if name in members:
                    lines.append(f"{name}{{{labels}}} {value:g}" if labels else f"{name} {value:g}")
        return "\n".join(lines) + "\n"
