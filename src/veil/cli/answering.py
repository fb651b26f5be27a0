"""`veil answer`: one person's answer from a shell, randomized here and sent to a collector."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.outcome import AsJson, Document, console, flag, plural, reporting, warn
from veil.errors import DomainError, InputError, ServiceError

if TYPE_CHECKING:
    from veil.domain import Domain

__all__ = ["answer", "default_ledger", "held_value"]

_MIDDLE = "/v1/surveys/"


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


_SAID = {
    "delivered": "delivered: the collector has acknowledged the report",
    "queued": "kept: the collector cannot take the report now; it is sent with the next answer",
}

_EARLIER = (
    "that was an earlier answer, which this device has forgotten; nothing was drawn, paid or sent now. If the answer"
    " has changed, send and pay for one more report: --changed"
)


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
