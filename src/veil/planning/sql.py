"""Plans for tables that are asked in SQL, and proposals for their columns.

The designs of `veil.sql` are compared by the predicted errors of queries. The columns of a file are proposed as private
dimensions and public columns: buckets, labels and scales for a person to look at.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from veil.domain import Categories, Domain, Integers, Interval, Record
from veil.errors import InputError, ParameterError
from veil.files.arrow_files import PathLike
from veil.files.attributes import MOST_VALUES, ColumnFacts, is_whole, read_facts
from veil.planning.base import Choice, Goal, Option, Quantity, Row, Ways, Wishes, byte_text, in_words
from veil.sql.columns import Category, Measure, Moment, PublicColumn
from veil.sql.schema import days
from veil.study import Study
from veil.tools.json_documents import Json

if TYPE_CHECKING:
    from veil.sql.designs.base import Design
    from veil.sql.designs.choosing import Workload
    from veil.sql.table import Table

_ALL = "all queries"
_MOST_BUCKETS = 1024
_FEW = 12  # so many different whole numbers far apart are labels


class SqlGoal(Goal):
    """The designs of `veil.sql`, compared over typical queries or those that are given."""

    name = "sql"
    summary = "Any counts, sums and averages in SQL, over private dimensions and public columns of a table."
    takes = ("file", "private", "public", "attribute", "query", "schema", "k")
    about = (
        "Errors are standard errors of COUNT, as a share of all people, if they were spread evenly over all values: "
        "for random ranges over one dimension (narrow: 1 to 5 % of its values, wide: 25 to 80 %) and over several, or "
        "for the queries that were given. A dash: such a query cannot be answered. A SUM errs as much, times the root "
        "mean square of what is added up."
    )

    def ways(self, wishes: Wishes) -> Ways:
        from veil.sql.designs.choosing import known_designs
        from veil.sql.table import Table

        held, public = wishes.held, tuple(wishes.public)
        if not isinstance(held, Record):
            raise InputError(
                "a table has private dimensions: expected FILE with --private age,state,... or --schema, or "
                "--attribute age=18..99 once for each"
            )

        def made(design: Design) -> Table:
            if isinstance(wishes.table, Table):  # its name and its reading are those of the schema
                return replace(wishes.table, design=design)
            return Table(wishes.epsilon, held, public, design)

        found: dict[str, Callable[[], Study]] = {
            name: partial(made, design) for name, design in known_designs(len(held.names), wishes.users).items()
        }
        own = self._own(wishes)
        if own is not None and isinstance(wishes.table, Table):
            found = {own: partial(made, wishes.table.design)} | {
                name: way for name, way in found.items() if name != own
            }
        return found

    @staticmethod
    def _own(wishes: Wishes) -> str | None:
        """What the way of a schema file is called: by its design, where that is a known one."""
        from veil.sql.designs.choosing import known_designs
        from veil.sql.table import Table

        if not isinstance(wishes.table, Table) or wishes.auto:
            return None
        own = wishes.table
        for name, design in known_designs(len(own.private.names), wishes.users).items():
            with contextlib.suppress(ParameterError):  # beyond these dimensions
                if design.fitted(own.private, own.epsilon) == own.design:
                    return name
        return f"{type(own.design).__name__} of the schema"

    def dimensions(self, path: PathLike, names: Sequence[str]) -> dict[str, Domain]:

        return proposed_dimensions(path, names)

    def errors(self, study: Study, wishes: Wishes) -> Row:
        from veil.sql.designs.choosing import predict
        from veil.sql.table import Table

        assert isinstance(study, Table)
        found = predict(study, self._workload(study, wishes), wishes.users)
        shown = {
            kind: error if math.isfinite(error) else None
            for kind, error in (*found.errors.items(), (_ALL, found.error))
        }
        return {_heading(kind, wishes.queries): Quantity(error, "share") for kind, error in shown.items()}

    def _workload(self, table: Table, wishes: Wishes) -> Workload:
        from veil.sql.designs.choosing import asked_queries, default_queries, typical_queries

        if wishes.queries:
            return asked_queries(wishes.queries, table)
        if wishes.k is None:
            return default_queries(table.private)
        if not 1 <= wishes.k <= len(table.private.names):
            raise InputError(f"-k is how many dimensions a query is about: 1 to {len(table.private.names)}")
        return typical_queries(table.private, wishes.k)

    def doubts(self, study: Study) -> tuple[str, ...]:
        from veil.sql.table import Table

        assert isinstance(study, Table)
        remark = study.design.assumption
        return (f"taken only where it is named. {remark.removesuffix('.')}",) if remark else ()

    def notes(self, study: Study) -> tuple[str, ...]:
        from veil.sql.designs.choosing import most_together
        from veil.sql.table import Table

        assert isinstance(study, Table)
        most = most_together(study.design, len(study.private.names))
        if most >= len(study.private.names):
            return ()
        return (f"answers queries about at most {most} dimension{'s' if most > 1 else ''} at once, and refuses others",)

    def choose(self, wishes: Wishes) -> Choice:
        own = self._own(wishes) if wishes.method is None else None
        choice = super().choose(wishes if own is None else replace(wishes, method=own))
        if own is not None:
            choice = replace(choice, why=choice.why.replace("as asked for", "as the schema says", 1))
        listed = " ".join(f"Query {i}: {' '.join(text.split())}." for i, text in enumerate(wishes.queries, start=1))
        return replace(choice, about=f"{choice.about} {listed}") if listed else choice

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        able = [option for option in allowed if not math.isnan(option.error(_ALL))]
        if not able:
            raise InputError("none of the ways can answer all of these queries: ask about fewer dimensions at once")
        taken = min(able, key=lambda option: option.error(_ALL))
        others = [option for option in able if option is not taken]
        gain = ""
        if others:
            second = min(others, key=lambda option: option.error(_ALL))
            gain = f", {100 * (1 - taken.error(_ALL) / second.error(_ALL)):.0f} % less than {second.name}"
        return taken, (
            f"{taken.name} has the smallest error over these queries{gain}, in reports of "
            f"{byte_text(taken.report_bytes)}."
        )

    def order(self, options: list[Option]) -> list[Option]:
        def place(option: Option) -> tuple[bool, bool, float]:
            return bool(self.doubts(option.study)), math.isnan(option.error(_ALL)), option.error(_ALL)

        return sorted(options, key=place)

    def facts(self, study: Study, wishes: Wishes) -> Json:
        from veil.sql.table import Table

        assert isinstance(study, Table)
        workload = self._workload(study, wishes)
        return {"questions": len(study.survey.ask), "queries": sum(map(len, workload.values()))}

    def attributes(self, study: Study, wishes: Wishes) -> tuple[Row, ...]:
        from veil.sql.table import Table

        assert isinstance(study, Table)
        private = [(name, "private", in_words(part), part.size) for name, part in study.private.attributes]
        public = [(column.name, "public", _in_words(column), None) for column in study.public]
        return tuple(
            {
                "column": Quantity(name, "text"),
                "is": Quantity(kind, "text"),
                "people hold": Quantity(held, "text"),
                "values": Quantity(values, "count"),
            }
            for name, kind, held, values in (*private, *public)
        )


def _in_words(column: PublicColumn) -> str:
    from veil.sql.columns import Category, Moment
    from veil.sql.columns import Measure as Number

    if isinstance(column, Number):
        return f"a number with {column.scale} digit{'s' if column.scale != 1 else ''} after the point"
    if isinstance(column, Category):
        return f"one of {len(column.labels):,} labels"
    assert isinstance(column, Moment)
    return f"a {column.unit}"


def _heading(kind: str, queries: Sequence[str]) -> str:
    """A kind of queries as the heading of a column; somebody's own query by its number."""
    return f"query {list(queries).index(kind) + 1}" if kind in queries else kind


def proposed_dimensions(path: PathLike, names: Sequence[str]) -> dict[str, Domain]:
    """A dimension for each column: whole numbers, numbers in round buckets, days, or the labels that there are.

    Never more than 1,024 buckets. Whole numbers are labels where there are at most 12, with large gaps.
    """
    return {name: _dimension(name, facts) for name, facts in read_facts(path, names).items()} if names else {}


def proposed_public(path: PathLike, names: Sequence[str]) -> tuple[PublicColumn, ...]:
    """A public column for each column: a measure with the digits that it has, a day or a second, or the labels."""
    return tuple(_column(name, facts) for name, facts in read_facts(path, names).items()) if names else ()


def round_buckets(low: float, high: float, most: int = _MOST_BUCKETS) -> Interval:
    """At most so many equal buckets around two numbers, which begin at round ones.

    >>> salaries = round_buckets(1200.0, 248_000.0)
    >>> salaries.lo, salaries.hi, salaries.cells
    (1000.0, 248000.0, 494)
    """
    power = -15
    while True:
        for digit in (1, 2, 5):
            step = digit * 10**power if power >= 0 else digit / 10**-power
            first, last = low // step, -(-high // step)
            if max(last - first, 1) <= most:
                last = max(last, first + 1)
                return Interval(first * step, last * step, cells=int(last - first))
        power += 1


def _dimension(name: str, facts: ColumnFacts) -> Domain:
    if facts.kind != "labels" and facts.missing:
        raise InputError(f"column {name} has empty cells among its numbers or times: fill them, or leave it out")
    if facts.kind == "times":
        assert facts.first is not None
        assert facts.last is not None
        first, last = facts.first.date(), facts.last.date()
        return days(first, last, -(-((last - first).days + 1) // _MOST_BUCKETS))
    if facts.kind == "labels":
        return Categories(sorted(_labels(name, facts)), missing="category" if facts.missing else "refuse")
    if not facts.whole:
        return round_buckets(facts.low, facts.high)
    low, high, told = int(facts.low), int(facts.high), facts.labels
    if told is not None and len(told) <= _FEW and high - low + 1 > 4 * len(told) and all(map(is_whole, told)):
        return Categories(sorted(map(int, told)))
    return Integers(low, high) if high - low < _MOST_BUCKETS else round_buckets(low, high)


def _column(name: str, facts: ColumnFacts) -> PublicColumn:
    if facts.missing:
        raise InputError(f"column {name} has empty cells: fill them, or leave it out")
    if facts.kind == "numbers":
        return Measure(name, facts.decimals)
    if facts.kind == "times":
        return Moment(name, "day" if facts.days else "second")
    return Category(name, tuple(sorted(_labels(name, facts))))


def _labels(name: str, facts: ColumnFacts) -> set[str]:
    if facts.labels is None:
        raise InputError(
            f"column {name} has more than {MOST_VALUES:,} different labels: put them together in fewer groups, or "
            "leave it out"
        )
    return facts.labels
