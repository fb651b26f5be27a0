"""Sums over rows, and how far they scatter: from the numbers of rows to totals with their covariances.

For people of one class (the same public group, the same public conditions) the estimate of a sum is

    T_a  =  constant * (sum of w_a)  +  sum over rows of w_a u.

People were put into groups at random, so with y = w u the variance of T is the sum over groups of n_l times the
variance of y within the group, less n times the variance over people of what each adds to the truth (Neyman 1923):
that part is the same whatever groups people are put into. Noise and the choice of groups are both in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import WireError
from veil.sql.design import Values

__all__ = ["Moments", "Totals"]

Floats = NDArray[np.float64]
_BITS = 30


@dataclass(frozen=True)
class Totals:
    """Estimated sums, in the units of their weights, and their covariances; they add up over disjoint people."""

    values: Floats
    covariance: Floats
    among: Floats | None = None
    """The estimated sums of products of two weights over the same people: how far totals depend on who was asked."""

    @classmethod
    def nothing(cls, sums: int) -> Totals:
        """The sums over nobody."""
        return cls(np.zeros(sums), np.zeros((sums, sums)), np.zeros((sums, sums)))

    def __add__(self, other: Totals) -> Totals:
        among = None if self.among is None or other.among is None else self.among + other.among
        return Totals(self.values + other.values, self.covariance + other.covariance, among)

    def scaled(self, units: Floats) -> Totals:
        """The same in other units: what one of each weight stands for."""
        squares = np.outer(units, units)
        among = None if self.among is None else self.among * squares
        return Totals(self.values * units, self.covariance * squares, among)

    def placed(self, places: Sequence[int]) -> Totals:
        """The sums at these places, in this order; one may stand at several."""
        both = np.ix_(places, places)
        return Totals(
            self.values[list(places)], self.covariance[both], None if self.among is None else self.among[both]
        )

    def sampled(self, slope: Floats, people: int) -> float:
        """How far a number with these derivatives varies with who was asked: so many people, drawn from very many."""
        if self.among is None:
            return math.nan
        variance = float(slope @ (self.among - np.outer(self.values, self.values) / max(people, 1)) @ slope)
        return math.sqrt(max(variance, 0.0)) if not math.isnan(variance) else math.nan


class Moments:
    """The sums over the rows of one class, group by group, for one condition."""

    def __init__(self, values: Values, sums: int, groups: int) -> None:
        self._values = values
        # numbers become integers below 2^30: their sums do not depend on the order of rows
        self._scale = 2.0 ** (_BITS - 1 - math.ceil(math.log2(values.bound))) if values.bound > 0 else 1.0
        self._first = np.zeros((groups, sums, 4), np.uint64)
        self._second = np.zeros((groups, sums, sums))
        self._cross = np.zeros((groups, sums, sums))

    def add(self, slots: NDArray[Any], numbers: Floats, weights: NDArray[np.int64]) -> None:
        """Add rows: the group of each, its number, and one row of weights per sum."""
        from veil.kernels.cells import add_moments

        whole = np.rint(numbers * self._scale).astype(np.int64)
        add_moments(slots.astype(np.int64), whole, weights, self._first, self._second, self._cross)

    def state(self) -> bytes:
        """What was added up so far, as bytes."""
        return b"".join(array.tobytes() for array in (self._first, self._second, self._cross))

    def merge(self, state: bytes) -> None:
        """Add what the same moments found in other rows."""
        first, second, cross = self._first.nbytes, self._second.nbytes, self._cross.nbytes
        if len(state) != first + second + cross:
            raise WireError("these sums are those of another query")
        theirs = np.frombuffer(state[:first], np.uint64).reshape(self._first.shape)
        for low, top in ((0, 1), (2, 3)):  # integers of 128 bits, as two words each
            self._first[..., low] += theirs[..., low]
            carried = self._first[..., low] < theirs[..., low]
            self._first[..., top] += theirs[..., top] + carried.astype(np.uint64)
        self._second += np.frombuffer(state[first : first + second], np.float64).reshape(self._second.shape)
        self._cross += np.frombuffer(state[first + second :], np.float64).reshape(self._cross.shape)

    def totals(
        self, counts: NDArray[np.int64], totals: Sequence[int], products: Sequence[Sequence[int]], units: Floats
    ) -> Totals:
        """The estimated sums of people who made the choices `counts` times.

        `totals` and `products` are the exact sums of all their weights and of products of weights; `units` are what
        one of each weight stands for.
        """
        people, constant = int(counts.sum()), self._values.constant
        sums = len(units)
        first = np.zeros((len(counts), sums))
        for group in np.flatnonzero(self._first.any(axis=(1, 2))).tolist():
            first[group] = [self._whole(group, a) / self._scale for a in range(sums)]
        second = (self._second + np.swapaxes(np.tril(self._second, -1), 1, 2)) / self._scale**2
        cross = (self._cross + np.swapaxes(np.tril(self._cross, -1), 1, 2)).sum(axis=0) / self._scale
        everyone, pairs = np.array(totals, dtype=np.float64), np.array(products, dtype=np.float64).reshape(sums, sums)
        found = constant * everyone + np.array([math.fsum(first[:, a]) for a in range(sums)])
        scatter = np.zeros((sums, sums))
        for group, count in enumerate(counts.tolist()):
            if count > 1:
                centred = second[group] - np.outer(first[group], first[group]) / count
                scatter += centred * count / (count - 1)
            else:
                scatter += second[group]
        # what each person adds to the truth: w (phi - constant), and phi is its own square
        among = cross + constant * pairs  # the sum of w w' phi
        own = among * (1 - 2 * constant) + constant**2 * pairs
        own -= np.outer(found - constant * everyone, found - constant * everyone) / max(people, 1)
        floor = np.diag(pairs) * self._values.noise / max(people, 1)
        return Totals(found, _less(scatter, own, floor), among).scaled(units)

    def _whole(self, group: int, a: int) -> int:
        low, low_top, high, high_top = (int(word) for word in self._first[group, a])
        return _signed(low, low_top) + (_signed(high, high_top) << 32)


def _signed(low: int, top: int) -> int:
    whole = (top << 64) | low
    return whole - (1 << 128) if top >> 63 else whole


def _less(scatter: Floats, own: Floats, floor: Floats) -> Floats:
    """The scatter less people's own share of it, as far as the noise that there is at least stays.

    What is subtracted is itself an estimate, and of few people it may be far too large.
    """
    part = 1.0
    for variance, mine, least in zip(np.diag(scatter), np.diag(own), floor, strict=True):
        if mine > 0:
            part = min(part, max((variance - max(least, variance / 1000)) / mine, 0.0))
    return scatter - part * own
