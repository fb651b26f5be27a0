"""What `veil estimate` shows and writes, for each kind of result: frequencies, distributions, means, differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from veil.cli import numbers, results, tables
from veil.cli.outcome import Document, plural
from veil.cli.pipeline import check_output, load_survey, load_tallies
from veil.cli.results import Answered
from veil.errors import InputError
from veil.mechanisms.reconstruction import Smoothing
from veil.numeric.hierarchy import Method
from veil.numeric.reading import Reading
from veil.results.distribution import Distribution
from veil.results.estimate import Estimate
from veil.results.mean import Mean

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Wanted", "estimate_file", "reading_of"]

_SMOOTHINGS: dict[str, Smoothing] = {"ems": True, "em": False, "auto": "auto"}
_TOP, _ALPHA = 10, 0.05
_FEW = 1_000


@dataclass(frozen=True)
class Wanted:
    """What to show, write and draw; None is what was not said."""

    out: Path | None = None
    plot: Path | None = None
    top: int | None = None
    alpha: float | None = None
    question: int | None = None
    post: str | None = None
    bands: int | None = None


def reading_of(smoothing: str | None, method: Method | None, *, weighted: bool) -> Reading:
    """How a tally is read, by the names of the options."""
    return Reading(None if smoothing is None else _SMOOTHINGS[smoothing], method, weighted)


def estimate_file(task: Path, tally: Path, screen: Console, how: Reading, wanted: Wanted) -> Document:
    """Show what a tally says, write it, draw it; returns the same as a document, with remarks that need a warning."""
    survey = load_survey(task)
    for path, endings in ((wanted.out, results.TABLES), (wanted.plot, results.PICTURES)):
        if path is not None:
            check_output(path, [task, tally], endings)
    held = load_tallies(survey, [tally])
    answered, remarks = results.results_of(survey, held, wanted.question, wanted.post, how, wanted.bands)
    _check_options(answered, wanted)
    several, documents = len(survey.questions) > 1, []
    top, alpha = wanted.top or _TOP, _ALPHA if wanted.alpha is None else wanted.alpha
    for one in answered:
        number = f"question {one.question}: " if several and one.question is not None else ""
        title = f"{number}{one.result.n:,} people, {' > '.join(one.result.lineage)}"
        document, remark = _show(one, screen, title, top, alpha)
        documents.append(document)
        remarks += remark
    if wanted.out is not None:
        results.write_table(answered, wanted.out, numbered=several and answered[0].question is not None)
    if wanted.plot is not None:
        results.write_picture(answered, wanted.plot, top)
    return {"task": survey.task, "people": held.people, "questions": documents, "remarks": remarks}


def _check_options(answered: Sequence[Answered], wanted: Wanted) -> None:
    """Refuse what does not apply, before anything is written."""
    kinds = {type(one.result) for one in answered}
    if wanted.alpha is not None and not any(issubclass(kind, Estimate) for kind in kinds):
        raise InputError("--alpha is for frequencies: nothing else here is called significant")
    if wanted.top is not None and kinds <= {Distribution, Mean}:
        raise InputError("--top is for frequencies: a distribution or a mean is shown whole")
    if wanted.out is not None and len(kinds) > 1:
        # low and high would be shares in one row and numbers in the next
        raise InputError("this survey's answers are of several kinds: choose the question of --out with --question")
    if wanted.plot is not None:
        results.check_picture(answered)


def _show(one: Answered, screen: Console, title: str, top: int, alpha: float) -> tuple[Document, list[str]]:
    """Print one result; what it says as a document, and remarks about it."""
    found, remarks = one.result, []
    if isinstance(found, Estimate):
        screen.print(tables.estimate_table(found, top, alpha, title))
        screen.print(tables.significance(found, alpha))
        document = tables.estimate_document(found, top, alpha)
    elif isinstance(found, Distribution):
        screen.print(Text(title, style="bold"))
        for table in numbers.distribution_tables(found, one.bands):
            screen.print(table)
        said, warning = numbers.about_fit(found)
        screen.print(said)
        remarks = [] if warning is None else [warning]
        document = numbers.distribution_document(found, one.bands)
    elif isinstance(found, Mean):
        screen.print(Text(title, style="bold"))
        screen.print(numbers.mean_sentence(found))
        document = numbers.mean_document(found)
    else:
        screen.print(numbers.differences_table(found, top, title))
        document = numbers.differences_document(found, top)
    if isinstance(found, Distribution) and found.n < _FEW and one.bands is None:
        remarks.append(
            f"{plural(found.n, 'report')} are few for a distribution: --bands 100 says how far it may be off"
        )
    return {"question": "all" if one.question is None else one.question, **document}, remarks
