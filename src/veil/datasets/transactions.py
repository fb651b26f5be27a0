"""What people hold as sets: baskets, clicks and invoices, their true frequent itemsets, and a small generator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.datasets.folder import data_file
from veil.datasets.records import Records
from veil.domain import Categories, Items, Record, Sets
from veil.errors import InputError
from veil.tools.arguments import is_int

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "Transactions",
    "kosarak_sets",
    "online_invoices",
    "pos_baskets",
    "retail_baskets",
    "short_kosarak_sets",
    "synthetic_baskets",
    "webview_clicks",
]

_POS, _POS_ITEMS, _POS_PEOPLE = "bms_pos_first100k.parquet", 1_657, 515_597
_KOSARAK, _KOSARAK_PAGES = "kosarak_first100k.parquet", 41_270
_SHORT = "kosarak_size_le5_item_ge25.parquet"
_ONLINE, _ONLINE_ITEMS = "online_retail_uci.parquet", 4_070
_RETAIL, _PRODUCTS, _RETAIL_PEOPLE = "retail.parquet", 16_470, 88_162
_WEBVIEW, _WEB_PAGES, _WEB_PEOPLE = "bms_webview2.parquet", 3_340, 77_512


@dataclass(frozen=True, eq=False)
class Transactions:
    """Sets of items out of 0 .. universe - 1, one per person, and where they were read."""

    sets: Sets
    universe: int
    origin: str
    stand_in: bool

    @property
    def people(self) -> int:
        """How many sets there are."""
        return len(self.sets)

    @property
    def domain(self) -> Items:
        """What a person may hold."""
        return Items(self.universe)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many items each set has."""
        return np.diff(self.sets.offsets)

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """How many people hold each item."""
        return np.bincount(self.sets.items.astype(np.int64), minlength=self.universe)

    def to_arrow(self) -> pyarrow.Array:
        """The sets as an Arrow column of lists: what `simulate` takes."""
        return _lists(self.sets.offsets, self.sets.items)

    def resample(self, people: int, seed: int) -> Transactions:
        """`people` people, each holding the set of one of these, drawn at random with replacement.

        >>> pos_baskets().resample(7, seed=1).people
        7
        """
        if not is_int(people) or people < 1:
            raise InputError("the number of people is an integer of at least 1")
        rows = np.random.default_rng(seed).integers(0, self.people, people)
        return Transactions(self.sets[rows], self.universe, f"{self.origin}, resampled", self.stand_in)

    def top_items(self, k: int) -> dict[int, int]:
        """The k most frequent items, most frequent first, and how many people hold them."""
        return {int(item): int(self.held[item]) for item in np.argsort(-self.held, kind="stable")[:k]}

    def records(self, m: int) -> Records:
        """Everybody as a record of m attributes, one for each of the m most frequent items: 1 for those who hold it.

        >>> some = Transactions(Items(3).encode([[0, 1], [1], [2]]), 3, "by hand", stand_in=False)
        >>> some.records(2).domain.names, some.records(2).codes.tolist()
        (('item_1', 'item_0'), [[1, 1], [1, 0], [0, 0]])
        """
        if not is_int(m) or not 1 <= m <= self.universe:
            raise InputError(f"the number of items is an integer between 1 and {self.universe}")
        top = list(self.top_items(m))
        columns = np.full(self.universe, -1)
        columns[top] = np.arange(m)
        owners, column = np.repeat(np.arange(self.people), self.sizes), columns[self.sets.items.astype(np.int64)]
        codes = np.zeros((self.people, m), np.uint8)
        codes[owners[column >= 0], column[column >= 0]] = 1
        named = Record(tuple((f"item_{item}", Categories.range(2)) for item in top))
        return Records(named, codes, f"{self.origin}, its {m} most frequent items", self.stand_in)

    def top_itemsets(self, k: int) -> dict[tuple[int, ...], int]:
        """The k most frequent sets of one or more items, most frequent first, and how many people hold all of each.

        >>> some = Transactions(Items(3).encode([[0, 1], [0, 1], [0], [2]]), 3, "by hand", stand_in=False)
        >>> some.top_itemsets(3)
        {(0,): 3, (0, 1): 2, (1,): 2}
        """
        holders: dict[tuple[int, ...], Any] = {}
        owners = np.repeat(np.arange(self.people), self.sizes)
        singles = self.top_items(k)
        for item in singles:
            mask = np.zeros(self.people, dtype=np.bool_)
            mask[owners[self.sets.items == item]] = True
            holders[(item,)] = mask
        best = {itemset: int(mask.sum()) for itemset, mask in holders.items()}
        level = holders
        while level:  # a set of j + 1 items among the k best has all its parts there: Apriori, with the k-th as floor
            floor = sorted(best.values(), reverse=True)[:k][-1] if len(best) >= k else 1
            larger: dict[tuple[int, ...], Any] = {}
            for itemset, mask in level.items():
                for item in singles:
                    if item <= itemset[-1] or best[(item,)] < floor:
                        continue
                    both = mask & holders[(item,)]
                    count = int(both.sum())
                    if count >= max(floor, 1):
                        larger[(*itemset, item)], best[(*itemset, item)] = both, count
            level = larger
        ranked = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
        return dict(ranked[:k])


def pos_baskets(folder: str | Path | None = None) -> Transactions:
    """100,000 of the 515,597 baskets of an electronics retailer (BMS-POS), over its 1,657 categories of products.

    `pos_baskets().resample(515_597, seed)` has as many people as the whole. Without a folder the stand-in is
    `synthetic_baskets` with about the same sizes and frequencies of items.

    >>> pos_baskets().universe
    1657
    """
    path = data_file(folder, _POS)
    if path is None:
        return synthetic_baskets(100_000, _POS_ITEMS, mean_size=6.9, exponent=1.0, seed=1)
    return Transactions(_read(path, _POS_ITEMS), _POS_ITEMS, _POS, stand_in=False)


def kosarak_sets(folder: str | Path | None = None) -> Transactions:
    """100,000 visits to a Hungarian news site (the first tenth of Kosarak): the pages of each, out of 41,270.

    Without a folder the stand-in is `synthetic_baskets` of mean size 8.

    >>> kosarak_sets().people
    100000
    """
    path = data_file(folder, _KOSARAK)
    if path is None:
        return synthetic_baskets(100_000, _KOSARAK_PAGES, mean_size=8.0, exponent=1.2, seed=2)
    return Transactions(_read(path, _KOSARAK_PAGES), _KOSARAK_PAGES, _KOSARAK, stand_in=False)


def short_kosarak_sets(folder: str | Path | None = None) -> Transactions:
    """All 505,217 visits of at most 5 pages, each of at least 25 clicks (Kosarak at scale).

    Without a folder the stand-in is `synthetic_baskets` of mean size 2.5, cut at 5.
    """
    path = data_file(folder, _SHORT)
    if path is None:
        return synthetic_baskets(505_217, _KOSARAK_PAGES, mean_size=2.5, exponent=1.2, seed=3, most=5)
    return Transactions(_read(path, _KOSARAK_PAGES), _KOSARAK_PAGES, _SHORT, stand_in=False)


def online_invoices(folder: str | Path | None = None) -> Transactions:
    """25,900 invoices of an online shop (UCI Online Retail): the different products on each, out of 4,070 codes.

    Without a folder the stand-in is `synthetic_baskets` of mean size 20.

    >>> online_invoices().universe
    4070
    """
    path = data_file(folder, _ONLINE)
    if path is None:
        return synthetic_baskets(25_900, _ONLINE_ITEMS, mean_size=20.0, exponent=0.7, seed=4)
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["invoice", "stock_code"]).combine_chunks()
    invoice, product = (column.combine_chunks().indices.to_numpy().astype(np.int64) for column in table.itercolumns())
    pairs = np.unique(invoice * _ONLINE_ITEMS + product)
    sizes = np.bincount(pairs // _ONLINE_ITEMS)
    sizes = sizes[sizes > 0]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Transactions(
        Sets(offsets, (pairs % _ONLINE_ITEMS).astype(np.uint64)), _ONLINE_ITEMS, _ONLINE, stand_in=False
    )


def retail_baskets(folder: str | Path | None = None) -> Transactions:
    """88,162 baskets of a Belgian supermarket (FIMI Retail), over its 16,470 products.

    Without a folder the stand-in is `synthetic_baskets` of mean size 10.

    >>> retail_baskets().people
    88162
    """
    path = data_file(folder, _RETAIL)
    if path is None:
        return synthetic_baskets(_RETAIL_PEOPLE, _PRODUCTS, mean_size=10.0, exponent=1.0, seed=7)
    return Transactions(_read(path, _PRODUCTS), _PRODUCTS, _RETAIL, stand_in=False)


def webview_clicks(folder: str | Path | None = None) -> Transactions:
    """77,512 visits to a web shop (BMS-WebView-2): the products seen in each, out of 3,340, in the order of codes.

    Without a folder the stand-in is `synthetic_baskets` of mean size 4.6.

    >>> webview_clicks().universe
    3340
    """
    path = data_file(folder, _WEBVIEW)
    if path is None:
        return synthetic_baskets(_WEB_PEOPLE, _WEB_PAGES, mean_size=4.6, exponent=0.7, seed=8)
    import pyarrow.parquet as pq

    column = pq.read_table(path, columns=["items"]).column("items").combine_chunks()
    offsets, codes = column.offsets.to_numpy().astype(np.int64), column.flatten().to_numpy()
    found, numbers = np.unique(codes, return_inverse=True)
    listed = _lists(offsets - offsets[0], numbers)
    return Transactions(Items(len(found)).encode(listed), len(found), _WEBVIEW, stand_in=False)


def synthetic_baskets(
    people: int,
    universe: int,
    *,
    mean_size: float,
    exponent: float,
    seed: int,
    patterns: int = 200,
    most: int = 200,
) -> Transactions:
    """Baskets after Agrawal and Srikant (VLDB 1994, the generator of IBM Quest), simplified.

    There are `patterns` sets of items that tend to be bought together, of 1 + Poisson(1) items each, with weights that
    fall like those of Zipf's law; items are drawn by r^-exponent. A basket has a geometric size of the given
    mean, at most `most`. It is filled with three patterns, of which each item is left out with probability 0.3, and
    then with single items, until it is full; what comes twice counts once.

    >>> synthetic_baskets(1_000, 50, mean_size=3.0, exponent=1.0, seed=0).people
    1000
    """
    if not all(is_int(number) and number >= 1 for number in (people, universe, patterns, most)) or mean_size < 1:
        raise InputError("people, universe, patterns and the largest size are at least 1, and so is the mean size")
    rng = np.random.default_rng(seed)
    shares = np.arange(1, universe + 1, dtype=np.float64) ** -exponent
    shares /= shares.sum()
    lengths = 1 + rng.poisson(1.0, patterns)
    bundles = rng.choice(universe, (patterns, int(lengths.max())), p=shares)
    weights = np.arange(1, patterns + 1, dtype=np.float64) ** -0.8
    sizes = np.minimum(rng.geometric(1.0 / mean_size, people), most)
    owners, items = [], []
    for _ in range(3):
        chosen = rng.choice(patterns, people, p=weights / weights.sum())
        kept = (np.arange(bundles.shape[1]) < lengths[chosen][:, None]) & (rng.random((people, bundles.shape[1])) > 0.3)
        where, column = np.nonzero(kept)
        owners.append(where)
        items.append(bundles[chosen[where], column])
    owners.append(np.repeat(np.arange(people), sizes))
    items.append(rng.choice(universe, int(sizes.sum()), p=shares))
    owner, item = np.concatenate(owners), np.concatenate(items)
    order = np.argsort(owner, kind="stable")  # patterns first, in the order in which they were drawn
    owner, item = owner[order], item[order]
    starts = np.searchsorted(owner, np.arange(people + 1))
    within = np.arange(len(owner)) - starts[owner]
    full = within < sizes[owner]
    pairs = np.unique(owner[full] * universe + item[full])
    counts = np.bincount(pairs // universe, minlength=people)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    origin = f"a stand-in: {people:,} baskets of a small generator, seed {seed}"
    return Transactions(Sets(offsets, (pairs % universe).astype(np.uint64)), universe, origin, stand_in=True)


def _read(path: Path, universe: int) -> Sets:
    import pyarrow.parquet as pq

    return Items(universe).encode(pq.read_table(path, columns=["items"]).column("items"))


def _lists(offsets: NDArray[np.int64], items: NDArray[Any]) -> pyarrow.Array:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(offsets, items)
