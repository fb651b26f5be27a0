"""An experiment's folder: a page, and for every exhibit its picture (SVG) and its numbers (CSV)."""

from __future__ import annotations

import csv
import io
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from veil import __version__
from veil.results import save_figure
from veil_papers.common.drawing import draw, looks
from veil_papers.common.exhibits import Curve, Exhibit, Grid, Panel, Reproduction, brief


def default_folder(name: str) -> Path:
    """Where an experiment's output belongs: the repository's documentation, elsewhere a folder of its own."""
    documented = Path("docs") / "reproduction"
    return (documented if documented.is_dir() else Path("reproduction")) / name


def write(made: Reproduction, folder: Path, stamp: str) -> list[Path]:
    """Write the page, pictures and tables; the same bytes for the same run. `stamp` is the commit when it began."""
    folder.mkdir(parents=True, exist_ok=True)
    written, look = [folder / "README.md"], looks(made.exhibits)
    for exhibit in made.exhibits:
        picture, table = folder / f"{exhibit.name}.svg", folder / f"{exhibit.name}.csv"
        save_figure(draw(exhibit, look).axes[0], str(picture))
        table.write_text(table_text(exhibit), encoding="utf-8", newline="")
        written += [picture, table]
    written[0].write_text(page(made, stamp), encoding="utf-8")
    return written


def table_text(exhibit: Exhibit) -> str:
    """All numbers of an exhibit as CSV, one point per line."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["panel", "x_axis", "x", "method", "mean", "standard_deviation", "theory"])
    for panel in exhibit.panels:
        if isinstance(panel, Grid):
            lines.writerows(_grid_lines(panel))
            continue
        for curve in panel.curves:
            for i, x in enumerate(curve.x):
                parts = (curve.spread, curve.theory)
                extra = ["" if part is None or math.isnan(part[i]) else f"{part[i]:.10g}" for part in parts]
                lines.writerow([panel.title, panel.x_label, f"{x:g}", curve.name, f"{curve.y[i]:.10g}", *extra])
    return text.getvalue()


def _grid_lines(grid: Grid) -> Iterator[list[str]]:
    for name, numbers in zip(grid.rows, grid.numbers, strict=True):
        for column, number in zip(grid.columns, numbers, strict=True):
            if not math.isnan(number):
                yield [grid.title, grid.y_label, column, name, f"{number:.10g}", "", ""]


def cells(panel: Panel | Grid, most: int = 12) -> tuple[list[str], list[list[str]]]:
    """A panel as a table to read: one row per point (at most so many), one column per method; a grid as it is."""
    if isinstance(panel, Grid):
        rows = [
            [name, *("" if math.isnan(number) else f"{number:.3f}" for number in numbers)]
            for name, numbers in zip(panel.rows, panel.numbers, strict=True)
        ]
        return [panel.row_label, *panel.columns], rows
    points = sorted({x for curve in panel.curves for x in curve.x})
    shown = points[:: -(-len(points) // most)]
    rows = [[brief(x), *(_cell(curve, x) for curve in panel.curves)] for x in shown]
    return [panel.x_label, *(curve.name for curve in panel.curves)], rows


def _cell(curve: Curve, x: float) -> str:
    if x not in curve.x:
        return ""
    i = curve.x.index(x)
    text = brief(curve.y[i])
    if curve.spread is not None and not math.isnan(curve.spread[i]):
        text += f" \N{PLUS-MINUS SIGN} {float(f'{curve.spread[i]:.2g}'):,g}"
    if curve.theory is not None:
        text += f" ({curve.y[i] / curve.theory[i]:.2f})"
    return text


def page(made: Reproduction, stamp: str) -> str:
    """The page: facts, then each exhibit with its claims and tables. Pictures stand beside it, and are not kept."""
    command = f"`veil reproduce {made.name}{' --quick' if made.quick else ''}`"
    facts = (f"- {name}: {fact}" for name, fact in (made.facts | {"Commit": stamp}).items())
    drawn = f"Written by {command}, which also draws every exhibit beside this page; change it there."
    parts = [f"# {made.title}\n", f"{drawn}\n", "\n".join(facts) + "\n", f"{made.summary}.\n"]
    for exhibit in made.exhibits:
        claims = [[claim.says, claim.measured, claim.verdict(made.quick)] for claim in exhibit.claims]
        parts += [f"## {exhibit.title}\n", _rows(["claim", "measured", "verdict"], claims)]
        parts.append(f"All points: [{exhibit.name}.csv]({exhibit.name}.csv). Picture: `{exhibit.name}.svg`.\n")
        parts += [f"{note}\n" for note in exhibit.notes]
        for panel in exhibit.panels:
            head, rows = cells(panel)
            if isinstance(panel, Grid):
                rows = [_marked(row, fails) for row, fails in zip(rows, panel.fails, strict=True)]
            parts += [f"**{panel.title}** ({panel.y_label})\n", _rows(head, rows)]
    return "\n".join(parts)


def _marked(row: list[str], fails: tuple[bool, ...]) -> list[str]:
    """What fails in bold, with a mark that is red wherever it is shown."""
    marked = (f"**{text}** \N{LARGE RED CIRCLE}" if red else text for text, red in zip(row[1:], fails, strict=True))
    return [row[0], *marked]


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def commit() -> str:
    """The commit of the code as it is now, as far as git knows: to be asked before a long run, not after."""
    git = shutil.which("git")
    if git is None:
        return f"unknown (veil {__version__})"

    def ask(*words: str) -> str:
        here = Path(__file__).resolve().parent
        done = subprocess.run([git, *words], cwd=here, capture_output=True, text=True, check=False)  # noqa: S603
        return done.stdout.strip()

    head = ask("rev-parse", "--short=12", "HEAD")
    changed = ask("status", "--porcelain", "--", ":/src")
    return f"{head or 'unknown'}{' and changes since' if changed else ''} (veil {__version__})"
