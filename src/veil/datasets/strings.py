"""Strings that people hold: first names, words, and random bits with an exponential law."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil.datasets.folder import data_file
from veil.tools.shares import proportional

__all__ = ["Strings", "exponential_bits", "first_names", "web_words"]

_NAMES = "us_ssa_names.parquet"
_WORDS = "google_web_unigrams_333k.parquet"
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstv" for vowel in "aeio"]


@dataclass(frozen=True, eq=False)
class Strings:
    """Different strings, how often each is held, and where that was read."""

    values: list[str]
    held: NDArray[np.int64]
    origin: str
    stand_in: bool

    def people(self, count: int, seed: int) -> list[str]:
        """The strings of `count` people, drawn independently of each other."""
        drawn = self.drawn(count, seed).tolist()
        return [value for value, times in zip(self.values, drawn, strict=True) for _ in range(times)]

    def drawn(self, count: int, seed: int) -> NDArray[np.int64]:
        """How many of `count` people, drawn independently of each other, hold each string."""
        return np.random.default_rng(seed).multinomial(count, self.held / self.held.sum())


def first_names(folder: str | Path | None = None) -> Strings:
    """First names given in the United States, 1880 to 2016 (Social Security Administration), both sexes together.

    Without a folder the stand-in is 5,000 names made of syllables, the one of rank r with weight 1 / (r + 20).

    >>> first_names().values[0].istitle(), len(set(first_names().values)) >= 5_000
    (True, True)
    """
    path = data_file(folder, _NAMES)
    if path is None:
        weights = 1 / (np.arange(5_000) + 20.0)
        made = [word.capitalize() for word in _made(5_000)]
        return Strings(made, proportional(weights, 10**9), "a stand-in: 5,000 names of syllables", stand_in=True)
    import pyarrow.parquet as pq

    column = "count_1880_2016"
    table = pq.read_table(path, columns=["name", column]).group_by("name").aggregate([(column, "sum")])
    held = table.column(f"{column}_sum").to_numpy().astype(np.int64)
    return Strings(table.column("name").to_pylist(), held, _NAMES, stand_in=False)


def web_words(folder: str | Path | None = None) -> Strings:
    """Words of English web pages (Google Web 1T), the 333,000 most frequent.

    Without a folder the stand-in is 20,000 words made of syllables, the one of rank r with weight 1 / (r + 2).

    >>> len(web_words().values) >= 20_000
    True
    """
    path = data_file(folder, _WORDS)
    if path is None:
        weights = 1 / (np.arange(20_000) + 2.0)
        held = proportional(weights, 10**12)
        return Strings(_made(20_000), held, "a stand-in: 20,000 words of syllables", stand_in=True)
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["word", "count"])
    held = table.column("count").to_numpy().astype(np.int64)
    return Strings([str(word) for word in table.column("word").to_pylist()], held, _WORDS, stand_in=False)


def exponential_bits(people: int, bits: int, seed: int, scale: float = 0.05) -> tuple[NDArray[np.uint64], list[int]]:
    """Random strings of at most 64 bits, the one of rank r held with probability proportional to e^(-scale r).

    The synthetic data of section 4.4.1 of the thesis. Returns what people hold, and the strings by how often they are
    held, most often first.

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


def _made(count: int) -> list[str]:
    """`count` different words of one to three syllables, in a fixed order."""
    pairs = [first + second for first in _SYLLABLES for second in _SYLLABLES]
    every = [*_SYLLABLES, *pairs, *(pair + third for pair in pairs for third in _SYLLABLES)]
    return [every[i] for i in np.random.default_rng(0).permutation(len(every))[:count]]
