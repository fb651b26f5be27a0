"""Local hashing: hash the value into a few buckets under a random seed, then report the bucket by randomized response.

The family of OLH, BLH and RandomProjection (thesis 3.3.4 and 3.3.5): they differ in the number of buckets and of seeds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Source
from veil.kernels.parallel import Hashed, dispatch_count_hashed
from veil.mechanisms.oracle import PureOracle
from veil.mechanisms.shared import stay_or_move
from veil.privacy import WORD, Guarantee, inside_threshold
from veil.results.noise import SupportNoise
from veil.view import View
from veil.wire.layout import Columns, Field, Layout

__all__ = ["LocalHashing"]

_HASHES = 2**32


@dataclass(frozen=True, init=False)
class LocalHashing(PureOracle):
    """Reports of a seed and a bucket.

    Guarantee: the seed does not depend on the value, and for every seed the bucket is GRR over the hash range: p / q
    <= e^eps exactly. The hash decides accuracy only, never privacy, but for the delta behind a view with a `load`.
    """

    independent: ClassVar[bool] = True
    """Whether a random seed hashes values independently, as a random function does; a view's `load` relies on it."""

    @property
    @abstractmethod
    def buckets(self) -> int:
        """The hash range, g in the thesis."""

    @property
    def seeds(self) -> int:
        """How many seeds there are to draw from."""
        return WORD

    def expand(self, seeds: NDArray[Any]) -> NDArray[np.uint64]:
        """The 64 bits that a reported seed stands for."""
        return seeds.astype(np.uint64, copy=False)

    @cached_property
    def _stay(self) -> int:
        return inside_threshold(self.epsilon, 1, self.buckets - 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"stay": self._stay}

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self._stay, WORD)

    @cached_property
    def _move(self) -> Fraction:
        """The probability of any one bucket other than the value's."""
        return (1 - self.p) / (self.buckets - 1)

    def bucket_moment(self, power: int) -> Fraction:
        """The sum of the buckets' probabilities to a power: buckets are intervals of 2^32 hashes, equal up to one."""
        narrow, wider = divmod(_HASHES, self.buckets)
        shares = (self.buckets - wider) * narrow**power + wider * (narrow + 1) ** power
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

    def seen_through(self, view: View) -> Guarantee:
        return view.outer(self.guarantee, moment=self.bucket_moment if self.independent else None)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("seed", self.seeds), Field("bucket", self.buckets)))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        seeds = source.below(self.seeds, len(codes))
        buckets = stay_or_move(self.hash(seeds, codes), self._stay, self.buckets, source)
        seed, bucket = self.layout.fields
        return {"seed": seeds.astype(seed.dtype), "bucket": buckets.astype(bucket.dtype)}

    def hash(self, seeds: NDArray[np.uint64], codes: NDArray[Any]) -> NDArray[np.uint64]:
        """The bucket of code i under seed i."""
        from veil.kernels.hashing import bucket_of

        return bucket_of(self.expand(seeds), self.spread(codes), self.buckets)

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        codes = np.arange(self.domain.size, dtype=np.uint64) if candidates is None else candidates
        return dispatch_count_hashed(self._hashed(columns, codes), weights)

    def hashed(self, columns: Columns, candidates: NDArray[Any]) -> Hashed | None:
        return self._hashed(columns, candidates)

    def _hashed(self, columns: Columns, candidates: NDArray[Any]) -> Hashed:
        return Hashed(self.expand(columns["seed"]), columns["bucket"], self.buckets, self.spread(candidates))

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        from veil.kernels.hashing import support_matrix

        return support_matrix(self.expand(columns["seed"]), columns["bucket"], self.buckets, self.spread(candidates))
