"""Padding-and-sampling (PSFO, thesis 5.2), and the choice of its padding length (thesis 5.3.1, steps 2 and 4).

Each person reports one random item of a padded set through a frequency oracle. The sampling hides which item was
reported. GRR may therefore use a larger epsilon, exactly ln(l (e^eps - 1) + 1). Other oracles may not, except that OLH
may use a slightly larger one if a small delta is allowed (thesis 5.5.1).

`read_sizes` estimates the distribution of set sizes, from which the padding length L and the update factor follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike, Items
from veil.errors import ParameterError
from veil.mechanisms import GRR, OLH, PureOracle
from veil.mechanisms.best_oracle import better
from veil.privacy import check_epsilon
from veil.results.estimate import Estimate
from veil.study import Collection, OneRound
from veil.survey import Question, Survey
from veil.tools.numbers import convert_int_fields, critical, is_int
from veil.view import MOST_LOAD, ItemSets, SampleContained, SampleItem, View

Floats = NDArray[np.float64]
SizeRule = Literal["falling", "continued", "threshold"]
SIZES: tuple[SizeRule, ...] = ("falling", "continued", "threshold")
_ALPHA = 0.05
_PERCENTILE = 0.9
_CLEAR = 2.0  # standard errors above 0 that a pool of the tail needs
_SLOWEST = 0.98  # a tail falls at least by so much from size to size


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
    the larger eps of Theorem 5.5.1, and the promise is (eps, delta); the task says so by its view's `load`. That delta,
    and nothing else in veil, relies on the hash behaving as a random function.

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
        checked = self._view()  # refuses a wrong length and wrong candidates
        object.__setattr__(self, "candidates", checked.candidates if isinstance(checked, SampleContained) else None)
        convert_int_fields(self, "length")

    def _view(self, load: int | None = None) -> SampleItem | SampleContained:
        if self.candidates is None:
            return SampleItem(self.domain, self.length, load)
        return SampleContained(self.domain, self.candidates, self.length, load)

    @cached_property
    def survey(self) -> Survey:
        if not issubclass(self.oracle, Adap):
            return Survey(self._asked(self.oracle))
        direct, hashed = self._asked(GRR), self._asked(OLH)
        return Survey(direct if better(direct.pure, hashed.pure) is direct.pure else hashed)

    def _asked(self, kind: type[PureOracle]) -> Question:
        if issubclass(kind, OLH) and self._load < self.length:
            view = self._view(self._load)
            return Question(_hashed(self.epsilon, view, view.domain), view)
        view = self._view()
        inner = view.inner_epsilon(self.epsilon, disjoint=True) if kind.disjoint else self.epsilon
        return Question(kind(inner, view.domain), view)

    @cached_property
    def _load(self) -> int:
        """How many items of a set may fall into one bucket, but for a probability of delta (l' in the thesis)."""
        return hashed_load(self.epsilon, self.length, self.delta)

    @property
    def view(self) -> View:
        """What a person is asked about."""
        return self.survey.questions[0].view

    @property
    def mechanism(self) -> PureOracle:
        """The oracle behind the view, with its inner eps."""
        return self.survey.questions[0].pure

    def answer(self, collected: Collection) -> Estimate:
        """Runs at the collector: how many people hold each item, or all items of each candidate."""
        found = self.survey.estimate_question(collected.tally(), 0, population=collected.population)
        assert isinstance(found, Estimate)
        return found


def as_items(domain: Any) -> Items:
    """Items as they are; a universe, its size or its labels as sets of it."""
    return domain if isinstance(domain, Items) else Items(domain)


def hashed_load(epsilon: float, length: int, delta: float) -> int:
    """The smallest l' that Theorem 5.5.1 allows: more than l' of l items share a bucket with probability delta at most.

    With l' = l nothing is gained, and delta is not needed; nor is more gained than a view's `load` can say.

    >>> [hashed_load(2.0, 10, delta) for delta in (0.0, 1e-9, 1e-3)]
    [10, 9, 5]
    """
    if not is_int(length) or length < 1:
        raise ParameterError("a padding length is at least 1")
    for load in range(1, min(length, MOST_LOAD + 1) if delta else 1):
        view = SampleItem(Items(2), length, load)
        if view.collisions(_hashed(epsilon, view, 2).bucket_moment) <= Fraction(delta):
            return load
    return int(length)


def _hashed(epsilon: float, view: SampleItem | SampleContained, domain: DomainLike) -> OLH:
    """OLH behind a view with a load: its eps is ln((l / l') (e^eps - 1) + 1)."""
    inner = view.inner_epsilon(epsilon, disjoint=False)
    return OLH(inner, domain, hash_range=math.ceil(math.exp(inner) + 1))  # the theorem needs it rounded up


@dataclass(frozen=True)
class SetSizes:
    """The share of people with each size of 1, 2, ...; those with nothing are left out."""

    shares: tuple[float, ...]

    @property
    def length(self) -> int:
        """L, the smallest size with a cumulative share above 0.9; 1 where nothing stood out of the noise.

        >>> SetSizes((0.3, 0.1, 0.05, 0.01)).length
        3
        """
        running = np.cumsum(self.shares)
        return int(np.argmax(running > _PERCENTILE * running[-1])) + 1 if running[-1] > 0 else 1

    def update(self, length: int) -> float:
        """u'(L): all items held over those that a sample padded to L stands for (5.5).

        >>> SetSizes((0.5, 0.0, 0.5)).update(1)
        2.0
        """
        sizes = np.arange(1, len(self.shares) + 1)
        whole = float(np.dot(sizes, self.shares))
        missed = float(np.dot(np.maximum(sizes - length, 0), self.shares))
        return whole / (whole - missed) if whole > missed else 1.0


def read_sizes(estimate: Estimate, rule: SizeRule = "falling") -> SetSizes:
    """Runs at the collector: sizes from an estimate over 0, 1, ... most, unbiased and noisy.

    "threshold" is the thesis's: estimates below the significance threshold (3.13) become 0. That loses the long tail
    that sizes have, so that L is too short, and one false size far out spoils u'(L).

    "falling" takes it that shares fall from the most frequent size on. It fits the closest such shares
    (isotonic regression), which pools neighbours until they fall, up to the first pool whose mean is not two of its own
    standard errors above 0: m pooled sizes have an error smaller by sqrt(m). Sizes before the most frequent one go by
    the threshold; where none is significant, shares are taken to fall from size 1 on.

    What lies beyond is too faint to see, and may still be much of what people hold. "continued" adds a geometric tail,
    at the rate at which the fitted shares fell last, as far as the estimates there leave room. "falling" has the
    smaller error for items, "continued" for sets of them, of which some people contain very many. How far u'(L)
    is in doubt by any reading: `veil.itemsets.missed`.

    >>> from veil import GRR, simulate
    >>> read_sizes(simulate(GRR(2.0, 6), [1] * 5_000 + [2] * 2_000 + [3] * 2_000 + [0] * 1_000, seed=1)).length
    3
    """
    if rule not in SIZES:
        raise ParameterError(f"sizes are read by one of {', '.join(SIZES)}")
    found = estimate.frequencies[1:]
    noise = float(np.sqrt(estimate.noise.variance(0.0) / estimate.effective))
    kept = np.where(found > critical(_ALPHA / len(found)) * noise, found, 0.0)
    mode = int(np.argmax(kept))
    if rule == "threshold":
        return SetSizes(tuple(kept.tolist()))
    body, tail = _falling(found[mode:], noise)
    return SetSizes((*kept[:mode].tolist(), *(body if rule == "falling" else body + tail).tolist()))


def _falling(found: Floats, noise: float) -> tuple[Floats, Floats]:
    """The closest shares that do not rise, while they stand out of the noise; and a geometric tail where not."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(found, increasing=False)
    shares: Floats = fit.x.copy()
    tail = np.zeros(len(found))
    weak = np.flatnonzero(shares[fit.blocks[:-1]] < _CLEAR * noise / np.sqrt(np.diff(fit.blocks)))
    if len(weak):
        end = int(fit.blocks[weak[0]])
        beyond = found[end:]
        room = float(beyond.sum()) + noise * math.sqrt(len(beyond))
        shares[end:], tail[end:] = 0.0, _continued(shares[:end], len(beyond))
        tail *= min(1.0, max(room, 0.0) / float(tail.sum() or 1.0))
    return shares, tail


def _continued(shares: Floats, count: int) -> Floats:
    """`count` more shares, falling as the last third of these does after the middle one."""
    third = len(shares) // 3
    if not third:
        return np.zeros(count)
    last, before = float(shares[-third:].mean()), float(shares[-2 * third : -third].mean())
    rate = min((last / before) ** (1 / third), _SLOWEST)
    steps = np.arange(1, count + 1) + (third - 1) / 2  # from the middle of the last third
    return np.asarray(last * rate**steps)
