"""What a search for heavy hitters finds, and how it came to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Text
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.estimate import Estimate, Row
from veil.results.noise import SupportNoise
from veil.results.units import Column, Unit, make_table

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

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
class HeavyHitters(Result):
    """The values found, the most frequent first: by `fitted` where that was made, else by `estimates`.

    `estimates` are unbiased frequencies of these values from the last question alone, with their noise: post-processing
    applies to them. They were chosen for being large, so that the weakest of them tend to be too large. `fitted` are
    the frequencies that fit the whole trie of kept prefixes best and are not negative, where that was made.
    """

    kind: ClassVar[str] = "heavy-hitters"
    estimates: Estimate
    history: tuple[SearchRound, ...]
    fitted: NDArray[np.float64] | None = None
    guarantee: Guarantee | None = field(default=None, kw_only=True)
    n: int = field(default=0, kw_only=True)
    """How many people were asked; everybody, unless given."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", self.n or self.estimates.population)

    @property
    def population(self) -> int:
        return self.estimates.population

    @property
    def lineage(self) -> tuple[str, ...]:
        return self.estimates.lineage

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
        rows = self.estimates.top(len(self)) if len(self) else []
        by_value = {row.value: row for row in rows}
        named = [f"{v}…" if cut else v for v, cut in zip(self.values, self.truncated, strict=True)]
        return [replace(by_value[value], value=name) for value, name in zip(self.values, named, strict=True)]

    # -- what it says ------------------------------------------------------------------------------------------------

    def threshold(self, alpha: float = 0.05) -> float:
        """What none of the last round's candidates exceeds if nobody holds it, but for a chance of alpha over all.

        The support of an absent candidate is binomial: its exact tail, because so far out the normal one is too short.
        """
        from scipy.stats import binom

        noise, people = self.estimates.noise, self.estimates.n
        assert isinstance(noise, SupportNoise)
        p, q = float(noise.p), float(noise.q)
        support = float(binom.isf(alpha / max(self.history[-1].candidates, 1), people, q))
        return (support / people - q) / (p - q)

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """Every value found; `truncated` where longer ones that begin so are counted with it; `fitted` where made."""
        surely = self.estimates.shown > self.threshold(round(1 - level, 12))
        flags: dict[str, Column] = {
            "significant": (surely, Unit("flag")),
            "truncated": (self.truncated, Unit("flag")),
        }
        fitted: dict[str, Column] = {} if self.fitted is None else {"fitted": (self.fitted, Unit("share"))}
        return make_table({**self.estimates.columns(level), **flags, **fitted})

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """The significance threshold, how many values are above it, and how the rounds went."""
        threshold = self.threshold(round(1 - level, 12))
        rounds = [
            {**asdict(step), "threshold": None if math.isnan(step.threshold) else step.threshold}
            for step in self.history
        ]
        found = int((self.estimates.shown > threshold).sum())
        return {"values": len(self), "threshold": threshold, "significant": found, "rounds": rounds}

    def fact_units(self) -> Mapping[str, Unit]:
        counts = ("values", "significant", *(f"rounds.{name}" for name in ("length", "people", "candidates", "kept")))
        share = Unit("share")
        return {"threshold": share, "rounds.threshold": share, **dict.fromkeys(counts, Unit("people"))}

    def remarks(self) -> list[str]:
        said = [] if len(self) else ["No value was found: nothing stood out of the noise."]
        if self.truncated.any():
            said.append(
                "Truncated values fill all bytes of their text: longer ones that begin so are counted with them."
            )
        return said

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The first k values with 95 % intervals. Needs `veil[plot]`."""
        from veil.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)

    def __repr__(self) -> str:
        return f"HeavyHitters({len(self)} values after {len(self.history)} rounds)"
