"""A table: a study whose reports are kept, with public columns beside them, and which a query in SQL reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Integers, Interval, Record
from veil.domain.inputs import as_columns
from veil.errors import InputError, ParameterError
from veil.privacy import check_epsilon, decimal_text
from veil.sql.columns import PublicColumn
from veil.sql.designs.base import Design
from veil.sql.designs.hio import HIO
from veil.study import Collection, OneRound
from veil.survey import Survey

if TYPE_CHECKING:
    from veil.sql.answer import Answer
    from veil.sql.execution.explaining import Explanation


Reading = Literal["levels", "plain", "consistent"]


@dataclass(frozen=True)
class Table(OneRound[Any]):
    """People with private dimensions, which they report with noise, and public columns, which are known of them.

    `private` are the dimensions: `Integers` and `Interval` have an order and may be asked for by ranges, `Categories`
    by their labels. `public` are columns that stand beside the reports as they are: measures to add up, and anything
    to filter and to group by. `design` says how people are asked; `reading` "plain" reads HIO, HI, SC and MG as in the
    thesis, "levels" with less noise; "consistent" does too, and makes counts of private groups fit together. `query`
    is what `read` answers.

    Guarantee: a report keeps e^eps over all private dimensions together. Public columns are not protected.

    >>> from veil.sql import HIO, Measure
    >>> shop = Table(2.0, Record.of(age=Integers(18, 97), state=["NY", "WA"]), (Measure("purchase", 2),))
    >>> shop.guarantee.within(2.0), shop.survey.layout.names
    (True, ('choice', 'value', 'seed', 'bucket', 'public.purchase'))
    """

    epsilon: float
    private: Record
    public: tuple[PublicColumn, ...] = ()
    design: Design = field(default_factory=HIO)
    name: str = "people"
    reading: Reading = "levels"
    query: str | None = None
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not isinstance(self.private, Record):
            raise ParameterError("the private dimensions of a table are a Record")
        for name, part in self.private.attributes:
            if not isinstance(part, (Integers, Interval, Categories)):
                raise ParameterError(f"dimension {name!r} is none of Integers, Interval and Categories")
            if part.size < 2:
                raise ParameterError(f"dimension {name!r} has one value only: there is nothing to ask about it")
        object.__setattr__(self, "public", tuple(self.public))
        if not all(isinstance(column, PublicColumn) for column in self.public):
            raise ParameterError("public columns are made by Measure, Category and Moment")
        names = [name.casefold() for name in (*self.private.names, *(column.name for column in self.public))]
        if len(set(names)) != len(names):
            raise ParameterError("the columns of a table have names that differ in more than upper and lower case")
        if not isinstance(self.name, str) or not self.name.strip():
            raise ParameterError("a table has a name, for FROM")
        if not isinstance(self.design, Design):
            raise ParameterError("a design is HIO(), HI(), SC(), MG() or Grids()")
        if self.reading not in get_args(Reading):
            raise ParameterError(f"reading is one of {', '.join(get_args(Reading))}")
        object.__setattr__(self, "design", self.design.fitted(self.private, self.epsilon))
        if self.query is not None:
            from veil.sql.language.parsing import parse

            parse(self.query, self)

    @cached_property
    def survey(self) -> Survey:
        """The questions about the private dimensions, and the public columns beside them."""
        asked = self.design.ask(self.private, self.epsilon)
        return Survey(asked, [column.public for column in self.public])

    @property
    def signature(self) -> str:
        """How people were asked, in a result's lineage."""
        return f"{type(self.design).__name__}(epsilon={decimal_text(self.epsilon)}, {self.reading})"

    @property
    def public_text(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.public if column.is_text)

    def encode_public(self, values: Any) -> dict[str, NDArray[np.int64]] | None:
        """Runs on the device: the public columns as integers, from a mapping or a frame with a column for each."""
        if not self.public:
            return None
        given = as_columns(values, [column.name for column in self.public])
        return {column.name: column.encode(part) for column, part in zip(self.public, given, strict=True)}

    def encode_person(self, values: Mapping[str, Any]) -> dict[str, int] | None:
        """Runs on the device: one person's public values as integers, as they go beside the report.

        >>> from veil.sql import Category, Measure
        >>> shop = Table(1.0, Record.of(age=9), (Measure("purchase", 2), Category("os", ("ios", "android"))))
        >>> shop.encode_person({"purchase": 12.5, "os": "android"})
        {'purchase': 1250, 'os': 1}
        """
        beside = self.encode_public({name: [value] for name, value in values.items()})
        return None if beside is None else {name: int(column[0]) for name, column in beside.items()}

    def answer(self, collected: Collection) -> Answer | Explanation:
        """Runs at the collector: the answer to `query`, or its plan where that is EXPLAIN SELECT ...

        A plan reads how many people there are, and nothing of anybody's public columns: `Answer.withheld` cannot
        withhold it.
        """
        from veil.sql.execution.cluster import rows_of
        from veil.sql.execution.engine import run
        from veil.sql.execution.explaining import explain
        from veil.sql.language.parsing import parse

        if self.query is None:
            raise InputError('a table is read by a query: set query="SELECT COUNT(*) FROM ..."')
        query, rows = parse(self.query, self), rows_of(self, collected)
        return explain(query, self, rows.people) if query.explain else run(query, rows)

    def columns(self) -> Mapping[str, str]:
        """The columns by name: what each is, in one word."""
        held = dict.fromkeys(self.private.names, "private")
        return held | {column.name: "public" for column in self.public}
