"""Hierarchical histograms: each person is asked about one level of a tree over the buckets.

`Hierarchy` combines the levels to one distribution by least squares: HH (Kulkarni et al., VLDB 2019), and HH-ADMM (Li
et al., SIGMOD 2020, section 4.3), which has no negative masses. `HaarHierarchy` compares the halves of the nodes of a
binary tree by Hadamard randomized response: HaarHRR (Kulkarni et al., 2019).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veil.domain import Interval, Numeric
from veil.errors import EmptyError, MismatchError, ParameterError
from veil.mechanisms import HaarResponse, Mechanism
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.numeric.bands import difference_bands, level_bands, level_variances
from veil.numeric.distributions import MOST_BUCKETS, DistributionStudy, check_bands, numeric_domain, whole, worth
from veil.privacy import check_epsilon, decimal_text
from veil.results.bands.levels import LevelBands
from veil.results.distribution import Distribution, Fit
from veil.results.estimate import Estimate
from veil.results.mean import Coefficients
from veil.study import Collection, TallyCollection
from veil.survey import OneOf, Public, Question, Survey, SurveyTally
from veil.tools.numbers import is_int, is_number
from veil.tree import Tree, admm, consistent, from_differences, project
from veil.view import Ancestor

Method = Literal["exact", "admm", "consistent"]
_BUCKETS = 1024


@dataclass(frozen=True, init=False)
class LevelStudy(DistributionStudy):
    """A tree over buckets of a numeric domain, and one question per level, drawn with equal chances.

    An Interval is cut into `buckets`, whatever its own cells; the buckets of Integers are the integers. `public`
    columns come beside the reports. Intervals follow from the levels without simulated collections: `bands` says only
    whether there are any, and 0 that there are none.
    """

    epsilon: float
    domain: Numeric
    buckets: int
    bands: int = 200
    public: tuple[Public, ...] = ()

    def __init__(
        self,
        epsilon: float,
        domain: Any,
        buckets: int | None = None,
        *,
        bands: int = 200,
        public: Sequence[Public] = (),
    ) -> None:
        object.__setattr__(self, "bands", check_bands(bands))
        object.__setattr__(self, "public", tuple(public))
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        held = numeric_domain(domain)
        if isinstance(held, Interval):
            held = replace(held, cells=_BUCKETS if buckets is None else buckets)
        elif buckets is not None and (not is_int(buckets) or buckets != held.size):
            raise ParameterError("the buckets of Integers are the integers: leave `buckets` out")
        if held.size > MOST_BUCKETS:
            raise ParameterError(f"a hierarchy has at most {MOST_BUCKETS} buckets: take an Interval, or fewer of them")
        if held.size < 2:
            raise ParameterError("a domain of one bucket has nothing to ask")
        object.__setattr__(self, "domain", held)
        object.__setattr__(self, "buckets", held.size)

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The tree over the buckets; level 0 is its root."""

    @abstractmethod
    def _mechanism(self, view: Ancestor) -> Mechanism:
        """What a level is asked through."""

    @cached_property
    def survey(self) -> Survey:
        """One of the levels 1 .. height, with equal chances: question i asks about level i + 1."""
        views = [Ancestor(self.domain, self.tree.branching, level + 1) for level in range(self.tree.height)]
        return Survey(OneOf(*((1, Question(self._mechanism(view), view)) for view in views)), self.public)

    def levels(self, tally: SurveyTally, population: int | None = None) -> list[Any]:
        """Runs at the collector: what was found at each level below the root, the coarsest first; unbiased.

        `population` is the number of people that the reports are a random sample of.
        """
        own = whole(TallyCollection(self.survey, tally).tally())
        if len(own.parts) != self.tree.height:
            raise MismatchError("this tally does not have the levels of its tree")
        for level, part in enumerate(own.parts, start=1):
            if not part.people:
                raise EmptyError(f"nobody was asked about level {level} of {self.tree.height}: too few people")
        return list(self.survey.estimate(own, population))

    def _distribution(
        self, masses: NDArray[np.float64], collected: Collection, how: str, fit: Fit | None = None
    ) -> Distribution:
        """Masses of the buckets as a result."""
        name = f"{type(self).__name__}(epsilon={decimal_text(self.epsilon)}, branching={self.tree.branching})"
        return Distribution(
            self.domain,
            np.arange(self.buckets + 1),
            masses,
            n=collected.people,
            population=collected.population,
            effective=worth(collected.tally()),
            lineage=(name, how),
            fit=fit,
        )


@dataclass(frozen=True, init=False)
class Hierarchy(LevelStudy):
    """A tree that branches in `branching`, each level asked through GRR or OLH, whichever has the smaller variance.

    Guarantee: every level keeps e^eps and which one is asked does not depend on the value. Any number of buckets.

    `method` says how the levels are read together:

    - "exact": no negative masses, and they add up to 1: the minimum of HH-ADMM's problem, without iterating.
    - "admm": the same by the paper's iteration; `fit` says how it went.
    - "consistent": HH, least squares weighted by the levels' variances. Linear and unbiased, so masses may be
      negative, and add up to 1 only roughly unless `total=1.0` is given.

    `weighted` divides the squares of "exact" and "admm" by the levels' variances too; the paper does not.

    >>> from veil import Interval, simulate
    >>> study = Hierarchy(epsilon=3.0, domain=Interval(0.0, 10.0), buckets=40)
    >>> study.survey.guarantee.within(3.0), [question.mechanism.name for question in study.survey.questions]
    (True, ['GRR', 'GRR', 'GRR'])
    >>> found = simulate(study, [2.0] * 6000 + [7.0] * 14000, seed=1)
    >>> round(found.range(5.0, 10.0), 1), found.proper
    (0.7, True)
    """

    branching: int = 4
    method: Method = "exact"
    weighted: bool = False
    total: float | None = None
    kind: ClassVar[str] = "hierarchy"

    def __init__(
        self,
        epsilon: float,
        domain: Any,
        buckets: int | None = None,
        branching: int = 4,
        method: Method = "exact",
        *,
        weighted: bool = False,
        total: float | None = None,
        bands: int = 200,
        public: Sequence[Public] = (),
    ) -> None:
        super().__init__(epsilon, domain, buckets, bands=bands, public=public)
        object.__setattr__(self, "branching", Tree(self.buckets, branching).branching)
        if method not in get_args(Method):
            raise ParameterError(f"a method is one of {', '.join(get_args(Method))}")
        if method == "consistent" and weighted:
            raise ParameterError("consistent is weighted by the levels' variances anyway")
        if method != "consistent" and total is not None:
            raise ParameterError("a total can be given for consistent only; elsewhere it is 1")
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "weighted", bool(weighted))
        if total is not None and not is_number(total):
            raise ParameterError("a total is a finite number")
        object.__setattr__(self, "total", None if total is None else float(total))

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.buckets, self.branching)

    def _mechanism(self, view: Ancestor) -> Mechanism:
        return direct_or_hashed(self.epsilon, view.domain)

    def levels(self, tally: SurveyTally, population: int | None = None) -> list[Estimate]:
        """Runs at the collector: one Estimate per level below the root, the coarsest first; unbiased, never clipped."""
        return super().levels(tally, population)

    def distribution(self, collected: Collection) -> Distribution:
        """Runs at the collector: the distribution that fits all levels best."""
        levels = self.levels(collected.tally(), collected.population)
        values = [np.ones(1), *(level.frequencies for level in levels)]
        variances = level_variances(levels)
        weights = [1.0, *(min(variances) / variance for variance in variances)] if self.weighted else None
        fit = None
        if self.method == "consistent":
            masses = consistent(self.tree, values, [np.inf, *variances], total=self.total)[-1]
        elif self.method == "exact":
            masses = project(self.tree, values, weights)[-1]
        else:
            found = admm(self.tree, values, weights)
            masses, fit = found.values[-1], Fit(found.iterations, found.converged)
        total = "" if self.total is None else f", total {self.total:g}"
        how = self.method + (", weighted" if self.weighted else "") + total
        return self._distribution(masses, collected, how, fit)

    def draw(self, collected: Collection, found: Distribution) -> LevelBands:
        """Runs at the collector: intervals from the levels, which are unbiased; nobody is simulated."""
        return level_bands(found, self.tree, self.levels(collected.tally(), collected.population))


@dataclass(frozen=True, init=False)
class HaarHierarchy(LevelStudy):
    """A binary tree; each person says of one level, drawn at random, on which side of its parent their node lies.

    Guarantee: every level is HaarResponse with e^eps, and which one is asked does not depend on the value. Estimates
    are unbiased and add up to 1; masses may be negative. Any number of buckets.

    >>> from veil import Interval, simulate
    >>> study = HaarHierarchy(epsilon=3.0, domain=Interval(0.0, 10.0), buckets=40)
    >>> found = simulate(study, [2.0] * 6000 + [7.0] * 14000, seed=1)
    >>> round(found.range(5.0, 10.0), 1), round(float(found.masses.sum()), 6)
    (0.7, 1.0)
    """

    kind: ClassVar[str] = "haar-hierarchy"

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.buckets, 2)

    def _mechanism(self, view: Ancestor) -> Mechanism:
        return HaarResponse(self.epsilon, view.domain)

    def levels(self, tally: SurveyTally, population: int | None = None) -> list[Coefficients]:
        """Runs at the collector: the differences of each level's pairs, the coarsest level first."""
        return super().levels(tally, population)

    def distribution(self, collected: Collection) -> Distribution:
        """Runs at the collector: from the root's 1 down, left = (parent + c) / 2 and right = (parent - c) / 2."""
        levels = self.levels(collected.tally(), collected.population)
        masses = from_differences(self.tree, [level.differences for level in levels])
        return self._distribution(masses, collected, "haar")

    def draw(self, collected: Collection, found: Distribution) -> LevelBands:
        """Runs at the collector: intervals from the differences, which are unbiased; nobody is simulated."""
        return difference_bands(found, self.tree, self.levels(collected.tally(), collected.population))
