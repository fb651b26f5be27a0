"""Labels of several values that were asked together as one index."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain.base import Domain, as_list
from veil.domain.composite import DOMAINS, domain_from_json
from veil.domain.inputs import read_column, refuse_at
from veil.errors import DomainError
from veil.tools.json_documents import Json, by_kind, take

__all__ = ["Tuples", "labels_from_json"]


@dataclass(frozen=True)
class Tuples(Domain):
    """One value of each part as one index, the last part varying fastest: the cells of several attributes.

    It labels results and is no domain of a task: people hold a Record.

    >>> from veil.domain import Categories, Integers
    >>> cells = Tuples((Categories(["f", "m"]), Integers(30, 39)))
    >>> cells.encode([("m", 31)]).tolist(), cells.decode([11])
    ([11], [('m', 31)])
    """

    parts: tuple[Domain, ...]
    kind = "tuples"

    @property
    def size(self) -> int:
        return math.prod(part.size for part in self.parts)

    def encode(self, values: Any) -> NDArray[np.uint64]:
        rows = read_column(values.tolist() if isinstance(values, np.ndarray) and values.ndim == 2 else values).values
        expected = f"expected one value for each of {len(self.parts)} parts"
        wrong = [not isinstance(row, (tuple, list)) or len(row) != len(self.parts) for row in rows]
        refuse_at(np.array(wrong, dtype=np.bool_), expected)
        index = np.zeros(len(rows), dtype=np.uint64)
        for place, part in enumerate(self.parts):
            try:
                index = index * np.uint64(part.size) + part.encode([row[place] for row in rows])
            except DomainError as problem:
                raise DomainError(f"part {place}: {problem.expected}", problem.row, problem.count) from None
        return index

    def decode(self, codes: Any) -> list[tuple[Any, ...]]:
        rest = np.asarray(codes, dtype=np.uint64)
        columns = []
        for part in reversed(self.parts):
            rest, own = np.divmod(rest, np.uint64(part.size))
            columns.append(part.decode(own))
        return list(zip(*reversed(columns), strict=True))

    def to_json(self) -> Json:
        return {"kind": "tuples", "parts": [part.to_json() for part in self.parts]}

    @classmethod
    def from_json(cls, document: Json) -> Tuples:
        (parts,) = take(document, "tuples", "parts")
        return cls(tuple(labels_from_json(part) for part in as_list(parts)))


def labels_from_json(document: Any) -> Domain:
    """The domain that labels a result: one of a task, or Tuples."""
    return by_kind(document, {**dict.fromkeys(DOMAINS, domain_from_json), "tuples": Tuples.from_json}, "a domain")
