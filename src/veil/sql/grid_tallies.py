"""What a table's reports say about every grid, weight by weight: support counts, batch by batch, and their tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms.oracle import PureOracle
from veil.reports.layout import Columns
from veil.sql.axes import Axis
from veil.sql.grid_reading import GridReading
from veil.survey import Ask
from veil.tools.json_documents import canonical, parse_json

__all__ = ["GridTallies"]

Floats = NDArray[np.float64]
_HALF = 31
_LIMB, _MOST_ROWS = 16, 1 << 20  # so many products of numbers of 16 bits add up below 2^53: exactly, as doubles


class GridTallies:
    """Weighted support counts of every grid's cells, for several sums over the same rows.

    A sum with weights of both signs is the difference of two sums, of its positive and of its negative weights: these
    are the parts, first all positive ones, then all negative ones. `people` made each choice; `totals` are sums of
    weights by grid and part, `products` of products of two parts' weights. All are added up as integers, so that
    no order of rows shows, and told as doubles.
    """

    def __init__(self, ask: Ask, sums: int) -> None:
        self._ask = ask
        self.sums = sums
        grids = len(ask)
        self.people = np.zeros(grids, np.int64)
        self.totals = np.zeros((grids, 2 * sums))
        self.products = np.zeros((grids, 2 * sums, 2 * sums))
        self.oracles = [question.pure for question in ask.questions]
        self._readings: list[GridReading | None] | None = None
        self.supports: list[Floats] = [np.zeros((2 * sums, one.domain.size)) for one in self.oracles]
        self._totals = [_Halves((2 * sums,)) for _ in self.oracles]
        self._products = np.zeros(self.products.shape, object)
        self._supports = [_Halves(mine.shape) for mine in self.supports]

    @classmethod
    def counted(cls, ask: Ask, supports: Sequence[NDArray[np.int64]], people: Sequence[int]) -> GridTallies:
        """The tallies of COUNT(*) alone, from the support counts of each grid and how many people answered it.

        No rows can be added to them.
        """
        made = cls(ask, 1)
        made.people[:] = people
        made.totals[:, 0] = made.products[:, 0, 0] = people
        for mine, given in zip(made.supports, supports, strict=True):
            mine[0] = given
        return made

    def add(self, columns: Columns, weights: NDArray[np.int64]) -> None:
        """Runs at the collector: add rows, by their report's columns, and one row of weights per sum."""
        rows = np.arange(weights.shape[1])
        every = range(len(self._ask))
        self._readings = None
        for grid, (question, mine, own) in enumerate(self._ask.parts(columns, rows, every)):
            some = weights[:, mine]
            parts = np.concatenate([np.maximum(some, 0), np.maximum(-some, 0)])
            self.people[grid] += len(mine)
            self._totals[grid].add(slice(None), *(half.sum(axis=1) for half in _halves(parts)))
            self._products[grid] += _products(parts)
            for part, weight in enumerate(parts):
                if weight.any():
                    self._supports[grid].add(part, *_supports(question.pure, own, weight))
            self._tell(grid)

    def _tell(self, grid: int) -> None:
        self.totals[grid], self.supports[grid] = self._totals[grid].real, self._supports[grid].real
        self.products[grid] = self._products[grid]

    def state(self) -> bytes:
        """Return what was added so far, exactly, as bytes."""
        products = canonical({"products": [str(product) for product in self._products.ravel()]})
        arrays = [self.people, *(array for sums in (*self._totals, *self._supports) for array in sums.arrays)]
        return len(products).to_bytes(8, "little") + products + b"".join(array.tobytes() for array in arrays)

    def merge(self, state: bytes) -> None:
        """Add the state of the same tallies of other rows."""
        size = int.from_bytes(state[:8], "little")
        products = [int(text) for text in parse_json(state[8 : 8 + size])["products"]]
        given = np.frombuffer(state[8 + size :], np.int64)
        self._readings = None
        self._products += np.array(products, object).reshape(self._products.shape)
        self.people += given[: len(self.people)]
        at = len(self.people)
        for array in (array for sums in (*self._totals, *self._supports) for array in sums.arrays):
            array += given[at : at + array.size].reshape(array.shape)
            at += array.size
        for grid in range(len(self.people)):
            self._tell(grid)

    def read(self, axes: Sequence[Axis]) -> list[GridReading | None]:
        """Runs at the collector: the tables of each part, made to agree; None where all its weights are 0."""
        if self._readings is None:
            self._readings = [self._reading(axes, part) for part in range(2 * self.sums)]
        return self._readings

    def _reading(self, axes: Sequence[Axis], part: int) -> GridReading | None:
        if not self.totals[:, part].any():
            return None
        tables, variances = [], []
        for grid, oracle in enumerate(self.oracles):
            weight, q = self.totals[grid, part], float(oracle.q)
            if weight > 0:
                tables.append((self.supports[grid][part] / weight - q) / (float(oracle.p) - q))
                variances.append(oracle.noise.variance(0.0) * self.products[grid, part, part] / weight**2)
            else:  # nobody with a weight answered this grid: it says nothing
                tables.append(np.full(oracle.domain.size, 1.0 / oracle.domain.size))
                variances.append(math.inf)
        return GridReading(axes, tables, variances)


class _Halves:
    """Sums of integers below 2^63, of their low 31 bits and of their high ones: no order of them shows."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._low, self._high = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sums of low bits and of high ones."""
        return self._low, self._high

    def add(self, place: int | slice, low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
        self._low[place] += low
        self._high[place] += high

    @property
    def real(self) -> Floats:
        """The sums as doubles."""
        return self._low + self._high * float(1 << _HALF)


def _halves(weights: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return weights & ((1 << _HALF) - 1), weights >> _HALF


def _supports(oracle: PureOracle, reports: Columns, weight: NDArray[np.int64]) -> tuple[Any, Any]:
    """The support counts of rows with these weights, of their low and of their high halves: neither overflows."""
    if (weight == 1).all():
        return oracle.support(reports, None, None), 0
    low, high = _halves(weight)
    return oracle.support(reports, None, low), oracle.support(reports, None, high) if high.any() else 0


def _products(parts: NDArray[np.int64]) -> NDArray[Any]:
    """The exact sums over rows of products of two parts' weights, as Python's integers."""
    found = np.zeros((len(parts), len(parts)), object)
    limbs = range(0, int(parts.max(initial=0)).bit_length(), _LIMB)
    for start in range(0, parts.shape[1], _MOST_ROWS):
        some = parts[:, start : start + _MOST_ROWS]
        split = {shift: ((some >> shift) & ((1 << _LIMB) - 1)).astype(np.float64) for shift in limbs}
        for (shift, one), (other_shift, other) in product(split.items(), repeat=2):
            found += (one @ other.T).astype(np.int64).astype(object) * (1 << (shift + other_shift))
    return found
