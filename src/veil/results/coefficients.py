"""What comes out of a mechanism that asks for a Haar coefficient: unbiased differences within pairs of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.units import Unit, make_table
from veil.tools.numbers import two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

__all__ = ["Coefficients"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coefficients(Result):
    """For each pair (2 a, 2 a + 1) of the domain's codes, the frequency of the left less that of the right one.

    A last code that has no partner stands alone: its difference is its frequency. `n` people answered, out of
    `population`; `effective` is n, or with weights W^2 / sum of squares; `moment` is the square of what one report
    adds, the same for every report and pair.
    """

    kind: ClassVar[str] = "differences"
    domain: Domain
    differences: Floats
    n: int
    population: int
    effective: float
    moment: float
    lineage: tuple[str, ...] = ()
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.differences)

    def __repr__(self) -> str:
        return f"Coefficients({len(self)} pairs from {self.n} reports, {' > '.join(self.lineage)})"

    @property
    def variance(self) -> Floats:
        """(moment - c^2) / n: exact for n people drawn at random from a large population, so that a share's sampling
        is part of it; about these people alone it is a little too large.
        """
        return np.asarray((self.moment - np.minimum(self.differences**2, self.moment)) / self.effective)

    @property
    def stderr(self) -> Floats:
        """Standard error of each difference."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> Floats:
        """A confidence interval for each difference: an array of (low, high)."""
        reach = two_sided(level) * self.stderr
        return np.stack([self.differences - reach, self.differences + reach], axis=1)

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """pair, difference (left less right), stderr, low and high."""
        low, high = self.interval(level).T
        numbers = {"difference": self.differences, "stderr": self.stderr, "low": low, "high": high}
        shares = {name: (column, Unit("share")) for name, column in numbers.items()}
        return make_table({"pair": (np.arange(len(self)), Unit("count")), **shares})

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many pairs there are."""
        return {"pairs": len(self)}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"pairs": Unit("people")}

    def _importance(self) -> NDArray[np.int64]:
        return np.argsort(-np.abs(self.differences), kind="stable")

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The k largest differences, either way, with 95 % intervals. Needs `veil-ldp[plot]`."""
        from veil.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)
