"""`veil peos demo`: three promises, three shufflers as processes of their own, and what the server learns."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.outcome import AsJson, Document, console, reporting
from veil.cli.parties import costs_table
from veil.cli.tables import plain_table

if TYPE_CHECKING:
    from veil.cli.screen import Screen
    from veil.shuffle import PeosDesign

__all__ = ["demo"]

_SERVER, _USERS, _LOCAL, _DELTA = 1.0, 2.0, 4.0, 1e-6


@reporting
def demo(
    people: Annotated[int, typer.Option(min=100, help="Number of simulated people.")] = 2000,
    shufflers: Annotated[int, typer.Option(help="How many shufflers: an odd number from 3.")] = 3,
    bits: Annotated[int, typer.Option(help="Bits of the server's key; fewer than 3072 are for tests.")] = 3072,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where keys, settings and reports go. Default: a temporary one."),
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Run a demonstration on this machine: a server, shufflers and simulated devices as separate processes."""
    screen = console(as_json)
    if folder is not None:
        return _walk(people, shufflers, bits, folder, screen)
    with tempfile.TemporaryDirectory(prefix="veil-peos-") as temporary:
        return _walk(people, shufflers, bits, Path(temporary) / "parties", screen)


def _walk(people: int, shufflers: int, bits: int, folder: Path, screen: Screen) -> Document:
    from veil.cli.demo import beside_truth, step
    from veil.cli.example import APPS, QUESTION, made_up
    from veil.histogram import Histogram
    from veil.shuffle import design_peos
    from veil.shuffle.collection import make_folder
    from veil.shuffle.peos.dgk import import_gmpy2
    from veil.shuffle.rehearsal import free_addresses, running

    import_gmpy2()
    screen.print(f"[bold]{QUESTION}[/]\n{people:,} simulated people, {len(APPS)} possible answers.", markup=True)
    step(screen, 1, "plan", "choose an oracle and a number of fake reports that meet three privacy guarantees")
    found = design_peos(_SERVER, _USERS, _LOCAL, users=people, domain=APPS, delta=_DELTA)
    _promises(screen, found)
    study = Histogram(found.oracle, shuffler=found.shuffler)

    step(screen, 2, "keys", f"create a {bits}-bit key for the server, and a certificate for each party")
    plan = make_folder(folder, study, free_addresses(shufflers), collection="demo", bits=bits)
    screen.print_line(f"  {folder}: plan.json, study.json and a settings file for each party")

    held, start = made_up(people), time.monotonic()
    values = folder / "values.csv"
    values.write_text("app\n" + "\n".join(APPS[i] for i in held) + "\n")
    with running(plan, folder):
        step(
            screen, 3, "submit", "each device randomizes its answer and sends one share of the report to each shuffler"
        )
        told = _veil("peos", "submit", str(values), "--config", str(folder / "device.toml"))
        screen.print(f"  {told['people']:,} people; each shuffler has stored {told['people']:,} shares on disk")
        step(screen, 4, "shuffle", "the shufflers permute the reports in turn; no party knows the complete permutation")
        done = _veil("peos", "server", "--config", str(folder / "server.toml"))
    screen.print(costs_table(done["costs"]))

    step(screen, 5, "estimate", "the estimated shares, and the true shares, which the server never receives")
    answer = _veil("estimate", str(folder / "study.json"), done["out"], "--all", "--top", str(len(APPS)))
    known, covered = beside_truth(screen, answer["rows"], held, time.monotonic() - start)
    screen.print("Next: read docs/peos.md, or run veil peos plan --help.")
    found_there = {"people": people, "answer": answer, "truth": known, "covered": covered}
    return {**found_there, "costs": done["costs"], "fakes": done["fakes"]}


def _promises(screen: Screen, found: PeosDesign) -> None:
    rows = [
        ("the server", str(found.server.central)),
        ("the server together with all other people", str(found.server_and_users.central)),
        ("the server together with most shufflers", str(found.local)),
    ]
    screen.print(plain_table(("protection against", "guarantee"), rows))
    screen.print(f"  {found.oracle.name} with {found.fakes:,} fake reports")


def _veil(*arguments: str) -> Document:
    """Run another command of veil, and take its document."""
    command = [sys.executable, "-m", "veil.cli", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # our own command
    if done.returncode:
        from veil.errors import PartyError

        raise PartyError("veil", f"{' '.join(arguments[:2])} failed: {done.stderr.decode().strip()}")
    document: Document = json.loads(done.stdout)
    return document
