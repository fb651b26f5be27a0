"""Tables of a few attributes with one row per cell and its error, and their heat maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain, Interval, Record, Tuples
from veil.domain.text_values import is_time
from veil.errors import DomainError
from veil.marginals.intervals import Bounds
from veil.privacy import Guarantee
from veil.results.base import Result, Truth, with_picked, with_truth
from veil.results.units import Column, Unit, make_table, value_unit
from veil.tools.numbers import selected_level, two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]

_TAKEN = ("frequency", "count", "stderr", "low", "high", "truth", "covered", "significant", "changed", "mean", "from")
"""Names of columns that mean something in tables: attributes of these names get an underscore."""


def _labels(part: Domain, codes: NDArray[np.int64]) -> Column:
    """The values of an attribute; of numbers that are cut into cells, the range of each."""
    unit = value_unit(part)
    if not isinstance(part, Interval):
        return part.decode(codes.astype(np.uint64)), unit
    edges = part.edges(np.arange(part.size + 1))
    ends = _times(edges, unit, part) if is_time(part) else [f"{edge:,.6g}" for edge in edges]
    texts = [f"{low} to {high}" for low, high in pairwise(ends)]
    return [texts[code] for code in codes], Unit("label")


def _times(edges: Floats, unit: Unit, part: Interval) -> list[str]:
    """Ends of cells that are times: dates where they are midnights, or where cells are longer than a day."""
    days = edges / 86_400
    if (days == np.rint(days)).all() or (np.diff(days) > 1.0).all():
        return [part.shown(float(day) * 86_400).date().isoformat() for day in np.rint(days)]
    return [unit.text(part.shown(float(edge))) for edge in edges]


def too_few(low: Floats, high: Floats) -> list[str]:
    """A remark where most intervals of a table are wider than half of everything there can be."""
    width = high - low
    known = width[~np.isnan(width)]
    if not len(known) or np.mean(known > 0.5) <= 0.5:
        return []
    return ["There are too few reports to tell these shares apart."]


@dataclass(frozen=True, eq=False, kw_only=True)
class CellTable(Result):
    """Numbers about every combination of values of some attributes: what marginals and conditionals have in common.

    `frequencies` has one number per cell, the last attribute varying fastest. `origin` is the joint distribution that
    it was read from, which knows how far cells may be off. `measured` says whether people were asked for all of the
    attributes together; if not, the table was reconstructed from smaller ones.
    """

    record: Record
    frequencies: Floats
    n: int
    population: int
    lineage: tuple[str, ...]
    guarantee: Guarantee | None = None
    origin: Result | None = None
    measured: bool = True

    @abstractmethod
    def bounds(self, level: float = 0.95) -> Bounds | None:
        """Intervals of all cells and what they rest on, in the order of `frequencies`; None where nothing is known."""

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

    def interval(self, level: float = 0.95) -> Floats:
        """Low and high for each cell, in two columns; NaN where nothing is known.

        What is shown is never outside: an estimate that gave up some agreement with the reports only widens these.
        """
        found = self.bounds(level)
        if found is None:
            return np.full((len(self.frequencies), 2), np.nan)
        shown = np.clip(self.frequencies, 0.0, 1.0)
        return np.stack([np.fmin(found.low, shown), np.fmax(found.high, shown)], axis=1)

    def remarks(self) -> list[str]:
        if self.measured:
            reading = [] if self.origin is None else self.origin.reading_remarks()  # type: ignore[attr-defined]
            return [*too_few(*self.interval().T), *reading]
        return [
            "Nobody was asked for all of these attributes together: this is the table of maximum entropy that goes with"
            " what was asked, and its intervals hold for every table that does."
        ]

    @property
    def _among(self) -> str:
        """Among whom the shares are."""
        return f"{self.population:,} people"

    def _heads(self) -> dict[str, Column]:
        """The columns of a table that say which cell a row is."""
        cells = np.unravel_index(np.arange(len(self.frequencies)), self.shape)
        heads: dict[str, Column] = {}
        for (name, part), codes in zip(self.record.attributes, cells, strict=True):
            heads[f"{name}_" if name in _TAKEN else name] = _labels(part, codes)
        return heads

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
            raise DomainError("expected one value for each attribute of this table") from None

    def __len__(self) -> int:
        return len(self.frequencies)

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """A heat map of two attributes; the k largest cells with intervals otherwise. Needs `veil-ldp[plot]`."""
        note = None if self.measured else "not asked together: maximum entropy"
        if len(self.names) == 2 and truth is None:
            from veil.results.render.plot import plot_cells

            return plot_cells(self, self._among, note=note, ax=ax, **style)
        from veil.results.render.plot import plot_rows

        return plot_rows(self, k, truth=truth, note=note, ax=ax, **style)


@dataclass(frozen=True, eq=False, kw_only=True)
class Marginal(CellTable):
    """How many people hold each combination of values of some attributes.

    Where it is not `measured`, it was reconstructed from smaller tables, and differs from one of them by up to `gap`,
    where no joint distribution agrees with all of them.
    """

    kind: ClassVar[str] = "marginal"
    gap: float | None = None

    def in_order(self, names: tuple[str, ...]) -> Marginal:
        """The same marginal with its attributes in another order."""
        if names == self.names:
            return self
        attributes = tuple(self.record.attributes[self.names.index(name)] for name in names)
        return replace(self, record=Record(attributes), frequencies=self.frequencies[self._order(names)])

    def _order(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """Where each cell of a table with these attributes stands in this one."""
        axes = [self.names.index(name) for name in names]
        return np.arange(len(self.frequencies)).reshape(self.shape).transpose(axes).reshape(-1)

    def bounds(self, level: float = 0.95) -> Bounds | None:
        two_sided(level)  # refuses a bad level, also where errors are not known
        return None if self.origin is None else self.origin.bounds(self.names, level)  # type: ignore[attr-defined]

    @property
    def stderr(self) -> Floats:
        """The standard error of each cell; NaN where nobody was asked for these attributes together."""
        found = None if self.origin is None else self.origin.stderr(self.names)  # type: ignore[attr-defined]
        return np.full(len(self.frequencies), np.nan) if found is None else found

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """One row per cell: a column for each attribute, then frequency, count, stderr, low and high."""
        share, ends = Unit("share"), self.interval(level)
        return make_table(
            {
                **self._heads(),
                "frequency": (self.frequencies, share),
                "count": (self.frequencies * self.population, Unit("people")),
                "stderr": (self.stderr, share),
                "low": (ends[:, 0], share),
                "high": (ends[:, 1], share),
            }
        )

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """The largest cells; where they are picked out of more, low and high hold for what was picked."""
        table = super().summary_table(level, rows, truth)
        if len(self) <= rows or self.bounds(level) is None:
            return table
        ends = self.interval(selected_level(level, rows, len(self)))[self._importance()[:rows]]
        return with_picked(table, ends[:, 0], ends[:, 1])

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many cells there are, whether people were asked for them, the gap, and what intervals rest on."""
        found = self.bounds(level)
        rests_on = None if found is None else found.rests_on
        return {"cells": len(self), "measured": self.measured, "gap": self.gap, "rests_on": rests_on}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"cells": Unit("count"), "measured": Unit("flag"), "gap": Unit("share"), "rests_on": Unit("label")}

    def remarks(self) -> list[str]:
        said = super().remarks()
        if self.gap is not None and self.gap > 1e-6:
            said.append(
                f"The noise is such that no joint distribution agrees with all of that: this one is up to"
                f" {100 * self.gap:.2g} % of the people off it."
            )
        return said

    def __repr__(self) -> str:
        return f"Marginal({', '.join(self.names)}: {len(self)} cells, n={self.n})"
