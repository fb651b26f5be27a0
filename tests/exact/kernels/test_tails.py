"""Tails of supports against convolutions with fractions; coverage of intervals by enumeration; rivals that fail."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from veil.kernels.tails import shares_at, upper_tail
from veil.results.laws import (
    Inversion,
    SupportLaw,
    heaviest_deviation,
    least_support,
    score_interval,
    weighted_interval,
)
from veil.tools.numbers import two_sided

Floats = NDArray[np.float64]


def chances(count: int, chance: Fraction) -> list[Fraction]:
    return [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]


def support_law(people: int, held: int, p: Fraction, q: Fraction) -> list[Fraction]:
    """P(support = s) for s = 0 .. people, exactly."""
    first, second = chances(held, p), chances(people - held, q)
    found = [Fraction(0)] * (people + 1)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            found[i + j] += a * b
    return found


def fast_law(people: int, held: int, p: float, q: float) -> Floats:
    """The same in floating point."""
    first, second = binom.pmf(range(held + 1), held, p), binom.pmf(range(people - held + 1), people - held, q)
    return np.convolve(first, second)


@pytest.mark.parametrize("held", [0, 1, 5, 11, 12])
@pytest.mark.parametrize(("p", "q"), [(Fraction(1, 2), Fraction(1, 9)), (Fraction(63, 64), Fraction(1, 64))])
def test_tails_of_few_people_are_exact(held: int, p: Fraction, q: Fraction) -> None:
    law = support_law(12, held, p, q)
    for at in range(14):
        expected = float(sum(law[at:], Fraction(0)))
        assert upper_tail(float(at), 12.0, float(held), float(p), float(q)) == pytest.approx(expected, rel=1e-11)


def test_saddlepoints_are_close_and_the_normal_tail_is_not() -> None:
    worst, normal = 0.0, 0.0
    for people, p, q in ((1000, 0.5, 0.2), (3000, 0.5, 0.05), (20_000, 0.9, 0.01)):
        for held in (0, people // 50, people // 2, people):
            law = fast_law(people, held, p, q)
            tails = np.cumsum(law[::-1])[::-1]
            for at in np.flatnonzero((tails > 1e-7) & (tails < 0.5))[::7]:
                found = upper_tail(float(at), float(people), float(held), p, q)
                worst = max(worst, abs(found / tails[at] - 1))
                mean = held * p + (people - held) * q
                spread = np.sqrt(held * p * (1 - p) + (people - held) * q * (1 - q))
                normal = max(normal, abs(float(_normal_tail((at - 0.5 - mean) / spread)) / tails[at] - 1))
    assert worst < 5e-4
    assert normal > 0.3


def _normal_tail(z: float) -> float:
    from math import erfc, sqrt

    return 0.5 * erfc(z / sqrt(2))


def test_shares_are_where_the_tail_is_the_target() -> None:
    supports = np.arange(3.0, 60.0)
    for target in (0.025, 0.975):
        found = shares_at(supports, 400.0, 0.6, 0.05, 0.0, 0.5, 1.0, 0.5, target)
        assert (np.diff(found) >= 0).all()
        for at, share in zip(supports, found, strict=True):
            if 0 < share < 1:
                tails = [upper_tail(at + up, 400.0, share * 400, 0.6, 0.05) for up in (0, 1)]
                assert sum(tails) / 2 == pytest.approx(target, rel=1e-3)  # a ten-thousandth of a person


# -- coverage, by enumeration over all supports ---------------------------------------------------------------------


def coverage(people: int, held: int, p: float, q: float, kind: Inversion) -> float:
    supports = np.arange(people + 1.0)
    if kind == "normal":
        share = (supports / people - q) / (p - q)
        inside = np.clip(share, 0, 1)
        spread = np.sqrt((inside * p * (1 - p) + (1 - inside) * q * (1 - q)) / people) / (p - q)
        low, high = share - two_sided(0.95) * spread, share + two_sided(0.95) * spread
    else:
        low, high = SupportLaw(people, p, q).shares(supports, 0.95, kind)
    covered = (low <= held / people + 1e-12) & (held / people <= high + 1e-12)
    return float(fast_law(people, held, p, q) @ covered)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0, 10.0])
@pytest.mark.parametrize("people", [30, 100, 300])
def test_exact_intervals_never_cover_less_than_their_level(people: int, epsilon: float) -> None:
    for p, q in ((exp(epsilon) / (exp(epsilon) + 69), 1 / (exp(epsilon) + 69)), (0.5, 1 / (exp(epsilon) + 1))):
        held = [0, 1, 2, 5, people // 10, people // 2, people - 1, people]
        exact = [coverage(people, m, p, q, "exact") for m in held]
        assert min(exact) >= 0.95 - 1e-9
        middle = [coverage(people, m, p, q, "mid-p") for m in held]
        assert min(middle) >= 0.90
        assert np.mean(middle) >= 0.945


def test_the_normal_interval_is_caught() -> None:
    assert coverage(100, 3, 0.5, 1 / (exp(8) + 1), "normal") < 0.9 < coverage(100, 3, 0.5, 1 / (exp(8) + 1), "mid-p")
    assert coverage(300, 1, exp(8) / (exp(8) + 69), 1 / (exp(8) + 69), "normal") < 0.93


def test_intervals_are_whole_people_within_all_people() -> None:
    law = SupportLaw(200, 0.5, 0.1)
    for level in (0.5, 0.9, 0.999):
        low, high = law.shares(np.arange(201.0), level, "mid-p")
        assert ((low >= 0) & (high <= 1) & (low <= high)).all()
        assert np.allclose(low * 200, np.rint(low * 200))
        assert np.allclose(high * 200, np.rint(high * 200))
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) >= 0).all()


# -- samples of a population ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("population", [50, 60, 100, 10_000])
def test_intervals_about_a_population_have_its_sampling_in_them(population: int) -> None:
    """The law of a sample is a hypergeometric mixture: by enumeration, intervals about all people hold."""
    people, p, q = 50, 0.7, 0.1
    held_by = [round(share * population) for share in (0.0, 0.1, 0.3, 0.5, 0.9)]
    rest = (population - people) / (population - 1)
    supports = np.arange(people + 1.0)
    ends = SupportLaw(people, p, q, fixed=float(np.sqrt(1 - rest))).shares(supports, 0.95, "mid-p")
    rival = SupportLaw(people, p, q).shares(supports, 0.95, "mid-p")  # as if all people had been asked
    found, missed = [], []
    for held in held_by:
        mixture = np.zeros(people + 1)
        for inside in range(people + 1):
            mixture += hypergeom.pmf(inside, population, held, people) * fast_law(people, inside, p, q)
        for (low, high), kept in ((ends, found), (rival, missed)):
            kept.append(float(mixture @ ((low <= held / population + 1e-9) & (held / population <= high + 1e-9))))
    assert min(found) >= 0.93
    if population >= 100:
        assert min(missed) < 0.92


# -- significance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [100, 300, 1000, 20_000])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 5.0, 7.0, 10.0])
def test_absent_values_are_below_the_threshold(people: int, epsilon: float) -> None:
    """The tail that is asked for, and not one report more than it takes."""
    caught = False
    for d in (50, 1000):
        for q in (1 / (exp(epsilon) + d - 1), 1 / (exp(epsilon) + 1)):
            k = least_support(people, q, 0.05 / d)
            assert binom.sf(k, people, q) <= 0.05 / d
            assert k == 0 or binom.sf(k - 1, people, q) > 0.05 / d
            normal = people * q + 1.0 * _quantile(0.05 / d) * np.sqrt(people * q * (1 - q))
            caught = caught or binom.sf(np.floor(normal), people, q) > 2 * 0.05 / d
    assert caught or (epsilon <= 2 and people >= 1000)


def _quantile(tail: float) -> float:
    from statistics import NormalDist

    return -NormalDist().inv_cdf(tail)


def test_weighted_sums_stay_below_their_bound() -> None:
    """By enumeration: weights of two kinds, and one person who outweighs many."""
    q, tail, caught = 0.2, 1e-3, False
    cases: list[list[tuple[int, int]]] = [[(30, 1), (10, 4)], [(40, 1), (1, 20)], [(40, 1)]]  # (people, weight)
    for weights in cases:
        people = sum(count for count, _ in weights)
        total, square = (sum(count * weight**power for count, weight in weights) for power in (1, 2))
        law = np.ones(1)
        for count, weight in weights:
            spread = np.zeros(count * weight + 1)
            spread[::weight] = binom.pmf(range(count + 1), count, q)
            law = np.convolve(law, spread)
        beyond = total * (q + heaviest_deviation(people, total**2 / square, q, tail))
        assert law[int(np.floor(beyond)) + 1 :].sum() <= tail
        effective = total**2 / square
        normal = total * (q + _quantile(tail) * np.sqrt(q * (1 - q) / effective))
        caught = caught or law[int(np.floor(normal)) + 1 :].sum() > 2 * tail
    assert caught  # the rival: as if supports were normal


@pytest.mark.parametrize(("heavy", "weight"), [(1, 30), (20, 10)])
def test_weighted_intervals_hold_whoever_carries_the_weight(heavy: int, weight: int) -> None:
    """By enumeration: the heavy people hold the value; the rival takes weights for people that they are worth."""
    light, p, q = 300, 0.5, 1 / (exp(8) + 1)
    people, total, square = light + heavy, light + heavy * weight, light + heavy * weight**2
    effective, truth = total**2 / square, heavy * weight / total
    covered = rival = 0.0
    for held, chance in enumerate(binom.pmf(range(heavy + 1), heavy, p)):
        for others, other in enumerate(binom.pmf(range(8), light, q)):
            found = np.array([((weight * held + others) / total - q) / (p - q)])
            low, high = weighted_interval(found, people, effective, p, q, 0.0, 0.95)
            covered += chance * other * (low[0] <= truth + 1e-12 and truth <= high[0] + 1e-12)
            support = np.rint(effective * (q + (p - q) * found))
            low, high = SupportLaw(round(effective), p, q).shares(support, 0.95, "mid-p")
            rival += chance * other * (low[0] <= truth + 1e-12 and truth <= high[0] + 1e-12)
    assert covered >= 0.95
    assert rival < 0.9


def test_score_intervals_solve_their_equation() -> None:
    found = np.array([-0.05, 0.0, 0.2, 0.9, 1.1])
    none, half, every = (np.full(5, v) for v in (0.001, 0.004, 0.002))
    low, high = score_interval(found, (none, half, every), 0.95)
    for f, ends in zip(found, np.stack([low, high], axis=1), strict=True):
        for end in ends:
            if 0 < end < 1 and 0 <= f <= 1:
                variance = (
                    none[0] * (1 - end) * (1 - 2 * end) + 4 * half[0] * end * (1 - end) + every[0] * end * (2 * end - 1)
                )
                assert (f - end) ** 2 == pytest.approx(two_sided(0.95) ** 2 * variance)
    assert ((low >= 0) & (high <= 1) & (low <= high)).all()
