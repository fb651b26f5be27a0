"""A device that counts with plain numpy, written without a look at any kernel: the twin that seams are tested with."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from veil.kernels.parallel import HashedReports, Ints, Pieces, Words

_LOW = np.uint64(0xFFFFFFFF)


def _times(x: Words, factor: int) -> Words:
    return (x * np.uint64(factor)) & _LOW


def paired(seeds: Words, spread: Words) -> Words:
    """The 32 hash bits of value i under seed i, by wide arithmetic; with shapes as numpy broadcasts them."""
    h = (seeds ^ spread) & _LOW
    h = _times(h ^ (h >> np.uint64(16)), 0x7FEB352D)
    h = h ^ ((seeds ^ spread) >> np.uint64(32))
    return _times(h ^ (h >> np.uint64(15)), 0x846CA68B)


def hashes(seeds: Words, spread: Words) -> Words:
    """The same of every value under every seed."""
    return paired(seeds[:, None], spread)


def _mixed(value: Words) -> Words:
    z = value + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _digits(numbers: Words, prime: int, digits: int) -> Ints:
    return np.stack([numbers // np.uint64(prime**k) % np.uint64(prime) for k in range(digits)], axis=1).astype(np.int64)


class NumpyDevice:
    """Remembers what it was asked for and in which threads."""

    name = "numpy"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.threads: set[str] = set()

    def _note(self, what: str) -> None:
        self.asked.append(what)
        self.threads.add(threading.current_thread().name)

    def _incidence(self, given: HashedReports) -> NDArray[np.bool_]:
        buckets = (hashes(given.seeds, given.spread) * np.uint64(given.buckets)) >> np.uint64(32)
        return np.asarray(buckets == given.reported.astype(np.uint64)[:, None])

    def count_hashed(self, given: HashedReports, weights: Ints | None) -> Ints:
        self._note("count_hashed")
        own = np.ones(len(given.seeds), np.int64) if weights is None else weights
        return np.asarray((self._incidence(given) * own[:, None]).sum(axis=0, dtype=np.int64))

    def joint_hashed(self, first: HashedReports, second: HashedReports) -> Ints:
        self._note("joint_hashed")
        a, b = self._incidence(first).astype(np.int64), self._incidence(second).astype(np.int64)
        sides = [(a if s else 1 - a).T @ (b if t else 1 - b) for s in (0, 1) for t in (0, 1)]
        return np.stack(sides, axis=-1).reshape(a.shape[1], b.shape[1], 2, 2)

    def decodes(self, prime: int, cells: int) -> bool:
        return prime < 1000

    def cosets(self, pieces: Pieces, prefixes: Words, prime: int, digits: int, kept: int) -> Iterator[Ints]:
        self._note("cosets")
        suffixes = _digits(np.arange(kept, dtype=np.uint64), prime, digits)
        for prefix in prefixes:
            counts = np.zeros(kept, np.int64)
            for seeds, reported in pieces():
                own = (hashes(seeds, np.array([prefix]))[:, 0] * np.uint64(prime)) >> np.uint64(32)
                coefficients = _mixed(seeds ^ np.uint64(0xD1B54A32D192ED03)) % np.uint64(prime**digits)
                linear = _digits(coefficients, prime, digits) @ suffixes.T
                counts += ((own.astype(np.int64)[:, None] + linear) % prime == reported[:, None]).sum(axis=0)
            yield counts
