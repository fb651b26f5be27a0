"""`veil answer` and `veil ledger`: one person's answer, sent to a collector, and the ledger that pays."""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.output import AsJson, Document, console, flag, plural, reporting, warn
from veil.errors import DomainError, InputError, ServiceError

if TYPE_CHECKING:
    from veil.device import Ledger
    from veil.device.ledger_file import Caps
    from veil.domain import Domain

_MIDDLE = "/v1/surveys/"
_SAID = {
    "delivered": "delivered: the collector has acknowledged the report",
    "queued": "kept: the collector cannot take the report now; it is sent with the next answer",
}
_EARLIER = (
    "that was an earlier answer, which this device has forgotten; nothing was drawn, paid or sent now. If the answer"
    " has changed, send and pay for one more report: --changed"
)
File = Annotated[
    Path | None,
    typer.Argument(
        metavar="LEDGER", help="The ledger's file; default: veil/ledger below XDG_STATE_HOME or ~/.local/state."
    ),
]
ledger_app = typer.Typer(
    help="Show or change a person's ledger: its caps, the spent budget, and its day.", no_args_is_help=True
)


@reporting
def answer(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="The survey's address: https://collector.example/v1/surveys/ and its task id; or, with --name, the"
            " collector's: https://collector.example.",
        ),
    ],
    key: Annotated[
        list[str],
        typer.Option(help="The collector's public key, as `veil survey show` prints it; several while keys change."),
    ],
    lifetime: Annotated[
        float | None,
        typer.Option(
            help="The budget: eps for all answers together that this ledger pays. A new ledger needs it and stores"
            " it, as it does the other budgets; a smaller one lowers it for good, a larger one is refused: see veil"
            " ledger raise."
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            help="What to answer; - reads it from standard input, so that neither the list of processes nor the shell's"
            " history shows it. Items of a set with ; between them, a record as JSON, nothing for a missing value.",
        ),
    ] = None,
    preview: Annotated[
        bool, flag("--preview", "Say what an answer would tell, and what becomes of it. Nothing is paid or sent.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="The survey's name: its latest wave that takes answers is answered.")
    ] = None,
    per_day: Annotated[float | None, typer.Option(help="The budget of a day (UTC), if there is one.")] = None,
    per_survey: Annotated[
        float | None, typer.Option(help="The budget of one survey: eps for all answers to it together.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The delta that all answers together may have.")] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="The ledger's file; default: veil/ledger below XDG_STATE_HOME or ~/.local/state."),
    ] = None,
    public: Annotated[
        list[str] | None, typer.Option(metavar="NAME=N", help="A public column beside the answer, once for each.")
    ] = None,
    allow_fine_times: Annotated[
        bool, flag("--allow-fine-times", "Answer also where the collector keeps times finer than an hour.")
    ] = False,
    occasion: Annotated[
        str | None,
        typer.Option(help="For surveys answered again and again (Rappor): the occasion's name; default: the day, UTC."),
    ] = None,
    changed: Annotated[
        bool,
        typer.Option(
            "--changed", help="The answer was changed after it was delivered: send and pay for one more report."
        ),
    ] = False,
    patience: Annotated[
        float, typer.Option(min=0.0, help="For how many seconds to try again; what is left waits for the next answer.")
    ] = 30.0,
    as_json: AsJson = False,
) -> Document:
    """Answer a survey of a collector: check its privacy guarantee, charge the ledger, randomize, and send the report.

    The answer itself never leaves this machine. A report that cannot be sent waits in a private file beside the ledger,
    and is sent with the next answer. Sending the same answer again sends the same bytes, which are counted once. After
    delivery the answer is deleted: nothing more is sent or charged, except with --changed.
    """
    from veil.device import Client, Ledger

    if value is None and not preview:
        raise typer.BadParameter("expected --value, or --preview")
    collector, survey = _place(url, name)
    path = ledger or default_ledger()
    if lifetime is None and not path.exists():
        raise typer.BadParameter(f"there is no ledger {path} yet: expected its budget", param_hint="--lifetime")
    budget = Ledger(path, lifetime=lifetime, per_day=per_day, per_survey=per_survey, delta=delta)
    client = Client.open(collector, key, survey, budget, allow_fine_times=allow_fine_times)
    screen, told = console(as_json), client.statements
    if preview:
        for sentence in told.values():
            screen.print_line(sentence)
        return {"task": client.survey.task, "wave": client.wave, "statements": told}
    if "weak" in told:
        warn(told["weak"])
    if client.survey.public:
        warn(told["public"])
    if allow_fine_times:
        warn(told["time"])
    held = held_value(client.survey.domain, _given(value or ""))
    receipt = client.answer(held, _columns(public), occasion=occasion, changed=changed, patience=patience)
    if receipt.reason is not None:
        said = f"the collector will not take this report, and it is not sent again: {receipt.reason.message}"
        raise ServiceError(receipt.reason.status, receipt.reason.code, said)
    facts: Document = {"state": receipt.state, "task": client.survey.task, "wave": client.wave}
    facts |= {"cost": client.survey.guarantee.epsilon, "left": float(budget.left), "waiting": client.waiting}
    if receipt.earlier:
        facts["earlier"] = True
    if survey != client.survey.task:
        screen.print_line(_asked(survey, client.wave, client.text(_language())))
    screen.print_line(_SAID[receipt.state])
    if receipt.earlier:
        screen.print_line(_EARLIER)
    left = f"an answer costs eps {facts['cost']:g}; {facts['left']:g} of {budget.lifetime:g} left"
    screen.print_line(f"{left}; {plural(client.waiting, 'report')} waiting")
    return facts


def _place(url: str, name: str | None) -> tuple[str, str]:
    """The collector's address, and the task id or name of the survey there."""
    collector, middle, survey = url.rstrip("/").rpartition(_MIDDLE)
    if middle and name is None:
        return collector, survey.removeprefix("by-name/")
    if middle or name is None:
        raise InputError(
            f"expected either the address of a survey, as https://collector.example{_MIDDLE}TASK, or the collector's"
            " address and --name"
        )
    return url, name


def _asked(name: str, wave: int | None, text: str | None) -> str:
    """Return the name, wave and text of the survey that was answered."""
    return f"{name}, wave {wave}" + (f": {text}" if text else "")


def _language() -> str:
    """The language of this shell, as in "de-CH"."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "en")
    return named.partition(".")[0].replace("_", "-")


def held_value(domain: Domain, text: str) -> Any:
    """What a person holds, from text as it would stand in a file. Errors say what was expected, and never the text."""
    from veil.domain import Items, Record

    if isinstance(domain, Record):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise DomainError('expected a record as JSON, as {"age": 30, "sex": "f"}')
        return {name: _timed(dict(domain.attributes).get(name), part) for name, part in record.items()}
    if isinstance(domain, Items):
        return [_one(domain.universe, item.strip()) for item in text.split(";") if item.strip()]
    return _one(domain, text) if text else None


def _one(domain: Domain, text: str) -> Any:
    from veil.domain import Categories, Text
    from veil.domain.text_values import is_time

    labels = domain.labels if isinstance(domain, Categories) else None
    if isinstance(domain, Text) or is_time(domain):
        return _timed(domain, text)
    if labels is not None and text in labels:
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    if labels is not None:
        return text  # the domain says what it expects
    raise DomainError("expected a number")


def _timed(domain: Domain | None, value: Any) -> Any:
    from veil.domain.text_values import is_time, parse_time

    if domain is None or not is_time(domain) or not isinstance(value, str):
        return value
    found = parse_time(value)
    if found is None:
        raise DomainError("expected a time, as 2026-01-31T12:00:00")
    return found


def _given(value: str) -> str:
    """The value, or standard input without the end of its line."""
    if value != "-":
        return value
    text = sys.stdin.read(1 << 20)
    return text.removesuffix("\n").removesuffix("\r")


def _columns(given: list[str] | None) -> dict[str, list[int]] | None:
    if not given:
        return None
    columns = {}
    for part in given:
        name, equals, number = part.partition("=")
        try:
            columns[name] = [int(number)]
        except ValueError:
            raise InputError("expected a public column as NAME=N, N an integer on the column's scale") from None
        if not equals:
            raise InputError("expected a public column as NAME=N, N an integer on the column's scale")
    return columns


def default_ledger() -> Path:
    """Return where a person's ledger is kept unless another file is named."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "veil" / "ledger"


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
    from veil.device import Ledger

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
