"""LinearHashing: local hashing by a linear map over a prime field, decoded by Fourier transforms.

This is PGR in affine coordinates (Feldman, Nelson, Nguyen and Talwar, ICML 2022): a value is (1, digits), and a report
(bucket, coefficients) supports it if their inner product is 0. The coefficients come from a seed, so that values of any
length have reports of nine bytes. Only a suffix of the value is linear: the part that one transform decodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Bits, DomainLike
from veil.entropy import Words
from veil.errors import ParameterError, VeilError
from veil.kernels.parallel import HashedReports, current_device
from veil.mechanisms.oracles.local_hashing import LocalHashing
from veil.mechanisms.oracles.pgr import is_prime
from veil.reports.layout import Columns
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int
from veil.view import Segment

_MOST_CELLS = 1 << 28  # of one transform
_AT_ONCE = 1 << 24  # complex cells that are filled in one pass over the reports
_PLACES = 1 << 23
_USUAL_SUFFIX = 16


@dataclass(frozen=True, init=False)
class LinearHashing(LocalHashing):
    """Hash the value into q buckets, q prime, by a seed of one's own, and report (seed, bucket): OLH with another hash.

    Guarantee: for every seed the bucket is GRR over the hash range, p / q <= e^eps exactly. The hash decides accuracy
    and the cost of decoding only.

    The last `suffix` bits of a value are hashed linearly, the bits before as in OLH. So the support of all 2^suffix
    values behind one prefix comes from one transform (`cosets`), whatever the number of reports.

    >>> oracle = LinearHashing(epsilon=1.0, domain=1024)
    >>> oracle.hash_range, oracle.suffix, oracle.layout.size
    (3, 10, 9)
    """

    hash_range: int
    suffix: int
    name: ClassVar[str] = "LinearHashing"
    independent: ClassVar[bool] = False  # values with one prefix are hashed linearly: two by two only

    def __init__(
        self, epsilon: float, domain: DomainLike, hash_range: int | None = None, suffix: int | None = None
    ) -> None:
        super().__init__(epsilon, domain)
        prime = _best_prime(self.epsilon) if hash_range is None else hash_range
        if not is_int(prime) or not 2 <= prime < 2**16 or not is_prime(int(prime)):
            raise ParameterError(
                "a linear hash has a range that is a prime below 2^16 (a large epsilon needs it given)"
            )
        chosen = min(_USUAL_SUFFIX, self._bits) if suffix is None else suffix
        if not is_int(chosen) or not 1 <= chosen <= min(self._bits, 32):
            raise ParameterError("a suffix has between 1 and 32 bits, and no more than a value")
        object.__setattr__(self, "hash_range", int(prime))
        object.__setattr__(self, "suffix", int(chosen))
        if self.cells > _MOST_CELLS:
            raise ParameterError("this suffix is too long for one transform: take fewer bits")

    def parameters(self) -> Json:
        return {"hash_range": self.hash_range, "suffix": self.suffix}

    @property
    def buckets(self) -> int:
        return self.hash_range

    @property
    def _bits(self) -> int:
        """Bits of a code."""
        return max(1, (self.domain.size - 1).bit_length())

    @cached_property
    def digits(self) -> int:
        """Digits to the base q that hold the suffix."""
        return _digits(self.suffix, self.hash_range)

    @property
    def cells(self) -> int:
        """q^digits: the size of one transform."""
        return int(self.hash_range**self.digits)

    def split(self, codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint64]]:
        """Prefixes and suffixes of codes; no prefix is the number 0."""
        if not self.domain.code_bytes:
            wide = codes.astype(np.uint64, copy=False)
            prefixes = wide >> np.uint64(self.suffix)
            return prefixes, wide & np.uint64((1 << self.suffix) - 1)
        whole, cut = Bits(self._bits), self._bits - self.suffix
        if whole.code_bytes == 0:  # text of at most eight bytes: rows all the same
            padded = np.zeros((len(codes), 8), dtype=np.uint8)
            padded[:, 8 - codes.shape[1] :] = codes
            codes = padded.view(">u8")[:, 0].astype(np.uint64)
        prefixes = Segment(whole, 0, cut).apply(codes, Words(b"")) if cut else np.zeros(len(codes), dtype=np.uint64)
        return prefixes, Segment(whole, cut, whole.bits).apply(codes, Words(b""))

    def _spread(self, codes: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        prefixes, suffixes = self.split(codes)
        return self.spread(prefixes), np.ascontiguousarray(suffixes, dtype=np.uint64)

    def hash(self, seeds: NDArray[np.uint64], codes: NDArray[Any]) -> NDArray[np.uint64]:
        from veil.kernels.hashing import linear_buckets

        return linear_buckets(seeds, *self._spread(codes), self.hash_range, self.cells)

    # -- at the collector ------------------------------------------------------------------------------------------

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        from veil.kernels.hashing import count_linear
        from veil.kernels.parallel import sum_over_threads

        if candidates is None and weights is None:
            prefixes = np.arange(-(-self.domain.size >> self.suffix), dtype=np.uint64)
            return np.concatenate(list(self.cosets(lambda: [columns], prefixes)))[: self.domain.size]
        codes = np.arange(self.domain.size, dtype=np.uint64) if candidates is None else candidates
        given = np.zeros(0, dtype=np.int64)
        shared = (*self._spread(codes), self.hash_range, self.cells)
        seeds, buckets = self.expand(columns["seed"]), columns["bucket"].astype(np.uint64)
        if weights is None:
            return sum_over_threads(lambda s, b: count_linear(s, b, given, *shared), (seeds, buckets), work=len(codes))
        return sum_over_threads(count_linear, (seeds, buckets, weights), *shared, work=len(codes))

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        from veil.kernels.hashing import linear_matrix

        seeds, buckets = self.expand(columns["seed"]), columns["bucket"].astype(np.uint64)
        return linear_matrix(seeds, buckets, *self._spread(candidates), self.hash_range, self.cells)

    def hashed(self, columns: Columns, candidates: NDArray[Any]) -> HashedReports | None:
        return None  # another hash

    def cosets(self, answers: Callable[[], Iterable[Columns]], prefixes: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
        """Runs at the collector: for each prefix, the support of all 2^suffix values behind it, in order.

        With Y(u) the sum over reports and s = 1 .. q - 1 of w^(s (h(prefix) - bucket)) where u is s times the report's
        coefficients, the support of digits j is (n + FFT(Y)(j)) / q. `answers` goes through the reports anew each time.
        """
        device = current_device()
        if device is None or not device.decodes(self.hash_range, self.cells):
            return self._transforms(answers, prefixes)

        def pieces() -> Iterator[tuple[NDArray[np.uint64], NDArray[Any]]]:
            return ((self.expand(columns["seed"]), columns["bucket"]) for columns in answers())

        return device.cosets(pieces, self.spread(prefixes), self.hash_range, self.digits, 1 << self.suffix)

    def _transforms(
        self, answers: Callable[[], Iterable[Columns]], prefixes: NDArray[Any]
    ) -> Iterator[NDArray[np.int64]]:
        """The same on this machine's cores."""
        at_once = max(1, _AT_ONCE // self.spectrum_size)
        for first in range(0, len(prefixes), at_once):
            spectra, people = self.spectra(answers(), prefixes[first : first + at_once])
            for spectrum in spectra:
                yield self.transformed(spectrum, people)

    @property
    def spectrum_size(self) -> int:
        """How many complex numbers tell the support of everything behind one prefix."""
        return self.cells // self.hash_range * (self.hash_range // 2 + 1)

    def spectra(self, answers: Iterable[Columns], prefixes: NDArray[Any]) -> tuple[NDArray[np.complex128], int]:
        """Runs at the collector: one spectrum per prefix, and how many reports are in them. Spectra add up."""
        from veil.kernels.hashing import add_coset, coefficients, multiples

        q, z = self.hash_range, self.spread(prefixes)
        powers = np.array([q**k for k in range(self.digits - 1, -1, -1)], dtype=np.int64)
        angles = -2 * np.pi * np.arange(q) / q
        cosines, sines = np.cos(angles), np.sin(angles)
        found, people = np.zeros((len(z), self.spectrum_size), dtype=np.complex128), 0
        for columns in _pieces(answers, q):
            seeds, buckets = self.expand(columns["seed"]), columns["bucket"].astype(np.uint64)
            places = multiples(coefficients(seeds, self.cells), powers, q)
            for spectrum, mixed in zip(found, z, strict=True):
                add_coset(seeds, buckets, places, mixed, cosines, sines, spectrum)
            people += len(seeds)
        return found, people

    def transformed(self, spectrum: NDArray[np.complex128], people: int) -> NDArray[np.int64]:
        """Runs at the collector: the support of all 2^suffix values behind a prefix, from the spectrum of all."""
        from scipy.fft import hfftn

        from veil.kernels.parallel import thread_count

        q, shape = self.hash_range, (self.hash_range,) * self.digits
        waves = hfftn(spectrum.reshape(*shape[:-1], -1), s=shape, overwrite_x=True, workers=thread_count())
        counts = (waves.ravel()[: 1 << self.suffix] + people) / q
        rounded = np.rint(counts)
        if float(np.abs(counts - rounded).max()) >= 0.25:
            raise VeilError("the transform lost its precision: its counts are not within a quarter of integers")
        return np.asarray(rounded.astype(np.int64))


def _pieces(answers: Iterable[Columns], q: int) -> Iterator[Columns]:
    """The same reports, fewer at a time the larger q is: each has a place for every multiple of its coefficients."""
    step = max(1, _PLACES // q)
    for columns in answers:
        for first in range(0, len(columns["seed"]), step):
            yield {name: column[first : first + step] for name, column in columns.items()}


def aligned_suffix(epsilon: float, bits: int) -> int:
    """Of the last `bits` bits, how many to decode by one transform: q^digits is to exceed 2^suffix by little.

    >>> aligned_suffix(2.0, 20), 7**7 / 2**19 < 1.6, 7**8 / 2**20 > 5
    (19, True, True)
    """
    prime = _best_prime(epsilon)
    return min(range(bits, max(bits - 4, 0), -1), key=lambda s: prime ** _digits(s, prime) << bits - s)


def _digits(bits: int, prime: int) -> int:
    digits, cells = 1, prime
    while cells < 1 << bits:
        digits, cells = digits + 1, cells * prime
    return digits


def _best_prime(epsilon: float) -> int:
    """The prime with the least variance, (e^eps + q - 1)^2 / (q - 1): next to e^eps + 1."""
    middle = min(math.exp(epsilon) + 1, 2.0**16)
    low = next(q for q in range(max(2, math.floor(middle)), 1, -1) if is_prime(q))
    high = next(q for q in range(max(3, math.ceil(middle)), 2**17) if is_prime(q))
    return min((low, high), key=lambda q: (math.exp(epsilon) + q - 1) ** 2 / (q - 1))
