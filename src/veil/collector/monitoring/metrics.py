"""Counters, gauges and histograms in Prometheus's text format, about the service and never about answers.

All numbers are integers, apart from the seconds of a histogram. Numbers that change with single reports are rounded
down to steps, like answers (`StoredSurvey.mark`), so that they are the same however often they are read. `measure` adds
gauges of the installation: the version, the size of the database, free disk space and the time of the last backup.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path

from veil.collector.store.base import Store
from veil.collector.store.schema import latest
from veil.version import VERSION

_HELP = {
    "veil_reports_total": ("counter", "Reports by what became of them: stored, or replayed and counted before."),
    "veil_requests_total": ("counter", "Requests by route and status."),
    "veil_request_seconds": ("histogram", "From a whole head to the answer, by route."),
    "veil_refused_total": ("counter", "Refused requests by code."),
    "veil_limits_reached_total": ("counter", "Requests and connections that met a limit, by its setting."),
    "veil_commit_failures_total": ("counter", "Commits that the database refused; none of them was acknowledged."),
    "veil_upkeep_failures_total": ("counter", "Runs of ids that could not be made: commits become slower."),
    "veil_damaged_reports": ("gauge", "Stored reports that could not be read because their blocks are damaged."),
    "veil_commit_seconds": ("histogram", "Durable commits."),
    "veil_tally_seconds": ("histogram", "Updates of tallies."),
    "veil_readings_total": ("counter", "Results for answers: made from the reports or their tally, or kept in memory."),
    "veil_reading_seconds": ("histogram", "Results for answers that were made."),
    "veil_rounds_total": ("counter", "Rounds of studies that were closed and read."),
    "veil_connections": ("gauge", "Open connections."),
    "veil_connections_closed_total": ("counter", "Connections that were closed from here, by reason."),
    "veil_queue_reports": ("gauge", "Reports that wait for a commit."),
    "veil_survey_reports": ("gauge", "Reports of each survey, as many as its answers count: these go in steps."),
    "veil_body_bytes": ("gauge", "Bytes of request bodies that are being read."),
    "veil_build_info": ("gauge", "Always 1; its labels name the versions."),
    "veil_database_bytes": ("gauge", "Size of the database, rounded up to 64 MiB."),
    "veil_disk_bytes": ("gauge", "Size of the disk with the collector's folder."),
    "veil_disk_free_bytes": ("gauge", "Free bytes of the disk with the collector's folder, rounded down to 64 MiB."),
    "veil_last_backup_timestamp_seconds": ("gauge", "When veil backup last finished, in seconds since 1970; 0: never."),
}
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_MIDDLES = [(low + high) / 2 for low, high in zip((0.0, *_BOUNDS), (*_BOUNDS, _BOUNDS[-1]), strict=True)]
_IN_STEPS = {
    *("veil_reports_total", "veil_requests_total", "veil_request_seconds", "veil_commit_seconds"),
    *("veil_connections", "veil_connections_closed_total", "veil_queue_reports"),
}
"""What changes with a single report. Failures and refusals do not count here: nothing was stored with them."""
_Place = tuple[str, str]
_BACKUP = "last-backup"
_COARSE = 64 << 20  # bytes: every commit changes sizes, and finer ones would show when single reports came


class Metrics:
    """The metrics of a collector.

    >>> metrics = Metrics()
    >>> metrics.add("veil_refused_total", code="busy")
    >>> "veil_refused_total{code=\\"busy\\"} 1" in metrics.text()
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[_Place, int] = {}
        self._watched: dict[str, Callable[[], int]] = {}
        self._times: dict[_Place, list[float]] = {}  # of each histogram: how many in each bucket, and all seconds
        self._shown: dict[_Place, tuple[tuple[int, int], list[float]]] = {}  # histograms as they are shown in steps

    def add(self, name: str, amount: int = 1, **labels: str) -> None:
        """Count something. Labels are our own words, never a request's."""
        place = (name, _written(**labels))
        with self._lock:
            self._values[place] = self._values.get(place, 0) + amount

    def set(self, name: str, value: int, **labels: str) -> None:
        """Set a gauge. One assignment needs no lock, and every request sets a gauge twice."""
        self._values[name, _written(**labels) if labels else ""] = value

    def watch(self, name: str, look: Callable[[], int]) -> None:
        """A gauge that is looked at whenever the numbers are told."""
        self._watched[name] = look

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """One more of something that takes time."""
        place = (name, _written(**labels))
        with self._lock:
            times = self._times.get(place)
            if times is None:
                times = self._times[place] = [0] * (len(_BOUNDS) + 1) + [0.0]
            times[bisect_left(_BOUNDS, seconds)] += 1
            times[-1] += seconds

    def value(self, name: str, **labels: str) -> int:
        """Return one number, for tests and for logs."""
        return self._values.get((name, _written(**labels)), 0)

    def text(self, step: int | None = 1, surveys: Sequence[tuple[str, int]] = ()) -> str:
        """Return the metrics in Prometheus's text format, version 0.0.4.

        Metrics that change with single reports are rounded down to multiples of `step`, and left out if that is None.
        `surveys` are tasks and how many of their reports may be shown.
        """
        values, times = self._now()
        values |= {("veil_survey_reports", _written(task=task)): mark for task, mark in surveys}
        lines: list[str] = []
        for family, (kind, what) in _HELP.items():
            each = step if family in _IN_STEPS else 1
            if each is None:
                continue
            lines += [f"# HELP {family} {what}", f"# TYPE {family} {kind}"]
            if kind == "histogram":
                for place in sorted(place for place in times if place[0] == family):
                    lines += _histogram(family, place[1], self._in_steps(place, times[place], each), each)
            else:
                found = sorted(
                    (place[1], value // each * each) for place, value in values.items() if place[0] == family
                )
                lines += [f"{family}{{{labels}}} {value}" if labels else f"{family} {value}" for labels, value in found]
        return "\n".join(lines) + "\n"

    def _in_steps(self, place: _Place, times: list[float], step: int) -> list[float]:
        """Return a histogram as it was at the first look after its number passed a multiple of the step.

        Its buckets pass their multiples at other reports than the number does, and would show when those came.
        """
        passed = step, int(sum(times[:-1])) // step
        if place not in self._shown or self._shown[place][0] != passed:
            self._shown[place] = passed, times
        return self._shown[place][1]

    def _now(self) -> tuple[dict[_Place, int], dict[_Place, list[float]]]:
        with self._lock:
            watched = {(name, ""): look() for name, look in self._watched.items()}
            return {**self._values, **watched}, {place: list(of) for place, of in self._times.items()}


def measure(metrics: Metrics, store: Store, folder: Path, database: str) -> None:
    """Set the gauges. Blocks. `database` is the kind of database: sqlite or postgresql.

    The disk is that of the collector's folder. The disk of a PostgreSQL server cannot be seen from here.
    """
    labels = {"version": VERSION, "python": platform.python_version(), "database": database, "schema": str(latest())}
    metrics.set("veil_build_info", 1, **labels)
    with suppress(OSError):
        disk = os.statvfs(folder)
        metrics.set("veil_disk_free_bytes", disk.f_bavail * disk.f_frsize // _COARSE * _COARSE)
        metrics.set("veil_disk_bytes", disk.f_blocks * disk.f_frsize)
    metrics.set("veil_database_bytes", -(-store.size() // _COARSE) * _COARSE)
    metrics.set("veil_last_backup_timestamp_seconds", last_backup(store))


def note_backup(store: Store) -> None:
    """Record in the database that a backup is complete."""
    store.set_fact(_BACKUP, str(int(time.time())))


def last_backup(store: Store) -> int:
    """Return the time of the last backup in seconds since 1970, or 0 if there was none."""
    noted = store.known(_BACKUP) or ""
    return int(noted) if noted.isascii() and noted.isdigit() else 0


@lru_cache(maxsize=1024)
def _written(**labels: str) -> str:
    return ",".join(f'{label}="{value}"' for label, value in labels.items())


def _histogram(family: str, labels: str, of: list[float], step: int) -> list[str]:
    """A histogram's lines; in steps its sum is that of the middles of its buckets, because every request changes it."""
    if step > 1:
        totals = [int(total) // step * step for total in accumulate(of[:-1])]
        counts = [after - before for before, after in pairwise((0, *totals))]
        of = [*counts, sum(count * middle for count, middle in zip(counts, _MIDDLES, strict=True))]
    lines, total = [], 0
    beside = f"{labels}," if labels else ""
    for bound, number in zip([*map(str, _BOUNDS), "+Inf"], of, strict=False):
        total += int(number)
        lines.append(f'{family}_bucket{{{beside}le="{bound}"}} {total}')
    within = f"{{{labels}}}" if labels else ""
    return [*lines, f"{family}_sum{within} {of[-1]:.6f}", f"{family}_count{within} {total}"]
