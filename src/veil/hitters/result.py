"""What a search for heavy hitters finds, and how it came to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Text
from veil.results.estimate import Estimate, Row

__all__ = ["HeavyHitters", "SearchRound"]


@dataclass(frozen=True)
class SearchRound:
    """One round: prefixes of `length` bits, how many people told about them, how many were tried and how many kept."""

    length: int
    people: int
    candidates: int
    kept: int
    threshold: float
    """The smallest estimate that was kept; NaN where none was."""


@dataclass(frozen=True, eq=False)
class HeavyHitters:
    """The values found, the most frequent first: by `fitted` where that was made, else by `estimates`.

    `estimates` are unbiased frequencies of these values from the last question alone, with their noise: post-processing
    applies to them. They were chosen for being large, so that the weakest of them tend to be too large. `fitted` are
    the frequencies that fit the whole trie of kept prefixes best and are not negative, where that was made.
    """

    estimates: Estimate
    history: tuple[SearchRound, ...]
    fitted: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.estimates)

    @property
    def values(self) -> list[Any]:
        """The values, the most frequent first. Text that fills all its bytes may be the beginning of a longer one."""
        return self.estimates.values

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which values fill all bytes of their text: longer ones that begin so are counted with them."""
        codes = self.estimates.candidates
        if not isinstance(self.estimates.domain, Text) or codes is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(codes[:, -1] != 0)

    @property
    def rows(self) -> list[Row]:
        """Each value with its frequency and 95 % interval; values that may be cut end in an ellipsis."""
        frequencies, counts, errors = self.estimates.shown, self.estimates.counts, self.estimates.stderr
        bounds = self.estimates.interval()
        named = [f"{v}…" if cut else v for v, cut in zip(self.values, self.truncated, strict=True)]
        return [
            Row(value, float(frequencies[i]), float(counts[i]), float(errors[i]), *map(float, bounds[i]))
            for i, value in enumerate(named)
        ]

    def __repr__(self) -> str:
        return f"HeavyHitters({len(self)} values after {len(self.history)} rounds)"
