"""`veil ledger`: what a person's ledger has on record, its caps, and its day after a wrong clock."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.outcome import AsJson, Document, console, plural, reporting

if TYPE_CHECKING:
    from veil.device import Ledger
    from veil.device.journal import Caps

__all__ = ["ledger_app"]

ledger_app = typer.Typer(
    help="Show or change a person's ledger: its caps, the spent budget, and its day.", no_args_is_help=True
)

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="LEDGER", help="The ledger's file; default: veil/ledger below XDG_STATE_HOME or ~/.local/state."
    ),
]


@ledger_app.command("show")
@reporting
def show(ledger: File = None, as_json: AsJson = False) -> Document:
    """Show the caps, the spent budget, and the day that the next answer is charged to."""
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
    """Set the ledger's day back after a wrong clock moved it forward. Spent budget is not returned."""
    from veil.errors import InputError

    budget = _opened(ledger)
    try:
        day = budget.today if to is None else date.fromisoformat(to)
    except ValueError:
        raise InputError(f"--to: expected a day as 2026-01-31, got {to}") from None
    budget.move_clock_back(day)
    return _said(budget, as_json)


@ledger_app.command("raise")
@reporting
def raise_caps(
    ledger: File = None,
    lifetime: Annotated[float | None, typer.Option(help="Eps for all answers together.")] = None,
    per_day: Annotated[float | None, typer.Option(help="Eps for a day (UTC).")] = None,
    per_survey: Annotated[float | None, typer.Option(help="Eps for all answers to one survey together.")] = None,
    delta: Annotated[float | None, typer.Option(help="The delta that all answers together may have.")] = None,
    as_json: AsJson = False,
) -> Document:
    """Raise caps of the ledger. Its owner decides; the file records the change."""
    budget = _opened(ledger)
    budget.raise_caps(lifetime=lifetime, per_day=per_day, per_survey=per_survey, delta=delta)
    return _said(budget, as_json)


def _opened(path: Path | None) -> Ledger:
    from veil.cli.answering import default_ledger
    from veil.device import Ledger
    from veil.errors import InputError

    file = path or default_ledger()
    if not file.exists():
        raise InputError(f"there is no ledger {file}")
    return Ledger(file)


def _said(ledger: Ledger, as_json: bool) -> Document:
    answers = sum(charge.cost > 0 for charge in ledger.charges)
    spent, today, day, device = float(ledger.spent), float(ledger.spent_today), ledger.day, ledger.today
    screen = console(as_json)
    for caps in ledger.caps_history:
        screen.print(f"{caps.change} on {caps.day}: {_granted(caps)}", markup=False)
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
        **_named(ledger.caps),
        "caps": [{"change": caps.change, "day": caps.day.isoformat(), **_named(caps)} for caps in ledger.caps_history],
    }


def _named(caps: Caps) -> Document:
    return {
        "lifetime": float(caps.lifetime),
        "per_day": None if caps.per_day is None else float(caps.per_day),
        "per_survey": None if caps.per_survey is None else float(caps.per_survey),
        "delta": float(caps.delta),
    }


def _granted(caps: Caps) -> str:
    """Return the caps for people."""
    parts = [f"eps {caps.lifetime:g} for a lifetime"]
    parts += [] if caps.per_day is None else [f"{caps.per_day:g} per day"]
    parts += [] if caps.per_survey is None else [f"{caps.per_survey:g} per survey"]
    return ", ".join([*parts, f"delta {float(caps.delta):g}"])
