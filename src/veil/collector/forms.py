"""How an answer is written down: as JSON, CSV or Arrow, for each kind of result. Times are text in ISO 8601."""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veil.errors import EmptyError
from veil.numeric.summary import distribution_summary, mean_summary, written
from veil.results.coefficients import Coefficients
from veil.results.distribution import Distribution
from veil.results.estimate import Estimate
from veil.results.mean import Mean

__all__ = ["FORMATS", "Form", "Result", "form_of"]

FORMATS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
Result = Estimate | Distribution | Mean | Coefficients
_LABELS = ("value", "low", "high", "mean")
"""Columns that may hold text."""


@dataclass(frozen=True)
class Form:
    """A result as columns, and what a document says beside its rows."""

    kind: str
    facts: dict[str, Any]
    columns: dict[str, list[Any]]
    rows_name: str | None
    """What the rows are called in a document; None where a document has no rows."""

    def document(self) -> dict[str, Any]:
        """The answer as a part of a JSON document."""
        if self.rows_name is None:
            return self.facts
        rows = [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]
        return self.facts | {self.rows_name: rows}

    def table(self, kind: str) -> bytes:
        """The columns as CSV, or as a stream of Arrow."""
        import pyarrow as pa
        import pyarrow.csv as pacsv

        table = pa.table({name: _array(name, column) for name, column in self.columns.items()})
        if not len(table):
            raise EmptyError("there is nothing to estimate")
        sink = io.BytesIO()
        if kind == "csv":
            pacsv.write_csv(table, sink)
        else:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        return sink.getvalue()


def form_of(found: Result, level: float) -> Form:
    """A result as it is written down; intervals are of this level."""
    if isinstance(found, Estimate):
        return _frequencies(found, level)
    if isinstance(found, Distribution):
        return _distribution(found)
    return _mean(found, level) if isinstance(found, Mean) else _differences(found, level)


def _frequencies(found: Estimate, level: float) -> Form:
    frequencies = np.asarray(found.frequencies, dtype=float)
    columns: dict[str, list[Any]] = {
        "value": [_plain(value) for value in found.values],
        "frequency": frequencies.tolist(),
        "count": (frequencies * found.mass).tolist(),
        "low": [None] * len(frequencies),
        "high": [None] * len(frequencies),
    }
    if found.noise.known:
        bounds = np.asarray(found.interval(level), dtype=float)
        for name, side in (("low", bounds[:, 0]), ("high", bounds[:, 1])):
            columns[name] = [number if math.isfinite(number) else None for number in side.tolist()]
    return Form("frequencies", {"level": level, "lineage": list(found.lineage)}, columns, "values")


def _distribution(found: Distribution) -> Form:
    edges = [written(found.domain, edge) for edge in found.edges.tolist()]
    columns = {
        "low": edges[:-1],
        "high": edges[1:],
        "frequency": found.masses.tolist(),
        "count": (found.masses * found.population).tolist(),
        "cumulative": np.cumsum(found.masses).tolist(),
    }
    return Form("distribution", {"lineage": list(found.lineage), **distribution_summary(found)}, columns, "buckets")


def _mean(found: Mean, level: float) -> Form:
    facts = mean_summary(found, level)
    head = {"level": level, "lineage": list(found.lineage)}
    return Form("mean", head | facts, {name: [fact] for name, fact in facts.items()}, None)


def _differences(found: Coefficients, level: float) -> Form:
    low, high = found.interval(level).T
    columns = {
        "pair": list(range(len(found))),
        "difference": found.differences.tolist(),
        "stderr": found.stderr.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
    }
    return Form("differences", {"level": level, "lineage": list(found.lineage)}, columns, "pairs")


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _array(name: str, column: Sequence[Any]) -> Any:
    import pyarrow as pa

    if name == "pair":
        return pa.array(column, pa.int64())
    if name not in _LABELS or all(cell is None or isinstance(cell, float) for cell in column):
        return pa.array(column, pa.float64())
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # labels of several types, or above 64 bits
        return pa.array([str(value) for value in column])
