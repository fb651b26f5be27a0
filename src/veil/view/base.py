"""The base class of views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import NDArray

from veil.domain import Domain, domain_from_json
from veil.entropy import Source
from veil.errors import WireError
from veil.privacy import Guarantee, exp_below, largest_epsilon, log_above
from veil.tools.json_documents import Json

Codes1 = NDArray[Any]
Moment = Callable[[int], Fraction]
"""The probability that a given number of values fall into one bucket of a random hash function."""


class View(ABC):
    """One way to look at a value. Every view stores the domain it looks at as its first field, `held`."""

    kind: str
    held: Domain
    load: int | None = None
    """How many elements of a held set may share a bucket of a mechanism that hashes; None where nothing says so."""
    random: ClassVar[bool] = False
    """Whether it draws: what a person sees of the same value then differs from time to time."""

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """What the view shows."""

    @abstractmethod
    def apply(self, codes: Any, source: Source) -> Codes1:
        """Runs on the device: from codes of the held domain to codes of the shown one."""

    @property
    def scale(self) -> Fraction:
        """What an estimated frequency is multiplied by to speak of held values."""
        return Fraction(1)

    def share(self, *, disjoint: bool) -> Fraction:
        """How much of what the view shows can depend on any one part of the held value: all, unless it samples.

        `disjoint` says that a report of the mechanism behind supports one value at most, as in GRR.
        """
        return Fraction(1)

    def outer(self, inner: Guarantee, *, disjoint: bool = False, moment: Moment | None = None) -> Guarantee:
        """The guarantee seen from the held value, when the mechanism behind the view has `inner`.

        A ratio r becomes 1 + (r - 1) share. `moment` stands for a mechanism that hashes values independently into
        buckets, and tells the probability that a given number of them fall into the same.
        """
        if inner.ratio is None or inner.delta:  # amplification is proved for pure promises; others pass as they are
            return inner
        return replace(inner, ratio=1 + (inner.ratio - 1) * self.share(disjoint=disjoint))

    def inner_ratio(self, ratio: Fraction, *, disjoint: bool) -> Fraction:
        """The ratio that the mechanism behind the view may have, so that the held value is promised `ratio`."""
        return 1 + (ratio - 1) / self.share(disjoint=disjoint)

    def inner_epsilon(self, epsilon: float, *, disjoint: bool) -> float:
        """The largest epsilon that the mechanism behind the view may have; exactly, unlike the formula in doubles."""
        most = self.inner_ratio(exp_below(epsilon), disjoint=disjoint)
        return largest_epsilon(log_above(most), lambda ratio: ratio <= most)

    @property
    def values(self) -> Domain:
        """The domain that labels what is estimated: the shown one, less what only pads it."""
        return self.domain

    @abstractmethod
    def to_json(self) -> Json:
        """The view as it stands in a task."""


def held_domain(document: Any, *kinds: type[Any]) -> Any:
    """The domain that a task's view looks at, if it is one of these."""
    domain = domain_from_json(document)
    if not isinstance(domain, kinds):
        raise WireError(f"this view looks at {' or '.join(kind.__name__ for kind in kinds)}")
    return domain
