"""`veil inspect`: a description of a file or a folder.

Only headers are read. With a study, the whole file is read and checked.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.output import SEEDED, AsJson, Document, console, flag, plural, reporting, shell_command, show_facts, warn
from veil.errors import EmptyError, MismatchError, WireError

if TYPE_CHECKING:
    from veil.study import Study
    from veil.survey import Survey


_ARROW = b"ARROW1", b"PAR1"
_MOST_SHOWN = 12


@reporting
def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            help="A study, a task, a file of reports, a tally, a saved result, or the folder of a run or table."
        ),
    ],
    study: Annotated[
        Path | None, typer.Option(metavar="STUDY", help="Check the whole file against this study or task.")
    ] = None,
    assessment: Annotated[
        bool,
        flag(
            "--assessment",
            "Of a study or task: write templates of an impact assessment and of a notice to people, in Markdown.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> Document:
    """Describe a file: a study, a task, reports, a tally, a result, or the folder of a run or table."""
    from veil.cli.input import load

    if assessment:
        return _assessed(file, as_json)

    sentence, facts = _inspected(file, None if study is None else load(study).survey)
    screen = console(as_json)
    screen.print(sentence)
    if facts.get("seeded"):
        warn(SEEDED)
    show_facts(screen, facts)
    return facts | {"file": str(file)}


def _assessed(path: Path, as_json: bool) -> Document:
    from rich.text import Text

    from veil.cli.input import check_inputs, read_study
    from veil.collector.surveys.assessment import assessment, figures

    check_inputs(path)
    study = read_study(path)
    text = assessment(study)
    console(as_json).print(Text(text), soft_wrap=True, end="")
    return {"kind": "assessment", "file": str(path), "figures": figures(study), "markdown": text}


def _inspected(path: Path, survey: Survey | None) -> tuple[str, Document]:
    from veil.cli.input import check_inputs, start_of
    from veil.tools.json_documents import RESULT, load_json
    from veil.wire.tallies import is_tally

    if path.is_dir():
        from veil.sql.folder import is_table

        if not any(path.iterdir()):
            raise EmptyError(f"{path} is an empty folder")
        return _table(path, survey) if is_table(path) else _run(path)
    check_inputs(path)
    start = start_of(path)
    if not start:
        raise EmptyError(f"{path} is empty")
    if start.startswith(_ARROW):
        return _reports(path, survey)
    if is_tally(start):
        return _tally(path, survey)
    if not start.startswith(b"{"):
        raise WireError(f"{path} is not a study, a task, a file of reports, a tally or a result")
    try:
        found = load_json(path.read_bytes(), RESULT)
    except WireError:
        raise
    except ValueError:
        found = {}  # said by whoever reads it as a study
    kind = found.get("kind")
    rows = found.get("rows", found.get("answers"))
    if {"kind", "people", "lineage"} <= set(found) and isinstance(rows, list):
        return _document(found, len(rows))
    return _result(path) if kind == "veil-result" else _study(path, is_task=kind == "veil-survey")


def _shuffled(study: Study) -> Document:
    """What is promised after the shuffler, of a histogram that has one."""
    from veil.histogram import Histogram

    if not isinstance(study, Histogram) or study.central is None:
        return {}
    central, among = study.central, study.among_fakes
    told = {"after_the_shuffler": str(central.central), "at_least_mixed": central.users}
    return told if among is None else told | {"if_all_others_tell": str(among.central), "fakes": among.fakes}


def _study(path: Path, *, is_task: bool) -> tuple[str, Document]:
    from veil.cli.input import read_study
    from veil.planning.base import in_words
    from veil.survey import EachOf
    from veil.wire.frames import report_size

    study = read_study(path)
    survey, promised = study.survey, study.guarantee
    asked, many = [], len(survey.questions)
    for i in range(min(many, _MOST_SHOWN)):
        view, asks = survey.questions[i].view, survey.questions[i].mechanism
        shown = {
            "view": view.kind,
            **_attributes(survey, i),
            "mechanism": asks.name,
            "epsilon": asks.epsilon,
            "domain": asks.domain.kind,
        }
        asked.append({"question": i, **shown, "values": min(asks.domain.size, 2**63)})  # above, it says nothing more
    facts: Document = {
        "kind": "task" if is_task else "study",
        "study": study.kind,
        "task": survey.task,
        "epsilon": None if math.isinf(promised.epsilon) else promised.epsilon,
        "delta": float(promised.delta),
        "ratio": None if promised.ratio is None else str(promised.ratio),
        "parameters": None if is_task else {name: text for name, text in study.to_json().items() if name != "kind"},
        **_shuffled(study),
        "report_bytes": survey.layout.size,
        "framed_bytes": report_size(survey),
        "columns": list(survey.layout.names),
        "held": in_words(survey.domain),
        "asked": many,
        "questions": asked,
    }
    if many > len(asked):
        facts["more_questions"] = many - len(asked)
    by = plural(many, "question") + (f", by {survey.questions[0].mechanism.name}" if many == 1 else "")
    if isinstance(survey.ask, EachOf):
        by = f"one of {by}, drawn for each person"
    what = f"A task: a survey of {by}" if is_task else f"A study of kind {study.kind}: first it asks {by}"
    return f"{what}; one report promises {promised}.", facts


def _attributes(survey: Survey, question: int) -> Document:
    """The attributes that a question asks for, where it is about some of a record."""
    from veil.view import Project

    view = survey.questions[question].view
    return {"attributes": list(view.attributes)} if isinstance(view, Project) else {}


def _reports(path: Path, survey: Survey | None) -> tuple[str, Document]:
    from veil.files import count_fakes, count_rows, describe_reports, is_seeded, read_reports, which_wave

    task, columns = describe_reports(path)
    checked = None if survey is None else sum(len(reports) for reports in read_reports(path, survey, fakes=True))
    rows, fakes = count_rows(path) if checked is None else checked, count_fakes(path)
    beside = {"people": rows - fakes, "fakes": fakes} if fakes and rows is not None else {}
    wave = which_wave(path)
    again = {"wave": wave} if wave > 1 else {}
    seeded = {"seeded": True} if is_seeded(path) else {}
    facts = {"task": task, **again, "reports": rows, **beside, "columns": columns, "checked": survey is not None}
    facts |= seeded
    how = "" if survey is None else ", each of them one that the task can produce"
    among = f"; {fakes:,} of them are uniform fakes, nobody's" if fakes else ""
    many = "reports" if rows is None else plural(rows, "report")
    return f"A file of {many}{_of_wave(again)}{how}{among}.", {"kind": "reports", **facts}


def _tally(path: Path, survey: Survey | None) -> tuple[str, Document]:
    from veil.cli.input import load_tallies
    from veil.wire.tallies import describe_tally

    facts = describe_tally(path.read_bytes())
    if survey is not None:
        load_tallies(survey, [path])
        facts["questions"] = [{**row, **_attributes(survey, row["question"])} for row in facts["questions"]]
    many, how = plural(len(facts["questions"]), "question"), "" if survey is None else ", of this task"
    among = f" and {plural(facts['fakes'], 'fake')}" if "fakes" in facts else ""
    sentence = f"A tally of {plural(facts['reports'], 'report')}{among}{_of_wave(facts)}, {many}{how}."
    if survey is None and len(facts["questions"]) > 1:
        sentence += " With --study it is checked, and says which attributes of a record each question is about."
    return sentence, {"kind": "tally", **facts, "checked": survey is not None}


def _of_wave(facts: Document) -> str:
    """Says that a file is of a later wave: its task is the first one's, by which all of them are read."""
    return f" of wave {facts['wave']}" if "wave" in facts else ""


def _run(path: Path) -> tuple[str, Document]:
    from veil.cli.input import open_run

    run = open_run(path)
    facts: Document = {"kind": "run", "study": run.study.kind, "answered": run.finished, "finished": run.round is None}
    said = f"finished, after {plural(run.finished, 'round')}"
    if run.round is not None:
        facts |= {"task": run.round.survey.task, "share": float(run.round.people)}
        said = f"{plural(run.finished, 'round')} answered, round {run.finished} is to ask"
    return f"A run of a study of kind {run.study.kind}: {said}.", facts


def _table(path: Path, survey: Survey | None) -> tuple[str, Document]:
    from veil.cli.sql_shell import schema_rows
    from veil.sql.database import Database

    with Database(path) as database:
        table, people, files = database.table, database.people, database.files
        if survey is not None and survey.task != table.survey.task:
            raise MismatchError(f"the reports in {path} were made for another task")
        facts: Document = {
            "kind": "table",
            "name": table.name,
            "task": table.survey.task,
            "design": table.signature,
            "epsilon": table.epsilon,
            "people": people,
            "files": len(files),
            "bytes": sum(file.stat().st_size for file in files),
            "ignored": list(database.ignored),
            **({"seeded": True} if database.seeded else {}),
            "columns": [{"name": name, "is": kind, "holds": holds} for name, kind, holds in schema_rows(table)],
        }
    query = shell_command("veil", "sql", path, "SELECT ...")
    said = f"A table of {plural(people, 'report')} in {plural(len(files), 'file')}, for `{query}`."
    return said, facts


def _document(found: Document, rows: int) -> tuple[str, Document]:
    facts = {"people": found["people"], "lineage": found["lineage"], "rows": rows}
    said = f"A table of a result of kind {found['kind']}, for programs to read; the result itself is a .result.json."
    return said, {"kind": "table", "result": found["kind"], **facts}


def _result(path: Path) -> tuple[str, Document]:
    from veil.results.render.files import load_marked

    found, seeded = load_marked(path)
    facts = {"people": found.n, "population": found.population, "lineage": list(found.lineage), **found.facts()}
    if seeded:
        facts["seeded"] = True
    said = f"A result of kind {found.kind}, from {plural(found.n, 'report')}."
    return said, {"kind": "result", "result": found.kind, **facts}
