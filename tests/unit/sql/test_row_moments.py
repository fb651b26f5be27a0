"""Moments of rows: exact sums for any order of rows, totals and their covariances."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from veil.errors import WireError
from veil.sql.designs.base import RowEstimator
from veil.sql.execution.sums import RowMoments, Totals, decimals, integers

GROUPS = 3


class Given(RowEstimator):
    """Numbers that are given."""

    variance, groups = 0.0, None

    def __init__(self, constant: float, bound: float, noise: float = 0.0) -> None:
        self.constant, self.bound, self.noise = constant, bound, noise

    def of(self, columns):
        raise NotImplementedError


def rows(n: int, seed: int = 0, large: int = 1):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, GROUPS, n)
    numbers = rng.normal(size=n)
    weights = np.stack([np.ones(n, np.int64), rng.integers(-1000 * large, 1000 * large, n)])
    return groups, numbers, weights


def totals(groups, numbers, weights, constant=0.25, order=None, pieces=1):
    units = np.array([1.0, 0.01])
    made = _totals(groups, numbers, weights, constant, order, pieces).scaled(decimals(units))
    among = None if made.among is None else made.among.astype(np.float64)
    return Totals(made.values.astype(np.float64), made.covariance.astype(np.float64), among)


def _totals(groups, numbers, weights, constant=0.25, order=None, pieces=1):
    moments = RowMoments(Given(constant, 8.0), 2, GROUPS)
    for piece in np.array_split(np.arange(len(groups)) if order is None else order, pieces):
        moments.add(groups[piece], numbers[piece], np.ascontiguousarray(weights[:, piece]))
    counts = np.bincount(groups, minlength=GROUPS)
    whole = [[int(a) for a in row] for row in weights]
    products = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in whole] for a in whole]
    return moments.totals(counts, [sum(a) for a in whole], products, np.ones(2))


def test_totals_and_covariances_match_the_formula():
    groups, numbers, weights = rows(5000)
    found = totals(groups, numbers, weights)
    units = np.array([1.0, 0.01])
    assert found.values == pytest.approx((0.25 * weights.sum(axis=1) + weights @ numbers) * units, rel=1e-6, abs=1e-4)
    y = weights * numbers
    scatter = sum(np.cov(y[:, groups == g]) * (groups == g).sum() for g in range(GROUPS))
    among = (weights * numbers) @ weights.T + 0.25 * weights @ weights.T
    own = among * 0.5 + 0.0625 * weights @ weights.T
    part = found.values / units - 0.25 * weights.sum(axis=1)
    own -= np.outer(part, part) / 5000
    expected = (scatter - own) * np.outer(units, units)
    assert found.covariance == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("large", [1, 10**6, 10**15])
def test_totals_do_not_depend_on_order_or_split_of_rows(large):
    groups, numbers, weights = rows(4000, large=large)
    one = totals(groups, numbers, weights)
    other = totals(groups, numbers, weights, order=np.random.default_rng(1).permutation(4000), pieces=7)
    assert (one.values == other.values).all()
    assert (one.covariance == other.covariance).all()


def test_sums_beyond_64_bits_do_not_wrap():
    n, huge = 1000, 2**62
    groups, numbers = np.zeros(n, np.int64), np.full(n, 7.5)
    weights = np.stack([np.full(n, huge), np.full(n, -huge)])
    found = totals(groups, numbers, weights, constant=0.0)
    assert found.values == pytest.approx([7.5 * n * huge, -0.075 * n * huge], rel=1e-9)


def test_variance_is_at_least_the_noise():
    """A few people may seem to differ more by themselves than all scatter says: the noise stays."""
    groups, numbers, weights = np.zeros(4, np.int64), np.array([1.0, 1.0, 1.0, -2.9]), np.ones((1, 4), np.int64)
    for noise in (0.0, 3.0):
        moments = RowMoments(Given(0.5, 4.0, noise), 1, 1)
        moments.add(groups, numbers, weights)
        found = moments.totals(np.array([4]), [4], [[4]], np.ones(1))
        assert found.covariance[0, 0] >= max(noise, 1e-9)


EXTREME = [10, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1]


def extreme(most: int, n: int = 300, sums: int = 3):
    """Numbers and weights up to the largest that there are, of both signs; the first weight is 1, as in a COUNT."""
    rng = np.random.default_rng(most % 1000)
    weights = rng.integers(-most, most, (sums, n), endpoint=True)
    weights[0] = 1
    weights[1:, :4] = [[most, -most, 0, -most - 1], [most, most, most, most]]
    numbers = rng.integers(-(2**29), 2**29, n, endpoint=True)
    numbers[:2] = 2**29, -(2**29)
    return rng.integers(0, GROUPS, n), numbers, weights


def added(groups, numbers, weights, *pieces) -> bytes:
    """The state after these pieces: the first is added, moments of the others are merged into it."""
    states = []
    for piece in pieces:
        moments = RowMoments(Given(0.0, 1.0), len(weights), GROUPS)  # of bound 1, so that numbers are in units of 2^-29
        moments.add(groups[piece], numbers[piece] / 2.0**29, np.ascontiguousarray(weights[:, piece]))
        states.append(moments)
    for other in states[1:]:
        states[0].merge(other.state())
    return states[0].state()


def by_hand(groups, numbers, weights) -> list[int]:
    """All sums as Python adds them up: w u and w w' u u by group, then w w' u."""
    sums = len(weights)
    pairs = [(a, b) for a in range(sums) for b in range(a + 1)]
    rows = [
        (g, u, [int(w) for w in own]) for g, u, own in zip(groups.tolist(), numbers.tolist(), weights.T, strict=True)
    ]
    first = [sum(w[a] * u for g, u, w in rows if g == k) for k in range(GROUPS) for a in range(sums)]
    second = [sum(w[a] * w[b] * u * u for g, u, w in rows if g == k) for k in range(GROUPS) for a, b in pairs]
    return [*first, *second, *(sum(w[a] * w[b] * u for _, u, w in rows) for a, b in pairs)]


def told(state: bytes, sums: int) -> list[int]:
    words = np.frombuffer(state, np.uint64)
    small = 2 * GROUPS * sums
    return [*integers(words[:small].reshape(-1, 2)), *integers(words[small:].reshape(-1, 4))]


@pytest.mark.parametrize("most", EXTREME)
def test_sums_equal_those_of_python_integers(most):
    given = extreme(most)
    assert told(added(*given, np.arange(300)), 3) == by_hand(*given)


@pytest.mark.parametrize("most", EXTREME)
def test_state_does_not_depend_on_order_or_split_of_rows(most):
    groups, numbers, weights = extreme(most)
    whole = added(groups, numbers, weights, np.arange(300))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cuts = np.sort(rng.integers(0, 301, 6))
        assert added(groups, numbers, weights, *np.split(rng.permutation(300), cuts)) == whole
    # the rival on the same rows: sums of doubles
    products = weights[1].astype(float) * weights[2].astype(float) * numbers.astype(float) ** 2
    orders = {float(np.cumsum(products[np.random.default_rng(seed).permutation(300)])[-1]) for seed in range(20)}
    assert len(orders) > 1 or most == 10


def test_sums_of_many_rows_carry_into_the_highest_words():
    n = 1 << 12
    groups, numbers = np.zeros(n, np.int64), np.full(n, -(2**29))
    weights = np.stack([np.full(n, -(2**63)), np.full(n, 2**63 - 1)])
    state = added(groups, numbers, weights, np.arange(n))
    assert told(state, 2) == by_hand(groups, numbers, weights)
    assert max(map(abs, told(state, 2))) == 2 ** (126 + 58 + 12)


def test_a_state_of_other_sums_is_refused():
    moments = RowMoments(Given(0.0, 1.0), 2, GROUPS)
    with pytest.raises(WireError, match="those of another query"):
        moments.merge(RowMoments(Given(0.0, 1.0), 1, GROUPS).state())


def test_error_of_a_spread_does_not_depend_on_a_large_mean():
    """What cancels is exact: the sum of w + 10^15 c, less 10^15 times the sum of c, is that of w with its error."""
    groups, numbers, weights = rows(3000)
    far = weights + np.array([[0], [10**15]])
    near, moved = (_totals(groups, numbers, own) for own in (weights, far))
    slope = [[Decimal(0), Decimal(1)], [Decimal(-(10**15)), Decimal(1)]]
    assert moved.error(np.array(slope[1])) == pytest.approx(near.error(np.array(slope[0])), rel=0.02)
    # the rival on the same numbers: their covariances as doubles
    doubles = np.array(slope[1], np.float64)
    variance = doubles @ moved.covariance.astype(np.float64) @ doubles
    assert abs(variance / near.error(np.array(slope[0])) ** 2 - 1) > 10
