"""`veil backup`, `veil restore`, `veil audit` and `veil key ...`: what an operator does with a collector's database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.collecting import On, command
from veil.cli.outcome import Document, flag, plural

if TYPE_CHECKING:
    from veil.collector.blocks import BlockStore

__all__ = ["key_app", "register"]

key_app = typer.Typer(help="The key that a collector signs surveys with.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands that stand by themselves."""
    command(app, "backup", "backup", old=True)(backup)
    command(app, "restore", make=True)(restore)
    command(app, "audit")(audit)


def backup(
    on: On, out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; there must be none.")]
) -> Document:
    """Copy the collector's database to a file, as it is at one moment; the collector may go on meanwhile.

    The signing key is not in it: keep that apart.
    """
    from veil.collector.backup import back_up

    reports = back_up(_blocks(on), out)
    return on.said(f"wrote {plural(reports, 'report')} to {out}", out=str(out), reports=reports)


def restore(
    on: On,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `veil backup` wrote, of this version or before.")],
) -> Document:
    """Copy a backup into an empty database, SQLite or PostgreSQL, whichever it was made of."""
    from veil.collector.backup import restore as copy_back

    reports = copy_back(file, _blocks(on))
    on.note("restore", {"file": file})  # only now: a backup is copied into an empty database, whose log is empty, too
    return on.said(f"restored {plural(reports, 'report')} to {on.settings.place}", reports=reports)


def audit(
    on: On, limit: Annotated[int, typer.Option("--last", min=1, help="How many entries to show.")] = 50
) -> Document:
    """Show who asked what and when, newest first: analysts by their token, operators by their account."""
    entries = on.store.audit(limit)
    for entry in entries:
        on.said(f"{entry.at}  {entry.token:16} {entry.action:14} {(entry.task or '')[:12]:12} {entry.parameters}")
    return {"entries": [vars(entry) for entry in entries]}


@command(key_app, "show")
def show_key(on: On) -> Document:
    """Show the public key that devices check surveys with, and its fingerprint."""
    from veil.collector.documents import key_text
    from veil.collector.keys import check_key_file, fingerprint, load_key

    check_key_file(on.store, on.settings.key_path)
    key = load_key(on.settings.key_path)
    return on.shown({"key": key_text(key), "fingerprint": fingerprint(key), "file": str(on.settings.key_path)})


@command(key_app, "adopt", "adopt-key")
def adopt_key(
    on: On, yes: Annotated[bool, flag("--yes", "Really do it: devices must know the new key.")] = False
) -> Document:
    """Sign this database's surveys with the key in the key file from now on, in place of the one before."""
    from veil.collector.keys import adopt, load_key

    if not yes:
        raise typer.BadParameter("devices that know only the key before will refuse all surveys: say --yes")
    return on.said(f"the key is now {(mark := adopt(on.store, load_key(on.settings.key_path)))}", fingerprint=mark)


def _blocks(on: On) -> BlockStore:
    from veil.collector.blocks import BlockStore

    assert isinstance(on.store, BlockStore)
    return on.store
