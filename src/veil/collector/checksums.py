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
    """The damaged blocks and pages that this process has met. Each is logged once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[tuple[Any, ...], int] = {}

    def note(self, survey: int, what: str, place: int, reports: int) -> None:
        """Record that a block or a page is damaged, with the number of reports that are missing because of it."""
        with self._lock:
            known = (survey, what, place) in self._reports
            self._reports[survey, what, place] = reports
        if not known:
            log("error", "damaged", survey=survey, what=what, place=place, reports=reports)

    @property
    def reports(self) -> int:
        """The number of stored reports that cannot be read."""
        with self._lock:
            return sum(self._reports.values())
