"""Commands of the parties of a shuffle, each a process of its own: `veil shuffler` and most of `veil peos`."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.options import Column, MissingValues
from veil.cli.output import (
    AsJson,
    Document,
    console,
    flag,
    plain_table,
    plural,
    progress,
    reporting,
    shell_command,
    warn,
)
from veil.errors import InputError, PartyError, WireError
from veil.tools.messages import escape_text

if TYPE_CHECKING:
    from rich.table import Table

    from veil.shuffle.settings import PartySettings


Config = Annotated[Path, typer.Option("--config", "-c", help="The party's file of settings (TOML).")]
_FULL_BITS = 3072


@reporting
def keys(
    folder: Annotated[Path, typer.Argument(help="The folder to write: it must not hold a plan yet.")],
    study: Annotated[Path, typer.Option(help="The study to collect, from `veil peos plan` or `veil plan`.")],
    shufflers: Annotated[int | None, typer.Option(help="How many shufflers: an odd number from 3. Default: 3.")] = None,
    least: Annotated[
        int | None, typer.Option(help="No shuffler closes with fewer people. Default: as the study was planned.")
    ] = None,
    fakes: Annotated[
        int | None, typer.Option(help="How many fake reports they add. Default: as the study was planned.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where the shufflers listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The first shuffler's port; the others follow.")] = 7101,
    address: Annotated[
        list[str] | None, typer.Option(help="Each shuffler's HOST:PORT, in their order, instead of --host and --port.")
    ] = None,
    bits: Annotated[int, typer.Option(help="Bits of the server's key; fewer than 3072 are for tests.")] = 3072,
    ring: Annotated[int, typer.Option(help="Bits of a report on the way: 32 or 64.")] = 64,
    collection: Annotated[str, typer.Option(help="The collection's name.")] = "collection-1",
    protocol: Annotated[
        str, typer.Option(help="peos, or sequential: cheaper, but every shuffler can poison the result.")
    ] = "peos",
    public: Annotated[
        Path | None,
        typer.Option(
            help="The server's public key, from `veil peos secret`: then no key and no certificate is made here."
        ),
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Set up a shuffle between parties: a test authority, keys, the plan, and each party's settings.

    Without --public, this machine creates all keys and could impersonate every party: use it for tests only. With
    --public, it writes only public files, and each party creates its own keys.
    """
    from veil.cli.input import check_inputs, load
    from veil.shuffle.collection import make_folder
    from veil.shuffle.plan import Address

    loaded = load(study)
    if address and shufflers not in (None, len(address)):
        raise InputError(f"{len(address)} addresses are given for {shufflers} shufflers")
    given = address or [f"{host}:{port + i}" for i in range(3 if shufflers is None else shufflers)]
    places = [Address.read(one) for one in given]
    key = None
    if public is not None:
        check_inputs(public)
        key = _document(public)
    plan = make_folder(
        folder,
        loaded.study,
        places,
        collection=collection,
        fakes=fakes,
        bits=bits,
        ring=ring,
        protocol=protocol,
        least=least,
        public=key,
    )
    screen = console(as_json)
    numbers = f"{len(places)} shufflers, {plan.fakes:,} fakes, at least {plan.least:,} people"
    screen.print_line(f"{folder}: collection {plan.collection}, {numbers}")
    if not plan.fakes:
        warn("without fakes nothing hides a person from the server and all others together: see `veil peos plan`")
    if protocol == "peos" and key is None and bits < _FULL_BITS:
        warn(f"a key of {bits} bits protects nobody: it is for tests")
    if key is None:
        screen.print(
            "Everybody's keys are in this folder: for tests and first steps. docs/peos.md says how parties make"
        )
        screen.print("their own. Next, each on its own machine:")
    for name in plan.names:
        screen.print_line(f"  {shell_command('veil', 'shuffler', '--config', folder / f'{name}.toml')}")
    server_file, device_file = folder / "server.toml", folder / "device.toml"
    screen.print_line(f"  {shell_command('veil', 'peos', 'submit', 'values.csv', '--config', device_file)}")
    if protocol == "sequential":
        words = ("veil", "peos", "spot-checks", "100", "--config", server_file, "--device", device_file)
        checks = f"  {shell_command(*words)}"
        screen.print_line(checks)
    screen.print_line(f"  {shell_command('veil', 'peos', 'server', '--config', server_file)}")
    facts = {"fakes": plan.fakes, "least": plan.least, "collection": plan.collection}
    return {"folder": str(folder), "shufflers": list(plan.names), **facts}


@reporting
def secret(
    folder: Annotated[Path, typer.Argument(help="Where secret.json and public.json go: the server's own machine.")],
    bits: Annotated[int, typer.Option(help="Bits of the key; fewer than 3072 are for tests.")] = 3072,
    ring: Annotated[int, typer.Option(help="Bits of a report on the way: 32 or 64.")] = 64,
    as_json: AsJson = False,
) -> Document:
    """Create the server's key pair: secret.json stays on the server, public.json goes into the plan."""
    import json

    from veil.shuffle.peos import make_keys
    from veil.tools.filesystem import make_private_folder, write_atomically, write_secret

    kept = folder / "secret.json"
    if kept.exists():
        raise InputError(f"{kept} is there already: what was encrypted for it could not be opened any more")
    public, own = make_keys(ring, bits)
    make_private_folder(folder)
    write_secret(kept, json.dumps(own.to_json()).encode(), replace=False)
    write_atomically(folder / "public.json", json.dumps(public.to_json()).encode())
    console(as_json).print_line(f"wrote {kept} and {folder / 'public.json'}")
    return {"secret": str(kept), "public": str(folder / "public.json"), "fingerprint": public.fingerprint}


@reporting
def shuffler(config: Config, as_json: AsJson = False) -> Document:
    """Run one shuffler: it stores submissions of devices, and shuffles them when the server asks."""
    from veil.shuffle.protocol import protocol_of
    from veil.shuffle.shuffler import ShufflerProcess
    from veil.shuffle.transport.connections import files_needed

    _log_lines()
    settings = _read(config)
    process = ShufflerProcess(settings, protocol_of(settings.plan, settings.secret, settings.folder))

    def ready() -> None:
        logging.getLogger("veil.parties").info(
            "%s: ready at %s, for %d devices at a time (up to %d open files)",
            settings.party,
            settings.plan.address(settings.party),
            settings.connections,
            files_needed(settings),
        )

    _until_ended(process.listen(ready))
    return {"party": settings.party}


@reporting
def submit(
    config: Config,
    values: Annotated[
        Path | None,
        typer.Argument(help="A file of values, one row per person: CSV, TSV, JSON lines, Parquet or Arrow."),
    ] = None,
    column: Column = None,
    missing: MissingValues = None,
    together: Annotated[
        int, typer.Option(min=1, help="People in one submission. A real device sends one person's.")
    ] = 1000,
    again: Annotated[
        bool, flag("--again", "Send only what an earlier run could not: the very same shares, nothing new.")
    ] = False,
    discard: Annotated[bool, flag("--discard", "Throw away what an earlier run could not send.")] = False,
    twice: Annotated[bool, flag("--twice", "Submit a file that was submitted before: its people count twice.")] = False,
    as_json: AsJson = False,
) -> Document:
    """Simulate devices: randomize each value, split the report into shares, and submit one to each shuffler.

    Shares are written to disk before they are sent, so that an interrupted run continues with the same shares.
    """
    from veil.cli.values import RandomizedRows, ValueInput
    from veil.shuffle.collection import Device

    settings = _read(config)
    device, screen = Device(settings), console(as_json)
    waiting = len(device.outbox)
    if discard:
        device.outbox.clear()
        screen.print(f"threw away {plural(waiting, 'submission')}")
        return {"people": 0, "discarded": waiting, "collection": settings.plan.collection}
    if again != bool(waiting):
        raise InputError(
            "shares of an earlier run are still to be sent: send them with --again first, or --discard them"
            if waiting
            else "nothing of an earlier run is left to send: leave out --again"
        )
    if not again:
        if values is None:
            raise InputError("expected a file of values")
        known = _Submitted(settings.folder / "submitted", values)
        if known and not twice:
            raise InputError(f"{values} was submitted before: its people would count twice (--twice does so)")
        given = ValueInput.at(values, column=column, missing=missing)
        randomized = RandomizedRows(device.collection.study, device.collection.survey, given, progress)
        device.prepare(randomized, together)
        known.note()
        for sentence in randomized.moved.sentences():
            screen.print(sentence)
    with progress("leaving shares", len(device.outbox)) as advance:
        people = device.leave(advance)
    holds = (
        "every shuffler holds its shares" if settings.plan.protocol == "peos" else "the first shuffler holds messages"
    )
    screen.print(f"{holds} of {people:,} {'person' if people == 1 else 'people'} more")
    return {"people": people, "collection": settings.plan.collection}


class _Submitted:
    """Which files were submitted, by their digests."""

    def __init__(self, notes: Path, values: Path) -> None:
        import hashlib

        from veil.cli.input import check_inputs
        from veil.files.value_file import STANDARD_INPUT

        if str(values) == STANDARD_INPUT:
            raise InputError("what was submitted is known by its file: expected a file, not standard input")
        check_inputs(values)
        self._notes = notes
        with values.open("rb") as file:
            self._digest = hashlib.file_digest(file, "sha256").hexdigest()

    def __bool__(self) -> bool:
        return self._notes.exists() and self._digest in self._notes.read_text().split()

    def note(self) -> None:
        from veil.tools.filesystem import open_private

        with os.fdopen(open_private(self._notes, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a") as notes:
            notes.write(self._digest + "\n")


@reporting
def status(config: Config, as_json: AsJson = False) -> Document:
    """Show how many people's shares each shuffler stores, and whether the collection is closed."""
    import asyncio

    from veil.shuffle.coordinator import Coordinator
    from veil.shuffle.protocol import protocol_of

    settings = _read_server(config)
    with _alone(settings):
        found = asyncio.run(Coordinator(settings, protocol_of(settings.plan)).status())
    rows = [
        (name, f"{one.people:,}", "shuffled and forgotten" if one.finished else "closed" if one.closed else "open")
        for name, one in found.items()
    ]
    console(as_json).print(plain_table(("party", "people", "collection"), rows))
    return {"collection": settings.plan.collection, "parties": {name: one._asdict() for name, one in found.items()}}


@reporting
def spot_checks(
    count: Annotated[int, typer.Argument(min=1, help="How many accounts of its own the server reports with.")],
    config: Config,
    device: Annotated[Path, typer.Option(help="The settings that devices have: the accounts send as they do.")],
    as_json: AsJson = False,
) -> Document:
    """Submit reports of the server's own to a sequential shuffle, to detect a shuffler that replaces reports.

    The server looks for these reports in the shuffled ones and removes them. A shuffler that replaces a share s of all
    reports is detected with probability 1 - (1 - s)^count.
    """
    import asyncio

    from veil.entropy import Batch
    from veil.shuffle.collection import PartyCollection
    from veil.shuffle.protocol import protocol_of
    from veil.shuffle.sequential import SpotChecks, submissions_of
    from veil.shuffle.submissions import leave
    from veil.tools.filesystem import make_private_folder, write_secret

    settings, sender = _read(config), _read(device)
    if settings.plan.protocol != "sequential":
        raise InputError("spot checks are for the sequential shuffle: this plan is for PEOS")
    file = PartyCollection(settings.plan).spot_checks(settings)
    if file.exists():
        raise InputError(f"{file}: the server's accounts have reported in this collection")
    checks = SpotChecks.draw(count, Batch(), ring=settings.plan.ring)
    make_private_folder(settings.folder)
    write_secret(file, checks.to_bytes())
    protocol = protocol_of(sender.plan)
    asyncio.run(leave(sender, protocol, submissions_of(protocol, checks)))
    console(as_json).print(f"{count:,} accounts of the server's own have reported")
    return {"accounts": count, "collection": settings.plan.collection}


@reporting
def server(
    config: Config,
    leave_out: Annotated[
        bool, flag("--leave-out", "Go on without people whose shares are not at every shuffler.")
    ] = False,
    as_json: AsJson = False,
) -> Document:
    """Close the collection, run the shuffle, and store the shuffled reports. After a failure, run it again.

    A closed collection has the same people and the same fake reports in every run: nothing is counted twice, and two
    runs reveal no more than one.
    """
    import asyncio

    from veil.files import count_rows
    from veil.shuffle.collection import PartyCollection
    from veil.shuffle.coordinator import Coordinator, ShuffleOutcome
    from veil.shuffle.protocol import protocol_of

    _log_lines(logging.WARNING)
    settings = _read_server(config)
    collection = PartyCollection(settings.plan)
    coordinator = Coordinator(settings, protocol_of(settings.plan, settings.secret))
    outcome, found = collection.outcome(settings), []

    def keep(shuffled: ShuffleOutcome) -> None:
        found.append(collection.keep(settings, shuffled))

    with _alone(settings):
        try:
            asyncio.run(coordinator.run(keep, kept=outcome.exists(), leave_out=leave_out))
        except PartyError as problem:
            reason = f"{problem.reason}. Nothing was counted and nothing is lost: run this again once that is mended"
            raise PartyError(problem.party, reason) from None
    screen, fakes = console(as_json), settings.plan.fakes
    costs = [
        {"party": name, "seconds": round(cost.seconds, 3), "sent": cost.sent, "received": cost.received}
        for shuffled in found
        for name, cost in zip(settings.plan.names, shuffled.costs, strict=True)
    ]
    if costs:
        screen.print(costs_table(costs))
    people = (count_rows(outcome) or 0) - fakes
    told = "" if found else ", of an earlier run"
    screen.print_line(f"{outcome}: {plural(people, 'report')} and {fakes:,} fakes{told}")
    unopened = sum(shuffled.unopened for shuffled in found)
    if collection.spot_checks(settings).exists():
        screen.print("All reports of the server's own accounts came out, and were taken out again.")
    if coordinator.left_out:
        warn(f"{coordinator.left_out:,} people were left out: not every shuffler had their shares")
    if unopened:
        warn(f"{plural(unopened, 'report')} could not be opened, and are not counted: no device of veil sends such")
    screen.print_line(f"Next: {shell_command('veil', 'estimate', config.parent / 'study.json', outcome)}")
    left = {"left_out": coordinator.left_out, "unopened": unopened}
    return {"out": str(outcome), "people": people, "fakes": fakes, **left, "costs": costs}


def costs_table(costs: Sequence[Document]) -> Table:
    """What each shuffler's part took, from the server's document."""
    rows = [(c["party"], f"{c['seconds']:.1f} s", f"{c['sent']:,}", f"{c['received']:,}") for c in costs]
    return plain_table(("party", "processor", "bytes sent", "bytes received"), rows)


@contextlib.contextmanager
def _alone(settings: PartySettings) -> Iterator[None]:
    """One run of the server at a time: shufflers would break an older one off for a newer."""
    import fcntl

    from veil.tools.filesystem import make_private_folder, open_private

    make_private_folder(settings.folder)
    with os.fdopen(open_private(settings.folder / "lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError("another run of this collection's server is under way: wait for it, or end it") from None
        yield


def _read_server(config: Path) -> PartySettings:
    from veil.shuffle.plan import SERVER

    settings = _read(config)
    if settings.party != SERVER or settings.secret is None:
        raise InputError(f"{config} is the file of {settings.party}, without the server's key: expected the server's")
    return settings


def _document(path: Path) -> Document:
    from veil.tools.json_documents import load_json

    try:
        found: Document = load_json(path.read_bytes())
    except ValueError:
        raise WireError(f"{path} is not a JSON document") from None
    return found


def _read(config: Path) -> PartySettings:
    from veil.cli.input import check_inputs
    from veil.shuffle.settings import PartySettings

    check_inputs(config)
    return PartySettings.read(config)


class _EscapingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return escape_text(super().format(record))


def _log_lines(level: int = logging.INFO) -> None:
    """Log messages of `veil.parties` to standard error, one escaped line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_EscapingFormatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("veil.parties")
    logger.addHandler(handler)
    logger.setLevel(level)


def _until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run until somebody ends the process; a signal ends it cleanly."""
    import asyncio

    async def run() -> None:
        task = asyncio.ensure_future(work)
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())
