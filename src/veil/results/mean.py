"""What comes out of a mechanism that asks for a mean only: one unbiased number with its error bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veil.domain import Numeric
from veil.tools.normal import two_sided

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Mean"]


@dataclass(frozen=True)
class Mean:
    """The mean of what people hold, as a number of the domain (times: seconds since 1970; `shown` is the time).

    `stderr` comes from the scatter of the reports. That of the people themselves is part of it, so an interval speaks
    of everyone that these people are a random sample of; about these people alone it is a little too wide.
    """

    value: float
    stderr: float
    n: int
    domain: Numeric
    lineage: tuple[str, ...] = ()

    @property
    def shown(self) -> Any:
        """The mean as people write it."""
        return self.domain.shown(self.value)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the mean, as numbers."""
        reach = two_sided(level) * self.stderr
        return self.value - reach, self.value + reach

    def to_arrow(self) -> pyarrow.Table:
        """mean, stderr, low, high (95 %) as an Arrow table of one row."""
        import pyarrow as pa

        low, high = self.interval()
        return pa.table({"mean": [self.value], "stderr": [self.stderr], "low": [low], "high": [high]})
