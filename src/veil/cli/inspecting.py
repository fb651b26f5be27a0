"""What a file is, in plain words: a task, a file of reports, or a tally.

Reads headers alone; with a task it reads and checks everything.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

from veil.cli.numbers import domain_text
from veil.cli.outcome import Document, plural
from veil.cli.pipeline import check_inputs, load_survey, load_tallies
from veil.domain import Numeric
from veil.errors import EmptyError, WireError
from veil.files import count_rows, describe_reports, read_reports
from veil.mechanisms import HaarResponse, MeanMechanism, SquareWave
from veil.numeric.means import HybridMean
from veil.numeric.reading import protocol_of
from veil.survey import Question, Survey
from veil.tools.canonical import parse
from veil.wire.frames import VERSION, report_size

__all__ = ["inspect_file"]

_TALLY = b"VEILT"
_ARROW = b"ARROW1"
_ANSWERS: dict[type, str] = {SquareWave: "distribution", MeanMechanism: "mean", HaarResponse: "differences"}


def inspect_file(path: Path, survey: Survey | None) -> tuple[str, Document]:
    """A sentence about a file, and its facts; checked against the task where that is given."""
    check_inputs(path)
    with path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise EmptyError(f"{path} is empty")
    if start.startswith(_ARROW):
        return _reports(path, survey)
    if start.startswith(_TALLY):
        return _tally(path, survey)
    if start.lstrip().startswith(b"{"):
        return _task(load_survey(path))
    raise WireError(f"{path} is not a task, a file of reports or a tally")


def _task(survey: Survey) -> tuple[str, Document]:
    epsilon, protocol = survey.guarantee.epsilon, protocol_of(survey)
    questions = [_question(i, question) for i, question in enumerate(survey.questions)]
    by = type(protocol).__name__ if protocol is not None else questions[0]["mechanism"]
    many = plural(len(questions), "question") + (f", by {by}" if len(questions) == 1 or protocol is not None else "")
    held, answers = survey.domain, [question["answers"] for question in questions]
    if protocol is not None:
        answers = ["mean" if isinstance(protocol, HybridMean) else "distribution"]
        many += f", read together as one {answers[0]}"
    facts: Document = {
        "kind": "task",
        "task": survey.task,
        "epsilon": None if math.isinf(epsilon) else epsilon,
        "ratio": None if survey.guarantee.ratio is None else str(survey.guarantee.ratio),
        "delta": float(survey.guarantee.delta),
        "report_bytes": survey.layout.size,
        "framed_bytes": report_size(survey),
        "columns": list(survey.layout.names),
        "held": domain_text(held) if isinstance(held, Numeric) else held.kind,
        "protocol": None if protocol is None else by,
        "answers": list(dict.fromkeys(answers)),
        "questions": questions,
    }
    return f"A task: a survey of {many}; one report promises {survey.guarantee}.", facts


def _question(index: int, question: Question) -> Document:
    asked = question.mechanism
    facts: Document = {
        "question": index,
        "view": question.view.kind,
        "mechanism": asked.name,
        "epsilon": asked.epsilon,
        "domain": asked.domain.kind,
        "values": min(asked.domain.size, 2**63),  # above that the number says nothing more
        "answers": next((answer for kind, answer in _ANSWERS.items() if isinstance(asked, kind)), "frequencies"),
    }
    return facts | ({"buckets": asked.buckets} if isinstance(asked, SquareWave) else {})


def _reports(path: Path, survey: Survey | None) -> tuple[str, Document]:
    task, columns = describe_reports(path)
    if survey is None:
        people, checked = count_rows(path), False
    else:
        people, checked = sum(len(reports) for reports in read_reports(path, survey)), True
    facts: Document = {"kind": "reports", "task": task, "reports": people, "columns": columns, "checked": checked}
    how = ", each of them one that the task can produce" if checked else ""
    return f"A file of {people:,} reports{how}.", facts


def _tally(path: Path, survey: Survey | None) -> tuple[str, Document]:
    header = _tally_header(path.read_bytes())
    if survey is not None:
        load_tallies(survey, [path])
    questions = [{"question": i, **part} for i, part in zip(header["questions"], header["parts"], strict=True)]
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
    start = len(_TALLY) + 1 + 8
    if len(data) < start + 32 or data[len(_TALLY)] != VERSION:
        raise WireError(f"expected a veil tally of wire version {VERSION}")
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise WireError("this tally is damaged: its checksum does not match")
    header = parse(data[start : start + int.from_bytes(data[start - 8 : start], "little")])
    try:
        parts = [{"counts": int(part["counts"]), "reports": int(part["people"])} for part in header["parts"]]
        numbers = header.get("questions", range(len(parts)))
        if len(numbers) != len(parts):
            raise WireError("this tally's header is not one that veil writes")
        return {"task": str(header["task"]), "people": int(header["people"]), "parts": parts, "questions": numbers}
    except (LookupError, TypeError, ValueError):
        raise WireError("this tally's header is not one that veil writes") from None
