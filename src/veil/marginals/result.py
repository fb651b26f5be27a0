"""Joint distributions as they were found: any marginal with its errors, conditionals, correlations, synthetic people.

A `Joint` answers for any set of attributes. `Marginals` is the one that was read from tables of views; other protocols
have their own. What it answers with is a `Marginal`: one row per cell.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain, Numeric, Record
from veil.errors import DomainError, InputError, ParameterError
from veil.marginals.association import Correlation, correlation_between, known_correlation
from veil.marginals.conditional import Conditional, Correlations
from veil.marginals.consistency import Repaired, averaged, repaired
from veil.marginals.intervals import Bounds, cell_bounds, conditional_bounds
from veil.marginals.marginal import MOST_CELLS, Cells, Marginal
from veil.marginals.scatter import Scatter
from veil.marginals.tables import Places, Views, marginal_of, spread
from veil.privacy import Guarantee
from veil.results.base import Result, Truth
from veil.results.noise import SupportNoise
from veil.results.units import Unit, make_table
from veil.tools.arguments import is_int

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from veil.marginals.graphical import GraphicalModel

__all__ = ["Inference", "Joint", "Marginals", "check_cells", "listed_names", "places_of"]

Floats = NDArray[np.float64]
Inference = Literal["consistent", "graphical", "unbiased", "separate"]


def listed_names(names: Any) -> tuple[str, ...]:
    """Names of attributes, one alone or several; refuses what are none.

    >>> listed_names("age"), listed_names(["age", "sex"])
    (('age',), ('age', 'sex'))
    """
    listed = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else ()
    if not listed or not all(isinstance(name, str) for name in listed):
        raise InputError('attributes are given by their names, as in ["age", "sex"]')
    return listed


def places_of(record: Record, names: Any) -> Places:
    """The places of some attributes in their record, in the order in which they are named.

    >>> places_of(Record.of(age=3, sex=2), ["sex", "age"])
    (1, 0)
    """
    listed = listed_names(names)
    known = {name: place for place, name in enumerate(record.names)}
    strange = [name for name in listed if name not in known]
    if strange:
        raise InputError(f"there is no attribute {strange[0]!r}; the attributes are {', '.join(record.names)}")
    if not listed or len(set(listed)) != len(listed):
        raise InputError("a marginal is of at least one attribute, each named once")
    return tuple(known[name] for name in listed)


def check_cells(cells: int) -> None:
    """Refuse a table that is too large to work with."""
    if cells > MOST_CELLS:
        raise ParameterError(
            f"this marginal has {cells:,} cells, more than {MOST_CELLS:,}: ask for fewer attributes together, or cut"
            " the domains of attributes into fewer values"
        )


def _ordered(part: Domain) -> bool:
    """Whether the values of an attribute are like 0, 1, 2, ...: numbers, or just two of them."""
    return isinstance(part, Numeric) or part.size == 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Joint(Result):
    """What was learnt about the joint distribution of the attributes of a record.

    `shown` are the attributes whose marginal its table is, and `given` those that it is conditional on; without them,
    the table has every attribute alone.
    """

    kind: ClassVar[str] = "marginals"
    record: Record
    n: int
    population: int
    lineage: tuple[str, ...]
    guarantee: Guarantee | None = None
    shown: tuple[str, ...] | None = None
    given: tuple[str, ...] | None = None

    # -- what every protocol finds in its own way ----------------------------------------------------------------------

    @abstractmethod
    def _found(self, places: Places) -> Marginal:
        """The marginal of these attributes, whose places are increasing."""

    # -- what follows --------------------------------------------------------------------------------------------------

    def _table(self, places: Places, table: Floats, gap: float | None = None, *, measured: bool = True) -> Marginal:
        """A table of these attributes as a result."""
        return Marginal(
            record=Record(tuple(self.record.attributes[place] for place in places)),
            frequencies=table.reshape(-1),
            n=self.n,
            population=self.population,
            lineage=self.lineage,
            guarantee=self.guarantee,
            origin=self,
            measured=measured,
            gap=gap,
        )

    def marginal(self, names: Any) -> Marginal:
        """The joint distribution of some attributes, with standard errors and intervals, in the order of `names`."""
        places = places_of(self.record, names)
        cells = math.prod(self.record.parts[place].size for place in places)
        check_cells(cells)
        return self._marginal(tuple(sorted(places))).in_order(tuple(self.record.names[place] for place in places))

    def _marginal(self, places: Places) -> Marginal:
        """The marginal of attributes by their places, increasing."""
        if places not in self._cached:
            self._cached[places] = self._found(places)
        return self._cached[places]

    @cached_property
    def _cached(self) -> dict[Places, Marginal]:
        """What was asked for before: looking at a table, its facts and its picture costs one reconstruction."""
        return {}

    def conditional(self, names: Any, given: Any) -> Conditional:
        """The shares of values of some attributes among the people who hold each combination of the given ones."""
        before, after = (
            tuple(self.record.names[place] for place in places_of(self.record, one)) for one in (given, names)
        )
        if set(before) & set(after):
            raise InputError("an attribute is given or asked for, not both")
        joint = self.marginal(before + after)
        rows = joint.frequencies.reshape(math.prod(joint.shape[: len(before)]), -1)
        held = rows.sum(axis=1, keepdims=True)
        shares = np.divide(rows, held, out=np.full_like(rows, np.nan), where=held > 0)
        return Conditional(
            record=joint.record,
            frequencies=shares.reshape(-1),
            n=self.n,
            population=self.population,
            lineage=self.lineage,
            guarantee=self.guarantee,
            origin=self,
            given=before,
        )

    def correlation(self, first: str, second: str, level: float = 0.95) -> Correlation:
        """How strongly two attributes go together, with an interval and a test.

        Pearson's correlation where both have an order or two values; else Cramer's V.
        """
        places = places_of(self.record, (first, second))
        ordered = all(_ordered(self.record.parts[place]) for place in places)
        return self._correlation(tuple(sorted(places)), ordered, level)

    def _correlation(self, places: Places, ordered: bool, level: float) -> Correlation:
        return known_correlation(self._marginal(places).shares, ordered=ordered)

    def correlations(self, names: Any = None) -> Correlations:
        """All pairs of attributes (or of the named ones), with adjusted p-values; the strongest evidence first."""
        chosen = self.record.names if names is None else names
        listed = [self.record.names[place] for place in places_of(self.record, chosen)]
        if len(listed) < 2:
            raise InputError("a correlation is of two attributes: name at least two")
        return Correlations(
            pairs=tuple(combinations(listed, 2)),
            n=self.n,
            population=self.population,
            lineage=self.lineage,
            guarantee=self.guarantee,
            origin=self,
        )

    # -- how far it may be off -----------------------------------------------------------------------------------------

    def bounds(self, names: Any, level: float = 0.95) -> Bounds | None:
        """Intervals of the cells of a marginal, in the order of `names`; None where they are not known."""
        return None

    def stderr(self, names: Any) -> Floats | None:
        """Standard errors of the cells of a marginal, in the order of `names`; None where they are not known."""
        return None

    def conditional_bounds(self, names: Any, given: Any, level: float = 0.95) -> Bounds | None:
        """Intervals of the cells of a conditional; None where they are not known."""
        return None

    # -- people --------------------------------------------------------------------------------------------------------

    def synthesize(self, n: int, seed: int | None = None) -> pyarrow.Table:
        """Draw n made-up people, with the original labels: an Arrow table of one column per attribute.

        They are as private as the result: nothing but its tables is looked at. `seed` makes them repeatable.
        """
        import pyarrow as pa

        from veil.marginals.synthesis import synthesize

        if not is_int(n) or n < 1:
            raise ParameterError("a number of people is at least 1")
        if seed is not None and (not is_int(seed) or seed < 0):
            raise ParameterError("a seed is an integer of at least 0")
        sizes = tuple(part.size for part in self.record.parts)
        rng = np.random.default_rng(seed)

        def marginal(places: Places) -> Floats:
            return self._marginal(places).shares

        codes = synthesize(sizes, marginal, self._known_sets, n, rng, joint=self._has_joint)
        columns = [
            part.decode(column.astype(np.uint64)) for part, column in zip(self.record.parts, codes.T, strict=True)
        ]
        return pa.table(dict(zip(self.record.names, map(pa.array, columns), strict=True)))

    @property
    def _has_joint(self) -> bool:
        """Whether the marginal of all attributes can be asked for."""
        return True

    @property
    def _known_sets(self) -> tuple[Places, ...]:
        """Sets of attributes whose tables synthetic people follow: all pairs, where nothing says which are known."""
        return tuple(combinations(range(len(self.record.names)), 2))

    @cached_property
    def _shown(self) -> Cells | None:
        if self.shown is None:
            return None
        return self.marginal(self.shown) if self.given is None else self.conditional(self.shown, self.given)

    # -- as a result ---------------------------------------------------------------------------------------------------

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """The marginal that is shown; without one, every attribute alone, one row per value."""
        if self._shown is not None:
            return self._shown.table(level)
        import pyarrow as pa

        parts = []
        for name in self.record.names:
            found = self.marginal(name).table(level)
            texts = [Unit.of_field(found.schema.field(0)).text(value) for value in found.column(0).to_pylist()]
            heads = make_table({"attribute": ([name] * len(texts), Unit("label")), "value": (texts, Unit("label"))})
            rest = found.drop_columns([found.column_names[0]])
            columns = [*heads.columns, *rest.columns]
            parts.append(pa.table(columns, schema=pa.schema([*heads.schema, *rest.schema])))
        return pa.concat_tables(parts)

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many attributes there are, and what else stands beside the table."""
        beside = {} if self._shown is None else self._shown.facts(level)
        return {"attributes": len(self.record.names), **beside}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"attributes": Unit("count"), **({} if self._shown is None else self._shown.fact_units())}

    def remarks(self) -> list[str]:
        return [] if self._shown is None else self._shown.remarks()

    def __len__(self) -> int:
        """How many rows its table has: known before any marginal is worked out."""
        sizes = {name: part.size for name, part in self.record.attributes}
        if self.shown is None:
            return sum(sizes.values())
        return math.prod(sizes[name] for name in (*self.shown, *(self.given or ())))

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """Of the marginal that is shown; without one, the first rows."""
        if self._shown is None:
            return super().summary_table(level, rows, truth)
        return self._shown.summary_table(level, rows, truth)

    def _importance(self) -> NDArray[np.int64]:
        return super()._importance() if self._shown is None else self._shown._importance()

    def _place(self, value: Any) -> int:
        if self._shown is not None:
            return self._shown._place(value)
        name, held = value if isinstance(value, (tuple, list)) and len(value) == 2 else (value, None)
        if name not in self.record.names:
            raise DomainError("expected an attribute and a value of it")
        before = self.record.parts[: self.record.names.index(name)]
        return sum(part.size for part in before) + self.marginal(name)._place(held)

    def plot(self, k: Any = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """A heat map of two attributes (`plot(["a", "b"])`), bars of one; without names, of what is shown."""
        if not isinstance(k, int):
            return self.marginal(k).plot(truth=truth, ax=ax, **style)
        if self._shown is not None:
            return self._shown.plot(k, truth=truth, ax=ax, **style)
        from veil.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)


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
    def repaired(self) -> Repaired:
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
        return f"Marginals({len(self.record.names)} attributes, {len(self.sets)} views, n={self.n})"
