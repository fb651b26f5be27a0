"""What commands on a collector's own database share: how it is opened, and what the audit log says of them.

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
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.outcome import AsJson, Document, console, flag, reporting
from veil.errors import InputError, StoreError, VeilError
from veil.tools.messages import missing_extra

if TYPE_CHECKING:
    from veil.cli.screen import Screen
    from veil.collector.settings import Settings
    from veil.collector.store.base import AuditEntry, Store
    from veil.collector.surveys.catalogue import Catalogue
    from veil.collector.surveys.rounds import Studies

__all__ = ["Folder", "New", "On", "SettingsFile", "check_installed", "check_owner", "command", "settings_of"]

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", help="The settings, a TOML file; default: VEIL_SETTINGS, or veil.toml if it is there."),
]
Folder = Annotated[Path | None, typer.Option(help="The folder of the database and the key; default: veil-collector.")]
New = Annotated[bool, flag("--new", "Make the database and its key if there are none; without it, that is an error.")]


@dataclass(frozen=True)
class On:
    """What a command works on: the collector's database, and where people read what came of it."""

    settings: Settings
    store: Store
    catalogue: Catalogue
    studies: Studies
    screen: Screen

    def shown(self, facts: Document) -> Document:
        """Facts on the screen, and as a document."""
        from veil.cli.tables import show_facts

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
            from veil.collector.surveys.rounds import Studies

            chosen = settings_of(settings, folder)
            check_owner(chosen)
            store = open_store(chosen, make=bool(given.get("new")), old="keep" if old else "refuse")
            try:
                catalogue = Catalogue(store)
                on = On(chosen, store, catalogue, Studies(store, catalogue), console(as_json))
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


def check_owner(settings: Settings) -> None:
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


def settings_of(path: Path | None, folder: Path | None) -> Settings:
    """The settings of a file, and the folder where one is given."""
    from veil.collector.settings import load_settings

    found = load_settings(path)
    return found if folder is None else replace(found, folder=str(folder))
