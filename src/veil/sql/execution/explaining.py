"""EXPLAIN SELECT ...: the plan of a query, and the errors that its answer will have.

Errors are those of the design for people who are spread evenly over all cells (`RowEstimator.variance`). The error of a
sum of weights w grows with the root of the sum of w^2; the errors of ratios follow by the delta method at the values
that an even spread would give. Of the reports only their number is read, and the public columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.units import Column, Unit, make_table
from veil.sql.answer import KeyColumn, MeasuredColumn, key_unit
from veil.sql.designs.base import JointDesign, RowEstimator
from veil.sql.designs.choosing import expected_counts
from veil.sql.designs.fanouts import trees_of
from veil.sql.designs.grid_reading import grid_sets
from veil.sql.execution.accumulators import EMPTY_ESTIMATOR, EmptyEstimator, check_groups
from veil.sql.execution.costs import cost_of
from veil.sql.execution.engine import value_of
from veil.sql.execution.passes import counts_people, public_part
from veil.sql.execution.rows import RowClass, Rows
from veil.sql.execution.sums import Decimals, Totals, decimals, in_decimals
from veil.sql.language.query import And, Box, Bucket, InRanges, PrivateGroup, PublicGroup, Query
from veil.sql.language.regions import disjoint_boxes, patterns
from veil.sql.table import Table
from veil.tools.limits import check
from veil.tools.messages import unknown_name

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


_MOST_ROWS = 200
"""Rows of the answer that are explained; more are like them."""
_MOST_BOXES = 8
_MOST_GRIDS = 12
_WORK = ("boxes", "groups", "cells", "pairs", "rows", "megabytes", "seconds")


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan, in words."""

    what: str
    how: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Result):
    """How a query would be answered: its steps, the work, and the standard error to expect of every output.

    `outputs` have the values that evenly spread people would give, with the standard errors that are predicted there;
    NaN where nothing can be said. `pairs` of a report and a cell are looked at, in `cells` of `groups` groups.
    """

    kind: ClassVar[str] = "sql-plan"
    query: str
    steps: tuple[PlanStep, ...]
    outputs: tuple[MeasuredColumn, ...]
    keys: tuple[KeyColumn, ...] = ()
    boxes: int
    groups: int
    cells: int
    pairs: int
    megabytes: int
    """Memory that it takes at most, roughly, in units of 10^6 bytes."""
    seconds: float
    """The time that it takes, roughly."""
    rows: int
    """Rows that the answer would have."""
    n: int
    population: int
    said: tuple[str, ...] = ()
    """What else to know about it."""
    lineage: tuple[str, ...] = ()
    guarantee: Guarantee | None = None

    def stderr(self, name: str) -> float:
        """The predicted standard error of an output, the root mean square over rows."""
        found = next((one for one in self.outputs if one.name == name), None)
        if found is None:
            raise InputError(unknown_name("an output", name, (one.name for one in self.outputs)))
        return float(np.sqrt(np.mean(found.stderr**2)))

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """The keys, and for each output the standard error to expect."""
        columns: dict[str, Column] = {key.name: (key.values, key_unit(key)) for key in self.keys}
        for one in self.outputs:
            known = one.stderr[one.stderr > 0]
            columns[f"{one.name}_stderr"] = (
                one.stderr,
                Unit("number", 100 * float(known.min()) if len(known) else 1.0),
            )
        return make_table(columns, keys=len(self.keys))

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        work = {name: getattr(self, name) for name in _WORK}
        return {"query": self.query, "plan": [{"step": one.what, "how": one.how} for one in self.steps], **work}

    def fact_units(self) -> Mapping[str, Unit]:
        counts = dict.fromkeys(_WORK, Unit("count")) | {"seconds": Unit("number", 1.0)}
        return {"query": Unit("label"), "plan.step": Unit("label"), "plan.how": Unit("label"), **counts}

    def remarks(self) -> list[str]:
        said = [
            "Errors are those to expect if people were spread evenly over all values of the dimensions.",
            *self.said,
        ]
        if self.rows > len(self):
            said.append(f"{len(self):,} of {self.rows:,} rows were looked at, and the others are like them.")
        return said

    def __len__(self) -> int:
        return len(self.outputs[0].stderr) if self.outputs else 0

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        raise InputError("a plan has no picture: ask the query")


def explain(query: Query, rows: Rows | Table, n: int | None = None) -> Explanation:
    """How a query would be answered over the rows of a table, or over `n` people if there are none yet."""
    table, said = rows if isinstance(rows, Table) else rows.table, tuple[str, ...]()
    split = patterns(query.where)
    if isinstance(rows, Table):
        if n is None:
            raise InputError("how many people there will be must be said, where there are no rows yet")
        classes = [_evenly(query, table, n, len(split.atoms))]
        units, said = decimals(np.ones(len(query.sums))), (f"So it would be if {n:,} people reported.", *_unseen(query))
    else:
        public = [key for key in query.keys if isinstance(key, PublicGroup)]
        counted = rows.count(query.sums, split.atoms, [key.sql for key in public], public_part(query.where))
        classes = [_Class.of(one, counted.places) for one in counted.classes]
        units = decimals([Decimal(1).scaleb(-counted.scales[place]) for place in counted.places])
        n = rows.people
    check_groups(query, len(classes))
    work, found = _Work(), dict[tuple[Any, ...], Totals | None]()
    choices = list(product(*(key.buckets for key in query.private_keys)))
    looked = [(place, one, buckets) for place, one in enumerate(classes) for buckets in choices]
    many, step = len(looked), max(1, len(looked) // _MOST_ROWS)
    for place, one, buckets in looked[::step]:
        check()
        row, boxes = _row(query, table, split.where(one.pattern), one, buckets)
        values = work.read(table, boxes, place, one, 1 / max(len(choices), 1))
        expected = None if values is None else _expected(table, boxes, values, one, units)
        before = found.get(row)
        found[row] = expected if row not in found or expected is None or before is None else before + expected
    ordered = list(found.items())
    times = 1 if isinstance(table.design, JointDesign) else step
    cost = cost_of(query, table, n, classes=len(classes))
    cost = replace(cost, cells=work.cells * times, pairs=work.pairs * times)
    return Explanation(
        query=query.text,
        steps=tuple(_steps(query, table, split.atoms, work)),
        outputs=tuple(_measured(output.name, output.value, ordered) for output in query.outputs),
        keys=tuple(KeyColumn.of(key.name, [row[i] for row, _ in ordered]) for i, key in enumerate(query.keys)),
        boxes=work.boxes * step,
        groups=len(work.groups),
        cells=cost.cells,
        pairs=cost.pairs,
        megabytes=cost.megabytes,
        seconds=round(cost.seconds, 1),
        rows=max(len(ordered), many if step > 1 else 0),
        n=n,
        population=n,
        said=(*said, *table.design.remarks(totals for _, totals in ordered)),
        lineage=(table.signature,),
        guarantee=table.guarantee,
    )


@dataclass(frozen=True)
class _Class:
    """People that a query cannot tell apart by public columns."""

    keys: tuple[Any, ...]
    pattern: int
    counts: NDArray[np.int64]
    totals: Sequence[float]
    products: Sequence[Sequence[float]]

    @classmethod
    def of(cls, one: RowClass, places: Sequence[int]) -> _Class:
        """A class of rows, with the weights of sums at these places."""
        every = one.products
        products = [[every[a][b] for b in places] for a in places]
        return cls(one.keys, one.pattern, one.counts, [one.totals[a] for a in places], products)


def _evenly(query: Query, table: Table, people: int, atoms: int) -> _Class:
    """One class of as many people as there will be, of whom everything public holds; only a count of 1 is known."""
    counts = expected_counts(table, people)
    totals = [float(people) if counts_people(text) else math.nan for text in query.sums]
    products = [[people if not math.isnan(a + b) else math.nan for b in totals] for a in totals]
    keys = tuple(None for key in query.keys if isinstance(key, PublicGroup))
    return _Class(keys, (1 << atoms) - 1, counts, totals, products)


def _unseen(query: Query) -> Iterator[str]:
    """What cannot be told before anybody reported."""
    if any(text.strip() != "1" for text in query.sums):
        yield "Errors of sums and averages depend on what is added up, which nobody has reported: a dash."
    if patterns(query.where).atoms or any(isinstance(key, PublicGroup) for key in query.keys):
        yield "Conditions and groups of public columns are taken to hold for all of them."


class _Work:
    """What is read for a query, added up."""

    def __init__(self) -> None:
        self.boxes = self.cells = self.pairs = 0
        self.groups: set[int] = set()
        self.everybody = False
        self.shown: dict[Box, None] = {}  # each once, in order
        self._tallied: set[int] = set()  # the classes of people whose reports are counted

    def read(self, table: Table, boxes: Sequence[Box], place: int, one: _Class, effort: float) -> RowEstimator | None:
        """How the boxes are read in the class at a place; None where too few people answered to tell."""
        counts = one.counts
        self.boxes += len(boxes)
        self.shown |= dict.fromkeys(boxes)
        if not boxes:
            return EMPTY_ESTIMATOR
        try:
            if isinstance(table.design, JointDesign):  # all reports are read together, once for a class of people
                values: RowEstimator = _Predicted(table.design.variance(table, boxes, counts))
                self._tally(table, place, counts)
            else:
                values = table.design.values(table, boxes, counts, effort)
        except EmptyError:
            return None
        self.everybody |= values.groups is None
        self.groups |= values.groups or frozenset()
        self.cells += values.cells
        self.pairs += values.pairs
        return values

    def _tally(self, table: Table, place: int, counts: NDArray[np.int64]) -> None:
        """Count the reports of a class of people, once, in all cells of the grids that they answered for."""
        if place in self._tallied:
            return
        self._tallied.add(place)
        cells = [question.mechanism.domain.size for question in table.survey.questions]
        self.groups |= {group for group, people in enumerate(counts.tolist()) if people}
        self.cells = max(self.cells, sum(cells))
        self.pairs += sum(people * many for people, many in zip(counts.tolist(), cells, strict=True))


class _Predicted(EmptyEstimator):
    """What is predicted, where there are no numbers of rows."""

    groups = None

    def __init__(self, variance: float) -> None:
        self.variance = variance


@in_decimals
def _expected(table: Table, boxes: Sequence[Box], values: RowEstimator, one: _Class, units: Decimals) -> Totals:
    """Sums as evenly spread people would give them, and their covariances."""
    sizes = [part.size for part in table.private.parts]
    share = math.fsum(
        math.prod(sum(b - a for a, b in runs) / sizes[p] for p, runs in enumerate(box) if runs is not None)
        for box in boxes
    )
    each = values.variance / max(int(one.counts.sum()), 1)
    totals, products = decimals(one.totals), decimals(one.products).reshape(len(units), len(units))
    return Totals(Decimal(share) * totals * units, Decimal(each) * products * np.outer(units, units))


def _row(
    query: Query, table: Table, where: Any, one: _Class, buckets: Sequence[Bucket]
) -> tuple[tuple[Any, ...], Sequence[Box]]:
    """The keys of a row of the answer, and the boxes that are read for it."""
    keys = list(query.private_keys)
    inside = [InRanges(key.place, ((b.start, b.stop),)) for key, b in zip(keys, buckets, strict=True)]
    boxes = disjoint_boxes(And((where, *inside)), [part.size for part in table.private.parts])
    own, given = iter(bucket.label for bucket in buckets), iter(one.keys)
    return tuple(next(own) if isinstance(key, PrivateGroup) else next(given) for key in query.keys), boxes


def _measured(name: str, expression: Any, rows: Sequence[tuple[tuple[Any, ...], Totals | None]]) -> MeasuredColumn:
    found, errors = [], []
    for keys, expected in rows:
        if expected is None:
            found.append(math.nan)
            errors.append(math.nan)
            continue
        value, slope = value_of(expression, expected.values, keys)
        used = np.flatnonzero(slope != 0)  # a sum that does not count may be unknown
        found.append(float(value))
        errors.append(expected.placed(used.tolist()).error(slope[used]))
    return MeasuredColumn(name, np.array(found), np.array(errors))


def _steps(query: Query, table: Table, atoms: Sequence[str], work: _Work) -> Iterator[PlanStep]:
    public = [key.sql for key in query.keys if isinstance(key, PublicGroup)]
    if atoms or public:
        yield PlanStep("public", f"DuckDB evaluates {'; '.join([*atoms, *public])}")
    for key in query.private_keys:
        yield PlanStep("groups", f"{key.name} in {len(key.buckets):,} buckets")
    yield from (PlanStep("box", _box_text(table, box)) for box in islice(work.shown, _MOST_BOXES))
    if len(work.shown) > _MOST_BOXES:
        yield PlanStep("box", f"and {len(work.shown) - _MOST_BOXES:,} more")
    how = "by the fewest nodes" if table.reading == "plain" else "by contrasts of all levels that refine them"
    asked = len(table.survey.ask)
    name = type(table.design).__name__
    if isinstance(table.design, JointDesign) and work.groups:
        grids = "; ".join(_grid_text(table, grid) for grid in islice(sorted(work.groups), _MOST_GRIDS))
        more = f"; and {len(work.groups) - _MOST_GRIDS:,} more" if len(work.groups) > _MOST_GRIDS else ""
        yield PlanStep("read", f"{name}: {len(work.groups):,} of {asked:,} grids, all together: {grids}{more}")
    elif work.everybody:
        yield PlanStep("read", f"{name}: everybody's {asked:,} answers, {how}")
    elif work.groups:
        yield PlanStep("read", f"{name}: {len(work.groups):,} of {asked:,} groups, {how}")
    else:
        yield PlanStep("read", f"{name}: no report, because the number of people alone is asked for")


def _grid_text(table: Table, grid: int) -> str:
    """A grid of one or two dimensions, and how many cells it has."""
    places = grid_sets(len(table.private.names))[grid]
    cells = table.survey.questions[grid].mechanism.domain.size
    return f"{' by '.join(table.private.names[place] for place in places)} ({cells:,} cells)"


def _box_text(table: Table, box: Box) -> str:
    """A box, side by side: how many values each has, and the fewest nodes that make them."""
    fan_outs = getattr(table.design, "fan_outs", None)
    trees = trees_of(table.private, fan_outs) if isinstance(fan_outs, tuple) else None
    sides = []
    for place, ((name, part), runs) in enumerate(zip(table.private.attributes, box, strict=True)):
        if runs is None:
            continue
        values = sum(stop - start for start, stop in runs)
        nodes = ""
        if trees is not None:
            pieces: dict[int, int] = {}
            for run in (piece for start, stop in runs for piece in trees[place].decompose(start, stop)):
                pieces[run.level] = pieces.get(run.level, 0) + run.stop - run.start
            listed = ", ".join(f"{many} of level {level}" for level, many in sorted(pieces.items()))
            nodes = f" ({sum(pieces.values()):,} node{'s' if sum(pieces.values()) != 1 else ''}: {listed})"
        sides.append(f"{name}: {values:,} of {part.size:,} values{nodes}")
    return "; ".join(sides) or "everybody"
