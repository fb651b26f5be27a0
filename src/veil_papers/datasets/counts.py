"""The number of people per value: clicks, sales, emoji, names, words, Zipf's law, and an exponential law of strings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil.tools.numbers import proportional
from veil_papers.datasets.files import data_file, read_columns

Ints = NDArray[np.int64]

_KOSARAK = "kosarak_first100k.parquet"
_PAGES, _CLICKS = 41_270, 8_019_470
_SAMPLE = 10  # the file holds a tenth of the stream
_RETAIL = "retail.parquet"
_PRODUCTS, _SALES = 16_470, 908_576
_EMOJI = "emoji_emojitracker.parquet"
_EMOJIS, _USES = 845, 884_427
_BLOCK = 64  # code points in a set of emoji
_NAMES = "us_ssa_names.parquet"
_WORDS = "google_web_unigrams_333k.parquet"
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstv" for vowel in "aeio"]


@dataclass(frozen=True, eq=False)
class Counts:
    """The number of people per value, and the origin of the data."""

    held: Ints
    origin: str
    stand_in: bool

    @property
    def people(self) -> int:
        """The total number of people."""
        return int(self.held.sum())


@dataclass(frozen=True, eq=False)
class Emoji(Counts):
    """Uses of emoji, and sets of related emoji as indices."""

    sets: tuple[Ints, ...]


@dataclass(frozen=True, eq=False)
class Strings:
    """Distinct strings, the weight of each, and the origin of the data."""

    values: list[str]
    held: Ints
    origin: str
    stand_in: bool

    def people(self, count: int, seed: int) -> list[str]:
        """Draw the strings of `count` independent people."""
        drawn = self.drawn(count, seed).tolist()
        return [value for value, times in zip(self.values, drawn, strict=True) for _ in range(times)]

    def drawn(self, count: int, seed: int) -> Ints:
        """Draw how many of `count` independent people hold each string."""
        return np.random.default_rng(seed).multinomial(count, self.held / self.held.sum())


# -- values ------------------------------------------------------------------------------------------------------------


def kosarak_clicks(folder: str | Path | None = None) -> Counts:
    """Return clicks on the 41,270 pages of a Hungarian news site (Kosarak); as in the thesis, a click is a person.

    The file is the first tenth of the stream; counts are scaled by 10 to stand for its 8 million clicks, so that pages
    with fewer than about ten clicks are mostly at 0. Without a folder the stand-in is a Zipf law with a cut-off, the
    page of rank r holding a share proportional to r^-0.86 exp(-r / 8700), fitted to the file, with the same total.

    >>> kosarak_clicks().people
    8019470
    """
    path = data_file(folder, _KOSARAK)
    if path is None:
        held = proportional(_cut_zipf(_PAGES, 0.86, 8_700.0), _CLICKS)
        return Counts(held, "a stand-in: r^-0.86 exp(-r / 8700) over 41,270 pages", stand_in=True)
    held = _count_items(path, _PAGES + 1)[1:] * _SAMPLE  # pages are numbered from 1
    return Counts(held, f"{_KOSARAK}, counts times {_SAMPLE}", stand_in=False)


def retail_sales(folder: str | Path | None = None) -> Counts:
    """Return sales of the 16,470 products of a Belgian supermarket (FIMI Retail); a sale is a person.

    Without a folder the stand-in is r^-0.9 exp(-r / 6000) over the ranks, with the same total.

    >>> retail_sales().people
    908576
    """
    path = data_file(folder, _RETAIL)
    if path is None:
        held = proportional(_cut_zipf(_PRODUCTS, 0.9, 6_000.0), _SALES)
        return Counts(held, "a stand-in: r^-0.9 exp(-r / 6000) over 16,470 products", stand_in=True)
    return Counts(_count_items(path, _PRODUCTS), _RETAIL, stand_in=False)


def emoji_uses(folder: str | Path | None = None) -> Emoji:
    """Return uses of 845 emoji on Twitter (emojitracker, June 2020), scaled to the paper's 884,427 people.

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
    columns = read_columns(path, "id", "category", "count_2020_06")
    held = proportional(columns["count_2020_06"].to_numpy().astype(np.float64), _USES)
    blocks: dict[tuple[str, int], list[int]] = {}
    for index, (name, category) in enumerate(zip(*(columns[c].to_pylist() for c in ("id", "category")), strict=True)):
        blocks.setdefault((category, int(name.split("-")[0], 16) // _BLOCK), []).append(index)
    sets = tuple(np.array(indices) for indices in blocks.values())
    return Emoji(held, f"{_EMOJI}, June 2020, scaled to {_USES:,} people", stand_in=False, sets=sets)


def zipf_people(size: int, people: int, exponent: float, seed: int) -> Ints:
    """Draw the values of people from Zipf's law over 0 .. size - 1.

    >>> zipf_people(4, 5, 1.1, seed=0).shape
    (5,)
    """
    shares = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return np.random.default_rng(seed).choice(size, size=people, p=shares / shares.sum())


def _cut_zipf(size: int, exponent: float, cut: float) -> NDArray[np.float64]:
    """Return Zipf's law with an exponential cut-off: r^-exponent exp(-r / cut)."""
    ranks = np.arange(1, size + 1, dtype=np.float64)
    return np.asarray(ranks**-exponent * np.exp(-ranks / cut))


def _count_items(path: Path, size: int) -> Ints:
    """Count each item over all transactions of a file."""
    return np.bincount(read_columns(path, "items")["items"].flatten().to_numpy(), minlength=size)


# -- strings -----------------------------------------------------------------------------------------------------------


def first_names(folder: str | Path | None = None) -> Strings:
    """Return first names given in the United States, 1880 to 2016 (Social Security Administration), of both sexes.

    Without a folder the stand-in is 5,000 names made of syllables, the one of rank r with weight 1 / (r + 20).

    >>> first_names().values[0].istitle(), len(set(first_names().values)) >= 5_000
    (True, True)
    """
    path = data_file(folder, _NAMES)
    if path is None:
        names = [word.capitalize() for word in _words_of_syllables(5_000)]
        held = proportional(1 / (np.arange(5_000) + 20.0), 10**9)
        return Strings(names, held, "a stand-in: 5,000 names of syllables", stand_in=True)
    import pyarrow as pa

    column = "count_1880_2016"
    table = pa.table(read_columns(path, "name", column)).group_by("name").aggregate([(column, "sum")])
    held = table.column(f"{column}_sum").to_numpy().astype(np.int64)
    return Strings(table.column("name").to_pylist(), held, _NAMES, stand_in=False)


def web_words(folder: str | Path | None = None) -> Strings:
    """Return the 333,000 most frequent words of English web pages (Google Web 1T).

    Without a folder the stand-in is 20,000 words made of syllables, the one of rank r with weight 1 / (r + 2).

    >>> len(web_words().values) >= 20_000
    True
    """
    path = data_file(folder, _WORDS)
    if path is None:
        held = proportional(1 / (np.arange(20_000) + 2.0), 10**12)
        return Strings(_words_of_syllables(20_000), held, "a stand-in: 20,000 words of syllables", stand_in=True)
    columns = read_columns(path, "word", "count")
    held = columns["count"].to_numpy().astype(np.int64)
    return Strings([str(word) for word in columns["word"].to_pylist()], held, _WORDS, stand_in=False)


def exponential_bits(people: int, bits: int, seed: int, scale: float = 0.05) -> tuple[NDArray[np.uint64], list[int]]:
    """Draw strings of at most 64 bits; the string of rank r has probability proportional to e^(-scale r).

    The synthetic data of section 4.4.1 of the thesis. Returns the value of each person, and the distinct values by
    decreasing frequency.

    >>> held, ranking = exponential_bits(1000, 16, seed=0)
    >>> len(held), int(np.bincount(held.astype(int)).argmax()) == ranking[0]
    (1000, True)
    """
    rng = np.random.default_rng(seed)
    weights = np.exp(-scale * np.arange(round(20 / scale)))
    values = rng.integers(0, 2**64, len(weights), dtype=np.uint64) >> np.uint64(64 - bits)
    counts = rng.multinomial(people, weights / weights.sum())
    distinct, where = np.unique(values, return_inverse=True)
    totals = np.bincount(where, counts)
    return np.repeat(values, counts), [int(value) for value in distinct[np.argsort(-totals, kind="stable")]]


def _words_of_syllables(count: int) -> list[str]:
    """Return `count` distinct words of one to three syllables, in a fixed order."""
    pairs = [first + second for first in _SYLLABLES for second in _SYLLABLES]
    words = [*_SYLLABLES, *pairs, *(pair + third for pair in pairs for third in _SYLLABLES)]
    return [words[i] for i in np.random.default_rng(0).permutation(len(words))[:count]]
