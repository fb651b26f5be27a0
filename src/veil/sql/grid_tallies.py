"""What a table's reports say about every grid, weight by weight: support counts, batch by batch, and their tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veil.sql.axes import Axis
from veil.sql.design import Tallies
from veil.sql.grid_reading import GridReading
from veil.survey import Ask
from veil.wire.layout import Columns

__all__ = ["GridTallies"]

Floats = NDArray[np.float64]
_HALF = 31


class GridTallies(Tallies):
    """Weighted support counts of every grid's cells, for several sums over the same rows.

    A sum with weights of both signs is the difference of two sums, of its positive and of its negative weights: these
    are the parts, first all positive ones, then all negative ones. `people` made each choice; `totals` are sums of
    weights by grid and part, `products` of products of two parts' weights. Sums beyond 2^53 are rounded to doubles.
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

    @classmethod
    def counted(cls, ask: Ask, supports: Sequence[NDArray[np.int64]], people: Sequence[int]) -> GridTallies:
        """The tallies of COUNT(*) alone, from the support counts of each grid and how many people answered it."""
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
            real = parts.astype(np.float64)
            self.people[grid] += len(mine)
            self.totals[grid] += real.sum(axis=1)
            self.products[grid] += real @ real.T
            for part, weight in enumerate(parts):
                if not weight.any():
                    continue
                if (weight == 1).all():
                    self.supports[grid][part] += question.pure.support(own, None, None)
                elif int(weight.max()) >> _HALF:  # in two halves, so that no sum of integers overflows
                    high, low = weight >> _HALF, weight & ((1 << _HALF) - 1)
                    self.supports[grid][part] += question.pure.support(own, None, high) * float(1 << _HALF)
                    self.supports[grid][part] += question.pure.support(own, None, low)
                else:
                    self.supports[grid][part] += question.pure.support(own, None, weight)

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
