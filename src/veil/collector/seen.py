"""Which report ids a survey has: the latest ones exactly, older ones by filters whose rare hits are looked up.

Random ids land all over a sorted index, so that the index of a large survey is written anew with every commit. Here
ids are written once as they come, and again in sorted runs: 65,536 reports make a run, 16 runs a larger one, and 16 of
those one of 16 million, which is never touched again (`merging`). In memory a run is a filter of three bytes per id and
the first id of each of its pages; a filter never misses an id, and about one in a thousand others is looked for in a
page in vain. A run is kept in segments of some 64 pages, each with a filter of its own: whoever makes or reads a run
does so segment by segment. What is here is a copy of what the database holds up to a mark, and is checked against it
within every transaction (`blocks`).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.wire.frames import ID_BYTES

__all__ = [
    *("FOLDED", "LEVELS", "MERGED", "PAGE", "SEGMENT_PAGES"),
    *("Filter", "Memory", "Mixed", "Run", "Seen", "Segment", "names_of", "pages_of", "segments_of", "sorted_names"),
]

FOLDED = 1 << 16
"""So many reports make a run."""
MERGED = 16
"""So many runs of a level make one of the next."""
LEVELS = 2
"""Levels whose runs are merged; those above stay as they are."""
SEGMENT_PAGES = 64
"""Of a run's segment, about: what is read and written at once."""
PAGE = 1024
"""Ids in a page."""
_BITS = 24  # of a filter per id
_KEY_BYTES = 16
_BYTES_OF_A_NAME = 112  # of memory, in a set
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)

Words = NDArray[np.uint64]


def names_of(ids: bytes) -> list[bytes]:
    """Single ids of many, end to end."""
    return list(np.frombuffer(ids, dtype=f"V{ID_BYTES}").tolist())


def sorted_names(ids: bytes) -> bytes:
    """Ids in their order, end to end."""
    halves = _halves(ids)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    return np.frombuffer(ids, dtype=f"V{ID_BYTES}")[order].tobytes()


def pages_of(ids: bytes) -> Iterator[bytes]:
    """Sorted ids, cut into the pages of a run."""
    size = PAGE * ID_BYTES
    return (ids[start : start + size] for start in range(0, len(ids), size))


def segments_of(ids: bytes) -> Iterator[bytes]:
    """Sorted ids, cut into the segments of a run."""
    size = SEGMENT_PAGES * PAGE * ID_BYTES
    return (ids[start : start + size] for start in range(0, len(ids), size))


@dataclass(frozen=True, eq=False)
class Mixed:
    """Ids as filters see them: 64 bits each, mixed with a key, and the five bits that each sets in a word.

    `heads` are their first 64 bits as they are: the order of ids goes by them.
    """

    key: bytes
    places: Words
    bits: Words
    heads: Words

    @classmethod
    def of(cls, key: bytes, ids: bytes) -> Mixed:
        """Mix ids; the key is random, so that nobody can send ids that a filter takes for others."""
        halves = _halves(ids)
        one, two = np.frombuffer(key, dtype="<u8").astype(np.uint64)
        mixed = _stirred(_stirred(halves[:, 0] ^ one, _ODD[0]) + (halves[:, 1] ^ two), _ODD[1])
        bits = np.zeros(len(halves), dtype=np.uint64)
        for i in range(5):
            bits |= np.uint64(1) << ((mixed >> np.uint64(6 * i)) & np.uint64(63))
        return cls(key, mixed >> np.uint64(32), bits, halves[:, 0])


@dataclass(frozen=True, eq=False)
class Filter:
    """A blocked Bloom filter: an id sets five bits of one word. The runs of a survey share their key."""

    key: bytes
    words: Words

    @classmethod
    def of(cls, key: bytes, ids: bytes) -> Filter:
        """A filter that holds these ids."""
        made = cls(key, np.zeros(max(1, len(ids) // ID_BYTES * _BITS // 64), dtype=np.uint64))
        mixed = Mixed.of(key, ids)
        np.bitwise_or.at(made.words, made._places(mixed), mixed.bits)
        return made

    def may_hold(self, mixed: Mixed) -> NDArray[np.bool_]:
        """Which ids may be here; of those that it holds, all."""
        return np.asarray((self.words[self._places(mixed)] & mixed.bits) == mixed.bits)

    def _places(self, mixed: Mixed) -> NDArray[np.int64]:
        return ((mixed.places * np.uint64(len(self.words))) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Segment:
    """Neighbours in a run, as the database keeps what is known of them: how many, each page's first id, a filter."""

    count: int
    firsts: list[bytes]
    filter: Filter

    @classmethod
    def of(cls, ids: bytes, key: bytes) -> Segment:
        """The segment of sorted ids."""
        return cls(len(ids) // ID_BYTES, [page[:ID_BYTES] for page in pages_of(ids)], Filter.of(key, ids))

    def to_bytes(self) -> bytes:
        """As it is kept in the database, beside its pages."""
        head = self.count.to_bytes(8, "little") + len(self.firsts).to_bytes(8, "little") + self.filter.key
        return head + b"".join(self.firsts) + self.filter.words.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Segment:
        """What `to_bytes` wrote."""
        count, pages = (int.from_bytes(data[i : i + 8], "little") for i in (0, 8))
        key, start = data[16 : 16 + _KEY_BYTES], 16 + _KEY_BYTES
        end = start + pages * ID_BYTES
        words = np.frombuffer(data, dtype="<u8", offset=end).astype(np.uint64)
        return cls(count, names_of(data[start:end]), Filter(key, words))


class Run:
    """Sorted ids in the database, as they are known in memory: the filters of its segments, and all first ids."""

    def __init__(self, number: int, segments: Sequence[Segment]) -> None:
        self.number = number
        self.key = segments[0].filter.key
        self.count = sum(segment.count for segment in segments)
        self.firsts = [first for segment in segments for first in segment.firsts]
        self.words = np.concatenate([segment.filter.words for segment in segments])
        self._heads = _halves(b"".join(segment.firsts[0] for segment in segments))[:, 0]
        self._lengths = np.array([len(segment.filter.words) for segment in segments], dtype=np.uint64)
        self._starts = np.cumsum(self._lengths) - self._lengths

    @property
    def level(self) -> int:
        """How often its ids were merged, by how many they are."""
        return sum(self.count >= FOLDED * MERGED**level // 2 for level in range(1, LEVELS + 1))

    def may_hold(self, mixed: Mixed) -> NDArray[np.bool_]:
        """Which ids may be here; of those that it holds, all."""
        if len(self._heads) == 1:
            return Filter(self.key, self.words).may_hold(mixed)
        # An id stands in the last segment that begins before it. Where their first 64 bits are the same, it may stand
        # in another one: then it is looked for in its page.
        at = np.maximum(np.searchsorted(self._heads, mixed.heads, side="right") - 1, 0)
        places = self._starts[at] + ((mixed.places * self._lengths[at]) >> np.uint64(32))
        return np.asarray(((self.words[places] & mixed.bits) == mixed.bits) | (self._heads[at] == mixed.heads))

    def page(self, name: bytes) -> int:
        """The page where an id would stand, counted from 1."""
        return max(1, bisect_right(self.firsts, name))


@dataclass
class Seen:
    """The ids of one survey up to a mark. The database counts in `folds` how often its runs changed.

    `runs` are those of the count `loaded`, and `latest` holds what came after those of the count `folds`. A run never
    changes, so that what was read of one stays right when a commit fails: `parts` are segments that wait for the rest
    of theirs, by run and page.
    """

    mark: int = 0
    folds: int = -1
    loaded: int = -1
    latest: set[bytes] = field(default_factory=set)
    runs: list[Run] = field(default_factory=list)
    parts: dict[tuple[int, int], Segment | None] = field(default_factory=dict)
    settled: bool = False
    """Whether no runs are to be merged."""

    def doubt(self) -> None:
        """Look again what came after the runs: nobody knows what was committed."""
        self.folds = -1

    def adopt(self, listed: Sequence[tuple[int, int]], folds: int) -> None:
        """The runs are those whose heads and segments are at these places; all parts that were not known are here."""
        known = {run.number: run for run in self.runs}
        runs = []
        for number, places in groupby(sorted(listed), key=lambda place: place[0]):
            if number not in known:
                parts = [self.parts[place] for place in sorted(places, key=lambda place: -place[1])]
                known[number] = Run(number, [part for part in parts if part is not None])
            runs.append(known[number])
        whole = {run.number for run in runs}
        self.parts = {place: part for place, part in self.parts.items() if place[0] not in whole}
        self.runs, self.loaded, self.settled = runs, folds, False

    @property
    def is_full(self) -> bool:
        """Whether the latest ids are enough for a run."""
        return len(self.latest) >= FOLDED

    @property
    def key(self) -> bytes:
        """The key of the filters: that of the runs, or a new one where there is none."""
        return self.runs[0].key if self.runs else os.urandom(_KEY_BYTES)

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        parts = sum(8 * len(part.filter.words) for part in self.parts.values() if part is not None)
        return len(self.latest) * _BYTES_OF_A_NAME + sum(8 * len(run.words) for run in self.runs) + parts

    def suspects(self, names: Sequence[bytes], ids: bytes) -> dict[tuple[int, int], list[bytes]]:
        """Ids that may stand in a run, by run and page."""
        found: dict[tuple[int, int], list[bytes]] = {}
        mixed: Mixed | None = None
        for run in self.runs:
            if mixed is None or mixed.key != run.key:
                mixed = Mixed.of(run.key, ids)
            for i in np.flatnonzero(run.may_hold(mixed)).tolist():
                found.setdefault((run.number, run.page(names[i])), []).append(names[i])
        return found


class Memory:
    """What is known of several surveys, within a bound: those that were used last."""

    def __init__(self, most_bytes: int = 256 << 20) -> None:
        self._most = most_bytes
        self._seen: OrderedDict[int, Seen] = OrderedDict()

    def of(self, survey: int) -> Seen:
        """What is known of a survey, perhaps nothing yet."""
        if survey not in self._seen:
            self._seen[survey] = Seen()
        self._seen.move_to_end(survey)
        return self._seen[survey]

    def trim(self) -> None:
        """Forget what was not used for longest, until the rest has room."""
        if len(self._seen) > 1:
            left = sum(seen.size for seen in self._seen.values()) - self._most
            while left > 0 and len(self._seen) > 1:
                left -= self._seen.popitem(last=False)[1].size


def _halves(ids: bytes) -> Words:
    return np.frombuffer(ids, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _stirred(words: Any, odd: int) -> Words:
    words = words * np.uint64(odd)
    words ^= words >> np.uint64(32)
    words = words * np.uint64(odd)
    return np.asarray(words ^ (words >> np.uint64(29)), dtype=np.uint64)
