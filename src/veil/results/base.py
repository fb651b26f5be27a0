"""What every result can do: a table with its errors, facts beside it, a picture, and JSON both ways.

The terminal, JSON, files, the collector's answers and notebooks render any Result from these alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from veil.privacy import Guarantee

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

__all__ = ["Result"]


class Result(ABC):
    """What was learnt, with its error, in units that a person understands. Frozen data, no closures.

    `n` people answered, out of `population`; `guarantee` is what each of them was promised, where that is known;
    `lineage` names every step from the mechanism to here.
    """

    kind: ClassVar[str]
    n: int
    population: int
    lineage: tuple[str, ...]
    guarantee: Guarantee | None

    @abstractmethod
    def table(self, level: float = 0.95) -> pyarrow.Table:
        """One row per value, bucket or set, with its estimate, standard error and interval of the given level."""

    @abstractmethod
    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """What stands beside the table, as JSON."""

    @abstractmethod
    def plot(self, *, ax: Axes | None = None, **style: Any) -> Axes:
        """A picture of it. Needs `veil[plot]`."""
