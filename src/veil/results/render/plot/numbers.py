"""Pictures over an axis of numbers or times: distributions, means, errors against a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Numeric
from veil.domain.text_values import is_time
from veil.errors import InputError
from veil.results.render.plot.axes import (
    TRUTH,
    Overlay,
    as_nameless,
    as_result,
    finish,
    legend_below,
    new_axes,
    one_legend,
    thousands,
)
from veil.results.units import Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from veil.results.distribution import Distribution
    from veil.results.mean import Mean


_PIECES = 50  # about so many pieces of the axis make the unit of heights
_DURATIONS = tuple(
    seconds * many for seconds, manys in ((1, (1, 10, 30)), (60, (1, 10, 30)), (3600, (1, 6))) for many in manys
)
_DAY = 86_400


def plot_distribution(
    found: Distribution,
    *,
    truth: Any = None,
    ax: Axes | None = None,
    label: str | None = None,
    color: str | None = None,
) -> Axes:
    """The density of a distribution in steps, with its 95 % bands and the true masses of its buckets where given.

    Steps are as wide as those of the bands: finer ones would show detail that nobody knows. Heights are shares of
    people in a round piece of the axis, which depends on the domain alone: any two distributions can be compared.
    """
    overlay = Overlay(ax, found, label)
    ax, color = ax or new_axes(found.plot_height()), color or overlay.colour
    cut = np.arange(len(found)) if found.bands is None else found.bands.grouped()[0]
    ends = np.append(cut, len(found))
    edges = np.array([found.domain.shown(float(edge)) for edge in found.edges[ends]])
    piece, named = _piece(found.domain)
    height = 100 * piece / np.diff(found.edges[ends])  # per cent of people in such a piece
    if truth is not None:
        known = np.asarray(truth, dtype=np.float64)
        if known.shape != found.masses.shape:
            raise InputError(f"the truth has one mass for each bucket: {len(found)} of them")
        ax.stairs(np.add.reduceat(known, cut) * height, edges, fill=True, color=TRUTH, alpha=0.45, lw=0, label="truth")
    if found.bands is not None:
        low, high = (np.append(side * height, side[-1] * height[-1]) for side in found.bands.grouped()[1:])
        rests = f"95 % band: {found.bands.rests_briefly}"
        name = rests if overlay.first and label is None else f"{overlay.label}, {rests}"
        band = ax.fill_between(edges, low, high, step="post", alpha=0.25, lw=0, color=color, label=name)
        if name == rests:
            as_nameless(band)
    line = np.add.reduceat(found.masses, cut) * height
    as_result(ax.stairs(line, edges, lw=1.2, color=color, label=overlay.label))
    ax.set_xlabel("time (UTC)" if is_time(found.domain) else "value")
    if not is_time(found.domain):
        thousands(ax.xaxis)
    thousands(ax.yaxis)
    told = f"% of {found.population:,} people per {named}"
    ax.set_ylabel(told if overlay.first or ax.get_ylabel() == told else f"% of people per {named}")
    ax.set_ylim(bottom=min(0.0, float(line.min()), ax.get_ylim()[0] if not overlay.first else 0.0))
    finish(ax, found if label is None and overlay.first else None)
    one_legend(ax)
    return ax


def _piece(domain: Numeric) -> tuple[float, str]:
    """A round part of a domain and its name: "5,000", "7 days", or "value" where it is one whole number."""
    lo, hi = domain.ends
    wanted = (hi - lo) / _PIECES
    if is_time(domain):
        days = (_DAY, 7 * _DAY, 30 * _DAY, 365 * _DAY)
        found = min((*_DURATIONS, *days), key=lambda one: abs(np.log(one / wanted)))
        if found >= _DAY:
            return found, "day" if found == _DAY else f"{found // _DAY} days"
        return found, Unit("duration").text(found)
    if isinstance(domain, Integers) and wanted < 2:
        return 1.0, "value"
    power = 10.0 ** np.floor(np.log10(wanted))
    rounded = float(min((power, 2 * power, 5 * power, 10 * power), key=lambda one: abs(np.log(one / wanted))))
    return rounded, f"{rounded:,.10g}"


def plot_mean(found: Mean, *, truth: Any = None, ax: Axes | None = None, label: str | None = None) -> Axes:
    """A mean as a point with its 95 % interval, beside the true mean if given; on axes with means, one more below."""
    overlay = Overlay(ax, found, label)
    ax, row, colour = ax or new_axes(found.plot_height()), overlay.number, overlay.colour
    domain = found.domain
    value, low, high = (domain.shown(float(end)) for end in (found.value, *found.interval()))
    (line,) = ax.plot(
        [low, high], [row, row], "-|", lw=1.5, ms=9, color=colour, label=f"{overlay.label}, 95 % interval"
    )
    as_result(line)
    ax.plot([value], [row], "o", ms=6, color=colour)
    if truth is not None:
        known = domain.shown(float(truth[0])) if isinstance(truth, (list, tuple, np.ndarray)) else truth
        ax.plot([known], [row], "|", ms=18, mew=2, color=TRUTH, label="truth")
    ax.set_yticks([])
    ax.set_ylim(row + 0.5, -0.5)
    unit = ", time (UTC)" if is_time(domain) else ""
    told = f"mean of {found.population:,} people{unit}"
    ax.set_xlabel(told if overlay.first or ax.get_xlabel() == told else f"mean{unit}")
    if not is_time(domain):
        thousands(ax.xaxis)
    finish(ax, found if overlay.first else None, grid="x")
    legend_below(ax, found.plot_height() + 0.28 * row)
    return ax


def plot_lines(
    x: Sequence[float],
    lines: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
    x_label: str,
    y_label: str,
    *,
    ax: Axes | None = None,
) -> Axes:
    """One line with standard errors per name, on logarithmic axes, and one legend for all."""
    ax = ax or new_axes(4.0)
    from matplotlib.ticker import LogLocator

    for i, (name, (height, spread)) in enumerate(lines.items()):
        known = np.where(np.isnan(spread), 0.0, spread)
        label = f" {name}" if name.startswith("_") else name  # else the legend leaves it out
        ax.errorbar(x, height, yerr=known, marker="osD^v<>"[i % 7], ms=5, capsize=3, lw=1.2, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(list(x), [f"{one:,g}" for one in x])
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    thousands(ax.yaxis)
    ax.minorticks_off()
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    finish(ax, None)
    one_legend(ax)
    return ax
