"""Base class of the joint distributions of a record's attributes.

A `Joint` answers for any set of attributes with a `Marginal`, and derives conditionals, correlations and synthetic
people from it. Each protocol has a subclass; `result` has the one for views.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain, Numeric, Record
from veil.errors import DomainError, InputError, ParameterError
from veil.marginals.association import Correlation, known_correlation
from veil.marginals.conditional import Conditional, Correlations
from veil.marginals.intervals import Bounds
from veil.marginals.marginal import CellTable, Marginal, too_few
from veil.marginals.tables import MOST_CELLS, Places
from veil.privacy import Guarantee
from veil.results.base import Result, Truth, with_picked, with_truth
from veil.results.units import Unit, make_table
from veil.tools.limits import admit
from veil.tools.numbers import is_int, selected_level

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

_MODEL_MEGABYTES, _CELL_BYTES, _CELL_SECONDS = 150, 200, 1e-5  # of a marginal, at most


Floats = NDArray[np.float64]


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
        megabytes, seconds = _MODEL_MEGABYTES + cells * _CELL_BYTES / 1e6, cells * _CELL_SECONDS
        admit(f"a marginal of {cells:,} cells", megabytes, seconds, "fewer attributes, or cut into fewer values")
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
            measured=joint.measured,
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

        from veil.marginals.synthesis import held_values, synthesize

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
            held_values(part, column.astype(np.uint64)) for part, column in zip(self.record.parts, codes.T, strict=True)
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
    def _shown(self) -> CellTable | None:
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
        if self._shown is not None:
            return self._shown.remarks()
        low, high = self._ends(0.95)
        together = ",".join(self.record.names[:2])
        return [
            "Every attribute is shown alone: a marginal has some of them together, as with"
            f" marginal={together} (--marginal {together}).",
            *too_few(low, high),
            *self.reading_remarks(),
        ]

    def reading_remarks(self) -> list[str]:
        """What whoever reads measured shares should know about how they were made."""
        return []

    def _ends(self, level: float) -> tuple[Floats, Floats]:
        """Low and high of every row of the table."""
        table = self.table(level)
        low, high = (np.array(table[name].to_pylist(), dtype=np.float64) for name in ("low", "high"))
        return low, high

    def __len__(self) -> int:
        """How many rows its table has: known before any marginal is worked out."""
        sizes = {name: part.size for name, part in self.record.attributes}
        if self.shown is None:
            return sum(sizes.values())
        return math.prod(sizes[name] for name in (*self.shown, *(self.given or ())))

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """Of the marginal that is shown; without one, the largest rows of every attribute, as many as there is room."""
        if self._shown is not None:
            return self._shown.summary_table(level, rows, truth)
        table = with_truth(self.table(level), truth)
        if len(self) <= rows:
            return table
        order = np.sort(self._importance()[:rows])
        low, high = self._ends(selected_level(level, rows, len(self)))
        return with_picked(table.take(order), low[order], high[order])

    def _importance(self) -> NDArray[np.int64]:
        """Of attributes alone: the largest row of each, then the second of each, and so on."""
        if self._shown is not None:
            return self._shown._importance()
        ranks = [(-self.marginal(name).frequencies).argsort(kind="stable").argsort() for name in self.record.names]
        return np.argsort(np.concatenate(ranks), kind="stable")

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
        from veil.results.render.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)
