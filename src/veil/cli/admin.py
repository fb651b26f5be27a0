"""Commands for the operator of a collector's database: `token`, `key`, `audit`, `backup`, `restore` and `check`.

`command` makes a command on the database, also those of `veil survey`: it opens the database and writes an audit entry.
Everything of the collector is imported when a command runs.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from veil.cli.options import scopes
from veil.cli.output import AsJson, Document, Verdict, console, flag, plural, progress, reporting, show_facts, warn
from veil.errors import InputError, StoreError, VeilError
from veil.tools.messages import missing_extra

if TYPE_CHECKING:
    from veil.cli.output import Screen
    from veil.collector.settings import CollectorSettings
    from veil.collector.store.base import AuditEntry, Store
    from veil.collector.store.blocks import BlockStore
    from veil.collector.surveys.catalogue import Catalogue
    from veil.collector.surveys.rounds import RunningStudies

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", help="The settings, a TOML file; default: VEIL_SETTINGS, or veil.toml if it is there."),
]
Folder = Annotated[Path | None, typer.Option(help="The folder of the database and the key; default: veil-collector.")]
New = Annotated[bool, flag("--new", "Make the database and its key if there are none; without it, that is an error.")]


class _ListsByDefault(TyperGroup):
    """A group that lists where no command is named: `veil audit --last 5` is `veil audit list --last 5`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not args or args[0] not in (*self.commands, "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


token_app = typer.Typer(help="Create, list and revoke tokens of analysts.", no_args_is_help=True)
audit_app = typer.Typer(
    help="Show or prune the audit log: who asked what and when. Without a subcommand it runs `list`.",
    cls=_ListsByDefault,
)
key_app = typer.Typer(help="Show, create or adopt the key that signs a collector's surveys.", no_args_is_help=True)


@dataclass(frozen=True)
class DatabaseContext:
    """The collector's database that a command works on, and the screen for its output."""

    settings: CollectorSettings
    store: Store
    catalogue: Catalogue
    studies: RunningStudies
    screen: Screen

    def shown(self, facts: Document) -> Document:
        """Facts on the screen, and as a document."""
        show_facts(self.screen, facts)
        return facts

    def note(self, action: str, given: Document, task: str | None = None) -> None:
        """Add an audit entry: who asks for what, of which task, with which options. Never the result."""
        self.store.note(self.entry(action, given, task))

    def entry(self, action: str, given: Document, task: str | None = None) -> AuditEntry:
        """Return an audit entry by the account of this process, at this moment."""
        from veil.collector.store.base import AuditEntry

        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told = {name: value for name, value in given.items() if not _unsaid(value)} | _sudo()
        asked = {name: str(value) if isinstance(value, Path) else value for name, value in told.items()}
        return AuditEntry(now, f"cli:{_account()}", action, task, json.dumps(asked, default=str))

    @contextlib.contextmanager
    def noted(self, action: str, given: Document, task: str | None = None) -> Iterator[None]:
        """Note what is asked before it is done; once more where it was refused, or where the database failed.

        What was done until the database failed, nobody knows here: it may be all.
        """
        self.note(action, given, task)
        try:
            yield
        except (VeilError, typer.BadParameter) as problem:
            outcome = "failed" if isinstance(problem, StoreError) else "refused"
            with contextlib.suppress(StoreError):
                self.note(action, {"outcome": outcome}, task)
            raise

    def meant(self, given: Document) -> str | None:
        """The task of the survey that a command is given; None where it is given none, or says nothing clear."""
        text = given.get("task") or given.get("study") or given.get("survey")
        if not text:  # also `veil backup`, whose database may be of an earlier schema
            return None
        with contextlib.suppress(InputError):
            return self.catalogue.chosen(text).task
        with contextlib.suppress(InputError):
            study = self.studies.beginning(text)
            return None if study is None else self.studies.first_task(study)
        return None

    def said(self, line: str, **facts: Any) -> Document:
        """A line on the screen, and facts as a document."""
        self.screen.print_line(line)
        return facts


def _shared(*, settings: SettingsFile = None, folder: Folder = None, as_json: AsJson = False) -> None:
    """The options of every command on the database."""


def command(
    app: typer.Typer, name: str, action: str | None = None, *, old: bool = False
) -> Callable[[Callable[..., Document]], None]:
    """A command on the database, which is its first argument; it gets the options --settings, --folder and --json.

    A command with a parameter `new` may make the database if that is true; every other one refuses an empty or missing
    one. A database of an earlier schema is refused unless an `old` one may be used. With an `action`, the audit log
    says that it was asked for, by whom, of which survey and with which options, before anything is done.
    """

    def register(work: Callable[..., Document]) -> None:
        @functools.wraps(work)
        def run(settings: Path | None, folder: Path | None, as_json: bool, **given: Any) -> Document:
            from veil.collector.service import open_store
            from veil.collector.surveys.catalogue import Catalogue
            from veil.collector.surveys.rounds import RunningStudies

            chosen = settings_of(settings, folder)
            check_owner(chosen)
            store = open_store(chosen, make=bool(given.get("new")), old="keep" if old else "refuse")
            try:
                catalogue = Catalogue(store)
                on = DatabaseContext(chosen, store, catalogue, RunningStudies(store, catalogue), console(as_json))
                if action is None:
                    return work(on, **given)
                with on.noted(action, given, on.meant(given)):
                    return work(on, **given)
            finally:
                store.close()

        _, *own = inspect.signature(work, eval_str=True).parameters.values()
        every = [*own, *inspect.signature(_shared, eval_str=True).parameters.values()]
        run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]  # what typer reads
        run.__annotations__ = {part.name: part.annotation for part in every}
        app.command(name)(reporting(run))

    return register


def check_owner(settings: CollectorSettings) -> None:
    """Refuse to work in another account's folder: what is written there could not be used by the collector any more.

    A folder of root in which this account may write is one that was mounted for it.
    """
    if sys.platform == "win32":
        return
    mine = os.geteuid()
    file = settings.database_file
    for path in [Path(settings.folder), *([file.parent, file] if file is not None else [])]:
        with contextlib.suppress(OSError):
            owner = path.stat().st_uid
            if owner != mine and not (owner == 0 and path.is_dir() and os.access(path, os.W_OK)):
                name = _name_of(owner)
                as_owner = f"sudo -u {name.replace('uid-', '#')} veil ..."
                raise InputError(
                    f"account: expected {name}, the owner of {path}, got {_name_of(mine)}: run it as in {as_owner}"
                )


def _unsaid(value: Any) -> bool:
    """Whether an option has nothing to tell; 0 tells something."""
    return value is None or value is False or value in ("", [], ())


def check_installed() -> None:
    """Say what to install, where the collector's libraries are missing."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise missing_extra("the collector needs more libraries", "collector")


def _account() -> str:
    """Return the account that this process runs as, whatever the environment says."""
    return os.getlogin() if sys.platform == "win32" else _name_of(os.getuid())  # there it is the process's own


def _name_of(uid: int) -> str:
    if sys.platform == "win32":
        return f"uid-{uid}"
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def _sudo() -> Document:
    """Return the uid that the environment names as the caller of sudo. The key says that it was not verified."""
    uid = os.environ.get("SUDO_UID", "")
    return {"sudo_uid_unverified": int(uid)} if uid.isascii() and uid.isdigit() and len(uid) <= 10 else {}


def settings_of(path: Path | None, folder: Path | None) -> CollectorSettings:
    """The settings of a file, and the folder where one is given."""
    from veil.collector.settings import load_settings

    found = load_settings(path)
    return found if folder is None else replace(found, folder=str(folder))


def register(app: typer.Typer) -> None:
    """Add the commands that stand by themselves."""
    command(app, "backup", "backup", old=True)(backup)
    command(app, "restore")(restore)
    command(app, "check")(check)


def backup(
    on: DatabaseContext,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; there must be none.")],
) -> Document:
    """Back up the collector's database to a file. The collector may keep running.

    The backup is a consistent snapshot without the signing key: store the key separately.
    """
    from veil.collector.store.backup import back_up

    reports = back_up(_blocks(on), out)
    if damaged := on.store.missing():
        warn(f"{plural(damaged, 'report is', 'reports are')} damaged, in the backup as well (see veil check)")
    return on.said(f"wrote {plural(reports, 'report')} to {out}", out=str(out), reports=reports, damaged=damaged)


def restore(
    on: DatabaseContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `veil backup` wrote, of this version or before.")],
    new: New = False,
) -> Document:
    """Restore a backup of SQLite or PostgreSQL into an empty database of either kind."""
    from veil.collector.store.backup import restore as copy_back

    reports = copy_back(file, _blocks(on), on.settings.place, Path(on.settings.folder))
    on.note("restore", {"file": file})  # only now: a backup is copied into an empty database, whose log is empty, too
    return on.said(f"restored {plural(reports, 'report')} to {on.settings.place}", reports=reports)


def check(on: DatabaseContext) -> Document:
    """Check the stored reports and their ids for damage. The collector may keep running.

    Prints each damaged part and the number of reports that are missing because of it. The exit code is 5 if there is
    damage.
    """
    from veil.collector.store.checking import find_damage

    surveys = on.store.surveys()
    reports = sum(one.reports for one in surveys if not one.is_purged)
    with progress("checking", reports) as advance:
        problems = list(find_damage(_blocks(on), advance))
    for one in problems:
        where = f"survey {one.task[:12]}, {one.part}" if one.task else one.part
        lost = f" ({plural(one.reports, 'report')} missing)" if one.reports else ""
        on.said(" ".join(f"{where} {one.place}".split()) + f": {one.message}{lost}")
    missing = sum(one.reports for one in problems)
    facts = {"surveys": len(surveys), "reports": reports, "missing": missing, "damaged": list(map(vars, problems))}
    if problems:
        on.said(f"{plural(len(problems), 'damaged part')}; {plural(missing, 'report is', 'reports are')} missing")
        return Verdict(facts, 5)
    return on.said(f"no damage in {plural(reports, 'report')} of {plural(len(surveys), 'survey')}", **facts)


@command(audit_app, "list")
def list_audit(
    on: DatabaseContext, limit: Annotated[int, typer.Option("--last", min=1, help="How many entries to show.")] = 50
) -> Document:
    """Show entries of the audit log, newest first: analysts by token, operators by account."""
    entries = on.store.audit(limit)
    for entry in entries:
        on.said(f"{entry.at}  {entry.token:16} {entry.action:14} {(entry.task or '')[:12]:12} {entry.parameters}")
    return {"entries": [vars(entry) for entry in entries]}


@command(audit_app, "prune")
def prune_audit(
    on: DatabaseContext,
    before: Annotated[
        str, typer.Option(metavar="YYYY-MM-DD", help="Erase the entries of earlier days (UTC); at the latest today.")
    ],
) -> Document:
    """Erase old entries of the audit log. A new entry records their number and the operator's account.

    Entries about earlier pruning stay.
    """
    from veil.collector.store.base import PRUNED

    try:
        day = date.fromisoformat(before)
    except ValueError:
        raise InputError(f"--before: expected a day as 2026-01-31, got {before}") from None
    if day > (today := datetime.now(UTC).date()):
        raise InputError(f"--before: expected a day up to today ({today}), got {day}")
    count = on.store.prune_audit(
        day.isoformat(), lambda erased: on.entry(PRUNED, {"before": day.isoformat(), "entries": erased})
    )
    line = f"erased {plural(count, 'audit entry', 'audit entries')} from before {day}"
    return on.said(line, before=day.isoformat(), entries=count)


@command(token_app, "create")
def create_token(
    on: DatabaseContext,
    scopes: Annotated[
        list[str],
        typer.Option(
            "--scope",
            help="What it may do, as in answers:read; several are fine.",
            autocompletion=scopes,
        ),
    ],
    survey: Annotated[
        str | None,
        typer.Option(help="Only for this survey: its name (drinks, or drinks/2), its task id, or the beginning of it."),
    ] = None,
    note: Annotated[str, typer.Option(help="Whom or what it is for.")] = "",
    name: Annotated[str | None, typer.Option(help="What it is called in lists and in the audit log.")] = None,
    days: Annotated[int | None, typer.Option(help="It ends after so many days; default: when it is revoked.")] = None,
) -> Document:
    """Create a token and print it. It cannot be shown again."""
    from veil.collector.keys_and_tokens import issue_token, new_name

    name = new_name() if name is None else name  # the audit log knows it, too
    asked = {"scopes": scopes, "survey": survey, "note": note, "name": name, "days": days}
    with on.noted("create-token", asked, on.meant(asked)):
        task = None if survey is None else on.catalogue.chosen(survey).task
        record, secret = issue_token(on.store, scopes, task, note, name=name, days=days)
    facts = {"name": record.name, "scopes": list(record.scopes), "task": task, "expires": record.expires}
    return on.said(secret, token=secret, **facts)


@command(token_app, "list")
def list_tokens(on: DatabaseContext) -> Document:
    """List all tokens by name with their validity, without their secrets."""
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    for token in (tokens := on.store.tokens()):
        over = token.expires is not None and token.expires <= today
        state = "revoked" if token.revoked else "expired" if over else "valid"
        until = f"until {token.expires}" if token.expires else "for good"
        limit = f" of {token.task[:12]}" if token.task else ""
        line = f"{token.name:8}  {token.created}  {state:7} {until:16} {' '.join(token.scopes)}{limit}  {token.note}"
        on.said(line)
    kept = ("name", "scopes", "task", "note", "created", "revoked", "expires")
    return {"tokens": [{name: getattr(token, name) for name in kept} for token in tokens]}


@command(token_app, "revoke", "revoke-token")
def revoke_token(
    on: DatabaseContext,
    name: Annotated[str, typer.Argument(help="The token's name: the first column of `veil token list`.")],
) -> Document:
    """Revoke a token: the collector refuses it from now on."""
    if not on.store.revoke_token(name):
        raise InputError("there is no token of that name")
    return on.said(f"revoked {name}", name=name, revoked=True)


@command(key_app, "show")
def show_key(on: DatabaseContext) -> Document:
    """Show the public key that devices verify surveys with, and its fingerprint."""
    from veil.collector.keys_and_tokens import check_key_file, fingerprint, load_key
    from veil.collector.surveys.catalogue import key_text

    check_key_file(on.store, on.settings.key_path)
    key = load_key(on.settings.key_path)
    return on.shown({"key": key_text(key), "fingerprint": fingerprint(key), "file": str(on.settings.key_path)})


@key_app.command("make")
@reporting
def make_key(
    file: Annotated[Path, typer.Argument(help="The file to write; there must be none.")], as_json: AsJson = False
) -> Document:
    """Create another key and show its public key. Give it to devices before you adopt the key."""
    check_installed()
    from veil.collector.keys_and_tokens import fingerprint
    from veil.collector.keys_and_tokens import make_key as made
    from veil.collector.surveys.catalogue import key_text

    key = made(file)
    facts = {"key": key_text(key), "fingerprint": fingerprint(key), "file": str(file)}
    show_facts(console(as_json), facts)
    return facts


@command(key_app, "adopt", "adopt-key")
def adopt_key(
    on: DatabaseContext, yes: Annotated[bool, flag("--yes", "Really do it: devices must know the new key.")] = False
) -> Document:
    """From now on, sign this database's surveys with the key in the key file."""
    from veil.collector.keys_and_tokens import adopt, fingerprint, is_own, load_key

    path = on.settings.key_path
    if path.exists() and is_own(on.store, key := load_key(path)):
        return on.said(f"the key is {(mark := fingerprint(key))} already: nothing was changed", fingerprint=mark)
    if not yes:
        raise typer.BadParameter("devices that know only the previous key will refuse all surveys: say --yes")
    mark = adopt(on.store, load_key(path))
    warn("collectors that are running hold the previous key and publish no survey now: restart every one of them")
    return on.said(f"the key is now {mark}", fingerprint=mark)


def _blocks(on: DatabaseContext) -> BlockStore:
    from veil.collector.store.blocks import BlockStore

    assert isinstance(on.store, BlockStore)
    return on.store
