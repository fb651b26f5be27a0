"""Conditional distributions given values of some attributes, and the correlations of all pairs of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.marginals.association import Correlation
from veil.marginals.intervals import Bounds
from veil.marginals.marginal import CellTable
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.change_tests import adjusted_p_values
from veil.results.units import Unit, make_table
from veil.tools.numbers import alpha_of, two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, kw_only=True)
class Conditional(CellTable):
    """How the people with given values of some attributes are spread over the values of others.

    The attributes in `given` come first, and the shares of each combination of their values add up to 1. They are
    unknown (NaN) where nobody seems to hold that combination. Intervals are Fieller's (1954).
    """

    kind: ClassVar[str] = "conditional"
    given: tuple[str, ...] = field(kw_only=True)

    def bounds(self, level: float = 0.95) -> Bounds | None:
        two_sided(level)
        if self.origin is None:
            return None
        names = self.names[len(self.given) :]
        found: Bounds | None = self.origin.conditional_bounds(names, self.given, level)  # type: ignore[attr-defined]
        return found

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """One row per cell: the given attributes, the others, the share among those given, low and high."""
        share, ends = Unit("share"), self.interval(level)
        numbers = {
            "frequency": (self.frequencies, share),
            "low": (ends[:, 0], share),
            "high": (ends[:, 1], share),
        }
        return make_table({**self._heads(), **numbers})

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """What is given, how many cells there are, whether people were asked for them, and what intervals rest on."""
        found = self.bounds(level)
        return {
            "given": ", ".join(self.given),
            "cells": len(self),
            "measured": self.measured,
            "rests_on": None if found is None else found.rests_on,
        }

    def fact_units(self) -> Mapping[str, Unit]:
        return {"given": Unit("label"), "cells": Unit("count"), "measured": Unit("flag"), "rests_on": Unit("label")}

    @property
    def _among(self) -> str:
        return f"people with the same {' and '.join(self.given)}"

    def _importance(self) -> NDArray[np.int64]:
        return np.arange(len(self))  # in order: shares of different rows do not compare

    def __repr__(self) -> str:
        names = ", ".join(self.names[len(self.given) :])
        return f"Conditional({names} given {', '.join(self.given)}: {len(self)} cells, n={self.n})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Correlations(Result):
    """How strongly every two attributes go together, the strongest evidence first.

    Pearson's correlation for attributes with an order or two values, Cramer's V for others (see `Correlation`).
    `adjusted_p` is the p-value of "the two are independent of each other", adjusted for all pairs that were looked at
    (Holm 1979); that of one pair alone is `Correlation.p_value`.
    """

    kind: ClassVar[str] = "correlations"
    pairs: tuple[tuple[str, ...], ...]
    n: int
    population: int
    lineage: tuple[str, ...]
    origin: Result
    guarantee: Guarantee | None = None

    def at(self, level: float = 0.95) -> list[Correlation]:
        """One correlation for each pair, with intervals of this level."""
        return [self.origin.correlation(*pair, level=level) for pair in self.pairs]  # type: ignore[attr-defined]

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """One row per pair of attributes: correlation, interval, adjusted p-value, and whether it is significant."""
        found, label, factor = self.at(level), Unit("label"), Unit("factor")
        p_values = adjusted_p_values(np.array([one.p_value for one in found]), len(found))
        table = make_table(
            {
                "first": ([pair[0] for pair in self.pairs], label),
                "second": ([pair[1] for pair in self.pairs], label),
                "measure": ([one.measure for one in found], label),
                "correlation": ([one.value for one in found], factor),
                "stderr": ([one.stderr for one in found], factor),
                "low": ([one.low for one in found], factor),
                "high": ([one.high for one in found], factor),
                "adjusted_p": (p_values, Unit("probability")),
                "significant": ((p_values < alpha_of(level)).tolist(), Unit("flag")),
            }
        )
        order = np.lexsort((-np.abs([one.value for one in found]), p_values))
        return table.take(order)

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many pairs there are, and how many are not independent for sure."""
        return {"pairs": len(self.pairs), "significant": sum(self.table(level)["significant"].to_pylist())}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"pairs": Unit("count"), "significant": Unit("count")}

    def __len__(self) -> int:
        return len(self.pairs)

    def _place(self, value: Any) -> int:
        table = self.table()
        rows = zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True)
        places = [i for i, pair in enumerate(rows) if set(pair) == set(value)]
        if not places:
            raise InputError("expected two attributes of this record")
        return places[0]

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """A heat map of all correlations; pairs that may be independent are pale. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_square

        names = list(dict.fromkeys(name for pair in self.pairs for name in pair))
        values, doubtful = np.eye(len(names)), np.zeros((len(names), len(names)), dtype=np.bool_)
        for row in self.table().to_pylist():
            i, j = names.index(row["first"]), names.index(row["second"])
            values[i, j] = values[j, i] = row["correlation"]
            doubtful[i, j] = doubtful[j, i] = not row["significant"]
        return plot_square(self, names, values, doubtful, ax=ax)

    def __repr__(self) -> str:
        return f"Correlations({len(self)} {'pair' if len(self) == 1 else 'pairs'} of attributes, n={self.n})"
