"""The interface of designs: how a table's people are asked, and how their reports are read.

A design reads reports as one number u per row, made so that for the 0/1 function phi that a condition selects and for
any public weights w

    E[sum of w u] + constant * (sum of w)  =  sum of w phi(the person's values).

Counts, sums, averages, their standard errors and covariances all follow from these numbers (`veil.sql.execution.sums`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import InputError, WireError
from veil.reports.layout import Columns
from veil.sql.language.query import Box
from veil.study.parameters import read, written
from veil.survey import Ask
from veil.tools.json_documents import Json

if TYPE_CHECKING:
    from veil.sql.designs.grid_reading import GridTallies
    from veil.sql.execution.sums import Totals
    from veil.sql.table import Table


class RowEstimator(ABC):
    """The numbers of rows for one condition."""

    constant: float
    """What is known of phi without any report: its part over the sum of all weights."""
    variance: float
    """The predicted variance of a COUNT, if people are spread evenly over all cells."""
    noise: float = 0.0
    """The variance that a COUNT has at least, whatever people hold; 0 where that is not known."""
    bound: float
    """No number is larger, whatever its sign."""
    groups: frozenset[int] | None
    """The choices whose rows count: rows of others have the number 0. None where there is no choice."""
    cells: int = 0
    """How many cells are looked up, in all groups together."""
    pairs: int = 0
    """How many pairs of a report and a cell that takes."""

    @abstractmethod
    def of(self, columns: Columns) -> NDArray[np.float64]:
        """Runs at the collector: the number of each row, from the columns of its report."""


class Design(ABC):
    """How people are asked about their dimensions. A frozen dataclass; JSON both ways."""

    kind: ClassVar[str]
    assumption: ClassVar[str] = ""
    """A remark on what its intervals assume about people; empty where they follow from the exact law of the reports."""

    def fitted(self, private: Record, epsilon: float) -> Self:
        """The design with everything decided that it leaves open, so that a study file says it all."""
        return self

    @abstractmethod
    def ask(self, private: Record, epsilon: float) -> Ask:
        """What people are asked."""

    @abstractmethod
    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        """Runs at the collector: how rows are read for the people in any of these boxes, which are disjoint.

        `counts` are the people that made each choice, or all of them where there is no choice. `effort` is the share
        of the usual work that may be done: less of it leaves out what adds little.
        """

    def variance(self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64]) -> float:
        """The predicted variance of a COUNT over these boxes: what `values` says, quicker where that is possible."""
        return self.values(table, boxes, counts).variance

    def remarks(self, totals: Iterable[Totals | None]) -> Iterator[str]:
        """Yield what the errors of these sums assume; nothing where all of them are known exactly."""
        if self.assumption and any(one is None or one.covariance.any() for one in totals):
            yield self.assumption

    def to_json(self) -> Json:
        """The design as it stands in a study file."""
        return {"kind": self.kind, **{field.name: written(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type]  # a dataclass

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """The design that a study file describes."""
        from typing import get_type_hints

        hints = {field.name: get_type_hints(cls)[field.name] for field in fields(cls)}  # type: ignore[arg-type]  # a dataclass
        if not isinstance(document, dict) or set(document) != {"kind", *hints}:
            raise WireError(f"a design of kind {cls.kind} has the parameters {', '.join(hints)}")
        return cls(**{name: read(hint, document[name], f"{cls.kind}.{name}") for name, hint in hints.items()})


class JointDesign(Design):
    """A design whose reports are read all together rather than row by row."""

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        raise InputError(f"reports of {type(self).__name__} are read all together, not row by row")

    @abstractmethod
    def tallies(self, table: Table, sums: int) -> GridTallies:
        """Runs at the collector: nothing yet of so many sums."""

    @abstractmethod
    def totals(self, table: Table, boxes: Sequence[Box], tallies: GridTallies) -> Totals:
        """Runs at the collector: the sums over people in any of these boxes, which are disjoint, with covariances.

        In units of the weights as they were added. Raises EmptyError where too few people answered to tell.
        """
