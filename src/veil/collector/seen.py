"""Which report ids a survey has: the latest ones exactly, older ones by filters whose rare hits are looked up.

Random ids land all over a sorted index, so that the index of a large survey is written anew with every commit. Here ids
are written once as they come, and again in sorted runs: 65,536 reports make a run, 16 runs make a larger one, and that
one is never touched again. In memory a run is a filter of three bytes per id and the first id of each of its pages; a
filter never misses an id, and about one in a thousand others is looked for in a page in vain. What is here is a copy of
what the database holds up to a mark, and is checked against it within every transaction (`blocks`).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.wire.frames import ID_BYTES

__all__ = ["FOLDED", "MERGED", "Filter", "Memory", "Mixed", "Run", "Seen", "names_of", "pages_of", "sorted_names"]

FOLDED = 1 << 16
"""So many reports make a run."""
MERGED = 16
"""So many runs make one that stays as it is."""
_PAGE = 1024
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
    size = _PAGE * ID_BYTES
    return (ids[start : start + size] for start in range(0, len(ids), size))


@dataclass(frozen=True, eq=False)
class Mixed:
    """Ids as a filter sees them: 64 bits each, mixed with a key, and the five bits that each sets in a word."""

    key: bytes
    places: Words
    bits: Words

    @classmethod
    def of(cls, key: bytes, ids: bytes) -> Mixed:
        """Mix ids; the key is random, so that nobody can send ids that a filter takes for others."""
        halves = _halves(ids)
        one, two = np.frombuffer(key, dtype="<u8").astype(np.uint64)
        mixed = _stirred(_stirred(halves[:, 0] ^ one, _ODD[0]) + (halves[:, 1] ^ two), _ODD[1])
        bits = np.zeros(len(halves), dtype=np.uint64)
        for i in range(5):
            bits |= np.uint64(1) << ((mixed >> np.uint64(6 * i)) & np.uint64(63))
        return cls(key, mixed >> np.uint64(32), bits)


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
class Run:
    """Sorted ids in the database, as they are known in memory: how many, a filter, and the first id of each page."""

    number: int
    count: int
    firsts: list[bytes]
    filter: Filter

    @classmethod
    def of(cls, number: int, ids: bytes, key: bytes) -> Run:
        """The run of sorted ids."""
        firsts = [page[:ID_BYTES] for page in pages_of(ids)]
        return cls(number, len(ids) // ID_BYTES, firsts, Filter.of(key, ids))

    @property
    def is_whole(self) -> bool:
        """Whether it is large enough to stay as it is."""
        return self.count >= FOLDED * MERGED // 2

    def page(self, name: bytes) -> int:
        """The page where an id would stand, counted from 1."""
        return max(1, bisect_right(self.firsts, name))

    def to_bytes(self) -> bytes:
        """As it is kept in the database, before its pages."""
        head = self.count.to_bytes(8, "little") + len(self.firsts).to_bytes(8, "little") + self.filter.key
        return head + b"".join(self.firsts) + self.filter.words.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, number: int, data: bytes) -> Run:
        """What `to_bytes` wrote."""
        count, pages = (int.from_bytes(data[i : i + 8], "little") for i in (0, 8))
        key, start = data[16 : 16 + _KEY_BYTES], 16 + _KEY_BYTES
        end = start + pages * ID_BYTES
        words = np.frombuffer(data, dtype="<u8", offset=end).astype(np.uint64)
        return cls(number, count, names_of(data[start:end]), Filter(key, words))


@dataclass
class Seen:
    """The ids of one survey up to a mark. `folds` says which runs there are: it counts how often they changed."""

    mark: int = 0
    folds: int = -1
    latest: set[bytes] = field(default_factory=set)
    runs: list[Run] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether the latest ids are enough for a run."""
        return len(self.latest) >= FOLDED

    @property
    def key(self) -> bytes:
        """The key of the filters: that of the runs, or a new one where there is none."""
        return self.runs[0].filter.key if self.runs else os.urandom(_KEY_BYTES)

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return len(self.latest) * _BYTES_OF_A_NAME + sum(8 * len(run.filter.words) for run in self.runs)

    def suspects(self, names: Sequence[bytes], ids: bytes) -> dict[tuple[int, int], list[bytes]]:
        """Ids that may stand in a run, by run and page."""
        found: dict[tuple[int, int], list[bytes]] = {}
        mixed: Mixed | None = None
        for run in self.runs:
            if mixed is None or mixed.key != run.filter.key:
                mixed = Mixed.of(run.filter.key, ids)
            for i in np.flatnonzero(run.filter.may_hold(mixed)).tolist():
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

    def forget(self, survey: int) -> None:
        """Read it from the database when it is next needed."""
        self._seen.pop(survey, None)

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
