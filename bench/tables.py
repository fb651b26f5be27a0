"""The two tables, in the terminal and between their markers in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from bench.oracles import NUMPY, OURS, Cell, OracleLine
from bench.peers import MULTI_FREQ, PURE_LDP
from bench.timing import Outcome

RATIOS = ("<!-- bench:start -->", "<!-- bench:end -->")
ORACLES = ("<!-- oracles:start -->", "<!-- oracles:end -->")
COLUMNS = ("what", "against", "ratio", "required", "verdict")
RIVALS = {"pure-ldp": PURE_LDP.title, "multi-freq-ldpy": MULTI_FREQ.title, "numpy": NUMPY}
SPEED = (
    "oracle",
    *(f"{side}: {name}" for side in ("device", "collector") for name in ("veil, people/s", *RIVALS)),
    "turns",
)
REST = (
    "oracle",
    *(f"peak MB: {name}" for name in ("veil", *list(RIVALS)[:2])),
    *(f"MSE/theory: {name}" for name in ("veil", *RIVALS)),
)


def ratio_table(outcomes: Sequence[Outcome]) -> Table:
    """The first table, for the terminal."""
    table = Table(title="veil against peers and limits: people per second, as ratios of best times")
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in ("ratio", "required") else "left")
    for outcome in outcomes:
        style = "red" if outcome.missed else "yellow" if outcome.ratio is None else None
        table.add_row(*_ratio_cells(outcome), style=style)
    return table


def oracle_tables(lines: Sequence[OracleLine]) -> list[Table]:
    """The second, in two parts, for the terminal."""
    made = []
    for title, columns, cells in (
        ("every oracle: veil's people a second over the rival's", SPEED, _speed_cells),
        ("every oracle: peak memory, and mean squared error over veil's theory", REST, _rest_cells),
    ):
        table = Table(title=title)
        for name in columns:
            table.add_column(name, justify="left" if name == "oracle" else "right")
        for line in lines:
            table.add_row(*cells(line))
        made.append(table)
    return made


def write_page(
    page: Path, outcomes: Sequence[Outcome], lines: Sequence[OracleLine], facts: dict[str, str | int]
) -> None:
    """Put both tables into the page."""
    text = page.read_text(encoding="utf-8")
    head = f"Commit {facts['commit']}, {facts['date']}, {facts['machine']}"
    ratios = _markdown(COLUMNS, [_ratio_cells(outcome) for outcome in outcomes], left=("what", "against", "verdict"))
    text = _between(text, RATIOS, [f"{head}, best of {facts['repeats']} turns.", "", *ratios])
    speed = _markdown(SPEED, [_speed_cells(line) for line in lines], left=("oracle",))
    rest = _markdown(REST, [_rest_cells(line) for line in lines], left=("oracle",))
    text = _between(text, ORACLES, [f"{head}.", "", *speed, "", *rest])
    page.write_text(text, encoding="utf-8")


def _between(text: str, markers: tuple[str, str], lines: Sequence[str]) -> str:
    before, rest = text.split(markers[0])
    after = rest.split(markers[1])[1]
    return before + "\n".join([markers[0], *lines, markers[1]]) + after


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str]) -> list[str]:
    rule = "|".join("---" if name in left else "---:" for name in columns)
    return [f"| {' | '.join(columns)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _ratio_cells(outcome: Outcome) -> tuple[str, ...]:
    needed = "" if outcome.required is None else f">= {_number(outcome.required)}"
    return outcome.what, outcome.against, _number(outcome.ratio), needed, outcome.verdict


def _speed_cells(line: OracleLine) -> tuple[str, ...]:
    cells = [line.oracle if line.epsilon == 1 else f"{line.oracle} (eps = {line.epsilon:g})"]
    for rate, found in ((line.device_rate, line.device), (line.collector_rate, line.collector)):
        cells += [_rate(rate), *(_cell(found[title]) for title in RIVALS.values())]
    return (*cells, str(line.turns))


def _rest_cells(line: OracleLine) -> tuple[str, ...]:
    peaks = [line.peak[title] for title in (OURS, *list(RIVALS.values())[:2])]
    errors = [line.error[title] for title in (OURS, *RIVALS.values())]
    return (
        line.oracle,
        *(cell if isinstance(cell, str) else f"{cell:,.0f}" for cell in peaks),
        *(cell if isinstance(cell, str) else f"{cell:.2f}" for cell in errors),
    )


def _cell(value: Cell) -> str:
    return value if isinstance(value, str) else _number(value)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _rate(people: float) -> str:
    return f"{_number(people / 1e6)} M" if people >= 1e6 else f"{_number(people / 1e3)} k"
