"""Known report ids of a survey: the latest ones exactly, older ones by filters whose rare hits are looked up.

Random ids land all over a sorted index, so the index of a large survey would be rewritten with every commit. Here
ids are written once as they come, and once more in sorted runs: 65,536 reports make a run, which never changes again.
After an hour fewer do: a small run is joined with the next ids. In memory a run is a filter of four bytes per id and
the first id of each of its pages. A filter never misses an id, and takes about one in a million others for one of its
own, which is then looked up in a page in vain. The filters of 64 runs stand side by side (`FilterColumns`), so that an
id is looked for in all of them at once. All this is a copy of what the database holds up to a mark, and is compared
with it within every transaction (`blocks`).
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import StoreError
from veil.wire.frames import ID_BYTES

FOLDED = 1 << 16
"""So many reports make a run."""
PAGE = 1024
"""Ids in a page."""
_BITS = 32  # of a filter per id
_PLACES = 12  # of a filter that an id sets: a few fewer than would be best, because each is a read from memory
_KEY_BYTES = 16
_BYTES_OF_A_NAME = 112  # of memory, in a set
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_HEAD = struct.Struct(f"<II{_KEY_BYTES}s")  # how many places an id sets, how many pages, the filter's key
_WIDTHS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}

WordArray = NDArray[np.uint64]


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


def cut_into_runs(ids: bytes) -> Iterator[bytes]:
    """Ids, cut into runs of the usual size: between two thirds and one and a half of it, and less for fewer ids."""
    count = len(ids) // ID_BYTES
    runs = max(1, round(count / FOLDED))
    for i in range(runs):
        yield ids[ID_BYTES * (count * i // runs) : ID_BYTES * (count * (i + 1) // runs)]


@dataclass(frozen=True, eq=False)
class MixedIds:
    """Ids as filters see them: two words each, mixed with a key, which give the bits that an id sets."""

    key: bytes
    first: WordArray
    step: WordArray

    @classmethod
    def of(cls, key: bytes, ids: bytes) -> MixedIds:
        """Mix ids; the key is random, so that nobody can send ids that a filter takes for others."""
        halves = _halves(ids)
        one, two = np.frombuffer(key, dtype="<u8").astype(np.uint64)
        first = _stirred(_stirred(halves[:, 0] ^ one, _ODD[0]) + (halves[:, 1] ^ two), _ODD[1])
        return cls(key, first, _stirred(first ^ two, _ODD[0]))

    def places(self, size: int) -> NDArray[np.int64]:
        """The places of each id in a filter of so many, a row per id."""
        words: WordArray = self.first[:, None] + self.step[:, None] * np.arange(_PLACES).astype(np.uint64)
        scaled: WordArray = (words >> np.uint64(32)) * np.uint64(size)
        return (scaled >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class RunHead:
    """A run of sorted ids as it is kept in memory: the first id of each page, and a Bloom filter."""

    key: bytes
    firsts: list[bytes]
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, ids: bytes, key: bytes) -> RunHead:
        """The head of sorted ids."""
        is_set = np.zeros(_places_for(len(ids) // ID_BYTES), dtype=np.uint8)
        is_set[MixedIds.of(key, ids).places(len(is_set))] = 1
        return cls(key, [page[:ID_BYTES] for page in pages_of(ids)], np.packbits(is_set))

    def to_bytes(self) -> bytes:
        """As it is kept in the database, beside the pages."""
        return _HEAD.pack(_PLACES, len(self.firsts), self.key) + b"".join(self.firsts) + self.bits.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> RunHead:
        """What `to_bytes` wrote; a filter in which ids set more or fewer places would miss them, and is refused."""
        places, pages, key = _HEAD.unpack_from(data) if len(data) > _HEAD.size else (0, 0, b"")
        end = _HEAD.size + pages * ID_BYTES
        if places != _PLACES or end >= len(data):
            raise StoreError("the database has a run of report ids whose filter this version of veil does not know")
        return cls(key, names_of(data[_HEAD.size : end]), np.frombuffer(data, dtype=np.uint8, offset=end))

    @property
    def places(self) -> int:
        """How many places its filter has."""
        return 8 * len(self.bits)


class FilterColumns:
    """The filters of up to 64 runs, side by side: a word per place, in which each run has a bit.

    An id sets the same places in all of them, so that the words at these places, and-ed, have a bit for every run that
    may hold it. They begin narrow, because most surveys have few runs.
    """

    def __init__(self, key: bytes, size: int) -> None:
        self.key, self.size = key, size
        self.words: NDArray[Any] = np.zeros(size, dtype=np.uint8)
        self._runs: list[tuple[int, list[bytes]]] = []
        self._free: list[int] = []

    @property
    def has_room(self) -> bool:
        """Whether another run fits."""
        return bool(self._free) or len(self._runs) < max(_WIDTHS)

    def add(self, number: int, head: RunHead) -> None:
        """Take a run, of the same key and size."""
        bit, width = len(self._runs), 8 * self.words.itemsize
        if self._free:
            bit = self._free.pop()
            self._runs[bit] = number, head.firsts
        else:
            self._runs.append((number, head.firsts))
        if bit >= width:
            self.words = self.words.astype(_WIDTHS[2 * width])
        self.words |= np.unpackbits(head.bits).astype(self.words.dtype) << self.words.dtype.type(bit)

    def drop(self, number: int) -> None:
        """Forget a run, if it is here."""
        for bit, (run, _) in enumerate(self._runs):
            if run == number:
                self.words &= ~self.words.dtype.type(1 << bit)
                self._runs[bit] = 0, []  # runs are counted from 1
                self._free.append(bit)

    def may_hold(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """The runs where each id may be, as bits, by the ids' places; a run that holds an id always has its bit."""
        return np.asarray(np.bitwise_and.reduce(self.words.take(places), axis=1))

    def pages(self, name: bytes, bits: int) -> Iterator[tuple[int, int]]:
        """The runs of these bits, each with the page where an id would stand."""
        while bits:
            number, firsts = self._runs[(bits & -bits).bit_length() - 1]
            yield number, max(1, bisect_right(firsts, name))
            bits &= bits - 1


@dataclass
class SeenIds:
    """The ids of one survey up to a mark. The database counts in `folds` how often its runs changed.

    The runs known here are those of the count `loaded`, and `latest` holds what came after those of the count `folds`.
    A run never changes (a small one is replaced, under another number), so that what was read of one stays right when a
    commit fails, or a connection breaks. Only when another server takes over (another `epoch` of the store), all is
    read again.
    """

    mark: int = 0
    folds: int = -1
    loaded: int = -1
    epoch: int = 0
    latest: set[bytes] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    columns: list[FilterColumns] = field(default_factory=list)

    def doubt(self) -> None:
        """Read again what came after the runs: nobody knows what was committed."""
        self.folds = -1

    def forget(self) -> None:
        """Read all runs again: some that were known are gone, because somebody purged the survey."""
        self.loaded = -1
        self.runs.clear()
        self.columns.clear()

    def drop(self, runs: set[int]) -> None:
        """Forget runs that others have replaced."""
        for number in runs:
            for columns in self.columns:
                columns.drop(number)
        self.runs -= runs

    def add(self, number: int, head: RunHead) -> None:
        """Take a run as it was read."""
        fitting = (one for one in self.columns if (one.key, one.size) == (head.key, head.places) and one.has_room)
        columns = next(fitting, None)
        if columns is None:
            columns = FilterColumns(head.key, head.places)
            self.columns.append(columns)
        columns.add(number, head)
        self.runs.add(number)

    @property
    def is_full(self) -> bool:
        """Whether the latest ids are enough for a run."""
        return len(self.latest) >= FOLDED

    @property
    def key(self) -> bytes:
        """The key of the filters: that of the runs, or a new one where there is none."""
        return self.columns[0].key if self.columns else os.urandom(_KEY_BYTES)

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return len(self.latest) * _BYTES_OF_A_NAME + sum(columns.words.nbytes for columns in self.columns)

    def suspects(self, names: Sequence[bytes], ids: bytes) -> dict[tuple[int, int], list[bytes]]:
        """Ids that may stand in a run, by run and page."""
        found: dict[tuple[int, int], list[bytes]] = {}
        places: dict[tuple[bytes, int], NDArray[np.int64]] = {}  # the same for most columns
        for columns in self.columns:
            kind = columns.key, columns.size
            if kind not in places:
                places[kind] = MixedIds.of(columns.key, ids).places(columns.size)
            hits = columns.may_hold(places[kind])
            for i in np.flatnonzero(hits).tolist():
                for place in columns.pages(names[i], int(hits[i])):
                    found.setdefault(place, []).append(names[i])
        return found


class SeenIdsCache:
    """The known ids of the surveys that were used last, within a bound of memory."""

    def __init__(self, most_bytes: int = 256 << 20) -> None:
        self.most_bytes = most_bytes
        self._seen: OrderedDict[int, SeenIds] = OrderedDict()

    def of(self, survey: int) -> SeenIds:
        """What is known of a survey, perhaps nothing yet."""
        if survey not in self._seen:
            self._seen[survey] = SeenIds()
        self._seen.move_to_end(survey)
        return self._seen[survey]

    def trim(self) -> None:
        """Forget what was not used for longest, until the rest has room."""
        if len(self._seen) > 1:
            left = sum(seen.size for seen in self._seen.values()) - self.most_bytes
            while left > 0 and len(self._seen) > 1:
                left -= self._seen.popitem(last=False)[1].size


def _places_for(count: int) -> int:
    """How many places the filter of so many ids has: 21 to 43 per id, in few sizes, so that many runs share theirs."""
    ids = FOLDED
    while ids > 8 and 3 * (ids // 2) >= 2 * count:
        ids //= 2
    return _BITS * ids


def _halves(ids: bytes) -> WordArray:
    return np.frombuffer(ids, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _stirred(words: Any, odd: int) -> WordArray:
    words = words * np.uint64(odd)
    words ^= words >> np.uint64(32)
    words = words * np.uint64(odd)
    return np.asarray(words ^ (words >> np.uint64(29)), dtype=np.uint64)
