"""The parties of a shuffle, each a process of its own: `veil shuffler`, and `veil peos keys`, `submit`, `server`."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.options import Column, Values
from veil.cli.outcome import AsJson, Document, console, flag, reporting

if TYPE_CHECKING:
    from veil.shuffle.parties.settings import Settings

__all__ = ["keys", "server", "shuffler", "spot_checks", "submit"]

Config = Annotated[Path, typer.Option("--config", "-c", help="The party's file of settings (TOML).")]
_TOGETHER = 1000


@reporting
def keys(
    folder: Annotated[Path, typer.Argument(help="The folder to write: it must not hold a plan yet.")],
    study: Annotated[Path, typer.Option(help="The study to collect, from `veil peos plan` or `veil plan`.")],
    shufflers: Annotated[int, typer.Option(help="How many shufflers: an odd number from 3.")] = 3,
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
    as_json: AsJson = False,
) -> Document:
    """Set up a shuffle between parties: a test authority, keys, the plan, and each party's settings."""
    from veil.cli.files import load
    from veil.shuffle.collection import make_folder
    from veil.shuffle.parties.plan import Address

    loaded = load(study)
    given = address or [f"{host}:{port + i}" for i in range(shufflers)]
    places = [Address.read(one) for one in given]
    plan = make_folder(
        folder, loaded.study, places, collection=collection, fakes=fakes, bits=bits, ring=ring, protocol=protocol
    )
    screen = console(as_json)
    screen.print(f"{folder}: {len(places)} shufflers, {plan.fakes:,} fakes, collection {plan.collection}", markup=False)
    for name in plan.names:
        screen.print(f"  veil shuffler --config {folder / name}.toml", markup=False, soft_wrap=True)
    screen.print(f"  veil peos submit values.csv --config {folder / 'device.toml'}", markup=False, soft_wrap=True)
    screen.print(f"  veil peos server --config {folder / 'server.toml'}", markup=False, soft_wrap=True)
    return {"folder": str(folder), "shufflers": list(plan.names), "fakes": plan.fakes, "collection": plan.collection}


@reporting
def shuffler(config: Config, as_json: AsJson = False) -> Document:
    """Run one shuffler: it keeps what devices leave with it, and shuffles when the server says so."""
    from veil.shuffle.parties.shuffler import ShufflerProcess
    from veil.shuffle.protocols import protocol_of

    _log_lines()
    settings = _read(config)
    process = ShufflerProcess(settings, protocol_of(settings.plan, settings.secret, settings.folder))

    def ready() -> None:
        logging.getLogger("veil.parties").info("%s: ready at %s", settings.party, settings.plan.address(settings.party))

    _until_ended(process.listen(ready))
    return {"party": settings.party}


@reporting
def submit(
    values: Values,
    config: Config,
    column: Column = None,
    again: Annotated[
        bool, flag("--again", "Send only what an earlier run could not: the very same shares, nothing new.")
    ] = False,
    as_json: AsJson = False,
) -> Document:
    """Play devices: randomize every person's value, split the report, and leave a share with every shuffler.

    Shares are written down before they are sent, so that a run that was broken off goes on with the same ones.
    """
    import asyncio

    from veil.cli.progress import progress
    from veil.cli.values import Randomized
    from veil.errors import InputError
    from veil.shuffle.collection import Collection
    from veil.shuffle.parties.device import Outbox, Submission, leave, most_together
    from veil.shuffle.parties.plan import DEVICE
    from veil.shuffle.protocols import protocol_of

    settings = _read(config)
    if settings.party != DEVICE:
        raise InputError(f"{config} is the file of {settings.party}: shares are left with that of a device")
    protocol, collection = protocol_of(settings.plan), Collection(settings.plan)
    outbox = Outbox(settings.folder / "outbox")
    if again != bool(len(outbox)):
        raise InputError(
            f"shares of an earlier run are still to be sent, in {settings.folder}: send them with --again first"
            if len(outbox)
            else "nothing of an earlier run is left to send: leave out --again"
        )
    if not again:
        randomized = Randomized(collection.study, collection.survey, values, progress, column=column)
        together = min(_TOGETHER, most_together(protocol))

        def submissions() -> Iterator[Submission]:
            for reports in randomized:
                elements = collection.elements(reports)
                for start in range(0, len(elements), together):
                    yield Submission.of(protocol, elements[start : start + together])

        outbox.fill(submissions())
    people = 0
    with progress("leaving shares", len(outbox)) as advance:

        def left(submission: Submission) -> None:
            nonlocal people
            people += submission.people
            outbox.remove(submission)
            advance(1)

        asyncio.run(leave(settings, protocol, outbox, left))
    console(as_json).print(f"every shuffler holds its shares of {people:,} people")
    return {"people": people, "collection": settings.plan.collection}


@reporting
def spot_checks(
    count: Annotated[int, typer.Argument(min=1, help="How many accounts of its own the server reports with.")],
    config: Config,
    device: Annotated[Path, typer.Option(help="The settings that devices have: the accounts send as they do.")],
    as_json: AsJson = False,
) -> Document:
    """Report with the server's own accounts, in a sequential shuffle: a shuffler that replaces reports is noticed.

    The server knows these reports, looks for them in the outcome, and takes them out of it again. A shuffler that
    replaces a share s of all reports is caught with probability 1 - (1 - s)^count.
    """
    import asyncio

    from veil.entropy import Batch
    from veil.errors import InputError
    from veil.shuffle.collection import Collection
    from veil.shuffle.parties.device import leave
    from veil.shuffle.protocols import protocol_of
    from veil.shuffle.sequential import SpotChecks, submissions_of
    from veil.tools.durable import make_private_folder, write_atomically

    settings, sender = _read(config), _read(device)
    if settings.plan.protocol != "sequential":
        raise InputError("spot checks are for the sequential shuffle: this plan is for PEOS")
    file = Collection(settings.plan).spot_checks(settings)
    if file.exists():
        raise InputError(f"{file}: the server's accounts have reported in this collection")
    checks = SpotChecks.draw(count, Batch(), ring=settings.plan.ring)
    make_private_folder(settings.folder)
    write_atomically(file, checks.to_bytes())
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
    """Close the collection, have it shuffled, and keep the shuffled reports; after a failure, run it again.

    Once closed, a collection is about the same people and the same fakes in every run: nothing is counted twice, and
    whoever sees two runs learns no more than from one.
    """
    import asyncio

    from veil.cli.tables import plain_table
    from veil.errors import InputError
    from veil.shuffle.collection import Collection
    from veil.shuffle.parties.coordinator import Coordinator, Shuffled
    from veil.shuffle.parties.plan import SERVER
    from veil.shuffle.protocols import protocol_of

    _log_lines(logging.WARNING)
    settings = _read(config)
    if settings.party != SERVER or settings.secret is None:
        raise InputError(f"{config} is the file of {settings.party}, without the server's key: expected the server's")
    collection = Collection(settings.plan)
    coordinator = Coordinator(settings, protocol_of(settings.plan, settings.secret))
    outcome, found = collection.outcome(settings), []

    def keep(shuffled: Shuffled) -> None:
        found.append(collection.keep(settings, shuffled))

    asyncio.run(coordinator.run(keep, kept=outcome.exists(), leave_out=leave_out))
    screen = console(as_json)
    costs = [
        {"party": name, "seconds": round(cost.seconds, 3), "sent": cost.sent, "received": cost.received}
        for shuffled in found
        for name, cost in zip(settings.plan.names, shuffled.costs, strict=True)
    ]
    if costs:
        rows = [(str(c["party"]), f"{c['seconds']:.1f} s", f"{c['sent']:,}", f"{c['received']:,}") for c in costs]
        screen.print(plain_table(("party", "processor", "bytes sent", "bytes received"), rows))
    people = found[0].people if found else None
    told = "the outcome of an earlier run" if people is None else f"{people:,} people and {settings.plan.fakes:,} fakes"
    screen.print(f"{outcome}: {told}", markup=False, soft_wrap=True)
    screen.print(f"Next: veil estimate STUDY {outcome}", markup=False, soft_wrap=True)
    return {"out": str(outcome), "people": people, "fakes": settings.plan.fakes, "costs": costs}


def _read(config: Path) -> Settings:
    from veil.cli.files import check_inputs
    from veil.shuffle.parties.settings import Settings

    check_inputs(config)
    return Settings.read(config)


def _log_lines(level: int = logging.INFO) -> None:
    """What parties say, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
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
