"""Pictures of results. Needs matplotlib: `pip install veil[plot]`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from veil.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from veil.results.bands import Bands
    from veil.results.distribution import Distribution
    from veil.results.estimate import Estimate

__all__ = ["plot_distribution", "plot_estimate", "plot_estimates", "save"]

_INK, _DOT, _TRUTH = "#22303c", "#1f6feb", "#d1495b"


def plot_estimate(estimate: Estimate, k: int = 20, *, truth: Any = None, ax: Axes | None = None) -> Axes:
    """The k largest values with 95 % intervals, beside the truth (one frequency a candidate) where it is known."""
    plt = _pyplot()
    rows = estimate.top(k)
    order = np.argsort(-estimate.frequencies, kind="stable")[:k]
    if ax is None:
        _, ax = plt.subplots(figsize=(8.0, 1.2 + 0.28 * len(rows)), layout="constrained")
    places = np.arange(len(rows))
    reach = np.array([[row.frequency - row.low, row.high - row.frequency] for row in rows]).T * 100
    shown = np.array([row.frequency for row in rows]) * 100
    if estimate.noise.known:
        ax.errorbar(shown, places, xerr=reach, fmt="o", ms=5, capsize=3, color=_DOT, label="estimate, 95 % interval")
        if len(estimate.lineage) < 2:  # significance is judged before post-processing moves the points
            ax.axvline(estimate.threshold() * 100, ls=":", lw=1, color=_INK, label="significant above")
    else:
        ax.plot(shown, places, "o", ms=5, color=_DOT, label="estimate, error not known")
    if truth is not None:
        known = np.asarray(truth, dtype=np.float64)[order] * 100
        ax.plot(known, places, "|", ms=11, mew=2, color=_TRUTH, label="truth")
    ax.set_yticks(places, [str(row.value) for row in rows], parse_math=False)  # a label may hold dollars
    ax.set_ylim(len(rows) - 0.5, -0.5)  # the largest on top
    ax.set_xlabel(f"% of {estimate.population:,} people")
    ax.set_title(" > ".join(estimate.lineage), loc="left", fontsize=10, color=_INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", lw=0.4, alpha=0.6)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return ax


def plot_estimates(estimates: Sequence[Estimate], k: int = 20, *, truth: Any = None) -> list[Axes]:
    """One panel an estimate, below each other in one figure; `truth` is for a single one."""
    if len(estimates) == 1:
        return [plot_estimate(estimates[0], k, truth=truth)]
    heights = [1.2 + 0.28 * min(k, len(estimate)) for estimate in estimates]
    _, axes = _pyplot().subplots(
        len(estimates), figsize=(8.0, sum(heights)), height_ratios=heights, layout="constrained"
    )
    return [plot_estimate(estimate, k, ax=ax) for estimate, ax in zip(estimates, axes, strict=True)]


def plot_distribution(
    found: Distribution,
    *,
    truth: Any = None,
    bands: Bands | None = None,
    ax: Axes | None = None,
    label: str | None = None,
    color: str = _DOT,
) -> Axes:
    """The density of a distribution in steps, with its 95 % bands and the true masses of its buckets where given."""
    plt = _pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
    edges = np.array([found.domain.shown(float(edge)) for edge in found.edges])
    percent = 100 / np.diff(found.cells) * found.cells[-1] / len(found)  # of people in a bucket of average width
    if truth is not None:
        known = np.asarray(truth, dtype=np.float64)
        if known.shape != found.masses.shape:
            raise InputError(f"the truth has one mass a bucket: {len(found)} of them")
        ax.stairs(known * percent, edges, fill=True, color=_TRUTH, alpha=0.45, lw=0, label="truth")
    if bands is not None:
        starts, *sides = bands.grouped()
        wide = np.append(found.cells[starts], found.cells[-1])
        share = 100 / np.diff(wide) * found.cells[-1] / len(found)
        low, high = (np.append(side * share, side[-1] * share[-1]) for side in sides)
        ax.fill_between(
            edges[np.append(starts, len(found))],
            low,
            high,
            step="post",
            alpha=0.25,
            lw=0,
            color=color,
            label="95 % band",
        )
    ax.stairs(found.masses * percent, edges, lw=1.2, color=color, label=label or "estimate")
    ax.set_ylabel(f"% of {found.population:,} people a bucket")
    if label is None:
        ax.set_title(" > ".join(found.lineage), loc="left", fontsize=10, color=_INK)
    ax.set_ylim(bottom=min(0.0, float((found.masses * percent).min())))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(lw=0.4, alpha=0.6)
    ax.legend(frameon=False, fontsize=8)
    return ax


def save(ax: Axes, path: str) -> None:
    """Write the figure (SVG, PNG or PDF by its ending), the same bytes for the same picture."""
    plt = _pyplot()
    with plt.rc_context({"svg.hashsalt": "veil"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a label that the font cannot draw shows as a box
        metadata = {"Date": None} if str(path).endswith(".svg") else None
        ax.figure.savefig(path, metadata=metadata)  # type: ignore[union-attr]  # axes made here belong to a Figure
    plt.close(ax.figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'veil[plot]'") from None
    if "matplotlib.pyplot" not in __import__("sys").modules:
        matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
