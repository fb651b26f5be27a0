"""The choice of views: Algorithm 2 with the numbers of the thesis, balance, predicted errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from tests.support.golden import golden_rows

from veil import Categories, Record, simulate
from veil.errors import ParameterError
from veil.marginals import CALM, FourierMarginals
from veil.marginals.choosing import (
    balanced_sets,
    choose_sizes,
    choose_views,
    expected_cells,
    noise_error,
    predicted_error,
    predicted_fourier_error,
    sampling_error,
)
from veil.marginals.covering import covering_design


def cut(value: float) -> str:
    """Five digits after the point, the rest cut off: 0.000767 is printed as 0.00076."""
    return f"{math.floor(value * 1e5) / 1e5:.5f}"


def test_sizes_match_section_6_2_3() -> None:
    printed = golden_rows("section_6_2_3_calm_parameters.csv")
    chosen = choose_sizes(2**16, 8, 3, 2.0)
    found = [row for row in chosen.rows if row.covers]
    assert len(found) == len(printed) == 2
    for row, line in zip(found, printed, strict=True):
        assert (row.s, row.cells, row.marginals) == (int(line["s"]), int(line["cells"]), int(line["marginals"]))
        assert cut(row.k_times_noise_error) == line["k_times_noise_error"]
        assert cut(row.sampling_error) == line["sampling_error"]
    assert (chosen.s, chosen.t) == (4, 14)


@pytest.mark.parametrize("epsilon", [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4])
def test_pairs_up_to_epsilon_1_4(epsilon: float) -> None:
    assert (choose_sizes(2**16, 8, 3, epsilon).s, choose_sizes(2**16, 8, 3, epsilon).t) == (2, 28)


@pytest.mark.parametrize("line", golden_rows("section_6_3_6_calm_choices.csv"))
def test_sizes_match_section_6_3_6(line: dict[str, str]) -> None:
    chosen = choose_sizes(int(line["n"]), int(line["attributes"]), int(line["k"]), float(line["epsilon"]))
    assert chosen.s == int(line["s"])
    if line["n"] == "65536":
        assert chosen.t == 65


def test_sizes_between_those_of_section_6_3_6() -> None:
    assert [choose_sizes(2**18, 16, k, 1.5).s for k in range(3, 11)] == [3] * 5 + [2] * 3
    assert choose_sizes(2**18, 16, 6, 1.4).s == 2


def test_covering_design_has_fewer_views_than_algorithm_2() -> None:
    """Algorithm 2 taken literally asks for 180 random views of 4 of 12 attributes; 62 hold every 3."""
    chosen = choose_sizes(180_000, 12, 3, 1.8)
    assert chosen.taken.covers
    assert chosen.t == len(covering_design(12, 3, chosen.s)) < 180


def test_expected_cells_is_the_mean_over_all_views() -> None:
    sizes = (2, 3, 5, 7, 11)
    for s in range(1, 6):
        every = [math.prod(some) for some in combinations(sizes, s)]
        assert expected_cells(sizes, s) == pytest.approx(float(Fraction(sum(every), len(every))), rel=1e-15)
    assert expected_cells((2,) * 16, 5) == 32


def test_noise_and_sampling_errors_match_the_thesis() -> None:
    direct = (4 - 2 + math.e) / (math.e - 1) ** 2
    hashed = 4 * math.e / (math.e - 1) ** 2
    assert noise_error(1.0, 4, 2, 8, 1000) == pytest.approx(direct * 2 * 8 / 1000)
    assert noise_error(1.0, 100, 2, 8, 1000) == pytest.approx(hashed * 50 * 8 / 1000)
    assert sampling_error(65, 2**16) == 65 / 2**16


def test_larger_attributes_make_smaller_views() -> None:
    binary = choose_sizes(2**18, 8, 3, 2.0)
    large = choose_sizes(2**18, 8, 3, 2.0, cells_of=lambda s: expected_cells((2, 2, 2, 2, 2, 2, 20, 50), s))
    assert large.s < binary.s


SHAPES = [
    (32, 2, 65),
    (16, 2, 65),
    (15, 2, 50),
    (16, 3, 40),
    (16, 3, 65),
    (16, 3, 262),
    (9, 4, 100),
    (32, 4, 60),
    (10, 2, 44),
]


@pytest.mark.parametrize(("m", "s", "t"), SHAPES)
def test_views_are_balanced(m: int, s: int, t: int) -> None:
    sets = balanced_sets(m, s, t)
    assert len(sets) == len(set(sets)) == t
    assert all(len(set(one)) == s for one in sets)
    assert _spread(sets, m) <= 1
    together = Counter(pair for one in sets for pair in combinations(one, 2))
    counts = [together[pair] for pair in combinations(range(m), 2)]
    assert max(counts) - min(counts) <= 2
    if t >= len(covering_design(m, 2, s)):
        assert min(counts) >= 1


def test_random_views_leave_attributes_out() -> None:
    """The rival: 65 random pairs of 32 attributes are not balanced, and some attribute may be in none of them."""
    every = list(combinations(range(32), 2))
    drawn = [Random(seed).sample(every, 65) for seed in range(20)]
    assert all(_spread(sets, 32) > 3 for sets in drawn)
    assert any(len({place for one in sets for place in one}) < 32 for sets in drawn)


def _spread(sets: Sequence[tuple[int, ...]], m: int) -> int:
    occurs = Counter(place for one in sets for place in one)
    return max(occurs[place] for place in range(m)) - min(occurs[place] for place in range(m))


@pytest.mark.parametrize(("m", "s"), [(8, 2), (7, 2), (8, 3), (20, 3)])
def test_every_attribute_is_in_a_view(m: int, s: int) -> None:
    sets = balanced_sets(m, s, 1)
    assert len(sets) == -(-m // s)
    assert {place for one in sets for place in one} == set(range(m))


def test_balanced_sets_end_at_all_of_them() -> None:
    assert balanced_sets(6, 2, 15) == balanced_sets(6, 2, 1000) == tuple(combinations(range(6), 2))
    first = balanced_sets(12, 3, 50)
    balanced_sets.cache_clear()
    assert balanced_sets(12, 3, 50) == first


def test_views_of_a_study() -> None:
    assert len(choose_views((2,) * 8, 3, 2.0, 2**16)) == 14
    assert choose_views((2,) * 16, 3, 1.0, 2**16) == balanced_sets(16, 2, 65)
    assert choose_views((2, 3), 2, 1.0, 10_000) == ((0, 1),)
    few = choose_views((2,) * 10, 3, 1.0, 100)
    assert {place for view in few for place in view} == set(range(10))


@pytest.mark.parametrize(
    ("sizes", "k", "message"),
    [
        ((2,), 1, "at least two attributes"),
        ((2, 2), 3, "from 1 to the record's 2"),
        ((2, 2), 0, "from 1 to the record's 2"),
        ((2, 100_000, 100_000), 2, "10,000,000,000 cells"),
        ((4_000,) * 10, 2, "put values of the largest attributes together"),
    ],
)
def test_invalid_records_are_refused(sizes: tuple[int, ...], k: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        choose_views(sizes, k, 1.0, 1_000_000)


@pytest.mark.parametrize(("users", "threshold"), [(0, 0.001), (1000, 0.0), (1000, 1.0), (1000, math.nan)])
def test_invalid_numbers_are_refused(users: int, threshold: float) -> None:
    with pytest.raises(ParameterError):
        choose_sizes(users, 4, 2, 1.0, threshold)


CASES = [
    ((2, 2, 2), tuple(combinations(range(3), 2)), 1.0, False),
    ((2, 2, 2), tuple(combinations(range(3), 2)), 1.0, True),
    ((2, 3, 4), ((0, 1), (0, 2), (1, 2), (0, 1, 2)), 4.0, False),
    ((2, 3, 4), ((0, 1, 2),), 2.0, True),
]


@pytest.mark.parametrize(("sizes", "sets", "epsilon", "separate"), CASES)
def test_predicted_errors_are_the_right_size(
    sizes: tuple[int, ...], sets: tuple[tuple[int, ...], ...], epsilon: float, separate: bool
) -> None:
    n, repetitions = 3_000, 60
    names = [f"a{i}" for i in range(len(sizes))]
    record = Record(tuple((name, Categories.range(size)) for name, size in zip(names, sizes, strict=True)))
    people = np.stack([np.random.default_rng(i).integers(0, size, n) for i, size in enumerate(sizes)], axis=1)
    named = tuple(tuple(names[place] for place in one) for one in sets)
    study = CALM(epsilon, record, k=2, users=n, sets=named, inference="separate" if separate else "unbiased")
    errors = []
    for seed in range(repetitions):
        result = simulate(study, dict(zip(names, people.T, strict=True)), seed=seed)
        for one, other in combinations(range(len(sizes)), 2):
            true = np.zeros((sizes[one], sizes[other]))
            np.add.at(true, (people[:, one], people[:, other]), 1 / n)
            errors.append(((result.marginal([names[one], names[other]]).shares - true) ** 2).sum())
    predicted = predicted_error(sizes, sets, epsilon, n, 2, separate=separate)
    assert predicted.held == 1.0
    assert 0.85 < np.mean(errors) / predicted.sse < 1.15
    rival = predicted_error(sizes, sets, epsilon, 2 * n, 2, separate=separate)
    assert not 0.85 < np.mean(errors) / rival.sse < 1.15


def test_predicted_errors_of_the_whole_table_and_of_all_marginals() -> None:
    """Section 6.1's variances in units of Var0: 2^m for the whole table, 2^k C(m, k) for all marginals."""
    whole = predicted_error((2,) * 8, [tuple(range(8))], 1.0, 10**5, 3, separate=True)
    every = predicted_error((2,) * 8, list(combinations(range(8), 3)), 1.0, 10**5, 3, separate=True)
    assert whole.sampling == 0.0
    assert every.sampling == pytest.approx(55 / 10**5 * 7 / 8)
    agreed = predicted_error((2,) * 8, list(combinations(range(8), 3)), 1.0, 10**5, 3)
    assert agreed.sse < every.sse / 2
    assert agreed.cell == math.sqrt(agreed.sse / 8)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (2, 3, 4)])
def test_the_predicted_error_of_fourier_coefficients(sizes: tuple[int, ...]) -> None:
    n, names = 3_000, [f"a{i}" for i in range(len(sizes))]
    record = Record(tuple((name, Categories.range(size)) for name, size in zip(names, sizes, strict=True)))
    people = np.stack([np.random.default_rng(i).integers(0, size, n) for i, size in enumerate(sizes)], axis=1)
    study, errors = FourierMarginals(1.0, record, k=2), []
    for seed in range(60):
        result = simulate(study, dict(zip(names, people.T, strict=True)), seed=seed)
        for one, other in combinations(range(len(sizes)), 2):
            true = np.zeros((sizes[one], sizes[other]))
            np.add.at(true, (people[:, one], people[:, other]), 1 / n)
            errors.append(((result.marginal([names[one], names[other]]).shares - true) ** 2).sum())
    assert 0.85 < np.mean(errors) / predicted_fourier_error(sizes, 1.0, n, 2).sse < 1.15
    assert not 0.85 < np.mean(errors) / predicted_fourier_error(sizes, 1.0, 2 * n, 2).sse < 1.15


def test_predicted_error_reports_the_share_of_held_marginals() -> None:
    assert predicted_error((2,) * 5, balanced_sets(5, 2, 5), 1.0, 1000, 2).held == 0.5
    assert predicted_error((2,) * 5, balanced_sets(5, 2, 5), 1.0, 1000, 3).held == 0.0
    with pytest.raises(ParameterError, match="no view holds"):
        predicted_error((2,) * 5, balanced_sets(5, 2, 5), 1.0, 1000, 3, separate=True)
