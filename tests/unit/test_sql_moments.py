"""Sums over rows: exact, whatever the order, and their scatter."""

from __future__ import annotations

import numpy as np
import pytest

from veil.sql.design import Values
from veil.sql.moments import Moments

GROUPS = 3


class Given(Values):
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
    moments = Moments(Given(constant, 8.0), 2, GROUPS)
    for piece in np.array_split(np.arange(len(groups)) if order is None else order, pieces):
        moments.add(groups[piece], numbers[piece], np.ascontiguousarray(weights[:, piece]))
    counts = np.bincount(groups, minlength=GROUPS)
    whole = [[int(a) for a in row] for row in weights]
    products = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in whole] for a in whole]
    return moments.totals(counts, [sum(a) for a in whole], products, np.array([1.0, 0.01])).doubles()


def test_sums_are_those_of_the_rows():
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
def test_the_order_of_rows_never_shows(large):
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


def test_noise_is_what_is_left_at_least():
    """A few people may seem to differ more by themselves than all scatter says: the noise stays."""
    groups, numbers, weights = np.zeros(4, np.int64), np.array([1.0, 1.0, 1.0, -2.9]), np.ones((1, 4), np.int64)
    for noise in (0.0, 3.0):
        moments = Moments(Given(0.5, 4.0, noise), 1, 1)
        moments.add(groups, numbers, weights)
        found = moments.totals(np.array([4]), [4], [[4]], np.ones(1))
        assert found.covariance[0, 0] >= max(noise, 1e-9)
