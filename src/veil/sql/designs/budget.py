"""HI: everybody answers for every combination of levels, and the budget is split over them (thesis 7.3.1 and 7.4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import ParameterError
from veil.privacy import split_epsilon
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.designs.contrasts import Combination, contrasts_read, nodes_read
from veil.sql.designs.grouped import Groups, Oracle, TogetherValues, combination_of, oracle_for, view_of
from veil.sql.designs.hio import HIO, chosen_fan_outs, trees_of
from veil.sql.language.query import Box
from veil.survey import AllOf, Question
from veil.tree import Tree

if TYPE_CHECKING:
    from veil.sql.table import Table


MOST_LEVELS = 1024
"""Combinations of levels: a report has an answer for each, with that part of the budget."""


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
