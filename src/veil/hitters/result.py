"""Results of searches for heavy hitters: the values, their frequencies and intervals, and the rounds of the search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Text
from veil.privacy import Guarantee
from veil.results.base import Result, with_picked
from veil.results.estimate import Estimate, Row
from veil.results.units import Column, Unit, make_table
from veil.tools.numbers import alpha_of

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


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
    applies to them. They were chosen for being large, so that the weakest of them tend to be too large; `tested` says
    out of how many, and significance and the selected intervals answer for all of those. `fitted` are the frequencies
    that fit the whole trie of kept prefixes best and are not negative, where that was made.
    """

    kind: ClassVar[str] = "heavy-hitters"
    selection: ClassVar[bool] = True
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
    def tested(self) -> int:
        """How many values and prefixes were tested to find these: everything that the search ever tried."""
        tested = self.estimates.tested
        return sum(step.candidates for step in self.history) if tested is None else tested

    @property
    def rows(self) -> list[Row]:
        """Each value with its frequency and 95 % intervals; values that may be cut end in an ellipsis."""
        found, selected = self._judged, self.selected_interval()
        bounds = zip(found.shown, found.counts, found.stderr, *selected.T, *found.interval().T, strict=True)
        named = [f"{v}…" if cut else v for v, cut in zip(self.values, self.truncated, strict=True)]
        return [Row(name, *map(float, numbers)) for name, numbers in zip(named, bounds, strict=True)]

    # -- what it says ------------------------------------------------------------------------------------------------

    def threshold(self, alpha: float = 0.05) -> float:
        """What nothing that was tested exceeds if nobody holds it, but for a chance of alpha over all of it.

        The support of an absent value is binomial: its exact tail, at alpha / tested.
        """
        return self._judged.threshold(alpha)

    def significant(self, alpha: float = 0.05) -> NDArray[np.bool_]:
        """Which of the values exceed the threshold: with probability 1 - alpha or more, none that nobody holds."""
        return np.asarray(self.estimates.shown > self.threshold(alpha))

    def selected_interval(self, level: float = 0.95) -> NDArray[np.float64]:
        """Intervals for what was selected, an array of (low, high): wider, because large noise is selected too.

        Of level 1 - (1 - level) R / tested (Benjamini and Yekutieli 2005), where R is how many values are significant,
        at least 1: of those, and of all values found, a share of at most 1 - level is expected not to be covered.
        """
        selected = max(int(self.significant(alpha_of(level)).sum()), 1)
        return self._judged.selected_interval(selected, level)

    @property
    def _judged(self) -> Estimate:
        return replace(self.estimates, tested=self.tested)

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """Every value found, with the interval that holds for what was selected, and the one of the value alone.

        `truncated` where longer ones that begin so are counted with it; `fitted` where made.
        """
        share, selected = Unit("share"), self.selected_interval(level)
        more: dict[str, Column] = {
            "significant": (self.significant(alpha_of(level)), Unit("flag")),
            "truncated": (self.truncated, Unit("flag")),
        }
        fitted: dict[str, Column] = {} if self.fitted is None else {"fitted": (self.fitted, share)}
        alone = make_table({**self.estimates.columns(level), **more, **fitted})
        return with_picked(alone, selected[:, 0], selected[:, 1])

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many values were found and tested, the significance threshold, how many are above it, and the rounds."""
        alpha = alpha_of(level)
        rounds = [
            {**asdict(step), "threshold": None if math.isnan(step.threshold) else step.threshold}
            for step in self.history
        ]
        found = int(self.significant(alpha).sum())
        numbers = {"values": len(self), "tested": self.tested, "threshold": self.threshold(alpha), "significant": found}
        return {**numbers, "rounds": rounds}

    def fact_units(self) -> Mapping[str, Unit]:
        of_rounds = (f"rounds.{name}" for name in ("length", "people", "candidates", "kept"))
        counts = ("values", "tested", "significant", *of_rounds)
        share = Unit("share")
        return {"threshold": share, "rounds.threshold": share, **dict.fromkeys(counts, Unit("people"))}

    def remarks(self) -> list[str]:
        if not len(self):
            return ["No value was found: nothing stood out of the noise."]
        said = [
            f"These values were selected for being large, out of {self.tested:,} that were tested: significance and"
            " intervals take all of them into account."
        ]
        if self.truncated.any():
            said.append(
                "Truncated values fill all bytes of their text: longer ones that begin so are counted with them."
            )
        return said

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The first k values with 95 % intervals. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)

    def __repr__(self) -> str:
        return f"HeavyHitters({len(self)} values after {len(self.history)} rounds)"
