"""HIO and HI: all combinations of levels of the dimensions' trees (thesis 7.3 and 7.4.1).

HIO asks each person about one combination with the whole budget. HI asks everybody about all combinations and splits
the budget. How a box is read from the levels is in `decomposition`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import EmptyError, InputError, ParameterError
from veil.privacy import split_epsilon
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.designs.decomposition import Combination, contrasts_read, contrasts_variance, nodes_read
from veil.sql.designs.fanouts import chosen_fan_outs, combined_levels, trees_of
from veil.sql.designs.grouped import GroupedDesign, Groups, Oracle, TogetherValues, combination_of, oracle_for, view_of
from veil.sql.language.query import Box
from veil.survey import AllOf, Ask, EachOf, Levels, Question
from veil.tools.numbers import is_int
from veil.tree import Tree

if TYPE_CHECKING:
    from veil.sql.table import Table

MOST_LEVELS = 1024
"""Combinations of levels: a report has an answer for each, with that part of the budget."""


@dataclass(frozen=True)
class HIO(GroupedDesign):
    """Everybody answers for one combination of levels of all dimensions, drawn at random, with the whole budget.

    `fan_outs` are the branchings of the dimensions' trees: None fits them to the schema, 5 is the thesis's. `oracle`
    "OLH" asks every group by hashing, as the thesis does. `most` leaves out combinations of more dimensions than that:
    queries about as many dimensions are answered better, and those about more not at all.

    >>> from veil.domain import Integers
    >>> HIO(fan_outs=5).fitted(Record.of(age=Integers(0, 99), state=50), 1.0)
    HIO(fan_outs=(5, 50), oracle='best', most=None)
    """

    fan_outs: int | tuple[int, ...] | None = None
    oracle: Oracle = "best"
    most: int | None = None
    kind = "hio"

    def __post_init__(self) -> None:
        if self.oracle not in ("best", "OLH"):
            raise ParameterError("the oracle is best or OLH")
        if self.most is not None and (not is_int(self.most) or self.most < 1):
            raise ParameterError("most is how many dimensions are asked about at once, at least 1; or None for all")

    def fitted(self, private: Record, epsilon: float) -> HIO:
        most = None if self.most is None or self.most >= len(private.names) else self.most
        return replace(self, fan_outs=chosen_fan_outs(self.fan_outs, private, epsilon, self.most), most=most)

    def levels(self, private: Record, epsilon: float) -> tuple[tuple[Tree, ...], NDArray[np.int64]]:
        trees = trees_of(private, chosen_fan_outs(self.fan_outs, private, epsilon, self.most))
        return trees, combined_levels([tree.height for tree in trees], self.most)

    def ask(self, private: Record, epsilon: float) -> Ask:
        if self.most is not None:
            return super().ask(private, epsilon)
        fan_outs = chosen_fan_outs(self.fan_outs, private, epsilon, self.most)
        rule = Levels(private, tuple(zip(private.names, fan_outs, strict=True)))
        return EachOf(rule, lambda domain: oracle_for(self.oracle, epsilon, domain))

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        try:
            return super().values(table, boxes, counts, effort)
        except EmptyError:
            most = self.most
            if most is None or all(sum(runs is not None for runs in box) <= most for box in boxes):
                raise
            raise InputError(
                f"people of this table are asked about at most {most} dimension{'s' if most > 1 else ''} at once: "
                "a condition on more of them cannot be answered"
            ) from None

    def variance(self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64]) -> float:
        """Exact where trees divide their dimensions evenly; else of contrasts some per cent off, by the last nodes."""
        if table.reading == "plain":
            return super().variance(table, boxes, counts)
        return contrasts_variance(self.groups(table).combination, boxes, counts)


@dataclass(frozen=True)
class HI(Design):
    """Everybody answers for all combinations of levels of all dimensions, each with an equal part of the budget.

    The thesis's first mechanism, and the reason for HIO: the noise grows with the square of the number of combinations,
    where splitting the people lets it grow with the number alone. `fan_outs` and `oracle` are those of HIO.

    Guarantee: the answers' ratios multiply to e^eps at most, exactly.

    >>> survey = AllOf(*HI(fan_outs=2).ask(Record.of(age=4, sex=2), 1.0).asks)
    >>> len(survey), survey.guarantee.within(1.0)
    (3, True)
    """

    fan_outs: int | tuple[int, ...] | None = None
    oracle: Oracle = "best"
    kind = "hi"

    def __post_init__(self) -> None:
        if self.oracle not in ("best", "OLH"):
            raise ParameterError("the oracle is best or OLH")

    def fitted(self, private: Record, epsilon: float) -> HI:
        return replace(self, fan_outs=chosen_fan_outs(self.fan_outs, private, epsilon))

    def ask(self, private: Record, epsilon: float) -> AllOf:
        trees, levels = self._levels(private, epsilon)
        part = split_epsilon(epsilon, len(levels))
        views = [view_of(private, trees, level) for level in levels.tolist()]
        return AllOf(*(Question(oracle_for(self.oracle, part, view.domain), view) for view in views))

    def _levels(self, private: Record, epsilon: float) -> tuple[tuple[Tree, ...], NDArray[np.int64]]:
        fan_outs = chosen_fan_outs(self.fan_outs, private, epsilon)
        many = math.prod(tree.height + 1 for tree in trees_of(private, fan_outs)) - 1
        if many > MOST_LEVELS:
            raise ParameterError(
                f"HI would ask everybody about {many:,} combinations of levels, more than {MOST_LEVELS:,}: take HIO, "
                "which asks about one of them, SC or Grids, or larger fan-outs"
            )
        return HIO(fan_outs).levels(private, epsilon)

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        groups = _groups(self, table.private, table.epsilon)
        # everybody stands in every group: as if there were as many more people, each in one
        people, many = int(counts.sum()), len(groups.oracles)
        everywhere = np.full(many, people)
        if table.reading == "plain":
            read = nodes_read(groups.combination, boxes, everywhere)
        else:
            read = contrasts_read(groups.combination, boxes, everywhere, effort)
        parts = {group: (cells, coefficients / many) for group, (cells, coefficients) in read.parts.items()}
        return TogetherValues(read.constant, parts, groups.oracles, people)


@lru_cache(maxsize=32)
def _groups(design: HI, private: Record, epsilon: float) -> Groups:
    """All combinations of levels in the order of the survey, and the oracle of each."""
    oracles = [question.pure for question in design.ask(private, epsilon).questions]
    return Groups(asked_of_all(combination_of(*design._levels(private, epsilon), oracles)), oracles)


def asked_of_all(groups: Combination) -> Combination:
    """The same groups, where everybody answers each: nothing is lost by asking some people alone."""
    return Combination(groups.trees, groups.levels, groups.noises, groups.holders - 1)
