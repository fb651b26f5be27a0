"""OLH: optimized local hashing (thesis 3.3.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from veil.domain import DomainLike
from veil.errors import ParameterError
from veil.mechanisms.hashing import LocalHashing
from veil.tools.arguments import is_int
from veil.tools.canonical import Json

__all__ = ["OLH"]


@dataclass(frozen=True, init=False)
class OLH(LocalHashing):
    """Hash the value into about e^eps + 1 buckets with a seed of one's own, and report (seed, bucket).

    Guarantee: for every seed the bucket is GRR over the hash range, p / q <= e^eps exactly. Nine bytes whatever the
    domain, which may be too large to list; the hash range is e^eps + 1 rounded (thesis 3.3.5) unless given.

    >>> oracle = OLH(epsilon=1.0, domain=1024)
    >>> oracle.hash_range, oracle.layout.size
    (4, 9)
    """

    hash_range: int
    name: ClassVar[str] = "OLH"

    def __init__(self, epsilon: float, domain: DomainLike, hash_range: int | None = None) -> None:
        super().__init__(epsilon, domain)
        chosen = max(2, round(math.exp(self.epsilon) + 1)) if hash_range is None else hash_range
        if not is_int(chosen) or not 2 <= chosen <= 2**31:
            raise ParameterError("a hash range is an integer between 2 and 2^31 (a large epsilon needs it given)")
        object.__setattr__(self, "hash_range", int(chosen))

    def parameters(self) -> Json:
        return {"hash_range": self.hash_range}

    @property
    def buckets(self) -> int:
        return self.hash_range
