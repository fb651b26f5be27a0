"""`veil ledger`: what a person's ledger has on record, and its day after a wrong clock."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.outcome import AsJson, Document, console, plural, reporting

if TYPE_CHECKING:
    from veil.device import Ledger

__all__ = ["ledger_app"]

ledger_app = typer.Typer(help="A person's ledger: what was spent, and its day.", no_args_is_help=True)

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="LEDGER", help="The ledger's file; default: veil/ledger below XDG_STATE_HOME or ~/.local/state."
    ),
]


@ledger_app.command("show")
@reporting
def show(ledger: File = None, as_json: AsJson = False) -> Document:
    """Show what was spent, and the day on which the next answer counts."""
    return _said(_opened(ledger), as_json)


@ledger_app.command("move-clock-back")
@reporting
def move_clock_back(
    ledger: File = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="YYYY-MM-DD", help="The day to move to, not before this device's. Default: this device's, UTC."
        ),
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Set the ledger's day back, after a wrong clock has set it forward. No spent budget is returned."""
    from veil.errors import InputError

    budget = _opened(ledger)
    try:
        day = budget.today if to is None else date.fromisoformat(to)
    except ValueError:
        raise InputError(f"--to: expected a day as 2026-01-31, got {to}") from None
    budget.move_clock_back(day)
    return _said(budget, as_json)


def _opened(path: Path | None) -> Ledger:
    from veil.cli.answering import default_ledger
    from veil.device import Ledger
    from veil.errors import InputError

    file = path or default_ledger()
    if not file.exists():
        raise InputError(f"there is no ledger {file}")
    return Ledger(file, lifetime=1.0)  # what is granted stands nowhere in the file, and is not asked here


def _said(ledger: Ledger, as_json: bool) -> Document:
    answers = sum(charge.cost > 0 for charge in ledger.charges)
    spent, today, day, device = float(ledger.spent), float(ledger.spent_today), ledger.day, ledger.today
    screen = console(as_json)
    screen.print(f"eps {spent:g} spent on {plural(answers, 'answer')}", markup=False)
    screen.print(f"the next answer counts on {day}, with eps {today:g} spent on that day", markup=False)
    if day > device:
        screen.print(
            f"this device's clock is at {device}: a daily budget is not renewed before {day} is over. If that day is"
            " wrong, move it back: veil ledger move-clock-back",
            markup=False,
            soft_wrap=True,
        )
    return {
        "path": str(ledger.path),
        "spent": spent,
        "answers": answers,
        "day": day.isoformat(),
        "spent_on_day": today,
        "device_day": device.isoformat(),
    }
