"""RandomProjection: one random row of a public sign matrix (Bassily and Smith 2015; thesis 3.1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.errors import ParameterError
from veil.mechanisms.oracles.local_hashing import LocalHashing
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int


@dataclass(frozen=True, init=False)
class RandomProjection(LocalHashing):
    """A public random matrix of signs with `rows` rows and a column a value: report a random row's sign of the value.

    Guarantee: the row does not depend on the value, and for every row the sign is randomized response, p / (1 - p)
    <= e^eps exactly. The matrix is fixed, so its columns are orthogonal only up to chance: about 1 / sqrt(rows) of a
    value's frequency is added to or taken from another's estimate, the same way in every report. BLH, with a seed of
    one's own, has no such bias and otherwise the same variance. Thesis 3.1.3.

    >>> RandomProjection(epsilon=1.0, domain=1000).layout.size
    5
    """

    rows: int
    name: ClassVar[str] = "RandomProjection"
    unbiased: ClassVar[bool] = False
    independent: ClassVar[bool] = False  # the rows are public, and fixed for everybody

    def __init__(self, epsilon: float, domain: DomainLike, rows: int = 1 << 20) -> None:
        super().__init__(epsilon, domain)
        if not is_int(rows) or not 2 <= rows <= 2**32:
            raise ParameterError("a matrix has between 2 and 2^32 rows")
        object.__setattr__(self, "rows", int(rows))

    def parameters(self) -> Json:
        return {"rows": self.rows}

    @property
    def buckets(self) -> int:
        return 2

    @property
    def seeds(self) -> int:
        return self.rows

    def expand(self, seeds: NDArray[Any]) -> NDArray[np.uint64]:
        """Row r of the matrix is the hash under splitmix64(splitmix64(r)): public, and the same for everybody.

        Once would give row r the seed that is also the spread value r, and the matrix would be symmetric.
        """
        from veil.kernels.hashing import splitmix64_each

        return splitmix64_each(splitmix64_each(np.ascontiguousarray(seeds, dtype=np.uint64)))

    @property
    def bias(self) -> float:
        """The typical share of one value's frequency in another's estimate: the matrix is random, but fixed."""
        return float(1 / np.sqrt(self.rows))
