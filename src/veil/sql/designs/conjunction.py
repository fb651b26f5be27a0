"""SC, split and conjunction: each dimension has its own question, and a box is read as a product (thesis 7.4.3).

A person's answers about different dimensions are independent, so the product of unbiased readings of "this dimension
lies within its side of the box" is an unbiased reading of the box. The thesis derives it as the inverse of a transition
matrix; that is a Kronecker product, and reading it costs as many cells per person as the sides have in total, not as
their product has. The noise multiplies too: SC is good for conditions on few of many dimensions, and bad for many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Record
from veil.errors import ParameterError
from veil.mechanisms import PureOracle
from veil.privacy import split_epsilon
from veil.reports.layout import Columns
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.designs.decomposition import NodeReads, contrasts_read, nodes_read
from veil.sql.designs.fanouts import chosen_fan_outs, fitted_fan_outs, trees_of
from veil.sql.designs.grouped import (
    Floats,
    GroupedValues,
    Oracle,
    TogetherValues,
    combination_of,
    oracle_for,
    own_columns,
    second_moment,
)
from veil.sql.designs.hio import asked_of_all
from veil.sql.language.query import Box, Runs
from veil.survey import AllOf, Ask, EachOf, Levels, Question
from veil.tree import Tree

if TYPE_CHECKING:
    from veil.sql.table import Table


@dataclass(frozen=True)
class SC(Design):
    """Everybody answers about every dimension: all levels of its tree with a part of the budget each, or one at random.

    `levels` "split" is the thesis's: the budget is split over all levels of all dimensions. "sampled" splits it over
    the dimensions alone, and everybody answers one level of each, drawn at random: less noise for deep trees.
    `fan_outs` and `oracle` are those of HIO; fitted, each dimension's is the best for it alone.

    Guarantee: the answers' ratios multiply to e^eps at most, exactly; which levels are drawn tells nothing.

    >>> from veil import Integers
    >>> people = Record.of(age=Integers(0, 8), state=4)
    >>> SC(fan_outs=3).ask(people, 4.0).layout.names
    ('0.value', '1.value', '2.value')
    >>> SC(fan_outs=3, levels="sampled").ask(people, 4.0).layout.names
    ('0.choice', '0.value', '1.choice', '1.value')
    """

    fan_outs: int | tuple[int, ...] | None = None
    levels: Literal["split", "sampled"] = "split"
    oracle: Oracle = "best"
    kind = "sc"

    def __post_init__(self) -> None:
        if self.levels not in ("split", "sampled"):
            raise ParameterError("levels are split (everybody answers all of them) or sampled (one of each dimension)")
        if self.oracle not in ("best", "OLH"):
            raise ParameterError("the oracle is best or OLH")

    def fitted(self, private: Record, epsilon: float) -> SC:
        if self.fan_outs is not None:
            return replace(self, fan_outs=chosen_fan_outs(self.fan_outs, private, epsilon))
        part = epsilon / len(private.parts)
        each = [fitted_fan_outs((one.size,), (not isinstance(one, Categories),), part)[0] for one in private.parts]
        return replace(self, fan_outs=tuple(each))

    def _trees(self, private: Record, epsilon: float) -> tuple[Tree, ...]:
        fan_outs = self.fitted(private, epsilon).fan_outs
        assert isinstance(fan_outs, tuple)
        return trees_of(private, fan_outs)

    def ask(self, private: Record, epsilon: float) -> AllOf:
        trees = self._trees(private, epsilon)
        rules = [Levels(private, ((name, tree.branching),)) for name, tree in zip(private.names, trees, strict=True)]
        if self.levels == "sampled":
            part = split_epsilon(epsilon, len(rules))
            return AllOf(*(EachOf(rule, lambda domain: oracle_for(self.oracle, part, domain)) for rule in rules))
        part = split_epsilon(epsilon, sum(map(len, rules)))
        views = [rule.view(i) for rule in rules for i in range(len(rule))]
        return AllOf(*(Question(oracle_for(self.oracle, part, view.domain), view) for view in views))

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        trees, oracles = self._trees(table.private, table.epsilon), _oracles(table.survey.ask)
        many = sum(len({box[place] for box in boxes} - {None}) for place in range(len(trees)))
        people, each = int(counts.sum()), effort / max(many, 1)
        dimensions, first = [], 0
        for place, tree in enumerate(trees):
            mine = oracles[first : first + tree.height]
            start = place if self.levels == "sampled" else first
            dimension = _Dimension(tree, mine, start, self.levels == "sampled", table.reading == "plain", people, each)
            dimensions.append(dimension)
            first += tree.height
        return _Products(dimensions, boxes, people)


@lru_cache(maxsize=16)
def _oracles(ask: Ask) -> list[PureOracle]:
    return [question.pure for question in ask.questions]


@dataclass(frozen=True, eq=False)
class _Dimension:
    """How any side of a box is read from the answers about one dimension."""

    tree: Tree
    oracles: Sequence[PureOracle]
    """Of levels 1, 2, ..."""
    start: int
    """The first child of the survey's AllOf that is about it."""
    sampled: bool
    plain: bool
    people: int
    effort: float

    def read(self, runs: Runs) -> NodeReads:
        """The coefficients of nodes by level less one, as the rows that answer a level are read."""
        many = self.tree.height
        groups = combination_of([self.tree], np.arange(1, many + 1)[:, None], self.oracles)
        everywhere = np.full(many, self.people)  # as if there were as many people more, each at one level
        if self.plain:
            found = nodes_read(groups, [(runs,)], everywhere)
        else:
            combination = groups if self.sampled else asked_of_all(groups)
            found = contrasts_read(combination, [(runs,)], everywhere, self.effort)
        if self.sampled:
            return found
        return NodeReads(found.constant, {at: (cells, own / many) for at, (cells, own) in found.parts.items()}, 0.0)

    def values(self, read: NodeReads) -> RowEstimator:
        """The numbers of rows for a side."""
        if self.sampled:
            counts = np.full(len(self.oracles), self.people)
            return _Beside(GroupedValues(read, self.oracles, counts), self.start)
        parts = {self.start + at: part for at, part in read.parts.items()}
        oracles = {self.start + at: oracle for at, oracle in enumerate(self.oracles)}
        return TogetherValues(read.constant, parts, oracles, self.people)

    def moments(self, sides: Sequence[Runs | None], reads: Sequence[NodeReads | None]) -> Floats:
        """The mean products of what is read for two sides from one person, if people are spread evenly; a matrix.

        None is the whole dimension: 1 for everybody.
        """
        phi = np.stack([_indicator(self.tree, runs) for runs in sides])
        constants = np.array([1.0 if read is None else read.constant for read in reads])
        rest = phi.mean(axis=1) - constants
        found = phi @ phi.T / self.tree.leaves
        if self.sampled:
            found = np.outer(constants, constants) + np.outer(constants, rest) + np.outer(rest, constants)
        for at, oracle in enumerate(self.oracles):
            size = self.tree.sizes[at + 1]
            edges = np.minimum(np.arange(size + 1) * self.tree.width(at + 1), self.tree.leaves)
            shares = np.diff(edges) / self.tree.leaves
            dense = np.zeros((len(reads), size))
            for row, read in zip(dense, reads, strict=True):
                if read is not None and at in read.parts:
                    cells, coefficients = read.parts[at]
                    row[cells] = coefficients
            for a, one in enumerate(dense):
                for b, other in enumerate(dense[: a + 1]):
                    both = second_moment(oracle, one, other, shares)
                    both = both / self.tree.height if self.sampled else both - float(shares @ (one * other))
                    found[a, b] += both
                    if a != b:
                        found[b, a] += both
        return found


def _indicator(tree: Tree, runs: Runs | None) -> Floats:
    phi = np.full(tree.leaves, float(runs is None))
    for start, stop in runs or ():
        phi[start:stop] = 1.0
    return phi


class _Beside(RowEstimator):
    """Numbers read from one child of an AllOf."""

    groups = None

    def __init__(self, values: RowEstimator, child: int) -> None:
        self.constant, self.variance, self.bound = values.constant, values.variance, values.bound
        self._values, self._child = values, child

    def of(self, columns: Columns) -> Floats:
        return self._values.of(own_columns(columns, self._child))


class _Products(RowEstimator):
    """Numbers of rows for disjoint boxes: for each box the product of what is read for its sides, added up."""

    def __init__(self, dimensions: Sequence[_Dimension], boxes: Sequence[Box], people: int) -> None:
        self._boxes, self._dimensions, self._people = tuple(boxes), tuple(dimensions), people
        self._reads: dict[tuple[int, Runs], NodeReads] = {}
        for box in boxes:
            for place, runs in enumerate(box):
                if runs is not None and (place, runs) not in self._reads:
                    self._reads[place, runs] = dimensions[place].read(runs)
        self._sides = {key: dimensions[key[0]].values(read) for key, read in self._reads.items()}
        each = [[self._sides[place, runs] for place, runs in self._asked(box)] for box in boxes]
        self.constant = math.fsum(math.prod(side.constant for side in sides) for sides in each)
        self.groups = None if self._sides else frozenset()
        self.bound = abs(self.constant)
        self.bound += sum(math.prod(abs(side.constant) + side.bound for side in sides) for sides in each)

    @staticmethod
    def _asked(box: Box) -> list[tuple[int, Runs]]:
        return [(place, runs) for place, runs in enumerate(box) if runs is not None]

    def of(self, columns: Columns) -> Floats:
        rows = len(next(iter(columns.values())))
        read = {key: side.constant + side.of(columns) for key, side in self._sides.items()}
        found = np.full(rows, -self.constant)
        for box in self._boxes:
            number = np.ones(rows)
            for key in self._asked(box):
                number *= read[key]
            found += number
        return found

    @cached_property
    def variance(self) -> float:  # type: ignore[override]  # only a plan looks at it
        """Of one person, the mean square of the number for all boxes, less that of what it stands for."""
        both = np.ones((len(self._boxes), len(self._boxes)))
        share = np.ones(len(self._boxes))
        for place, dimension in enumerate(self._dimensions):
            sides = list(dict.fromkeys(box[place] for box in self._boxes))
            if sides == [None]:
                continue
            reads = [None if runs is None else self._reads[place, runs] for runs in sides]
            at = [sides.index(box[place]) for box in self._boxes]
            both *= dimension.moments(sides, reads)[np.ix_(at, at)]
            share *= [_indicator(dimension.tree, box[place]).mean() for box in self._boxes]
        return max(self._people * float(both.sum() - share.sum()), 0.0)
