"""Is the local hash as good as a random function? Structured pairs of values, and totals over ranges.

Privacy never depends on the hash, accuracy does: where two values fall into the same bucket more often than chance, one
value's frequency leaks into the other's estimate; where three depend on each other, totals are noisier than they say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.entropy import SeededForExperiments
from veil.kernels.hashing import bucket_of, splitmix64_each
from veil.mechanisms import OLH

RANGES = (2, 3, 4, 5, 8, 16, 55, 149, 1000)
U64 = NDArray[np.uint64]
Hash = Callable[[U64, U64, int], U64]
"""Seeds, values, range -> buckets."""


def structured_pairs() -> list[tuple[int, int]]:
    """500 pairs of values that a weak hash confuses: neighbours, multiples, single bits, left-aligned text."""
    pairs = [(v, v + 1) for base in (0, 1000, 2**31 - 5, 2**32 - 5, 2**48) for v in range(base, base + 20)]
    pairs += [(v, v << k) for v in (1, 3, 77, 1023) for k in range(1, 33)]
    pairs += [(1 << i, 1 << j) for i in range(0, 64, 3) for j in range(i + 1, 64, 11)]
    words = ["a", "b", "ab", "ba", "tea", "the", "then", "thou", "veil", "evil", "live", "vile", "zzzzzzzz"]
    text = [int.from_bytes(word.encode().ljust(8, b"\0"), "big") for word in words]
    pairs += [(a, b) for i, a in enumerate(text) for b in text[i + 1 :]]
    pairs += [(v, v + 2**k) for v in (5, 123_456) for k in range(64)]
    different = {(a % 2**64, b % 2**64): None for a, b in pairs if a % 2**64 != b % 2**64}
    return list(different)[:500]


def shipped(seeds: U64, values: U64, buckets: int) -> U64:
    """The hash that OLH uses."""
    return bucket_of(seeds, splitmix64_each(values), buckets)


def one_word(seeds: U64, values: U64, buckets: int) -> U64:
    """The obvious one-word hash: multiply the seeded value, xorshift, take the high bits. A rival that must fail."""
    h = (values ^ seeds) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    return ((h >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)


def affine(seeds: U64, values: U64, buckets: int) -> U64:
    """A pairwise independent affine hash: fine for pairs, not for totals. A rival that must fail there."""
    a, b = seeds | np.uint64(1), splitmix64_each(seeds)
    return (((a * values + b) >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)


@dataclass(frozen=True)
class Leak:
    """The worst pair and range: what share of one value's frequency leaks into the other, and how many sigmas."""

    pair: tuple[int, int]
    buckets: int
    share: float
    sigmas: float


def worst_leak(hash_function: Hash, pairs: list[tuple[int, int]], seeds: int, seed: int = 0) -> Leak:
    """The largest deviation from chance over all pairs and ranges."""
    drawn = SeededForExperiments(seed).words(seeds)
    worst = Leak((0, 0), 0, 0.0, 0.0)
    for a, b in pairs:
        left, right = (np.full(seeds, value, dtype=np.uint64) for value in (a, b))
        for buckets in RANGES:
            chance = float(OLH(1.0, 2, hash_range=buckets).bucket_moment(2))
            same = float(np.mean(hash_function(drawn, left, buckets) == hash_function(drawn, right, buckets)))
            sigmas = (same - chance) / np.sqrt(chance * (1 - chance) / seeds)
            if abs(sigmas) > abs(worst.sigmas):
                worst = Leak((a, b), buckets, (same - chance) / (1 - chance), float(sigmas))
    return worst


def range_total_ratio(hash_function: Hash, buckets: int, width: int, seeds: int, seed: int = 0) -> float:
    """Variance of how many of `width` consecutive values share the bucket of one held value, over that of chance.

    Pairs alone would not show it: the held value makes every pair a triple.
    """
    drawn = SeededForExperiments(seed).words(seeds)
    held = hash_function(drawn, np.zeros(seeds, dtype=np.uint64), buckets)
    inside = np.zeros(seeds)
    for value in range(1, width + 1):
        inside += hash_function(drawn, np.full(seeds, value, dtype=np.uint64), buckets) == held
    chance = float(OLH(1.0, 2, hash_range=buckets).bucket_moment(2))
    return float(inside.var() / (width * chance * (1 - chance)))
