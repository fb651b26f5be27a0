"""Checksums (CRC-32) of stored blocks of reports and of pages of report ids, and the record of damaged ones.

A checksum covers the place of a row as well as its bytes, so that a row that stands where another belongs is damaged,
too. CRC-32 finds damage by disks and memory; it is no protection against somebody who can write to the database.
"""

from __future__ import annotations

import struct
import threading
from typing import Any
from zlib import crc32

from veil.collector.logs import log

__all__ = ["Damage", "has_ids", "has_reports", "has_times", "is_page", "page_checksum", "replace_ids", "sum_block"]

_CHECKS = struct.Struct("<III")
_PLACE = struct.Struct("<qqq")


def sum_block(survey: int, last: int, count: int, buckets: bytes, ids: bytes, payloads: bytes) -> bytes:
    """Return the three checksums of a block: of its coarse times, its ids and its payloads.

    They are separate because reading payloads must not require reading ids, and the other way round.

    >>> len(sum_block(1, 2, 2, bytes(16), bytes(32), bytes(8)))
    12
    """
    start = crc32(_PLACE.pack(survey, last, count))
    return _CHECKS.pack(crc32(buckets, start), crc32(ids, start), crc32(payloads, start))


def replace_ids(survey: int, last: int, count: int, checks: bytes, ids: bytes) -> bytes:
    """Return the checksums of a block after its ids were replaced; the others stay, right or wrong."""
    times, _, payloads = _CHECKS.unpack(checks)
    return _CHECKS.pack(times, crc32(ids, crc32(_PLACE.pack(survey, last, count))), payloads)


def has_times(survey: int, last: Any, count: Any, checks: Any, buckets: Any) -> bool:
    """Return True if the number, size and coarse times of a block are intact."""
    return _matches(0, survey, last, count, checks, buckets)


def has_ids(survey: int, last: Any, count: Any, checks: Any, ids: Any) -> bool:
    """Return True if the ids of a block are intact."""
    return _matches(1, survey, last, count, checks, ids)


def has_reports(survey: int, last: Any, count: Any, checks: Any, buckets: Any, payloads: Any) -> bool:
    """Return True if the coarse times and payloads of a block are intact."""
    return has_times(survey, last, count, checks, buckets) and _matches(2, survey, last, count, checks, payloads)


def page_checksum(survey: int, run: int, page: int, data: bytes) -> bytes:
    """Return the checksum of a page of a run of ids."""
    return crc32(data, crc32(_PLACE.pack(survey, run, page))).to_bytes(4, "little")


def is_page(survey: int, run: int, page: int, checks: Any, data: Any) -> bool:
    """Return True if a page of a run of ids is intact."""
    return isinstance(data, bytes) and checks == page_checksum(survey, run, page, data)


def _matches(part: int, survey: int, last: Any, count: Any, checks: Any, data: Any) -> bool:
    # a damaged row may hold values of any type
    whole = isinstance(last, int) and isinstance(count, int) and isinstance(data, bytes) and isinstance(checks, bytes)
    if not whole or len(checks) != _CHECKS.size or not 0 < count <= last < 2**63:
        return False
    return bool(_CHECKS.unpack(checks)[part] == crc32(data, crc32(_PLACE.pack(survey, last, count))))


class Damage:
    """The damage that this process has met: ranges of missing reports, and places of damaged ids. It logs each once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[int, list[tuple[int, int]]] = {}  # by survey: ranges, from after the first to the second
        self._ids: set[tuple[int, str]] = set()

    def note_reports(self, survey: int, start: int, end: int) -> None:
        """Record that the reports after number `start` and up to `end` are damaged or missing."""
        with self._lock:
            known = self._reports.get(survey, [])
            joined = _joined([*known, (start, end)])
            self._reports[survey] = joined
        if joined != known:
            log("error", "damaged-reports", survey=survey, first=start + 1, last=end)

    def note_ids(self, survey: int, place: str) -> None:
        """Record that ids are damaged or missing."""
        with self._lock:
            known = (survey, place) in self._ids
            self._ids.add((survey, place))
        if not known:
            log("error", "damaged-ids", survey=survey, where=place)

    def reports(self, survey: int | None = None) -> int:
        """Return the number of stored reports that could not be read, of one survey or of all."""
        with self._lock:
            ranges = [pair for key, found in self._reports.items() if survey in (None, key) for pair in found]
        return sum(end - start for start, end in ranges)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
