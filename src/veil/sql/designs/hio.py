"""HIO: people are split over combinations of levels of all dimensions (thesis 7.3.2 and 7.4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Record
from veil.errors import EmptyError, InputError, ParameterError
from veil.sql.designs.base import RowEstimator
from veil.sql.designs.contrasts import contrasts_variance
from veil.sql.designs.fanouts import combined_levels, fitted_fan_outs
from veil.sql.designs.grouped import GroupedDesign, Oracle, oracle_for
from veil.sql.language.query import Box
from veil.survey import Ask, EachOf, Levels
from veil.tools.numbers import is_int
from veil.tree import Tree

if TYPE_CHECKING:
    from veil.sql.table import Table


def chosen_fan_outs(fan_outs: Any, private: Record, epsilon: float, most: int | None = None) -> tuple[int, ...]:
    """The branching of each dimension's tree: fitted where nothing is given, one for all ordinal ones, or a list.

    A categorical dimension has one level below the root, whatever is given.
    """
    sizes = [part.size for part in private.parts]
    ordinal = [not isinstance(part, Categories) for part in private.parts]
    if fan_outs is None:
        return fitted_fan_outs(sizes, ordinal, epsilon, most)
    listed = (fan_outs,) * len(sizes) if is_int(fan_outs) else tuple(fan_outs)
    if len(listed) != len(sizes) or not all(is_int(one) and one >= 2 for one in listed):
        raise ParameterError("fan-outs are integers of at least 2: one, or one per dimension")
    return tuple(
        min(int(one), max(size, 2)) if ordered else max(size, 2)
        for one, size, ordered in zip(listed, sizes, ordinal, strict=True)
    )


def trees_of(private: Record, fan_outs: Sequence[int]) -> tuple[Tree, ...]:
    """The tree over each dimension's values."""
    return tuple(Tree(part.size, fan_out) for part, fan_out in zip(private.parts, fan_outs, strict=True))


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
