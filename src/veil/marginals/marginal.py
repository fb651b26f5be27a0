"""One joint distribution of a few attributes: a row per cell, with its error; a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record, Tuples
from veil.errors import DomainError
from veil.privacy import Guarantee
from veil.results.base import Result, Truth, with_truth
from veil.results.units import Column, Unit, make_table, value_unit
from veil.tools.normal import two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

__all__ = ["MOST_CELLS", "Marginal"]

Floats = NDArray[np.float64]

MOST_CELLS = 1 << 24
"""Of one marginal."""

_TAKEN = ("frequency", "count", "stderr", "low", "high", "truth", "covered", "significant", "changed", "mean", "from")
"""Names of columns that mean something in tables: attributes of these names get an underscore."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Marginal(Result):
    """How many people hold each combination of values of some attributes.

    `frequencies` has one number per cell, the last attribute varying fastest. `gap` is None where a view has all of the
    attributes; else the table was reconstructed from smaller ones, and differs from one of them by up to `gap`, where
    no joint distribution agrees with all of them.
    """

    kind: ClassVar[str] = "marginal"
    record: Record
    frequencies: Floats
    n: int
    population: int
    lineage: tuple[str, ...]
    guarantee: Guarantee | None = None
    gap: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return self.record.names

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(part.size for part in self.record.parts)

    @property
    def shares(self) -> Floats:
        """The frequencies with one axis per attribute."""
        return self.frequencies.reshape(self.shape)

    def in_order(self, names: tuple[str, ...]) -> Marginal:
        """The same marginal with its attributes in another order."""
        if names == self.names:
            return self
        axes = [self.names.index(name) for name in names]
        order = np.arange(len(self.frequencies)).reshape(self.shape).transpose(axes).reshape(-1)
        attributes = tuple(self.record.attributes[axis] for axis in axes)
        return replace(self, record=Record(attributes), frequencies=self.frequencies[order])

    def interval(self, level: float = 0.95) -> Floats:
        """Low and high for each cell."""
        return np.full((len(self.frequencies), 2), np.nan)

    @property
    def stderr(self) -> Floats:
        """The standard error of each cell."""
        return np.full(len(self.frequencies), np.nan)

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """One row per cell: a column for each attribute, then frequency, count, stderr, low and high."""
        two_sided(level)  # refuses a bad level, also where errors are not known
        share, ends = Unit("share"), self.interval(level)
        cells = np.unravel_index(np.arange(len(self.frequencies)), self.shape)
        heads: dict[str, Column] = {}
        for (name, part), codes in zip(self.record.attributes, cells, strict=True):
            heads[f"{name}_" if name in _TAKEN else name] = (part.decode(codes.astype(np.uint64)), value_unit(part))
        return make_table(
            {
                **heads,
                "frequency": (self.frequencies, share),
                "count": (self.frequencies * self.population, Unit("people")),
                "stderr": (self.stderr, share),
                "low": (ends[:, 0], share),
                "high": (ends[:, 1], share),
            }
        )

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many cells there are, and the gap of a reconstruction."""
        return {"cells": len(self), "reconstructed": self.gap is not None, "gap": self.gap}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"cells": Unit("count"), "reconstructed": Unit("flag"), "gap": Unit("share")}

    def remarks(self) -> list[str]:
        if self.gap is None:
            return []
        said = [
            "Nobody was asked for all of these attributes together: this is the table of maximum entropy among those"
            " that agree with what was asked."
        ]
        if self.gap > 1e-6:
            said.append(
                f"The noise is such that no joint distribution agrees with all of that: this one is up to"
                f" {100 * self.gap:.2g} % of the people off it."
            )
        return said

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """The largest cells; all of them in their own order, where they are no more."""
        if len(self) <= rows:
            return with_truth(self.table(level), truth)
        return super().summary_table(level, rows, truth)

    def _importance(self) -> NDArray[np.int64]:
        return np.argsort(-self.frequencies, kind="stable")

    def _place(self, value: Any) -> int:
        cells = Tuples(self.record.parts)
        try:
            return int(cells.encode([value if isinstance(value, (tuple, list)) else (value,)])[0])
        except DomainError:
            raise DomainError("expected one value for each attribute of this marginal") from None

    def __len__(self) -> int:
        return len(self.frequencies)

    def __repr__(self) -> str:
        return f"Marginal({', '.join(self.names)}: {len(self)} cells, n={self.n})"

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """A heat map of two attributes; the k largest cells with intervals otherwise. Needs `veil[plot]`."""
        if len(self.names) == 2 and truth is None:
            from veil.plot import plot_cells

            return plot_cells(self, ax=ax, **style)
        from veil.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)
