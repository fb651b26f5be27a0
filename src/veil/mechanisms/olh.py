"""OLH: optimized local hashing (thesis 3.3.5)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.canonical import Json
from veil.domain import DomainLike, is_int
from veil.entropy import Source
from veil.errors import ParameterError
from veil.mechanisms.oracle import PureOracle
from veil.noise import SupportNoise
from veil.privacy import WORD, Guarantee, check_epsilon, coin_threshold, exp_below
from veil.report import Columns, Field, Layout

__all__ = ["OLH"]

_HASHES = 2**32


@dataclass(frozen=True, init=False)
class OLH(PureOracle):
    """Hash the value into a few buckets with a seed of one's own, then report (seed, bucket) by randomized response.

    Guarantee: the seed does not depend on the value, and for every seed the bucket is GRR over the hash range: p / q
    <= e^eps exactly. The hash decides accuracy only, never privacy. Nine bytes whatever the domain, which may be too
    large to list; the hash range is e^eps + 1 rounded (thesis 3.3.5) unless given.

    >>> oracle = OLH(epsilon=1.0, domain=1024)
    >>> oracle.hash_range, oracle.layout.size
    (4, 9)
    """

    hash_range: int
    name: ClassVar[str] = "OLH"

    def __init__(self, epsilon: float, domain: DomainLike, hash_range: int | None = None) -> None:
        super().__init__(epsilon, domain)
        chosen = max(2, round(math.exp(check_epsilon(epsilon)) + 1)) if hash_range is None else hash_range
        if not is_int(chosen) or not 2 <= chosen <= 2**31:
            raise ParameterError("a hash range is an integer between 2 and 2^31 (a large epsilon needs it given)")
        object.__setattr__(self, "hash_range", int(chosen))

    def parameters(self) -> Json:
        return {"hash_range": self.hash_range}

    @cached_property
    def _stay(self) -> int:
        odds = exp_below(self.epsilon)
        return coin_threshold(odds / (odds + self.hash_range - 1))

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"stay": self._stay}

    @property
    def seeds(self) -> int:
        """How many seeds there are."""
        return WORD

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self._stay, WORD)

    @cached_property
    def _move(self) -> Fraction:
        """The probability of any one bucket other than the value's."""
        return (1 - self.p) / (self.hash_range - 1)

    def bucket_moment(self, power: int) -> Fraction:
        """The sum of the buckets' probabilities to a power: buckets are intervals of 2^32 hashes, equal up to one."""
        narrow, wider = divmod(_HASHES, self.hash_range)
        shares = (self.hash_range - wider) * narrow**power + wider * (narrow + 1) ** power
        return Fraction(shares, _HASHES**power)

    @cached_property
    def q(self) -> Fraction:
        # A report's bucket y comes up with w_y p + (1 - w_y) move; another value falls into it with w_y.
        return (self.p - self._move) * self.bucket_moment(2) + self._move

    @cached_property
    def noise(self) -> SupportNoise:
        # Two values: both fall into the reported bucket, their hashes independent of each other.
        hit = self.p * self.bucket_moment(2)
        miss = (self.p - self._move) * self.bucket_moment(3) + self._move * self.bucket_moment(2)
        return SupportNoise(self.p, self.q, hit, miss)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.p / self._move)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("seed", self.seeds), Field("bucket", self.hash_range)))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        seeds = source.below(self.seeds, len(codes))
        buckets = self.hash(seeds, codes)
        moved = np.flatnonzero(~source.coin(self._stay, len(codes)))
        others = source.below(self.hash_range - 1, len(moved))
        buckets[moved] = others + (others >= buckets[moved])  # skip the value's own bucket
        return {"seed": seeds, "bucket": buckets.astype(self.layout.fields[1].dtype)}

    def hash(self, seeds: NDArray[np.uint64], codes: NDArray[Any]) -> NDArray[np.uint64]:
        """The bucket of code i under seed i."""
        from veil.kernels.hashing import bucket_of

        return bucket_of(seeds, self.spread(codes), self.hash_range)

    def spread(self, codes: NDArray[Any]) -> NDArray[np.uint64]:
        """64 well-mixed bits a value: splitmix64 of an index, 8 bytes of a salted SHA-256 of longer values."""
        from veil.kernels.hashing import spread

        if not self.domain.code_bytes:
            return spread(np.ascontiguousarray(codes, dtype=np.uint64))
        digests = b"".join(hashlib.sha256(self._salt + row.tobytes()).digest()[:8] for row in codes)
        return np.frombuffer(digests, dtype="<u8").astype(np.uint64)

    @cached_property
    def _salt(self) -> bytes:
        return bytes.fromhex(self.digest)

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        from veil.kernels.counting import count_hashed, count_hashed_weighted, halves
        from veil.kernels.threads import add_up

        codes = np.arange(self.domain.size, dtype=np.uint64) if candidates is None else candidates
        count = count_hashed if weights is None else count_hashed_weighted
        columns_by_row = (columns["seed"], columns["bucket"], weights)
        return add_up(count, columns_by_row, self.hash_range, *halves(self.spread(codes)), work=len(codes))

    def supports(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        from veil.kernels.hashing import support_matrix

        return support_matrix(columns["seed"], columns["bucket"], self.hash_range, self.spread(candidates))
