"""Tables for people to read, and the same facts as plain documents for --json.

No work is done here, and no label can format the terminal.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from veil.cli.outcome import Document
from veil.planning.oracles import Choice, Option
from veil.post.kinds import Method
from veil.results.estimate import Estimate, Row

__all__ = [
    "bar",
    "byte_text",
    "estimate_document",
    "estimate_table",
    "facts_table",
    "methods_table",
    "percent",
    "plan_document",
    "plan_table",
    "rows_table",
    "shown",
    "significance",
]

_STEPS_A_SECOND = 1e9  # what the slowest kernel does on one core of an ordinary machine; most do several times that
_BAR_CELLS = 12
_UNKNOWN = "\N{EN DASH}"


def shown(value: Any) -> Text:
    """A label as text that can neither format the terminal nor break its lines."""
    plain = "(missing)" if value is None else str(value)
    return Text("".join(c if c.isprintable() else "\N{MIDDLE DOT}" for c in plain), overflow="ellipsis", no_wrap=True)


def percent(share: float, digits: int = 2) -> str:
    """A fraction of the people; a dash where it is not known."""
    if math.isnan(share):
        return "-"
    return f"{100 * share:.{digits}f} %"


def plan_document(choice: Choice, people: int) -> Document:
    """Every option, and which one is taken."""
    options = [
        {
            "oracle": option.name,
            "report_bytes": option.report_bytes,
            "stderr": option.stderr if option.comparable else None,
            "detection_floor": option.detection_floor if option.comparable else None,
            "decode_steps_a_report": option.decode_pairs,
            "decode_steps": option.decode_pairs * people,
            "taken": option.name == choice.oracle.name,
        }
        for option in choice.options
    ]
    return {"chosen": choice.oracle.name, "why": choice.why, "users": people, "options": options}


def plan_table(choice: Choice, people: int, limit: int | None = None) -> Table:
    """One row an oracle, the most accurate first, the one that is taken marked."""
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        title=f"[bold]{choice.oracle.domain.size:,} values, eps = {choice.oracle.epsilon:g}, {people:,} people[/]",
        title_justify="left",
        caption="Errors: of one value's share of the people. Time: one core at 10^9 steps a second.",
        caption_justify="left",
    )
    table.add_column("")
    table.add_column("oracle", no_wrap=True)
    for heading in ("report", "standard error", "detection floor", "steps a report", "all reports"):
        longest = max(len(word) for word in heading.split())
        table.add_column(heading, justify="right", no_wrap=len(heading) < 12, min_width=longest)
    for option in choice.options:
        taken = option.name == choice.oracle.name
        too_long = limit is not None and option.report_bytes > limit
        table.add_row(*_plan_cells(option, people, taken), style="bold green" if taken else "dim" if too_long else "")
    return table


def _plan_cells(option: Option, people: int, taken: bool) -> tuple[str, ...]:
    return (
        "*" if taken else "",
        option.name,
        byte_text(option.report_bytes),
        percent(option.stderr, 3),
        percent(option.detection_floor, 3),
        f"{option.decode_pairs:,.0f}" if option.decode_pairs < 1e8 else f"{option.decode_pairs:.1e}",
        _seconds(option.decode_pairs * people / _STEPS_A_SECOND),
    )


def estimate_document(estimate: Estimate, top: int, alpha: float) -> Document:
    """The largest values of one question, with their intervals; null where no noise law is known."""
    if not estimate.noise.known:
        unknown = dict.fromkeys(("stderr", "low", "high", "significant"))
        threshold, significant = None, None
        rows = [_finite(row) | unknown for row in estimate.top(top)]
    else:
        surely = {row.value for row in estimate.significant(alpha)}
        threshold, significant = estimate.threshold(alpha), len(surely)
        rows = [_finite(row) | {"significant": row.value in surely} for row in estimate.top(top)]
    return {
        "kind": "frequencies",
        "lineage": list(estimate.lineage),
        "people": estimate.n,
        "candidates": len(estimate),
        "threshold": threshold,
        "significant": significant,
        "top": rows,
    }


def _finite(row: Row) -> Document:
    """A row without NaN, where there is no standard error, and with times as text."""
    return {name: _cell(cell) for name, cell in asdict(row).items()}


def _cell(cell: Any) -> Any:
    if isinstance(cell, dt.datetime):
        return cell.isoformat()
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def estimate_table(
    estimate: Estimate, top: int, alpha: float, title: str, truth: Mapping[Any, float] | None = None
) -> Table:
    """The largest values with 95 % intervals; and the truth where it is known, and whether the interval covers it."""
    known = estimate.noise.known
    surely = {row.value for row in (estimate.significant(alpha) if known else estimate.above(0.0))}
    return rows_table(estimate.top(top), surely, title, truth, known=known)


def rows_table(
    rows: Sequence[Row],
    surely: Container[Any],
    title: str,
    truth: Mapping[Any, float] | None = None,
    *,
    known: bool = True,
) -> Table:
    """The same for rows from elsewhere; values that are surely held stand out."""
    table = Table(box=box.SIMPLE_HEAD, title=Text(title, style="bold"), title_justify="left")
    table.add_column("value", max_width=32)
    for heading in ("share", "95 % interval"):
        table.add_column(heading, justify="right")
    if truth is None:
        table.add_column("people", justify="right")
        table.add_column("significant", justify="center")
    else:
        table.add_column("truth", justify="right")
        table.add_column("covered", justify="center")
    table.add_column("")
    most = max((row.frequency for row in rows), default=0.0)
    for row in rows:
        found = row.value in surely
        last = _people_cells(row, found if known else None) if truth is None else _truth_cells(row, truth[row.value])
        interval = f"{100 * row.low:.2f} to {100 * row.high:.2f} %" if known else _UNKNOWN
        table.add_row(
            shown(row.value),
            percent(row.frequency),
            interval,
            *last,
            bar(row.frequency, most),
            style="" if found else "dim",
        )
    return table


def bar(share: float, most: float) -> Text:
    """A share beside the largest one, as a bar."""
    return Text("\N{BLACK SQUARE}" * round(_BAR_CELLS * max(share, 0) / most) if most > 0 else "", style="blue")


def significance(estimate: Estimate, alpha: float) -> str:
    """How many values are surely held by somebody, in one sentence."""
    if not estimate.noise.known:
        found = int((estimate.frequencies != 0).sum())
        return f"{found} of {len(estimate):,} values were found. No noise law is known: no intervals, no significance."
    found, floor = len(estimate.significant(alpha)), percent(estimate.threshold(alpha))
    before = ", before post-processing," if len(estimate.lineage) > 1 else ""
    return f"{found} of {len(estimate):,} values are significant: estimated{before} above {floor} (alpha = {alpha:g})."


def _people_cells(row: Row, found: bool | None) -> tuple[Text, Text]:
    verdict = Text(_UNKNOWN) if found is None else Text("yes", style="green") if found else Text("no")
    return Text(f"{row.count:,.0f}"), verdict


def _truth_cells(row: Row, truth: float) -> tuple[Text, Text]:
    covered = row.low <= truth <= row.high
    return Text(percent(truth)), Text("yes", style="green") if covered else Text("no", style="yellow")


def methods_table(methods: Iterable[Method]) -> Table:
    """What each post-processing method enforces, what it is good for, and how it is biased."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("method", "enforces", "good for", "bias"):
        table.add_column(heading, no_wrap=heading == "method", style="bold" if heading == "method" else "")
    for method in methods:
        table.add_row(method.name, method.enforces, method.good_for, method.bias)
    return table


def facts_table(facts: Mapping[str, Any]) -> Table:
    """Two columns: what, and the answer."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        lines = fact if isinstance(fact, list) and fact and isinstance(fact[0], dict) else [fact]
        for line in lines:
            table.add_row(name, Text(_plain(line)))
    return table


def _plain(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{name} {value}" for name, value in fact.items())
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def byte_text(count: int) -> str:
    """A size in bytes."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**4)):
        if count >= size:
            return f"{count / (1000 if unit == 'kB' else size):,.0f} {unit}"
    return f"{count:,} B"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return "< 1 s"
    for unit, size in (("years", 31_557_600), ("days", 86_400), ("hours", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s"
