"""Joint distributions estimated from tables of views: consistent, reconstructed, or fitted by one model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.marginals.association import Correlation, correlation_between
from veil.marginals.intervals import Bounds, cell_bounds, conditional_bounds
from veil.marginals.joint import Joint, places_of
from veil.marginals.marginal import Marginal
from veil.marginals.scatter import Scatter
from veil.marginals.tables import ConsistentViews, Places, Views, averaged, marginal_of, repaired, spread
from veil.results.laws import SupportNoise
from veil.results.units import Unit

if TYPE_CHECKING:
    from veil.marginals.graphical import GraphicalModel


Floats = NDArray[np.float64]
Inference = Literal["consistent", "graphical", "unbiased", "separate"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Marginals(Joint):
    """A joint distribution read from the tables of views: sets of attributes, each asked of some of the people.

    `raw` has the unbiased tables, view after view; `people` answered each of them; `noises` are how the oracles
    scatter, one for each different number of cells, increasing. All readings follow from these:

    - "consistent": tables that agree with each other and are not negative; what no view has whole is the table of
      maximum entropy among those that agree with all views (thesis 6.2).
    - "graphical": one model of maximum entropy fitted to all views at once.
    - "unbiased": tables that agree and may be negative; only what a view has whole.
    - "separate": only the views that have all attributes asked for, as FC and AM are read in the thesis.
    """

    kind: ClassVar[str] = "marginals"
    sets: tuple[tuple[str, ...], ...]
    raw: Floats
    people: NDArray[np.int64]
    noises: tuple[SupportNoise, ...]
    inference: Inference = "consistent"

    @cached_property
    def views(self) -> Views:
        """The views by the places of their attributes."""
        places = tuple(tuple(sorted(places_of(self.record, names))) for names in self.sets)
        return Views(tuple(part.size for part in self.record.parts), places)

    @cached_property
    def weights(self) -> Floats:
        """One over the variance of a cell for each view, if all its cells had equally many people.

        The oracle's noise, and that only some people are asked for the view: with a large epsilon little else is left.
        """
        sizes = np.unique(self.views.cells)
        each = [
            noise.variance(1 / size) + (1 - 1 / size) / size for noise, size in zip(self.noises, sizes, strict=True)
        ]
        weights: Floats = self.people / np.array(each)[np.searchsorted(sizes, self.views.cells)]
        return weights

    @cached_property
    def repaired(self) -> ConsistentViews:
        """The tables of all views, made to agree with each other and without negative cells."""
        return repaired(self.views, self.raw, self.weights)

    @cached_property
    def model(self) -> GraphicalModel:
        """One model of maximum entropy, fitted to all views at once."""
        from veil.marginals.graphical import fit_graphical

        return fit_graphical(self.views, self.raw, self.weights)

    @cached_property
    def _averaged(self) -> Floats:
        return averaged(self.views, self.raw, self.weights)

    @property
    def _has_joint(self) -> bool:
        every = range(len(self.record.names))
        return self.inference in ("consistent", "graphical") or bool(self.views.containing(every))

    @property
    def _known_sets(self) -> tuple[Places, ...]:
        if self.inference == "graphical" and self.model.whole:
            return (tuple(range(len(self.record.names))),)
        return self.views.sets

    def reading_remarks(self) -> list[str]:
        if self.inference not in ("consistent", "graphical"):
            return []
        return [
            "Shares are made to agree and not to be negative, which moves small ones up; the errors shown are those of"
            " the unbiased shares."
        ]

    def remarks(self) -> list[str]:
        said = super().remarks()
        if self.inference == "graphical" and not self.model.whole:
            said.append(
                "All attributes together have too many cells for one model: each marginal has one of its own, of its"
                " attributes and those that depend on them most."
            )
        return said

    @cached_property
    def scatter(self) -> Scatter:
        """How unbiased marginals scatter, at the repaired tables; intervals are made of it."""
        sizes = np.unique(self.views.cells)
        noises = tuple(self.noises[place] for place in np.searchsorted(sizes, self.views.cells))
        views = self.views
        return Scatter(
            views.sizes, views.sets, self.weights, self.repaired.tables, self.people, noises, self.population
        )

    def _scattered(self, places: Places) -> tuple[Scatter, Floats]:
        """How the unbiased marginal of these attributes scatters, and the raw tables that it is read from."""
        whole = self.views.containing(places) if self.inference == "separate" else []
        if not whole:
            return self.scatter, self.raw
        every, parts = self.scatter, [self.views.table(self.raw, number).reshape(-1) for number in whole]
        only = replace(
            every,
            sets=tuple(every.sets[number] for number in whole),
            weights=every.weights[whole],
            tables=np.concatenate([self.views.table(every.tables, number).reshape(-1) for number in whole]),
            people=every.people[whole],
            noises=tuple(every.noises[number] for number in whole),
        )
        return only, np.concatenate(parts)

    def bounds(self, names: Any, level: float = 0.95) -> Bounds | None:
        places = places_of(self.record, names)
        scatter, raw = self._scattered(tuple(sorted(places)))
        found = cell_bounds(scatter, raw, tuple(sorted(places)), level)
        order = self._ordered_cells(places)
        return replace(found, low=found.low[order], high=found.high[order])

    def stderr(self, names: Any) -> Floats | None:
        places = places_of(self.record, names)
        scatter, _ = self._scattered(tuple(sorted(places)))
        if not scatter.covered(tuple(sorted(places))):
            return None
        errors: Floats = np.sqrt(scatter.variance(tuple(sorted(places))))[self._ordered_cells(places)]
        return errors

    def _ordered_cells(self, places: Places) -> NDArray[np.int64]:
        """Where each cell of a table stands in the one whose attributes have increasing places."""
        sizes = [self.views.sizes[place] for place in sorted(places)]
        cells = np.arange(math.prod(sizes)).reshape(sizes)
        return cells.transpose([sorted(places).index(place) for place in places]).reshape(-1)

    def conditional_bounds(self, names: Any, given: Any, level: float = 0.95) -> Bounds | None:
        before, after = places_of(self.record, given), places_of(self.record, names)
        scatter, raw = self._scattered(tuple(sorted(before + after)))
        return conditional_bounds(scatter, raw, before, after, level)

    def _correlation(self, places: Places, ordered: bool, level: float) -> Correlation:
        scatter, raw = self._scattered(places)
        shown = np.maximum(self._marginal(places).shares, 0.0)
        return correlation_between(scatter, raw, places, ordered=ordered, shown=shown, level=level)

    def _found(self, places: Places) -> Marginal:
        whole = self.views.containing(places)
        if self.inference == "graphical":
            table, gap = self.model.marginal(places), None
        elif self.inference in ("unbiased", "separate"):
            table, gap = self._linear(places, whole), None
        elif whole:
            table, gap = self._of_view(self.repaired.tables, whole[0], places), None
        else:
            table, gap = self._reconstructed(places)
        return self._table(places, table, gap, measured=bool(whole))

    def _of_view(self, tables: Floats, number: int, places: Places) -> Floats:
        """The marginal of some attributes out of the table of one view that has them."""
        one = self.views.sets[number]
        return marginal_of(self.views.table(tables, number), [one.index(place) for place in places])

    def _linear(self, places: Places, whole: Sequence[int]) -> Floats:
        """A marginal without bias, which may have negative cells."""
        if not whole or not self.weights[whole].any():
            raise InputError(
                'no view has these attributes together: read with inference="consistent", which reconstructs them'
            )
        if self.inference == "unbiased":
            return self._of_view(self._averaged, whole[0], places)
        if len(whole) == 1:  # a table alone: only its total is known better
            return spread(self._of_view(self.raw, whole[0], places))
        views = Views(self.views.sizes, tuple(self.views.sets[number] for number in whole))
        raw = np.concatenate([self.views.table(self.raw, number).reshape(-1) for number in whole])
        (first,) = views.split(averaged(views, raw, self.weights[whole]))[:1]
        return marginal_of(first, [views.sets[0].index(place) for place in places])

    def _reconstructed(self, places: Places) -> tuple[Floats, float]:
        """The marginal of maximum entropy, and how far it is from the views where no joint distribution has them."""
        from veil.marginals.maxent import reconstruct

        known: dict[Places, int] = {}
        for number, one in enumerate(self.views.sets):
            common = tuple(place for place in one if place in places)
            if common:
                known.setdefault(common, number)
        constraints = [
            (tuple(places.index(place) for place in common), self._of_view(self.repaired.tables, number, common))
            for common, number in known.items()
        ]
        found = reconstruct(self.views.shape(places), constraints)
        return found.table, found.gap

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many attributes and views there are, and what else stands beside the table."""
        largest = max((len(one) for one in self.sets), default=0)
        return {"views": len(self.sets), "largest_view": largest, **super().facts(level)}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"views": Unit("count"), "largest_view": Unit("count"), **super().fact_units()}

    def __repr__(self) -> str:
        views = "1 view" if len(self.sets) == 1 else f"{len(self.sets)} views"
        return f"Marginals({len(self.record.names)} attributes, {views}, n={self.n})"
