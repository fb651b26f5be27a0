"""Exact deltas of shuffled outputs of few people: no bound is below them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import pytest

from veil import GRR, OLH, OUE, PGR, SUE, HadamardResponse, Integers, SquareWave, SubsetSelection
from veil.accounting import Blanket, amplify, blanket_of, delta_of
from veil.mechanisms import Mechanism, PureOracle

Channel = list[list[Fraction]]
"""For every report, its probability under each value."""


def channel_of(mechanism: Mechanism) -> Channel:
    if isinstance(mechanism, OLH):
        return hashed(mechanism)
    return list(mechanism.channel().values())


def hashed(oracle: OLH) -> Channel:
    """Local hashing with every function from values to buckets, all equally likely: what its blanket assumes."""
    d, g = oracle.domain.size, oracle.hash_range
    functions = list(product(range(g), repeat=d))
    inside, outside = (oracle.p / len(functions), (1 - oracle.p) / (g - 1) / len(functions))
    return [[inside if f[v] == y else outside for v in range(d)] for f in functions for y in range(g)]


MECHANISMS: list[Mechanism] = [
    GRR(1.0, 2),
    GRR(0.3, 3),
    GRR(3.0, 3),
    OLH(1.5, 2, 2),
    SubsetSelection(1.0, 4, 2),
    SUE(1.0, 2),
    SUE(2.0, 3),
    OUE(1.0, 3),
    HadamardResponse(1.0, 3),
    PGR(1.0, 3, prime=2, dimension=2),
    SquareWave(1.0, Integers(0, 3), b=0.25),
]


def ids(mechanism: Mechanism) -> str:
    return f"{mechanism.name}-{mechanism.epsilon:g}-{mechanism.domain.size}"


# -- the truth ---------------------------------------------------------------------------------------------------------


Counts = dict[tuple[int, ...], Fraction]


def shuffled(channel: Channel, held: tuple[int, ...]) -> Counts:
    """The law of how often each report comes, when these values are held."""
    law: Counts = {(0,) * len(channel): Fraction(1)}
    for value in held:
        after: Counts = defaultdict(Fraction)
        for counts, chance in law.items():
            for report, chances in enumerate(channel):
                raised = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                after[raised] += chance * chances[value]
        law = dict(after)
    return law


def true_delta(channel: Channel, people: int, ratio: Fraction) -> Fraction:
    """The delta of a shuffle: the worst over one person's two values and everybody else's."""
    values = range(len(channel[0]))
    worst = Fraction(0)
    for others in combinations_with_replacement(values, people - 1):
        laws = [shuffled(channel, (mine, *others)) for mine in values]
        for one, other in permutations(laws, 2):
            worst = max(worst, sum((max(one[c] - ratio * other[c], Fraction(0)) for c in one), start=Fraction(0)))
    return worst


def settings() -> Iterator[tuple[Mechanism, int]]:
    for mechanism in MECHANISMS:
        reports = len(channel_of(mechanism))
        most = 6 if reports <= 3 else 4 if reports <= 4 else 3 if reports <= 6 else 2
        yield from ((mechanism, people) for people in range(2, most + 1))


@pytest.mark.parametrize(
    ("mechanism", "people"), list(settings()), ids=lambda case: ids(case) if isinstance(case, Mechanism) else str(case)
)
def test_bounds_are_never_below_the_exact_delta(mechanism: Mechanism, people: int) -> None:
    channel, blanket = channel_of(mechanism), blanket_of(mechanism)
    for share in (0.05, 0.3, 0.6, 0.9):
        ratio = math.exp(share * mechanism.epsilon)
        found, truth = delta_of(blanket, people, ratio), true_delta(channel, people, Fraction(ratio))
        assert Fraction(found.high) >= truth
        assert found.spread <= 0.05
        # the bound is the blanket's, which is not far from the truth
        assert found.low <= 6 * float(truth) + 1e-12


def test_bound_for_too_many_people_is_below_the_exact_delta() -> None:
    """The same comparison fails for an accountant that believes in three times as many people."""
    oracle = GRR(1.0, 2)
    channel, ratio = channel_of(oracle), math.exp(0.3)
    assert Fraction(delta_of(blanket_of(oracle), 9, ratio).high) < true_delta(channel, 3, Fraction(ratio))


def test_bound_for_too_wide_a_blanket_is_below_the_exact_delta() -> None:
    """So it does for a blanket whose reports are less telling than they are."""
    oracle = GRR(1.0, 3)
    weak = Blanket(Fraction(math.exp(0.5)), Fraction(1, 3), Fraction(0))
    ratio = math.exp(0.1)
    assert Fraction(delta_of(weak, 4, ratio).high) < true_delta(channel_of(oracle), 4, Fraction(ratio))


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3])
def test_central_guarantees_hold_exactly(delta: float) -> None:
    oracle = GRR(2.0, 3)
    found = amplify(oracle, 4, delta).central
    assert found.ratio is not None
    assert true_delta(channel_of(oracle), 4, found.ratio) <= found.delta or found.delta == 0


# -- the blanket -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_blanket_matches_the_reports(mechanism: Mechanism) -> None:
    """What every report has whatever is held, and what it shows of two values, from the shipped code's own channel."""
    channel, blanket = channel_of(mechanism), blanket_of(mechanism)
    last = len(channel[0]) - 1
    pairs = [(0, last)] if isinstance(mechanism, SquareWave) else permutations(range(last + 1), 2)
    for held, other in pairs:
        apart = sum((row[other] for row in channel if row[held] == blanket.ratio * row[other]), start=Fraction(0))
        assert apart == blanket.apart
        assert {row[held] / row[other] for row in channel} <= {1, blanket.ratio, 1 / blanket.ratio}
    # Reports that support all values, where there are such, say nothing: the blanket could be wider by them.
    gamma = sum((min(row) for row in channel), start=Fraction(0))
    all_alike = isinstance(mechanism, (SUE, OUE, OLH, HadamardResponse))
    assert blanket.gamma < gamma if all_alike else blanket.gamma == gamma


def test_likelihoods_are_probabilities() -> None:
    """Over the whole of a report's law: gamma times the mean likelihood of the blanket is 1, for both values."""
    for mechanism in MECHANISMS:
        blanket = blanket_of(mechanism)
        rest = 1 - blanket.gamma
        for which in (1, 2):
            covered = sum((atom[0] * atom[which] for atom in blanket.atoms()), start=Fraction(0))
            assert covered == 1
        assert sum((atom[0] for atom in blanket.atoms()), start=rest) == 1


# -- the sum -----------------------------------------------------------------------------------------------------------


def exact_sum(blanket: Blanket, people: int, ratio: Fraction) -> Fraction:
    """E[(Z_1 + ... + Z_n)+] / n over all numbers of reports of each kind."""
    atoms = [(mass, one - ratio * two) for mass, one, two in blanket.atoms()] + [(1 - blanket.gamma, Fraction(0))]
    total = Fraction(0)
    for counts in product(range(people + 1), repeat=4):
        if sum(counts) > people:
            continue
        every = (*counts, people - sum(counts))
        ways = math.factorial(people)
        for count in every:
            ways //= math.factorial(count)
        value = sum((count * z for count, (_, z) in zip(every, atoms, strict=True)), start=Fraction(0))
        if value > 0:
            chance = math.prod(
                (mass**count for count, (mass, _) in zip(every, atoms, strict=True)), start=Fraction(ways)
            )
            total += chance * value
    return total / people


@pytest.mark.parametrize("people", [2, 5, 9])
@pytest.mark.parametrize(
    "mechanism", [GRR(0.5, 4), GRR(4.0, 4), OLH(2.0, 9, 3), SubsetSelection(1.0, 9), PGR(3.0, 9)], ids=ids
)
def test_transform_lies_between_its_bounds(mechanism: PureOracle, people: int) -> None:
    blanket = blanket_of(mechanism)
    blanket = Blanket(*(part.limit_denominator(1000) for part in (blanket.ratio, blanket.share, blanket.both)))
    for share in (0.02, 0.4, 0.8, 0.99):
        ratio = Fraction(math.exp(share * mechanism.epsilon)).limit_denominator(10_000)
        found, truth = delta_of(blanket, people, float(ratio)), exact_sum(blanket, people, ratio)
        assert Fraction(found.low) <= truth <= Fraction(found.high)
        assert found.spread <= 0.05
