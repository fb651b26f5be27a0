"""What `veil reproduce` prints and writes; the experiments themselves are `veil_papers`."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from veil.cli.outcome import Document
from veil.errors import InputError
from veil_papers import EXPERIMENTS
from veil_papers.common.exhibits import Claim, Exhibit, Panel, Setting, Study, Watch
from veil_papers.common.writing import cells, commit, default_folder, write

__all__ = ["reproduce_experiment"]


def reproduce_experiment(
    name: str, quick: bool, out: Path | None, data: Path | None, screen: Console, watch: Watch
) -> Document:
    """Run an experiment, show it, and write its folder."""
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment of that name; there are {', '.join(EXPERIMENTS)}")
    folder = default_folder(name) if out is None else out
    folder.mkdir(parents=True, exist_ok=True)  # before the work, so that a folder that cannot be made costs nothing
    stamp = commit()  # the code may change while a long run goes on
    study = EXPERIMENTS[name](Setting(quick, data, watch))
    for exhibit in study.exhibits:
        _show(exhibit, screen)
    written = write(study, folder, stamp)
    held = sum(claim.holds for claim in study.claims)
    for fact, text in study.facts.items():
        screen.print(f"{fact}: {text}", markup=False)
    screen.print(f"{held} of {len(study.claims)} claims hold; wrote {len(written)} files to {folder}", markup=False)
    return _document(study, quick, folder, written)


def _show(exhibit: Exhibit, screen: Console) -> None:
    screen.rule(Text(exhibit.title, style="bold"), align="left")
    for panel in exhibit.panels:
        screen.print(_table(panel))
    for claim in exhibit.claims:
        screen.print(_sentence(claim))
    screen.print()


def _table(panel: Panel) -> Table:
    head, rows = cells(panel)
    table = Table(title=f"{panel.title}: {panel.y_label}", title_justify="left", box=box.SIMPLE_HEAD)
    for column in head:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _sentence(claim: Claim) -> Text:
    style = "bold green" if claim.holds else "bold red"
    return Text.assemble(f"- {claim.says}: {claim.measured}, ", (claim.verdict, style))


def _document(study: Study, quick: bool, folder: Path, written: list[Path]) -> Document:
    exhibits = [
        {
            "name": exhibit.name,
            "title": exhibit.title,
            "claims": [
                {"says": c.says, "measured": c.measured, "verdict": c.verdict, "exact": c.exact} for c in exhibit.claims
            ],
        }
        for exhibit in study.exhibits
    ]
    facts = {name.lower(): fact for name, fact in study.facts.items()}
    files = [path.name for path in written]
    return {"experiment": study.name, "quick": quick, **facts, "exhibits": exhibits, "out": str(folder), "files": files}
