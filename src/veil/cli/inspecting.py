"""`veil inspect`: what a file is, in plain words.

Reads headers alone; with a study it reads and checks everything.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from veil.cli.outcome import AsJson, Document, console, plural, reporting

__all__ = ["inspect"]

_ARROW, _PARQUET = b"ARROW1", b"PAR1"
_MOST_SHOWN = 12


@reporting
def inspect(
    file: Annotated[
        Path,
        typer.Argument(help="A study, a task, a file of reports, a tally, a saved result, or the folder of a run."),
    ],
    study: Annotated[
        Path | None, typer.Option(help="Check the whole file against this study or task.", metavar="STUDY")
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Say in plain words what a file is."""
    from veil.cli.tables import facts_table

    sentence, facts = _inspected(file, study)
    screen = console(as_json)
    screen.print(sentence, markup=False)
    screen.print(facts_table(facts))
    return facts | {"file": str(file)}


def _inspected(path: Path, against: Path | None) -> tuple[str, Document]:
    from veil.cli.files import TALLY_MAGIC, check_inputs, load
    from veil.errors import EmptyError, WireError

    if path.is_dir():
        return _folder(path)
    check_inputs(path)
    with path.open("rb") as opened:
        start = opened.read(64)
    if not start:
        raise EmptyError(f"{path} is empty")
    survey = None if against is None else load(against).survey
    if start.startswith((_ARROW, _PARQUET)):
        return _reports(path, survey)
    if start.startswith(TALLY_MAGIC):
        return _tally(path, survey)
    if start.lstrip().startswith(b"{"):
        return _document(path)
    raise WireError(f"{path} is not a study, a task, a file of reports, a tally or a result")


def _document(path: Path) -> tuple[str, Document]:
    """A study, a task or a result: all are JSON."""
    try:
        kind = json.loads(path.read_bytes()).get("kind")
    except (ValueError, RecursionError):
        kind = None
    if kind == "veil-result":
        return _result(path)
    return _study(path, is_task=kind == "veil-survey")


def _study(path: Path, *, is_task: bool) -> tuple[str, Document]:
    from veil.cli.files import read_study

    study = read_study(path)
    survey = study.survey
    many, first = plural(len(survey.questions), "question"), survey.question(0).mechanism.name
    by = f", by {first}" if len(survey.questions) == 1 else ""
    facts: Document = {
        "kind": "task" if is_task else "study",
        "study": study.kind,
        "task": survey.task,
        **_promise(study.guarantee),
        "parameters": {} if is_task else {name: value for name, value in study.to_json().items() if name != "kind"},
        "report_bytes": survey.layout.size,
        "framed_bytes": _framed(survey),
        "columns": list(survey.layout.names),
        "held": _held(survey.domain),
        "questions": [_question(i, question) for i, question in enumerate(survey.questions[:_MOST_SHOWN])],
        "asked": len(survey.questions),
    }
    what = f"A task: a survey of {many}{by}" if is_task else f"A study of kind {study.kind}: first it asks {many}{by}"
    return f"{what}; one report promises {study.guarantee}.", facts


def _promise(guarantee: Any) -> Document:
    epsilon, ratio = guarantee.epsilon, guarantee.ratio
    return {
        "epsilon": None if math.isinf(epsilon) else epsilon,
        "delta": float(guarantee.delta),
        "ratio": None if ratio is None else str(ratio),
    }


def _framed(survey: Any) -> int:
    from veil.wire.frames import report_size

    return report_size(survey)


def _held(domain: Any) -> str:
    """What people hold, in words."""
    from veil.domain import Numeric
    from veil.results.units import number_unit

    if not isinstance(domain, Numeric):
        return str(domain.kind)
    unit = number_unit(domain)
    kind = {"time": "times", "integer": "integers"}.get(unit.name, "numbers")
    return f"{kind} from {unit.interval(*(domain.shown(end) for end in domain.ends))}"


def _question(index: int, question: Any) -> Document:
    asked = question.mechanism
    return {
        "question": index,
        "view": question.view.kind,
        "mechanism": asked.name,
        "epsilon": asked.epsilon,
        "domain": asked.domain.kind,
        "values": min(asked.domain.size, 2**63),  # above that the number says nothing more
    }


def _reports(path: Path, survey: Any) -> tuple[str, Document]:
    from veil.files import count_rows, describe_reports, read_reports

    task, columns = describe_reports(path)
    if survey is None:
        people, checked = count_rows(path), False
    else:
        people, checked = sum(len(reports) for reports in read_reports(path, survey)), True
    facts: Document = {"kind": "reports", "task": task, "reports": people, "columns": columns, "checked": checked}
    how = ", each of them one that the task can produce" if checked else ""
    return f"A file of {people:,} reports{how}.", facts


def _tally(path: Path, survey: Any) -> tuple[str, Document]:
    from veil.cli.files import load_tallies

    header = _tally_header(path.read_bytes())
    if survey is not None:
        load_tallies(survey, [path])
    questions = [{"question": i, **part} for i, part in enumerate(header["parts"])]
    facts: Document = {
        "kind": "tally",
        "task": header["task"],
        "reports": header["people"],
        "questions": questions,
        "checked": survey is not None,
    }
    how = ", of this task" if survey is not None else ""
    return f"A tally of {header['people']:,} reports, {plural(len(questions), 'question')}{how}.", facts


def _tally_header(data: bytes) -> Document:
    """What a tally says about itself. Its integers are read by `wire`, and only beside its task."""
    from veil.cli.files import TALLY_MAGIC
    from veil.errors import WireError
    from veil.tools.canonical import parse
    from veil.wire.frames import VERSION

    start = len(TALLY_MAGIC) + 1 + 8
    if len(data) < start + 32 or data[len(TALLY_MAGIC)] != VERSION:
        raise WireError(f"expected a veil tally of wire version {VERSION}")
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise WireError("this tally is damaged: its checksum does not match")
    header = parse(data[start : start + int.from_bytes(data[start - 8 : start], "little")])
    try:
        parts = [{"counts": int(part["counts"]), "reports": int(part["people"])} for part in header["parts"]]
        return {"task": str(header["task"]), "people": int(header["people"]), "parts": parts}
    except (LookupError, TypeError, ValueError):
        raise WireError("this tally's header is not one that veil writes") from None


def _folder(path: Path) -> tuple[str, Document]:
    from veil.cli.files import open_run

    run = open_run(path)
    facts: Document = {"kind": "run", "study": run.study.kind, "answered": run.finished, "finished": run.round is None}
    if run.round is None:
        return f"A run of a study of kind {run.study.kind}: finished, after {plural(run.finished, 'round')}.", facts
    facts |= {"task": run.round.survey.task, "share": float(run.round.people)}
    said = f"{plural(run.finished, 'round')} answered, round {run.finished} is to ask"
    return f"A run of a study of kind {run.study.kind}: {said}.", facts


def _result(path: Path) -> tuple[str, Document]:
    from veil.results.files import load

    result = load(path)
    facts: Document = {"kind": "result", "result": result.kind, "people": result.n, "population": result.population}
    facts |= {"lineage": list(result.lineage), **result.facts()}
    return f"A result of kind {result.kind}, from {result.n:,} people.", facts
