"""The base class of domains, and the codes of sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import WireError
from veil.tools.json_documents import Json

EXACT = 2**53 - 1
"""The largest integer that every language's JSON reads exactly (RFC 8785 takes no larger one)."""

LISTABLE = 1 << 24


@dataclass(frozen=True, eq=False)
class SetCodes:
    """Sets of items, one per person: person i holds `items[offsets[i]:offsets[i + 1]]`, increasing."""

    offsets: NDArray[np.int64]
    items: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | NDArray[Any]) -> SetCodes:
        chosen = np.arange(len(self))[rows]
        sizes = (self.offsets[1:] - self.offsets[:-1])[chosen]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return SetCodes(offsets, self.items[np.repeat(self.offsets[:-1][chosen], sizes) + within])

    def __repr__(self) -> str:
        return f"Sets(of {len(self)} people)"

    def count_items(self, universe: int) -> NDArray[np.int64]:
        """Return the number of sets with each of the items 0 .. universe - 1."""
        return np.bincount(self.items.astype(np.int64), minlength=universe)

    def top_itemsets(self, k: int, universe: int) -> dict[tuple[int, ...], int]:
        """Return the k most frequent sets of one or more items with their counts, most frequent first.

        Apriori, with the count of the k-th best as the floor: all parts of a set among the k best are there as well.

        >>> people = SetCodes(np.array([0, 2, 4, 5, 6]), np.array([0, 1, 0, 1, 0, 2], np.uint64))
        >>> people.top_itemsets(3, 3)
        {(0,): 3, (0, 1): 2, (1,): 2}
        """
        owners = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        singles = np.argsort(-self.count_items(universe), kind="stable")[:k].tolist()
        holders: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        for item in singles:
            mask = holders[(item,)] = np.zeros(len(self), dtype=np.bool_)
            mask[owners[self.items == item]] = True
        best = {itemset: int(mask.sum()) for itemset, mask in holders.items()}
        level = holders
        while level:
            floor = max(sorted(best.values(), reverse=True)[:k][-1], 1) if len(best) >= k else 1
            larger: dict[tuple[int, ...], NDArray[np.bool_]] = {}
            for itemset, mask in level.items():
                for item in singles:
                    if item <= itemset[-1] or best[(item,)] < floor:
                        continue
                    both = mask & holders[(item,)]
                    count = int(both.sum())
                    if count >= floor:
                        larger[(*itemset, item)], best[(*itemset, item)] = both, count
            level = larger
        return dict(sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:k])


Codes = NDArray[Any] | SetCodes


class Domain(ABC):
    """What a person may hold."""

    kind: str

    @property
    @abstractmethod
    def size(self) -> int:
        """How many values there are."""

    @abstractmethod
    def encode(self, values: Any) -> Any:
        """Runs on the device: values to codes. Refuses what does not belong, without showing it."""

    @abstractmethod
    def decode(self, codes: Any) -> list[Any]:
        """Runs at the collector: codes back to values."""

    @abstractmethod
    def to_json(self) -> Json:
        """The domain as it stands in a task."""

    @property
    def listable(self) -> bool:
        """Whether all values can be gone through one by one."""
        return self.size <= LISTABLE

    @property
    def code_bytes(self) -> int:
        """0 for codes that are uint64 indices, else the bytes of one code."""
        return 0

    def label(self, code: int) -> Any:
        """One value, by its index."""
        return self.decode(np.array([code], dtype=np.uint64))[0]


def as_list(value: Any) -> list[Any]:
    """A list as it stands in a task."""
    if not isinstance(value, list):
        raise WireError("expected a list")
    return value
