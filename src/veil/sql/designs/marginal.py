"""MG: marginals over a few dimensions, at the finest level, weighted by public columns (thesis 7.2.3 and chapter 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import EmptyError, InputError, ParameterError
from veil.sql.designs.base import RowEstimator
from veil.sql.designs.decomposition import Combination, NodeReads, contrasts_variance
from veil.sql.designs.grouped import GroupedDesign, GroupedValues, Oracle, oracle_for
from veil.sql.language.query import Box
from veil.survey import AttributeSets, EachOf, ListedSets
from veil.tools.numbers import is_int
from veil.tree import Tree

if TYPE_CHECKING:
    from veil.sql.table import Table


_EFFORT = 16.0
"""Times the usual work: there is no coarser level to read a range from."""
_USUAL = 2


@dataclass(frozen=True)
class MG(GroupedDesign):
    """Everybody answers for one view, some dimensions at their finest level, drawn at random, with the whole budget.

    All sets of `k` dimensions are asked (two, unless there is but one), or the `views` that are listed by names, for
    example those of `veil.marginals.choosing`. With k the number of all dimensions there is one view, of all cells.
    A condition on some dimensions is read from every view that holds them, so a range has a cell for each combination
    of values in it: good for few values, bad for wide ranges of many.

    Guarantee: which view is asked does not depend on the value, and its oracle keeps e^eps.

    >>> MG(k=2).ask(Record.of(age=4, sex=2, state=3), 1.0).rule.sizes
    (6, 8, 12)
    """

    k: int | None = None
    views: tuple[tuple[str, ...], ...] | None = None
    oracle: Oracle = "best"
    kind = "mg"

    def __post_init__(self) -> None:
        if self.k is not None and (not is_int(self.k) or self.k < 1):
            raise ParameterError("k is a number of dimensions, at least 1")
        if self.k is not None and self.views is not None:
            raise ParameterError("MG asks for all sets of k dimensions, or for the views that are listed: not both")
        if self.oracle not in ("best", "OLH"):
            raise ParameterError("the oracle is best or OLH")

    def fitted(self, private: Record, epsilon: float) -> MG:
        many = len(private.names)
        if self.views is not None:
            return replace(self, views=ListedSets(private, self.views).sets)
        if self.k is not None and self.k > many:
            raise ParameterError(f"k is at most the number of dimensions, {many}")
        return replace(self, k=min(_USUAL, many) if self.k is None else int(self.k))

    def _rule(self, private: Record, epsilon: float) -> AttributeSets | ListedSets:
        design = self.fitted(private, epsilon)
        if design.views is not None:
            return ListedSets(private, design.views)
        assert design.k is not None
        return AttributeSets(private, design.k)

    def levels(self, private: Record, epsilon: float) -> tuple[tuple[Tree, ...], NDArray[np.int64]]:
        rule = self._rule(private, epsilon)
        levels = np.zeros((len(rule), len(private.names) + 1), np.int64)
        np.put_along_axis(levels, rule.places(np.arange(len(rule))), 1, axis=1)  # a place of -1 is the last column
        return tuple(Tree(part.size, max(part.size, 2)) for part in private.parts), levels[:, :-1]

    def ask(self, private: Record, epsilon: float) -> EachOf:
        return EachOf(self._rule(private, epsilon), lambda domain: oracle_for(self.oracle, epsilon, domain))

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        groups = self.groups(table)
        for box in boxes:
            asked = [place for place, runs in enumerate(box) if runs is not None]
            _check_views(groups.combination, asked, table.private)
        if table.reading == "plain":
            read = groups.with_variance(_cells_read(groups.combination, boxes, counts), boxes, counts)
            return GroupedValues(read, groups.oracles, counts)
        return super().values(table, boxes, counts, effort * _EFFORT)

    def variance(self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64]) -> float:
        if table.reading == "plain":
            return self.values(table, boxes, counts).variance
        return contrasts_variance(self.groups(table).combination, boxes, counts, _EFFORT)


def _check_views(groups: Combination, asked: Sequence[int], private: Record) -> None:
    """Refuse a condition on dimensions that no view holds together."""
    if not groups.levels[:, asked].all(axis=1).any():
        names = ", ".join(private.names[place] for place in asked)
        most = int(groups.levels.sum(axis=1).max())
        raise InputError(
            f"no view of this table holds {names} together (views have up to {most} dimensions): "
            "ask about fewer dimensions, or collect with a larger k, with HIO or with SC"
        )


def _cells_read(groups: Combination, boxes: Sequence[Box], counts: NDArray[np.int64]) -> NodeReads:
    """Every view that holds a box's dimensions, its cells within the box added up; views by what they tell."""
    people, sizes = int(counts.sum()), [tree.leaves for tree in groups.trees]
    constant = 0.0
    dense: dict[int, NDArray[np.float64]] = {}
    for box in boxes:
        asked = [place for place, runs in enumerate(box) if runs is not None]
        if not asked:
            constant += 1.0
            continue
        fits = np.flatnonzero(groups.levels[:, asked].all(axis=1) & (counts > 0))
        if not len(fits):
            raise EmptyError("too few people answered to tell: nobody was asked about a view that this needs")
        weights = counts[fits] * groups.information[fits]
        weights = weights / weights.sum()
        for group, weight in zip(fits.tolist(), weights.tolist(), strict=True):
            inside = np.ones(1)
            for place in np.flatnonzero(groups.levels[group]).tolist():
                inside = np.outer(inside, _indicator(sizes[place], box[place])).ravel()
            factor = weight * people / counts[group]
            dense[group] = dense.get(group, np.zeros(len(inside))) + factor * inside
    parts = {group: (np.flatnonzero(whole), whole[whole != 0]) for group, whole in dense.items()}
    return NodeReads(constant, parts, 0.0)


def _indicator(size: int, runs: tuple[tuple[int, int], ...] | None) -> NDArray[np.float64]:
    phi = np.full(size, float(runs is None))
    for start, stop in runs or ():
        phi[start:stop] = 1.0
    return phi
