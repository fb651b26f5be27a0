"""True joint distributions of people with known records, for comparison with estimates in trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import EmptyError, InputError
from veil.marginals.conditional import Conditional
from veil.marginals.joint import Joint
from veil.marginals.marginal import CellTable, Marginal
from veil.marginals.tables import Places
from veil.tools.json_documents import Json

MOST_MARGINALS = 50
"""Over how many marginals an error is averaged, as in the thesis."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownJoint(Joint):
    """The true joint distribution of people: not private, for trials only, and never written down.

    `codes` has one row per person, a code for each attribute.

    >>> people = Record.of(sex=["f", "m"], smokes=2)
    >>> known = KnownJoint.of(people, people.encode({"sex": ["f", "m", "m"], "smokes": [0, 1, 1]}))
    >>> known.marginal(["sex", "smokes"]).frequencies.round(2).tolist()
    [0.33, 0.0, 0.0, 0.67]
    """

    codes: NDArray[np.uint64]

    @classmethod
    def of(
        cls,
        record: Record,
        codes: NDArray[np.uint64],
        shown: tuple[str, ...] | None = None,
        given: tuple[str, ...] | None = None,
    ) -> KnownJoint:
        """What is true of people whose codes of a record these are."""
        people = len(codes)
        if not people:
            raise EmptyError("expected at least one person")
        return cls(
            record=record, n=people, population=people, lineage=("truth",), shown=shown, given=given, codes=codes
        )

    def _found(self, places: Places) -> Marginal:
        shape = tuple(self.record.parts[place].size for place in places)
        cells = np.ravel_multi_index([self.codes[:, place].astype(np.int64) for place in places], shape)
        return Marginal(
            record=Record(tuple(self.record.attributes[place] for place in places)),
            frequencies=np.bincount(cells, minlength=int(np.prod(shape))) / self.n,
            origin=self,  # which refuses to be written down
            n=self.n,
            population=self.population,
            lineage=self.lineage,
        )

    def truth(self, found: Joint | CellTable) -> list[float]:
        """What is true of each row of a result; NaN for shares among people whom there are not."""
        same: Joint | CellTable
        if isinstance(found, Joint):
            same = KnownJoint.of(self.record, self.codes, found.shown, found.given)
        else:
            same = self._same(found)
        return [math.nan if share is None else share for share in same.table()["frequency"].to_pylist()]

    def _same(self, found: CellTable) -> CellTable:
        """The same table, of these people."""
        if isinstance(found, Conditional):
            return self.conditional(found.names[len(found.given) :], found.given)
        return self.marginal(found.names)

    def sse(self, found: Joint | CellTable, k: int) -> float:
        """The sum of squared errors of a marginal's cells; of a joint distribution, its mean over many marginals.

        These have k attributes each (or all, where there are fewer). Where there are more than MOST_MARGINALS of them,
        so many are drawn: always the same ones.
        """
        if isinstance(found, CellTable):
            return float(np.nansum((found.frequencies - self._same(found).frequencies) ** 2))
        return float(np.mean([self.sse(found.marginal(names), k) for names in self._some(k)]))

    def _some(self, k: int) -> list[tuple[str, ...]]:
        names, random = self.record.names, np.random.default_rng(k)
        k = min(k, len(names))
        if math.comb(len(names), k) <= MOST_MARGINALS:
            return list(combinations(names, k))
        drawn: dict[tuple[int, ...], None] = {}
        while len(drawn) < MOST_MARGINALS:
            drawn[tuple(sorted(random.choice(len(names), k, replace=False).tolist()))] = None
        return [tuple(names[place] for place in places) for places in drawn]

    def to_json(self) -> Json:
        raise InputError("what people really hold is for trials, and is not written down")
