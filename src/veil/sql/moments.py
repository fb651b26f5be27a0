"""Sums over rows, and how far they scatter: from the numbers of rows to totals with their covariances.

For people of one class (the same public group, the same public conditions) the estimate of a sum is

    T_a  =  constant * (sum of w_a)  +  sum over rows of w_a u.

People were put into groups at random, so with y = w u the variance of T is the sum over groups of n_l times the
variance of y within the group, less n times the variance over people of what each adds to the truth (Neyman 1923):
that part is the same whatever groups people are put into. Noise and the choice of groups are both in it.

All sums over rows are integers, and what is made of them has a hundred digits: neither the order of rows nor a split
of them shows, and differences of large sums stay right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veil.errors import WireError
from veil.sql.decimals import Decimals, decimals, in_decimals, integers
from veil.sql.design import Values
from veil.sql.gram import FEW_ROWS, FEW_SUMS, add_gram, add_words, by_place, is_short, pair_count
from veil.tools.limits import check

__all__ = ["Moments", "Totals"]

Floats = NDArray[np.float64]
_BITS = 30
_AT_ONCE = 1 << 14  # numbers with a hundred digits


@dataclass(frozen=True)
class Totals:
    """Estimated sums, in the units of their weights, and their covariances; they add up over disjoint people.

    Doubles or decimals, whichever they were made of.
    """

    values: Floats | Decimals
    covariance: Floats | Decimals
    among: Floats | Decimals | None = None
    """The estimated sums of products of two weights over the same people: how far totals depend on who was asked."""

    @classmethod
    def nothing(cls, sums: int) -> Totals:
        """The sums over nobody."""
        return cls(np.zeros(sums), np.zeros((sums, sums)), np.zeros((sums, sums)))

    @in_decimals
    def __add__(self, other: Totals) -> Totals:
        among = None if self.among is None or other.among is None else self.among + other.among
        return Totals(self.values + other.values, self.covariance + other.covariance, among)

    @in_decimals
    def scaled(self, units: Floats | Decimals) -> Totals:
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

    @in_decimals
    def error(self, slope: Decimals) -> float:
        """The standard error of a number with these derivatives."""
        used = np.flatnonzero(slope != 0)
        return _root(slope[used] @ decimals(self.covariance[np.ix_(used, used)]) @ slope[used])

    @in_decimals
    def sampled(self, slope: Decimals, people: int) -> float:
        """How far a number with these derivatives varies with who was asked: so many people, drawn from very many."""
        if self.among is None:
            return math.nan
        used = np.flatnonzero(slope != 0)
        values, among, slope = decimals(self.values[used]), decimals(self.among[np.ix_(used, used)]), slope[used]
        return _root(slope @ (among - np.outer(values, values) / max(people, 1)) @ slope)


class Moments:
    """The sums over the rows of one class, group by group, for one condition."""

    def __init__(self, values: Values, sums: int, groups: int) -> None:
        from veil.kernels.exact_sums import LARGE_WORDS, SMALL_WORDS

        self._values = values
        # numbers become integers below 2^30: their sums do not depend on the order of rows
        self._scale = 2.0 ** (_BITS - 1 - math.ceil(math.log2(values.bound))) if values.bound > 0 else 1.0
        pairs = pair_count(sums)
        self._first = np.zeros((groups, sums, SMALL_WORDS), np.uint64)
        self._second = np.zeros((groups, pairs, LARGE_WORDS), np.uint64)
        self._cross = np.zeros((pairs, LARGE_WORDS), np.uint64)

    @property
    def _words(self) -> tuple[NDArray[np.uint64], ...]:
        return self._first, self._second, self._cross

    def add(self, slots: NDArray[Any], numbers: Floats, weights: NDArray[np.int64]) -> None:
        """Add rows: the group of each, its number, and one row of weights per sum."""
        from veil.kernels.exact_sums import add_moments, add_scaled

        places = slots.astype(np.int64)
        whole = np.rint(numbers * self._scale).astype(np.int64)
        few = len(weights) < FEW_SUMS or len(whole) < FEW_ROWS
        if few or not is_short(weights).all():  # w u of long weights has too many limbs
            add_moments(places, whole, weights, *(words.reshape(-1) for words in self._words))
            return
        add_scaled(places, whole, weights, self._first.reshape(-1))
        add_gram(weights, whole, self._cross.reshape(-1), mixed=True)
        for place, mine in by_place(slots):
            some = (weights, whole) if mine is None else (weights[:, mine], whole[mine])
            add_gram(*some, self._second[place].reshape(-1))

    def state(self) -> bytes:
        """What was added up so far, as bytes."""
        return b"".join(words.tobytes() for words in self._words)

    def merge(self, state: bytes) -> None:
        """Add what the same moments found in other rows."""
        if len(state) != sum(words.nbytes for words in self._words):
            raise WireError("these sums are those of another query")
        start = 0
        for words in self._words:
            add_words(words, memoryview(state)[start : start + words.nbytes])
            start += words.nbytes

    @in_decimals
    def totals(
        self,
        counts: NDArray[np.int64],
        totals: Sequence[int],
        products: Sequence[Sequence[int]],
        units: ArrayLike | Sequence[Decimal],
    ) -> Totals:
        """The estimated sums of people who made the choices `counts` times, as decimals.

        `totals` and `products` are the exact sums of all their weights and of products of weights; `units` are what
        one of each weight stands for.
        """
        people, sums = max(int(counts.sum()), 1), len(totals)
        constant, unit = Decimal(self._values.constant), 1 / Decimal(self._scale)
        first, scatter = self._scattered(counts, sums)
        everyone, pairs = decimals(totals), decimals(products).reshape(sums, sums)
        known = first * unit
        # what each person adds to the truth: w (phi - constant), and phi is its own square
        among = _square(decimals(integers(self._cross)), sums) * unit + constant * pairs  # the sum of w w' phi
        own = among * (1 - 2 * constant) + constant**2 * pairs - np.outer(known, known) / people
        floor = np.diag(pairs) * Decimal(self._values.noise) / people
        covariance = _less(scatter * unit**2, own, floor)
        found = Totals(constant * everyone + known, covariance, among)
        return found.scaled(decimals(units))

    def _scattered(self, counts: NDArray[np.int64], sums: int) -> tuple[Decimals, Decimals]:
        """The sums of w u over all groups, and of n times the covariances of w u within each; in units of numbers."""
        first, scatter = np.zeros((1, sums), object), decimals(np.zeros((1, sums, sums)))
        groups = np.flatnonzero(self._second.any(axis=(1, 2)))
        step = max(1, _AT_ONCE // sums**2)  # so that memory does not grow with the number of groups
        for some in (groups[start : start + step] for start in range(0, len(groups), step)):
            check()
            one, second = integers(self._first[some]), _square(integers(self._second[some]), sums)
            people = counts[some, None, None].astype(object)
            alone = people <= 1
            centred = np.where(alone, second, people * second - one[:, :, None] * one[:, None, :])
            own = decimals(centred) / decimals(np.where(alone, 1, people - 1))
            first = np.concatenate([first, one]).sum(axis=0, keepdims=True)
            scatter = np.concatenate([scatter, own]).sum(axis=0, keepdims=True)
        return decimals(first[0]), decimals(scatter[0])


def _square(pairs: NDArray[Any], sums: int) -> NDArray[Any]:
    """Symmetric matrices from what stands for each pair of a weight with itself or one before it."""
    places = [[max(a, b) * (max(a, b) + 1) // 2 + min(a, b) for b in range(sums)] for a in range(sums)]
    return pairs[..., np.array(places, np.int64).reshape(sums, sums)]


def _root(variance: Any) -> float:
    return math.nan if math.isnan(variance) else float(Decimal(max(variance, 0)).sqrt())


def _less(scatter: Decimals, own: Decimals, floor: Decimals) -> Decimals:
    """The scatter less people's own share of it, as far as the noise that there is at least stays.

    What is subtracted is itself an estimate, and of few people it may be far too large.
    """
    part = Decimal(1)
    for variance, mine, least in zip(np.diag(scatter), np.diag(own), floor, strict=True):
        if mine > 0:
            part = min(part, max((variance - max(least, variance / 1000)) / mine, Decimal(0)))
    return np.asarray(scatter - part * own, object)
