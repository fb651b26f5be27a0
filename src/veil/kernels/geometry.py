"""Points of projective space over a prime field: numbering, sampling, orthogonality, and folding for the transform.

A point is a line through the origin of F_q^t, written with its first non-zero coordinate 1. The points whose leading
one stands at coordinate 0 come first, in the order of their other coordinates read as a number to the base q, then
those with it at coordinate 1, and so on (docs/mechanisms/pgr.md). `powers` is always q^(t-1), ..., q, 1.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled
from veil.kernels.hashing import splitmix64

I64 = np.int64
U64 = np.uint64
F64 = np.float64
_ROUNDS = 4
_BLOCK = 2048  # candidates whose dot products are added up at once: they stay in the first-level cache


@compiled()
def scramble(values: NDArray[U64], side: int) -> NDArray[U64]:
    """The number of each value's point: four Feistel rounds on the square of side floor(sqrt(K)), the rest in place.

    Neighbouring values would lie on common lines otherwise, and their totals scatter more than totals say.
    """
    out = np.empty(len(values), U64)
    edge = U64(side)
    for i in range(len(values)):
        value = U64(values[i])
        if value < edge * edge:
            left, right = value // edge, value % edge
            for turn in range(_ROUNDS):
                left, right = right, (left + splitmix64(U64(4) * right + U64(turn)) % edge) % edge
            value = left * edge + right
        out[i] = value
    return out


@numba.njit(inline="always")
def _unrank(number: U64, q: U64, powers: NDArray[U64], point: NDArray[U64]) -> int:
    """Write the coordinates of a numbered point; returns where its leading one stands."""
    lead = 0
    while number >= powers[lead]:
        number -= powers[lead]
        point[lead] = U64(0)
        lead += 1
    point[lead] = U64(1)
    for k in range(len(powers) - 1, lead, -1):
        rest = number // q
        point[k] = number - rest * q
        number = rest
    return lead


@numba.njit(inline="always")
def _inverse(value: U64, q: U64) -> U64:
    """1 / value modulo q, by Euclid."""
    low, high, x, y = I64(value), I64(q), I64(1), I64(0)
    while low > 1:
        quotient = high // low
        low, high = high - quotient * low, low
        x, y = y - quotient * x, x
    return U64(x + I64(q)) if x < 0 else U64(x)


@numba.njit(inline="always")
def _rank(vector: NDArray[U64], q: U64, powers: NDArray[U64]) -> U64:
    """The number of the point that a vector other than 0 lies on."""
    lead, number = 0, U64(0)
    while vector[lead] == U64(0):
        number += powers[lead]
        lead += 1
    if vector[lead] == U64(1):
        for k in range(lead + 1, len(powers)):
            number += vector[k] * powers[k]
        return number
    scale = _inverse(vector[lead], q)
    for k in range(lead + 1, len(powers)):
        number += vector[k] * scale % q * powers[k]
    return number


@compiled()
def respond(
    held: NDArray[U64], orthogonal: NDArray[np.bool_], draws: NDArray[U64], prime: int, powers: NDArray[U64]
) -> NDArray[U64]:
    """The point to report, from decided draws.

    An orthogonal point is the draw-th point of the hyperplane, written in all coordinates but the leading one of the
    held point, which is then solved for. Of a point that is not orthogonal, exactly one vector has inner product 1 with
    the held one: the draw gives its other coordinates as a number to the base q.
    """
    q, t = U64(prime), len(powers)
    out = np.empty(len(held), U64)
    own, free, sent = np.empty(t, U64), np.empty(t - 1, U64), np.empty(t, U64)
    for i in range(len(held)):
        pivot = _unrank(held[i], q, powers, own)
        product = U64(1)
        if orthogonal[i]:
            _unrank(draws[i], q, powers[1:], free)
            product = U64(0)
        else:
            number = draws[i]
            for k in range(t - 2, -1, -1):
                rest = number // q
                free[k] = number - rest * q
                number = rest
        for k in range(pivot):
            sent[k] = free[k]
        total = U64(0)  # at most t q^2, which K < 2^53 and q < 2^31 keep below 2^64
        for k in range(pivot + 1, t):
            sent[k] = free[k - 1]
            total += own[k] * free[k - 1]
        solved = product + q - total % q
        sent[pivot] = solved - q if solved >= q else solved
        out[i] = _rank(sent, q, powers)
    return out


@compiled()
def coordinates(points: NDArray[U64], prime: int, powers: NDArray[U64], out: NDArray[np.integer]) -> None:
    """out[k, i] is coordinate k of point i; `out` may be of 32 bits where inner products fit."""
    point = np.empty(len(powers), U64)
    for i in range(len(points)):
        _unrank(points[i], U64(prime), powers, point)
        for k in range(len(powers)):
            out[k, i] = point[k]


@numba.njit(inline="always")
def _products(
    x: NDArray[np.integer], y: NDArray[np.integer], i: int, first: int, last: int, sums: NDArray[np.integer]
) -> None:
    """Inner products of the i-th x with the y first .. last - 1, not reduced."""
    for j in range(last - first):
        sums[j] = x[0, i] * y[0, first + j]
    for k in range(1, len(x)):
        factor = x[k, i]
        if factor:
            row = y[k, first:last]
            for j in range(len(row)):
                sums[j] += factor * row[j]


# In all three: q divides a sum if and only if sum * inverse, cut to the width of the type, is at most `limit`
# (Granlund and Montgomery); the caller knows the two numbers for its type.


@compiled()
def count_orthogonal(
    x: NDArray[np.integer], y: NDArray[np.integer], inverse: NDArray[np.integer], limit: NDArray[np.integer]
) -> NDArray[I64]:
    """How many of the points x (columns of coordinates) are orthogonal to each of the points y."""
    counts = np.zeros(y.shape[1], I64)
    sums = np.empty(_BLOCK, x.dtype)
    for first in range(0, y.shape[1], _BLOCK):
        last = min(first + _BLOCK, y.shape[1])
        here = counts[first:last]
        for i in range(x.shape[1]):
            _products(x, y, i, first, last, sums)
            for j in range(last - first):
                sums[j] *= inverse[0]
                here[j] += sums[j] <= limit[0]
    return counts


@compiled()
def count_orthogonal_weighted(
    x: NDArray[np.integer],
    weights: NDArray[I64],
    y: NDArray[np.integer],
    inverse: NDArray[np.integer],
    limit: NDArray[np.integer],
) -> NDArray[I64]:
    """The same with an integer weight for each x."""
    counts = np.zeros(y.shape[1], I64)
    sums = np.empty(_BLOCK, x.dtype)
    for first in range(0, y.shape[1], _BLOCK):
        last = min(first + _BLOCK, y.shape[1])
        here = counts[first:last]
        for i in range(x.shape[1]):
            _products(x, y, i, first, last, sums)
            for j in range(last - first):
                sums[j] *= inverse[0]
                here[j] += weights[i] * I64(sums[j] <= limit[0])
    return counts


@compiled()
def orthogonal_matrix(
    x: NDArray[np.integer], y: NDArray[np.integer], inverse: NDArray[np.integer], limit: NDArray[np.integer]
) -> NDArray[np.uint8]:
    """Whether x i is orthogonal to y j, as 0 and 1."""
    out = np.empty((x.shape[1], y.shape[1]), np.uint8)
    sums = np.empty(y.shape[1], x.dtype)
    for i in range(x.shape[1]):
        _products(x, y, i, 0, y.shape[1], sums)
        for j in range(y.shape[1]):
            sums[j] *= inverse[0]
            out[i, j] = sums[j] <= limit[0]
    return out


@compiled()
def perpendicular(prime: int) -> NDArray[I64]:
    """In the plane (t = 2): the number of the one point that is orthogonal to each."""
    q = U64(prime)
    out = np.empty(prime + 1, I64)
    out[0], out[prime] = prime, 0  # (1, 0) and (0, 1)
    for w in range(1, prime):
        out[w] = prime - I64(_inverse(U64(w), q))  # (1, w) and (1, -1/w)
    return out


@compiled(fastmath={"reassoc", "contract", "nsz"})
def fold(
    counts: NDArray[I64],
    powers: NDArray[U64],
    times: NDArray[I64],
    cosines: NDArray[F64],
    sines: NDArray[F64],
) -> tuple[NDArray[np.complex128], NDArray[I64]]:
    """One step of the decode: what to transform for the points with a leading one, and the counts of the rest.

    With Y the counts put at all non-zero multiples of their points, the first result is B(y) = sum over a of
    w^a Y(a, y), w = e^(-2 pi i / q), for all y whose last coordinate is at most q / 2 (B is Hermitian): the transform's
    first axis, at frequency 1 alone. The second is the sum over a of Y(a, y), once for each point y.

    `times` is multiplication by a generator g of the field's units; cosines and sines hold the powers of w at
    g^0, g^-1, g^-2, ..., twice round, so that B on a line is a cyclic convolution over neighbouring numbers.
    """
    q, units = len(times), len(times) - 1
    rest_powers = powers[1:]
    size, narrow = I64(powers[0]), q // 2 + 1
    spectrum = np.empty(size // q * narrow, np.complex128)
    folded = np.empty(len(counts) - size, I64)
    spectrum[0] = -counts[0]  # y = 0: the powers of w but w^0 add up to -1
    y = np.empty(len(rest_powers), U64)
    multiple = np.empty(len(rest_powers), I64)
    place, lead = np.empty(units, I64), np.empty(units, F64)
    for point in range(len(folded)):
        _unrank(U64(point), U64(q), rest_powers, y)
        for k in range(len(y)):
            multiple[k] = I64(y[k])
        own = counts[size + point]
        total = own
        for j in range(units):  # g^j y
            number = I64(0)
            for k in range(len(y)):
                number += multiple[k] * I64(rest_powers[k])
                multiple[k] = times[multiple[k]]
            place[j] = number
            total += counts[number]
            lead[j] = counts[number]
        folded[point] = total
        for i in range(max(units // 2, 1)):
            real, imaginary = F64(own), 0.0
            for j in range(units):
                real += lead[j] * cosines[units - i + j]
                imaginary += lead[j] * sines[units - i + j]
            row, last = place[i] // q, place[i] % q
            if last < narrow:
                spectrum[row * narrow + last] = complex(real, imaginary)
            opposite = place[i + units // 2]  # g^(units/2) is -1
            row, last = opposite // q, opposite % q
            if last < narrow:
                spectrum[row * narrow + last] = complex(real, -imaginary)
    return spectrum, folded
