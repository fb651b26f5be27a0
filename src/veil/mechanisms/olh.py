"""OLH: optimized local hashing (thesis 3.3.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.errors import ParameterError
from veil.mechanisms.hashing import LocalHashing
from veil.privacy import Guarantee
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int
from veil.view import View

__all__ = ["OLH"]


@dataclass(frozen=True, init=False)
class OLH(LocalHashing):
    """Hash the value into about e^eps + 1 buckets with a seed of one's own, and report (seed, bucket).

    Guarantee: for every seed the bucket is GRR over the hash range, p / q <= e^eps exactly. Nine bytes whatever the
    domain, which may be too large to list; the hash range is e^eps + 1 rounded (thesis 3.3.5) unless given. With
    `seed_bytes=4` seeds have 32 bits, so that seed and bucket fit into one number of 64 (`veil.shuffle.ring`).

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
