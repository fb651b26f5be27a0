"""What an operator does with a database: `veil token`, `veil key`, `veil audit`, `veil backup`, `restore`, `check`."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from veil.cli import completing
from veil.cli.database import New, On, check_installed, command
from veil.cli.outcome import AsJson, Document, Verdict, console, flag, plural, reporting, warn
from veil.errors import InputError

if TYPE_CHECKING:
    from veil.collector.store.blocks import BlockStore

__all__ = ["audit_app", "key_app", "register", "token_app"]


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


def register(app: typer.Typer) -> None:
    """Add the commands that stand by themselves."""
    command(app, "backup", "backup", old=True)(backup)
    command(app, "restore")(restore)
    command(app, "check")(check)


def backup(
    on: On, out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; there must be none.")]
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
    on: On,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `veil backup` wrote, of this version or before.")],
    new: New = False,
) -> Document:
    """Restore a backup of SQLite or PostgreSQL into an empty database of either kind."""
    from veil.collector.store.backup import restore as copy_back

    reports = copy_back(file, _blocks(on), on.settings.place, Path(on.settings.folder))
    on.note("restore", {"file": file})  # only now: a backup is copied into an empty database, whose log is empty, too
    return on.said(f"restored {plural(reports, 'report')} to {on.settings.place}", reports=reports)


def check(on: On) -> Document:
    """Check the stored reports and their ids for damage. The collector may keep running.

    Prints each damaged part and the number of reports that are missing because of it. The exit code is 5 if there is
    damage.
    """
    from veil.cli.progress import progress
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
    on: On, limit: Annotated[int, typer.Option("--last", min=1, help="How many entries to show.")] = 50
) -> Document:
    """Show entries of the audit log, newest first: analysts by token, operators by account."""
    entries = on.store.audit(limit)
    for entry in entries:
        on.said(f"{entry.at}  {entry.token:16} {entry.action:14} {(entry.task or '')[:12]:12} {entry.parameters}")
    return {"entries": [vars(entry) for entry in entries]}


@command(audit_app, "prune")
def prune_audit(
    on: On,
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
    on: On,
    scopes: Annotated[
        list[str],
        typer.Option(
            "--scope",
            help="What it may do, as in answers:read; several are fine.",
            autocompletion=completing.scopes,
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
    from veil.collector.access import issue_token, new_name

    name = new_name() if name is None else name  # the audit log knows it, too
    asked = {"scopes": scopes, "survey": survey, "note": note, "name": name, "days": days}
    with on.noted("create-token", asked, on.meant(asked)):
        task = None if survey is None else on.catalogue.chosen(survey).task
        record, secret = issue_token(on.store, scopes, task, note, name=name, days=days)
    facts = {"name": record.name, "scopes": list(record.scopes), "task": task, "expires": record.expires}
    return on.said(secret, token=secret, **facts)


@command(token_app, "list")
def list_tokens(on: On) -> Document:
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
    on: On, name: Annotated[str, typer.Argument(help="The token's name: the first column of `veil token list`.")]
) -> Document:
    """Revoke a token: the collector refuses it from now on."""
    if not on.store.revoke_token(name):
        raise InputError("there is no token of that name")
    return on.said(f"revoked {name}", name=name, revoked=True)


@command(key_app, "show")
def show_key(on: On) -> Document:
    """Show the public key that devices verify surveys with, and its fingerprint."""
    from veil.collector.access import check_key_file, fingerprint, load_key
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
    from veil.cli.tables import show_facts
    from veil.collector.access import fingerprint
    from veil.collector.access import make_key as made
    from veil.collector.surveys.catalogue import key_text

    key = made(file)
    facts = {"key": key_text(key), "fingerprint": fingerprint(key), "file": str(file)}
    show_facts(console(as_json), facts)
    return facts


@command(key_app, "adopt", "adopt-key")
def adopt_key(
    on: On, yes: Annotated[bool, flag("--yes", "Really do it: devices must know the new key.")] = False
) -> Document:
    """From now on, sign this database's surveys with the key in the key file."""
    from veil.collector.access import adopt, fingerprint, is_own, load_key

    path = on.settings.key_path
    if path.exists() and is_own(on.store, key := load_key(path)):
        return on.said(f"the key is {(mark := fingerprint(key))} already: nothing was changed", fingerprint=mark)
    if not yes:
        raise typer.BadParameter("devices that know only the previous key will refuse all surveys: say --yes")
    mark = adopt(on.store, load_key(path))
    warn("collectors that are running hold the previous key and publish no survey now: restart every one of them")
    return on.said(f"the key is now {mark}", fingerprint=mark)


def _blocks(on: On) -> BlockStore:
    from veil.collector.store.blocks import BlockStore

    assert isinstance(on.store, BlockStore)
    return on.store
