"""`veil reproduce`: what it prints and writes. The experiments are in `veil_papers`."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from veil.cli.output import Document, Screen
from veil.errors import InputError
from veil.results.render.plot import need_matplotlib
from veil.tools.messages import unknown_name
from veil_papers import EXPERIMENTS
from veil_papers.common.exhibits import Claim, Exhibit, Grid, Panel, Reproduction, Setting, Watch
from veil_papers.common.writing import cells, commit, default_folder, write


def list_experiments(screen: Screen) -> Document:
    """Show what there is to reproduce, in a table."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("name", "paper", "exhibits", "in full"):
        table.add_column(column, overflow="fold")
    for one in EXPERIMENTS.values():
        table.add_row(one.name, one.paper, one.exhibits, f"{one.minutes} min")
    screen.print(table)
    screen.print(
        "veil reproduce NAME runs one; with --quick each takes at most a minute, and its verdicts are indicative."
    )
    keys = ("name", "paper", "exhibits", "minutes")
    return {"experiments": [{key: getattr(one, key) for key in keys} for one in EXPERIMENTS.values()]}


def reproduce_experiment(
    name: str, quick: bool, out: Path | None, data: Path | None, screen: Screen, watch: Watch
) -> Document:
    """Run an experiment, show it, and write its folder."""
    if name not in EXPERIMENTS:
        raise InputError(unknown_name("an experiment", name, EXPERIMENTS))
    need_matplotlib()  # every exhibit is drawn, after minutes
    folder = default_folder(name) if out is None else out
    folder.mkdir(parents=True, exist_ok=True)  # before the work, so that a folder that cannot be made costs nothing
    stamp = commit()  # the code may change while a long run goes on
    made = EXPERIMENTS[name](Setting(quick, data, watch))
    for exhibit in made.exhibits:
        _show(exhibit, quick, screen)
    written = write(made, folder, stamp)
    for fact, text in made.facts.items():
        screen.print(f"{fact}: {text}")
    screen.print(f"{made.summary}; wrote {len(written)} files to {folder}")
    return _document(made, folder, written)


def _show(exhibit: Exhibit, quick: bool, screen: Screen) -> None:
    screen.rule(Text(exhibit.title, style="bold"), align="left")
    for panel in exhibit.panels:
        screen.print(_table(panel))
    for claim in exhibit.claims:
        screen.print(_sentence(claim, quick))
    screen.print()


def _table(panel: Panel | Grid) -> Table:
    head, rows = cells(panel)
    red = panel.fails if isinstance(panel, Grid) else [[False] * (len(head) - 1)] * len(rows)
    table = Table(title=f"{panel.title}: {panel.y_label}", title_justify="left", box=box.SIMPLE_HEAD)
    for column in head:
        table.add_column(column, justify="right")
    for (first, *rest), fails in zip(rows, red, strict=True):
        shown = (Text(text, style="bold red" if bad else "") for text, bad in zip(rest, fails, strict=True))
        table.add_row(first, *shown)
    return table


def _sentence(claim: Claim, quick: bool) -> Text:
    verdict = claim.verdict(quick)
    style = "bold" if verdict == "indicative" else "bold green" if claim.holds else "bold red"
    return Text.assemble(f"- {claim.says}: {claim.measured}, ", (verdict, style))


def _document(made: Reproduction, folder: Path, written: list[Path]) -> Document:
    def told(claim: Claim) -> Document:
        verdict = claim.verdict(made.quick)
        return {"says": claim.says, "measured": claim.measured, "verdict": verdict, "holds": bool(claim.holds)} | {
            "exact": claim.exact
        }

    exhibits = [
        {"name": exhibit.name, "title": exhibit.title, "claims": [told(claim) for claim in exhibit.claims]}
        for exhibit in made.exhibits
    ]
    facts = {name.lower(): fact for name, fact in made.facts.items()}
    files = [path.name for path in written]
    return {
        "experiment": made.name,
        "quick": made.quick,
        **facts,
        "exhibits": exhibits,
        "out": str(folder),
        "files": files,
    }
