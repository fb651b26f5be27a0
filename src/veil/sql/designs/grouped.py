"""Questions about combinations of levels of the dimensions, and the numbers that their reports give.

In a `GroupedDesign` each person is in one group: a combination of levels, asked for as one cell. `GroupedValues` reads
such reports. `TogetherValues` reads reports that answer several questions at once: it adds up the numbers of the single
questions.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain, Record
from veil.errors import ParameterError
from veil.kernels.parallel import in_order, thread_count
from veil.mechanisms import GRR, OLH, PureOracle
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.mechanisms.oracles.local_hashing import LocalHashing
from veil.reports.layout import Columns
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.designs.decomposition import Combination, NodeReads, contrasts_read, nodes_read
from veil.sql.language.query import Box
from veil.survey import Ask, EachOf, OneOf, Question
from veil.tree import Tree
from veil.view import Ancestor, Composed, Product, Project, View

if TYPE_CHECKING:
    from veil.sql.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Oracle = Literal["best", "OLH"]
_MOST_DIRECT = 1 << 32  # values of GRR; groups of many dimensions have more cells
_WORTH_A_THREAD = 1 << 21  # pairs of a report and a cell
_LARGEST = (1 << 23) - 1  # of a coefficient, so that 256 of them add up in 32 bits


class GroupedDesign(Design):
    """A design whose groups are combinations of levels of the dimensions' trees; each person answers for one.

    Guarantee: which group a person is in does not depend on what they hold, and its oracle keeps e^eps.
    """

    oracle: Oracle

    @abstractmethod
    def levels(self, private: Record, epsilon: float) -> tuple[tuple[Tree, ...], Ints]:
        """The dimensions' trees, and a row for each group: the level of every dimension, 0 where it is not asked."""

    def ask(self, private: Record, epsilon: float) -> Ask:
        trees, levels = self.levels(private, epsilon)
        views = [view_of(private, trees, level) for level in levels.tolist()]
        return OneOf(*((1, Question(oracle_for(self.oracle, epsilon, view.domain), view)) for view in views))

    def groups(self, table: Table) -> Groups:
        """The groups of a table's people."""
        return _groups(self, table.private, table.epsilon)

    def values(self, table: Table, boxes: Sequence[Box], counts: Ints, effort: float = 1.0) -> RowEstimator:
        groups = self.groups(table)
        if table.reading == "plain":
            read = groups.with_variance(nodes_read(groups.combination, boxes, counts), boxes, counts)
        else:
            read = contrasts_read(groups.combination, boxes, counts, effort)
        return GroupedValues(read, groups.oracles, counts)


@lru_cache(maxsize=32)
def _groups(design: GroupedDesign, private: Record, epsilon: float) -> Groups:
    trees, levels = design.levels(private, epsilon)
    ask = design.ask(private, epsilon)
    if isinstance(ask, EachOf):
        by_size = dict(zip(ask.rule.sizes, ask.mechanisms, strict=True))
        oracles = [by_size[size] for size in ask.rule.sizes_of(np.arange(len(ask))).tolist()]
    else:
        oracles = [question.mechanism for question in ask.questions]
    return Groups(combination_of(trees, levels, oracles), oracles)  # type: ignore[arg-type]  # pure oracles


@dataclass(frozen=True)
class Groups:
    """The combinations of levels that people are asked about, in the order of their choices, and through what."""

    combination: Combination
    oracles: list[PureOracle]

    def with_variance(self, read: NodeReads, boxes: Sequence[Box], counts: Ints) -> NodeReads:
        """The same reading with the variance of a COUNT of evenly spread people, whatever the coefficients add up to.

        Reports of GRR support one cell only: nodes of one group do not err independently, as contrasts do.
        """
        trees, people, found = self.combination.trees, int(counts.sum()), 0.0
        for group, (cells, coefficients) in read.parts.items():
            shares = _shares(trees, self.combination.levels[group].tolist(), cells)
            square = second_moment(self.oracles[group], coefficients, coefficients, shares)
            found += counts[group] * (square - float(shares @ coefficients) ** 2)
        share = sum(
            math.prod(
                sum(stop - start for start, stop in runs) / tree.leaves
                for tree, runs in zip(trees, box, strict=True)
                if runs is not None
            )
            for box in boxes
        )
        return NodeReads(read.constant, read.parts, max(found - people * share * (1 - share), 0.0))


def _shares(trees: Sequence[Tree], levels: Sequence[int], cells: Ints) -> Floats:
    """The part of all values that each cell of a group holds: the last node of a level may have fewer than others."""
    rest, found = cells, np.ones(len(cells))
    for tree, level in reversed(list(zip(trees, levels, strict=True))):
        rest, node = np.divmod(rest, tree.sizes[level])
        width = tree.width(level)
        found *= (np.minimum((node + 1) * width, tree.leaves) - node * width) / tree.leaves
    return found


def oracle_for(oracle: Oracle, epsilon: float, domain: Domain) -> PureOracle:
    """What a group is asked through: GRR or OLH, whichever has the smaller variance; or OLH, as in the thesis."""
    if oracle == "OLH" or domain.size > _MOST_DIRECT:
        return OLH(epsilon, domain)
    return direct_or_hashed(epsilon, domain)


def view_of(private: Record, trees: Sequence[Tree], levels: Sequence[int]) -> View:
    """What a group looks at: the ancestors of the dimensions that have a level, as one index."""
    views: list[View] = []
    for name, tree, level in zip(private.names, trees, levels, strict=True):
        if level:
            first = Project(private, (name,))
            views.append(
                first if level == tree.height else Composed(first, Ancestor(first.domain, tree.branching, level))
            )
    return views[0] if len(views) == 1 else Product(*views)


def combination_of(trees: Sequence[Tree], levels: Ints, oracles: Sequence[PureOracle]) -> Combination:
    """The groups with these levels, each asked through its oracle, and what one person tells in each.

    A report of GRR supports one cell, so that supports of cells exclude each other; those of hashing are independent.
    """
    p = np.array([float(oracle.p) for oracle in oracles])
    q = np.array([float(oracle.q) for oracle in oracles])
    direct = np.array([isinstance(oracle, GRR) for oracle in oracles])
    noises = np.where(direct, q, q * (1 - q)) / (p - q) ** 2
    holders = np.where(direct, 1.0, 1 - 2 * q) / (p - q)
    return Combination(trees, levels, noises, holders)


class GroupedValues(RowEstimator):
    """Numbers of rows that answered one group each, through GRR or local hashing."""

    def __init__(self, read: NodeReads, oracles: Sequence[PureOracle], counts: Ints) -> None:
        self.constant, self.variance, self.groups = read.constant, read.variance, frozenset(read.parts)
        direct: list[tuple[int, Floats]] = []
        hashed: list[tuple[int, LocalHashing, Ints, Floats]] = []
        self.bound = 0.0
        for group, (cells, coefficients) in read.parts.items():
            oracle = oracles[group]
            gap, q = float(oracle.p - oracle.q), float(oracle.q)
            self.cells += len(cells)
            self.pairs += int(counts[group]) * len(cells)
            self.noise += counts[group] * _least(oracle, coefficients)
            self.bound = max(self.bound, float(np.abs(coefficients).sum()) * max(1 - q, q) / gap)
            if isinstance(oracle, GRR):
                dense = np.zeros(oracle.domain.size)
                dense[cells] = coefficients
                direct.append((group, (dense - q * coefficients.sum()) / gap))
            elif isinstance(oracle, LocalHashing):
                hashed.append((group, oracle, cells, coefficients))
            else:
                raise ParameterError("groups are asked through GRR or local hashing")
        self._direct, self._hashed = _Direct(direct), _Hashed(hashed)

    def of(self, columns: Columns) -> Floats:
        found = np.zeros(len(columns["choice"]))
        self._direct.fill(found, columns)
        self._hashed.fill(found, columns)
        return found


def _least(oracle: PureOracle, coefficients: Floats) -> float:
    """The variance of one person's number, at least."""
    p, q = float(oracle.p), float(oracle.q)
    squares, largest = float((coefficients**2).sum()), float(np.abs(coefficients).max())
    if isinstance(oracle, GRR):  # cells exclude each other: what is held, and a little of all others
        spread = squares - float(coefficients.sum()) ** 2 / oracle.domain.size
        return max(q * spread - (q * largest) ** 2, 0.0) / (p - q) ** 2
    return squares * q * (1 - q) / (p - q) ** 2


class _Direct:
    """The groups that are asked directly: a table of numbers for each, one group after the other."""

    def __init__(self, groups: Sequence[tuple[int, Floats]]) -> None:
        self._places = _places([group for group, _ in groups])
        self._offsets = np.concatenate(([0], np.cumsum([len(numbers) for _, numbers in groups]))).astype(np.int64)
        self._numbers = np.concatenate([numbers for _, numbers in groups]) if groups else np.zeros(0)

    def fill(self, found: Floats, columns: Columns) -> None:
        """Write the numbers of the rows that were asked directly."""
        if len(self._numbers):
            places = self._places[np.minimum(columns["choice"], len(self._places) - 1)]
            rows = np.flatnonzero(places >= 0)
            found[rows] = self._numbers[self._offsets[places[rows]] + columns["value"][rows]]


class _Hashed:
    """The groups that are asked by hashing, their cells one group after the other."""

    def __init__(self, groups: Sequence[tuple[int, LocalHashing, Ints, Floats]]) -> None:
        from veil.kernels.counting import halves

        self._places = _places([group for group, *_ in groups])
        self._any = bool(groups)
        if not groups:
            return
        (self._buckets,) = {oracle.buckets for _, oracle, _, _ in groups}
        self._oracle = groups[0][1]
        cells = np.concatenate([cells for _, _, cells, _ in groups])
        self._low, self._high = halves(self._oracle.spread(cells.astype(np.uint64)))
        self._offsets = np.concatenate(([0], np.cumsum([len(cells) for _, _, cells, _ in groups]))).astype(np.int64)
        self._coefficients = np.empty(len(cells), np.int32)
        self._scales, self._shifts = np.empty(len(groups)), np.empty(len(groups))
        for i, (_, oracle, _, coefficients) in enumerate(groups):
            scale = _LARGEST / max(float(np.abs(coefficients).max()), 1e-300)
            whole = np.rint(coefficients * scale)  # moves an answer by less than a ten-millionth of all people
            self._coefficients[self._offsets[i] : self._offsets[i + 1]] = whole
            self._scales[i] = 1.0 / (scale * float(oracle.p - oracle.q))
            self._shifts[i] = float(oracle.q) * whole.sum()

    def fill(self, found: Floats, columns: Columns) -> None:
        """Write the numbers of the rows that were asked by hashing."""
        from veil.kernels.exact_sums import hashed_values

        if not self._any:
            return
        places = self._places[np.minimum(columns["choice"], len(self._places) - 1)]
        rows = np.flatnonzero(places >= 0)
        if not len(rows):
            return
        narrow = np.uint16 if len(self._offsets) <= 1 << 16 else np.int32
        rows = rows[np.argsort(places[rows].astype(narrow), kind="stable")]  # rows of one group look at the same cells
        ends = self._pieces(np.bincount(places[rows], minlength=len(self._offsets) - 1))
        seeds, buckets = self._oracle.expand(columns["seed"]), columns["bucket"]

        def count(piece: int) -> None:
            cells = (self._offsets, self._low, self._high, self._coefficients, self._shifts, self._scales)
            hashed_values(rows[ends[piece] : ends[piece + 1]], places, seeds, buckets, self._buckets, *cells, found)

        in_order(count, range(len(ends) - 1), thread_count())

    def _pieces(self, people: Ints) -> list[int]:
        """Where to cut rows, `people` of one group after those of another, into pieces that are equally much work."""
        cells = np.diff(self._offsets)
        work = np.concatenate(([0], np.cumsum(people * cells)))
        rows = np.concatenate(([0], np.cumsum(people)))
        many = 4 * thread_count() if work[-1] > _WORTH_A_THREAD else 1
        cuts = np.linspace(0, work[-1], many + 1)[1:-1]
        return [0, *np.interp(cuts, work, rows).astype(np.int64).tolist(), int(rows[-1])]


def _places(groups: Sequence[int]) -> NDArray[np.int32]:
    """By choice, the place of its group among these; -1 for others, and for all choices beyond the last entry."""
    places = np.full(max(groups, default=-1) + 2, -1, np.int32)
    places[list(groups)] = np.arange(len(groups))
    return places


class TogetherValues(RowEstimator):
    """Numbers of rows of which each answered every question: what each answer tells, added up.

    `parts` are the cells and coefficients by number of the question, each a child of the survey's AllOf.
    """

    def __init__(
        self,
        constant: float,
        parts: Mapping[int, tuple[Ints, Floats]],
        oracles: Sequence[PureOracle] | Mapping[int, PureOracle],
        people: int,
    ) -> None:
        self.constant, self.groups = constant, None if parts else frozenset()
        self._each: dict[int, GroupedValues] = {}
        self.bound = self.variance = self.noise = 0.0
        for number, (cells, coefficients) in parts.items():
            oracle, many = oracles[number], np.array([people])
            one = GroupedValues(NodeReads(0.0, {0: (cells, coefficients)}, 0.0), [oracle], many)
            self._each[number] = one
            self.bound += one.bound
            self.noise += one.noise
            shares = np.full(len(cells), 1 / oracle.domain.size)
            # nobody is left out: what people hold is no part of the scatter, the noise alone is
            own = second_moment(oracle, coefficients, coefficients, shares) - float(shares @ coefficients**2)
            self.variance += people * own

    def of(self, columns: Columns) -> Floats:
        found = np.zeros(len(next(iter(columns.values()))))
        choice = np.zeros(len(found), np.int64)
        for number, one in self._each.items():
            found += one.of({**own_columns(columns, number), "choice": choice})
        return found


def own_columns(columns: Columns, number: int) -> dict[str, NDArray[np.generic]]:
    """The columns of one child of an AllOf, under their own names."""
    start = f"{number}."
    return {name[len(start) :]: column for name, column in columns.items() if name.startswith(start)}


def second_moment(oracle: PureOracle, one: Floats, other: Floats, shares: Floats) -> float:
    """The mean product of two numbers that are read from one report about the same cells.

    `one` and `other` are the coefficients of some cells, all others having none; `shares` are the parts of all people
    that hold each of these cells. For equal coefficients it is the mean square of the number.

    >>> float(round(second_moment(GRR(1.0, 2), np.ones(2), np.ones(2), np.full(2, 0.5)), 9))  # everybody is somewhere
    1.0
    """
    p, q = float(oracle.p), float(oracle.q)
    gap, both = p - q, one * other
    if not isinstance(oracle, GRR):  # supports of different cells are independent
        return float(q * (1 - q) * both.sum() / gap**2 + (1 - 2 * q) / gap * (shares @ both))
    sums = float(one.sum()), float(other.sum())
    held = sums[1] * float(shares @ one) + sums[0] * float(shares @ other)
    alone = float(shares @ both) / gap + q * float(both.sum()) / gap**2
    return alone - q / gap * held - (q / gap) ** 2 * sums[0] * sums[1]
