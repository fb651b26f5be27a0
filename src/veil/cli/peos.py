"""`veil peos`: several shufflers that mix reports under secret shares and add fake reports (thesis 9.5).

`plan` finds a design that meets three privacy guarantees, and `demo` runs one on this machine with each shuffler as a
process of its own. The commands of the parties are in `veil.cli.parties`.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.options import HeldDomain, HeldLabels, HeldLabelsFile, whole_number
from veil.cli.output import AsJson, Document, console, plain_table, reporting, warn, wrote
from veil.cli.parties import costs_table, keys, secret, server, spot_checks, status, submit
from veil.errors import PartyError

if TYPE_CHECKING:
    from veil.accounting import PeosDesign
    from veil.cli.output import Screen
    from veil.domain import Domain

_HEADINGS = (
    "",
    "way",
    "fakes",
    "eps: server",
    "eps: server and all other users",
    "eps: server and most shufflers",
    "standard error",
)
_SERVER, _USERS, _LOCAL, _DELTA = 1.0, 2.0, 4.0, 1e-6


@reporting
def plan(
    users: Annotated[
        int, typer.Option(parser=whole_number, metavar="N", help="How many people will take part, at least.")
    ],
    epsilon_server: Annotated[
        float, typer.Option(metavar="E", help="The privacy towards the server, which sees shuffled reports and fakes.")
    ],
    epsilon_users: Annotated[
        float, typer.Option(metavar="E", help="The same if all other people tell the server what they sent.")
    ],
    epsilon_local: Annotated[
        float, typer.Option(metavar="E", help="The same if more than half of the shufflers tell the server everything.")
    ],
    delta: Annotated[
        float, typer.Option(metavar="D", help="The probability that each of the first two may fail with.")
    ],
    domain: HeldDomain = None,
    labels: HeldLabels = None,
    labels_file: HeldLabelsFile = None,
    bound: Annotated[
        str, typer.Option(metavar="NAME", help="How fakes are accounted: blanket, or the thesis's corollaries: thesis.")
    ] = "blanket",
    most_fakes: Annotated[
        int | None,
        typer.Option(parser=whole_number, metavar="N", help="The most fakes there may be (default: 10 for each user)."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the study here, as in study.json.")] = None,
    as_json: AsJson = False,
) -> Document:
    """Find the oracle and number of fake reports that meet three privacy guarantees with the least error."""
    from veil.accounting import designs_peos
    from veil.cli.input import check_output
    from veil.histogram import Histogram
    from veil.tools.filesystem import write_atomically

    held = _held(domain, labels, labels_file)
    check_output(out, [] if labels_file is None else [labels_file])
    found = designs_peos(
        epsilon_server,
        epsilon_users,
        epsilon_local,
        users=users,
        domain=held,
        delta=delta,
        bound=bound,  # type: ignore[arg-type]  # refused where it is another word
        most_fakes=most_fakes,
    )
    screen = console(as_json)
    _show(found, screen)
    if delta * users >= 1:
        warn(f"a delta of {delta:g} among {users:,} people may give somebody away: expected far below 1 / users")
    best = found[0]
    study = Histogram(best.oracle, shuffler=best.shuffler)
    if out is not None:
        write_atomically(out, study.to_bytes())
        wrote(screen, out, f"the study of kind {study.kind}, whose task is {study.survey.task[:12]},")
    return {
        "options": [_document(one) for one in found],
        "kind": study.kind,
        "task": study.survey.task,
        "out": None if out is None else str(out),
    }


def _held(domain: int | None, labels: str | None, labels_file: Path | None) -> Domain:
    """What people hold, by the one option that says it."""
    from veil.cli.input import read_lines
    from veil.domain import Categories
    from veil.planning.domains import labelled

    if sum(one is not None for one in (domain, labels, labels_file)) != 1:
        raise typer.BadParameter("say once what people hold: expected one of --domain, --labels and --labels-file")
    if domain is not None:
        return Categories.range(domain)
    return labelled(labels) if labels is not None else Categories(read_lines(labels_file))  # type: ignore[arg-type]


def _show(found: tuple[PeosDesign, ...], screen: Screen) -> None:
    """Both ways, the better one first and marked."""
    from rich.text import Text

    best = found[0]
    size = best.oracle.domain.size
    heading = f"{best.users:,} people, each holds one of {size:,} values, delta = {best.delta:g}"
    screen.print(Text(heading, style="bold"))
    rows = [
        (
            "*" if one is best else "",
            _way(one),
            f"{one.fakes:,}",
            f"{one.server.epsilon:.4g}",
            f"{one.server_and_users.epsilon:.4g}",
            f"{one.local.epsilon:.4g}",
            f"{100 * math.sqrt(one.variance):.2g} %",
        )
        for one in found
    ]
    screen.print(plain_table(_HEADINGS, rows))
    screen.print(
        Text("Errors: of one value's share of the people, if nobody holds it. Fakes count as noise.", style="dim")
    )
    why = "it errs least" if len(found) > 1 else "no other oracle can be asked so"
    fakes = f"{best.fakes:,} fake reports" if best.fakes else "no fake reports: its local eps keeps the promise"
    screen.print(Text.assemble(("* ", "bold green"), f"{_way(best)} with {fakes}; {why}"))


def _way(one: PeosDesign) -> str:
    buckets = one.oracle.parameters().get("hash_range")
    return one.oracle.name if buckets is None else f"{one.oracle.name}, {buckets:,} buckets"


def _document(one: PeosDesign) -> Document:
    return {
        "oracle": one.oracle.name,
        "parameters": one.oracle.parameters(),
        "fakes": one.fakes,
        "users": one.users,
        "delta": one.delta,
        "epsilon_server": float(f"{one.server.epsilon:.6g}"),
        "epsilon_users": float(f"{one.server_and_users.epsilon:.6g}"),
        "epsilon_local": one.local.epsilon,
        "standard_error": math.sqrt(one.variance),
    }


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
    from veil.accounting import design_peos
    from veil.cli.demo import APPS, QUESTION, beside_truth, made_up, step
    from veil.histogram import Histogram
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
        raise PartyError("veil", f"{' '.join(arguments[:2])} failed: {done.stderr.decode().strip()}")
    document: Document = json.loads(done.stdout)
    return document


peos_app = typer.Typer(
    help="Shuffle reports with several shufflers and fake reports. No single shuffler has to be trusted.",
    no_args_is_help=True,
)
peos_app.command()(plan)
peos_app.command()(keys)
peos_app.command()(secret)
peos_app.command()(submit)
peos_app.command()(status)
peos_app.command("spot-checks")(spot_checks)
peos_app.command()(server)
peos_app.command()(demo)
