"""The choice of views: their size, their number and their attributes (thesis 6.2.3, Algorithm 2), and predicted errors.

Larger views and more views contain more interactions of attributes. Larger views have more noise, and more views leave
fewer people for each. Algorithm 2 compares both errors with a threshold. Three decisions go beyond it:

- The thesis draws as many random views as the threshold allows, even where fewer views contain every set of k
  attributes. Here such a `covering_design` is preferred: the noise is the same, and the sampling error smaller.
- Views that cannot contain every set of k attributes are balanced: every attribute is in equally many of them, and
  pairs are as even as possible. Of 496 pairs of 32 attributes, 65 random ones leave some attributes out.
- Every attribute is in a view, even if few people take part and the threshold allows fewer views than that.

`predicted_error` is the error of unbiased estimates, where each interaction is averaged over the views that contain it.
Tables made non-negative have smaller errors, above all where the noise is large. The prediction leaves out the error of
marginals that no view contains, which depends on interactions that nobody was asked about.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from random import Random
from typing import Any, TypeVar

import numpy as np

from veil.domain import Categories
from veil.errors import ParameterError
from veil.marginals.covering import COVERED_SETS, covering_design, schoenheim
from veil.marginals.tables import MOST_CELLS
from veil.mechanisms import GRR
from veil.mechanisms.best_oracle import least_variance
from veil.privacy import check_epsilon
from veil.tools.numbers import is_int, is_number

Sets = tuple[tuple[int, ...], ...]
Number = TypeVar("Number", int, float)
MOST_VIEWS = 1 << 14
"""How many views there are at most: among more than that, the few people of each say little."""

_EXCHANGES = 4_000  # tried to make pairs more even: some tenths of a second


def choose_views(sizes: Sequence[int], k: int, epsilon: float, users: int, threshold: float = 0.001) -> Sets:
    """The views to ask for, as places of attributes in the record, for attributes of these sizes.

    >>> choose_views((2, 2, 2), 2, 1.0, 100_000)
    ((0, 1), (0, 2), (1, 2))
    """
    m = len(sizes)
    _check(users, m, k, threshold)
    first, second = sorted(sizes, reverse=True)[:2]
    _check_cells(first * second, "the largest two attributes together have")
    chosen = choose_sizes(users, m, k, epsilon, threshold, lambda s: expected_cells(sizes, s))
    views = covering_design(m, k, chosen.s) if chosen.taken.covers else balanced_sets(m, chosen.s, chosen.t)
    _check_cells(sum(math.prod(sizes[place] for place in view) for view in views), f"{len(views):,} views have")
    return views


@lru_cache(maxsize=64)
def balanced_sets(m: int, s: int, t: int) -> Sets:
    """t different sets of s of m attributes: each attribute in equally many (one more or less), pairs evenly too.

    There are more than t where t sets leave attributes out, and at most all C(m, s). Where t sets can hold every pair,
    they do. The same arguments give the same sets on every machine.

    >>> sets = balanced_sets(32, 2, 65)
    >>> len(sets), {sum(place in one for one in sets) for place in range(32)}
    (65, {4, 5})
    """
    if not all(map(is_int, (m, s, t))) or not 1 <= s <= m or t < 1:
        raise ParameterError("expected at least one set, of between 1 and m attributes")
    every = math.comb(m, s)
    t = min(max(t, -(-m // s)), every)
    if t == every:
        return tuple(combinations(range(m), s))
    if 2 * t > every:  # what is left out is balanced
        left = set(_drawn(m, s, every - t, ()))
        return tuple(one for one in combinations(range(m), s) if one not in left)
    return tuple(sorted(_drawn(m, s, t, _pairs_covered(m, s, t))))


def _drawn(m: int, s: int, t: int, start: Sets) -> list[tuple[int, ...]]:
    balance = _Balance(m, s, start)
    balance.add(t - len(start))
    balance.even_out()
    return balance.sets


def _pairs_covered(m: int, s: int, t: int) -> Sets:
    """A design that holds every pair, if t sets are enough for it."""
    if s < 3 or schoenheim(m, 2, s) > t or math.comb(m, 2) > COVERED_SETS:
        return ()
    design = covering_design(m, 2, s)
    return design if len(design) <= t else ()


class _Balance:
    """Sets that grow one by one, each of the attributes that occur least often so far."""

    def __init__(self, m: int, s: int, start: Sets) -> None:
        self.m, self.s = m, s
        self.sets: list[tuple[int, ...]] = []
        self.known: set[tuple[int, ...]] = set()
        self.occurs = np.zeros(m, np.int64)
        self.pairs = np.zeros((m, m), np.int64)
        self.random = Random(m * 1_000_003 + s)  # noqa: S311  # random() is the same in every version of Python
        for one in start:
            self._take(one)
        self.fixed = len(start)

    def add(self, count: int) -> None:
        """So many more sets: of the least frequent attributes, and of those the ones that met least often."""
        for _ in range(count):
            one = next((one for one in (self._grown() for _ in range(20)) if one not in self.known), None)
            if one is None:  # chance alone does not find a new one
                free = (some for some in combinations(range(self.m), self.s) if some not in self.known)
                one = min(free, key=lambda some: int(self.occurs[list(some)].sum()))
            self._take(one)

    def even_out(self) -> None:
        """Exchange attributes between two sets where that makes pairs more even; no attribute's number changes."""
        places = range(self.fixed, len(self.sets))
        if len(places) < 2:
            return
        for _ in range(min(20 * len(places), _EXCHANGES)):
            first, second = (self.fixed + int(self.random.random() * len(places)) for _ in range(2))
            one, other = self.sets[first], self.sets[second]
            mine, yours = sorted(set(one) - set(other)), sorted(set(other) - set(one))
            if first == second or not mine:
                continue
            x, y = (some[int(self.random.random() * len(some))] for some in (mine, yours))
            rest, others = [i for i in one if i != x], [i for i in other if i != y]
            # the sum of squares of the pairs' numbers, before and after, apart from what is common
            loss = self.pairs[x, rest].sum() + self.pairs[y, others].sum()
            gain = self.pairs[y, rest].sum() + self.pairs[x, others].sum() + len(rest) + len(others)
            swapped = tuple(sorted((*rest, y))), tuple(sorted((*others, x)))
            if gain < loss and swapped[0] not in self.known and swapped[1] not in self.known:
                for place, old, new in ((first, one, swapped[0]), (second, other, swapped[1])):
                    self._count(old, -1)
                    self._count(new, 1)
                    self.known.remove(old)
                    self.known.add(new)
                    self.sets[place] = new

    def _grown(self) -> tuple[int, ...]:
        one: list[int] = []
        while len(one) < self.s:
            rank = self.occurs * (1 << 32) + (self.pairs[:, one].sum(axis=1) if one else 0)
            rank[one] = np.iinfo(np.int64).max
            best = np.flatnonzero(rank == rank.min())
            one.append(int(best[int(self.random.random() * len(best))]))
        return tuple(sorted(one))

    def _take(self, one: tuple[int, ...]) -> None:
        self.sets.append(one)
        self.known.add(one)
        self._count(one, 1)

    def _count(self, one: tuple[int, ...], by: int) -> None:
        places = list(one)
        self.occurs[places] += by
        self.pairs[np.ix_(places, places)] += by
        self.pairs[places, places] -= by


def _check_cells(cells: int, whose: str) -> None:
    if cells > MOST_CELLS:
        raise ParameterError(
            f"{whose} {cells:,} cells, of at most {MOST_CELLS:,}: put values of the largest attributes together, "
            "or leave attributes out"
        )


@dataclass(frozen=True)
class SizeRow:
    """What views of s attributes would be: cells of one, k NE, how many of them, and SE."""

    s: int
    cells: float
    k_times_noise_error: float
    marginals: int
    sampling_error: float
    covers: bool
    """Whether these views hold every set of k attributes."""

    @property
    def larger_error(self) -> float:
        """What is made as small as possible: the larger of k NE and SE."""
        return max(self.k_times_noise_error, self.sampling_error)


@dataclass(frozen=True)
class ViewSizes:
    """How many views (t) of how many attributes (s), why, the row of these, and the rows that were looked at."""

    s: int
    t: int
    why: str
    taken: SizeRow
    rows: tuple[SizeRow, ...]


def choose_sizes(
    n: int,
    m: int,
    k: int,
    epsilon: float,
    threshold: float = 0.001,
    cells_of: Callable[[int], float] | None = None,
) -> ViewSizes:
    """Algorithm 2 of the thesis: the size s and the number t of views for marginals of k of m attributes from n people.

    `cells_of` gives the mean number of cells of a view of s attributes; without it attributes are binary. Sizes are
    looked at from below, and no further than they can be chosen. Beside the thesis, a view has at least two attributes,
    and there are enough of them for every attribute; a design that holds every k attributes is preferred to as many
    random views as the threshold allows; and there are at most `MOST_VIEWS`.

    >>> chosen = choose_sizes(2**16, 8, 3, 2.0)
    >>> chosen.s, chosen.t, [(row.s, row.marginals) for row in chosen.rows if row.covers]
    (4, 14, [(3, 56), (4, 14)])
    """
    _check(n, m, k, threshold)
    epsilon, cells_of = check_epsilon(epsilon), cells_of or (lambda s: 2.0**s)
    most = min(int(threshold * n), MOST_VIEWS)
    rows: list[SizeRow] = []
    best: SizeRow | None = None
    for s in range(2, m + 1):
        cells = cells_of(s)
        noise = k * noise_error(epsilon, cells, s, m, n)
        if (rows and noise > threshold) or (best is not None and noise >= best.larger_error):
            break  # too noisy; or views of more attributes are worse than what there is, since noise grows with s
        cover = _cover_size(m, k, s, most) if s >= k else None
        t = min(max(most, -(-m // s)), math.comb(m, s)) if cover is None else cover
        row = SizeRow(s, cells, noise, t, sampling_error(t, n), cover is not None)
        rows.append(row)
        if row.covers and (best is None or row.larger_error < best.larger_error):
            best = row
    taken = rows[-1] if best is None else best
    return ViewSizes(taken.s, taken.marginals, _reason(taken, k, m, threshold), taken, tuple(rows))


def _reason(taken: SizeRow, k: int, m: int, threshold: float) -> str:
    views = f"{taken.marginals:,} views of {taken.s} attributes"
    if taken.covers:
        return f"{views} hold every {k} attributes, with k NE = {taken.k_times_noise_error:.2g}"
    more = "larger ones" if taken.marginals == math.comb(m, taken.s) else "larger or more ones"
    return f"{views}: {more} would err by more than the threshold of {threshold:g}"


def _cover_size(m: int, k: int, s: int, most: int) -> int | None:
    """How many views of s attributes hold every k, if at most `most`; None too where that takes too long to tell."""
    if schoenheim(m, k, s) > most or math.comb(m, k) > COVERED_SETS:
        return None
    size = len(covering_design(m, k, s))
    return size if size <= most else None


def _check(n: int, m: int, k: int, threshold: float) -> None:
    if not is_int(n) or n < 1:
        raise ParameterError("a number of people is at least 1")
    if not is_int(m) or m < 2:
        raise ParameterError("a joint distribution needs at least two attributes: one alone is a histogram")
    if not is_int(k) or not 1 <= k <= m:
        raise ParameterError(f"k is the number of attributes of a marginal, from 1 to the record's {m}")
    if not is_number(threshold) or not 0 < threshold < 1:
        raise ParameterError("the threshold is an error to aim at, between 0 and 1")


def noise_error(epsilon: float, cells: float, s: int, m: int, n: int) -> float:
    """NE: the noise in a marginal of one attribute, added up over its cells, from views of s of m attributes.

    NE = V(eps, L) L/s m/n with V = min(4 e^eps / (e^eps - 1)^2, (L - 2 + e^eps) / (e^eps - 1)^2), the variances of OUE
    and GRR (thesis (6.4), its symbols put right). It does not depend on how many views there are. SubsetSelection,
    which may be asked with, is a little better than both; the choice keeps to the formula of the thesis.

    >>> round(3 * noise_error(2.0, 8, 3, 8, 2**16), 5), round(3 * noise_error(2.0, 16, 4, 8, 2**16), 5)
    (0.00032, 0.00077)
    """
    power = math.exp(epsilon)
    variance = min(4 * power, cells - 2 + power) / math.expm1(epsilon) ** 2
    return variance * cells / s * m / n


def sampling_error(t: int, n: int) -> float:
    """SE: at most how far the people of one of t views are from all n people: t / n, added up over cells (6.5).

    >>> round(sampling_error(56, 2**16), 5)
    0.00085
    """
    return t / n


def expected_cells(sizes: Sequence[int], s: int) -> float:
    """The mean number of cells of all views of s attributes, exactly rounded.

    >>> expected_cells((2, 2, 2), 2), expected_cells((2, 3, 10), 2)
    (4.0, 18.666666666666668)
    """
    return products(sizes, s) / math.comb(len(sizes), s)


def products(numbers: Sequence[Number], s: int) -> Number:
    """The sum of the products of all sets of s numbers: the elementary symmetric polynomial.

    >>> products((2, 3, 10), 2)
    56
    """
    sums: list[Any] = [1] + [0] * s
    for number in numbers:
        for i in range(s, 0, -1):
            sums[i] += sums[i - 1] * number
    return sums[s]  # type: ignore[no-any-return]  # integers of integers


@dataclass(frozen=True)
class PredictedError:
    """The error of a marginal of k attributes, squared and added up over its cells; the mean over all of these."""

    noise: float
    """What the randomizers add."""
    sampling: float
    """What comes from asking each view of some people only, where cells are equally frequent; else it is smaller."""
    cells: float
    """The mean number of cells of such a marginal."""
    held: float
    """The share of these marginals that a view holds whole."""

    @property
    def sse(self) -> float:
        """Both errors together."""
        return self.noise + self.sampling

    @property
    def cell(self) -> float:
        """The error of one cell, as a standard error."""
        return math.sqrt(self.sse / self.cells)


def predicted_error(
    sizes: Sequence[int], sets: Sequence[Sequence[int]], epsilon: float, users: int, k: int, *, separate: bool = False
) -> PredictedError:
    """What to expect of marginals of k attributes, with these views asked of equally many of the people each.

    An interaction S, of prod(d_i - 1) coefficients over its attributes, is averaged over the views V that hold it,
    weighted by a_V = n_V / (w_V L_V): n_V people, L_V cells, and w_V the variance that one person's report adds along
    any direction in which cells add up to 0. In a marginal of L cells it adds prod(d_i - 1) / L times 1 / sum a_V of
    noise, and 1 / N - 1 / n of sampling, where N = (sum a_V)^2 / sum(a_V^2 / n_V) of the n people told about it.

    With `separate`, every marginal is read from the views that hold it whole, as where views are not made to agree.

    >>> all_pairs = predicted_error((2, 2, 2), [(0, 1), (0, 2), (1, 2)], 1.0, 100_000, k=2)
    >>> round(all_pairs.noise, 6), round(all_pairs.sampling, 6), all_pairs.held
    (0.000151, 7e-06, 1.0)
    """
    m, epsilon = len(sizes), check_epsilon(epsilon)
    if not is_int(k) or not 1 <= k <= m or not is_int(users) or users < 1 or not len(sets):
        raise ParameterError("expected at least one view, one person, and marginals of 1 to all attributes")
    people = users / len(sets)
    weights: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for view in sets:
        cells = math.prod(sizes[place] for place in view)
        weight = people / (_contrast_variance(epsilon, cells) * cells)
        for size in [k] if separate else range(1, k + 1):
            for some in combinations(sorted(view), size):
                weights[some].append(weight)

    @cache
    def around(others: tuple[int, ...], more: int) -> float:
        """The sum of 1 / cells of all sets of `more` of these attributes."""
        return products([1 / size for size in others], more)

    noise = sampling = 0.0
    held = [some for some in weights if len(some) == k]
    for some, each in weights.items():
        cells = math.prod(sizes[place] for place in some)
        total = sum(each)
        asked = people * total**2 / sum(weight**2 for weight in each)
        if separate:  # all interactions of the marginal at once
            factor = (cells - 1) / cells
        else:
            others = tuple(sorted(sizes[place] for place in range(m) if place not in some))
            factor = math.prod(sizes[place] - 1 for place in some) / cells * around(others, k - len(some))
        noise += factor / total
        sampling += factor * (1 / asked - 1 / users)
    every = len(held) if separate else math.comb(m, k)
    if not every:
        raise ParameterError("no view holds a marginal of so many attributes")
    return PredictedError(
        noise / every, max(sampling, 0.0) / every, expected_cells(sizes, k), len(held) / math.comb(m, k)
    )


def predicted_fourier_error(sizes: Sequence[int], epsilon: float, users: int, k: int) -> PredictedError:
    """The same where each person reports one Fourier coefficient of a set of bits that touches at most k attributes.

    Of C coefficients each is told by n / C people, who report -1 or 1 by randomized response: its variance is
    sigma^2 = C / n / (p - q)^2. A marginal of L cells, whose attributes have b bits, is the transform of 2^b of them,
    cut to its cells: it errs by sigma^2 (L - 1) / 2^b.

    >>> round(predicted_fourier_error((2,) * 8, 1.0, 100_000, k=3).sse, 6)
    0.003761
    """
    bits = [(size - 1).bit_length() for size in sizes]
    coefficients = sum(products([2**width - 1 for width in bits], some) for some in range(1, k + 1))
    response = GRR(check_epsilon(epsilon), 2)
    every = math.comb(len(sizes), k)
    filled = products([size / 2**width for size, width in zip(sizes, bits, strict=True)], k) / every
    factor = (filled - products([1 / 2**width for width in bits], k) / every) * coefficients / users
    spread = 1 / float(response.p - response.q) ** 2 - 1
    return PredictedError(factor * spread, factor * (1 - 1 / coefficients), expected_cells(sizes, k), 1.0)


@lru_cache(maxsize=1024)
def _contrast_variance(epsilon: float, cells: int) -> float:
    """The variance that one report adds along a direction of length 1 whose cells add up to 0, cells equally frequent.

    Held value x, direction h: Var(sum h_v s_v) is q - miss, and h_x^2 times what the held value adds; h_x^2 is
    1 / cells on average. Oracles whose estimates add up to 1 have more noise along these directions than in a cell.
    """
    noise = least_variance(epsilon, Categories.range(cells)).noise
    p, q, hit, miss = (float(chance) for chance in (noise.p, noise.q, noise.hit, noise.miss))
    by_held = p * (1 - p) - q * (1 - q) - 2 * (hit - p * q) + 2 * (miss - q * q)
    return (q - miss + by_held / cells) / (p - q) ** 2
