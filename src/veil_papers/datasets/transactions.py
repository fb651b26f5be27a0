"""Sets of items that people hold: baskets, clicks and invoices, their frequent itemsets, and a small generator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Items, Record, SetCodes
from veil.errors import InputError
from veil_papers.datasets.files import check_integer, data_file, read_columns
from veil_papers.datasets.records import Records, draw_rows

if TYPE_CHECKING:
    import pyarrow

_KOSARAK_PAGES = 41_270
_ONLINE, _ONLINE_ITEMS = "online_retail_uci.parquet", 4_070
_WEBVIEW, _WEB_PAGES, _WEB_PEOPLE = "bms_webview2.parquet", 3_340, 77_512


@dataclass(frozen=True, eq=False)
class Transactions:
    """Sets of items out of 0 .. universe - 1, one per person, and the origin of the data."""

    sets: SetCodes
    universe: int
    origin: str
    stand_in: bool

    @property
    def people(self) -> int:
        """The number of sets."""
        return len(self.sets)

    @property
    def domain(self) -> Items:
        """The domain of the sets."""
        return Items(self.universe)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of items of each set."""
        return np.diff(self.sets.offsets)

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """The number of people with each item."""
        return self.sets.count_items(self.universe)

    def to_arrow(self) -> pyarrow.Array:
        """Return the sets as an Arrow column of lists, which `simulate` takes."""
        return _lists(self.sets.offsets, self.sets.items)

    def resample(self, people: int, seed: int) -> Transactions:
        """Draw `people` sets at random with replacement.

        >>> pos_baskets().resample(7, seed=1).people
        7
        """
        return replace(self, sets=self.sets[draw_rows(people, self.people, seed)], origin=f"{self.origin}, resampled")

    def top_items(self, k: int) -> dict[int, int]:
        """Return the k most frequent items with their counts, most frequent first."""
        return {int(item): int(self.held[item]) for item in np.argsort(-self.held, kind="stable")[:k]}

    def records(self, m: int) -> Records:
        """Return records of m binary attributes, one for each of the m most frequent items: 1 for those who hold it.

        >>> some = Transactions(Items(3).encode([[0, 1], [1], [2]]), 3, "by hand", stand_in=False)
        >>> some.records(2).domain.names, some.records(2).codes.tolist()
        (('item_1', 'item_0'), [[1, 1], [1, 0], [0, 0]])
        """
        check_integer("m", m, 1, self.universe)
        top = list(self.top_items(m))
        columns = np.full(self.universe, -1)
        columns[top] = np.arange(m)
        owners, column = np.repeat(np.arange(self.people), self.sizes), columns[self.sets.items.astype(np.int64)]
        codes = np.zeros((self.people, m), np.uint8)
        codes[owners[column >= 0], column[column >= 0]] = 1
        named = Record(tuple((f"item_{item}", Categories.range(2)) for item in top))
        return Records(named, codes, f"{self.origin}, its {m} most frequent items", self.stand_in)

    def top_itemsets(self, k: int) -> dict[tuple[int, ...], int]:
        """Return the k most frequent sets of one or more items, most frequent first, with the people who hold them."""
        return self.sets.top_itemsets(k, self.universe)


def pos_baskets(folder: str | Path | None = None) -> Transactions:
    """Return 100,000 of 515,597 baskets of an electronics retailer (BMS-POS), over its 1,657 categories of products.

    `pos_baskets().resample(515_597, seed)` has as many people as the whole. Without a folder the stand-in is
    `synthetic_baskets` with about the same sizes and frequencies of items.

    >>> pos_baskets().universe
    1657
    """
    path = data_file(folder, "bms_pos_first100k.parquet")
    return _read(path, 1_657) if path else synthetic_baskets(100_000, 1_657, mean_size=6.9, exponent=1.0, seed=1)


def kosarak_sets(folder: str | Path | None = None) -> Transactions:
    """Return 100,000 visits to a Hungarian news site (the first tenth of Kosarak), as sets of its 41,270 pages.

    Without a folder the stand-in is `synthetic_baskets` of mean size 8.

    >>> kosarak_sets().people
    100000
    """
    path, pages = data_file(folder, "kosarak_first100k.parquet"), _KOSARAK_PAGES
    return _read(path, pages) if path else synthetic_baskets(100_000, pages, mean_size=8.0, exponent=1.2, seed=2)


def short_kosarak_sets(folder: str | Path | None = None) -> Transactions:
    """Return all 505,217 visits of at most 5 pages, each of at least 25 clicks (Kosarak at scale).

    Without a folder the stand-in is `synthetic_baskets` of mean size 2.5, cut at 5.
    """
    path, pages = data_file(folder, "kosarak_size_le5_item_ge25.parquet"), _KOSARAK_PAGES
    if path is None:
        return synthetic_baskets(505_217, pages, mean_size=2.5, exponent=1.2, seed=3, most=5)
    return _read(path, pages)


def retail_baskets(folder: str | Path | None = None) -> Transactions:
    """Return 88,162 baskets of a Belgian supermarket (FIMI Retail), over its 16,470 products.

    Without a folder the stand-in is `synthetic_baskets` of mean size 10.

    >>> retail_baskets().people
    88162
    """
    path = data_file(folder, "retail.parquet")
    return _read(path, 16_470) if path else synthetic_baskets(88_162, 16_470, mean_size=10.0, exponent=1.0, seed=7)


def online_invoices(folder: str | Path | None = None) -> Transactions:
    """Return 25,900 invoices of an online shop (UCI Online Retail) as sets of its 4,070 products.

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
    return Transactions(_sets(pairs, sizes[sizes > 0], _ONLINE_ITEMS), _ONLINE_ITEMS, _ONLINE, stand_in=False)


def webview_clicks(folder: str | Path | None = None) -> Transactions:
    """Return 77,512 visits to a web shop (BMS-WebView-2) as sets of its 3,340 products, in the order of their codes.

    Without a folder the stand-in is `synthetic_baskets` of mean size 4.6.

    >>> webview_clicks().universe
    3340
    """
    path = data_file(folder, _WEBVIEW)
    if path is None:
        return synthetic_baskets(_WEB_PEOPLE, _WEB_PAGES, mean_size=4.6, exponent=0.7, seed=8)
    column = read_columns(path, "items")["items"]
    offsets = column.offsets.to_numpy().astype(np.int64)
    codes, items = np.unique(column.flatten().to_numpy(), return_inverse=True)
    sets = Items(len(codes)).encode(_lists(offsets - offsets[0], items))
    return Transactions(sets, len(codes), _WEBVIEW, stand_in=False)


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
    """Draw baskets after Agrawal and Srikant (VLDB 1994, the generator of IBM Quest), simplified.

    There are `patterns` sets of items that tend to be bought together, of 1 + Poisson(1) items each, with weights by
    Zipf's law; items are drawn by r^-exponent. The size of a basket is geometric with the given mean, at most `most`.
    Three patterns fill it, each item of which is left out with probability 0.3, and then single items until it is full;
    duplicates count once.

    >>> synthetic_baskets(1_000, 50, mean_size=3.0, exponent=1.0, seed=0).people
    1000
    """
    for name, number in {"people": people, "universe": universe, "patterns": patterns, "most": most}.items():
        check_integer(name, number)
    if mean_size < 1:
        raise InputError(f"mean_size: expected at least 1, got {mean_size}")
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
        present = (np.arange(bundles.shape[1]) < lengths[chosen][:, None]) & (
            rng.random((people, bundles.shape[1])) > 0.3
        )
        where, column = np.nonzero(present)
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
    sets = _sets(pairs, np.bincount(pairs // universe, minlength=people), universe)
    return Transactions(
        sets, universe, f"a stand-in: {people:,} baskets of a small generator, seed {seed}", stand_in=True
    )


def _read(path: Path, universe: int) -> Transactions:
    sets = Items(universe).encode(read_columns(path, "items")["items"])
    return Transactions(sets, universe, path.name, stand_in=False)


def _sets(pairs: NDArray[np.int64], sizes: NDArray[np.int64], universe: int) -> SetCodes:
    """Return sets of the given sizes from sorted pairs, person * universe + item."""
    return SetCodes(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), (pairs % universe).astype(np.uint64))


def _lists(offsets: NDArray[np.int64], items: NDArray[Any]) -> pyarrow.Array:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(offsets, items)
