"""Padding-and-sampling (PSFO, thesis 5.2): one item of a padded set, through a frequency oracle.

GRR may use more than its eps, because the sampling hides which item was reported: exactly ln(l (e^eps - 1) + 1). Other
oracles may not, unless a small delta is asked for, and then OLH may use a little more (thesis 5.5.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from veil.domain import DomainLike, Items
from veil.errors import ParameterError
from veil.mechanisms import GRR, OLH, PureOracle
from veil.privacy import Guarantee, check_epsilon, exp_below, largest_epsilon, log_above
from veil.results.estimate import Estimate
from veil.study import Collected, OneRound
from veil.survey import Question, Survey
from veil.tools.arguments import is_int, own_ints
from veil.view import ItemSets, SampleContained, SampleItem, View

__all__ = ["PSFO", "Adap", "Oracle", "as_items", "collisions", "hashed_load"]


class Adap:
    """In the place of an oracle: GRR or OLH, whichever has the smaller variance there (thesis 5.2.4)."""


Oracle = type[PureOracle] | type[Adap]


@dataclass(frozen=True, init=False)
class PSFO(OneRound[Estimate]):
    """Padding-and-sampling: pad the set to `length`, draw one item, report it through an oracle; multiply by `length`.

    `oracle` is a pure oracle's class, or Adap. With candidates (sets of items' codes), what is drawn is one of those
    that the set contains, and estimates are labelled by their numbers. An empty set answers with a dummy. Items of sets
    with more than `length` are under-counted.

    Guarantee: e^eps exactly. Behind GRR the inner eps is the amplified one of Theorem 5.2.1. With a `delta`, OLH uses
    the larger eps of Theorem 5.5.1, and the promise is (eps, delta): see `guarantee`. That delta, and nothing else in
    veil, relies on the hash behaving as a random function.

    >>> from veil import simulate
    >>> asked = PSFO(3, GRR, epsilon=2.0, domain=5)
    >>> asked.guarantee.within(2.0), round(asked.mechanism.epsilon, 3)
    (True, 3.004)
    >>> found = simulate(asked, [[0, 1]] * 6_000 + [[]] * 4_000, seed=1)
    >>> bool(abs(found.frequencies[0] - 0.6) < 4 * found.stderr[0])
    True
    """

    length: int
    oracle: Oracle
    epsilon: float
    domain: Items
    candidates: ItemSets | None
    delta: float
    kind: ClassVar[str] = "psfo"

    def __init__(
        self,
        length: int,
        oracle: Oracle,
        epsilon: float,
        domain: DomainLike,
        candidates: ItemSets | None = None,
        delta: float = 0.0,
    ) -> None:
        if not isinstance(oracle, type) or not issubclass(oracle, (PureOracle, Adap)):
            raise ParameterError("padding-and-sampling goes through the class of a pure oracle, or Adap")
        if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
            raise ParameterError("delta is at least 0 and below 1")
        if delta and not issubclass(oracle, (OLH, Adap)):
            raise ParameterError("a delta helps OLH only (and Adap, which may become OLH)")
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "oracle", oracle)
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        object.__setattr__(self, "domain", as_items(domain))
        object.__setattr__(self, "candidates", candidates)
        object.__setattr__(self, "delta", float(delta))
        checked = self.view  # refuses a wrong length and wrong candidates
        object.__setattr__(self, "candidates", checked.candidates if isinstance(checked, SampleContained) else None)
        own_ints(self, "length")

    @cached_property
    def view(self) -> View:
        """What a person is asked about."""
        if self.candidates is None:
            return SampleItem(self.domain, self.length)
        return SampleContained(self.domain, self.candidates, self.length)

    @cached_property
    def mechanism(self) -> PureOracle:
        """The oracle behind the view, with its inner eps."""
        if not issubclass(self.oracle, Adap):
            return self._built(self.oracle)
        direct = self._built(GRR)
        hashed = self._built(OLH)
        return direct if direct.variance(1) <= hashed.variance(1) else hashed

    def _built(self, kind: type[PureOracle]) -> PureOracle:
        if kind.disjoint:
            return kind(self.view.inner_epsilon(self.epsilon, disjoint=True), self.view.domain)
        if issubclass(kind, OLH) and self._load < self.length:
            inner = _hashed_epsilon(self.epsilon, self.length, self._load)
            return OLH(inner, self.view.domain, hash_range=_hash_range(inner))
        return kind(self.epsilon, self.view.domain)

    @cached_property
    def _load(self) -> int:
        """How many items of a set may fall into one bucket, but for a probability of delta (l' in the thesis)."""
        return hashed_load(self.epsilon, self.length, self.delta)

    @cached_property
    def survey(self) -> Survey:
        return Survey(Question(self.mechanism, self.view))

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one report; with a delta in it where one was asked for and used.

        Theorem 5.5.1 speaks of sets of at most `length` items. It holds for larger ones too: sampling from one is
        sampling from a random part of it of `length` items, and a mixture of (eps, delta) is (eps, delta).
        """
        mechanism = self.mechanism
        inner = mechanism.guarantee.ratio
        if not isinstance(mechanism, OLH) or self._load == self.length or inner is None:
            return self.survey.guarantee
        ratio = 1 + (inner - 1) * Fraction(self._load, self.length)
        return Guarantee(ratio, delta=collisions(mechanism, self.length, self._load))

    def answer(self, collected: Collected) -> Estimate:
        """Runs at the collector: how many people hold each item, or all items of each candidate."""
        found = self.survey.estimate_question(collected.tally(), 0, population=collected.population)
        assert isinstance(found, Estimate)
        return found


def as_items(domain: Any) -> Items:
    """Items as they are; a universe, its size or its labels as sets of it."""
    return domain if isinstance(domain, Items) else Items(domain)


def hashed_load(epsilon: float, length: int, delta: float) -> int:
    """The smallest l' that Theorem 5.5.1 allows: more than l' of l items share a bucket with probability delta at most.

    With l' = l nothing is gained, and delta is not needed.

    >>> [hashed_load(2.0, 10, delta) for delta in (0.0, 1e-9, 1e-3)]
    [10, 9, 5]
    """
    if not is_int(length) or length < 1:
        raise ParameterError("a padding length is at least 1")
    for load in range(1, length if delta else 1):
        inner = _hashed_epsilon(epsilon, length, load)
        if collisions(OLH(inner, 2, hash_range=_hash_range(inner)), length, load) <= Fraction(delta):
            return load
    return int(length)


def collisions(oracle: OLH, length: int, load: int) -> Fraction:
    """A bound on the probability that more than `load` of `length` items fall into one bucket (thesis 5.5.1)."""
    return math.comb(length, load + 1) * oracle.bucket_moment(load + 1)


def _hashed_epsilon(epsilon: float, length: int, load: int) -> float:
    """ln((l / l') (e^eps - 1) + 1), rounded toward privacy."""
    part, whole = Fraction(load, length), exp_below(epsilon)
    return largest_epsilon(log_above(1 + (whole - 1) / part), lambda ratio: 1 + (ratio - 1) * part <= whole)


def _hash_range(inner: float) -> int:
    return math.ceil(math.exp(inner) + 1)  # the theorem needs it rounded up
