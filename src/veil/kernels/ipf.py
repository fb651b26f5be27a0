"""Iterative proportional fitting: tables from some of their marginals, by sweeps and by Newton's method.

A table is stored as rows x columns, the first attributes in the rows and the others in the columns. Constraints that
share their attributes in the rows form a group: rows that the group does not distinguish are added up once, and
multiplied once. So a sweep over all pairs of 16 attributes goes over the table 20 times instead of 240 times, and
everything that touches the whole table runs along contiguous columns. Newton's method is used where sweeps do not
converge.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

Floats = NDArray[np.float64]

# Nobody calls the inner functions from Python: without wrappers for that they compile in half the time.
INNER: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


class SumIndex(NamedTuple):
    """Which sum of which constraint a cell belongs to; the same for all tables of one shape.

    Constraints stand group by group: those without an attribute in the rows (group 0), those with both, at last those
    without one in the columns. Constraint i adds the cell (row, column) to the sum by_row[i, row] + low[i, column], one
    of starts[i] .. starts[i + 1] - 1.
    """

    groups: NDArray[np.uint32]
    """For each group but the last, and each row: the number of the class of rows that the group does not tell apart."""
    classes: NDArray[np.int64]
    """How many classes each of these groups has."""
    members: NDArray[np.int64]
    """Where each group's constraints begin, and where the last one's end."""
    high: NDArray[np.uint32]
    """For each constraint and class of rows (in the last group: each row), what low[i, column] is added to."""
    by_row: NDArray[np.uint32]
    low: NDArray[np.uint32]
    starts: NDArray[np.int64]


class Workspace(NamedTuple):
    """Arrays to work in: classes x columns, one number per row, and as large as the table."""

    joined: Floats
    factors: Floats
    row_sums: Floats
    row_factors: Floats
    logs: Floats
    spare: Floats


@numba.njit(**INNER)
def _join(plan: SumIndex, group: int, table: Floats, joined: Floats) -> None:
    """Add up the rows that a group does not tell apart."""
    joined[: plan.classes[group]] = 0.0
    for row in range(table.shape[0]):
        c = plan.groups[group, row]
        for column in range(table.shape[1]):
            joined[c, column] += table[row, column]


@numba.njit(**INNER)
def _add_rows(table: Floats, row_sums: Floats) -> None:
    for row in range(table.shape[0]):
        total = 0.0
        for column in range(table.shape[1]):
            total += table[row, column]
        row_sums[row] = total


@numba.njit(**INNER)
def sum_marginals(plan: SumIndex, table: Floats, sums: Floats, room: Workspace) -> None:
    """Fill `sums` with those of the table, of all constraints."""
    sums[:] = 0.0
    last = len(plan.classes)
    for group in range(last):
        if plan.members[group] == plan.members[group + 1]:
            continue
        _join(plan, group, table, room.joined)
        for i in range(plan.members[group], plan.members[group + 1]):
            for c in range(plan.classes[group]):
                for column in range(table.shape[1]):
                    sums[plan.high[i, c] + plan.low[i, column]] += room.joined[c, column]
    if plan.members[last] < plan.members[last + 1]:
        _add_rows(table, room.row_sums)
        for i in range(plan.members[last], plan.members[last + 1]):
            for row in range(table.shape[0]):
                sums[plan.high[i, row]] += room.row_sums[row]


@numba.njit(**INNER)
def scatter_sums(plan: SumIndex, numbers: Floats, out: Floats, room: Workspace) -> None:
    """For each cell the total of the numbers that stand at its sums: the transpose of `sum_marginals`."""
    last = len(plan.classes)
    for row in range(out.shape[0]):
        total = 0.0
        for i in range(plan.members[last], plan.members[last + 1]):
            total += numbers[plan.high[i, row]]
        out[row] = total
    for group in range(last):
        if plan.members[group] == plan.members[group + 1]:
            continue
        room.joined[: plan.classes[group]] = 0.0
        for i in range(plan.members[group], plan.members[group + 1]):
            for c in range(plan.classes[group]):
                for column in range(out.shape[1]):
                    room.joined[c, column] += numbers[plan.high[i, c] + plan.low[i, column]]
        for row in range(out.shape[0]):
            c = plan.groups[group, row]
            for column in range(out.shape[1]):
                out[row, column] += room.joined[c, column]


@numba.njit(**INNER)
def _ratios(plan: SumIndex, i: int, given: Floats, sums: Floats) -> float:
    """Put what a constraint's sums have to be multiplied by in their place; the largest difference before."""
    worst = 0.0
    for k in range(plan.starts[i], plan.starts[i + 1]):
        worst = max(worst, abs(sums[k] - given[k]))
        sums[k] = given[k] / sums[k] if sums[k] > 0.0 else 0.0
    return worst


@numba.njit(**INNER)
def sweep(plan: SumIndex, given: Floats, table: Floats, sums: Floats, room: Workspace) -> float:
    """Every constraint in turn multiplies the cells so that its sums are the given ones; the largest difference met.

    Where a sum is 0 all its cells are 0, and stay so.
    """
    worst, last = 0.0, len(plan.classes)
    joined, factors, row_factors = room.joined, room.factors, room.row_factors
    sums[:] = 0.0
    for group in range(last):
        if plan.members[group] == plan.members[group + 1]:
            continue
        _join(plan, group, table, joined)
        factors[: plan.classes[group]] = 1.0
        for i in range(plan.members[group], plan.members[group + 1]):
            for c in range(plan.classes[group]):
                for column in range(table.shape[1]):
                    sums[plan.high[i, c] + plan.low[i, column]] += joined[c, column]
            worst = max(worst, _ratios(plan, i, given, sums))
            for c in range(plan.classes[group]):
                for column in range(table.shape[1]):
                    ratio = sums[plan.high[i, c] + plan.low[i, column]]
                    joined[c, column] *= ratio
                    factors[c, column] *= ratio
        for row in range(table.shape[0]):
            c = plan.groups[group, row]
            for column in range(table.shape[1]):
                table[row, column] *= factors[c, column]
    if plan.members[last] < plan.members[last + 1]:
        _add_rows(table, room.row_sums)
        row_factors[:] = 1.0
        for i in range(plan.members[last], plan.members[last + 1]):
            for row in range(table.shape[0]):
                sums[plan.high[i, row]] += room.row_sums[row] * row_factors[row]
            worst = max(worst, _ratios(plan, i, given, sums))
            for row in range(table.shape[0]):
                row_factors[row] *= sums[plan.high[i, row]]
        for row in range(table.shape[0]):
            for column in range(table.shape[1]):
                table[row, column] *= row_factors[row]
    return worst


Bools = NDArray[np.bool_]

_LOOK, _LEFT = 10, 0.5
"""Proportional fitting goes on while so many sweeps leave at most this share of the differences."""
_FIRST, _FALL, _LAST = 1e-1, 1e-1, 1e-11
"""Penalties that Newton's method goes through: the first, the factor between two, and the last."""
_COMPROMISE, _ROUGH = 1e-6, 1e-4
"""The last one where no table has the given sums: for dense and for sparse steps, which get lost beyond."""
_NEWTON_STEPS, _HALVINGS, _PRODUCTS = 40, 30, 200
_DENSE_CELLS, _DENSE_SUMS = 1 << 25, 600
"""Up to how many (cell, constraint, constraint) triples, and how many sums, second derivatives are written out."""


@numba.njit(**INNER)
def _dot(left: Floats, right: Floats) -> float:
    total = 0.0
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@numba.njit(**INNER)
def _copy(table: Floats, to: Floats) -> None:
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            to[row, column] = table[row, column]


@numba.njit(**INNER)
def _top(logs: Floats, allowed: Bools) -> float:
    """The largest number in an allowed cell."""
    top = -math.inf
    for row in range(logs.shape[0]):
        for column in range(logs.shape[1]):
            if allowed[row, column]:
                top = max(top, logs[row, column])
    return top


@numba.njit(**INNER)
def _tried(
    plan: SumIndex, given: Floats, allowed: Bools, penalty: float, weights: Floats, table: Floats, room: Workspace
) -> float:
    """Fill `table` with what is proportional to the exponentials of weights; the function that weights minimise."""
    scatter_sums(plan, weights, room.logs, room)
    top, total = _top(room.logs, allowed), 0.0
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            table[row, column] = math.exp(room.logs[row, column] - top) if allowed[row, column] else 0.0
            total += table[row, column]
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            table[row, column] /= total
    return top + math.log(total) - _dot(weights, given) + 0.5 * penalty * _dot(weights, weights)


@numba.njit(**INNER)
def _dense(plan: SumIndex, given: Floats, table: Floats) -> bool:
    """Whether second derivatives are written out."""
    return table.size * len(plan.low) ** 2 <= _DENSE_CELLS and len(given) <= _DENSE_SUMS


@numba.njit(**INNER)
def _dense_step(
    plan: SumIndex, table: Floats, sums: Floats, slope: Floats, penalty: float, step: Floats, matrix: Floats
) -> None:
    """Newton's step for this slope, by the matrix of second derivatives and its Cholesky factor."""
    size = len(slope)
    own = np.empty(len(plan.low), np.uint32)
    matrix[:] = 0.0
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            share = table[row, column]
            if share > 0.0:
                for i in range(len(plan.low)):
                    own[i] = plan.by_row[i, row] + plan.low[i, column]
                    for j in range(i + 1):
                        matrix[own[i], own[j]] += share
    for k in range(size):
        for j in range(k + 1):
            matrix[k, j] -= sums[k] * sums[j]
        matrix[k, k] += penalty
    for k in range(size):
        for j in range(k + 1):
            left = matrix[k, j]
            for i in range(j):
                left -= matrix[k, i] * matrix[j, i]
            # without rounding, what is left is at least the penalty
            matrix[k, j] = left / matrix[j, j] if j < k else math.sqrt(max(left, 0.01 * penalty))
    for k in range(size):
        left = -slope[k]
        for j in range(k):
            left -= matrix[k, j] * step[j]
        step[k] = left / matrix[k, k]
    for k in range(size - 1, -1, -1):
        step[k] /= matrix[k, k]
        for j in range(k):
            step[j] -= matrix[k, j] * step[k]


@numba.njit(**INNER)
def _sparse_step(
    plan: SumIndex, table: Floats, sums: Floats, slope: Floats, penalty: float, step: Floats, room: Workspace
) -> None:
    """The same by conjugate gradients: products with the second derivatives, which are never written out."""
    size, spare = len(slope), room.spare
    rest, scaled, towards, product = np.empty(size), np.empty(size), np.zeros(size), np.empty(size)
    for k in range(size):
        step[k], rest[k] = 0.0, -slope[k]
    before, first = 1.0, -1.0
    for _ in range(_PRODUCTS):
        for k in range(size):
            scaled[k] = rest[k] / (sums[k] * (1.0 - sums[k]) + penalty)
        strength = _dot(rest, scaled)
        if first < 0.0:
            first = strength
        if not strength > 0.1 * first:  # more would cost more than the step it saves
            break
        for k in range(size):
            towards[k] = scaled[k] + strength / before * towards[k]
        scatter_sums(plan, towards, spare, room)
        mean = 0.0
        for row in range(table.shape[0]):
            for column in range(table.shape[1]):
                mean += table[row, column] * spare[row, column]
        for row in range(table.shape[0]):
            for column in range(table.shape[1]):
                spare[row, column] = table[row, column] * (spare[row, column] - mean)
        sum_marginals(plan, spare, product, room)
        for k in range(size):
            product[k] += penalty * towards[k]
        along = _dot(towards, product)
        if not along > 0.0:  # rounding
            break
        for k in range(size):
            step[k] += strength / along * towards[k]
            rest[k] -= strength / along * product[k]
        before = strength


@numba.njit(**INNER)
def _relaxed(
    plan: SumIndex,
    given: Floats,
    allowed: Bools,
    penalty: float,
    weights: Floats,
    table: Floats,
    sums: Floats,
    room: Workspace,
) -> int:
    """The allowed table whose entropy less the squared differences of its sums over 2 `penalty` is largest.

    It is proportional to the exponentials of its sums' weights (`weights`, changed in place), which minimise a convex
    function: Newton's method, with halved steps where a whole one is too long. Returns how many steps it took.
    """
    size, dense = len(given), _dense(plan, given, table)
    matrix = np.empty((size, size) if dense else (0, 0))
    slope, step, tried = np.empty(size), np.empty(size), np.empty(size)
    value, done = _tried(plan, given, allowed, penalty, weights, table, room), 0
    sum_marginals(plan, table, sums, room)
    while done < _NEWTON_STEPS:
        worst = 0.0
        for k in range(size):
            slope[k] = sums[k] - given[k] + penalty * weights[k]
            worst = max(worst, abs(slope[k]))
        if worst <= max(0.01 * penalty, 1e-14):
            break
        if dense:
            _dense_step(plan, table, sums, slope, penalty, step, matrix)
        else:
            _sparse_step(plan, table, sums, slope, penalty, step, room)
        falls, length, new = _dot(slope, step), 1.0, math.inf
        for _ in range(_HALVINGS):
            for k in range(size):
                tried[k] = weights[k] + length * step[k]
            new = _tried(plan, given, allowed, penalty, tried, room.spare, room)
            if new < value + 1e-4 * length * falls:
                break
            length *= 0.5
        done += 1
        if not new < value:  # as near as rounding lets it come
            break
        value = new
        for k in range(size):
            weights[k] = tried[k]
        _copy(room.spare, table)
        sum_marginals(plan, table, sums, room)
    return done


@numba.njit(**INNER)
def _impossible(plan: SumIndex, given: Floats, allowed: Bools, sums: Floats, limit: float, room: Workspace) -> bool:
    """Whether the differences prove that no allowed table has sums within `limit` of the given ones.

    Along the differences, the sums of any table lie below the largest of a single cell: if the given ones lie beyond,
    the two are apart (Farkas), by at least as much as they lie beyond.
    """
    apart = np.empty(len(given))
    for k in range(len(given)):
        apart[k] = given[k] - sums[k]
    scatter_sums(plan, apart, room.logs, room)
    return _dot(apart, given) - _top(room.logs, allowed) > limit * math.sqrt(_dot(apart, apart))


@numba.njit(**INNER)
def _follow(
    plan: SumIndex, given: Floats, allowed: Bools, limit: float, table: Floats, sums: Floats, room: Workspace
) -> tuple[bool, int]:
    """Newton's method for smaller and smaller penalties; whether the given sums can be met, and the steps it took."""
    weights, best = np.zeros(len(given)), np.empty(table.shape)
    last = _COMPROMISE if _dense(plan, given, table) else _ROUGH
    penalty, done, possible, least = _FIRST, 0, True, math.inf
    while penalty > 0.5 * (_LAST if possible else last):
        done += _relaxed(plan, given, allowed, penalty, weights, table, sums, room)
        apart = 0.0
        for k in range(len(given)):
            apart += (given[k] - sums[k]) ** 2
        if apart > least:  # it falls with the penalty, up to rounding: this is as far as it comes
            break
        least = apart
        _copy(table, best)
        possible = possible and not _impossible(plan, given, allowed, sums, limit, room)
        penalty *= _FALL
    _copy(best, table)
    return possible, done


@numba.njit(**INNER)
def _allow(plan: SumIndex, given: Floats, zeros: bool, allowed: Bools, room: Workspace) -> int:
    """Mark the cells that may be above 0: all, or with `zeros` those of which no sum is to be 0; how many they are."""
    marks = np.zeros(len(given))
    for k in range(len(given)):
        if zeros and given[k] <= 0.0:
            marks[k] = 1.0
    scatter_sums(plan, marks, room.logs, room)
    found = 0
    for row in range(allowed.shape[0]):
        for column in range(allowed.shape[1]):
            allowed[row, column] = room.logs[row, column] == 0.0
            found += allowed[row, column]
    return found


@numba.njit(**INNER)
def _fit(
    plan: SumIndex, given: Floats, limit: float, most: int, table: Floats, sums: Floats, room: Workspace, allowed: Bools
) -> tuple[float, int]:
    """Fit one table; its gap, and the sweeps and steps it took."""
    table[:] = 1.0 / table.size
    worst, before, done = math.inf, math.inf, 0
    while worst > limit and done < most:
        worst = sweep(plan, given, table, sums, room)
        done += 1
        if done % _LOOK == 0:
            if worst > _LEFT * before:
                break
            before = worst
    # A cell of a sum that is to be 0 can only be 0; where no table has the sums, zeros are noise like everything else.
    zeros, possible = True, worst <= limit
    while not possible:
        found = _allow(plan, given, zeros, allowed, room)
        if found > 0:
            possible, steps = _follow(plan, given, allowed, limit, table, sums, room)
            done += steps
        if not zeros or found == table.size:
            break
        zeros = False
    sum_marginals(plan, table, sums, room)
    gap = 0.0
    for k in range(len(given)):
        gap = max(gap, abs(sums[k] - given[k]))
    return gap, done


@compiled(error_model="numpy")
def fit_each(
    plan: SumIndex, given: Floats, limit: float, most: int, tables: Floats
) -> tuple[Floats, NDArray[np.int64]]:
    """Fill `tables` (each rows x columns) with those of largest entropy that have the given sums, one row for each.

    Where no table has them: with the smallest squared differences, nearly, and among such the largest entropy. Returns
    each table's largest difference to a given sum, and how many sweeps and steps it took.
    """
    gaps, steps = np.empty(len(given)), np.empty(len(given), np.int64)
    rows, columns, classes = tables.shape[1], tables.shape[2], 1
    for group in range(len(plan.classes)):
        classes = max(classes, plan.classes[group])
    room = Workspace(
        np.empty((classes, columns)),
        np.empty((classes, columns)),
        np.empty(rows),
        np.empty(rows),
        np.empty((rows, columns)),
        np.empty((rows, columns)),
    )
    sums, allowed = np.empty(given.shape[1]), np.empty((rows, columns), np.bool_)
    for q in range(len(given)):
        gaps[q], steps[q] = _fit(plan, given[q], limit, most, tables[q], sums, room, allowed)
    return gaps, steps
