"""`veil serve`, `veil warm` and `veil survey`: the collector from the command line, on its own database.

Everything of the collector is imported when a command runs.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.admin import (
    DatabaseContext,
    Folder,
    New,
    SettingsFile,
    check_installed,
    check_owner,
    command,
    settings_of,
)
from veil.cli.options import (
    Candidates,
    Changes,
    Everything,
    Given,
    Level,
    MarginalOf,
    Picture,
    TableOut,
    Top,
    given_changes,
)
from veil.cli.output import AsJson, Document, console, flag, plural, reporting, warn
from veil.errors import InputError

if TYPE_CHECKING:
    from veil.collector.store.base import StoredSurvey


TaskId = Annotated[
    str,
    typer.Argument(
        metavar="SURVEY",
        help="A survey: its name, as drinks (with its wave, as drinks/2, where there are several), or its task id, or"
        " the beginning of that.",
    ),
]
StudyId = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="The id of a study of several rounds, or the task id of one of its rounds, or the beginning of either.",
    ),
]
SurveyOrStudy = Annotated[
    str,
    typer.Argument(
        metavar="SURVEY",
        help="A survey: its name, as drinks (with its wave, as drinks/2, where there are several), or its task id; or"
        " the id of a study of several rounds; of an id the beginning is enough.",
    ),
]

survey_app = typer.Typer(help="Publish studies, open and close surveys, and read their results.", no_args_is_help=True)


@reporting
def serve(
    settings: SettingsFile = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes a free one; default: 8321.")] = None,
    folder: Folder = None,
    as_json: AsJson = False,
) -> Document:
    """Run the collector until it is stopped: it accepts reports, stores them, and answers analysts."""
    check_installed()
    from veil.collector.serve import check_uvicorn
    from veil.collector.serve import serve as run

    check_uvicorn()

    given: dict[str, Any] = {name: value for name, value in {"host": host, "port": port}.items() if value is not None}
    chosen = replace(settings_of(settings, folder), **given)
    check_owner(chosen)
    run(chosen)
    return {"stopped": True}


@reporting
def warm(settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> Document:
    """Compile and cache the code that answers need, so that the next `veil serve` starts faster.

    Does not open the database or the key.
    """
    check_installed()
    from veil.collector.monitoring.health import count_something
    from veil.collector.serve import keep_kernels

    start, before = time.perf_counter(), os.umask(0o077)  # what is kept is run later: nobody else may write it
    try:
        keep_kernels(settings_of(settings, folder))
        count_something()
    finally:
        os.umask(before)
    seconds = round(time.perf_counter() - start, 1)
    console(as_json).print_line(f"the kernels of answers are compiled ({seconds} s)")
    return {"seconds": seconds}


@command(survey_app, "create")
def create(
    on: DatabaseContext,
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study: a file of `veil plan`, or a bare task.")],
    opens: Annotated[str | None, typer.Option(help="Take reports from then on, as in 2026-01-31T12:00:00Z.")] = None,
    closes: Annotated[str | None, typer.Option(help="Take no reports from then on.")] = None,
    precision: Annotated[int | None, typer.Option(help="Truncate times to so many seconds; default: 86400.")] = None,
    allow_fine_times: Annotated[
        bool, flag("--allow-fine-times", "Publish a --precision below 3600 (an hour); devices refuse it by default.")
    ] = False,
    allow_weak_privacy: Annotated[
        bool, flag("--allow-weak-privacy", "Publish an eps above 10 per report, which protects hardly anybody.")
    ] = False,
    minimum: Annotated[int | None, typer.Option(help="Answer nothing below so many reports; default: 100.")] = None,
    step: Annotated[
        int | None,
        typer.Option(
            help="Let answers count so many new reports at a time; part of what is signed; default: --minimum."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What devices find it by; surveys of the same name are its waves.")
    ] = None,
    wave: Annotated[
        int | None,
        typer.Option(min=1, help="With --name: ask the same question again, as this wave, with a task id of its own."),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option("--text", help="The question in a language, as in de='Wie oft?'; several are fine."),
    ] = None,
    keep_days: Annotated[
        int | None, typer.Option(help="Erase the reports so many days after it was closed; default: never.")
    ] = None,
    people: Annotated[int | None, typer.Option(help="Close a round once its share of so many people answered.")] = None,
    round_seconds: Annotated[int | None, typer.Option(help="Close a round after so many seconds.")] = None,
    new: New = False,
    open_now: Annotated[bool, flag("--open", "Open it as well: what it asks cannot be changed any more.")] = False,
) -> Document:
    """Publish a study as a draft survey. It replaces an earlier study with the same task."""
    from veil.cli.input import read_published
    from veil.collector.surveys.catalogue import for_devices, task_wanted
    from veil.device.verification import FINEST_PRECISION, duration
    from veil.privacy import weakness

    options: dict[str, Any] = {"opens": opens, "closes": closes, "precision": precision, "minimum": minimum}
    options |= {
        "name": name,
        "wave": wave,
        "step": step,
        "texts": _spoken(texts),
        "keep_days": keep_days,
        "people": people,
        "round_seconds": round_seconds,
        "allow_fine_times": allow_fine_times or None,
        "allow_weak_privacy": allow_weak_privacy or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    terms = {"precision": on.settings.precision, "minimum": on.settings.minimum}
    loaded, bare = read_published(study)
    with on.noted("create", {"study": study, **given, "open_now": open_now}, task_wanted(loaded.survey, given)):
        stored, made = on.studies.publish(loaded, given, bare=bare, **terms)
        if open_now:
            stored = on.catalogue.open(stored.task)
    if not made and stored.wave is not None and stored.state != "draft":
        warn(f"this is {_called(stored)}, published before: to ask again under this name, say --wave {stored.wave + 1}")
    if (weak := weakness(loaded.guarantee)) is not None:
        warn(weak)
    if stored.precision < FINEST_PRECISION:
        warn(f"times of reports are kept to {duration(stored.precision)}, which can show whose a report is")
    if stored.step == 1:
        warn("answers count every single report: whoever asks often sees each one, and when it came (--step)")
    if public := [column.name for column in loaded.survey.public]:
        warn(f"sent and stored in clear beside each report, and may identify people: {', '.join(public)}")
    devices = for_devices(on.settings, on.store, stored) if open_now else {}
    return on.shown({**on.catalogue.describe(stored), **devices, "database": on.settings.place})


@command(survey_app, "open", "open")
def open_(on: DatabaseContext, task: TaskId) -> Document:
    """Open a draft: it takes reports from now on, and its task can no longer change."""
    from veil.collector.surveys.catalogue import for_devices

    stored = on.catalogue.open(on.catalogue.chosen(task).task)
    return on.shown({**_described(on, stored), **for_devices(on.settings, on.store, stored)})


@command(survey_app, "close", "close")
def close(on: DatabaseContext, task: TaskId) -> Document:
    """Close a survey: it takes no more reports."""
    return on.shown(on.catalogue.describe(on.catalogue.close(on.catalogue.chosen(task).task)))


@command(survey_app, "show")
def show(on: DatabaseContext, task: SurveyOrStudy) -> Document:
    """Show the state of a survey or of a study of several rounds."""
    from veil.collector.surveys.catalogue import for_devices

    study = on.studies.beginning(task)
    if study is not None and study.startswith(task):
        return on.shown(on.studies.describe(study))
    stored = on.catalogue.chosen(task)
    return on.shown({**_described(on, stored), **for_devices(on.settings, on.store, stored)})


@command(survey_app, "list")
def list_surveys(on: DatabaseContext) -> Document:
    """List all surveys, oldest first, and all studies of several rounds."""
    surveys = [_described(on, stored) for stored in on.store.surveys()]
    studies = [on.studies.describe(study.id) for study in on.store.studies()]
    for one in surveys:
        called = f"  {one['name']}, wave {one['wave']}" if one["name"] else ""
        state = "purged" if one["purged"] else one["state"]
        on.said(f"{one['task']}  {state:8} {plural(one['reports'], 'report'):>20}  {one['kind']}{called}")
    for one in studies:
        on.said(f"{one['study']}  {one['state']:8} {plural(len(one['rounds']), 'round'):>20}  {one['kind']} (study)")
    return {"surveys": surveys, "studies": studies}


@command(survey_app, "next", "next")
def next_round(
    on: DatabaseContext,
    study: StudyId,
    number: Annotated[
        int | None, typer.Option("--round", min=0, help="The round to close: again is fine then.")
    ] = None,
) -> Document:
    """Close the current round of a study, read its reports, and open the next round."""
    found = on.studies.beginning(study) or study
    on.studies.request_next(found, number)
    on.studies.advance(found)
    return on.shown(on.studies.describe(found))


@command(survey_app, "answer", "answer")
def answer(
    on: DatabaseContext,
    task: SurveyOrStudy,
    marginal: MarginalOf = None,
    given: Given = None,
    changes: Changes = None,
    candidates: Candidates = None,
    level: Level = 0.95,
    top: Top = 10,
    everything: Everything = False,
    out: TableOut = None,
    plot: Picture = None,
) -> Document:
    """Estimate the result of a survey from its reports, as `veil estimate` does from files.

    Reports after the last full step (`veil survey create --step`) are left out until the survey ends.
    """
    from veil.cli.input import StudyInput
    from veil.cli.results import OutputOptions, remarked
    from veil.collector.surveys.answers import AnswerRequest, prepare, without
    from veil.collector.surveys.catalogue import parsed, parsed_study

    wanted = OutputOptions(out, plot, level, top, everything)
    wanted.check([] if candidates is None else [candidates])
    study = on.studies.beginning(task)
    stored = on.catalogue.chosen(task if study is None else str(on.studies.first_task(study)))
    made = given_changes(changes, marginal=marginal, given=given)
    query = AnswerRequest(level, set=tuple(f"{name}={text}" for name, text in made.items()))
    if candidates is not None:
        read = query.applied(parsed_study(stored.study or stored.document))
        _, chosen = StudyInput(read, parsed(stored.document)).with_candidates(candidates)
        query = replace(query, candidates=tuple(value for values in (chosen or {}).values() for value in values))
    with remarked() as remarks:
        reading = prepare(on.store, on.studies, stored, query)
        found = reading.read()
    remarks += without(reading.missing())
    if stored.name is not None:
        on.said(_called(stored))
    return {**_named(stored), **wanted.present(found, on.screen, remarks)}


@command(survey_app, "export", "export")
def export(
    on: DatabaseContext,
    task: TaskId,
    out: Annotated[Path, typer.Option("--out", "-o", help="The Parquet file to write; with --folders, a new folder.")],
    folders: Annotated[
        bool, flag("--folders", "Several files, as Spark and others read them: task=.../day=YYYY-MM-DD/part-*.parquet.")
    ] = False,
) -> Document:
    """Write a survey's reports to Parquet, without ids and in random order.

    Reports after the last full step (`veil survey create --step`) are left out until the survey ends.
    """
    from veil.cli.input import check_output
    from veil.collector.surveys.exporting import export_folder, export_parquet

    stored = on.catalogue.chosen(task)
    if folders:
        rows = export_folder(on.store, stored, out)
    else:
        check_output(out, endings=(".parquet",))
        rows = export_parquet(on.store, stored, out)
    line = f"wrote {plural(rows, 'report')} of {_called(stored)} to {out}"
    if damaged := on.store.missing(stored.key):
        warn(f"{plural(damaged, 'damaged report is', 'damaged reports are')} not in the file (see veil check)")
    return on.said(line, **_named(stored), reports=rows, damaged=damaged, out=str(out))


@command(survey_app, "rebuild", "rebuild")
def rebuild(on: DatabaseContext, task: TaskId) -> Document:
    """Recount the reports of a survey, and correct the stored tally if it differs."""
    from veil.collector.surveys.catalogue import read_by
    from veil.collector.surveys.collection import is_maintained
    from veil.collector.surveys.collection import rebuild as count_again

    stored = on.catalogue.chosen(task)
    survey = read_by(stored)
    if not is_maintained(survey):
        raise InputError("no tally is kept for this survey: its answers are counted when they are asked for")
    tally, right = count_again(on.store, stored, survey)
    people = 0 if tally is None else tally.people
    verdict = "the stored tally was right" if right else "the stored tally was wrong and is replaced"
    line = f"counted {plural(people, 'report')} of {_called(stored)}: {verdict}"
    return on.said(line, **_named(stored), reports=people, right=right)


@command(survey_app, "purge", "purge")
def purge(
    on: DatabaseContext,
    task: TaskId,
    yes: Annotated[bool, flag("--yes", "Really do it: nothing brings them back.")] = False,
) -> Document:
    """Erase the reports of a closed survey. Its results remain if their tally is stored."""
    if not yes:
        raise typer.BadParameter("this forgets reports for good: say --yes")
    stored = on.catalogue.chosen(task)
    rows = on.studies.purge(stored)
    return on.said(f"forgot {plural(rows, 'report')} of {_called(stored)}", **_named(stored), reports=rows)


def _called(stored: StoredSurvey) -> str:
    """A survey in a line for people: by its name and wave, or by the beginning of its task id."""
    return f"{stored.name}, wave {stored.wave}" if stored.name else f"survey {stored.task[:12]}"


def _described(on: DatabaseContext, stored: StoredSurvey) -> Document:
    """A survey for the operator, who has the database: all its reports, also those that answers do not count yet."""
    return {**on.catalogue.describe(stored), "reports": stored.reports}


def _named(stored: StoredSurvey) -> Document:
    """The same for programs."""
    return {"task": stored.task, "name": stored.name, "wave": stored.wave}


def _spoken(texts: list[str] | None) -> dict[str, str] | None:
    """The question by language, from options as de='Wie oft?'; each language once."""
    if not texts:
        return None
    if any("=" not in text for text in texts):
        raise typer.BadParameter("a text is given as LANGUAGE=TEXT")
    spoken = dict(text.split("=", 1) for text in texts)
    if len(spoken) != len(texts):
        raise typer.BadParameter("a language has one text")
    return spoken
