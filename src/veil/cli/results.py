"""Estimates into files: tables as CSV, Parquet, Arrow or JSON, and pictures.

Whole files or none. What an estimate says is decided in `veil.result`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil.durable import replacing
from veil.errors import EmptyError, FitWarning, InputError
from veil.result import Estimate
from veil.survey import Survey, SurveyTally

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PICTURES", "TABLES", "estimates_of", "write_picture", "write_table"]

TABLES = (".csv", ".parquet", ".arrow", ".json")
PICTURES = (".svg", ".png", ".pdf")
_MOST_PICTURES = 12

Answered = Sequence[tuple[int, Estimate]]
"""Questions by their number, with their estimates."""


def estimates_of(
    survey: Survey, tally: SurveyTally, question: int | None = None, post: str | None = None
) -> tuple[list[tuple[int, Estimate]], list[str]]:
    """The estimate of one question, or of each that anybody answered, post-processed on request; and its remarks."""
    count = len(survey.questions)
    if question is not None and not 0 <= question < count:
        raise InputError(f"this survey's questions are numbered from 0 to {count - 1}")
    answered = [i for i in range(count) if tally.parts[i].people] if question is None else [question]
    if not answered:
        raise EmptyError("nobody answered: there is nothing to estimate from")
    found = [(i, survey.estimate_question(tally, i)) for i in answered]
    if post is None or post == "none":
        return found, []
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", FitWarning)
        processed = [(i, estimate.post(post)) for i, estimate in found]
    return processed, [str(remark.message) for remark in remarks if issubclass(remark.category, FitWarning)]


def write_table(answered: Answered, out: Path, *, numbered: bool) -> None:
    """value, frequency, count, stderr, low, high for every candidate; the question's number first where `numbered`."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    table = _joined(answered, numbered)
    kind = out.suffix.lower()
    with replacing(out) as temporary:
        if kind == ".csv":
            pacsv.write_csv(table, str(temporary))
        elif kind == ".parquet":
            pq.write_table(table, str(temporary))
        elif kind == ".arrow":
            with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        else:
            temporary.write_text(json.dumps(table.to_pylist(), indent=1) + "\n", encoding="utf-8")


def write_picture(answered: Answered, out: Path, top: int, *, truth: Any = None) -> None:
    """The largest values with their intervals, a panel a question."""
    from veil.plot import plot_estimates, save

    if len(answered) > _MOST_PICTURES:
        raise InputError(f"a picture shows at most {_MOST_PICTURES} questions: choose one with --question")
    panels = plot_estimates([estimate for _, estimate in answered], top, truth=truth)
    with replacing(out) as temporary:
        save(panels[0], str(temporary))


def _joined(answered: Answered, numbered: bool) -> pa.Table:
    import pyarrow as pa

    tables = [estimate.to_arrow() for _, estimate in answered]
    if len({table.schema.field("value").type for table in tables}) > 1:  # one column holds one type: text for all
        tables = [table.set_column(0, "value", table.column("value").cast(pa.string())) for table in tables]
    if numbered:
        numbers = [pa.array([i] * len(table), pa.int64()) for (i, _), table in zip(answered, tables, strict=True)]
        tables = [table.add_column(0, "question", n) for n, table in zip(numbers, tables, strict=True)]
    return pa.concat_tables(tables)
