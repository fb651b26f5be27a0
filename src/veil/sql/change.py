"""The change between two answers to the same query: two months of one table, or two tables of one schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.results.change import Change, check_same
from veil.results.change_tests import adjusted_p_values, normal_p_value
from veil.results.units import Column, Unit, make_table
from veil.sql.answer import Answer, key_unit
from veil.tools.numbers import alpha_of, two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AnswerChange(Change):
    """By how much each number of an answer changed: one row for each row of the two answers and each output.

    Rows are matched by their keys, whatever their order; rows that only one side has are counted and left out. The two
    answers must come from different reports, as two months do: their errors are taken to be independent. (Two groups
    of one table are compared within one query, which knows what they share.) Intervals speak of the people who
    answered; the tests take each side's people for a random sample of many, as `veil.results.change` does.
    """

    kind: ClassVar[str] = "sql-change"
    after: Answer
    before: Answer

    @classmethod
    def of(cls, after: Answer, before: Answer) -> AnswerChange:
        """The change between two answers; refuses answers to different queries, and answers without a common row."""
        check_same(_plain(after.query) == _plain(before.query), "two answers to the same query")
        names = [([key.name for key in side.keys], [one.name for one in side.outputs]) for side in (after, before)]
        check_same(names[0] == names[1], "two answers with the same keys and outputs")
        made = cls(after, before)
        check_same(len(made) > 0, "two answers with a row in common")
        return made

    def __len__(self) -> int:
        return len(self._rows) * len(self.after.outputs)

    def __repr__(self) -> str:
        return f"AnswerChange({len(self)} numbers, {self.after.n} reports less {self.before.n})"

    @property
    def _sides(self) -> tuple[Answer, Answer]:
        return self.after, self.before

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """The places of each common row after and before, in two columns, in the order after."""
        where = {row: place for place, row in enumerate(_keys(self.before))}
        pairs = [(place, where[row]) for place, row in enumerate(_keys(self.after)) if row in where]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def _column(self, side: Answer, what: str) -> Floats:
        places = self._rows[:, 0 if side is self.after else 1]
        columns = [getattr(one, what)[places] for one in side.outputs]
        return np.stack(columns, axis=1).reshape(-1) if columns else np.empty(0)

    @property
    def differences(self) -> Floats:
        """After less before, unbiased where both sides are; the outputs of a row follow each other."""
        return self._column(self.after, "values") - self._column(self.before, "values")

    @property
    def stderr(self) -> Floats:
        """The standard error of each difference: variances of the two sides add up."""
        return np.hypot(self._column(self.after, "stderr"), self._column(self.before, "stderr"))

    def interval(self, level: float = 0.95) -> Floats:
        """A normal confidence interval for each difference: an array of (low, high)."""
        reach = two_sided(level) * self.stderr
        return np.stack([self.differences - reach, self.differences + reach], axis=1)

    @cached_property
    def p_values(self) -> Floats:
        """How surprising each difference is if nothing changed, by the normal distribution; NaN where it is unknown.

        The luck of who was asked is part of it wherever that is known: `MeasuredColumn.sampling`.
        """
        luck = np.hypot(*(np.nan_to_num(self._column(side, "sampling")) for side in self._sides))
        errors = np.hypot(self.stderr, luck)
        known = ~np.isnan(self.differences + errors)
        found = np.full(len(self), np.nan)
        found[known] = normal_p_value(self.differences[known], errors[known])
        return found

    @property
    def adjusted_p_values(self) -> Floats:
        """The same for all that was tested together (Holm); what is unknown is taken for unchanged."""
        return adjusted_p_values(np.where(np.isnan(self.p_values), 1.0, self.p_values), self.tested)

    def changed(self, level: float = 0.95) -> NDArray[np.bool_]:
        return np.asarray(self.adjusted_p_values <= alpha_of(level))

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """The keys, the output's name, before, after, difference, its stderr, low and high, p_value and `changed`."""
        outputs, length = len(self.after.outputs), Unit("length")
        columns: dict[str, Column] = {}
        for name, key in zip(self.after.key_names, self.after.keys, strict=True):
            cells = [key.values[place] for place in self._rows[:, 0] for _ in range(outputs)]
            columns[f"{name}_" if name in _OWN else name] = (cells, key_unit(key))
        low, high = self.interval(level).T
        numbers = {
            "before": self._column(self.before, "values"),
            "after": self._column(self.after, "values"),
            "difference": self.differences,
            "difference_stderr": self.stderr,
            "difference_low": low,
            "difference_high": high,
        }
        keys = len(columns) + 1
        columns["output"] = ([one.name for _ in self._rows for one in self.after.outputs], Unit("label"))
        columns |= {name: (column, length) for name, column in numbers.items()}
        columns["p_value"] = (self.p_values, Unit("probability"))
        columns["changed"] = (self.changed(level), Unit("flag"))
        return make_table(columns, keys=keys)

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """The query, how many numbers changed, and how many rows only one side has."""
        rows = {"only_after": len(self.after) - len(self._rows), "only_before": len(self.before) - len(self._rows)}
        counts = {"values": len(self), "tested": self.tested, "changed": int(self.changed(level).sum()), **rows}
        return {"query": self.after.query, **counts, **self._people()}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"query": Unit("label")}

    def remarks(self) -> list[str]:
        said = ["The two answers are taken to come from different reports: what they share is not known here."]
        if any(np.isnan(one.sampling[~np.isnan(one.values)]).any() for side in self._sides for one in side.outputs):
            said.append("How much is the luck of who was asked is not known here: tests speak of those who answered.")
        said += dict.fromkeys(one for side in self._sides for one in side.said)
        left_out = len(self.after) + len(self.before) - 2 * len(self._rows)
        if left_out:
            said.append(f"Rows that only one of the two answers has are left out: {left_out:,} of them.")
        return said

    def _importance(self) -> NDArray[np.int64]:
        p_values = np.where(np.isnan(self.p_values), 1.0, self.p_values)
        return np.argsort(p_values, kind="stable")

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The first k differences with 95 % intervals. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_measured

        return plot_measured(self, {"after less before": (self.differences, self.interval())}, k, ax=ax)


_OWN = {
    "output",
    "before",
    "after",
    "difference",
    "difference_stderr",
    "difference_low",
    "difference_high",
    "p_value",
    "changed",
}
"""The columns of a table beside the keys: keys of these names get an underscore."""


def _keys(answer: Answer) -> list[tuple[Any, ...]]:
    return list(zip(*(key.labels for key in answer.keys), strict=True)) if answer.keys else [()] * len(answer)


def _plain(query: str) -> str:
    """A query without what makes no difference: line breaks and the semicolon at its end."""
    return " ".join(query.split()).rstrip("; ")
