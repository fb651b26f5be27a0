"""The base class of results: a table with errors, facts, a picture, and JSON both ways.

The terminal, JSON, files, the collector's answers and notebooks render any Result from `table`, `facts` and `remarks`
alone: see `veil.results.render`.
"""

from __future__ import annotations

import keyword
import re
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veil.errors import DomainError, InputError, WireError
from veil.results.codec import read_fields, write_fields
from veil.results.units import Unit, key_columns
from veil.tools.json_documents import Json, Kinds, kind_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from veil.privacy import Guarantee


Truth = Mapping[Any, float] | Sequence[float] | NDArray[np.float64]
"""True shares: by value (of a marginal, by a tuple of values), or one for each row of a result's table in its order."""

KINDS: Kinds[Result] = Kinds(
    {
        "answers": "veil.results.answers:Answers",
        "comparison": "veil.comparison:Comparison",
        "conditional": "veil.marginals.conditional:Conditional",
        "correlations": "veil.marginals.conditional:Correlations",
        "differences": "veil.results.mean:Coefficients",
        "distribution": "veil.results.distribution:Distribution",
        "distribution-change": "veil.results.differences:DistributionChange",
        "frequencies": "veil.results.estimate:Estimate",
        "frequency-change": "veil.results.change:FrequencyChange",
        "heavy-hitters": "veil.hitters.result:HeavyHitters",
        "items": "veil.itemsets.result:FrequentItems",
        "itemsets": "veil.itemsets.result:FrequentItemsets",
        "marginal": "veil.marginals.marginal:Marginal",
        "marginals": "veil.marginals.result:Marginals",
        "mean": "veil.results.mean:Mean",
        "mean-and-variance": "veil.results.mean:MeanAndVariance",
        "mean-change": "veil.results.change:MeanChange",
        "sql": "veil.sql.answer:Answer",
        "sql-change": "veil.sql.change:AnswerChange",
        "sql-plan": "veil.sql.execution.explaining:Explanation",
    }
)
VARIANTS: Kinds[Result] = Kinds(
    {
        "binary": "veil.marginals.rivals.binary:BinaryMarginals",
        "calibrated": "veil.post.processed:CalibratedEstimate",
        "fourier": "veil.marginals.rivals.fourier:FourierCoefficients",
        "normed": "veil.post.processed:NormedEstimate",
        "positive-answers": "veil.post.processed:PositiveAnswers",
        "processed": "veil.post.processed:ProcessedEstimate",
        "split": "veil.marginals.rivals.split_em:SplitReports",
        "uniform": "veil.marginals.rivals.contingency:Uniform",
    }
)
"""The classes beside the first one of their kind, by variant."""


class Result(ABC):
    """What was learnt, with its error, in units that a person understands. Frozen data, no closures.

    `n` people answered, out of `population`; `guarantee` is what each of them was promised, where that is known;
    `lineage` names every step from the mechanism to here. Results are equal where all their data is.
    """

    kind: ClassVar[str]
    variant: ClassVar[str] = ""
    """Of several classes of one kind, which one: a step of post-processing that knows more."""
    selection: ClassVar[bool] = False
    """Whether its rows were picked out of many for being large: some of them may be nothing but large noise."""

    if TYPE_CHECKING:

        @property
        def n(self) -> int:
            """How many people answered."""

        @property
        def population(self) -> int:
            """Of how many people they are a part."""

        @property
        def lineage(self) -> tuple[str, ...]:
            """Every step from the mechanism to here."""

        @property
        def guarantee(self) -> Guarantee | None:
            """What each person was promised."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls) or "variant" in vars(cls):
            (VARIANTS if cls.variant else KINDS)[cls.variant or cls.kind] = cls

    # -- what it says ------------------------------------------------------------------------------------------------

    @abstractmethod
    def table(self, level: float = 0.95) -> pyarrow.Table:
        """One row per value, bucket or set, with its estimate, standard error and interval of the given level.

        Columns have standard names: `value` (or `items`, or `from` and `to`), `frequency`, `count`, `stderr`, `low`,
        `high`, then others. Each field says in its metadata what it stands for: see `veil.results.units`.
        """

    @abstractmethod
    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """What stands beside the table, as JSON: numbers, text, lists of objects; null where something is unknown."""

    def fact_units(self) -> Mapping[str, Unit]:
        """What facts stand for, by name; `rounds.people` is `people` of the objects in the list `rounds`."""
        return {}

    def remarks(self) -> list[str]:
        """Plain sentences that whoever reads the numbers should read too."""
        return []

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """The most important rows, for people to read; with columns `truth` and `covered` where the truth is known."""
        table = with_truth(self.table(level), truth)
        return table.take(self._importance()[:rows])

    def told(
        self, level: float = 0.95, rows: int | None = None, truth: Truth | None = None, *, hide: bool = False
    ) -> VisibleRows:
        """The `rows` most important rows, or the whole table; with `hide`, without those that nobody should act on.

        This is the one place that decides what the command line and the collector hide: rows that are not significant,
        where they were picked out of many, be it by a search (`selection`) or as the first `rows` of a longer table.
        """
        if rows is None:
            table = with_truth(self.table(level), truth)
        else:
            table = self.summary_table(level, max(rows, len(self)) if self.selection else rows, truth)
        every, hidden = len(self), 0
        verdict = next((name for name in ("significant", "changed") if name in table.column_names), None)
        if hide and (self.selection or table.num_rows < every) and verdict is not None:
            kept = np.array([sure is not False for sure in table[verdict].to_pylist()], dtype=np.bool_)
            sure = None if self.selection else self.facts(level).get(verdict)
            table, hidden = table.take(np.flatnonzero(kept)), int((~kept).sum()) if sure is None else every - sure
        told = table.slice(0, rows) if self.selection else table
        ranged = "from" in told.column_names  # fewer ranges have all people in them, too
        return VisibleRows(told, hidden, 0 if ranged else every - hidden - told.num_rows)

    def parts(self) -> list[tuple[int | None, Result]]:
        """Results that are shown one after the other, by number of their question; most results are one."""
        return [(None, self)]

    def answered(self) -> str:
        """Return the number of reports in words, and the number of people that they stand for if it is another one."""
        reports = f"{self.n:,} report{'s' if self.n != 1 else ''}"
        return reports if self.n == self.population else f"{reports} for {self.population:,} people"

    def difference(self, before: Result) -> Result:
        """What changed from another result of the same question to this one, with intervals and a test: two months,
        two groups. See docs/differences.md.

        >>> from veil import OLH, simulate
        >>> march, april = (simulate(OLH(3.0, 2), [0] * t + [1] * (4000 - t), seed=t) for t in (1000, 2400))
        >>> april.difference(march)[0].changed, april.difference(april).facts()["changed"]
        (True, 0)
        """
        from veil.results.differences import difference

        if not isinstance(before, Result):
            raise InputError("a difference is taken between two results: expected another Result")
        return difference(self, before)

    def _importance(self) -> NDArray[np.int64]:
        """The rows of the table, the most important first."""
        return np.arange(len(self))

    # -- tables, rows and pictures -----------------------------------------------------------------------------------

    def to_pandas(self) -> pandas.DataFrame:
        """The table for pandas."""
        frame: pandas.DataFrame = self.table().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The table for polars."""
        try:
            import polars
        except ImportError:
            raise InputError("this needs polars: pip install polars") from None
        frame = polars.from_arrow(self.table())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __len__(self) -> int:
        return int(self.table().num_rows)

    def __iter__(self) -> Iterator[Any]:
        """Rows of the table with 95 % intervals, as named tuples (`from_` for the column `from`).

        What no name of Python may hold is an underscore there: `home_town` for the column "home town".
        """
        return _rows(self.table())

    def __getitem__(self, value: Any) -> Any:
        """The row of one value."""
        return next(_rows(self.table().slice(self._place(value), 1)))

    def _place(self, value: Any) -> int:
        cells: list[Any] = self.table().column(0).to_pylist()
        if value not in cells:
            raise DomainError("expected a value that this result has a row for")
        return cells.index(value)

    @abstractmethod
    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw the result (k rows, where it has rows), beside the truth where it is known. Needs `veil-ldp[plot]`."""

    def plot_height(self, k: int = 20) -> float:
        """How high its picture is, in inches."""
        return 1.2 + 0.28 * min(k, len(self))

    def _repr_html_(self) -> str:
        from veil.results.render.layout import to_html

        return to_html(self)

    # -- JSON both ways ----------------------------------------------------------------------------------------------

    def to_json(self) -> Json:
        """Everything that it holds, as JSON; `Result.from_json` reads it back."""
        variant = {"variant": self.variant} if self.variant else {}
        return {"kind": self.kind, **variant, **write_fields(self)}

    @staticmethod
    def from_json(document: Any) -> Result:
        """The result that a document holds.

        >>> from veil import OLH, simulate
        >>> estimate = simulate(OLH(epsilon=1.0, domain=4), [0] * 700 + [1] * 300, seed=1)
        >>> Result.from_json(estimate.to_json()) == estimate
        True
        """
        kind = kind_of(document, KINDS, "a result")
        variant = document.get("variant", "")
        cls = (VARIANTS.get(variant) if variant else KINDS[kind]) if isinstance(variant, str) else None
        if cls is None or cls.kind != kind:
            raise WireError(f"there is no such variant of results of the kind {kind!r}")
        return read_fields(cls, {name: part for name, part in document.items() if name not in ("kind", "variant")})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return self is other or (type(self) is type(other) and self.to_json() == other.to_json())

    def __hash__(self) -> int:
        return hash((self.kind, self.variant, self.n, self.population, self.lineage))


class VisibleRows(NamedTuple):
    """What is told of a result's table."""

    table: pyarrow.Table
    hidden: int
    """How many rows are left out because they are not significant."""
    more: int
    """How many rows are left out because there are so many."""

    def remarks(self, how: str | None) -> list[str]:
        """What was hidden, and how to see it: `how` is what to ask for, as in --all."""
        if not self.hidden:
            return []
        reason = "because noise alone can look like them"
        return [f"Rows that are not significant are hidden ({self.hidden:,}), {reason}; {how} shows more."]


def with_truth(table: pyarrow.Table, truth: Truth | None) -> pyarrow.Table:
    """A table with what is true of each row, and whether its interval covers it, where the truth is known."""
    if truth is None:
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    estimated = table.schema.field(
        next(name for name in ("mean", "frequency", "difference") if name in table.column_names)
    )
    known = pa.array(true_shares(table, truth), pa.float64(), from_pandas=True)  # what is not known is null
    if pa.types.is_timestamp(estimated.type):  # times are given in seconds since 1970
        known = pc.cast(pc.multiply(known, 1e6), pa.int64(), safe=False).cast(estimated.type)
    table = table.append_column(pa.field("truth", known.type, metadata=estimated.metadata), known)
    return with_covered(table) if "low" in table.column_names else table


def with_covered(table: pyarrow.Table) -> pyarrow.Table:
    """A table with truths, and whether each lies between low and high."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, known, high = table["low"], table["truth"], table["high"]
    if pa.types.is_floating(known.type):  # ends are whole people: rounding must not decide
        low, high = pc.subtract(low, 1e-12), pc.add(high, 1e-12)
    covered = pc.and_(pc.less_equal(low, known), pc.less_equal(known, high))
    kept = table.drop_columns(["covered"]) if "covered" in table.column_names else table
    return kept.append_column(pa.field("covered", pa.bool_(), metadata=Unit("flag").metadata), covered)


def with_picked(table: pyarrow.Table, low: Any, high: Any) -> pyarrow.Table:
    """A table of rows that were picked out: low and high hold for what was picked, and those before stand alone."""
    import pyarrow as pa

    place = table.column_names.index("high") + 1
    for i, (name, ends) in enumerate((("low", low), ("high", high))):
        before = table.schema.field(name)
        table = table.add_column(place + i, before.with_name(f"alone_{name}"), table.column(name))
        table = table.set_column(table.column_names.index(name), before, pa.array(ends, pa.float64()))
    return with_covered(table) if "truth" in table.column_names else table


def true_shares(table: pyarrow.Table, truth: Truth) -> list[float]:
    """The true share of each row; a value that the truth does not name is held by nobody."""
    if not isinstance(truth, Mapping):
        if len(truth) != table.num_rows:
            raise InputError(f"the truth has one share for each row: {table.num_rows:,} of them")
        return [float(share) for share in truth]
    columns = [table[name].to_pylist() for name in key_columns(table)]
    cells = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    return [float(truth.get(tuple(cell) if isinstance(cell, list) else cell, 0.0)) for cell in cells]


def _rows(table: pyarrow.Table) -> Iterator[Any]:
    names = [re.sub(r"\W", "_", name) for name in table.column_names]  # attributes have any name
    names = [f"{name}_" if keyword.iskeyword(name) else name for name in names]
    row = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # the names are the table's
    return (row(*cells) for cells in zip(*(column.to_pylist() for column in table.columns), strict=True))
