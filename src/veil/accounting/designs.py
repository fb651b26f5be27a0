"""The choice of an oracle for shuffled reports: the least variance for a central guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from veil.accounting.amplification import ShuffleGuarantee, amplify, largest_local, unshuffled
from veil.accounting.bounds import check_delta, check_users
from veil.domain import Domain, DomainLike, as_domain
from veil.errors import ParameterError
from veil.mechanisms import GRR, OLH, OUE, SUE, FrequencyOracle, HadamardResponse, SubsetSelection
from veil.privacy import check_epsilon

Bound = Literal["blanket", "thesis"]
_MOST_SUBSETS = 1 << 16
"""A subset is sent as one bit per value: beyond this many values it is not thought of."""

_MOST_BUCKETS = 1 << 24


@dataclass(frozen=True)
class ShuffleDesign:
    """An oracle whose shuffled reports keep a central promise, and the variance of its frequencies."""

    oracle: FrequencyOracle
    amplified: ShuffleGuarantee

    @property
    def variance(self) -> float:
        """The variance of an estimated frequency, of a value that nobody holds."""
        return self.oracle.variance(self.amplified.users)

    @property
    def mean_variance(self) -> float:
        """The mean over all values: where local epsilons are large, frequencies count as much as noise."""
        return _mean_variance(self.oracle, self.amplified.users)

    def __str__(self) -> str:
        """The oracle, its error and its promises, in plain words."""
        more = ", ".join(f"{name} = {value}" for name, value in self.oracle.parameters().items())
        shown = f"{self.oracle.name}({more})" if more else self.oracle.name
        return f"{shown}: standard error {math.sqrt(self.variance):.3g}; {self.amplified}"


def design(
    users: int,
    domain: DomainLike,
    epsilon_central: float,
    delta: float,
    epsilon_local_cap: float = 8.0,
    bound: Bound = "blanket",
) -> ShuffleDesign:
    """The oracle of least variance that keeps (epsilon_central, delta) after a shuffle of `users` reports.

    Nobody's local epsilon exceeds the cap: that is all that is left to people if the shuffler tells who sent what. With
    bound="thesis" it is the thesis's choice between GRR and SOLH, local hashing into d' buckets (9.4).

    >>> found = design(1_000_000, 1000, 0.1, 1e-9, epsilon_local_cap=6, bound="thesis")
    >>> found.oracle.name, found.oracle.hash_range, f"{found.variance:.3g}"
    ('OLH', 12, '2.22e-07')
    """
    found = designs(users, domain, epsilon_central, delta, epsilon_local_cap, bound)
    return min(found, key=lambda one: one.variance if bound == "thesis" else one.mean_variance)


def designs(
    users: int,
    domain: DomainLike,
    epsilon_central: float,
    delta: float,
    epsilon_local_cap: float = 8.0,
    bound: Bound = "blanket",
) -> tuple[ShuffleDesign, ...]:
    """The best of each kind of oracle, for the same promise: GRR, local hashing and, by their blankets, others."""
    if bound not in ("blanket", "thesis"):
        raise ParameterError('a bound is "blanket" or "thesis"')
    check_users(users)
    check_delta(delta)
    epsilon_central, epsilon_local_cap = check_epsilon(epsilon_central), check_epsilon(epsilon_local_cap)
    if epsilon_local_cap < epsilon_central:
        raise ParameterError(
            "the cap on the local epsilon lies below the central epsilon, and would keep it without any shuffler"
        )
    if bound == "thesis" and epsilon_central > 1:
        raise ParameterError("the thesis's bounds need a central epsilon of at most 1: expected bound='blanket'")
    return _designs(int(users), as_domain(domain), epsilon_central, float(delta), epsilon_local_cap, bound)


@lru_cache(maxsize=32)
def _designs(
    users: int, domain: Domain, epsilon: float, delta: float, cap: float, bound: Bound
) -> tuple[ShuffleDesign, ...]:
    def kept(make: Callable[[float], FrequencyOracle]) -> FrequencyOracle:
        found = largest_local(make, users, epsilon, delta, bound, cap)
        assert isinstance(found, FrequencyOracle)
        return found

    def promised(oracle: FrequencyOracle) -> ShuffleGuarantee:
        alone = oracle.epsilon <= epsilon
        return unshuffled(oracle, users, bound) if alone else amplify(oracle, users, delta, bound)

    def error(oracle: FrequencyOracle) -> float:
        return oracle.variance(users) if bound == "thesis" else _mean_variance(oracle, users)

    chosen = _of_thesis if bound == "thesis" else _by_blanket
    return tuple(ShuffleDesign(oracle, promised(oracle)) for oracle in chosen(domain, kept, error))


Kept = Callable[[Callable[[float], FrequencyOracle]], FrequencyOracle]
"""From an oracle for each local epsilon to the one whose epsilon is the largest that is allowed."""

Error = Callable[[FrequencyOracle], float]


def _of_thesis(domain: Domain, kept: Kept, error: Error, fine: int = 1 << 30) -> Iterator[FrequencyOracle]:
    if domain.listable:
        yield kept(lambda local: GRR(local, domain))
    buckets = (2, _MOST_BUCKETS)
    yield _best(lambda g: kept(lambda local: OLH(local, domain, g)), *buckets, error, fine)


def _by_blanket(domain: Domain, kept: Kept, error: Error) -> Iterator[FrequencyOracle]:
    yield from _of_thesis(domain, kept, error, fine=32)
    if domain.size <= _MOST_SUBSETS:
        if domain.size > 3:
            subsets = (2, domain.size // 2)
            yield _best(lambda k: kept(lambda local: SubsetSelection(local, domain, k)), *subsets, error, fine=32)
        yield kept(lambda local: SUE(local, domain))
        yield kept(lambda local: OUE(local, domain))
    if not domain.code_bytes and domain.size <= _MOST_BUCKETS:
        yield kept(lambda local: HadamardResponse(local, domain))


def _mean_variance(oracle: FrequencyOracle, users: int) -> float:
    """The variance of a frequency, the mean over all values: it is linear in the frequency."""
    return oracle.variance(users, 1 / min(oracle.domain.size, 2**62))


def _best(make: Callable[[int], FrequencyOracle], least: int, most: int, error: Error, fine: int) -> FrequencyOracle:
    """The oracle of least error over an integer parameter, whose error falls and then rises.

    The parameter is searched to one part in `fine` of itself: around its best, errors hardly differ.
    """
    found: dict[int, FrequencyOracle] = {}

    def variance(number: int) -> float:
        if number not in found:
            found[number] = make(number)
        return error(found[number])

    # doubling until it rises, then halving the interval around the best
    best = least
    while best * 2 <= most and variance(best * 2) < variance(best):
        best *= 2
    low, high = max(best // 2, least), min(best * 2, most)
    while high - low > max(2, low // fine):
        left = low + (high - low) // 3
        right = high - (high - low) // 3
        if variance(left) <= variance(right):
            high = right if right < high else high - 1
        else:
            low = left if left > low else low + 1
    return found[min({low, (low + high) // 2, high} | set(found), key=variance)]
