"""Tables of maximum entropy with given marginals (thesis 6.2.5).

Among all tables with the given marginals, the one of largest entropy adds nothing: attributes that no marginal joins
are independent, and an attribute without a marginal is uniform. Marginals that agree with each other need not be those
of any table, and noisy ones often are not: at eps <= 1, for 14 to 62 % of triples of attributes no table has all three
pairs. Then the result is a compromise, and its `gap` is the remaining difference.

The compromise is the table with the smallest total of squared differences to the given marginals and, among such, the
largest entropy. On click streams and baskets (Kosarak, Retail and BMS-POS, all pairs of 16 attributes, eps 0.4 to 1,
3-way and 6-way tables without an exact solution) its squared error to the truth was 8 to 17 % below that of the end of
proportional fitting, 2 to 13 % below that of its average over a sweep, and between 12 % below and 4 % above that of the
table of maximum likelihood (EM), which takes far longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError
from veil.marginals.tables import MOST_CELLS

if TYPE_CHECKING:
    from veil.kernels.ipf import SumIndex


Floats = NDArray[np.float64]
Places = tuple[int, ...]

_EXACT = 1e-8
"""Up to which gap an answer has the given marginals."""

_LIMIT = 1e-10
"""At which difference fitting ends; two orders below, since the last sweep's is not the final one."""

_MOST_SWEEPS = 10_000
_ONE_ROW = 64
"""Up to how many cells a table is one row: halving it saves nothing."""

_WORTH_A_THREAD = 1 << 16
"""Cells times constraints of all tables, below which a second thread costs more than it gives."""

_PIECES = 8
"""Pieces for each thread: tables take unequally long."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A table, its largest difference to a given marginal's cell, and the sweeps and steps that it took."""

    table: Floats
    gap: float
    steps: int

    @property
    def exact(self) -> bool:
        """Whether the table has the given marginals, to 1e-8. If not, no table may have them."""
        return self.gap <= _EXACT


@dataclass(frozen=True, eq=False)
class Reconstructions:
    """Tables of one shape: the first axis goes over them, as do `gaps` and `steps`."""

    tables: Floats
    gaps: Floats
    steps: NDArray[np.int64]

    @property
    def exact(self) -> NDArray[np.bool_]:
        """For each table, whether it has the given marginals, to 1e-8."""
        return self.gaps <= _EXACT

    def __len__(self) -> int:
        return len(self.gaps)

    def __getitem__(self, number: int) -> Reconstruction:
        return Reconstruction(self.tables[number], float(self.gaps[number]), int(self.steps[number]))


def maximal(sets: Iterable[Sequence[int]]) -> tuple[Places, ...]:
    """The sets that no other one contains, each once, in the order in which they first stand.

    >>> maximal([(0, 1), (1,), (1, 2), (0, 1)])
    ((0, 1), (1, 2))
    """
    different = list(dict.fromkeys(tuple(one) for one in sets))
    held = [set(one) for one in different]
    return tuple(one for one, mine in zip(different, held, strict=True) if not any(mine < other for other in held))


def reconstruct(sizes: Sequence[int], constraints: Iterable[tuple[Sequence[int], Floats]]) -> Reconstruction:
    """The table of largest entropy over attributes of these sizes that has the given marginals.

    A constraint is the places of its attributes in the table, increasing, and their own table, which is non-negative
    and adds up to 1; constraints agree with each other where they overlap. Proportional fitting (Deming and Stephan
    1940) starts from the uniform table, so its limit is of the form that the largest entropy has (Csiszár 1975).
    A table of more than 2^24 cells is refused.

    >>> pair = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> chain = reconstruct((2, 2, 2), [((0, 1), pair), ((1, 2), pair)])  # 0 and 2 are independent given 1
    >>> chain.exact, chain.table[:, 0, :].round(3).tolist()
    (True, [[0.32, 0.08], [0.08, 0.02]])
    >>> opposed = reconstruct((2, 2, 2), [((0, 1), pair), ((1, 2), pair), ((0, 2), pair[::-1])])
    >>> opposed.exact, round(opposed.gap, 3)  # 0 is like 1, 1 like 2, 0 unlike 2
    (False, 0.067)
    """
    listed = [(tuple(places), np.asarray(table, dtype=np.float64)) for places, table in constraints]
    for places, table in listed:
        if len(places) != table.ndim:
            raise InputError(f"a table of {table.ndim} attributes was given for {len(places)} places")
    flat = np.concatenate([np.zeros(0), *(table.ravel() for _, table in listed)])
    return reconstruct_many(sizes, [places for places, _ in listed], flat[None, :])[0]


def reconstruct_many(sizes: Sequence[int], sets: Sequence[Sequence[int]], given: Floats) -> Reconstructions:
    """Tables of one shape from marginals of the same places: one row of `given` for each, its tables one after another.

    What `reconstruct` does, for many tables at once and on all cores.

    >>> pairs = np.array([[0.4, 0.1, 0.1, 0.4, 0.5, 0.5], [0.2, 0.3, 0.2, 0.3, 0.9, 0.1]])
    >>> reconstruct_many((2, 2, 2), [(0, 1), (2,)], pairs).tables[1].ravel().round(2).tolist()
    [0.18, 0.02, 0.27, 0.03, 0.18, 0.02, 0.27, 0.03]
    """
    shape = tuple(int(size) for size in sizes)
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise ParameterError(
            f"this marginal has {cells:,} cells, more than {MOST_CELLS:,}: ask for fewer attributes, or for attributes "
            "with fewer values"
        )
    places = [tuple(one) for one in sets]
    for one in places:
        if list(one) != sorted(set(one)) or any(not 0 <= place < len(shape) for place in one):
            raise InputError(f"a constraint has different places of 0 to {len(shape) - 1}, in increasing order")
    ends = np.cumsum([0, *(math.prod(shape[place] for place in one) for one in places)])
    if given.ndim != 2 or given.shape[1] != ends[-1]:
        raise InputError(f"the given marginals are one row of {ends[-1]} cells for each table")
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise InputError("the given marginals have no negative cells; make them consistent first")
    tables = np.empty((len(given), *shape))
    kept = [one for one in maximal(places) if one]
    if not kept:
        tables[:] = 1.0 / cells
        return Reconstructions(tables, np.zeros(len(given)), np.zeros(len(given), dtype=np.int64))
    plan, order = _plan(shape, tuple(kept))
    chosen = np.concatenate([np.arange(*ends[places.index(one) :][:2]) for one in order])
    gaps, steps = _fitted(plan, np.ascontiguousarray(given[:, chosen], dtype=np.float64), tables)
    return Reconstructions(tables, gaps, steps)


def _fitted(plan: SumIndex, given: Floats, tables: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Fill the tables, spread over threads; their gaps and steps."""
    from veil.kernels.ipf import fit_each
    from veil.kernels.parallel import in_order, thread_count

    grid = tables.reshape(len(tables), plan.by_row.shape[1], plan.low.shape[1])
    worth = grid.size * len(plan.low) >= _WORTH_A_THREAD
    pieces = min(len(grid), _PIECES * thread_count() if worth else 1)
    bounds = [len(grid) * i // pieces for i in range(pieces + 1)] if pieces else []

    def work(piece: slice) -> tuple[Floats, NDArray[np.int64]]:
        return fit_each(plan, given[piece], _LIMIT, _MOST_SWEEPS, grid[piece])

    done = in_order(work, [slice(start, stop) for start, stop in pairwise(bounds)])
    gaps, steps = [one for one, _ in done], [one for _, one in done]
    return np.concatenate([np.zeros(0), *gaps]), np.concatenate([np.zeros(0, np.int64), *steps])


@lru_cache(maxsize=64)
def _plan(shape: tuple[int, ...], sets: tuple[Places, ...]) -> tuple[SumIndex, tuple[Places, ...]]:
    """Where the cells of a table of this shape go, and the constraints in the order in which the plan has them."""
    from veil.kernels.ipf import SumIndex

    cells, cut, rows = math.prod(shape), 0, 1
    while cells > _ONE_ROW and cut < len(shape) and (rows * shape[cut]) ** 2 <= cells:
        rows, cut = rows * shape[cut], cut + 1
    columns = cells // rows

    def parts(one: Places) -> tuple[Places, Places]:
        return tuple(p for p in one if p < cut), tuple(p for p in one if p >= cut)

    heads: dict[Places, list[Places]] = {(): []}
    for one in sets:
        if parts(one)[1]:
            heads.setdefault(parts(one)[0], []).append(one)
    only_high = [one for one in sets if not parts(one)[1]]
    order = [one for group in heads.values() for one in group] + only_high
    row_values = np.unravel_index(np.arange(rows), shape[:cut]) if cut else ()
    column_values = np.unravel_index(np.arange(columns), shape[cut:])

    def numbers(
        one: Places, sizes: tuple[int, ...], values: Sequence[NDArray[np.intp]], count: int
    ) -> NDArray[np.intp]:
        found = np.zeros(count, dtype=np.intp)
        for place, size in zip(one, sizes, strict=True):
            found = found * size + values[place]
        return found

    def sized(one: Places) -> tuple[int, ...]:
        return tuple(shape[p] for p in one)

    groups = [numbers(head, sized(head), row_values, rows) for head in heads]
    starts = np.cumsum([0, *(math.prod(sized(one)) for one in order)])
    low, high, by_row = [], np.zeros((len(order), rows), np.uint32), []
    for i, one in enumerate(order):
        head, tail = parts(one)
        step = math.prod(sized(tail))
        low.append(numbers(tuple(p - cut for p in tail), sized(tail), column_values, columns))
        by_row.append(starts[i] + step * numbers(head, sized(head), row_values, rows))
        high[i] = by_row[-1] if not tail else starts[i] + step * np.arange(rows)
    counts = [len(group) for group in heads.values()] + [len(only_high)]
    plan = SumIndex(
        groups=np.array(groups, dtype=np.uint32),
        classes=np.array([math.prod(sized(head)) for head in heads], dtype=np.int64),
        members=np.cumsum([0, *counts], dtype=np.int64),
        high=high,
        by_row=np.array(by_row, dtype=np.uint32),
        low=np.array(low, dtype=np.uint32),
        starts=starts.astype(np.int64),
    )
    return plan, tuple(order)
