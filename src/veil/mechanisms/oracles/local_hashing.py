"""Local hashing: OLH and BLH (thesis 3.3.4 and 3.3.5).

The value is hashed into a few buckets under a random seed, and the bucket is reported by randomized response. The
mechanisms of the family, with RandomProjection in `veil.mechanisms.rivals`, differ in the numbers of buckets and seeds.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError
from veil.kernels.parallel import HashedReports, dispatch_count_hashed
from veil.mechanisms.oracle import PureOracle, stay_or_move
from veil.privacy import WORD, Guarantee, inside_threshold
from veil.reports.layout import Columns, Field, Layout
from veil.results.laws import SupportNoise
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int
from veil.view import View

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

    def hashed(self, columns: Columns, candidates: NDArray[Any]) -> HashedReports | None:
        return self._hashed(columns, candidates)

    def _hashed(self, columns: Columns, candidates: NDArray[Any]) -> HashedReports:
        return HashedReports(self.expand(columns["seed"]), columns["bucket"], self.buckets, self.spread(candidates))

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        from veil.kernels.hashing import support_matrix

        return support_matrix(self.expand(columns["seed"]), columns["bucket"], self.buckets, self.spread(candidates))


@dataclass(frozen=True, init=False)
class OLH(LocalHashing):
    """Hash the value into about e^eps + 1 buckets with a seed of one's own, and report (seed, bucket).

    Guarantee: for every seed the bucket is GRR over the hash range, p / q <= e^eps exactly. Nine bytes whatever the
    domain, which may be too large to list; the hash range is e^eps + 1 rounded (thesis 3.3.5) unless given. With
    `seed_bytes=4` seeds have 32 bits, so that seed and bucket fit into one number of 64 (`veil.wire.ring`).

    >>> oracle = OLH(epsilon=1.0, domain=1024)
    >>> oracle.hash_range, oracle.layout.size, OLH(1.0, 1024, seed_bytes=4).layout.size
    (4, 9, 5)
    """

    hash_range: int
    seed_bytes: int
    name: ClassVar[str] = "OLH"

    def __init__(self, epsilon: float, domain: DomainLike, hash_range: int | None = None, seed_bytes: int = 8) -> None:
        super().__init__(epsilon, domain)
        chosen = max(2, round(math.exp(self.epsilon) + 1)) if hash_range is None else hash_range
        if not is_int(chosen) or not 2 <= chosen <= 2**31:
            raise ParameterError("a hash range is an integer between 2 and 2^31 (a large epsilon needs it given)")
        if not is_int(seed_bytes) or seed_bytes not in (4, 8):
            raise ParameterError("a seed has 8 bytes, or 4")
        object.__setattr__(self, "hash_range", int(chosen))
        object.__setattr__(self, "seed_bytes", int(seed_bytes))

    def parameters(self) -> Json:
        # a task from before seeds could be short keeps its id
        return {"hash_range": self.hash_range, **({} if self.seed_bytes == 8 else {"seed_bytes": self.seed_bytes})}

    @property
    def buckets(self) -> int:
        return self.hash_range

    @property
    def seeds(self) -> int:
        return 1 << 8 * self.seed_bytes

    def expand(self, seeds: NDArray[Any]) -> NDArray[np.uint64]:
        """A short seed r stands for splitmix64(splitmix64(r)), as in RandomProjection; a long one for itself."""
        if self.seed_bytes == 8:
            return super().expand(seeds)
        from veil.kernels.hashing import splitmix64_each

        return splitmix64_each(splitmix64_each(np.ascontiguousarray(seeds, dtype=np.uint64)))

    def seen_through(self, view: View) -> Guarantee:
        # 2^32 functions are too few to promise that sets share buckets as rarely as under a random one: no delta then
        return super().seen_through(view) if self.seed_bytes == 8 else view.outer(self.guarantee)

    @property
    def fake_support(self) -> Fraction:
        return self.bucket_moment(2)

    @property
    def fake_pair(self) -> Fraction:
        return self.bucket_moment(3)


@dataclass(frozen=True, init=False)
class BLH(LocalHashing):
    """Hash the value to one bit with a seed of one's own, and report (seed, bit).

    Guarantee: for every seed the bit is randomized response, p / (1 - p) <= e^eps exactly. One bit is all a report can
    tell, so a larger eps hardly helps: OLH is better beyond eps = 0.5. Thesis 3.3.4.

    >>> round(BLH(epsilon=1.0, domain=10).variance(1), 2)
    4.68
    """

    name: ClassVar[str] = "BLH"

    @property
    def buckets(self) -> int:
        return 2
