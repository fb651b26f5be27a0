"""Real data for the reproductions, read from a folder; where there is none, a documented stand-in of the same size.

Loaders take the folder as an argument or from the environment variable VEIL_DATA. Nothing is downloaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError

__all__ = ["Counts", "data_folder", "kosarak_clicks", "zipf_people"]

_KOSARAK = "kosarak_first100k.parquet"
_PAGES = 41_270
_CLICKS = 8_019_470
_SAMPLE = 10  # the file holds a tenth of the stream
_EXPONENT, _CUT = 0.86, 8_700.0


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


def data_folder(folder: str | Path | None = None) -> Path | None:
    """The folder with the data: the argument, else VEIL_DATA, else none."""
    named = folder or os.environ.get("VEIL_DATA")
    if not named:
        return None
    path = Path(named)
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    return path


def kosarak_clicks(folder: str | Path | None = None) -> Counts:
    """Clicks on each of the 41,270 pages of a Hungarian news site (Kosarak): one click, one person, as in the thesis.

    The file is the first tenth of the stream; counts are scaled by 10 to stand for its 8 million clicks, so that pages
    with fewer than about ten clicks are mostly at 0. Without a folder the stand-in is a Zipf law with a cut-off, the
    page of rank r holding a share proportional to r^-0.86 exp(-r / 8700), fitted to the file, with the same total.

    >>> kosarak_clicks().people
    8019470
    """
    found = data_folder(folder)
    if found is None:
        return Counts(_stand_in(), "a stand-in: r^-0.86 exp(-r / 8700) over 41,270 pages", stand_in=True)
    import pyarrow.parquet as pq

    path = found / _KOSARAK
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    clicks = pq.read_table(path, columns=["items"]).column("items").combine_chunks().flatten().to_numpy()
    held = np.bincount(clicks.astype(np.int64), minlength=_PAGES + 1)[1:] * _SAMPLE  # pages are numbered from 1
    return Counts(held.astype(np.int64), f"{_KOSARAK}, counts times {_SAMPLE}", stand_in=False)


def zipf_people(size: int, people: int, exponent: float, seed: int) -> NDArray[np.int64]:
    """Values of people drawn from Zipf's law over 0 .. size - 1.

    >>> zipf_people(4, 5, 1.1, seed=0).shape
    (5,)
    """
    shares = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return np.random.default_rng(seed).choice(size, size=people, p=shares / shares.sum())


def _stand_in() -> NDArray[np.int64]:
    ranks = np.arange(1, _PAGES + 1, dtype=np.float64)
    shares = ranks**-_EXPONENT * np.exp(-ranks / _CUT)
    ends = np.rint(np.cumsum(shares) / shares.sum() * _CLICKS).astype(np.int64)
    held: NDArray[np.int64] = np.diff(ends, prepend=0)
    return held  # rounding the running sum keeps the total exact
