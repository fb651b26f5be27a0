"""What comes out of a mechanism that asks for a Haar coefficient: unbiased differences within pairs of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain
from veil.tools.normal import two_sided

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Coefficients"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """For each pair (2 a, 2 a + 1) of the domain's codes, the frequency of the left less that of the right one.

    A last code that has no partner stands alone: its difference is its frequency. `n` people answered, out of
    `population`; `effective` is n, or with weights W^2 / sum of squares; `moment` is the square of what one report
    adds, the same for every report and pair.
    """

    domain: Domain
    differences: Floats
    n: int
    population: int
    effective: float
    moment: float
    lineage: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.differences)

    def __repr__(self) -> str:
        return f"Coefficients({len(self)} pairs from {self.n} people, {' > '.join(self.lineage)})"

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

    def to_arrow(self) -> pyarrow.Table:
        """pair, difference, stderr, low, high (95 %) as an Arrow table."""
        import pyarrow as pa

        low, high = self.interval().T
        pairs = np.arange(len(self))
        return pa.table(
            {"pair": pairs, "difference": self.differences, "stderr": self.stderr, "low": low, "high": high}
        )
