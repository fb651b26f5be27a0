"""Association of two attributes: Pearson's correlation, Cramer's V, and a test of independence.

They are computed from an unbiased table of two attributes and the covariance of its cells. Pearson's correlation is for
attributes whose values are equally spaced, or that have two values. Cramer's V is for any attributes: 0 if they are
independent, 1 if one determines the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veil.marginals.scatter import MOST_COVARIANCES, Scatter
from veil.tools.numbers import alpha_of, two_sided

Floats = NDArray[np.float64]
Measure = Literal["pearson", "cramer"]

_FAR = 1e4
_CLEAR = 3.0
"""Standard errors above 0 from which a share may stand in a denominator."""


@dataclass(frozen=True)
class Correlation:
    """A correlation with its interval; `p_value` is that of "the two attributes are independent of each other"."""

    measure: Measure
    value: float
    low: float
    high: float
    p_value: float
    stderr: float


def known_correlation(table: Floats, *, ordered: bool) -> Correlation:
    """The correlation in a table whose error is not known: an interval of all there can be.

    >>> known_correlation(np.array([[0.5, 0.0], [0.0, 0.5]]), ordered=True).value
    1.0
    """
    shown = np.maximum(table, 0.0)
    value = _pearson_of(shown) if ordered else _cramer_of(shown)
    return Correlation("pearson" if ordered else "cramer", value, -1.0 if ordered else 0.0, 1.0, 1.0, math.nan)


def correlation_of(
    table: Floats,
    covariance: Floats,
    *,
    ordered: bool,
    shown: Floats | None = None,
    level: float = 0.95,
    sampled: Floats | None = None,
) -> Correlation:
    """The correlation of two attributes out of their unbiased table, one axis each, and the covariance of its cells.

    `ordered` asks for Pearson's, with values 0, 1, 2, ... along both axes; else it is Cramer's V. `shown` is the table
    that is shown to people, without negative cells: the value is that table's, and the interval reaches to it. Without
    it, the value is the unbiased table's, as far as that has one. Intervals are about the people who took part. The
    test is about those whom they are a sample of, since no people are independent to the last one: `sampled` is the
    covariance with that in it, where it differs.

    Guarantee: the interval covers its level also where there is no association and where values are rare; where that is
    more than the reports say, it is everything.
    """
    two_sided(level)  # refuses a bad level
    p_value = _p_value(table, covariance if sampled is None else sampled)
    if ordered:
        value, low, high, stderr = _pearson(table, covariance, level)
    else:
        value, low, high, stderr = _cramer(table, covariance, level)
    if shown is not None:
        value = _pearson_of(shown) if ordered else _cramer_of(shown)
    return Correlation("pearson" if ordered else "cramer", value, min(low, value), max(high, value), p_value, stderr)


def correlation_between(
    scatter: Scatter,
    raw: Floats,
    places: Sequence[int],
    *,
    ordered: bool,
    shown: Floats | None = None,
    level: float = 0.95,
) -> Correlation:
    """The correlation of two attributes by their places, increasing, out of the raw tables of all views.

    Where no view has both, nothing was measured: the value is that of the table that is `shown`, the interval has all
    there can be, and the p-value is 1.
    """
    shape = scatter.views.shape(places)
    if scatter.covered(places) and math.prod(shape) <= MOST_COVARIANCES:
        table, cautious = scatter.estimate(raw, places).reshape(shape), scatter.cautious(places)
        covariance, sampled = (scatter.covariance(places, cautious, sample=sample) for sample in (False, True))
        return correlation_of(table, covariance, ordered=ordered, shown=shown, level=level, sampled=sampled)
    two_sided(level)  # refuses a bad level
    return known_correlation(np.ones(shape) if shown is None else shown, ordered=ordered)


# -- Pearson ---------------------------------------------------------------------------------------------------------


def _moments(table: Floats) -> tuple[float, float, float, float, float]:
    """Both means, both variances and the covariance of the values 0, 1, 2, ..."""
    x, y = (np.arange(size, dtype=np.float64) for size in table.shape)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    mean_x, mean_y = float(x @ rows), float(y @ columns)
    spread = float(x**2 @ rows) - mean_x**2, float(y**2 @ columns) - mean_y**2
    return mean_x, mean_y, *spread, float(x @ table @ y) - mean_x * mean_y


def _between(covariance: Floats, one: Floats, other: Floats) -> float:
    """The covariance of two sums over cells."""
    return float(one @ covariance @ other)


def _pearson_of(table: Floats) -> float:
    """The correlation in a table without negative cells; 0 where everybody has the same value."""
    _, _, spread_x, spread_y, together = _moments(table)
    both = spread_x * spread_y
    return min(max(together / math.sqrt(both), -1.0), 1.0) if both > 1e-24 else 0.0


def _pearson(table: Floats, covariance: Floats, level: float) -> tuple[float, float, float, float]:
    """Value, interval and standard error: all rho with cov(x, y) - rho sd(x) sd(y) not too far from 0 (Fieller 1954).

    Means are estimated too. What that adds is of second order: its mean is taken off, its variance is added.
    """
    mean_x, mean_y, raw_x, raw_y, raw_both = _moments(table)
    x, y = (np.arange(size, dtype=np.float64) for size in table.shape)
    ones_x, ones_y = np.ones(len(x)), np.ones(len(y))
    of_x, of_y = np.outer(x, ones_y).reshape(-1), np.outer(ones_x, y).reshape(-1)
    error_x, error_y, error_both = (
        _between(covariance, one, two) for one, two in ((of_x, of_x), (of_y, of_y), (of_x, of_y))
    )
    spread_x, spread_y, together = raw_x + error_x, raw_y + error_y, raw_both + error_both
    squares_x, squares_y = (of_x - mean_x) ** 2, (of_y - mean_y) ** 2
    product = (of_x - mean_x) * (of_y - mean_y)
    second_x, second_y = 2 * error_x**2, 2 * error_y**2
    spread_error = [
        math.sqrt(max(_between(covariance, one, one), 0.0) + second)
        for one, second in ((squares_x, second_x), (squares_y, second_y))
    ]
    if spread_x <= _CLEAR * spread_error[0] or spread_y <= _CLEAR * spread_error[1]:
        return 0.0, -1.0, 1.0, math.nan
    both = math.sqrt(spread_x * spread_y)
    # sd(x) sd(y) to first order
    beside = (squares_x * (spread_y / spread_x) ** 0.5 + squares_y * (spread_x / spread_y) ** 0.5) / 2
    own, mixed, other = (
        _between(covariance, one, two) for one, two in ((product, product), (product, beside), (beside, beside))
    )
    own += error_x * error_y + error_both**2
    other += (second_x * spread_y / spread_x + second_y * spread_x / spread_y) / 4
    square = two_sided(level) ** 2
    a, b, c = both**2 - square * other, together * both - square * mixed, together**2 - square * own
    value = min(max(together / both, -1.0), 1.0)
    error = math.sqrt(max(own - 2 * value * mixed + value**2 * other, 0.0)) / both
    if a <= 0:
        return value, -1.0, 1.0, error
    root = math.sqrt(max(b * b - a * c, 0.0))
    low, high = (b - root) / a, (b + root) / a
    # the sample of people scatters more at correlations nearer to 0 than at the one that was found (Fisher 1915)
    if 1e-12 < error < 1:
        inside = min(max(value, -1 + error), 1 - error)
        reach, middle = two_sided(level) * error / (1 - inside**2), math.atanh(inside)
        low, high = min(low, math.tanh(middle - reach)), max(high, math.tanh(middle + reach))
    # an estimate beyond what can be is taken for one that is one standard error off
    low, high = min(low, 1 - error), max(high, -1 + error)
    return value, max(low, -1.0), min(high, 1.0), error


# -- Cramer's V ------------------------------------------------------------------------------------------------------


def _cramer_of(table: Floats) -> float:
    """Cramer's V of a table without negative cells; 0 where everybody has the same value."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(rows, columns)
    square = float(np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 1e-15).sum())
    return math.sqrt(min(square / (min(table.shape) - 1), 1.0))


def _cramer(table: Floats, covariance: Floats, level: float) -> tuple[float, float, float, float]:
    """Value, interval and standard error.

    V^2 is the squared norm of (p_ij - p_i p_j) / sqrt(p_i p_j), up to a factor. Its noise has a known covariance, so a
    squared norm has a law of weighted squares of normals; the interval has all norms for which the one that was found
    is not too surprising, in the direction in which noise is largest. Values that hardly anybody holds cannot stand in
    a denominator. They are put together with the most frequent one, which can only make the norm smaller; and each
    adds 1 to its square at most (the share of their holders among those of another value is at most 1).
    """
    most = min(table.shape) - 1
    groups = [_clear(table, covariance, axis) for axis in (0, 1)]
    left_out = sum(len(group) - len(np.unique(group)) for group in groups)
    small, sizes = _together(groups), tuple(len(np.unique(group)) for group in groups)
    if min(sizes) < 2:
        return 0.0, 0.0, 1.0, math.nan
    found, error = (small @ table.reshape(-1)).reshape(sizes), small @ covariance @ small.T
    residual, noise, second = _residual(found, error)
    square = float((residual**2).sum())
    total, squares = float(np.trace(noise)) + second, float((noise**2).sum()) + second**2
    worst = float(np.linalg.eigvalsh(noise)[-1])
    low, high = _norms(square, total, worst, alpha_of(level) / 2)
    value = math.sqrt(max(square - total, 0.0))
    scale = math.sqrt(most)
    spread = math.sqrt(max(4 * value**2 * worst + 2 * squares, 0.0))
    stderr = min(math.sqrt(spread), spread / (2 * value) if value > 0 else math.inf) / scale
    high = math.sqrt(high**2 + left_out)
    return min(value / scale, 1.0), min(low / scale, 1.0), min(high / scale, 1.0), stderr


def _clear(table: Floats, covariance: Floats, axis: int) -> NDArray[np.int64]:
    """For each value along an axis the number of its group: those that are not clearly there go with the largest."""
    shares = table.sum(axis=1 - axis)
    errors = np.sqrt(np.maximum(np.diag(_errors_of_shares(covariance, *table.shape)[axis]), 0.0))
    clear = shares > _CLEAR * errors
    clear[int(np.argmax(shares))] = True
    groups = np.cumsum(clear) - 1
    return np.where(clear, groups, groups[int(np.argmax(shares))])


def _together(groups: list[NDArray[np.int64]]) -> Floats:
    """The matrix that adds up the cells of the same groups."""
    first, second = (np.eye(len(np.unique(group)))[group] for group in groups)
    return np.asarray(np.kron(first, second).T)


def _residual(table: Floats, covariance: Floats) -> tuple[Floats, Floats, float]:
    """(p_ij - p_i p_j) / sqrt(p_i p_j), its covariance to first order, and what second order adds to its square."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    scale = 1 / np.sqrt(np.outer(rows, columns))
    r, c = table.shape
    of_rows, of_columns = _sums(r, c)
    rows_error, columns_error, cross = _errors_of_shares(covariance, r, c)
    to_row, to_column = np.repeat(np.arange(r), c), np.tile(np.arange(c), r)
    away = (table - np.outer(rows, columns) + cross) * scale
    change = (
        np.eye(r * c) - columns[to_column][:, None] * of_rows[to_row] - rows[to_row][:, None] * of_columns[to_column]
    )
    change = scale.reshape(-1)[:, None] * change
    # the denominators, which are estimated too
    half = away.reshape(-1)[:, None] / 2
    change -= half * (of_rows[to_row] / rows[to_row][:, None] + of_columns[to_column] / columns[to_column][:, None])
    second = float((np.outer(np.diag(rows_error), np.diag(columns_error)) * scale**2).sum())
    return away, change @ covariance @ change.T, second


def _norms(square: float, total: float, worst: float, tail: float) -> tuple[float, float]:
    """The least and the largest norm from which noise makes this squared norm, but for `tail` at either end.

    At a norm t, the squared norm has the mean t^2 + `total`, and the largest variance where all noise is as in its
    worst direction: `worst` times a noncentral chi-square with `total` / `worst` degrees of freedom.
    """
    from scipy.special import chndtr, ndtr

    def tails(norm: float) -> tuple[float, float]:
        freedom, away, at = total / worst, norm**2 / worst, square / worst
        if away > _FAR:  # normal, as far as anybody can tell
            below = float(ndtr((at - freedom - away) / math.sqrt(2 * freedom + 4 * away)))
        else:
            below = float(chndtr(at, freedom, away))
        return 1 - below, below

    def solved(side: int) -> float:
        far = math.sqrt(square) + 10 * math.sqrt(worst) + math.sqrt(total)
        low, high = 0.0, far
        for _ in range(50):
            middle = (low + high) / 2
            beyond = tails(middle)[side] > tail
            # the least norm is where the upper tail reaches it; the largest where the lower tail falls below it
            if beyond == (side == 0):
                high = middle
            else:
                low = middle
        return (low + high) / 2

    least = 0.0 if tails(0.0)[0] > tail else solved(0)
    # a squared norm that is low even without any association is taken for one that is not surprising there
    most = solved(1) if tails(0.0)[1] > tail else math.sqrt(total)
    return least, most


def _p_value(table: Floats, covariance: Floats) -> float:
    """Of "the attributes are independent of each other": p_ij - p_i p_j by its own covariance, as a chi-square."""
    from scipy.special import gammaincc

    rows, columns = (np.clip(table.sum(axis=axis), 0.0, 1.0) for axis in (1, 0))
    r, c = table.shape
    left, right = (np.eye(len(of)) - np.outer(of, np.ones(len(of))) for of in (rows, columns))
    inner = _inner(r, c)
    change = np.kron(left, right)[inner]
    rows_error, columns_error, cross = _errors_of_shares(covariance, r, c)
    away = (table - np.outer(table.sum(axis=1), table.sum(axis=0)) + cross).reshape(-1)[inner]
    # and products of errors of shares, as if these were independent
    noise = change @ covariance @ change.T + np.kron(rows_error, columns_error)[np.ix_(inner, inner)]
    try:
        statistic = float(away @ np.linalg.solve(noise, away))
    except np.linalg.LinAlgError:
        return 1.0
    return float(gammaincc(len(away) / 2, max(statistic, 0.0) / 2))


def _sums(rows: int, columns: int) -> tuple[Floats, Floats]:
    """The matrices that add up the cells of a table by rows and by columns."""
    by_rows, by_columns = np.kron(np.eye(rows), np.ones((1, columns))), np.kron(np.ones((1, rows)), np.eye(columns))
    return np.asarray(by_rows, np.float64), np.asarray(by_columns, np.float64)


def _errors_of_shares(covariance: Floats, rows: int, columns: int) -> tuple[Floats, Floats, Floats]:
    """The covariances of the shares of rows, of columns, and of each row with each column."""
    by_rows, by_columns = _sums(rows, columns)
    return (
        by_rows @ covariance @ by_rows.T,
        by_columns @ covariance @ by_columns.T,
        by_rows @ covariance @ by_columns.T,
    )


def _inner(rows: int, columns: int) -> NDArray[np.int64]:
    """The cells of all but the last row and column, which say all about the others."""
    return np.arange(rows * columns).reshape(rows, columns)[:-1, :-1].reshape(-1)
