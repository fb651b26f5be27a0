"""Covering designs: few sets of s of m attributes, so that one of them contains any k attributes.

Small designs come from finite geometries and from recipes that combine smaller designs. A search then removes sets and
covers the gaps again. Equal arguments give equal designs on every machine. A design is not always the smallest known;
`schoenheim` is a lower bound. `veil.marginals.choosing` decides how many sets a study asks for.

The flats of dimension k-1 of a geometry (lines, planes and so on over a field of q values) are a covering design, and
often the smallest: one of them goes through any k points in general position. Over 2 values the planes are the
quadruples {a, b, c, a xor b xor c}.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import combinations, permutations, product
from random import Random

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError
from veil.tools.numbers import is_int

Blocks = tuple[tuple[int, ...], ...]
Geometry = tuple[str, int, int, int]
"""Affine or projective, q, the dimension of the space, and the dimension of the flats."""

COVERED_SETS = 200_000
"""How many sets of k attributes a design covers at most; more are refused, since building it would take minutes."""

_MOST_WITH_RECIPES = 128  # attributes; recipes go down one by one, and beyond only pairs are few enough to be covered
_SEARCHED_CELLS = 1 << 21  # the search counts in an array of m^k cells
_SEARCHED_BLOCKS = 1_500  # how many sets it builds anew after the first cover: about 0.2 seconds
_SMALL_DESIGN = 200  # sets of a design in which it looks for neighbours; a larger design is covered greedily, once
_MODULI = {
    2: (2, (0, 1)),
    3: (3, (0, 1)),
    4: (2, (1, 1, 1)),
    5: (5, (0, 1)),
    7: (7, (0, 1)),
    8: (2, (1, 1, 0, 1)),
    9: (3, (1, 0, 1)),
}
"""For each q = p^e the prime p, and an irreducible polynomial over it, its constant first: how products are reduced."""


@lru_cache(maxsize=256)
def covering_design(m: int, k: int, s: int) -> Blocks:
    """Sets of s of the attributes 0 .. m-1 such that every set of k attributes lies inside one of them.

    Where geometry gives the smallest design, as below, this takes milliseconds; else about 0.3 seconds for up to 16
    attributes, and some seconds at the limit of `COVERED_SETS`. More sets to cover than that are refused.

    >>> [len(covering_design(*sizes)) for sizes in [(8, 3, 4), (8, 2, 4), (16, 2, 4), (16, 2, 3), (16, 3, 4)]]
    [14, 6, 20, 43, 140]
    """
    _check(m, k, s)
    if math.comb(m, k) > COVERED_SETS:
        raise ParameterError(
            f"{m} attributes have {math.comb(m, k):,} sets of {k}; a covering design is for at most {COVERED_SETS:,}"
        )
    if m > _MOST_WITH_RECIPES and 1 < k < s and (k + 1) * (m - s) > m:
        return _ordered(_Search(m, k, s).run(None))
    known = _build(m, k, s)
    if len(known) == schoenheim(m, k, s):
        return _ordered(known)
    known = min([known, *_truncated(m, k, s)], key=len)
    return _ordered(_Search(m, k, s).run(known) if m**k <= _SEARCHED_CELLS else known)


def schoenheim(m: int, k: int, s: int) -> int:
    """The least number of sets that any covering design has, by Schoenheim's bound (1964).

    ceil(m/s ceil((m-1)/(s-1) ... ceil((m-k+1)/(s-k+1)))).

    >>> schoenheim(8, 3, 4), schoenheim(16, 2, 3)
    (14, 43)
    """
    _check(m, k, s)
    bound = 1
    for i in reversed(range(k)):
        bound = -(-bound * (m - i) // (s - i))
    return bound


def _check(m: int, k: int, s: int) -> None:
    if not all(map(is_int, (m, k, s))) or not 1 <= k <= s <= m:
        raise ParameterError("sets of s of m attributes cover those of k where 1 <= k <= s <= m")


def _ordered(blocks: Iterable[tuple[int, ...]]) -> Blocks:
    return tuple(sorted({tuple(sorted(block)) for block in blocks}))


@cache
def _recipe(m: int, k: int, s: int) -> tuple[int, str]:
    """How many sets the best recipe needs, and its name."""
    if k == s:
        return math.comb(m, s), "all"
    if (k + 1) * (m - s) <= m:  # k + 1 sets that leave out different attributes: k attributes miss one of these gaps
        return (k + 1 if m > s else 1), "gaps"
    if k == 1:
        return -(-m // s), "parts"
    options = [
        (_recipe(m - 1, k, s)[0] + _recipe(m - 1, k - 1, s - 1)[0], "extended"),
        (_recipe(m, k, s - 1)[0], "padded"),
    ]
    options += [(_recipe(-(-m // c), k, s // c)[0], f"copied {c}") for c in range(2, s // k + 1)]
    geometry = geometry_of(m, k, s)
    if geometry is not None:
        options.append((flat_count(*geometry), "geometry"))
    return min(options)


def _build(m: int, k: int, s: int) -> Blocks:
    """The design of the best recipe."""
    recipe = _recipe(m, k, s)[1]
    if recipe == "all":
        return tuple(combinations(range(m), s))
    if recipe == "gaps":
        gaps = [range(i * (m - s), (i + 1) * (m - s)) for i in range(k + 1)]
        return _ordered(tuple(set(range(m)) - set(gap)) for gap in gaps)
    if recipe == "parts":
        return tuple(tuple(range(min(start, m - s), min(start, m - s) + s)) for start in range(0, m, s))
    if recipe == "extended":
        with_last = [(*block, m - 1) for block in _build(m - 1, k - 1, s - 1)]
        return (*_build(m - 1, k, s), *with_last)
    if recipe == "padded":
        return _filled(_build(m, k, s - 1), m, s)
    if recipe == "geometry":
        geometry = geometry_of(m, k, s)
        assert geometry is not None
        return _filled(flats(*geometry), m, s)
    c = int(recipe.split()[1])  # each attribute of a smaller design stands for c attributes
    small = _build(-(-m // c), k, s // c)
    return _filled([[x for a in block for x in range(c * a, min(c * a + c, m))] for block in small], m, s)


def _truncated(m: int, k: int, s: int) -> list[Blocks]:
    """Geometries with more points than there are attributes, with the points left out, and small sets put together."""
    found = []
    for more in range(m + 1, 2 * m):
        geometry = geometry_of(more, k, s)
        if geometry is not None and flat_count(*geometry) <= 4 * schoenheim(m, k, s) <= 4 * _SMALL_DESIGN:
            blocks = [block for block in flats(*geometry) if sum(x < m for x in block) >= k]
            found.append(_filled(_merged([[x for x in block if x < m] for block in blocks], s), m, s))
    return found


def _merged(blocks: list[list[int]], s: int) -> list[list[int]]:
    """Sets that fit into one of s, put together: the largest first."""
    made: list[set[int]] = []
    for block in sorted(blocks, key=len, reverse=True):
        home = next((other for other in made if len(other.union(block)) <= s), None)
        if home is None:
            made.append(set(block))
        else:
            home.update(block)
    return [sorted(block) for block in made]


def _filled(blocks: Iterable[Iterable[int]], m: int, s: int) -> Blocks:
    """The same sets with s attributes each: those that occur least often are added."""
    lists = [list(block) for block in blocks]
    occurs = np.bincount([x for block in lists for x in block], minlength=m)
    for block in lists:
        while len(block) < s:
            free = np.setdiff1d(np.arange(m), block)
            added = int(free[np.argmin(occurs[free])])
            block.append(added)
            occurs[added] += 1
    return _ordered(lists)  # type: ignore[arg-type]


class _Search:
    """Takes some sets out of a design, covers again what they leave open, and keeps what is not larger.

    `counts` holds how many sets cover each ordered k-tuple of attributes: a set that grows by one attribute then gains
    the sum of a few rows.
    """

    def __init__(self, m: int, k: int, s: int) -> None:
        self.m, self.k, self.s = m, k, s
        powers = m ** np.arange(k - 1, -1, -1)
        self.counts = np.zeros(m**k, np.int32)
        self.tuples = np.array(list(permutations(range(s), k)))  # places inside a set
        self.powers = powers
        self.ends = np.array(list(combinations(range(m), k)))
        self.listed = self.ends @ powers
        self.random = Random(m * 1_000_003 + k * 1_009 + s)  # noqa: S311  # the same in every version of Python

    def run(self, known: Blocks | None) -> Blocks:
        """The known design or a greedy one, whichever is smaller, improved."""
        greedy = self._thinned(self._covered([]))
        blocks = greedy if known is None or len(greedy) <= len(known) else list(known)
        return tuple(self._improved(blocks)) if len(blocks) <= _SMALL_DESIGN else tuple(blocks)

    def _improved(self, blocks: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        self.counts[:] = 0
        for block in blocks:
            self._count(block, 1)
        blocks, built, bound = self._thinned(blocks), 0, schoenheim(self.m, self.k, self.s)
        while built < _SEARCHED_BLOCKS and len(blocks) > bound:
            taken = min(len(blocks), 2 + self._below(5))
            built += taken
            around = set(blocks[self._below(len(blocks))])
            near = sorted(blocks, key=lambda block: -len(around.intersection(block)))
            for block in near[:taken]:
                self._count(block, -1)
            changed = self._thinned(self._covered(near[taken:]))
            if len(changed) <= len(blocks):
                blocks = changed
                continue
            for block in set(changed) - set(blocks):
                self._count(block, -1)
            for block in set(blocks) - set(changed):
                self._count(block, 1)
        return blocks

    def _covered(self, blocks: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The sets, and greedily more until all is covered."""
        blocks = list(blocks)
        missing = np.flatnonzero(self.counts[self.listed] == 0).tolist()
        while missing:
            place = self._below(len(missing))
            missing[place], missing[-1] = missing[-1], missing[place]
            ends = missing.pop()
            if not self.counts[self.listed[ends]]:
                block = self._grown(self.ends[ends].tolist())
                self._count(block, 1)
                blocks.append(block)
        return blocks

    def _grown(self, block: list[int]) -> tuple[int, ...]:
        """A set grown from k attributes, by the one that covers most at each step."""
        table = self.counts.reshape((self.m,) * self.k)
        while len(block) < self.s:
            rows = tuple(np.array(list(combinations(block, self.k - 1))).T)
            gains = (table[rows] == 0).sum(axis=0)
            gains[block] = -1
            best = np.flatnonzero(gains == gains.max())
            block.append(int(best[self._below(len(best))]))
        return tuple(sorted(block))

    def _thinned(self, blocks: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The sets without those that the others make needless."""
        kept = []
        for block in blocks:
            if self.counts[self._places(block)].min() > 1:
                self._count(block, -1)
            else:
                kept.append(block)
        return kept

    def _places(self, block: tuple[int, ...]) -> NDArray[np.int64]:
        places: NDArray[np.int64] = np.array(block)[self.tuples] @ self.powers
        return places

    def _count(self, block: tuple[int, ...], by: int) -> None:
        self.counts[self._places(block)] += by

    def _below(self, n: int) -> int:
        return int(self.random.random() * n)


def geometry_of(m: int, k: int, s: int) -> Geometry | None:
    """The geometry of exactly m points whose flats cover k points and have at most s; the one with the largest flats.

    >>> geometry_of(16, 3, 4), geometry_of(16, 2, 4), geometry_of(15, 2, 3), geometry_of(14, 2, 3)
    (('affine', 2, 4, 2), ('affine', 4, 2, 1), ('projective', 2, 3, 1), None)
    """
    d, best, largest = k - 1, None, 0
    for q in _MODULI:
        for kind in ("affine", "projective"):
            size = _points(kind, q, d)
            if largest < size <= s:
                for r in range(d + 1, m.bit_length() + 1):
                    if _points(kind, q, r) == m:
                        best, largest = (kind, q, r, d), size
    return best


def _points(kind: str, q: int, r: int) -> int:
    """How many points a space or a flat of dimension r has."""
    return int(q**r if kind == "affine" else (q ** (r + 1) - 1) // (q - 1))


def flat_count(kind: str, q: int, r: int, d: int) -> int:
    """How many flats of dimension d there are.

    >>> flat_count("affine", 2, 3, 2), flat_count("affine", 4, 2, 1), flat_count("projective", 2, 3, 1)
    (14, 20, 35)
    """
    of, n = (r, d) if kind == "affine" else (r + 1, d + 1)
    subspaces = math.prod(q ** (of - i) - 1 for i in range(n)) // math.prod(q ** (i + 1) - 1 for i in range(n))
    return int(subspaces * q ** (r - d)) if kind == "affine" else int(subspaces)


@lru_cache(maxsize=32)
def flats(kind: str, q: int, r: int, d: int) -> tuple[tuple[int, ...], ...]:
    """All flats of dimension d, as sets of the numbers of their points.

    >>> flats("affine", 2, 2, 1)
    ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    """
    add, times = _field(q)
    inverse = np.array([0, *(int(np.flatnonzero(times[x] == 1)[0]) for x in range(1, q))])
    points, factors = _leading_ones(q, r + 1), _leading_ones(q, d + 1)
    if kind == "affine":
        points = points[points[:, 0] == 1]
    number = {tuple(point): i for i, point in enumerate(points.tolist())}
    found: set[tuple[int, ...]] = set()
    covered: set[tuple[int, ...]] = set()
    for some in combinations(range(len(points)), d + 1):
        if some in covered:
            continue
        total = np.zeros((len(factors), r + 1), np.int64)
        for i, point in enumerate(some):
            total = add[total, times[factors[:, i, None], points[point][None, :]]]
        lead = total[np.arange(len(total)), (total != 0).argmax(axis=1)]
        total = times[total, inverse[lead][:, None]]
        flat = tuple(sorted({number[point] for point in map(tuple, total.tolist()) if point in number}))
        if len(flat) == _points(kind, q, d):  # else these points lie in a smaller flat, and others span this one
            found.add(flat)
            covered.update(combinations(flat, d + 1))
    return tuple(sorted(found))


def _leading_ones(q: int, length: int) -> NDArray[np.int64]:
    """One vector on each line through 0: the one whose first coordinate that is not 0 is 1."""
    vectors = [one for one in product(range(q), repeat=length) if next((x for x in one if x), 0) == 1]
    return np.array(vectors, dtype=np.int64)


@cache
def _field(q: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tables of sums and products of the field of q values; values are polynomials, numbered in base p."""
    p, modulus = _MODULI[q]
    degree = len(modulus) - 1
    digits = [tuple(value // p**i % p for i in range(degree)) for value in range(q)]
    number = {polynomial: value for value, polynomial in enumerate(digits)}
    add = [[number[tuple((x + y) % p for x, y in zip(a, b, strict=True))] for b in digits] for a in digits]

    def reduced(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        total = [0] * (2 * degree - 1)
        for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
            total[i + j] += x * y
        for top in range(2 * degree - 2, degree - 1, -1):
            for i, c in enumerate(modulus):
                total[top - degree + i] -= total[top] * c if i < degree else 0
        return number[tuple(x % p for x in total[:degree])]

    return np.array(add), np.array([[reduced(a, b) for b in digits] for a in digits])
