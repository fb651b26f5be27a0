"""Sums of a table over its marginals' cells, what they have to be multiplied by, and sweeps of proportional fitting.

A table stands as rows x columns, the first attributes in the rows and the others in the columns. Constraints that share
their attributes in the rows are one group: rows that these do not tell apart are added up once for the whole group, and
multiplied once. So a sweep over all pairs of 16 attributes goes over the table 20 times and not 240 times, and
everything that touches the whole table runs along contiguous columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["INNER", "Floats", "Plan", "Room", "add_up", "spread", "sweep"]

Floats = NDArray[np.float64]

# Nobody calls the inner functions from Python: without wrappers for that they compile in half the time.
INNER: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


class Plan(NamedTuple):
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


class Room(NamedTuple):
    """Arrays to work in: classes x columns, one number per row, and as large as the table."""

    joined: Floats
    factors: Floats
    row_sums: Floats
    row_factors: Floats
    logs: Floats
    spare: Floats


@numba.njit(**INNER)
def _join(plan: Plan, group: int, table: Floats, joined: Floats) -> None:
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
def add_up(plan: Plan, table: Floats, sums: Floats, room: Room) -> None:
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
def spread(plan: Plan, numbers: Floats, out: Floats, room: Room) -> None:
    """For each cell the total of the numbers that stand at its sums: the transpose of `add_up`."""
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
def _ratios(plan: Plan, i: int, given: Floats, sums: Floats) -> float:
    """Put what a constraint's sums have to be multiplied by in their place; the largest difference before."""
    worst = 0.0
    for k in range(plan.starts[i], plan.starts[i + 1]):
        worst = max(worst, abs(sums[k] - given[k]))
        sums[k] = given[k] / sums[k] if sums[k] > 0.0 else 0.0
    return worst


@numba.njit(**INNER)
def sweep(plan: Plan, given: Floats, table: Floats, sums: Floats, room: Room) -> float:
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
