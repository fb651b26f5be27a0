"""HIO: people are split over combinations of levels of all dimensions (thesis 7.3.2 and 7.4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Record
from veil.errors import ParameterError
from veil.mechanisms import OLH, PureOracle
from veil.mechanisms.choice import direct_or_hashed
from veil.sql.contrasts import Combination, contrasts_read, nodes_read
from veil.sql.design import Box, Design, Values
from veil.sql.grouped import GroupedValues, combination_of
from veil.survey import Ask, EachOf, Levels
from veil.tools.arguments import is_int
from veil.tree import Tree

if TYPE_CHECKING:
    from veil.sql.table import Table

__all__ = ["HIO", "Oracle", "chosen_fan_outs", "oracle_for", "trees_of"]

Oracle = Literal["best", "OLH"]
_USUAL = 5


def chosen_fan_outs(fan_outs: Any, private: Record, epsilon: float) -> tuple[int, ...]:
    """The branching of each dimension's tree: fitted where nothing is given, one number for all ordinal ones, or a list.

    A categorical dimension has one level below the root, whatever is given.
    """
    sizes = [part.size for part in private.parts]
    ordinal = [not isinstance(part, Categories) for part in private.parts]
    if fan_outs is None:
        from veil.sql.fanouts import fitted_fan_outs

        return fitted_fan_outs(sizes, ordinal, epsilon)
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


def oracle_for(oracle: Oracle, epsilon: float, domain: Domain) -> PureOracle:
    """What a group is asked through: GRR or OLH, whichever has the smaller variance; or OLH, as in the thesis."""
    return OLH(epsilon, domain) if oracle == "OLH" else direct_or_hashed(epsilon, domain)


@dataclass(frozen=True)
class HIO(Design):
    """Everybody answers for one combination of levels of all dimensions, drawn at random, with the whole budget.

    `fan_outs` are the branchings of the dimensions' trees: None fits them to the schema, 5 is the thesis's. `oracle`
    "OLH" asks every group by hashing, as the thesis does.

    Guarantee: which combination is asked does not depend on the value, and its oracle keeps e^eps.
    """

    fan_outs: int | tuple[int, ...] | None = None
    oracle: Oracle = "best"
    kind = "hio"

    def __post_init__(self) -> None:
        if self.oracle not in ("best", "OLH"):
            raise ParameterError("the oracle is best or OLH")

    def fitted(self, private: Record, epsilon: float) -> HIO:
        return replace(self, fan_outs=chosen_fan_outs(self.fan_outs, private, epsilon))

    def ask(self, private: Record, epsilon: float) -> Ask:
        fan_outs = chosen_fan_outs(self.fan_outs, private, epsilon)
        trees = tuple(zip(private.names, fan_outs, strict=True))
        return EachOf(Levels(private, trees), lambda domain: oracle_for(self.oracle, epsilon, domain))

    def values(self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0) -> Values:
        groups, oracles = _groups(table.survey.ask)
        if table.reading == "plain":
            read = nodes_read(groups, boxes, counts)
        else:
            read = contrasts_read(groups, boxes, counts, effort)
        return GroupedValues(read, oracles, counts)


@lru_cache(maxsize=16)
def _groups(ask: EachOf) -> tuple[Combination, list[PureOracle]]:
    """All combinations of levels, and the oracle of each."""
    rule = ask.rule
    assert isinstance(rule, Levels)
    every = np.arange(len(rule))
    by_size = dict(zip(rule.sizes, ask.mechanisms, strict=True))
    oracles = [by_size[size] for size in rule.sizes_of(every).tolist()]
    trees = [Tree(part.size, fan_out) for part, (_, fan_out) in zip(rule.held.parts, rule.trees, strict=True)]
    return combination_of(trees, rule.levels(every), oracles), oracles  # type: ignore[arg-type]  # pure oracles
