"""The learned prior over 56 cells: whether it keeps what is promised, and the page that shows all of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acceptance.post_cells import AUTO, KNOWN, PEOPLE, SHAPES, TOP, Cell, Measured, page_origin, ratio
from veil.results import save_figure

Rows = list[tuple[str, str, str]]

EPSILONS, SIZES = (0.5, 1.0, 2.0, 4.0), (1024, 16384)
FLAT = ("uniform", "step 3:2")
POWER = "power-ns"


def all_cells(shapes: Iterable[str] = tuple(SHAPES)) -> list[Cell]:
    """Every shape with every number of values and every eps."""
    return [Cell(shape, size, epsilon) for shape in shapes for size in SIZES for epsilon in EPSILONS]


def judge(found: list[Measured]) -> tuple[Rows, bool]:
    """Never above 1.25 of the best (beyond two standard errors), half of PowerNS on flat shapes, 0.6 on the whole."""
    worst = max(found, key=lambda m: _low(*ratio(m.every[AUTO], m.every[m.best])))
    over, se = ratio(worst.every[AUTO], worst.every[worst.best])
    flat = max((m for m in found if m.cell.shape in FLAT), key=lambda m: ratio(m.every[AUTO], m.every[POWER])[0])
    part, part_se = ratio(flat.every[AUTO], flat.every[POWER])
    whole = _mean_ratio(found)
    wins = sum(ratio(m.every[AUTO], m.every[m.best])[0] < 1 for m in found)
    loses = sum(ratio(m.top[AUTO], m.top[m.best_on_top])[0] > 1 for m in found)
    rows = [
        (f"worst of {len(found)} cells over the best of the paper's methods ({_named(worst.cell)})",
         f"{over:.3f} (standard error {se:.3f})", "at most 1.25, within two standard errors"),
        (f"worst cell of uniform and step over PowerNS ({_named(flat.cell)})",
         f"{part:.3f} (standard error {part_se:.3f})", "at most 0.5"),
        ("geometric mean over all cells, over PowerNS", f"{whole:.3f}", "at most 0.6"),
        ("cells in which it is better than all of the paper's methods", f"{wins} of {len(found)}", ""),
        (f"cells in which another is better on the {TOP} most frequent values", f"{loses} of {len(found)}", ""),
    ]  # fmt: skip
    return rows, over - 2 * se <= 1.25 and part <= 0.5 and whole <= 0.6


def write_page(folder: Path, found: list[Measured], steps: list[Measured], stamp: str) -> None:
    """The page, its picture, and all errors of all methods as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    _draw(found, folder / "ratios.svg")
    (folder / "table.csv").write_text(_csv([*found, *steps]), encoding="utf-8", newline="")
    (folder / "README.md").write_text(_page(found, steps, stamp), encoding="utf-8")


def _low(found: float, se: float) -> float:
    return found - 2 * se


def _mean_ratio(found: list[Measured]) -> float:
    return float(np.exp(np.mean([np.log(ratio(m.every[AUTO], m.every[POWER])[0]) for m in found])))


def _named(cell: Cell) -> str:
    return f"{cell.shape}, d = {cell.size}, eps = {cell.epsilon:g}"


INTRODUCTION = """
`auto` is `estimate.post("auto")`: the prior learned from the estimates themselves, then Norm-Sub. It is held against
Base and the ten methods of the consistency paper. Collections are drawn as counts of support by `veil.post.selection`.
Shapes: Zipf, geometric and uniform as named; Gaussian with mean d/2 and standard deviation 0.15 d; step 3:2, in which
each of one half of the values holds 3/2 times what each of the other half holds; page counts as below.
"""
ABOUT_CELLS = f"""
Ratios of full-domain mean squared error, below 1 where `auto` is better; the standard error is that of the ratio over
paired seeds. *Top {TOP}*: error on the {TOP} most frequent values, over that of the method which is best there. This is
where `auto` loses, because shrinking toward the prior biases what stands out: for the most frequent values use `norm`.
*Known prior*: the error with the true distribution of frequencies as prior, over that of `auto`: what there was left to
gain. Errors of all methods are in [table.csv](table.csv).
"""
ABOUT_STEPS = """
Two-level shapes that are not among the cells. The last column is the error of the best rule, that with the true prior,
over the variance of the frequencies themselves, which is what one gets by calling all values equal: near 1 the noise
hides the step. The column before says how many times better than PowerNS one would be with the true prior.
"""
COLUMNS = (
    "shape", "d", "eps", "best of the paper's", "auto / best", "auto / PowerNS", f"top {TOP}: auto / best",
    "known prior / auto",
)  # fmt: skip
STEP_COLUMNS = (
    "shape", "d", "eps", "PowerNS / auto", "known prior / auto", "PowerNS / known prior", "known prior / variance",
)  # fmt: skip


def _page(found: list[Measured], steps: list[Measured], stamp: str) -> str:
    rows, passed = judge(found)
    facts = (
        f"Commit: {stamp}",
        f"Seeds: 0 to {len(found[0].every[AUTO]) - 1} in every cell",
        f"People: {PEOPLE:,}; oracle: OLH",
        f"Page counts: {page_origin()}; the d most frequent pages, scaled to {PEOPLE:,} people",
    )
    parts = [
        "# The learned prior against the paper's methods",
        "Written by `make acceptance` (step `learned-prior`); change it there.",
        INTRODUCTION.strip(),
        "\n".join(f"- {fact}" for fact in facts),
        f"All that is required {'holds' if passed else 'does NOT hold'}:",
        _table(("what", "measured", "required"), rows),
        "![Ratios](ratios.svg)",
        "## Every cell",
        ABOUT_CELLS.strip(),
        _table(COLUMNS, [_cells(m) for m in found]),
        "## Other steps",
        ABOUT_STEPS.strip(),
        _about_small_gains(steps),
        _table(STEP_COLUMNS, [_step_cells(m) for m in steps]),
    ]
    return "\n\n".join(parts) + "\n"


def _about_small_gains(steps: list[Measured]) -> str:
    """Why `auto` is not always twice as good as PowerNS, as far as the table tells."""
    below = [m for m in steps if ratio(m.every[POWER], m.every[AUTO])[0] < 2]
    possible = [m for m in below if ratio(m.every[POWER], m.every[KNOWN])[0] >= 2]
    listed = "; ".join(_named(m.cell) for m in possible) or "none"
    return (
        f"In {len(below)} of {len(steps)} rows `auto` is less than 2 times better than PowerNS. In "
        f"{len(below) - len(possible)} of them so is the true prior: PowerNS is already that near to the best that any "
        f"rule can do. In the others there was more to gain, and the learned prior did not find it: {listed}."
    )


def _cells(m: Measured) -> tuple[str, ...]:
    over, se = ratio(m.every[AUTO], m.every[m.best])
    return (
        *_place(m.cell),
        m.best,
        f"{_short(over)} \N{PLUS-MINUS SIGN} {se:.2g}",
        _short(ratio(m.every[AUTO], m.every[POWER])[0]),
        f"{_short(ratio(m.top[AUTO], m.top[m.best_on_top])[0])} ({m.best_on_top})",
        _short(ratio(m.every[KNOWN], m.every[AUTO])[0]),
    )


def _step_cells(m: Measured) -> tuple[str, ...]:
    factor, se = ratio(m.every[POWER], m.every[AUTO])
    return (
        *_place(m.cell),
        f"{_short(factor)} \N{PLUS-MINUS SIGN} {se:.2g}",
        _short(ratio(m.every[KNOWN], m.every[AUTO])[0]),
        _short(ratio(m.every[POWER], m.every[KNOWN])[0]),
        _short(float(m.every[KNOWN].mean() / np.var(m.cell.held / PEOPLE))),
    )


def _place(cell: Cell) -> tuple[str, str, str]:
    return cell.shape, f"{cell.size:,}", f"{cell.epsilon:g}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.001 else f"{value:.1e}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *rows))


def _csv(found: list[Measured]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["shape", "d", "epsilon", "method", "mse", "standard_error", f"mse_top_{TOP}", "standard_error_top"])
    for m in found:
        for name in m.every:
            errors = [f"{number:.6g}" for by in (m.every[name], m.top[name]) for number in (by.mean(), _se(by))]
            lines.writerow([m.cell.shape, m.cell.size, f"{m.cell.epsilon:g}", name, *errors])
    return text.getvalue()


def _se(of: NDArray[np.float64]) -> float:
    return float(np.std(of, ddof=1) / np.sqrt(len(of))) if len(of) > 1 else float("nan")


def _draw(found: list[Measured], path: Path) -> None:
    """Two maps of ratios, blue where `auto` is better: over PowerNS, and over the best of the paper's methods."""
    from matplotlib.figure import Figure

    shapes = list(dict.fromkeys(m.cell.shape for m in found))
    places = list(dict.fromkeys((m.cell.size, m.cell.epsilon) for m in found))
    figure = Figure(figsize=(10.5, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, title in zip(axes, ("over PowerNS", "over the best of the paper's methods"), strict=True):
        values = np.full((len(shapes), len(places)), np.nan)
        for m in found:
            rival = POWER if ax is axes[0] else m.best
            where = shapes.index(m.cell.shape), places.index((m.cell.size, m.cell.epsilon))
            values[where] = np.log10(ratio(m.every[AUTO], m.every[rival])[0])
        image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            dark = abs(value) > 0.6
            ax.text(column, row, _short(10**value), ha="center", va="center", fontsize=7, color="w" if dark else "k")
        ax.set_xticks(range(len(places)), [f"{epsilon:g}" for _, epsilon in places], fontsize=8)
        ax.set_yticks(range(len(shapes)), shapes, fontsize=8)
        ax.set_xlabel("eps; left half d = {:,}, right half d = {:,}".format(*SIZES), fontsize=8)
        ax.set_title(f"error of auto {title}", loc="left", fontsize=10)
    bar = figure.colorbar(image, ax=axes, extend="both", ticks=[-1, -0.5, 0, 0.5, 1])
    bar.ax.set_yticklabels(["0.1", "0.32", "1", "3.2", "10"], fontsize=8)
    save_figure(axes[0], str(path))
