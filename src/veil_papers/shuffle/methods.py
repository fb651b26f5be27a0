"""The thesis's methods, by its names: each gives an oracle for a central promise, or none where it cannot keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from veil import Tally
from veil.accounting import (
    AUE,
    Laplace,
    Method,
    UniformGuess,
    largest_local,
    random_reports,
    rap,
    rap_removal,
    solh_buckets,
)
from veil.errors import ParameterError
from veil.mechanisms import GRR, OLH, SUE, FrequencyOracle, HadamardResponse, PureOracle
from veil_papers.common.asking import drawn_tally
from veil_papers.shuffle.plan import CAP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Generator = np.random.Generator
Maker = Callable[[int, int, float, float], FrequencyOracle]
"""An oracle from the number of values, that of people, and the central epsilon and delta."""

HOW = (
    "Support counts are drawn from their law given how many people hold each value, which equals simulating every "
    "person in distribution: binomials (OLH with an ideal hash; Had, whose values are independent two at a time), a "
    "multinomial of those who do not keep their value (GRR), and the sums of AUE. Estimates come from the shipped "
    "oracles."
)
_NO_CAP = 40.0
_FIRST = 64  # the exact accountant's d' is doubled from here on
_LAST = 1 << 20


def sh(values: int, people: int, epsilon: float, delta: float) -> GRR:
    """SH: GRR as strong as row 3 of Table 9.1 allows; where that gives nothing, as strong as without a shuffler."""
    found = largest_local(partial(GRR, domain=values), people, epsilon, delta, "thesis", _NO_CAP)
    assert isinstance(found, GRR)
    return found


def solh(values: int, people: int, epsilon: float, delta: float, buckets: int | None = None) -> OLH:
    """SOLH: local hashing into d' buckets, the best (9.4) or so many, as strong as Theorem 9.3.2 allows.

    Where the theorem gives nothing it is as without a shuffler: two buckets, as the numbers of Table 9.2 are.
    """
    wanted = solh_buckets(epsilon, people, delta) if buckets is None else buckets
    if random_reports(epsilon, people, delta) <= wanted:
        return OLH(epsilon, values, 2)
    return hashed(values, people, epsilon, delta, wanted, "thesis", _NO_CAP)


def hashed(
    values: int, people: int, epsilon: float, delta: float, buckets: int, method: Method, cap: float = CAP
) -> OLH:
    """Local hashing into so many buckets, as strong as a bound allows."""
    found = largest_local(partial(OLH, domain=values, hash_range=buckets), people, epsilon, delta, method, cap)
    assert isinstance(found, OLH)
    return found


def exact_grr(values: int, people: int, epsilon: float, delta: float) -> GRR:
    """GRR as strong as its exact blanket allows."""
    found = largest_local(partial(GRR, domain=values), people, epsilon, delta, "blanket", CAP)
    assert isinstance(found, GRR)
    return found


def exact_solh(values: int, people: int, epsilon: float, delta: float) -> OLH:
    """Local hashing as strong as its exact blanket allows, into the best power of two of buckets.

    The best for a value of mean frequency: many buckets are good for values that nobody holds, and for no others.
    """

    def error(oracle: OLH) -> float:
        return float(np.mean(oracle.variance(people, 1 / values)))

    best, buckets = hashed(values, people, epsilon, delta, _FIRST, "blanket"), 2 * _FIRST
    while buckets <= _LAST:
        found = hashed(values, people, epsilon, delta, buckets, "blanket")
        if error(found) >= error(best):
            break
        best, buckets = found, 2 * buckets
    return best


def exact_hashing(values: int, people: int, epsilon: float, delta: float) -> OLH:
    """The same into 1,024 buckets."""
    return hashed(values, people, epsilon, delta, 1_024, "blanket")


def olh(values: int, people: int, epsilon: float, delta: float) -> OLH:
    """OLH without a shuffler."""
    return OLH(epsilon, values)


def had(values: int, people: int, epsilon: float, delta: float) -> HadamardResponse:
    """Hadamard response without a shuffler."""
    return HadamardResponse(epsilon, values)


def unary(values: int, people: int, epsilon: float, delta: float) -> SUE:
    """RAP; where Theorem 9.3.1 gives nothing, as strong as without a shuffler."""
    try:
        return rap(values, people, epsilon, delta)
    except ParameterError:
        return SUE(epsilon, values)


def aue(values: int, people: int, epsilon: float, delta: float) -> AUE:
    """AUE, which needs many people."""
    return AUE(epsilon, values, people, delta)


LDP: dict[str, Maker] = {"OLH": olh, "Had": had}
SHUFFLED: dict[str, Maker] = {"SH": sh, "SOLH": solh, "AUE": aue, "RAP": unary, "RAP_R": rap_removal}
EXACT: dict[str, Maker] = {"SOLH, exact accountant (ours)": exact_solh, "GRR, exact accountant (ours)": exact_grr}
LAPLACE, BASE = "Lap", "Base"


@lru_cache(maxsize=1024)
def made(make: Maker, values: int, people: int, epsilon: float, delta: float) -> FrequencyOracle | None:
    """A method's oracle; None where a condition of its bound fails."""
    try:
        return make(values, people, epsilon, delta)
    except ParameterError:
        return None


def drawn(oracle: FrequencyOracle, held: Ints, rng: Generator) -> Floats:
    """The frequencies that are estimated from one simulated collection, where so many people hold each value."""
    if isinstance(oracle, HadamardResponse):  # its counts of all values are of something else: here they are listed
        listed = replace(drawn_tally(oracle, held, rng), candidates=np.arange(len(held), dtype=np.uint64))
        return np.asarray(oracle.estimate(listed).frequencies)
    if isinstance(oracle, PureOracle):
        return np.asarray(oracle.estimate(drawn_tally(oracle, held, rng)).frequencies)
    assert isinstance(oracle, AUE)
    people = int(held.sum())
    sums = held + rng.binomial(people, float(oracle.p), len(held))
    return np.asarray(oracle.estimate(Tally(oracle.digest, sums, people, people, people)).frequencies)


def yardsticks(epsilon: float, held: Ints, rng: Generator) -> dict[str, float]:
    """The errors of a trusted collector with Laplace's noise, and of asking nobody."""
    return {
        LAPLACE: squared(Laplace(epsilon).frequencies(held, rng), held),
        BASE: UniformGuess().error(held),
    }


def squared(frequencies: Floats, held: Ints) -> float:
    """The mean squared error over all values."""
    return float(np.mean((frequencies - held / held.sum()) ** 2))
