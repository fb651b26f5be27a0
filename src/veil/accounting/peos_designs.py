"""The choice of an oracle and a number of fake reports: the least variance for three guarantees (thesis 9.5.4).

For each oracle and local epsilon, the fewest fakes that keep both central guarantees are the best, since fakes are
noise. The remaining search is over the local epsilon and, for OLH, the number of buckets. It uses the saddlepoint of
`blanket`; the accountant certifies its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from veil.accounting.amplification import ShuffleGuarantee, unshuffled
from veil.accounting.blanket import blanket_of, fewest_fakes
from veil.accounting.blanket_delta import delta_of
from veil.accounting.bounds import check_delta, check_users
from veil.accounting.fakes import (
    FakeBound,
    Shuffler,
    against_server,
    against_server_and_users,
    fakes_of,
    variance_with_fakes,
)
from veil.domain import Domain, DomainLike, as_domain
from veil.errors import ParameterError
from veil.mechanisms import GRR, OLH, FrequencyOracle
from veil.privacy import Guarantee, check_epsilon
from veil.tools.numbers import is_int

_MOST_BUCKETS = 1 << 16
_FAKES_PER_USER = 10
_EXACT = 1e-4
"""Central epsilons are kept by this share of themselves, so that whatever is rounded stays within them."""

_USELESS = 0.5
"""A standard error of a share at which nothing is learnt."""

_COARSE = 1 << 16
"""Points of the transforms that settle how many fakes there are."""

_GRID = 6
_REFINED = {False: 5, True: 24}
"""Golden sections around the best local epsilon of a grid: for each number of buckets, and for the best one."""

_MOST_TRIES = 40
_SEED_BYTES = 4
"""A report has to fit an integer of 64 bits: 32 for the seed, 32 for the bucket."""


@dataclass(frozen=True)
class PeosDesign:
    """An oracle and a number of fake reports that keep three promises, and the variance of its frequencies.

    `server` is towards the server alone, `server_and_users` towards the server and all other users together, and
    `local` towards the server and more than half of the shufflers.
    """

    oracle: FrequencyOracle
    fakes: int
    users: int
    delta: float
    server: ShuffleGuarantee
    server_and_users: ShuffleGuarantee

    @property
    def local(self) -> Guarantee:
        """What is left if the server corrupts more than half of the shufflers."""
        return self.server.local

    @property
    def variance(self) -> float:
        """The variance of an estimated frequency, of a value that nobody holds."""
        return variance_with_fakes(self.oracle, self.users, self.fakes)

    @property
    def mean_variance(self) -> float:
        """The mean over all values."""
        return variance_with_fakes(self.oracle, self.users, self.fakes, _mean(self.oracle.domain))

    @property
    def shuffler(self) -> Shuffler:
        """The shuffler that a study is given, as in Histogram(design.oracle, shuffler=design.shuffler)."""
        return Shuffler(self.users, self.delta, self.fakes)

    def __str__(self) -> str:
        """The oracle, its fakes, its error and the three promises, in plain words."""
        more = f"({self.oracle.hash_range} buckets)" if isinstance(self.oracle, OLH) else ""
        return (
            f"{self.oracle.name}{more} with {self.fakes:,} fake reports: "
            f"standard error {math.sqrt(self.variance):.3g}; "
            f"{self.server.central} towards the server; {self.server_and_users.central} if all other users tell it "
            f"what they sent; {self.local} if more than half of the shufflers do"
        )


def design_peos(
    epsilon_server: float,
    epsilon_users: float,
    epsilon_local: float,
    *,
    users: int,
    domain: DomainLike,
    delta: float,
    bound: FakeBound = "blanket",
    most_fakes: int | None = None,
) -> PeosDesign:
    """The oracle and the number of fakes of least variance that keep three promises: eps_1, eps_2, eps_3 of the thesis.

    `epsilon_server` is towards the server alone, `epsilon_users` towards it and all other users together, and
    `epsilon_local` towards it and more than half of the shufflers. `most_fakes` is 10 times the users unless given.
    With bound="thesis" fakes are counted by Corollaries 9.5.2 and 9.5.3.

    >>> found = design_peos(0.2, 0.5, 4.0, users=100_000, domain=100, delta=1e-9, bound="thesis")
    >>> found.oracle.name, found.oracle.hash_range, found.fakes
    ('OLH', 18, 109784)
    """
    problem = _problem(epsilon_server, epsilon_users, epsilon_local, users, domain, delta, bound, most_fakes)
    return _certified(problem, min(_candidates(problem), key=lambda one: one.error))


def designs_peos(
    epsilon_server: float,
    epsilon_users: float,
    epsilon_local: float,
    *,
    users: int,
    domain: DomainLike,
    delta: float,
    bound: FakeBound = "blanket",
    most_fakes: int | None = None,
) -> tuple[PeosDesign, ...]:
    """The best of GRR and of OLH for the same promises, the better one first."""
    problem = _problem(epsilon_server, epsilon_users, epsilon_local, users, domain, delta, bound, most_fakes)
    found = sorted(_candidates(problem), key=lambda one: one.error)
    return tuple(_certified(problem, one) for one in found if one.error < math.inf)


# -- the problem -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Problem:
    """What is wished for."""

    server: float
    colluding: float
    local: float
    users: int
    domain: Domain
    delta: float
    bound: FakeBound
    most_fakes: int

    @property
    def frequency(self) -> float:
        """Of the value whose variance counts: the thesis's is one that nobody holds."""
        return 0.0 if self.bound == "thesis" else _mean(self.domain)

    @property
    def promises(self) -> tuple[tuple[float, int], ...]:
        """Both central promises: epsilon, and among the reports of how many users one person hides."""
        return (self.server, self.users), (self.colluding, 1)

    def each(self, epsilon: float, buckets: int, *, hashed: bool) -> list[float]:
        """About how many fakes keep each of them."""
        counted = _by_thesis if self.bound == "thesis" else _by_saddlepoint
        return [counted(self, epsilon, buckets, target, users, hashed=hashed) for target, users in self.promises]

    def fakes(self, epsilon: float, buckets: int, *, hashed: bool) -> float:
        """About how many fakes keep both."""
        return max(self.each(epsilon, buckets, hashed=hashed))

    def error(self, epsilon: float, buckets: int, *, hashed: bool) -> float:
        """The variance with the fewest fakes; infinite where these are too many."""
        fakes = self.fakes(epsilon, buckets, hashed=hashed)
        if fakes > self.most_fakes:
            return math.inf
        power, n, f = math.exp(epsilon), self.users, self.frequency
        p, added = power / (power + buckets - 1), 1 / buckets
        q = added if hashed else 1 / (power + buckets - 1)
        supports = n * (q * (1 - q) + f * (p * (1 - p) - q * (1 - q))) + math.ceil(fakes) * added * (1 - added)
        return supports / (n * (p - q)) ** 2


def _by_thesis(problem: _Problem, epsilon: float, buckets: int, target: float, users: int, *, hashed: bool) -> float:
    """Corollaries 9.5.2 and 9.5.3, which need an epsilon of at most 1: random reports at each value or bucket."""
    if epsilon <= target:
        return 0.0
    needed = 14 * math.log(2 / problem.delta) / min(target, 1.0) ** 2
    given = (users - 1) / (math.exp(epsilon) + buckets - 1)
    bits = 32 if hashed else 64
    return max(0.0, (needed * (1 + 1e-9) - given) / ((1 << bits) // buckets / (1 << bits)))


def _by_saddlepoint(
    problem: _Problem, epsilon: float, buckets: int, target: float, users: int, *, hashed: bool
) -> float:
    if epsilon <= target:
        return 0.0
    return fewest_fakes(math.exp(epsilon), buckets, target * (1 - _EXACT), users, problem.delta, hashed=hashed)


def _problem(
    server: float,
    colluding: float,
    local: float,
    users: int,
    domain: DomainLike,
    delta: float,
    bound: FakeBound,
    most_fakes: int | None,
) -> _Problem:
    if bound not in ("blanket", "thesis"):
        raise ParameterError('a bound is "blanket" or "thesis"')
    users, delta = check_users(users), check_delta(delta)
    server, colluding, local = (check_epsilon(one) for one in (server, colluding, local))
    if bound == "thesis" and delta > 0.25:
        raise ParameterError("the thesis's bounds need a delta of at most 1/4: expected bound='blanket'")
    if local <= min(server, colluding):
        raise ParameterError(
            f"epsilon_local = {local:g} is below both other promises, and would keep them without any shuffler: "
            "expected epsilon_server, epsilon_users and epsilon_local in this order, from small to large"
        )
    if most_fakes is None:
        most_fakes = min(_FAKES_PER_USER * users, 10**10)
    if not is_int(most_fakes) or not 0 <= most_fakes <= 10**10:
        raise ParameterError("the most fakes that shufflers may add is an integer from 0 to 10^10")
    return _Problem(server, colluding, local, users, as_domain(domain), delta, bound, int(most_fakes))


def _mean(domain: Domain) -> float:
    """The mean frequency of all values."""
    return 1 / min(domain.size, 2**62)


# -- the search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Candidate:
    """The best of one kind of oracle, before it is certified."""

    make: Callable[[float], FrequencyOracle]
    epsilon: float
    buckets: int
    hashed: bool
    error: float


@lru_cache(maxsize=64)
def _candidates(problem: _Problem) -> tuple[_Candidate, ...]:
    found = tuple(_searched(problem))
    if min(one.error for one in found) >= _USELESS**2:
        raise ParameterError(_refusal(problem))
    return found


def _searched(problem: _Problem) -> Iterator[_Candidate]:
    domain = problem.domain
    if domain.listable and not domain.code_bytes:
        yield _best_local(problem, lambda local: GRR(local, domain), domain.size, hashed=False, fine=True)
    tried: dict[int, _Candidate] = {}

    def olh(buckets: int, *, fine: bool = False) -> _Candidate:
        if buckets not in tried or fine:
            make = partial(_olh, domain=domain, hash_range=buckets)
            tried[buckets] = _best_local(problem, make, buckets, hashed=True, fine=fine)
        return tried[buckets]

    for place in range(2, 33):  # from 2 to 2^16 by roots of 2
        olh(round(2 ** (place / 2)))
    best = min(tried, key=lambda buckets: tried[buckets].error)
    low, high = max(2, math.floor(best / 1.42)), min(_MOST_BUCKETS, math.ceil(best * 1.42))
    while high - low > max(2, low // 64):
        left, right = low + (high - low) // 3, high - (high - low) // 3
        if olh(left).error <= olh(right).error:
            high = right if right < high else high - 1
        else:
            low = left if left > low else low + 1
    best = min(tried, key=lambda buckets: tried[buckets].error)
    yield olh(best, fine=True)


def _best_local(
    problem: _Problem, make: Callable[[float], FrequencyOracle], buckets: int, *, hashed: bool, fine: bool
) -> _Candidate:
    """The local epsilon of least error: where it is itself enough against all other users, and above."""

    def error(place: float) -> float:
        return problem.error(math.exp(place), buckets, hashed=hashed)

    found: dict[float, float] = {}
    enough = min(problem.colluding, problem.local)
    least = min(problem.server, enough)
    parts = [(least, enough)] if least < enough else []
    if problem.local > enough:
        parts.append((enough * (1 + 1e-6), problem.local))
    for low, high in parts or [(least, least)]:
        _least_of(error, math.log(low), math.log(high), _REFINED[fine], found)
    best = min(found, key=lambda place: found[place])
    # the logarithm's rounding must not lift it above what was allowed
    return _Candidate(make, min(math.exp(best), problem.local), buckets, hashed, found[best])


def _least_of(error: Callable[[float], float], low: float, high: float, steps: int, found: dict[float, float]) -> None:
    """Look for the least error between two ends: by a grid, then by golden sections around its best."""

    def seen(place: float) -> float:
        if place not in found:
            found[place] = error(place)
        return found[place]

    grid = [low + (high - low) * i / _GRID for i in range(_GRID + 1)] if high > low else [low]
    best = min(range(len(grid)), key=lambda i: seen(grid[i]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(steps if high > low else 0):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if seen(left) <= seen(right):  # also where both need too many fakes: fewer are to the left
            high = right
        else:
            low = left


def _olh(epsilon: float, domain: Domain, hash_range: int) -> OLH:
    """Local hashing whose reports fit an integer of 64 bits."""
    return OLH(epsilon, domain, hash_range, _SEED_BYTES)


# -- the end -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _certified(problem: _Problem, found: _Candidate) -> PeosDesign:
    """The design of a candidate: as many fakes as are certified to keep the promises."""
    epsilon = found.epsilon
    for _ in range(_MOST_TRIES):
        oracle = found.make(epsilon)
        needed = [math.ceil(one) for one in problem.each(epsilon, found.buckets, hashed=found.hashed)]
        if problem.bound == "blanket":
            needed = [
                _settled(oracle, start, target, users, problem)
                for start, (target, users) in zip(needed, problem.promises, strict=True)
            ]
        fakes = max(needed)
        if fakes <= problem.most_fakes:
            made = _promised(problem, oracle, fakes)
            if made.server.epsilon <= problem.server and made.server_and_users.epsilon <= problem.colluding:
                return made
        epsilon *= 1 - 1e-3
    raise ParameterError(_refusal(problem))


def _settled(oracle: FrequencyOracle, start: int, target: float, users: int, problem: _Problem) -> int:
    """The fewest fakes, to one part in thousands, with which the accountant certifies a promise; from a first guess."""
    if oracle.guarantee.within(target):
        return 0
    blanket, ratio = blanket_of(oracle), math.exp(target * (1 - _EXACT))

    def kept(many: int) -> bool:
        if users == 1 and not many:
            return False
        # an upper bound is one, however coarse the transform
        return delta_of(blanket, users, ratio, _COARSE, fakes_of(oracle, many)).high <= problem.delta

    low = high = start
    step = 1 + start // 500
    if kept(start):
        while low >= 0 and kept(low):
            low, high, step = low - step, low, 2 * step
        low = max(low, -1)
    else:
        while not kept(high):
            low, high, step = high, high + step, 2 * step
            if high > 2 * problem.most_fakes + 64:
                return problem.most_fakes + 1
    while high - low > max(1, high >> 12):
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


def _promised(problem: _Problem, oracle: FrequencyOracle, fakes: int) -> PeosDesign:
    n, delta, bound = problem.users, problem.delta, problem.bound

    def certified(promise: Callable[[], ShuffleGuarantee], users: int) -> ShuffleGuarantee:
        try:
            return promise()
        except ParameterError:  # of the thesis's bounds, whose condition fails: the local promise stands
            return unshuffled(oracle, users, bound)

    server = certified(lambda: against_server(oracle, n, fakes, delta, bound), n)
    colluding = certified(lambda: against_server_and_users(oracle, fakes, delta, bound), 1)
    return PeosDesign(oracle, fakes, n, delta, server, colluding)


def _refusal(problem: _Problem) -> str:
    """Why there is no design: how many fakes the harder promise would need."""
    server, colluding = problem.each(problem.local, 2, hashed=True)
    name, target = ("server", problem.server) if server > colluding else ("users", problem.colluding)
    return (
        f"epsilon_{name} = {target:g} cannot be kept by {problem.users:,} people and at most {problem.most_fakes:,} "
        f"fake reports with any use: a local eps of {problem.local:g} would need at least "
        f"{max(server, colluding):.2g} fakes, and a local eps that is small enough with fewer tells nothing; "
        "expected larger epsilons, more users or more fakes"
    )
