"""Flats of finite geometries: lines, planes and so on over a field of q values, as sets of points.

Through any k points in general position goes one flat of dimension k-1, so all of these flats are a covering design,
and often the smallest that there is. Over 2 values the planes are the quadruples {a, b, c, a xor b xor c}.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

__all__ = ["flat_count", "flats", "geometry_of"]

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

Geometry = tuple[str, int, int, int]
"""Affine or projective, q, the dimension of the space, and the dimension of the flats."""


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
