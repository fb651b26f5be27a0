"""Exact sums over rows, and the totals with covariances that follow from them.

For people of one class (the same public group, the same public conditions) the estimate of a sum is

    T_a  =  constant * (sum of w_a)  +  sum over rows of w_a u.

People were put into groups at random, so with y = w u the variance of T is the sum over groups of n_l times the
variance of y within the group, less n times the variance over people of each person's part of the truth (Neyman 1923):
that part is the same for any assignment to groups. It covers both the noise and the choice of groups.

All sums over rows are integers, so neither the order of rows nor their split matters. `Grams` are the sums of products
of weights: weights are split into limbs of 21 bits, whose products over some rows add up below 2^53, so that a matrix
product of doubles is exact; the results are added up as integers of 256 bits, in memory linear in the number of pairs.

Totals are computed with a hundred digits, because differences may cancel nearly all of them: the variance of amounts
near a billion that differ by a hundred is 1e-15 of its terms, and its standard error comes from 1e-30 of them. Doubles
have 16 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cached_property, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veil.errors import WireError
from veil.sql.designs.base import RowEstimator
from veil.tools.limits import check

P = ParamSpec("P")
T = TypeVar("T")
Floats = NDArray[np.float64]
Decimals = NDArray[Any]
"""An array of decimals."""
Words = NDArray[np.uint64]
NAN = Decimal("NaN")
_CONTEXT = Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])  # nothing raises: NaN is what is not known
_decimal = np.frompyfunc(Decimal, 1, 1)
_WORD = 64
_LIMB_BITS = 21
_MOST_ROWS, _LEAST_ROWS = 1 << 14, 1 << 11  # 2^20 products of two limbs add up below 2^63
_WEIGHTS_AT_ONCE = 1 << 20  # weights whose limbs are in memory
_ALIGNED = 4  # the kernel takes so many rows of limbs at a time
FEW_SUMS, FEW_ROWS = 8, 64
"""Below either, a loop over rows is faster than a matrix product."""
_HALF_BITS = 32
_BITS = 30
_AT_ONCE = 1 << 14  # numbers with a hundred digits


def in_decimals(function: Callable[P, T]) -> Callable[P, T]:
    """A decorator: decimals have a hundred digits inside, and 0 / 0 is NaN."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with localcontext(_CONTEXT):
            return function(*args, **kwargs)

    return wrapped


def decimals(numbers: ArrayLike | Sequence[Decimal]) -> Decimals:
    """Integers or doubles as decimals, exactly; decimals as they are."""
    array = np.asarray(numbers)
    return np.asarray(_decimal(array.astype(object)), object)


def integers(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Python's integers from words along the last axis, the lowest first, in two's complement.

    >>> integers(np.array([[5, 1], [2**64 - 1, 2**64 - 1]], np.uint64)).tolist()
    [18446744073709551621, -1]
    """
    count, parts = words.shape[-1], words.astype(object)
    whole = sum((parts[..., i] << (_WORD * i) for i in range(1, count)), start=parts[..., 0])
    return np.asarray(whole - ((parts[..., -1] >> (_WORD - 1)) << (_WORD * count)), object)


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


class RowMoments:
    """The sums over the rows of one class, group by group, for one condition."""

    def __init__(self, values: RowEstimator, sums: int, groups: int) -> None:
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


def pair_count(sums: int) -> int:
    """Return the number of pairs of a sum with itself or with one before it."""
    return sums * (sums + 1) // 2


class Grams:
    """The exact sums of products of two weights, for each class of rows."""

    def __init__(self, classes: int, sums: int) -> None:
        self._classes, self._sums = classes, sums

    @cached_property
    def words(self) -> Words:
        """The sums as words, one row of pairs per class; made when they are first needed."""
        from veil.kernels.exact_sums import LARGE_WORDS

        return np.zeros((self._classes, pair_count(self._sums), LARGE_WORDS), np.uint64)

    def add(self, places: NDArray[np.int32], weights: NDArray[np.int64]) -> None:
        """Add rows: the class of each, and one row of weights per sum."""
        from veil.kernels.exact_sums import add_products

        if self._sums < FEW_SUMS:
            add_products(places.astype(np.int64), weights, self.words.reshape(-1))
            return
        for place, mine in by_place(places):
            some = weights if mine is None else np.ascontiguousarray(weights[:, mine])
            if some.shape[1] < FEW_ROWS:
                add_products(np.zeros(some.shape[1], np.int64), some, self.words[place].reshape(-1))
            else:
                add_gram(some, None, self.words[place].reshape(-1))

    def products(self, place: int, some: Sequence[int], others: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the sums of products of these weights, one row per weight of `others`."""
        found = integers(self.words[place]).tolist()
        return tuple(tuple(found[pair_count(max(a, b)) + min(a, b)] for a in some) for b in others)


def by_place(places: NDArray[Any]) -> list[tuple[int, NDArray[np.int64] | None]]:
    """Return the places that occur, each with its rows; None stands for all rows."""
    if not len(places):
        return []
    if (places == places[0]).all():
        return [(int(places[0]), None)]
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    return [(int(places[some[0]]), some) for some in np.split(order, starts[1:])]


def add_gram(weights: NDArray[np.int64], numbers: NDArray[np.int64] | None, words: Words, mixed: bool = False) -> None:
    """Add the sums of w w' over rows to `words`, one large sum per pair; with `numbers` u, below 2^30, those of
    w w' u u, and those of w w' u if `mixed`.
    """
    from veil.kernels.exact_sums import add_grid, multiply

    step = min(_MOST_ROWS, max(_LEAST_ROWS, _WEIGHTS_AT_ONCE // len(weights)))
    for start in range(0, weights.shape[1], step):
        some = np.ascontiguousarray(weights[:, start : start + step])
        right = _limbs(some) if numbers is None else _scaled_limbs(some, numbers[start : start + step])
        left = _limbs(some) if mixed else right
        grid = np.zeros((len(left.of), len(right.of)), np.int64)
        multiply(left.values, right.values, left.of, right.of, grid)
        add_grid(grid, left.of, right.of, left.shifts, right.shifts, words)


@dataclass(frozen=True, eq=False)
class _Limbs:
    """Integers as sums of limbs: values[i] 2^shifts[i] is a part of the of[i]-th of them; in the order of `of`."""

    values: NDArray[Any]
    of: NDArray[np.int64]
    shifts: NDArray[np.int64]


def _limbs(numbers: NDArray[np.int64], high: NDArray[np.int64] | None = None) -> _Limbs:
    """The limbs of numbers, or of numbers + high 2^32; the last limb of each has its sign. Rows of zeros have none."""
    parts = [*_split(numbers, 0), *([] if high is None else _split(high, _HALF_BITS))]
    of = np.concatenate([part.of for part in parts] or [np.zeros(0, np.int64)])
    order = np.argsort(of, kind="stable")
    size = -len(of) % _ALIGNED + len(of)
    values = np.zeros((size, numbers.shape[1]))
    shifts, sorted_of = np.zeros(size, np.int64), np.full(size, of.max(initial=0))
    sorted_of[: len(of)] = of[order]
    at = np.argsort(order)
    for part in parts:
        mine, at = at[: len(part.of)], at[len(part.of) :]
        values[mine], shifts[mine] = part.values, part.shifts
    return _Limbs(values, sorted_of, shifts)


def _split(numbers: NDArray[np.int64], shift: int) -> list[_Limbs]:
    """The limbs of numbers 2^shift: the lowest one of each, then the next."""
    found, every = [], np.arange(len(numbers))
    while len(every):
        least, most = numbers.min(axis=1), numbers.max(axis=1)
        some = (least != 0) | (most != 0)
        numbers, every, least, most = numbers[some], every[some], least[some], most[some]
        last = (least >= -(1 << _LIMB_BITS)) & (most < 1 << _LIMB_BITS)
        low = np.where(last[:, None], numbers, numbers & ((1 << _LIMB_BITS) - 1))
        found.append(_Limbs(low, every, np.full(len(every), shift)))
        numbers, every, shift = numbers[~last] >> _LIMB_BITS, every[~last], shift + _LIMB_BITS
    return found


def is_short(weights: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which weights have at most 32 bits in every row."""
    least, most = weights.min(axis=1), weights.max(axis=1)
    return np.asarray((least >= -(1 << (_HALF_BITS - 1))) & (most < 1 << (_HALF_BITS - 1)))


def _scaled_limbs(weights: NDArray[np.int64], numbers: NDArray[np.int64]) -> _Limbs:
    """The limbs of w u: of the low and the high 32 bits of long weights, so that no product overflows."""
    short = is_short(weights)
    if short.all():
        return _limbs(weights * numbers)
    low = np.where(short[:, None], weights, weights & ((1 << _HALF_BITS) - 1))
    high = np.where(short[:, None], 0, weights >> _HALF_BITS)
    return _limbs(low * numbers, high * numbers)


def add_words(mine: Words, state: bytes | memoryview) -> None:
    """Add large or small sums, as words along the last axis, to others of the same shape."""
    if len(state) != mine.nbytes:
        raise WireError("these sums are those of another query")
    theirs = np.frombuffer(state, np.uint64).reshape(mine.shape)
    carried = np.zeros(mine.shape[:-1], np.uint64)
    for i in range(mine.shape[-1]):
        some = theirs[..., i] + carried
        carried = (some < carried).astype(np.uint64)
        mine[..., i] += some
        carried += mine[..., i] < some
