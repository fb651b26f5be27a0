"""Simple protocols for marginals: the full table, every table of k attributes, and no question at all.

FullContingency    asks everybody for all attributes as one value (FC, thesis 6.1.3)
AllMarginals       asks everybody for one of all sets of k attributes (AM, thesis 6.1.4)
Uniform            asks nobody: all combinations of values are equally frequent
variance_factor    the expected squared error of each protocol, in units of the variance of one cell
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from veil.domain import Record
from veil.errors import ParameterError
from veil.marginals.choosing import products
from veil.marginals.joint import Joint
from veil.marginals.marginal import Marginal
from veil.marginals.result import Inference
from veil.marginals.study import MarginalStudy, Names
from veil.marginals.tables import Places
from veil.mechanisms import PGR, PureOracle
from veil.mechanisms.best_oracle import better, least_variance
from veil.survey import AttributeSets, EachOf
from veil.tools.numbers import is_int
from veil.view import width_of

MOST_TABLE = 1 << 20
"""Cells of a whole table: they are all counted, and every marginal adds all of them up."""

_MUCH_WORSE = 1.05

Way = Literal["FC", "AM", "FT", "FT of bits", "FT of sets of bits"]


@dataclass(frozen=True)
class FullContingency(MarginalStudy):
    """Any marginal of a record, from one table of all attributes (FC, thesis 6.1.3).

    The table has as many cells as there are combinations of values, and a marginal adds up so many noisy cells: the
    squared error is that of one cell times all of them, however few attributes are asked for. `k` changes nothing.

    Guarantee: e^eps, by one oracle. It is the one with the least variance, up to 4,096 cells. Above that reports of
    one bit per cell grow long, and hashing (OLH) takes a step per person and cell; PGR has reports of a few bytes and
    counts all cells by one transform, with at most 5 % more variance, so it is taken.

    >>> from veil import simulate
    >>> people = {"sex": ["f", "m"] * 10_000, "smokes": [0, 1] * 10_000, "vegan": [0, 0, 1, 1] * 5_000}
    >>> study = FullContingency(4.0, Record.of(sex=["f", "m"], smokes=2, vegan=2))
    >>> abs(simulate(study, people, seed=1).marginal(["sex", "smokes"]).shares[1]).round(1).tolist()
    [0.0, 0.5]
    """

    epsilon: float
    domain: Record
    k: int = 1
    inference: Inference = "separate"
    marginal: Names | None = None
    given: Names | None = None
    kind: ClassVar[str] = "full-contingency"

    def __post_init__(self) -> None:
        self._check()
        cells = math.prod(part.size for part in self.domain.parts)
        if cells > MOST_TABLE:
            raise ParameterError(
                f"the table of all attributes has {cells:,} cells, more than {MOST_TABLE:,}: ask for fewer attributes,"
                " cut their domains into fewer values, or take CALM, which never builds it"
            )

    def oracle(self, domain: Any) -> PureOracle:
        """What the table is asked through."""
        least = least_variance(self.epsilon, domain)
        if least.name != "OLH":
            return least
        quick = PGR(self.epsilon, domain)
        return quick if quick.variance(1) <= _MUCH_WORSE * least.variance(1) else better(least, quick)

    @cached_property
    def family(self) -> EachOf:
        return EachOf(AttributeSets(self.domain, len(self.domain.names)), self.oracle)


@dataclass(frozen=True)
class AllMarginals(MarginalStudy):
    """Marginals of k attributes, each from a view of its own (AM, thesis 6.1.4).

    There are as many views as sets of k attributes, and each person is asked for one of them. Read "separate", as in
    the thesis, a marginal of k attributes comes from its own view, one of fewer from the average over all views that
    have them, and one of more than k cannot be answered; the other readings are those of CALM.

    Guarantee: each person answers one view, through an oracle that keeps e^eps; which one does not depend on the value.

    >>> from veil import simulate
    >>> people = {"sex": ["f", "m"] * 10_000, "smokes": [0, 1] * 10_000, "vegan": [0, 0, 1, 1] * 5_000}
    >>> study = AllMarginals(4.0, Record.of(sex=["f", "m"], smokes=2, vegan=2), k=2)
    >>> abs(simulate(study, people, seed=1).marginal(["sex", "smokes"]).shares[1]).round(1).tolist()
    [0.0, 0.5]
    """

    epsilon: float
    domain: Record
    k: int = 3
    inference: Inference = "separate"
    marginal: Names | None = None
    given: Names | None = None
    kind: ClassVar[str] = "all-marginals"

    def __post_init__(self) -> None:
        self._check()
        self._check_views(self.k)

    @cached_property
    def family(self) -> EachOf:
        return EachOf(AttributeSets(self.domain, self.k), self.oracle)


@dataclass(frozen=True, eq=False, kw_only=True)
class Uniform(Joint):
    """The joint distribution in which every combination of values is equally frequent: what is said without asking.

    A result that is no nearer to the truth than this one is worth nothing.

    >>> Uniform.of(Record.of(sex=2, region=["n", "e", "s"])).marginal(["region"]).frequencies.round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    variant: ClassVar[str] = "uniform"

    @classmethod
    def of(cls, record: Record, people: int = 1) -> Uniform:
        """About so many people, none of whom was asked anything."""
        return cls(record=record, n=0, population=people, lineage=("Uniform",))

    def _found(self, places: Places) -> Marginal:
        shape = tuple(self.record.parts[place].size for place in places)
        return self._table(places, np.full(shape, 1 / math.prod(shape)), measured=False)


def variance_factor(way: Way, sizes: tuple[int, ...], k: int) -> int:
    """The expected sum of squared errors of a k-way marginal in units of Var0: (6.1) to (6.3) of the thesis.

    `sizes` are those of the record's attributes. Var0 is the variance of one cell if everybody answers: for FC and AM
    4 e^eps / (e^eps - 1)^2 / n through OUE; for Fourier coefficients, which are -1 or 1, (e^eps + 1)^2 / (e^eps - 1)^2
    / n through randomized response.

    - "FC": all cells of the whole table.
    - "AM": the cells of a marginal times the number of marginals, on average over them.
    - "FT": the coefficients of sets of at most k attributes, the constant one too. Only of binary attributes.
    - "FT of bits": the thesis's count for others. Attributes become their bits, k the largest number of bits of any k
      attributes, and coefficients those of sets of at most so many bits, whichever attributes they are of.
    - "FT of sets of bits": what `FourierMarginals` asks for, sets of bits that touch at most k attributes.

    >>> [variance_factor(way, (2,) * 8, 3) for way in ("FC", "AM", "FT")]
    [256, 448, 93]
    >>> variance_factor("FT of bits", (3,) * 8, 3), variance_factor("FT of sets of bits", (3,) * 8, 3)
    (14893, 1789)
    """
    if not is_int(k) or not 1 <= k <= len(sizes):
        raise ParameterError(f"k is the number of attributes of a marginal, from 1 to {len(sizes)}")
    widths = [width_of(size) for size in sizes]
    if way == "FC":
        return math.prod(sizes)
    if way == "AM":
        return products(sizes, k)
    if way == "FT":
        if any(size != 2 for size in sizes):
            raise ParameterError("the Fourier transform is one of binary attributes: others become their bits")
        return sum(math.comb(len(sizes), some) for some in range(k + 1))
    if way == "FT of bits":
        most = sum(sorted(widths, reverse=True)[:k])
        return sum(math.comb(sum(widths), some) for some in range(most + 1))
    if way == "FT of sets of bits":
        return sum(products([(1 << width) - 1 for width in widths], some) for some in range(k + 1))
    raise ParameterError(f"a way is one of {', '.join(get_args(Way))}")
