"""Tables and documents of results about numbers: distributions, means, differences, and the plan that asks for them.

Like `tables`: no work is done here. Numbers are in the domain's own units, to about four digits of its width.
"""

from __future__ import annotations

import datetime as dt
import math
from itertools import pairwise
from typing import Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from veil.cli.outcome import Document
from veil.cli.tables import bar, byte_text, percent
from veil.domain import Integers, Numeric
from veil.domain.times import is_time
from veil.numeric.summary import QUANTILES, bands_summary, distribution_summary, mean_summary, written
from veil.planning.numbers import NumericChoice, NumericOption
from veil.results.bands import Bands
from veil.results.coefficients import Coefficients
from veil.results.distribution import Distribution
from veil.results.mean import Mean

__all__ = [
    "about_fit",
    "differences_document",
    "differences_table",
    "distribution_document",
    "distribution_tables",
    "domain_text",
    "mean_document",
    "mean_sentence",
    "numeric_plan_document",
    "numeric_plan_table",
]

_ROWS = 16
_DAY = 86_400.0


# -- numbers in units --------------------------------------------------------------------------------------------------


def unit_text(domain: Numeric, number: float) -> str:
    """A number of the domain for people to read: 61,235, or a time to the minute or finer."""
    width = domain.ends[1] - domain.ends[0]
    if isinstance(domain, Integers) and float(number).is_integer():
        return f"{number:,.0f}"
    if not is_time(domain):
        return _number(number, width)
    try:
        shown: dt.datetime = domain.shown(float(number))
    except OverflowError:
        return "beyond the calendar"
    return shown.isoformat(" ", "minutes" if width >= _DAY else "milliseconds")


def length_text(domain: Numeric, length: float) -> str:
    """A difference of two numbers of the domain, to three digits: of times, in days, hours, minutes or seconds."""
    if not is_time(domain):
        digits = max(0, 2 - math.floor(math.log10(length))) if length > 0 else 0
        return f"{length:,.{min(digits, 20)}f}"
    for unit, size in (("days", _DAY), ("hours", 3_600.0), ("minutes", 60.0)):
        if length >= 2 * size:
            return f"{length / size:,.1f} {unit}"
    return f"{length:,.3g} seconds"


def _number(number: float, width: float) -> str:
    digits = min(max(0, 4 - math.ceil(math.log10(width))), 12) if width > 0 else 0
    return f"{number:,.{digits}f}" if abs(number) < 1e15 else f"{number:.6g}"


def domain_text(domain: Numeric) -> str:
    """What people hold, in words."""
    kind = "times" if is_time(domain) else "integers" if isinstance(domain, Integers) else "numbers"
    low, high = domain.ends
    if kind == "times":
        return f"{kind} from {unit_text(domain, low)} to {unit_text(domain, high)}"
    return f"{kind} from {low:,.15g} to {high:,.15g}"


# -- distributions -----------------------------------------------------------------------------------------------------


def distribution_document(found: Distribution, bands: Bands | None = None) -> Document:
    """Mean, standard deviation, quantiles, and the people in some ranges; with bands where they were drawn."""
    rows = [
        {"low": written(found.domain, low), "high": written(found.domain, high), "frequency": share}
        for low, high, share in _ranges(found)
    ]
    return {
        "kind": "distribution",
        "lineage": list(found.lineage),
        "people": found.n,
        "buckets": len(found),
        **distribution_summary(found),
        "ranges": rows,
        "bands": None if bands is None else bands_summary(bands),
    }


def distribution_tables(found: Distribution, bands: Bands | None = None) -> tuple[Table, Table]:
    """Mean, standard deviation and quantiles; and how people are spread over some ranges, with bars."""
    return _statistics(found, bands), _histogram(found, bands)


def _statistics(found: Distribution, bands: Bands | None) -> Table:
    domain = found.domain
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)

    def band(ends: tuple[Any, Any]) -> str:
        return f"95 %: {unit_text(domain, float(ends[0]))} to {unit_text(domain, float(ends[1]))}"

    table.add_row("mean", unit_text(domain, found.mean_number), "" if bands is None else band(bands.mean_numbers()))
    if not found.proper:
        return table
    spread = "" if bands is None else _spread_band(domain, bands)
    table.add_row("standard deviation", length_text(domain, found.std()), spread)
    for level in QUANTILES:
        (number,) = found.quantile_numbers(np.array([level]))
        value = unit_text(domain, float(number))
        name = "median" if level == 0.5 else f"{100 * level:g} % quantile"
        table.add_row(name, value, "" if bands is None else band(bands.quantile_numbers(level)))
    return table


def _spread_band(domain: Numeric, bands: Bands) -> str:
    low, high = (length_text(domain, end) for end in bands.std())
    return f"95 %: {low} to {high}"


def _histogram(found: Distribution, bands: Bands | None) -> Table:
    times = is_time(found.domain)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("from" if times else "range", justify="right", no_wrap=True)  # two times would fill a line
    table.add_column("share", justify="right", no_wrap=True)
    if bands is not None:
        table.add_column("95 % band", justify="right", no_wrap=True)
    table.add_column("")
    rows = _ranges(found)
    most = max(share for _, _, share in rows)
    for low, high, share in rows:
        start, end = unit_text(found.domain, low), unit_text(found.domain, high)
        cells = [start if times or start == end else f"{start} to {end}", percent(share)]
        if bands is not None:
            below, above = bands.range(found.domain.shown(low), found.domain.shown(high))
            cells.append(f"{100 * float(below):.2f} to {100 * float(above):.2f} %")
        table.add_row(*cells, bar(share, most))
    return table


def _ranges(found: Distribution) -> list[tuple[float, float, float]]:
    """At most 16 ranges: low, high and share of the people. As many buckets each, but for the last; of integers, both
    ends are included.
    """
    together = -(-len(found) // _ROWS)
    starts = [*range(0, len(found), together), len(found)]
    inner = 0.5 if isinstance(found.domain, Integers) else 0.0
    edges = found.edges
    return [
        (float(edges[a]) + inner, float(edges[b]) - inner, float(found.masses[a:b].sum())) for a, b in pairwise(starts)
    ]


def about_fit(found: Distribution) -> tuple[str, str | None]:
    """How a reconstruction went, in a sentence; and a warning if it did not come to an end."""
    if not found.proper:
        said = "Some masses are negative: the mean and ranges hold, there are no quantiles."
    elif found.fit is None:
        said = "Fitted exactly, without iterating."
    else:
        said = f"{'Converged' if found.fit.converged else 'Stopped'} after {found.fit.iterations:,} iterations."
    stopped = found.fit is not None and not found.fit.converged
    steps = found.fit.iterations if found.fit is not None else 0
    return said, f"the reconstruction did not converge within {steps:,} iterations" if stopped else None


# -- means and differences ---------------------------------------------------------------------------------------------


def mean_document(found: Mean) -> Document:
    """The mean with its 95 % interval."""
    return {"kind": "mean", "lineage": list(found.lineage), "people": found.n, **mean_summary(found)}


def mean_sentence(found: Mean) -> str:
    """The mean with its 95 % interval, in a sentence."""
    value, low, high = (unit_text(found.domain, number) for number in (found.value, *found.interval()))
    error = length_text(found.domain, found.stderr)
    return f"The mean is {value}, with a standard error of {error}; 95 % interval {low} to {high}."


def differences_document(found: Coefficients, top: int) -> Document:
    """The largest differences, either way."""
    rows = [dict(zip(("pair", "difference", "low", "high"), row, strict=True)) for row in _differences(found, top)]
    head = {"kind": "differences", "lineage": list(found.lineage), "people": found.n, "pairs": len(found)}
    return {**head, "top": rows}


def differences_table(found: Coefficients, top: int, title: str) -> Table:
    """The same for people to read."""
    table = Table(box=box.SIMPLE_HEAD, title=Text(title, style="bold"), title_justify="left")
    for heading in ("pair", "left less right", "95 % interval"):
        table.add_column(heading, justify="right")
    for pair, difference, low, high in _differences(found, top):
        table.add_row(f"{pair:,}", percent(difference), f"{100 * low:.2f} to {100 * high:.2f} %")
    return table


def _differences(found: Coefficients, top: int) -> list[tuple[int, float, float, float]]:
    order = abs(found.differences).argsort(kind="stable")[::-1][:top]
    bounds = found.interval()
    return [(int(i), float(found.differences[i]), *map(float, bounds[i])) for i in order]  # type: ignore[misc]  # two bounds


# -- plans -------------------------------------------------------------------------------------------------------------


def numeric_plan_document(choice: NumericChoice, people: int) -> Document:
    """Every way to ask, and which one is taken."""
    options = [
        {
            "oracle": option.name,
            "report_bytes": option.report_bytes,
            "answers": list(option.answers),
            "mean_stderr": option.mean_stderr,
            "range_error": option.range_error,
            "taken": option is choice.taken,
        }
        for option in choice.options
    ]
    head = {"chosen": choice.taken.name, "why": choice.why, "users": people}
    return {**head, "simulated_users": choice.simulated, "options": options}


def numeric_plan_table(choice: NumericChoice, people: int, limit: int | None = None) -> Table:
    """One row a way to ask, the one that is taken marked."""
    domain: Any = choice.taken.survey.domain
    epsilon = choice.taken.survey.questions[0].mechanism.epsilon
    ranges = any(option.range_error is not None for option in choice.options)
    about = "Mean: standard error in the worst case, exact."
    if ranges:
        about += f" Range: of a tenth of the domain, measured on {choice.simulated:,} made-up people like Beta(5, 2)."
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        title=Text(f"{domain_text(domain)}, eps = {epsilon:g}, {people:,} people", style="bold"),
        title_justify="left",
        caption=about,
        caption_justify="left",
    )
    for heading in ("", "oracle", "answers"):
        table.add_column(heading, no_wrap=True)
    for heading in ("report", "mean's error", *(["range's error"] if ranges else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for option in choice.options:
        taken = option is choice.taken
        too_long = limit is not None and option.report_bytes > limit
        style = "bold green" if taken else "dim" if too_long else ""
        cells = _plan_cells(option, domain, taken)
        table.add_row(*(cells if ranges else cells[:-1]), style=style)
    return table


def _plan_cells(option: NumericOption, domain: Numeric, taken: bool) -> tuple[str, ...]:
    return (
        "*" if taken else "",
        option.name,
        option.answers[0],  # whoever has a distribution has its ranges, and their mean
        byte_text(option.report_bytes),
        "-" if option.mean_stderr is None else length_text(domain, option.mean_stderr),
        "-" if option.range_error is None else percent(option.range_error, 3),
    )
