"""Central guarantees of a mechanism after a shuffle, and the largest local epsilon for a central guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from veil.accounting import bounds
from veil.accounting.blanket import Blanket, blanket_of
from veil.accounting.blanket_delta import Bracket, Fakes, delta_of
from veil.accounting.bounds import check_delta, check_users
from veil.errors import ParameterError
from veil.privacy import Guarantee, check_epsilon
from veil.tools.messages import unknown_name
from veil.tools.numbers import critical

if TYPE_CHECKING:
    from veil.mechanisms import Mechanism


Method = Literal["blanket", "clones", "thesis", "small-epsilon", "binary"]
_EXACT = 1e-4
"""Epsilons are searched to this share of themselves."""

_MOST_STEPS, _MOST_TRIES = 60, 8
_COARSE = 1 << 16
"""Points of the transforms that a search makes; its end is certified by a finer one."""


@dataclass(frozen=True)
class ShuffleGuarantee:
    """A local promise, and the central one after a shuffle: towards whoever sees nothing but the shuffled reports.

    The central promise rests on the shuffler: whoever learns from it who sent what is left with the local one. `low`
    is a lower bound on what the method gives, certified too: the two ends show how exact the number is.

    >>> from veil import GRR
    >>> print(amplify(GRR(1.0, 100), users=10_000, delta=1e-6))
    eps = 0.00718339, delta = 1e-6 after a shuffle of 10,000 reports (blanket); eps = 1, exactly without it
    """

    local: Guarantee
    central: Guarantee
    users: int
    method: Method
    low: float
    fakes: int = 0

    @property
    def epsilon(self) -> float:
        """The central epsilon, rounded up."""
        return self.central.epsilon

    @property
    def bracket(self) -> Bracket:
        """Both certified ends of the central epsilon."""
        return Bracket(self.low, self.epsilon)

    @property
    def amplifies(self) -> bool:
        """Whether the shuffle is worth anything: without it, the central promise is the local one."""
        return self.central.delta > 0

    def __str__(self) -> str:
        """In plain words."""
        reports = f"{self.users:,} report{'s' if self.users > 1 else ''}"
        added = f" and {self.fakes:,} fake ones" if self.fakes else ""
        return f"{self.central} after a shuffle of {reports}{added} ({self.method}); {self.local} without it"


def amplify(mechanism: Mechanism, users: int, delta: float, method: Method = "blanket") -> ShuffleGuarantee:
    """The central promise of a mechanism whose reports are shuffled with those of all `users`, up to `delta`.

    "blanket" computes the bound of the mechanism's own privacy blanket between two certified numbers; it is the
    smallest by far. "clones" (2021) is in closed form and holds for any mechanism. "thesis" is the thesis's theorem for
    GRR, local hashing or symmetric unary encoding; "small-epsilon" and "binary" are the other rows of its Table 9.1.
    Nothing is ever promised that is below what the method gives; where it gives no more than the local epsilon, the
    local promise stands, with a delta of 0.

    >>> from veil import OLH
    >>> for method in ("blanket", "clones", "thesis"):
    ...     print(method, round(amplify(OLH(1.0, 1000), 1_000_000, 1e-8, method).epsilon, 4))
    blanket 0.0034
    clones 0.0272
    thesis 0.0391
    """
    _check(users, delta, method)
    _local(mechanism)  # refuses what is none, before anything is computed
    if method == "blanket":
        low, ratio = certified(blanket_of(mechanism), int(users), float(delta))
    else:
        low = _in_closed_form(mechanism, users, delta, method)
        ratio = math.exp(low) * (1 + 2.0**-40)
    return promised(mechanism, users, delta, method, low, ratio)


def promised(
    mechanism: Mechanism, users: int, delta: float, method: Method, low: float, ratio: float, fakes: int = 0
) -> ShuffleGuarantee:
    """The central promise of a ratio that a method gives; where it is no less than the local one, that stands."""
    local = _local(mechanism)
    assert local.ratio is not None
    if ratio >= local.ratio:
        return replace(unshuffled(mechanism, users, method), low=min(low, local.epsilon), fakes=int(fakes))
    central = Guarantee(Fraction(ratio), Fraction(repr(float(delta))), needs_shuffler=True)
    return ShuffleGuarantee(local, central, int(users), method, low, int(fakes))


def unshuffled(mechanism: Mechanism, users: int, method: Method = "blanket") -> ShuffleGuarantee:
    """The promise that a shuffle adds nothing to: the local one, towards everybody."""
    local = _local(mechanism)
    return ShuffleGuarantee(local, local, int(users), method, local.epsilon)


def largest_local(
    make: Callable[[float], Mechanism],
    users: int,
    epsilon: float,
    delta: float,
    method: Method = "blanket",
    cap: float = 12.0,
) -> Mechanism:
    """The mechanism with the largest local epsilon, up to a cap, that keeps a central epsilon after the shuffle.

    `make` gives the mechanism of a local epsilon. There is always one: a local promise of the central epsilon itself
    holds without any shuffle.

    >>> from veil import OLH
    >>> found = largest_local(lambda eps: OLH(eps, 1000, hash_range=100), 1_000_000, 0.1, 1e-9, cap=6.0)
    >>> round(found.epsilon, 3), amplify(found, 1_000_000, 1e-9).epsilon <= 0.1
    (5.614, True)
    """
    _check(users, delta, method)
    if not callable(make):
        raise ParameterError("expected a function that makes the mechanism for each local epsilon")
    target, most = check_epsilon(epsilon), check_epsilon(cap)
    if most <= target:
        return make(most)

    def over(local: float) -> float:
        """How far above the target this local epsilon is: at most 0 where it keeps it."""
        mechanism = make(local)
        if method == "blanket":
            aim = math.exp(target * (1 - _EXACT / 5))  # `amplify` comes back within the target, whatever it rounds
            found = delta_of(blanket_of(mechanism), int(users), aim, _COARSE).high
            return math.log(max(found, 1e-300) / delta)
        try:
            return math.log(_in_closed_form(mechanism, users, delta, method) / target) + 2.0**-30
        except ParameterError:  # a condition of the bound fails: it promises nothing here
            return math.inf

    if over(most) <= 0:
        return make(most)
    low, high = math.log(target), math.log(most)
    while high - low > (_EXACT / 2 if method == "blanket" else 1e-13):
        middle = (low + high) / 2
        low, high = (middle, high) if over(math.exp(middle)) <= 0 else (low, middle)
    return make(max(math.exp(low), target))


def _check(users: int, delta: float, method: str) -> None:
    check_users(users)
    check_delta(delta)
    if method not in get_args(Method):
        raise ParameterError(unknown_name("a method", method, get_args(Method)))


def _local(mechanism: Mechanism) -> Guarantee:
    local = getattr(mechanism, "guarantee", None)
    if not isinstance(local, Guarantee):
        raise ParameterError("expected a mechanism, whose reports are shuffled")
    if local.ratio is None:
        raise ParameterError(f"{mechanism.name} promises nothing on its own, so there is nothing to amplify")
    if local.delta or (local.neighbours, local.scope) != ("replace", "report"):
        raise ParameterError("a shuffle is accounted for one report of a person, with a promise that has no delta")
    return local


def _in_closed_form(mechanism: Mechanism, users: int, delta: float, method: Method) -> float:
    from veil.mechanisms import GRR, SUE
    from veil.mechanisms.oracles.local_hashing import LocalHashing

    epsilon = mechanism.guarantee.epsilon
    if method == "clones":
        return bounds.clones(epsilon, users, delta)
    if method == "small-epsilon":
        return bounds.small_epsilon(epsilon, users, delta)
    if method == "binary":
        if not isinstance(mechanism, GRR) or mechanism.domain.size != 2:
            raise ParameterError('the bound "binary" is for randomized response of one bit: expected GRR of 2 values')
        return bounds.binary(epsilon, users, delta)
    if isinstance(mechanism, GRR):
        return bounds.responses(epsilon, mechanism.domain.size, users, delta)
    if isinstance(mechanism, LocalHashing):
        return bounds.hashing(epsilon, mechanism.buckets, users, delta)
    if isinstance(mechanism, SUE):
        return bounds.unary(epsilon, users, delta)
    raise ParameterError(
        f"the thesis has no theorem for {mechanism.name}: expected GRR, local hashing or SUE; "
        'method="clones" is for any mechanism'
    )


@lru_cache(maxsize=256)
def certified(blanket: Blanket, users: int, delta: float, fakes: Fakes | None = None) -> tuple[float, float]:
    """A lower bound on the blanket's epsilon at this delta, and the ratio e^eps that it certainly keeps."""
    if delta_of(blanket, users, 1.0, _COARSE, fakes).high <= delta:
        return 0.0, 1.0
    most = math.log(float(blanket.ratio))
    points: int | None = _COARSE

    def above(place: float) -> tuple[float, float]:
        """The logarithms of both bounds over delta, at an epsilon of e^place."""
        found = delta_of(blanket, users, math.exp(math.exp(place)), points, fakes)
        return tuple(math.log(max(end, 1e-300) / delta) for end in (found.low, found.high))  # type: ignore[return-value]

    # A coarse search for the epsilon, by secants of ln delta over ln epsilon, which falls ever more steeply.
    end = math.log(most)
    last = end - _EXACT
    place = min(_by_normal_law(blanket, users, delta, fakes), last)
    excess, slope = above(place)[1], -20.0
    for _ in range(_MOST_STEPS):
        moved = min(place - max(min(excess / slope, 1.0), -1.0), last)
        if abs(excess) < _EXACT or moved == place:
            break
        before, excess = excess, above(moved)[1]
        slope = min((excess - before) / (moved - place), -0.05)
        place = moved
    # From there the certified ends, by transforms that are as fine as it takes.
    points = None
    below, excess = above(place)
    upper = lower = place
    while excess > 0:
        upper += max(excess / -slope, _EXACT / 10)
        excess = -math.inf if upper > last else above(upper)[1]
    ratio = (
        math.inf if upper > last else math.exp(math.exp(upper))
    )  # the end is not certified: there is nothing to gain
    for _ in range(_MOST_TRIES):
        if below >= 0:
            return math.exp(lower), ratio
        lower += min(below / -slope, -_EXACT / 10)
        below = above(lower)[0]
    return 0.0, ratio


def _by_normal_law(blanket: Blanket, users: int, delta: float, fakes: Fakes | None) -> float:
    """ln epsilon, as if the sum of the blanket's reports were normal: where a search begins."""
    drawn = float(users * blanket.gamma + (fakes.count * fakes.share if fakes else 0))
    deviation = (float(blanket.ratio) - 1) * math.sqrt(2 * float(blanket.gamma * blanket.apart) / drawn)
    return math.log(deviation * max(critical(min(delta, 0.4)), 0.1))
