"""Exact deltas of shuffled outputs of few people with fakes: no bound is below them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import pytest
from tests.exact.accounting.test_amplification import Channel, Counts, channel_of

from veil import GRR, OLH
from veil.accounting import Fakes, against_server, against_server_and_users, blanket_of, delta_of, least_share

ORACLES = [GRR(1.0, 2), GRR(0.3, 3), GRR(3.0, 3), OLH(1.5, 2, 2)]


def mixed(channel: Channel, held: tuple[int, ...], fakes: int, law: list[Fraction]) -> Counts:
    """The law of how often each report comes, from these people and so many fakes."""
    found: Counts = {(0,) * len(channel): Fraction(1)}
    for drawn in [[row[value] for row in channel] for value in held] + [law] * fakes:
        after: Counts = {}
        for counts, chance in found.items():
            for report, probability in enumerate(drawn):
                raised = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                after[raised] = after.get(raised, Fraction(0)) + chance * probability
        found = after
    return found


def true_delta(channel: Channel, people: int, fakes: int, law: list[Fraction], ratio: Fraction) -> Fraction:
    """The worst over one person's two values and everybody else's."""
    values = range(len(channel[0]))
    worst = Fraction(0)
    for others in combinations_with_replacement(values, people - 1):
        laws = [mixed(channel, (mine, *others), fakes, law) for mine in values]
        for one, other in permutations(laws, 2):
            worst = max(worst, sum((max(one[c] - ratio * other[c], Fraction(0)) for c in one), start=Fraction(0)))
    return worst


def uniform(channel: Channel) -> list[Fraction]:
    return [Fraction(1, len(channel))] * len(channel)


def uneven(channel: Channel) -> list[Fraction]:
    """As where integers modulo 16 stand for reports: the first ones have one integer more."""
    many, rest = divmod(16, len(channel))
    return [Fraction(many + (report < rest), 16) for report in range(len(channel))]


SIZES = [(1, 1), (1, 3), (2, 1), (2, 3), (3, 2), (4, 1)]
CASES = [
    pytest.param(
        oracle,
        *size,
        id=f"{oracle.name}-{oracle.epsilon:g}-{oracle.domain.size}-{size}",
        marks=[pytest.mark.acceptance] if sum(size) == 5 else [],
    )
    for oracle in ORACLES
    for size in SIZES
    if isinstance(oracle, GRR) or sum(size) <= 4  # local hashing has more reports
]


@pytest.mark.parametrize(("oracle", "people", "fakes"), CASES)
def test_bounds_are_never_below_the_exact_delta(oracle: GRR | OLH, people: int, fakes: int) -> None:
    channel = channel_of(oracle)
    for share in (0.05, 0.3, 0.6, 0.9):
        ratio = math.exp(share * oracle.epsilon)
        found = delta_of(blanket_of(oracle), people, ratio, fakes=Fakes(fakes))
        truth = true_delta(channel, people, fakes, uniform(channel), Fraction(ratio))
        assert Fraction(found.high) >= truth
        assert found.low <= found.high
        if people == 1 and isinstance(oracle, GRR):  # nothing is lost: all that is shuffled is from the blanket
            assert Fraction(found.low) <= truth
            assert found.spread <= 0.05


@pytest.mark.parametrize(("people", "fakes"), [(1, 1), (1, 4), (2, 2), (3, 1)])
def test_bounds_include_uneven_integers(people: int, fakes: int) -> None:
    oracle = GRR(2.0, 3)
    channel = channel_of(oracle)
    law = uneven(channel)
    assert len(set(law)) == 2
    for share in (0.1, 0.4, 0.8):
        ratio = math.exp(share * oracle.epsilon)
        found = delta_of(blanket_of(oracle), people, ratio, fakes=Fakes(fakes, 3 * min(law)))
        assert Fraction(found.high) >= true_delta(channel, people, fakes, law, Fraction(ratio))


def test_bound_for_even_integers_is_below_the_exact_delta() -> None:
    oracle = GRR(2.0, 3)
    channel, ratio = channel_of(oracle), math.exp(1.6)
    law = [Fraction(14, 16), Fraction(1, 16), Fraction(1, 16)]
    naive = delta_of(blanket_of(oracle), 1, ratio, fakes=Fakes(2))
    right = delta_of(blanket_of(oracle), 1, ratio, fakes=Fakes(2, 3 * min(law)))
    truth = true_delta(channel, 1, 2, law, Fraction(ratio))
    assert Fraction(naive.high) < truth <= Fraction(right.high)


def test_bound_for_too_many_fakes_is_below_the_exact_delta() -> None:
    """The same comparison fails for an accountant that believes in one fake more."""
    oracle = GRR(1.0, 2)
    channel, ratio = channel_of(oracle), math.exp(0.3)
    truth = true_delta(channel, 1, 3, uniform(channel), Fraction(ratio))
    assert Fraction(delta_of(blanket_of(oracle), 1, ratio, fakes=Fakes(5)).high) < truth


def exact_bound(oracle: GRR | OLH, people: int, fakes: Fakes, ratio: Fraction) -> Fraction:
    """E[g(M)] with M = 1 + Bin(n - 1, gamma) + Bin(fakes, share), by sums over everything."""
    blanket = blanket_of(oracle)
    gamma = blanket.gamma
    atoms = [(mass / gamma, gamma * (one - ratio * two)) for mass, one, two in blanket.atoms()]
    drawn = {0: Fraction(1)}
    for chance in [gamma] * (people - 1) + [fakes.share] * fakes.count:
        after: dict[int, Fraction] = {}
        for many, weight in drawn.items():
            after[many] = after.get(many, Fraction(0)) + weight * (1 - chance)
            after[many + 1] = after.get(many + 1, Fraction(0)) + weight * chance
        drawn = after
    law, total = {Fraction(0): Fraction(1)}, Fraction(0)
    for many in range(people + fakes.count):
        step: dict[Fraction, Fraction] = {}
        for value, chance in law.items():
            for mass, added in atoms:
                step[value + added] = step.get(value + added, Fraction(0)) + chance * mass
        law = step
        positive = sum((value * chance for value, chance in law.items() if value > 0), start=Fraction(0))
        total += drawn.get(many, Fraction(0)) * positive / (many + 1)
    return total


@pytest.mark.parametrize(("people", "fakes"), [(2, 1), (2, 4), (4, 3), (1, 5)])
@pytest.mark.parametrize("share", [Fraction(1), Fraction(15, 16), Fraction(1, 8)])
def test_transform_lies_between_its_bounds(people: int, fakes: int, share: Fraction) -> None:
    oracle = OLH(2.0, 9, 3)
    added = Fakes(fakes, share)
    for part in (0.1, 0.5, 0.9):
        ratio = math.exp(part * oracle.epsilon)
        found = delta_of(blanket_of(oracle), people, ratio, fakes=added)
        truth = exact_bound(oracle, people, added, Fraction(ratio))
        assert truth <= Fraction(found.high)
        if share >= blanket_of(oracle).gamma or people == 1:  # else people's gamma is taken for smaller than it is
            assert Fraction(found.low) <= truth


def test_bounds_are_close_for_more_people() -> None:
    found = delta_of(blanket_of(OLH(3.0, 100, 8)), 2_000, math.exp(0.5), fakes=Fakes(300))
    assert found.spread < 0.05


def test_central_guarantees_hold_exactly() -> None:
    oracle = GRR(2.0, 3)
    channel = channel_of(oracle)
    law = uniform(channel)  # of 2^64 integers: as good as even
    for delta in (0.05,):
        for found, people in (
            (against_server(oracle, 2, 3, delta).central, 2),
            (against_server_and_users(oracle, 3, delta).central, 1),
        ):
            assert found.ratio is not None
            assert true_delta(channel, people, 3, law, found.ratio) <= found.delta or found.delta == 0


def test_least_share_matches_the_integers() -> None:
    for buckets in (2, 3, 7, 1000, 2**16 - 1):
        share = least_share(OLH(1.0, 10, buckets))
        assert share * 2**32 == 2**32 // buckets
        assert 1 - buckets * share < Fraction(buckets, 2**32)
    assert least_share(GRR(1.0, 10)) == Fraction(2**64 // 10, 2**64)
