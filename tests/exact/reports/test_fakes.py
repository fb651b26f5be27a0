"""Estimates with uniform fakes: unbiased, with exact variances and intervals, by enumeration and convolution."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from veil import GRR, OLH
from veil.entropy import Source, outcomes
from veil.kernels.tails import upper_tail
from veil.mechanisms import PureOracle
from veil.post import redraw_counts
from veil.post.selection import redraw
from veil.reports.tally import Tally
from veil.results.laws import FakeLaw, SupportLaw, least_support
from veil.wire.ring import Ring, ring_of

Floats = NDArray[np.float64]


def law_of(people: int, held: int, p: float, q: float, fakes: int, u: float) -> Floats:
    """The probabilities of all supports, by convolution."""
    parts = [binom.pmf(np.arange(n + 1), n, c) for n, c in ((held, p), (people - held, q), (fakes, u))]
    return np.asarray(np.convolve(np.convolve(parts[0], parts[1]), parts[2]))


def test_grr_with_a_fake_is_unbiased() -> None:
    """Two people and a fake through the shipped code: every estimate times its probability is the truth, exactly."""
    oracle = GRR(1.0, 4)
    ring = Ring(oracle.digest, oracle.layout, 4)
    held = np.array([1, 1, 3], dtype=np.uint64)

    def collected(source: Source) -> tuple[int, ...]:
        real = oracle.draw(held, source)["value"]
        fake = ring.decode(ring.uniform(1, source))["value"]
        counted = oracle.tally_columns({"value": np.concatenate([real, fake])}, None).with_fakes(1)
        return tuple(counted.counts.tolist())

    found, shipped = [Fraction(0)] * 4, np.zeros(4)
    for counts, chance in outcomes(collected).items():
        tally = Tally(oracle.digest, np.array(counts), 3, 3, 3, fakes=1)
        exact = [((c - Fraction(1, 4)) / 3 - oracle.q) / (oracle.p - oracle.q) for c in counts]
        found = [sum_ + chance * f for sum_, f in zip(found, exact, strict=True)]
        estimate = oracle.estimate(tally)
        assert np.allclose(estimate.frequencies, np.array(exact, float), rtol=0, atol=1e-12)
        shipped += float(chance) * estimate.frequencies
    assert found == [0, Fraction(2, 3), 0, Fraction(1, 3)]
    assert np.allclose(shipped, [0, 2 / 3, 0, 1 / 3], atol=1e-12)


def test_bias_of_an_uneven_ring_is_within_its_bound() -> None:
    for size in (3, 1000, 60_000):
        ring = ring_of(GRR(1.0, size), 32)
        _, sizes = ring._intervals(np.arange(size, dtype=np.uint64))
        off = max(abs(Fraction(int(many), 2**32) * size - 1) for many in (sizes.min(), sizes.max()))
        assert off < Fraction(1, 2**16)


@pytest.mark.parametrize("buckets", [2, 3, 7, 1000])
def test_a_fake_adds_nothing_to_olh_in_expectation(buckets: int) -> None:
    """Under a random function a fake supports a value with the sum of w_y^2: the intervals of ring and hash agree."""
    oracle = OLH(1.0, 10, buckets, 4)
    ring = ring_of(oracle)
    _, sizes = ring._intervals(np.arange(buckets, dtype=np.uint64))
    shares = [Fraction(int(many), 2**32) for many in sizes]
    assert sum(shares) == 1
    supports, pairs = sum(w * w for w in shares), sum(w**3 for w in shares)
    assert (oracle.fake_support, oracle.fake_pair) == (supports, pairs)
    gap = oracle.p - oracle.q
    assert (supports - oracle.fake_support) / gap == 0
    # people who hold something else support it just as often, up to the rounding of a threshold: q is about u
    assert abs(oracle.q - supports) < Fraction(1, 2**40)


def test_correction_of_the_thesis_is_biased_for_olh() -> None:
    """(9.5) subtracts n_r / (n d): right for GRR, and for hashing that much below 0 for a value that nobody holds."""
    n, fakes, d = 1000, 500, 20
    for oracle, bias in ((GRR(1.0, d), Fraction(0)), (OLH(1.0, d, seed_bytes=4), Fraction(-fakes, n * d))):
        p, q, u = oracle.p, oracle.q, oracle.fake_support
        assert u is not None
        support = n * q + fakes * u  # expected, of a value that nobody holds
        whole = (support / (n + fakes) - q) / (p - q)
        thesis = Fraction(n + fakes, n) * whole - Fraction(fakes, n * d)
        ours = ((support - fakes * u) / n - q) / (p - q)
        assert ours == 0
        assert abs(thesis - bias) < Fraction(1, 10**9)


def test_variance_matches_the_formula() -> None:
    n, fakes, d = 700, 300, 6
    oracle = GRR(1.5, d)
    p, q = float(oracle.p), float(oracle.q)
    estimate = oracle.estimate(Tally(oracle.digest, np.full(d, 150), n, n, n, fakes=fakes))
    f = np.array([0.0, 0.3, 1.0])
    known = (n * (q * (1 - q) + f * (p * (1 - p) - q * (1 - q))) + fakes / d * (1 - 1 / d)) / (n * (p - q)) ** 2
    assert np.allclose(estimate.variance_at(f), known, rtol=1e-12)
    assert estimate.fakes == FakeLaw(fakes, Fraction(1, d), Fraction(0))
    assert estimate.lineage == ("GRR(epsilon=1.5)", "300 uniform fakes removed")


@pytest.mark.parametrize("oracle", [GRR(1.0, 3), OLH(1.0, 3, 3, 4)], ids=lambda o: o.name)
def test_totals_have_the_variance_of_their_fakes(oracle: PureOracle) -> None:
    """One fake's support of two of three values, by going through what it may be."""
    u, pair = oracle.fake_support, oracle.fake_pair
    assert u is not None
    assert pair is not None
    fakes = FakeLaw(1, u, pair)
    if isinstance(oracle, GRR):
        both = [Fraction(1, 3)] * 3
        chances = {1: both[0] + both[1], 0: both[2]}
    else:  # an ideal hash: the value's buckets are independent of each other and of the reported one
        shares = [Fraction(int(s), 2**32) for s in ring_of(oracle)._intervals(np.arange(3, dtype=np.uint64))[1]]
        chances = dict.fromkeys((0, 1, 2), Fraction(0))
        for reported, one, other in product(range(3), repeat=3):
            chances[(one == reported) + (other == reported)] += shares[reported] * shares[one] * shares[other]
    mean = sum(k * c for k, c in chances.items())
    variance = sum(k * k * c for k, c in chances.items()) - mean**2
    assert mean == 2 * u
    assert fakes.variance(2) == pytest.approx(float(variance), rel=1e-12)
    assert fakes.variance(1) == pytest.approx(float(u * (1 - u)), rel=1e-12)


def test_a_whole_histogram_of_grr_has_no_scatter_with_fakes_either() -> None:
    oracle = GRR(1.0, 5)
    estimate = oracle.estimate(Tally(oracle.digest, np.array([30, 30, 30, 30, 30]), 100, 100, 100, fakes=50))
    assert estimate._total_variance(5, 1.0) == pytest.approx(0.0, abs=1e-12)
    assert estimate.frequencies.sum() == pytest.approx(1.0)
    plain = oracle.estimate(Tally(oracle.digest, np.full(5, 20), 100, 100, 100))
    assert estimate.total(range(5)).interval() == plain.total(range(5)).interval()  # every fake supports the whole
    normed = estimate.post("norm")
    assert np.allclose(normed.variance, estimate.variance)
    assert normed.fakes == estimate.fakes


@pytest.mark.parametrize(("people", "fakes"), [(12, 9), (300, 100), (3000, 2000), (50_000, 20_000)])
def test_tails_of_three_binomials(people: int, fakes: int) -> None:
    p, q, u = 0.55, 0.03, 0.05
    for held in (0, people // 7, people):
        law = law_of(people, held, p, q, fakes, u)
        tails = np.append(np.cumsum(law[::-1])[::-1], 0.0)
        mean, sd = float(law @ np.arange(len(law))), 1.0
        sd = float(np.sqrt(law @ (np.arange(len(law)) - mean) ** 2))
        for z in (-4, -2, -0.5, 0, 0.001, 1, 3, 5, 8):
            at = min(max(round(mean + z * sd), 0), people + fakes)
            found = upper_tail(float(at), float(people), float(held), p, q, float(fakes), u)
            exact = min(float(tails[at]), 1.0)
            assert found == pytest.approx(exact, rel=1e-9 if sd < 9 else 1e-3), (held, z)


def test_fakes_with_the_support_of_people_count_like_people() -> None:
    for at in (20, 40, 60):
        assert upper_tail(float(at), 300.0, 30.0, 0.5, 0.1, 200.0, 0.1) == upper_tail(float(at), 500.0, 30.0, 0.5, 0.1)


@pytest.mark.parametrize(
    ("people", "fakes", "q", "u"), [(40, 30, 0.05, 0.1), (40, 30, 0.2, 0.2), (900, 700, 0.1, 0.15)]
)
def test_exact_intervals_never_cover_less_than_their_level(people: int, fakes: int, q: float, u: float) -> None:
    p, level = 0.6, 0.9
    supports = np.arange(people + fakes + 1, dtype=np.float64)
    law = SupportLaw(people, p, q, 1.0, fakes, u)
    ends = {kind: law.shares(supports, level, kind) for kind in ("exact", "mid-p")}  # type: ignore[arg-type]
    # the rival takes what fakes support in expectation off, and forgets that they scatter
    rival = SupportLaw(people, p, q).shares(np.clip(supports - round(fakes * u), 0, people), level, "exact")
    covered: dict[str, list[float]] = {"exact": [], "mid-p": [], "rival": []}
    for held in range(0, people + 1, max(people // 40, 1)):
        chances = law_of(people, held, p, q, fakes, u)
        for kind, (low, high) in {**ends, "rival": rival}.items():
            inside = (low <= held / people + 1e-12) & (held / people <= high + 1e-12)
            covered[kind].append(float(chances[inside].sum()))
    assert min(covered["exact"]) >= level - 1e-3 * (people > 500)  # a saddlepoint is right to 0.05 % of a tail
    assert abs(float(np.mean(covered["mid-p"])) - level) < 0.04
    assert min(covered["rival"]) < level - 0.05


@pytest.mark.parametrize(
    ("people", "fakes", "q", "u"), [(100, 50, 0.1, 0.2), (5000, 3000, 0.2, 0.1), (900, 9, 0.3, 0.3)]
)
def test_threshold_matches_the_exact_tail(people: int, fakes: int, q: float, u: float) -> None:
    law = law_of(people, 0, 0.5, q, fakes, u)
    beyond = np.cumsum(law[::-1])[::-1]  # P(support >= k)
    for tail in (0.05, 1e-3, 1e-9):
        k = least_support(people, q, tail, fakes, u)
        assert beyond[k + 1] <= tail * (1 + 1e-6) < beyond[k] * (1 + 2e-6)


def test_an_absent_value_is_rarely_significant() -> None:
    """By the exact law of its support; without the fakes' scatter it would be far too often."""
    oracle, people, fakes = GRR(1.0, 50), 400, 2000
    estimate = oracle.estimate(Tally(oracle.digest, np.full(50, 48), people, people, people, fakes=fakes))
    law = law_of(people, 0, float(oracle.p), float(oracle.q), fakes, 1 / 50)
    shares = ((np.arange(len(law)) - fakes / 50) / people - float(oracle.q)) / float(oracle.p - oracle.q)
    assert law[shares > estimate.threshold(0.05)].sum() <= 0.05 / 50
    assert law[shares > replace(estimate, fakes=None).threshold(0.05)].sum() > 20 * 0.05 / 50


@pytest.mark.parametrize("oracle", [GRR(1.0, 4), OLH(2.0, 4, seed_bytes=4)], ids=lambda o: o.name)
def test_simulated_people_include_fakes(oracle: PureOracle) -> None:
    held, random = np.array([500, 300, 200, 0]), np.random.default_rng(1)
    assert oracle.fake_support is not None
    assert oracle.fake_pair is not None
    fakes = FakeLaw(3000, oracle.fake_support, oracle.fake_pair)
    drawn = np.array([redraw(oracle.noise, held, random, fakes) for _ in range(4000)])
    estimate = oracle.estimate(
        Tally(oracle.digest, redraw_counts(oracle.noise, held, random), 1000, 1000, 1000, fakes=3000)
    )
    wanted = estimate.variance_at(held / 1000)
    assert np.allclose(drawn.mean(axis=0), held / 1000, atol=6 * np.sqrt(wanted.max() / 4000))
    assert np.allclose(drawn.var(axis=0) / wanted, 1.0, atol=0.15)
    assert (drawn.var(axis=0) / replace(estimate, fakes=None).variance_at(held / 1000) > 1.3).all()


def test_maximum_likelihood_of_grr_includes_fakes() -> None:
    """No other histogram on a grid makes the counts more likely, as a mixture of people's reports and fakes."""
    oracle, people, fakes = GRR(1.0, 3), 300, 600
    counts = np.array([420, 310, 170])
    made = oracle.estimate(Tally(oracle.digest, counts, people, people, people, fakes=fakes)).post("mle")
    p, q = float(oracle.p), float(oracle.q)

    def likelihood(shares: Floats) -> float:
        mixed = (people * (q + (p - q) * shares) + fakes / 3) / (people + fakes)
        return float(counts @ np.log(mixed))

    grid = [np.array([a, b, 100 - a - b]) / 100 for a in range(101) for b in range(101 - a)]
    assert likelihood(made.frequencies) >= max(map(likelihood, grid)) - 1e-12
    forgotten = replace(oracle.estimate(Tally(oracle.digest, counts, people, people, people, fakes=fakes)), fakes=None)
    assert likelihood(forgotten.post("mle").frequencies) < likelihood(made.frequencies) - 1e-3
