"""A conformance suite for mechanisms: the registered ones, and mechanisms of your own.

Privacy and unbiasedness are not sampled but proved, on the code that ships: every path of coins and draws is followed
with its exact probability (`entropy.outcomes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, DomainLike, Interval
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError, MismatchError, ParameterError, VeilError, WireError
from veil.mechanisms import (
    OLH,
    SHE,
    FrequencyOracle,
    MeanMechanism,
    Mechanism,
    NumericMechanism,
    Piecewise,
    PureOracle,
    Rappor,
    mechanism_from_json,
)
from veil.mechanisms.oracles.local_hashing import LocalHashing
from veil.privacy import exp_below
from veil.reports.columns import Reports
from veil.reports.layout import Columns

__all__ = ["CheckError", "TabledOLH", "check", "enumerable", "exact_supports", "worst_ratio", "yield_checks"]

_EPSILONS = (0.1, 1.0, 2.0)
_SIZES = (3, 6)  # values in a proof: at three a subset is a single value; OLH has g^d functions to go through
_MOST_SEEDS = 1 << 10
_SECRET = 987_654_321
Supports = list[list[Fraction]]


class CheckError(AssertionError):
    """A mechanism breaks the contract."""


def yield_checks(kind: type[Mechanism]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every check for a class of mechanisms, by name; each raises CheckError where the contract is broken."""
    for rule in (
        _json_both_ways,
        _values_semantics,
        _refuses_bad_input,
        _reports_round_trip,
        _same_seed_same_bytes,
        _tallies_add_up,
        _weights_are_exact,
        _refuses_foreign,
    ):
        yield rule.__name__.strip("_"), partial(rule, kind)
    for epsilon in _EPSILONS:
        yield f"ratio_is_exact[{epsilon}]", partial(_ratio_is_exact, kind, epsilon)
    if issubclass(kind, PureOracle):
        for epsilon in _EPSILONS:
            yield f"support_is_pure[{epsilon}]", partial(_support_is_pure, kind, epsilon)
        yield "estimates_follow_support", partial(_estimates_follow_support, kind)
    if issubclass(kind, FrequencyOracle):
        yield "candidates_have_their_own_estimates", partial(_candidates_have_their_own_estimates, kind)
    else:
        yield "takes_no_candidates", partial(_takes_no_candidates, kind)
    if issubclass(kind, MeanMechanism):
        for epsilon in _EPSILONS:
            yield f"mean_is_unbiased[{epsilon}]", partial(_mean_is_unbiased, kind, epsilon)
        yield "means_follow_reports", partial(_means_follow_reports, kind)


def check(kind: type[Mechanism]) -> int:
    """Run all checks; returns how many.

    >>> from veil import GRR
    >>> check(GRR) > 10
    True
    """
    done = 0
    for _, rule in yield_checks(kind):
        rule()
        done += 1
    return done


@dataclass(frozen=True, init=False)
class TabledOLH(OLH):
    """OLH with its hash replaced by a table, its seed being one of all g^d functions: OLH as the theory has it."""

    @property
    def seeds(self) -> int:
        return int(self.hash_range**self.domain.size)

    def bucket_moment(self, power: int) -> Fraction:
        return Fraction(1, self.hash_range ** (power - 1))

    def hash(self, seeds: NDArray[np.uint64], codes: NDArray[Any]) -> NDArray[np.uint64]:
        powers = np.array([self.hash_range ** int(code) for code in codes], dtype=np.uint64)
        return seeds // powers % np.uint64(self.hash_range)

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        codes = np.arange(self.domain.size, dtype=np.uint64) if candidates is None else candidates
        return np.asarray(self.incidence(columns, codes).sum(axis=0, dtype=np.int64))

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        same = [self.hash(columns["seed"], np.full(len(columns["seed"]), c)) == columns["bucket"] for c in candidates]
        return np.stack(same, axis=1).astype(np.uint8)


def enumerable(mechanism: Mechanism) -> Mechanism:
    """The mechanism itself, or the twin of it whose random seed, or whole range of noise, can be enumerated."""
    if isinstance(mechanism, SHE):
        return type(mechanism)(mechanism.epsilon, mechanism.domain, mechanism.grid, reach=1)
    if isinstance(mechanism, LocalHashing):
        return TabledOLH(mechanism.epsilon, mechanism.domain, mechanism.buckets)
    if isinstance(mechanism, Rappor):  # a filter of few bits, with the same hashes and hence the same coins
        return Rappor(mechanism.epsilon, mechanism.domain, bits=8, hashes=mechanism.hashes, cohorts=2)
    if isinstance(mechanism, Piecewise):
        return type(mechanism)(mechanism.epsilon, mechanism.domain, steps=12)
    return mechanism


def worst_ratio(channel: dict[bytes, list[Fraction]]) -> Fraction:
    """The largest ratio of a report's probabilities under two values; refuses a report that some value cannot send."""
    for chances in channel.values():
        _demand(min(chances) > 0, "some report is impossible under some value, and gives it away")
    return max(max(chances) / min(chances) for chances in channel.values())


def exact_supports(oracle: PureOracle) -> tuple[Supports, dict[tuple[int, int, int], Fraction]]:
    """The exact probabilities that a report supports a value, and two values, by the value that is held.

    Returns single[held][value] and pair[held, value, other].
    """
    size = oracle.domain.size
    every = np.arange(size, dtype=np.uint64)
    single = [[Fraction(0)] * size for _ in range(size)]
    pair: dict[tuple[int, int, int], Fraction] = {}
    for report, chances in oracle.channel().items():
        columns = Reports.from_bytes(oracle.digest, oracle.layout, report).columns
        supported = np.flatnonzero(oracle.incidence(columns, every)[0]).tolist()
        _demand(
            np.flatnonzero(oracle.support(columns, None, None)).tolist() == supported, "support and supports differ"
        )
        for held, chance in enumerate(chances):
            for value in supported:
                single[held][value] += chance
                for other in supported:
                    if value != other:
                        pair[held, value, other] = pair.get((held, value, other), Fraction(0)) + chance
    return single, pair


def _twins(kind: type[Mechanism], epsilon: float) -> Iterator[Mechanism]:
    """The mechanism over few values, as far as it can be enumerated: OLH over all functions, SHE over all noise."""
    for size in _SIZES:
        twin = enumerable(kind(epsilon, size))
        too_wide = isinstance(twin, SHE) and size > min(_SIZES)
        if not too_wide and not (isinstance(twin, TabledOLH) and twin.seeds > _MOST_SEEDS):
            yield twin


def _ratio_is_exact(kind: type[Mechanism], epsilon: float) -> None:
    for twin in _twins(kind, epsilon):
        worst = worst_ratio(twin.channel())
        _demand(worst == twin.guarantee.ratio, "the declared ratio is not the one that the randomizer has")
        _demand(worst <= exp_below(epsilon), "the ratio exceeds e^epsilon")
        wasteful = float(worst) < 0.99 * float(exp_below(epsilon))
        _demand(not (kind.tight and wasteful), "the ratio wastes some of the budget")


def _support_is_pure(kind: type[PureOracle], epsilon: float) -> None:
    for twin in _twins(kind, epsilon):
        assert isinstance(twin, PureOracle)
        single, pair = exact_supports(twin)
        noise, every = twin.noise, range(twin.domain.size)
        for held in every:
            for value in every:
                expected = noise.p if value == held else noise.q
                _demand(single[held][value] == expected, "p or q is not what the randomizer does: estimates are biased")
                for other in every:
                    if value != other:
                        allowed = {noise.hit} if held in (value, other) else twin.pair_misses
                        found = pair.get((held, value, other), Fraction(0))
                        _demand(found in allowed, "two values are supported together more or less often than declared")


def _mean_is_unbiased(kind: type[MeanMechanism], epsilon: float) -> None:
    for twin in _twins(kind, epsilon):
        assert isinstance(twin, MeanMechanism)
        last = twin.domain.size - 1
        expected, squares = [Fraction(0)] * (last + 1), [Fraction(0)] * (last + 1)
        for report, chances in twin.channel().items():
            place = twin.moments(twin.tally(Reports.from_bytes(twin.digest, twin.layout, report))).place
            for held, chance in enumerate(chances):
                expected[held] += chance * place
                squares[held] += chance * place**2
        for held, (mean, square) in enumerate(zip(expected, squares, strict=True)):
            _demand(mean == Fraction(held, last), "the mean is biased")
            _demand(square - mean**2 == twin.spread(Fraction(held, last)), "the variance is not what it is said to be")


def _json_both_ways(kind: type[Mechanism]) -> None:
    other: DomainLike = Interval(-1.5, 2.25, 9) if issubclass(kind, NumericMechanism) else Categories(["é", "b", "c"])
    for domain in (7, other):
        made = kind(0.7, domain)
        again = mechanism_from_json(made.to_json())
        _demand(again == made and again.digest == made.digest, "JSON does not bring the same mechanism back")


def _values_semantics(kind: type[Mechanism]) -> None:
    one, same, other = kind(1.0, 5), kind(1, 5), kind(1.0, 6)
    _demand(one == same and hash(one) == hash(same) and one != other, "mechanisms are compared by their parameters")
    _demand(repr(one).startswith(kind.__name__), "a mechanism prints as its parameters")
    try:
        one.epsilon = 2.0  # type: ignore[misc]  # the point: it is frozen
    except AttributeError:
        return
    raise CheckError("a mechanism is frozen")


def _refuses_bad_input(kind: type[Mechanism]) -> None:
    for epsilon in (0.0, -1.0, float("nan"), float("inf"), "much"):
        _refused(ParameterError, kind, epsilon, 5)
    for domain in (1, 0, -3, True, 2.5, None):
        _refused(ParameterError, kind, 1.0, domain)
    mechanism = kind(1.0, 5)
    for values in ([5], [-1], [_SECRET], [None], [float("nan")], ["1"], [2.5], [True]):
        _refused(DomainError, mechanism.randomize, values)
    _refused(EmptyError, mechanism.randomize, [])
    if issubclass(kind, NumericMechanism):
        _refused(ParameterError, kind, 1.0, Categories(["a", "b", "c"]))


def _reports_round_trip(kind: type[Mechanism]) -> None:
    for domain in (2, 9, 300):
        mechanism = kind(1.0, domain)
        reports = mechanism.randomize(np.arange(1000) % domain, SeededForExperiments(1))
        _demand(len(reports.to_bytes()) == 1000 * mechanism.layout.size, "a report has a fixed length")
        again = Reports.from_bytes(mechanism.digest, mechanism.layout, reports.to_bytes())
        try:
            mechanism.check(again.columns)
        except WireError as problem:
            raise CheckError("a mechanism refuses its own reports") from problem
        same = all(np.array_equal(again.columns[name], reports.columns[name]) for name in mechanism.layout.names)
        _demand(same, "bytes do not bring the same reports back")


def _same_seed_same_bytes(kind: type[Mechanism]) -> None:
    mechanism = kind(1.0, 9)
    values = np.arange(70_000) % 9
    whole = mechanism.randomize(values, SeededForExperiments(5)).to_bytes()
    _demand(
        whole == mechanism.randomize(values, SeededForExperiments(5)).to_bytes(), "the same seed gives other reports"
    )
    _demand(
        whole != mechanism.randomize(values, SeededForExperiments(6)).to_bytes(), "another seed gives the same reports"
    )
    _demand(whole != mechanism.randomize(values).to_bytes(), "fresh entropy gives the same reports")
    source = SeededForExperiments(5)
    cut = [mechanism.randomize(part, source).to_bytes() for part in (values[:65_536], values[65_536:])]
    _demand(whole == b"".join(cut), "reports depend on how people are split into chunks")


def _tallies_add_up(kind: type[Mechanism]) -> None:
    mechanism = kind(1.0, 40)
    reports = mechanism.randomize(np.arange(3000) % 40, SeededForExperiments(2))
    whole = mechanism.tally(reports)
    parts = mechanism.tally(reports[:1]) + mechanism.tally(reports[1:1700]) + mechanism.tally(reports[1700:])
    _demand(whole == parts, "tallies of parts do not add up to the whole")
    _demand(len(whole.counts) == mechanism.tally_size(None), "a tally does not have the size that its mechanism says")


def _weights_are_exact(kind: type[Mechanism]) -> None:
    mechanism = kind(1.0, 40)
    reports, weights = mechanism.randomize(np.arange(500) % 40, SeededForExperiments(3)), np.arange(500) % 4 - 1
    for candidates in (None, [39, 0, 7]) if issubclass(kind, FrequencyOracle) else (None,):
        by_hand = sum(int(w) * mechanism.tally(reports[i : i + 1], candidates).counts for i, w in enumerate(weights))
        found = mechanism.tally(reports, candidates, weights)
        _demand(bool((found.counts == by_hand).all()), "weights are not exact")


def _estimates_follow_support(kind: type[PureOracle]) -> None:
    oracle = kind(1.0, 40)
    reports = oracle.randomize(np.arange(3000) % 40, SeededForExperiments(2))
    whole = oracle.support(reports.columns, None, None)
    for value, frequency in enumerate(oracle.estimate(oracle.tally(reports)).frequencies):
        exact = (Fraction(int(whole[value]), 3000) - oracle.q) / (oracle.p - oracle.q)
        _demand(abs(float(exact) - frequency) < 1e-12, "estimates do not follow (3.1)")
    chosen = np.array([39, 0, 7], dtype=np.uint64)
    for found in (oracle.support(reports.columns, chosen, None), oracle.incidence(reports.columns, chosen).sum(axis=0)):
        _demand(bool((found == whole[chosen]).all()), "the supports of candidates are not those of the whole domain")


def _means_follow_reports(kind: type[MeanMechanism]) -> None:
    mechanism = kind(1.0, Interval(-3.0, 5.0, 41))
    first, last = mechanism.domain.decode([0, 40])
    reports = mechanism.randomize(
        np.linspace(-3.0, 1.0, 400), SeededForExperiments(2)
    )  # far from the least and the most scatter
    places = [mechanism.moments(mechanism.tally(reports[i : i + 1])).place for i in range(len(reports))]
    mean, spread = mechanism.estimate(mechanism.tally(reports)), float(np.var([float(p) for p in places], ddof=1))
    expected = first + float(sum(places) / len(places)) * (last - first)
    _demand(abs(mean.value - expected) < 1e-9, "the mean is not that of the reports")
    _demand(abs(mean.stderr / (last - first) - (spread / len(places)) ** 0.5) < 1e-9, "the error is not the reports'")
    for held in mechanism.domain.decode(range(41)):
        _demand(mechanism.variance(7, held) <= mechanism.variance(7) * (1 + 1e-12), "the largest variance is exceeded")


def _candidates_have_their_own_estimates(kind: type[FrequencyOracle]) -> None:
    oracle = kind(1.0, 40)
    reports = oracle.randomize(np.arange(500) % 40, SeededForExperiments(3))
    chosen, weights = [39, 0, 7], np.arange(500) % 4 - 1
    # without a noise law an estimate is a regression over all candidates at once, and they matter to each other
    for given in (None, weights) if oracle.noise.known else ():
        whole = oracle.estimate(oracle.tally(reports, None, given)).frequencies
        some = oracle.estimate(oracle.tally(reports, chosen, given)).frequencies
        _demand(float(np.abs(some - whole[chosen]).max()) < 1e-12, "candidates change their estimates")
    _refused(MismatchError, lambda: oracle.tally(reports) + oracle.tally(reports, [1, 2]))


def _takes_no_candidates(kind: type[Mechanism]) -> None:
    mechanism = kind(1.0, 40)
    _refused(InputError, mechanism.tally, mechanism.randomize([1, 2, 3], SeededForExperiments(4)), [1, 2])


def _refuses_foreign(kind: type[Mechanism]) -> None:
    mechanism, other = kind(1.0, 40), kind(1.1, 40)
    reports = mechanism.randomize([1, 2, 3], SeededForExperiments(4))
    _refused(MismatchError, other.tally, reports)
    _refused(MismatchError, other.estimate, mechanism.tally(reports))
    _refused(EmptyError, mechanism.estimate, mechanism.tally(reports[:0]))
    _refused(EmptyError, mechanism.estimate, mechanism.tally(reports, weights=[1, -1, 0]))


def _refused(error: type[VeilError], call: Callable[..., Any], *arguments: Any) -> None:
    try:
        call(*arguments)
    except error as problem:
        _demand(str(_SECRET) not in str(problem), "an error message shows a private value")
        return
    except Exception as problem:
        raise CheckError(f"expected a {error.__name__}, got {type(problem).__name__}: {problem}") from problem
    raise CheckError(f"expected a {error.__name__}, but it was accepted")


def _demand(holds: bool, message: str) -> None:
    if not holds:
        raise CheckError(message)
