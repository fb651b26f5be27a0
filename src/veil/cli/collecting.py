"""`veil serve`, `veil survey ...` and `veil token ...`: the collector from the command line, on its own database.

Thin like the other commands; everything of the collector is imported when a command runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.outcome import AsJson, Document, console, plural, reporting

if TYPE_CHECKING:
    from veil.collector.settings import Settings
    from veil.collector.store import Store, StoredSurvey

__all__ = ["check_installed", "serve", "survey_app", "token_app"]

SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="The settings, in TOML; else VEIL_SETTINGS, or veil.toml if there.")
]
Folder = Annotated[Path | None, typer.Option(help="Where the database and the key are kept.")]
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The task id, or its beginning.")]

survey_app = typer.Typer(help="Make, open, close and read the collector's surveys.", no_args_is_help=True)
token_app = typer.Typer(help="Tokens for analysts.", no_args_is_help=True)


@reporting
def serve(
    settings: SettingsFile = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = None,
    folder: Folder = None,
    as_json: AsJson = False,
) -> Document:
    """Run the collector until it is told to stop: it takes reports, keeps them, and answers analysts."""
    check_installed()
    from veil.collector.serve import serve as run

    given: dict[str, Any] = {"host": host, "port": port}
    chosen = replace(_settings(settings, folder), **{name: value for name, value in given.items() if value is not None})
    run(chosen)
    return {"stopped": True}


@survey_app.command()
@reporting
def create(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="The task: a file that `veil plan --out` wrote.")],
    opens: Annotated[str | None, typer.Option(help="Takes reports from then on, as in 2026-01-31T12:00:00Z.")] = None,
    closes: Annotated[str | None, typer.Option(help="Takes none from then on.")] = None,
    precision: Annotated[int | None, typer.Option(help="Times are truncated to so many seconds.")] = None,
    minimum: Annotated[int | None, typer.Option(help="No answers below so many reports.")] = None,
    open_now: Annotated[bool, typer.Option("--open", help="Open it as well: it can not be changed any more.")] = False,
    settings: SettingsFile = None,
    folder: Folder = None,
    as_json: AsJson = False,
) -> Document:
    """Keep a survey as a draft."""
    from veil.cli.pipeline import load_survey
    from veil.collector.catalogue import Catalogue, draft_of

    chosen, survey = _settings(settings, folder), load_survey(task)
    options = {"opens": opens, "closes": closes, "precision": precision, "minimum": minimum}
    given = {name: value for name, value in options.items() if value is not None}
    draft = draft_of(survey, given, precision=chosen.precision, minimum=chosen.minimum)
    with _store(chosen, make=True) as store:
        catalogue = Catalogue(store)
        stored, _ = catalogue.create(draft)
        if open_now:
            stored = catalogue.open(stored.task)
        for_devices = _for_devices(chosen, stored) if open_now else {}
        return _shown({**catalogue.describe(stored), **for_devices, "database": _place(chosen)}, as_json)


@survey_app.command("open")
@reporting
def open_(task: TaskId, settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> Document:
    """Open a draft: from now on it takes reports and never changes."""
    from veil.collector.catalogue import Catalogue

    chosen = _settings(settings, folder)
    with _store(chosen) as store:
        catalogue = Catalogue(store)
        stored = catalogue.open(_found(store, task).task)
        return _shown({**catalogue.describe(stored), **_for_devices(chosen, stored)}, as_json)


@survey_app.command()
@reporting
def close(task: TaskId, settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> Document:
    """Close a survey: no report is stored after this."""
    from veil.collector.catalogue import Catalogue

    with _store(_settings(settings, folder)) as store:
        catalogue = Catalogue(store)
        return _shown(catalogue.describe(catalogue.close(_found(store, task).task)), as_json)


@survey_app.command()
@reporting
def show(task: TaskId, settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> Document:
    """Say how a survey stands."""
    from veil.collector.catalogue import Catalogue

    chosen = _settings(settings, folder)
    with _store(chosen) as store:
        stored = _found(store, task)
        return _shown({**Catalogue(store).describe(stored), **_for_devices(chosen, stored)}, as_json)


@survey_app.command("list")
@reporting
def list_surveys(settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> Document:
    """All surveys, oldest first."""
    from veil.collector.catalogue import Catalogue

    with _store(_settings(settings, folder)) as store:
        described = [Catalogue(store).describe(stored) for stored in store.surveys()]
    screen = console(as_json)
    for one in described:
        screen.print(f"{one['task']}  {one['state']:8} {one['reports']:>12,} reports", markup=False, soft_wrap=True)
    return {"surveys": described}


@survey_app.command()
@reporting
def export(
    task: TaskId,
    out: Annotated[Path, typer.Option("--out", "-o", help="The Parquet file to write.")],
    settings: SettingsFile = None,
    folder: Folder = None,
    as_json: AsJson = False,
) -> Document:
    """Write a survey's reports to a Parquet file, without ids and in no order of arrival."""
    from veil.cli.pipeline import check_output
    from veil.collector.exporting import export_parquet

    check_output(out, endings=(".parquet",))
    with _store(_settings(settings, folder)) as store:
        stored = _found(store, task)
        rows = export_parquet(store, stored, out)
    console(as_json).print(f"wrote {plural(rows, 'report')} to {out}", markup=False, soft_wrap=True)
    return {"task": stored.task, "reports": rows, "out": str(out)}


@survey_app.command()
@reporting
def rebuild(task: TaskId, settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> Document:
    """Count all reports again, and put the tally right if it was not."""
    from veil.collector.catalogue import parsed
    from veil.collector.tallying import is_maintained
    from veil.collector.tallying import rebuild as count_again
    from veil.errors import InputError

    with _store(_settings(settings, folder)) as store:
        stored = _found(store, task)
        survey = parsed(stored.document)
        if not is_maintained(survey):
            raise InputError("no tally is kept for this survey: its answers are counted when they are asked for")
        tally, right = count_again(store, stored, survey)
    people = 0 if tally is None else tally.people
    verdict = "the stored tally was right" if right else "the stored tally was wrong and is replaced"
    console(as_json).print(f"counted {plural(people, 'report')}: {verdict}")
    return {"task": stored.task, "reports": people, "right": right}


@survey_app.command()
@reporting
def purge(
    task: TaskId,
    yes: Annotated[bool, typer.Option("--yes", help="Really: the reports cannot be brought back.")] = False,
    settings: SettingsFile = None,
    folder: Folder = None,
    as_json: AsJson = False,
) -> Document:
    """Forget the reports of a closed survey; where a tally is kept, its answers stay."""
    from veil.collector.catalogue import parsed
    from veil.collector.tallying import catch_up, is_maintained
    from veil.errors import InputError

    if not yes:
        raise typer.BadParameter("this forgets reports for good: say --yes")
    with _store(_settings(settings, folder)) as store:
        stored = _found(store, task)
        if stored.state != "closed":
            raise InputError("only a closed survey's reports can be forgotten")
        survey = parsed(stored.document)
        if is_maintained(survey):
            catch_up(store, stored, survey)
        rows = store.purge(stored.key)
    console(as_json).print(f"forgot {plural(rows, 'report')}")
    return {"task": stored.task, "reports": rows}


@token_app.command("create")
@reporting
def create_token(
    scopes: Annotated[list[str], typer.Option("--scope", help="What it may do; several are fine. See docs/collector.")],
    survey: Annotated[str | None, typer.Option(help="Only for this survey: its task id, or its beginning.")] = None,
    note: Annotated[str, typer.Option(help="Whom or what it is for.")] = "",
    settings: SettingsFile = None,
    folder: Folder = None,
    as_json: AsJson = False,
) -> Document:
    """Make a token and print it: it cannot be shown again."""
    from veil.collector.tokens import issue_token

    with _store(_settings(settings, folder)) as store:
        task = None if survey is None else _found(store, survey).task
        record, secret = issue_token(store, scopes, task, note)
    console(as_json).print(secret, markup=False, soft_wrap=True)
    return {"name": record.name, "token": secret, "scopes": list(record.scopes), "task": task}


@token_app.command("list")
@reporting
def list_tokens(settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> Document:
    """All tokens by name, without their secrets."""
    with _store(_settings(settings, folder)) as store:
        tokens = store.tokens()
    screen = console(as_json)
    for token in tokens:
        state = "revoked" if token.revoked else "valid"
        limit = f" of {token.task[:12]}" if token.task else ""
        line = f"{token.name}  {token.created}  {state:7} {' '.join(token.scopes)}{limit}  {token.note}"
        screen.print(line, markup=False, soft_wrap=True)
    kept = ("name", "scopes", "task", "note", "created", "revoked")
    return {"tokens": [{name: getattr(token, name) for name in kept} for token in tokens]}


@token_app.command("revoke")
@reporting
def revoke_token(
    name: Annotated[str, typer.Argument(help="The token's name: the first column of `veil token list`.")],
    settings: SettingsFile = None,
    folder: Folder = None,
    as_json: AsJson = False,
) -> Document:
    """Refuse a token from now on."""
    from veil.errors import InputError

    with _store(_settings(settings, folder)) as store:
        if not store.revoke_token(name):
            raise InputError("there is no token of that name")
    console(as_json).print(f"revoked {name}", markup=False)
    return {"name": name, "revoked": True}


def check_installed() -> None:
    """Say what to install, where the collector's libraries are missing."""
    from importlib.util import find_spec

    from veil.errors import InputError

    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise InputError("the collector needs more libraries: pip install 'veil[collector]'")


def _settings(path: Path | None, folder: Path | None) -> Settings:
    from veil.collector.settings import load_settings

    found = load_settings(path)
    return found if folder is None else replace(found, folder=str(folder))


@contextlib.contextmanager
def _store(settings: Settings, *, make: bool = False) -> Iterator[Store]:
    """The collector's database; only where one may be made, an empty one does not pass for it."""
    from veil.collector.service import open_store
    from veil.errors import InputError

    file = settings.database_file
    if not make and file is not None and not file.exists():
        raise InputError(f"there is no database {file}: name its folder with --folder, or its settings with --settings")
    store = open_store(settings)
    try:
        yield store
    finally:
        store.close()


def _place(settings: Settings) -> str:
    """Which database it is; of a server neither the account nor the password."""
    from urllib.parse import urlsplit

    if settings.database_file is not None:
        return str(settings.database_file)
    parts = urlsplit(settings.database)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _for_devices(settings: Settings, stored: StoredSurvey) -> Document:
    """What goes into the devices' software: where the survey is, and the key that it must be signed with."""
    import base64

    from veil.collector.keys import load_key, public_bytes

    key = None
    if settings.key_path.exists() or settings.database_file is not None:  # a server's collectors have theirs elsewhere
        key = base64.urlsafe_b64encode(public_bytes(load_key(settings.key_path))).rstrip(b"=").decode()
    return {"path": f"/v1/surveys/{stored.task}", "key": key}


def _found(store: Store, task: str) -> StoredSurvey:
    """The one survey whose task id begins like this."""
    from veil.errors import InputError

    matching = [stored for stored in store.surveys() if stored.task.startswith(task)]
    if len(matching) != 1:
        raise InputError(f"expected the beginning of one task id; {plural(len(matching), 'survey')} begin like this")
    return matching[0]


def _shown(facts: Document, as_json: bool) -> Document:
    from veil.cli.tables import facts_table

    console(as_json).print(facts_table(facts))
    return facts
