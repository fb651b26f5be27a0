"""BLH: binary local hashing (thesis 3.3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from veil.mechanisms.hashing import LocalHashing

__all__ = ["BLH"]


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
