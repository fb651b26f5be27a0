"""Results of a survey, and results into files: tables as CSV, Parquet, Arrow or JSON, and pictures.

Whole files or none. What a result says is decided in `veil.result`, `veil.distribution` and their neighbours.
"""

from __future__ import annotations

import datetime as dt
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil.errors import FitWarning, InputError
from veil.numeric.reading import Reading
from veil.numeric.summary import mean_summary
from veil.results.bands import Bands
from veil.results.coefficients import Coefficients
from veil.results.distribution import Distribution
from veil.results.estimate import Estimate
from veil.results.mean import Mean
from veil.survey import Survey, SurveyTally
from veil.tools.durable import replacing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "PICTURES",
    "TABLES",
    "Answered",
    "Result",
    "check_picture",
    "results_of",
    "save_table",
    "write_picture",
    "write_table",
]

TABLES = (".csv", ".parquet", ".arrow", ".json")
PICTURES = (".svg", ".png", ".pdf")
_MOST_PICTURES = 12

Result = Estimate | Distribution | Mean | Coefficients


@dataclass(frozen=True)
class Answered:
    """What one question found, or with None as its number all questions together; and the bands that were asked for."""

    question: int | None
    result: Result
    bands: Bands | None = None


def results_of(
    survey: Survey,
    tally: SurveyTally,
    question: int | None = None,
    post: str | None = None,
    reading: Reading | None = None,
    replicates: int | None = None,
) -> tuple[list[Answered], list[str]]:
    """The result of one question, or of all that anybody answered; post-processed, or with bands; and its remarks."""
    how = reading or Reading()
    found = how.everything(survey, tally) if question is None else [(question, how.question(survey, tally, question))]
    if replicates is not None and not any(isinstance(result, Distribution) for _, result in found):
        raise InputError("bands are drawn for distributions: these answers have intervals of their own")
    if post is None or post == "none":
        return [Answered(i, result, _bands(result, replicates)) for i, result in found], []
    if not all(isinstance(result, Estimate) for _, result in found):
        raise InputError("frequencies are post-processed, not distributions, means or differences: leave --post out")
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", FitWarning)
        processed = [Answered(i, estimate.post(post)) for i, estimate in found]
    return processed, [str(remark.message) for remark in remarks if issubclass(remark.category, FitWarning)]


def _bands(result: Result, replicates: int | None) -> Bands | None:
    return result.bands(replicates) if replicates is not None and isinstance(result, Distribution) else None


def write_table(answered: Sequence[Answered], out: Path, *, numbered: bool) -> None:
    """A row for every candidate, bucket or pair, or for a mean; the question's number first where `numbered`."""
    save_table(_joined(answered, numbered), out)


def save_table(table: pa.Table, out: Path) -> None:
    """A table as the kind of file that its name says."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

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
            rows = json.dumps(table.to_pylist(), indent=1, default=dt.datetime.isoformat)
            temporary.write_text(rows + "\n", encoding="utf-8")


def check_picture(answered: Sequence[Answered]) -> None:
    """Refuse what is not drawn: more than one distribution, means, differences."""
    if len(answered) > _MOST_PICTURES:
        raise InputError(f"a picture shows at most {_MOST_PICTURES} questions: choose one with --question")
    alone = len(answered) == 1 and isinstance(answered[0].result, Distribution)
    if not alone and not all(isinstance(one.result, Estimate) for one in answered):
        raise InputError("a picture shows frequencies, or one distribution; a mean has none")


def write_picture(answered: Sequence[Answered], out: Path, top: int, *, truth: Any = None) -> None:
    """The largest values with their intervals, a panel a question; or a distribution, within its bands."""
    from veil.plot import plot_distribution, plot_estimates, save

    check_picture(answered)
    first = answered[0]
    if isinstance(first.result, Distribution):
        panel = plot_distribution(first.result, bands=first.bands, truth=truth)
    else:
        estimates = [one.result for one in answered if isinstance(one.result, Estimate)]
        panel = plot_estimates(estimates, top, truth=truth)[0]
    with replacing(out) as temporary:
        save(panel, str(temporary))


def _joined(answered: Sequence[Answered], numbered: bool) -> pa.Table:
    import pyarrow as pa

    tables = [_table(one) for one in answered]
    for i, name in enumerate(tables[0].column_names):
        if len({table.schema.field(name).type for table in tables}) > 1:  # one column holds one type: text for all
            tables = [table.set_column(i, name, table.column(name).cast(pa.string())) for table in tables]
    if numbered:
        numbers = [
            pa.array([one.question] * len(table), pa.int64()) for one, table in zip(answered, tables, strict=True)
        ]
        tables = [table.add_column(0, "question", n) for n, table in zip(numbers, tables, strict=True)]
    return pa.concat_tables(tables)


def _table(one: Answered) -> pa.Table:
    import pyarrow as pa

    if isinstance(one.result, Mean):  # its own table has numbers where the domain may have times
        return pa.table({name: [fact] for name, fact in mean_summary(one.result).items()})
    return one.result.to_arrow(one.bands) if isinstance(one.result, Distribution) else one.result.to_arrow()
