"""How many people hold each of many values: clicks, sales, emoji, Zipf's law."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil.datasets.folder import data_file
from veil.tools.shares import proportional

__all__ = [
    "Counts",
    "Emoji",
    "emoji_uses",
    "kosarak_clicks",
    "retail_sales",
    "zipf_people",
]

_KOSARAK = "kosarak_first100k.parquet"
_PAGES = 41_270
_CLICKS = 8_019_470
_SAMPLE = 10  # the file holds a tenth of the stream
_EXPONENT, _CUT = 0.86, 8_700.0
_RETAIL = "retail.parquet"
_PRODUCTS, _SALES = 16_470, 908_576
_EMOJI = "emoji_emojitracker.parquet"
_EMOJIS, _USES = 845, 884_427
_BLOCK = 64  # code points that make a fixed set of emoji


@dataclass(frozen=True, eq=False)
class Counts:
    """How many people hold each value, and where that was read."""

    held: NDArray[np.int64]
    origin: str
    stand_in: bool

    @property
    def people(self) -> int:
        """All people together."""
        return int(self.held.sum())


@dataclass(frozen=True, eq=False)
class Emoji(Counts):
    """Uses of emoji, and sets of emoji that belong together, as positions."""

    sets: tuple[NDArray[np.int64], ...]


def kosarak_clicks(folder: str | Path | None = None) -> Counts:
    """Clicks on each of the 41,270 pages of a Hungarian news site (Kosarak): one click, one person, as in the thesis.

    The file is the first tenth of the stream; counts are scaled by 10 to stand for its 8 million clicks, so that pages
    with fewer than about ten clicks are mostly at 0. Without a folder the stand-in is a Zipf law with a cut-off, the
    page of rank r holding a share proportional to r^-0.86 exp(-r / 8700), fitted to the file, with the same total.

    >>> kosarak_clicks().people
    8019470
    """
    path = data_file(folder, _KOSARAK)
    if path is None:
        held = proportional(_cut_zipf(_PAGES, _EXPONENT, _CUT), _CLICKS)
        return Counts(held, "a stand-in: r^-0.86 exp(-r / 8700) over 41,270 pages", stand_in=True)
    held = np.bincount(_items(path), minlength=_PAGES + 1)[1:] * _SAMPLE  # pages are numbered from 1
    return Counts(held.astype(np.int64), f"{_KOSARAK}, counts times {_SAMPLE}", stand_in=False)


def retail_sales(folder: str | Path | None = None) -> Counts:
    """Sales of each of the 16,470 products of a Belgian supermarket (FIMI Retail): one sale, one person.

    Without a folder the stand-in is r^-0.9 exp(-r / 6000) over the ranks, with the same total.

    >>> retail_sales().people
    908576
    """
    path = data_file(folder, _RETAIL)
    if path is None:
        held = proportional(_cut_zipf(_PRODUCTS, 0.9, 6_000.0), _SALES)
        return Counts(held, "a stand-in: r^-0.9 exp(-r / 6000) over 16,470 products", stand_in=True)
    return Counts(np.bincount(_items(path), minlength=_PRODUCTS).astype(np.int64), _RETAIL, stand_in=False)


def emoji_uses(folder: str | Path | None = None) -> Emoji:
    """Uses of 845 emoji on Twitter (emojitracker, June 2020), scaled to 884,427 people, as many as in the paper.

    The sets are emoji of one Unicode category within a block of 64 code points: about as many and as large as the
    68 categories of the consistency paper, which are not in the file. Without a folder the stand-in is
    r^-0.9 exp(-r / 300) with ranks scattered over sets of twelve.

    >>> emoji_uses().people, len(emoji_uses().held)
    (884427, 845)
    """
    path = data_file(folder, _EMOJI)
    if path is None:
        scattered = np.random.default_rng(0).permutation(_EMOJIS)
        held = proportional(_cut_zipf(_EMOJIS, 0.9, 300.0)[scattered], _USES)
        sets = tuple(np.array_split(np.arange(_EMOJIS), _EMOJIS // 12))
        return Emoji(held, "a stand-in: r^-0.9 exp(-r / 300) over 845 emoji", stand_in=True, sets=sets)
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["id", "category", "count_2020_06"])
    held = proportional(table.column("count_2020_06").to_numpy().astype(np.float64), _USES)
    blocks: dict[tuple[str, int], list[int]] = {}
    for place, (name, category) in enumerate(
        zip(*(table.column(c).to_pylist() for c in ("id", "category")), strict=True)
    ):
        blocks.setdefault((category, int(name.split("-")[0], 16) // _BLOCK), []).append(place)
    sets = tuple(np.array(places) for places in blocks.values())
    return Emoji(held, f"{_EMOJI}, June 2020, scaled to {_USES:,} people", stand_in=False, sets=sets)


def zipf_people(size: int, people: int, exponent: float, seed: int) -> NDArray[np.int64]:
    """Values of people drawn from Zipf's law over 0 .. size - 1.

    >>> zipf_people(4, 5, 1.1, seed=0).shape
    (5,)
    """
    shares = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return np.random.default_rng(seed).choice(size, size=people, p=shares / shares.sum())


def _cut_zipf(size: int, exponent: float, cut: float) -> NDArray[np.float64]:
    """Zipf's law with an exponential cut-off: r^-exponent exp(-r / cut)."""
    ranks = np.arange(1, size + 1, dtype=np.float64)
    return np.asarray(ranks**-exponent * np.exp(-ranks / cut))


def _items(path: Path) -> NDArray[np.int64]:
    """All items of all transactions, one after the other."""
    import pyarrow.parquet as pq

    items = pq.read_table(path, columns=["items"]).column("items").combine_chunks().flatten()
    return np.asarray(items.to_numpy().astype(np.int64))
