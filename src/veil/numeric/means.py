"""Means from one round with two mechanisms at once, and variances from two rounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from veil.domain import DomainLike, Numeric
from veil.errors import ParameterError
from veil.mechanisms import MeanMechanism, Piecewise, StochasticRounding
from veil.privacy import Guarantee, exp_below, exp_near
from veil.results.mean import Mean, MeanAndVariance
from veil.study import Collection, OneRound, Round, Rounds, Study
from veil.survey import OneOf, Question, Survey
from veil.view import Identity, SquaredDistance, View

_SHARES = 1 << 16


@dataclass(frozen=True)
class MeanOf(OneRound[Mean]):
    """A mean and nothing else, through one mechanism. Guarantee: the mechanism's.

    >>> from veil import Interval, StochasticRounding, simulate
    >>> found = simulate(MeanOf(StochasticRounding(2.0, Interval(0, 100))), [30.0] * 20_000, seed=1)
    >>> abs(found.value - 30) < 4 * found.stderr
    True
    """

    mechanism: MeanMechanism
    view: View | None = None
    kind: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, MeanMechanism):
            raise ParameterError("a mean is asked for through StochasticRounding or Piecewise")

    @cached_property
    def survey(self) -> Survey:
        return Survey(Question(self.mechanism, self.view))

    def answer(self, collected: Collection) -> Mean:
        return self.mechanism.estimate(collected.tally().part(0), population=collected.population)


@dataclass(frozen=True, init=False)
class HybridMean(OneRound[Mean]):
    """A mean, asked through Piecewise by some people and through StochasticRounding by the others, at random.

    The hybrid mechanism of Wang et al., ICDE 2019: Piecewise with probability 1 - e^(-eps / 2), here in parts of 2^16,
    which makes the variance the same for all values and smaller in the worst case than either has; below eps = 0.61
    StochasticRounding alone. With a view, `domain` is what the view shows.

    Guarantee: the larger ratio of the two, at most e^eps exactly. Each report is unbiased, so their mean is.

    >>> from veil import Interval, simulate
    >>> hybrid = HybridMean(epsilon=2.0, domain=Interval(0, 100))
    >>> hybrid.shares, hybrid.guarantee.within(2.0)
    ((41427, 24109), True)
    >>> mean = simulate(hybrid, [30.0] * 20_000, seed=1)
    >>> abs(mean.value - 30) < 4 * mean.stderr
    True
    """

    epsilon: float
    domain: Numeric
    view: View
    kind: ClassVar[str] = "hybrid-mean"

    def __init__(self, epsilon: float, domain: DomainLike, view: View | None = None) -> None:
        rounding = StochasticRounding(epsilon, domain)
        object.__setattr__(self, "epsilon", rounding.epsilon)
        object.__setattr__(self, "domain", rounding.domain)
        object.__setattr__(self, "view", Identity(rounding.domain) if view is None else view)

    @cached_property
    def shares(self) -> tuple[int, int]:
        """Of 2^16 people, how many answer through Piecewise and how many through StochasticRounding."""
        # Wang et al. give eps* = ln((-5 + 2 (6353 - 405 sqrt(241))^(1/3) + 2 (6353 + 405 sqrt(241))^(1/3)) / 27), about
        # 0.61: e^(eps*) is the real root of 9 y^3 + 5 y^2 - 13 y = 49, which is decided in fractions.
        power = exp_below(self.epsilon)
        if 9 * power**3 + 5 * power**2 - 13 * power <= 49:
            return 0, _SHARES
        piecewise = round(_SHARES * (1 - exp_near(-Fraction(self.epsilon) / 2)))  # everybody from eps = 24 on
        return piecewise, _SHARES - piecewise

    @cached_property
    def mechanisms(self) -> tuple[MeanMechanism, ...]:
        """What people answer through, in the order of the survey's questions."""
        kinds = zip(self.shares, (Piecewise, StochasticRounding), strict=True)
        return tuple(kind(self.epsilon, self.domain) for share, kind in kinds if share)

    @cached_property
    def survey(self) -> Survey:
        questions = [Question(mechanism, self.view) for mechanism in self.mechanisms]
        if len(questions) == 1:
            return Survey(questions[0])
        return Survey(OneOf(*zip(filter(None, self.shares), questions, strict=True)))

    def answer(self, collected: Collection) -> Mean:
        """Runs at the collector: the mean over all people's reports, unbiased and never clipped."""
        parts = collected.tally().parts
        first, *others = (asked.moments(part) for asked, part in zip(self.mechanisms, parts, strict=True))
        rounding = self.mechanisms[-1]
        lineage = f"HybridMean({' or '.join(asked.signature for asked in self.mechanisms)})"
        return sum(others, start=first).mean(rounding, lineage, collected.population)

    def variance(self, n: int, value: Any = None) -> float:
        """Variance of the mean estimated from n people that hold `value`; without it, the largest of all values.

        The largest is that of an end or of the middle, but for the noise of one of Piecewise's steps.
        """
        rounding = self.mechanisms[-1]
        places = [Fraction(0), Fraction(1, 2)] if value is None else [rounding.place_of(value)]
        return rounding.in_numbers(max(self._spread(place) for place in places), n)

    def _spread(self, place: Fraction) -> Fraction:
        """The variance of one unbiased report of a person at a place between the first cell (0) and the last (1)."""
        parts = zip(filter(None, self.shares), self.mechanisms, strict=True)
        return sum((Fraction(share, _SHARES) * asked.spread(place) for share, asked in parts), start=Fraction(0))


@dataclass(frozen=True, init=False)
class TwoPhaseVariance(Study):
    """A mean from one half of the people, then the mean squared distance to it from the other half.

    Li et al., SIGMOD 2020, section 6. `mechanism` is StochasticRounding, Piecewise or HybridMean; each person answers
    once, with all of epsilon. The estimated mean is moved into the domain before it is told to the second half.

    Bias: distances are to the estimate, not to the mean, so the variance is too large by (mean - estimate)^2: on
    average, by the first round's squared standard error. It is not taken off.

    >>> from veil import Interval, Piecewise, simulate
    >>> found = simulate(TwoPhaseVariance(Piecewise, 4.0, Interval(0, 10)), [3.0, 7.0] * 20_000, seed=1)
    >>> abs(found.mean.value - 5) < 0.1, abs(found.std - 2) < 0.1
    (True, True)
    """

    mechanism: type[MeanMechanism] | type[HybridMean]
    epsilon: float
    domain: Numeric
    kind: ClassVar[str] = "two-phase-variance"

    def __init__(self, mechanism: type[MeanMechanism] | type[HybridMean], epsilon: float, domain: DomainLike) -> None:
        if not isinstance(mechanism, type) or not issubclass(mechanism, (MeanMechanism, HybridMean)):
            raise ParameterError("a mean is asked for through StochasticRounding, Piecewise or HybridMean")
        asked = mechanism(epsilon, domain)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "epsilon", asked.epsilon)
        object.__setattr__(self, "domain", asked.domain)
        low, high = asked.domain.ends
        for centre in (low, low / 2 + high / 2):  # the longest and the shortest reach: refused now, not halfway
            SquaredDistance(asked.domain, centre)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.epsilon)

    def rounds(self) -> Rounds:
        asked = self._asking(Identity(self.domain))
        mean = asked.read((yield Round(asked.survey, Fraction(1, 2))))
        low, high = self.domain.ends
        asked = self._asking(SquaredDistance(self.domain, min(max(mean.value, low), high)))
        return MeanAndVariance(mean, asked.read((yield Round(asked.survey, Fraction(1, 2)))))

    def _asking(self, view: View) -> MeanOf | HybridMean:
        """The study of the mean of what a view shows."""
        if issubclass(self.mechanism, HybridMean):
            return self.mechanism(self.epsilon, view.domain, view)
        return MeanOf(self.mechanism(self.epsilon, view.domain), view)
