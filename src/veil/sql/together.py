"""Reading reports that answer several questions at once: the numbers of single questions, added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import GRR, PureOracle
from veil.reports.layout import Columns
from veil.sql.contrasts import Read
from veil.sql.design import Values
from veil.sql.grouped import GroupedValues

__all__ = ["TogetherValues", "own_columns", "second_moment"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class TogetherValues(Values):
    """Numbers of rows of which each answered every question: what each answer tells, added up.

    `parts` are the cells and coefficients by number of the question, each a child of the survey's AllOf.
    """

    def __init__(
        self,
        constant: float,
        parts: Mapping[int, tuple[Ints, Floats]],
        oracles: Sequence[PureOracle] | Mapping[int, PureOracle],
        people: int,
    ) -> None:
        self.constant, self.groups = constant, None if parts else frozenset()
        self._each: dict[int, GroupedValues] = {}
        self.bound = self.variance = self.noise = 0.0
        for number, (cells, coefficients) in parts.items():
            oracle, many = oracles[number], np.array([people])
            one = GroupedValues(Read(0.0, {0: (cells, coefficients)}, 0.0), [oracle], many)
            self._each[number] = one
            self.bound += one.bound
            self.noise += one.noise
            shares = np.full(len(cells), 1 / oracle.domain.size)
            # nobody is left out: what people hold is no part of the scatter, the noise alone is
            own = second_moment(oracle, coefficients, coefficients, shares) - float(shares @ coefficients**2)
            self.variance += people * own

    def of(self, columns: Columns) -> Floats:
        found = np.zeros(len(next(iter(columns.values()))))
        choice = np.zeros(len(found), np.int64)
        for number, one in self._each.items():
            found += one.of({**own_columns(columns, number), "choice": choice})
        return found


def own_columns(columns: Columns, number: int) -> dict[str, NDArray[np.generic]]:
    """The columns of one child of an AllOf, under their own names."""
    start = f"{number}."
    return {name[len(start) :]: column for name, column in columns.items() if name.startswith(start)}


def second_moment(oracle: PureOracle, one: Floats, other: Floats, shares: Floats) -> float:
    """The mean product of two numbers that are read from one report about the same cells.

    `one` and `other` are the coefficients of some cells, all others having none; `shares` are the parts of all people
    that hold each of these cells. For equal coefficients it is the mean square of the number.

    >>> float(round(second_moment(GRR(1.0, 2), np.ones(2), np.ones(2), np.full(2, 0.5)), 9))  # everybody is somewhere
    1.0
    """
    p, q = float(oracle.p), float(oracle.q)
    gap, both = p - q, one * other
    if not isinstance(oracle, GRR):  # supports of different cells are independent
        return float(q * (1 - q) * both.sum() / gap**2 + (1 - 2 * q) / gap * (shares @ both))
    sums = float(one.sum()), float(other.sum())
    held = sums[1] * float(shares @ one) + sums[0] * float(shares @ other)
    alone = float(shares @ both) / gap + q * float(both.sum()) / gap**2
    return alone - q / gap * held - (q / gap) ** 2 * sums[0] * sums[1]
