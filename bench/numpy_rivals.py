"""Every oracle as one would write it in plain numpy: vectorised, 64-bit floats for coins, hence fast but not exact.

A rival has the parameters of the oracle that it is measured against, and estimates without bias as the oracle does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import GRR, PGR, SHE, THE, FrequencyOracle, HadamardResponse, PureOracle, Rappor, SubsetSelection
from veil.mechanisms.oracles.local_hashing import LocalHashing

Shares = NDArray[np.float64]
U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class Rival:
    """Values to reports; reports to frequencies (None for Rappor, whose regression is not timed)."""

    randomize: Callable[[NDArray[np.int64]], Any]
    collect: Callable[[Any], Shares | None]


def _unbiased(oracle: PureOracle, support: NDArray[Any], people: int) -> Shares:
    p, q = float(oracle.p), float(oracle.q)
    return (support / people - q) / (p - q)


def grr(oracle: GRR) -> Rival:
    """Keep the value or take one of the others."""
    random, d, p = np.random.default_rng(), oracle.domain.size, float(oracle.p)

    def randomize(values: NDArray[np.int64]) -> NDArray[np.int64]:
        others = random.integers(0, d - 1, len(values))
        others += others >= values
        return np.where(random.random(len(values)) < p, values, others)

    def collect(reports: NDArray[np.int64]) -> Shares:
        return _unbiased(oracle, np.bincount(reports, minlength=d), len(reports))

    return Rival(randomize, collect)


def unary(oracle: PureOracle) -> Rival:
    """OUE and SUE: a matrix of coins, packed."""
    random, d, p, q = np.random.default_rng(), oracle.domain.size, float(oracle.p), float(oracle.q)

    def randomize(values: NDArray[np.int64]) -> NDArray[np.uint8]:
        bits = random.random((len(values), d)) < q
        bits[np.arange(len(values)), values] = random.random(len(values)) < p
        return np.packbits(bits, axis=1, bitorder="little")

    return Rival(randomize, _packed_collect(oracle))


def the(oracle: THE) -> Rival:
    """Laplace noise on the one-hot vector, compared with theta, packed."""
    random, d = np.random.default_rng(), oracle.domain.size

    def randomize(values: NDArray[np.int64]) -> NDArray[np.uint8]:
        noisy = random.laplace(0.0, 2 / oracle.epsilon, (len(values), d))
        noisy[np.arange(len(values)), values] += 1
        return np.packbits(noisy > oracle.theta, axis=1, bitorder="little")

    return Rival(randomize, _packed_collect(oracle))


def she(oracle: SHE) -> Rival:
    """Laplace noise on the one-hot vector, as doubles: the low bits leak."""
    random, d = np.random.default_rng(), oracle.domain.size

    def randomize(values: NDArray[np.int64]) -> Shares:
        noisy = random.laplace(0.0, 2 / oracle.epsilon, (len(values), d))
        noisy[np.arange(len(values)), values] += 1
        return noisy

    return Rival(randomize, lambda reports: reports.mean(axis=0))


def subset(oracle: SubsetSelection) -> Rival:
    """The smallest of random keys, the held value's key forced, packed."""
    random, d, p, size = np.random.default_rng(), oracle.domain.size, float(oracle.p), oracle.subset_size

    def randomize(values: NDArray[np.int64]) -> NDArray[np.uint8]:
        keys = random.random((len(values), d))
        keys[np.arange(len(values)), values] = np.where(random.random(len(values)) < p, -1.0, 2.0)
        chosen = np.argpartition(keys, size, axis=1)[:, :size]
        bits = np.zeros((len(values), d), np.uint8)
        np.put_along_axis(bits, chosen, 1, axis=1)
        return np.packbits(bits, axis=1, bitorder="little")

    return Rival(randomize, _packed_collect(oracle))


def _packed_collect(oracle: PureOracle) -> Callable[[NDArray[np.uint8]], Shares]:
    def collect(reports: NDArray[np.uint8]) -> Shares:
        bits = np.unpackbits(reports, axis=1, count=oracle.domain.size, bitorder="little")
        return _unbiased(oracle, bits.sum(axis=0), len(reports))

    return collect


def hashing(oracle: LocalHashing) -> Rival:
    """OLH, BLH and RandomProjection: a 64-bit mix of seed and value, modulo the buckets; counted value by value."""
    random, d, p, g = np.random.default_rng(), oracle.domain.size, float(oracle.p), np.uint64(oracle.buckets)
    codes = np.arange(d, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    def bucket(seeds: U64, code: Any) -> U64:
        return _mixed(seeds + code) % g

    def expanded(seeds: U64) -> U64:
        return _mixed(seeds) if oracle.seeds < 2**64 else seeds

    def randomize(values: NDArray[np.int64]) -> tuple[U64, U64]:
        seeds = random.integers(0, oracle.seeds - 1, len(values), dtype=np.uint64, endpoint=True)
        own = bucket(expanded(seeds), codes[values])
        others = random.integers(0, int(g) - 1, len(values), dtype=np.uint64)
        others += others >= own
        return seeds, np.where(random.random(len(values)) < p, own, others)

    def collect(reports: tuple[U64, U64]) -> Shares:
        seeds, reported = expanded(reports[0]), reports[1]
        support = np.array([np.count_nonzero(bucket(seeds, code) == reported) for code in codes])
        return _unbiased(oracle, support, len(seeds))

    return Rival(randomize, collect)


def _mixed(h: U64) -> U64:
    """The end of splitmix64."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def hadamard(oracle: HadamardResponse) -> Rival:
    """A row, and the sign in it; decoded by a signed histogram and a transform of whole halves."""
    random, p = np.random.default_rng(), float(oracle.p)

    def randomize(values: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = random.integers(0, oracle.order, len(values))
        flipped = random.random(len(values)) >= p
        return 2 * rows + ((np.bitwise_count(rows & values) & 1) ^ flipped)

    def collect(reports: NDArray[np.int64]) -> Shares:
        sums = np.bincount(reports >> 1, weights=1 - 2 * (reports & 1), minlength=oracle.order)
        half = 1
        while half < oracle.order:
            pairs = sums.reshape(-1, 2, half)
            sums = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
            half *= 2
        return sums.ravel()[: oracle.domain.size] / len(reports) / (2 * p - 1)

    return Rival(randomize, collect)


def rappor(oracle: Rappor) -> Rival:
    """Filters from a table of positions, coins for every bit, packed; the sums of each cohort."""
    random, bits = np.random.default_rng(), oracle.bits
    positions = random.integers(0, bits, (oracle.cohorts, oracle.domain.size, oracle.hashes))

    def randomize(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        cohorts = random.integers(0, oracle.cohorts, len(values))
        filters = random.random((len(values), bits)) < float(oracle.f) / 2
        rows = np.arange(len(values))[:, None]
        bloom = np.zeros((len(values), bits), bool)
        bloom[rows, positions[cohorts, values]] = True
        return cohorts, np.packbits(filters ^ bloom, axis=1, bitorder="little")

    def collect(reports: tuple[NDArray[np.int64], NDArray[np.uint8]]) -> None:
        cohorts, packed = reports
        filters = np.unpackbits(packed, axis=1, count=bits, bitorder="little")
        for cohort in range(oracle.cohorts):
            filters[cohorts == cohort].sum(axis=0)

    return Rival(randomize, collect)


def pgr(oracle: PGR) -> Rival:
    """Tables of orthogonal and other points (fine for small domains); the decode by one FFT over all q^t vectors."""
    random, q, t = np.random.default_rng(), oracle.prime, oracle.dimension
    vectors = np.stack(np.unravel_index(np.arange(q**t), (q,) * t), axis=1)
    leading = np.take_along_axis(vectors, (vectors != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    points = vectors[leading == 1]
    orthogonal = points @ points.T % q == 0
    inside = np.nonzero(orthogonal)[1].reshape(len(points), -1)
    outside = np.nonzero(~orthogonal)[1].reshape(len(points), -1)
    multiples = [np.ravel_multi_index(tuple((a * points % q).T), (q,) * t) for a in range(1, q)]

    def randomize(values: NDArray[np.int64]) -> NDArray[np.int64]:
        near = inside[values, random.integers(0, inside.shape[1], len(values))]
        far = outside[values, random.integers(0, outside.shape[1], len(values))]
        return np.where(random.random(len(values)) < float(oracle.p), near, far)

    def collect(reports: NDArray[np.int64]) -> Shares:
        cells = np.zeros(q**t)
        for places in multiples:
            cells[places] = np.bincount(reports, minlength=len(points))
        waves = np.fft.fftn(cells.reshape((q,) * t)).real.ravel()
        support = (len(reports) + waves[multiples[0]]) / q
        return _unbiased(oracle, support[: oracle.domain.size], len(reports))

    return Rival(randomize, collect)


RIVALS: dict[str, Callable[[Any], Rival]] = {
    "GRR": grr,
    "OUE": unary,
    "SUE": unary,
    "THE": the,
    "SHE": she,
    "SubsetSelection": subset,
    "OLH": hashing,
    "BLH": hashing,
    "RandomProjection": hashing,
    "HadamardResponse": hadamard,
    "Rappor": rappor,
    "PGR": pgr,
}


def rival_of(oracle: FrequencyOracle) -> Rival | None:
    """The plain numpy version of an oracle, if somebody wrote one."""
    made = RIVALS.get(oracle.name)
    return None if made is None else made(oracle)
