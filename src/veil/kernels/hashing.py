"""Hash functions: the local hash of OLH, and linear hashing over a prime field.

The local hash maps a 64-bit seed and a 64-bit value to one of g buckets: two 32-bit multiply-xorshift rounds over a
value that was spread by splitmix64 first. One round, or an affine map, is not enough: values then leak into each
other's estimates, or range totals are noisier than their intervals say (docs/decisions/0003-local-hash.md;
tests/stat/kernels/test_hashing.py compares it with simpler hashes).

For linear hashing a value is a prefix and a suffix. Its bucket under a seed is h(prefix) + <w, digits of the suffix>
modulo q, where h is the local hash and w are the base-q digits of `coefficients`, drawn from the seed. `powers` is
q^(t-1), ..., q, 1.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

U32 = np.uint32
U64 = np.uint64


@numba.njit(inline="always")
def hash32(z_low: U32, z_high: U32, s0: U32, s1: U32) -> U32:
    """32 hash bits of a spread value under a seed, both in halves."""
    # numba widens 32-bit arithmetic to 64 bits: every step is cut back, and LLVM then keeps 32-bit lanes.
    h = U32(z_low ^ s0)
    h = U32(h ^ U32(h >> U32(16)))
    h = U32(h * U32(0x7FEB352D))
    h = U32(h ^ U32(z_high ^ s1))
    h = U32(h ^ U32(h >> U32(15)))
    return U32(h * U32(0x846CA68B))


@numba.njit(inline="always")
def interval_start(bucket: U64, buckets: U64) -> U64:
    """The first hash of a bucket: bucket y is the interval [ceil(y 2^32 / g), ceil((y + 1) 2^32 / g))."""
    return ((bucket << U64(32)) + buckets - U64(1)) // buckets


@numba.njit(inline="always")
def splitmix64(value: U64) -> U64:
    """64 well-mixed bits, a bijection."""
    z = U64(value + U64(0x9E3779B97F4A7C15))
    z = U64((z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9))
    z = U64((z ^ (z >> U64(27))) * U64(0x94D049BB133111EB))
    return z ^ (z >> U64(31))


@compiled()
def splitmix64_each(values: NDArray[U64]) -> NDArray[U64]:
    """splitmix64 of each value."""
    out = np.empty(len(values), U64)
    for i in range(len(values)):
        out[i] = splitmix64(values[i])
    return out


@compiled()
def bucket_of(seeds: NDArray[U64], spread_values: NDArray[U64], buckets: int) -> NDArray[U64]:
    """The bucket of value i under seed i."""
    out = np.empty(len(seeds), U64)
    for i in range(len(seeds)):
        seed, z = seeds[i], spread_values[i]
        h = hash32(U32(z), U32(z >> U64(32)), U32(seed), U32(seed >> U64(32)))
        out[i] = (U64(h) * U64(buckets)) >> U64(32)
    return out


@compiled()
def support_matrix(
    seeds: NDArray[U64], reported: NDArray[U64], buckets: int, spread_candidates: NDArray[U64]
) -> NDArray[np.uint8]:
    """Whether report i supports candidate j, as 0 and 1."""
    out = np.empty((len(seeds), len(spread_candidates)), np.uint8)
    for i in range(len(seeds)):
        s0, s1 = U32(seeds[i]), U32(seeds[i] >> U64(32))
        for j in range(len(spread_candidates)):
            z = spread_candidates[j]
            h = hash32(U32(z), U32(z >> U64(32)), s0, s1)
            out[i, j] = ((U64(h) * U64(buckets)) >> U64(32)) == reported[i]
    return out


I64 = np.int64
F64 = np.float64
_OTHER = U64(0xD1B54A32D192ED03)  # what makes the coefficients' word another than any other made from the seed


@numba.njit(inline="always")
def _coefficients(seed: U64, cells: U64) -> U64:
    """The coefficients as one number below q^t."""
    return splitmix64(seed ^ _OTHER) % cells


@numba.njit(inline="always")
def _bucket(seed: U64, z: U64, q: U64) -> U64:
    h = hash32(U32(z), U32(z >> U64(32)), U32(seed), U32(seed >> U64(32)))
    return (U64(h) * q) >> U64(32)


@numba.njit(inline="always")
def _product(a: U64, b: U64, q: U64) -> U64:
    """The inner product of the digits of two numbers, modulo q."""
    total = U64(0)
    while a and b:
        rest_a, rest_b = a // q, b // q
        total += (a - rest_a * q) * (b - rest_b * q)
        a, b = rest_a, rest_b
    return total % q


@compiled()
def coefficients(seeds: NDArray[U64], cells: int) -> NDArray[U64]:
    """The coefficients of each seed, as numbers below q^t."""
    out = np.empty(len(seeds), U64)
    for i in range(len(seeds)):
        out[i] = _coefficients(seeds[i], U64(cells))
    return out


@compiled()
def linear_buckets(
    seeds: NDArray[U64], spread_prefixes: NDArray[U64], suffixes: NDArray[U64], prime: int, cells: int
) -> NDArray[U64]:
    """The bucket of value i under seed i."""
    out, q = np.empty(len(seeds), U64), U64(prime)
    for i in range(len(seeds)):
        linear = _product(_coefficients(seeds[i], U64(cells)), suffixes[i], q)
        out[i] = (_bucket(seeds[i], spread_prefixes[i], q) + linear) % q
    return out


@compiled()
def linear_matrix(
    seeds: NDArray[U64],
    reported: NDArray[U64],
    spread_prefixes: NDArray[U64],
    suffixes: NDArray[U64],
    prime: int,
    cells: int,
) -> NDArray[np.uint8]:
    """Whether report i supports candidate j, as 0 and 1."""
    out, q = np.empty((len(seeds), len(suffixes)), np.uint8), U64(prime)
    for i in range(len(seeds)):
        w = _coefficients(seeds[i], U64(cells))
        for j in range(len(suffixes)):
            own = (_bucket(seeds[i], spread_prefixes[j], q) + _product(w, suffixes[j], q)) % q
            out[i, j] = own == U64(reported[i])
    return out


@compiled()
def count_linear(
    seeds: NDArray[U64],
    reported: NDArray[U64],
    weights: NDArray[I64],
    spread_prefixes: NDArray[U64],
    suffixes: NDArray[U64],
    prime: int,
    cells: int,
) -> NDArray[I64]:
    """The weight of the reports that support each candidate; no weights stand for ones."""
    counts, q = np.zeros(len(suffixes), I64), U64(prime)
    for i in range(len(seeds)):
        w = _coefficients(seeds[i], U64(cells))
        weight = weights[i] if len(weights) else I64(1)
        for j in range(len(suffixes)):
            own = (_bucket(seeds[i], spread_prefixes[j], q) + _product(w, suffixes[j], q)) % q
            counts[j] += weight * I64(own == U64(reported[i]))
    return counts


@compiled()
def multiples(numbers: NDArray[U64], powers: NDArray[I64], prime: int) -> NDArray[np.int32]:
    """out[i, s - 1] is where s times the digits of number i stand in the half spectrum, -1 in the other half.

    The half spectrum has those whose last digit is at most q / 2: what is transformed is Hermitian.
    """
    t, narrow = len(powers), prime // 2 + 1
    out = np.empty((len(numbers), prime - 1), np.int32)
    digits = np.empty(t, I64)
    for i in range(len(numbers)):
        rest = I64(numbers[i])
        for k in range(t):
            digits[k] = rest // powers[k]
            rest -= digits[k] * powers[k]
        for s in range(1, prime):
            last = s * digits[t - 1] % prime
            row = I64(0)
            for k in range(t - 1):
                row += s * digits[k] % prime * (powers[k] // prime)
            out[i, s - 1] = row * narrow + last if last < narrow else -1
    return out


@compiled()
def add_coset(
    seeds: NDArray[U64],
    reported: NDArray[U64],
    places: NDArray[np.int32],
    z: U64,
    cosines: NDArray[F64],
    sines: NDArray[F64],
    spectrum: NDArray[np.complex128],
) -> None:
    """Add reports to what is transformed for one prefix, whose spread value is z.

    Report i adds w^(s (h(prefix) - bucket)) at s times its coefficients, for s = 1 .. q - 1, w = e^(-2 pi i / q).
    """
    q = len(cosines)
    for i in range(len(seeds)):
        phase = (I64(_bucket(seeds[i], z, U64(q))) + q - I64(reported[i])) % q
        turn = I64(0)
        for s in range(q - 1):
            turn += phase
            if turn >= q:
                turn -= q
            place = places[i, s]
            if place >= 0:
                spectrum[place] += complex(cosines[turn], sines[turn])
