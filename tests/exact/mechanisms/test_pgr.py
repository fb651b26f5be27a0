"""PGR, exactly: ratio, bias and pairs by enumeration; the transform against counting; the choice of the space."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import PGR, Bits, Categories, Survey, Text, checks, errors, merge
from veil.checks import exact_supports, worst_ratio
from veil.entropy import SeededForExperiments
from veil.kernels.geometry import coordinates
from veil.mechanisms.oracles import pgr
from veil.mechanisms.oracles import pgr as projective
from veil.mechanisms.oracles.pgr import Geometry, all_supports, best_geometry, is_prime
from veil.privacy import exp_below
from veil.wire.tallies import decode_tally, encode_tally

SPACES = [(2, 2), (2, 3), (2, 4), (2, 5), (3, 2), (3, 3), (3, 4), (5, 2), (5, 3), (7, 2), (11, 2)]
LARGER = [*SPACES, (2, 9), (3, 7), (5, 5), (7, 3), (13, 3), (31, 3), (101, 2), (1009, 2)]


def vectors_of(geometry: Geometry) -> NDArray[np.int64]:
    """The coordinates of all points, one a row."""
    out = np.empty((geometry.dimension, geometry.points), np.uint64)
    coordinates(np.arange(geometry.points, dtype=np.uint64), geometry.prime, geometry.powers, out)
    return out.T.astype(np.int64)


def incidence(geometry: Geometry) -> NDArray[np.bool_]:
    every = vectors_of(geometry)
    return every @ every.T % geometry.prime == 0


def full(prime: int, dimension: int, epsilon: float = 1.0) -> PGR:
    return PGR(epsilon, Geometry(prime, dimension).points, prime, dimension)


# -- points ------------------------------------------------------------------------------------------------------------


def test_the_numbering_of_points() -> None:
    """The wire format: leading ones from the left, then the other coordinates as a number to the base q."""
    assert vectors_of(Geometry(3, 2)).tolist() == [[1, 0], [1, 1], [1, 2], [0, 1]]
    shown = vectors_of(Geometry(3, 3))
    assert shown[[0, 1, 5, 8, 9, 11, 12]].tolist() == [
        [1, 0, 0], [1, 0, 1], [1, 1, 2], [1, 2, 2], [0, 1, 0], [0, 1, 2], [0, 0, 1],
    ]  # fmt: skip


@pytest.mark.parametrize(("prime", "dimension"), LARGER)
def test_counts_of_points(prime: int, dimension: int) -> None:
    geometry = Geometry(prime, dimension)
    assert geometry.points == sum(prime**k for k in range(dimension))
    assert len(np.unique(vectors_of(geometry), axis=0)) == geometry.points
    orthogonal = incidence(geometry)
    assert (orthogonal.sum(axis=0) == geometry.on_hyperplane).all()
    assert geometry.points - geometry.on_hyperplane == prime ** (dimension - 1)
    both = orthogonal[0] & orthogonal[1]
    assert int(both.sum()) == geometry.on_both
    points = full(prime, dimension).point_of(np.arange(geometry.points))
    assert np.unique(points).tolist() == list(range(geometry.points))


# -- enumeration -------------------------------------------------------------------------------------------------------


def oracles() -> list[PGR]:
    whole = [full(*space, epsilon) for space in SPACES for epsilon in (0.1, 1.0, 2.5)]
    part = [PGR(epsilon, size) for size in (2, 3, 5, 8, 20) for epsilon in (0.1, 0.5, 1.0, 2.5, 6.0)]
    return [*whole, *part, PGR(1.0, 9, prime=3, dimension=4), PGR(0.5, 4, prime=13), PGR(1.0, 6, dimension=4)]


@pytest.mark.parametrize("oracle", oracles(), ids=repr)
def test_ratio_bias_and_pairs(oracle: PGR) -> None:
    channel = oracle.channel()
    for held in range(oracle.domain.size):
        assert sum(chances[held] for chances in channel.values()) == 1
    assert worst_ratio(channel) == oracle.guarantee.ratio <= exp_below(oracle.epsilon)
    assert oracle.guarantee.epsilon <= oracle.epsilon
    single, pair = exact_supports(oracle)
    points = vectors_of(oracle.geometry)[oracle.point_of(np.arange(oracle.domain.size)).astype(np.int64)]
    apart = min(oracle.pair_misses)
    for held, row in enumerate(single):
        for value, chance in enumerate(row):
            assert (chance - oracle.q) / (oracle.p - oracle.q) == (value == held)
        for value, other in combinations(range(oracle.domain.size), 2):
            together = pair.get((held, value, other), Fraction(0))
            if held in (value, other) or on_one_line(points[[held, value, other]], oracle.prime):
                assert together == oracle.noise.hit
            else:
                assert together == apart


def on_one_line(points: NDArray[np.int64], prime: int) -> bool:
    """Whether the first of three different points is a combination of the others: all 3 x 3 minors are 0."""
    a, b, c = points.tolist()
    for i, j, k in combinations(range(len(a)), 3):
        minor = a[i] * (b[j] * c[k] - b[k] * c[j]) - a[j] * (b[i] * c[k] - b[k] * c[i])
        if (minor + a[k] * (b[i] * c[j] - b[j] * c[i])) % prime:
            return False
    return True


@pytest.mark.parametrize("space", [(2, 3), (2, 4), (3, 3), (3, 2), (5, 2)])
def test_the_miss_is_the_mean_over_all_pairs(space: tuple[int, int]) -> None:
    oracle = full(*space)
    _, pair = exact_supports(oracle)
    triples = list(permutations(range(oracle.domain.size), 3))
    assert sum(pair.get(triple, Fraction(0)) for triple in triples) / len(triples) == oracle.noise.miss


@pytest.mark.parametrize("inside", [1, 2, 3, 6, 7])
def test_the_variance_of_a_total_is_exact_on_average(inside: int) -> None:
    """Over all sets of a size: as many values as there are in the plane of order 2, one person inside, one outside."""
    oracle = full(2, 3)
    matrix, channel = incidence(oracle.geometry), oracle.channel()
    points = oracle.point_of(np.arange(7)).astype(np.int64)
    found = {True: [], False: []}  # type: dict[bool, list[Fraction]]
    for chosen in combinations(range(7), inside):
        for held in range(7):
            law = [(c[held], int(matrix[report[0], points[list(chosen)]].sum())) for report, c in channel.items()]
            mean = sum((chance * count for chance, count in law), Fraction(0))
            found[held in chosen].append(sum((chance * (count - mean) ** 2 for chance, count in law), Fraction(0)))
    gap = (oracle.p - oracle.q) ** 2
    for share, spread in ((1.0, found[True]), (0.0, found[False])):
        if spread:
            mean = sum(spread, Fraction(0)) / len(spread) / gap
            assert oracle.noise.total_variance(inside, share) == pytest.approx(float(mean), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("prime", "dimension"), LARGER)
def test_the_formulas_of_the_paper(prime: int, dimension: int) -> None:
    oracle, odds = full(prime, dimension), exp_below(1.0)
    geometry = oracle.geometry
    each = 1 / ((odds - 1) * geometry.on_hyperplane + geometry.points)
    assert oracle.p <= odds * each * geometry.on_hyperplane < oracle.p + Fraction(1, 2**64)
    assert float(oracle.q) == pytest.approx(float(each * ((odds - 1) * geometry.on_both + geometry.on_hyperplane)))
    rest = geometry.points - geometry.on_hyperplane
    missed = (1 - oracle.p) * (geometry.on_hyperplane - geometry.on_both) / rest
    assert oracle.q == oracle.p * geometry.on_both / geometry.on_hyperplane + missed


# -- decoding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prime", "dimension"), LARGER)
@pytest.mark.parametrize("bits", [3, 30, 55])
def test_the_transform_counts_exactly(prime: int, dimension: int, bits: int) -> None:
    geometry = Geometry(prime, dimension)
    messages = np.random.default_rng(prime).integers(-(2**bits), 2**bits, geometry.points)
    assert np.array_equal(all_supports(messages, geometry), incidence(geometry).astype(np.int64) @ messages)


def test_a_transform_beyond_exact_doubles_is_refused() -> None:
    assert projective._rounded(np.array([1.0, 7.2]), total=5, prime=3).tolist() == [2, 4]
    with pytest.raises(errors.VeilError, match="precision"):
        projective._rounded(np.array([1.0, 7.9]), total=5, prime=3)


def test_weights_beyond_exact_doubles_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival that transforms large weights in one piece is wrong, without the residual's noticing."""
    geometry = Geometry(3, 6)
    messages = np.random.default_rng(1).integers(0, 2**53, geometry.points)
    exact = incidence(geometry).astype(np.int64) @ messages
    assert np.array_equal(all_supports(messages, geometry), exact)
    monkeypatch.setattr(projective, "_EXACT_NORM", math.inf)
    assert not np.array_equal(all_supports(messages, geometry), exact)


@pytest.mark.parametrize("oracle", [PGR(1.0, 300), PGR(0.2, 90), PGR(4.0, 2000), PGR(9.0, 400)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_candidates_and_the_whole_domain_agree(oracle: PGR, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    size = oracle.domain.size
    columns = oracle.randomize(np.arange(800) % size, SeededForExperiments(1)).columns
    weights = np.arange(800) * 2**21 - 2**30 if weighted else None
    whole = oracle.support(columns, None, weights)
    some = np.random.default_rng(2).permutation(size)[: size // 2].astype(np.uint64)
    matrix = oracle.incidence(columns, some).astype(np.int64)
    assert np.array_equal(matrix.T @ (np.ones(800, np.int64) if weights is None else weights), whole[some])
    for steps in (0, 10**9):  # by the transform, and by inner products
        monkeypatch.setattr(pgr, "_TRANSFORM_STEPS", steps)
        assert np.array_equal(oracle.support(columns, some, weights), whole[some])


def test_inner_products_in_32_and_64_bits() -> None:
    assert {PGR(1.0, 300)._number, PGR(13.0, 2**40)._number} == {np.uint32, np.uint64}
    for oracle in (PGR(13.0, 2**40), PGR(3.0, 2**40), PGR(0.1, 2**50), PGR(40.0, 2**52)):
        held = np.arange(50, dtype=np.uint64) * np.uint64(2**33) % np.uint64(oracle.domain.size)
        columns = oracle.randomize(held, SeededForExperiments(3)).columns
        by_hand = [
            [sum(a * b for a, b in zip(x, y, strict=True)) % oracle.prime == 0 for y in points(oracle, held)]
            for x in unranked(oracle, columns["point"])
        ]
        assert np.array_equal(oracle.incidence(columns, held), by_hand)


def points(oracle: PGR, codes: NDArray[Any]) -> list[list[int]]:
    return unranked(oracle, oracle.point_of(codes))


def unranked(oracle: PGR, numbers: NDArray[Any]) -> list[list[int]]:
    """Coordinates by Python's own integers."""
    found = []
    for number in numbers.tolist():
        lead, q, t = 0, oracle.prime, oracle.dimension
        while number >= q ** (t - 1 - lead):
            number -= q ** (t - 1 - lead)
            lead += 1
        found.append([0] * lead + [1] + [number // q**k % q for k in range(t - 2 - lead, -1, -1)])
    return found


def test_tallies_count_messages_and_the_transform_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = PGR(1.0, 300)
    survey = Survey(oracle)
    reports = survey.randomize(np.arange(5000) % 300, SeededForExperiments(4))
    with monkeypatch.context() as patch:
        patch.setattr(pgr, "all_supports", None)  # a tally does not need it
        parts = [survey.tally(reports[i : i + 900]) for i in range(0, 5000, 900)]
    whole = survey.tally(reports)
    assert merge(parts) == merge(parts[::-1]) == whole
    assert len(whole.parts[0].counts) == oracle.geometry.points
    assert decode_tally(survey, encode_tally(whole)) == whole
    chosen = survey.tally(reports, {0: [5, 1, 299]})
    assert decode_tally(survey, encode_tally(chosen)) == chosen
    some, every = survey.estimate(chosen)[0], survey.estimate(whole)[0]
    assert np.array_equal(some.frequencies, every.frequencies[[5, 1, 299]])
    short = encode_tally(Survey(PGR(1.0, 300, prime=5)).tally(Survey(PGR(1.0, 300, prime=5)).randomize([1])))
    with pytest.raises(errors.MismatchError):
        decode_tally(survey, short)


def test_candidates_of_a_domain_that_cannot_be_listed() -> None:
    oracle = PGR(3.0, Bits(40))
    reports = oracle.randomize(np.full(20_000, 12345), SeededForExperiments(5))
    found = oracle.estimate(oracle.tally(reports, [12345, 99, 2**40 - 1]))
    assert np.abs(found.frequencies - [1, 0, 0]).max() < 6 * float(found.stderr.max())
    with pytest.raises(errors.InputError):
        oracle.tally(reports)
    many = PGR(1.0, 100, prime=101, dimension=6)  # the values can be listed, the points cannot
    with pytest.raises(errors.InputError):
        many.tally(many.randomize([1]))


# -- choosing ----------------------------------------------------------------------------------------------------------


def test_primality_and_neighbouring_primes() -> None:
    sieve = [n for n in range(2000) if n > 1 and all(n % f for f in range(2, math.isqrt(n) + 1))]
    assert [n for n in range(2000) if is_prime(n)] == sieve
    assert is_prime(2**31 - 1)
    assert not is_prime(3215031751)  # a strong pseudoprime to 2, 3, 5 and 7
    assert not is_prime((2**31 - 1) ** 2)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0, 4.5])
@pytest.mark.parametrize("size", [2, 7, 50, 333, 1000, 4096, 30_000])
def test_the_chosen_space_is_the_best_of_all(epsilon: float, size: int) -> None:
    odds = exp_below(epsilon)
    limit = Fraction(21, 20) * 4 * odds / (odds - 1) ** 2
    spaces = []
    for prime in (n for n in range(2, 300) if is_prime(n)):
        least = next(t for t in range(2, 60) if Geometry(prime, t).points >= size)
        spaces.append(Geometry(prime, least))
    close = [space for space in spaces if space.variance(epsilon) <= limit]
    chosen = best_geometry(epsilon, size)
    assert chosen.variance(epsilon) <= limit
    assert chosen.points == min(space.points for space in close)


@pytest.mark.parametrize("size", [1000, 3000, 10_000, 30_000, 100_000])
def test_variance_is_within_five_per_cent_of_the_optimum(size: int) -> None:
    for tenths in range(5, 51):
        oracle, odds = PGR(tenths / 10, size), math.exp(tenths / 10)
        assert oracle.variance(1) <= 1.05 * 4 * odds / (odds - 1) ** 2


def test_a_million_values_at_epsilon_one() -> None:
    oracle = PGR(1.0, 1_000_000)
    assert (oracle.prime, oracle.dimension, oracle.layout.size) == (3, 14, 4)
    assert oracle.variance(1) < 1.03 * 4 * math.e / (math.e - 1) ** 2


@pytest.mark.parametrize("size", [2**24, 2**24 - 1, 5_000_000])
def test_domains_that_can_be_listed_can_be_decoded(size: int) -> None:
    assert all(PGR(eps, size).geometry.points <= projective.MOST_POINTS for eps in (0.05, 0.5, 1.0, 3.0, 5.0, 9.0))


@pytest.mark.parametrize(
    "parameters",
    [(4,), (1,), (0,), (-3,), (True,), (2.0,), ("3",), (2**31 + 11,), (3, 1), (3, 54), (3, 3), (3, 40), (None, 99)],
    ids=repr,
)
def test_bad_parameters_are_refused(parameters: tuple[Any, ...]) -> None:
    with pytest.raises(errors.ParameterError):
        PGR(1.0, 100, *parameters)


@pytest.mark.parametrize("domain", [Text(4), Bits(54), Bits(100)], ids=repr)
def test_domains_that_are_too_large_are_refused(domain: Any) -> None:
    with pytest.raises(errors.ParameterError):
        PGR(1.0, domain)


def test_reports_out_of_range_are_refused() -> None:
    oracle = PGR(1.0, Categories.range(30))
    with pytest.raises(errors.WireError):
        oracle.check({"point": np.array([oracle.geometry.points], np.uint8)})


def test_pgr_passes_the_conformance_suite() -> None:
    assert checks.check(PGR) > 10
