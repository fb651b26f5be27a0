"""The hash battery in its quick version (the full one is in acceptance), with rivals that must fail it."""

from __future__ import annotations

import pytest
from acceptance.hash_battery import affine, one_word, range_total_ratio, shipped, structured_pairs, worst_leak

SEEDS = 1 << 14
LIMIT = 7.4  # sigmas: 4,500 tests at 1e-9 together


def test_there_are_500_different_pairs() -> None:
    pairs = structured_pairs()
    assert len(pairs) == len(set(pairs)) == 500
    assert all(a != b for a, b in pairs)


def test_no_pair_leaks() -> None:
    assert abs(worst_leak(shipped, structured_pairs(), SEEDS).sigmas) < LIMIT


def test_the_one_word_rival_leaks() -> None:
    leak = worst_leak(one_word, structured_pairs(), SEEDS)
    assert abs(leak.sigmas) > 10 * LIMIT
    assert leak.share > 0.5


@pytest.mark.parametrize("buckets", [2, 4, 55])
def test_range_totals_are_as_noisy_as_they_say(buckets: int) -> None:
    # The variance of 2^16 sums has a relative deviation of about 0.6 %; 5 % is beyond 1e-9.
    assert abs(range_total_ratio(shipped, buckets, width=64, seeds=1 << 16) - 1) < 0.05


def test_the_affine_rival_makes_range_totals_noisier() -> None:
    assert abs(range_total_ratio(affine, 4, width=64, seeds=1 << 16) - 1) > 0.2
