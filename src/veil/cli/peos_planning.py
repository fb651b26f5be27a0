"""`veil peos plan`: how to ask where shufflers add fake reports, for three promises at once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.options import HeldDomain, HeldLabels, HeldLabelsFile, whole_number
from veil.cli.outcome import AsJson, Document, console, reporting, warn, wrote

if TYPE_CHECKING:
    from veil.cli.screen import Screen
    from veil.domain import Domain
    from veil.shuffle import PeosDesign

__all__ = ["plan"]

_HEADINGS = (
    "",
    "way",
    "fakes",
    "eps: server",
    "eps: server and all other users",
    "eps: server and most shufflers",
    "standard error",
)


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
    from veil.cli.files import check_output
    from veil.histogram import Histogram
    from veil.shuffle import designs_peos
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
    from veil.cli.files import read_lines
    from veil.domain import Categories
    from veil.planning.held import labelled

    if sum(one is not None for one in (domain, labels, labels_file)) != 1:
        raise typer.BadParameter("say once what people hold: expected one of --domain, --labels and --labels-file")
    if domain is not None:
        return Categories.range(domain)
    return labelled(labels) if labels is not None else Categories(read_lines(labels_file))  # type: ignore[arg-type]


def _show(found: tuple[PeosDesign, ...], screen: Screen) -> None:
    """Both ways, the better one first and marked."""
    from rich.text import Text

    from veil.cli.tables import plain_table

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
