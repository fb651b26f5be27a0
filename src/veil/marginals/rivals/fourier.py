"""Marginals from Fourier coefficients, one per person (FT, thesis 6.1.5; Kulkarni et al. 2018).

The table of some binary attributes is the inverse transform of its coefficients: for each set of the attributes, the
mean over all people of (-1)^(number of these attributes that a person has). A coefficient is one bit per person, and
randomized response estimates it at the lowest cost. Attributes of more values become the bits of their codes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import InputError, ParameterError
from veil.marginals.linear import LinearJoint
from veil.marginals.marginal import Marginal
from veil.marginals.result import Marginals
from veil.marginals.rivals.binary import held_cells, walsh, widths_of
from veil.marginals.scatter import MOST_COVARIANCES
from veil.marginals.study import JointStudy, Names
from veil.marginals.tables import Places, Views, spread
from veil.mechanisms import GRR
from veil.privacy import decimal_text
from veil.results.laws import SupportNoise
from veil.results.units import Unit
from veil.study import Collection
from veil.survey import EachOf, Parities, Survey

Floats = NDArray[np.float64]
Reading = Literal["separate", "consistent"]


@dataclass(frozen=True, eq=False, kw_only=True)
class FourierCoefficients(LinearJoint):
    """A joint distribution read from Fourier coefficients: every marginal of at most `k` attributes.

    `coefficients` are those of the sets of bits of `Parities(record, k)`, in its order, estimated without bias from
    the `people` who were asked for each; one that nobody was asked for is taken as 0. `noise` is how randomized
    response scatters. `inference` is "separate", unbiased tables; or "consistent": the tables of all sets of k
    attributes as CALM makes views consistent, without negative cells, and larger ones of maximum entropy.
    """

    variant: ClassVar[str] = "fourier"
    k: int
    coefficients: Floats
    people: NDArray[np.int64]
    noise: SupportNoise
    inference: Reading = "separate"

    @property
    def _has_joint(self) -> bool:
        return self.inference == "consistent" or self.k >= len(self.record.names)

    @property
    def _known_sets(self) -> tuple[Places, ...]:
        return tuple(combinations(range(len(self.record.names)), min(self.k, 2)))

    @cached_property
    def consistent(self) -> Marginals:
        """The tables of all sets of k attributes as views: made to agree with each other, without negative cells."""
        sizes = [part.size for part in self.record.parts]
        views = Views(tuple(sizes), tuple(combinations(range(len(sizes)), self.k)))
        raw = np.concatenate([self._unbiased(places).reshape(-1) for places in views.sets])
        return Marginals(
            record=self.record,
            n=self.n,
            population=self.population,
            lineage=self.lineage,
            guarantee=self.guarantee,
            sets=tuple(tuple(self.record.names[place] for place in places) for places in views.sets),
            raw=raw,
            people=views.cells,  # so that every coefficient has the same weight in all views, as it has one estimate
            noises=(self.noise,) * len(np.unique(views.cells)),
            inference="consistent",
        )

    @cached_property
    def _rule(self) -> Parities:
        return Parities(self.record, self.k)

    def _found(self, places: Places) -> Marginal:
        if self.inference == "separate":
            return self._table(places, self._unbiased(places))
        found = self.consistent.marginal([self.record.names[place] for place in places])
        return self._table(places, found.frequencies, found.gap, measured=found.measured)

    def _unbiased(self, places: Places) -> Floats:
        transformed = np.concatenate([[1.0], self.coefficients[self._numbers(places)]])
        return spread(held_cells(walsh(transformed) / len(transformed), self._sizes(places)))

    def _sizes(self, places: Places) -> list[int]:
        return [self.record.parts[place].size for place in places]

    def _numbers(self, places: Places) -> NDArray[np.int64]:
        """The numbers of the coefficients of these attributes, in the order of the cells that they transform to."""
        if len(places) > self.k:
            raise InputError(
                f"people were asked for coefficients of at most {self.k} attributes, not of {len(places)}: ask for a"
                ' smaller marginal, read with inference="consistent", or plan with a larger k'
            )
        widths = widths_of(self.record)
        grids = np.indices([1 << widths[place] for place in places]).reshape(len(places), -1)
        masks = np.zeros((grids.shape[1], len(widths)), dtype=np.int64)
        masks[:, list(places)] = grids.T
        return self._rule.numbers(masks[1:])

    # -- how far it may be off -----------------------------------------------------------------------------------------

    def _scatter(self, places: Places) -> Floats:
        """How the coefficients of some attributes scatter, at the most: 0 of the constant, and of what nobody said."""
        people = self.people[self._numbers(places)]
        each = float((self.noise.p - self.noise.q) ** -2)
        return np.concatenate([[0.0], np.divide(each, people, out=np.zeros(len(people)), where=people > 0)])

    def _asked(self, places: Places) -> bool:
        return len(places) <= self.k

    def _unknown(self, places: Places) -> float:
        people = self.people[self._numbers(places)]
        return int((people == 0).sum()) / (len(people) + 1)  # a coefficient lies between -1 and 1

    def _variance(self, places: Places) -> Floats:
        sizes = self._sizes(places)
        if math.prod(sizes) <= MOST_COVARIANCES and any(size & (size - 1) for size in sizes):
            return np.diag(self._covariance(places)).copy()
        found = self._scatter(places)  # where all combinations of bits are values nothing is spread
        return np.full(math.prod(sizes), found.sum() / len(found) ** 2)

    def _covariance(self, places: Places) -> Floats:
        # The covariance of two combinations of bits depends on which bits differ: the transform of the scatter.
        found, sizes = self._scatter(places), self._sizes(places)
        differing = walsh(found) / len(found) ** 2
        held = held_cells(np.arange(len(found)), sizes).reshape(-1)
        cells: Floats = differing[held[:, None] ^ held[None, :]]
        # A table that is spread loses its mean.
        return np.asarray(cells - cells.mean(axis=0) - cells.mean(axis=1)[:, None] + cells.mean())

    # -- as a result ---------------------------------------------------------------------------------------------------

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many coefficients there are, and for how many of them nobody was asked."""
        missing = int((self.people == 0).sum())
        return {"coefficients": len(self.people), "unanswered": missing, **super().facts(level)}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"coefficients": Unit("count"), "unanswered": Unit("count"), **super().fact_units()}

    def remarks(self) -> list[str]:
        missing = int((self.people == 0).sum())
        said = [f"Nobody was asked for {missing:,} of {len(self.people):,} coefficients: they are taken as 0."]
        return (said if missing else []) + super().remarks()

    def __repr__(self) -> str:
        return f"FourierCoefficients({len(self.record.names)} attributes, {len(self.people)} coefficients, n={self.n})"


@dataclass(frozen=True)
class FourierMarginals(JointStudy[FourierCoefficients]):
    """Marginals of at most k attributes, from Fourier coefficients of which each person reports one (FT, thesis 6.1.5).

    There is a coefficient for each set of bits that touches at most k attributes: of m binary attributes as many as
    sets of 1 to k of them. The thesis counts, for attributes of more values, all sets of so many bits as k attributes
    may have, whichever attributes they are of: 14,893 where 8 attributes of 3 values need 1,789 (`variance_factor`).
    Combinations of bits that are no value come out with what noise gives them. That is spread evenly over the values:
    the least-squares estimate given that nobody holds them, without bias.

    `inference` is "separate", as in the thesis: unbiased tables of at most k attributes; or "consistent": tables
    without negative cells that agree with each other, and larger ones of maximum entropy, as CALM reads its views.

    Guarantee: each person answers one coefficient, one bit, by randomized response that keeps e^eps; which one does not
    depend on the value.

    >>> from veil import simulate
    >>> people = {"sex": ["f", "m"] * 10_000, "smokes": [0, 1] * 10_000, "vegan": [0, 0, 1, 1] * 5_000}
    >>> study = FourierMarginals(4.0, Record.of(sex=["f", "m"], smokes=2, vegan=2), k=2)
    >>> found = simulate(study, people, seed=1)
    >>> len(found.coefficients), abs(found.marginal(["sex", "smokes"]).shares).round(1).tolist()
    (6, [[0.5, 0.0], [0.0, 0.5]])
    """

    epsilon: float
    domain: Record
    k: int = 3
    inference: Reading = "separate"
    marginal: Names | None = None
    given: Names | None = None
    kind: ClassVar[str] = "fourier-marginals"

    def __post_init__(self) -> None:
        self._check()
        if self.inference not in get_args(Reading):
            raise ParameterError(f"inference is one of {', '.join(get_args(Reading))}")
        Parities(self.domain, self.k)  # refuses too many coefficients

    @cached_property
    def _response(self) -> GRR:
        return GRR(self.epsilon, 2)

    @cached_property
    def survey(self) -> Survey:
        """One coefficient per person, drawn with equal chances."""
        return Survey(EachOf(Parities(self.domain, self.k), lambda domain: GRR(self.epsilon, domain)))

    def answer(self, collected: Collection) -> FourierCoefficients:
        """Runs at the collector: all coefficients, unbiased."""
        tally, response = collected.tally(), self._response
        counts = np.array([part.counts for part in tally.parts])
        people = counts.sum(axis=1)
        means = (counts[:, 0] - counts[:, 1]) / np.maximum(people, 1)
        many = f"{len(people)} coefficients"
        return FourierCoefficients(
            record=self.domain,
            n=collected.people,
            population=collected.population,
            lineage=(f"FourierMarginals(epsilon={decimal_text(self.epsilon)}, {many})", self.inference),
            shown=self.marginal,
            given=self.given,
            k=self.k,
            coefficients=means / float(response.p - response.q),
            people=people,
            noise=response.noise,
            inference=self.inference,
        )
