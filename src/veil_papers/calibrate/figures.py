"""Figures 4 to 9 of Calibrate, from the same simulated collections. How people are simulated is `calibrate_trials`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from veil_papers.calibrate import claims as claims
from veil_papers.calibrate.trials import (
    BEST,
    BINS,
    CALIBRATE,
    LEARNED,
    LIKELIHOOD,
    PROBABILITY,
    RAW,
    SWEPT,
    ZERO,
    Collections,
    Hits,
)
from veil_papers.common.exhibits import Curve, Exhibit, Panel

__all__ = ["budgets", "errors", "noise", "sweep"]

HOW = (
    "Support counts are drawn as binomials, Bin(n_v, p) + Bin(n - n_v, q) a value, which for OUE equals simulating "
    "every person in distribution; estimates and post-processing are the shipped ones."
)
_GRAIN = (
    "Above the significance threshold the differences are as small as their noise: with other seeds, or with the "
    "counts unscaled or smoothed instead of times ten, that verdict changes; the one at and below it does not."
)
_ADDED = (LEARNED, PROBABILITY, LIKELIHOOD, BEST)
_MEASURES: dict[str, Callable[[Hits], float]] = {
    "precision": lambda hits: hits.precision,
    "recall": lambda hits: hits.recall,
    "F-score": lambda hits: hits.f_score,
}


def noise(kosarak: Collections) -> Exhibit:
    """Figure 4."""
    panels = []
    for letter, epsilon in zip("ab", (kosarak.plan.grid[0], SWEPT), strict=True):
        sd = float(np.sqrt(kosarak.variance(epsilon)))
        middles = (BINS[1:] + BINS[:-1]) / 2
        normal = np.exp(-(middles**2) / 2) / np.sqrt(2 * np.pi)
        samples = np.stack([trial.noise.density for trial in kosarak.trials[epsilon]])
        curve = _curve("noise", tuple(middles * sd), samples.T.tolist(), theory=tuple(normal))
        title = f"({letter}) {kosarak.name}, eps = {epsilon:g}"
        panels.append(Panel(title, f"noise ({kosarak.unit})", "density, a standard deviation", (curve,), y_log=False))
    notes = (
        f"{HOW} Marks: all pages of one collection, mean and standard deviation of {kosarak.plan.runs}; line: the "
        "normal with the variance of the analysis. The paper does not give the eps of its figure.",
    )
    title = "Figure 4: the noise is normal"
    return Exhibit("figure-4", title, tuple(panels), claims.about_noise(kosarak), notes)


def errors(both: Sequence[Collections]) -> Exhibit:
    """Figure 7."""
    found, saved = [], []
    for letter, data in zip("ab", both, strict=True):
        names = (RAW, ZERO, CALIBRATE, LEARNED, BEST)
        curves = tuple(_over_eps(name, data, lambda name, e, data=data: data.errors(name, e)) for name in names)  # type: ignore[misc]
        label = f"average squared error ({data.unit} squared)"
        found.append(Panel(f"({letter}) {data.name}", "eps", label, curves))
    for letter, data in zip("cd", both, strict=True):
        printed = {e: share for e, share in claims.PRINTED[data.name].items() if e in data.plan.grid}
        points = {CALIBRATE: data.plan.grid, LEARNED: data.plan.grid, BEST: data.plan.grid}
        points |= {LIKELIHOOD: data.plan.likely} if data.plan.likely else {}
        curves = (
            *(Curve(n, at, tuple(data.gain(n, e) for e in at), faint=n in _ADDED) for n, at in points.items()),
            Curve("printed", tuple(printed), tuple(printed.values()), faint=True),
        )
        saved.append(Panel(f"({letter}) {data.name}, saved", "eps", "share of OUE-Zero's error", curves, y_log=False))
    plan = both[0].plan
    notes = (
        f"{HOW} {plan.runs} runs, mean and standard deviation. Dashed, ours, from the first {plan.added} of these "
        "runs: the prior learned from the estimates; the power law fitted by maximum likelihood instead of by its mean "
        "(only at both ends, and not in a quick run); and the true distribution of counts as prior, which no collector "
        "has. By theorem 2 no rule that treats all values alike has a smaller expected error than the last.",
        "Kosarak here is a tenth of the stream times ten: counts are multiples of ten and many are zero, which a power "
        "law on 1 .. n is not. Noise is far larger than ten clicks at every eps shown.",
    )
    title = "Figure 7: estimation errors"
    return Exhibit("figure-7", title, (*found, *saved), claims.about_errors(both), notes)


def sweep(data: Collections, number: int) -> Exhibit:
    """Figures 5 and 6."""
    least, factors = data.threshold(SWEPT), data.plan.factors
    at = tuple(factor * least for factor in factors)
    label = f"threshold ({data.unit}); significance threshold {least:,.0f}"

    def curve(name: str, measure: Callable[[Hits], float]) -> Curve:
        samples = [[measure(hits) for hits in data.hits(name, SWEPT, factor)] for factor in factors]
        return _curve(name, at, samples, faint=name in _ADDED)

    panels = [
        Panel(f"({letter}) {what}", label, what, tuple(
            curve(name, measure) for name in (RAW, ZERO, CALIBRATE, LEARNED, PROBABILITY)
        ), y_log=False)
        for letter, (what, measure) in zip("abc", _MEASURES.items(), strict=True)
    ]  # fmt: skip
    ahead = tuple(
        Curve(name, at, tuple(data.lead(name, ZERO, SWEPT, factor)[0] for factor in factors), faint=name in _ADDED)
        for name in (RAW, CALIBRATE, LEARNED, PROBABILITY)
    )
    panels.append(Panel("(d) F-score less that of OUE-Zero", label, "difference", ahead, y_log=False))
    notes = (
        f"eps = {SWEPT:g}. {_identified(data)} Thresholds are multiples of the significance threshold (22).",
        "Panel (d) compares the same runs. OUE-Calibrate and OUE-Zero meet where the posterior mean of an estimate at "
        "the significance threshold is: there both find the same values.",
        *([_GRAIN] if data.name == "Kosarak" else []),
    )
    title = f"Figure {number}: heavy hitters against the threshold, {data.name}"
    return Exhibit(f"figure-{number}", title, tuple(panels), claims.about_sweep(data), notes)


def budgets(data: Collections, number: int) -> Exhibit:
    """Figures 8 and 9."""
    panels = tuple(
        Panel(f"({letter}) {what}", "eps", what, tuple(
            _over_eps(name, data, lambda name, e, measure=measure: [measure(hits) for hits in data.hits(name, e)])  # type: ignore[misc]
            for name in (ZERO, CALIBRATE, LEARNED, PROBABILITY)
        ), y_log=False)
        for letter, (what, measure) in zip("abc", _MEASURES.items(), strict=True)
    )  # fmt: skip
    truly = ", ".join(
        f"{data.threshold(e):,.0f} at eps = {e:g} ({data.hits(RAW, e)[0].true} truly above it)" for e in data.plan.grid
    )
    notes = (f"At the significance threshold: {truly}. {_identified(data)} OUE has the same curves as OUE-Zero.",)
    title = f"Figure {number}: heavy hitters at the significance threshold, {data.name}"
    return Exhibit(f"figure-{number}", title, panels, claims.about_budgets(data), notes)


def _identified(data: Collections) -> str:
    return (
        f"{data.plan.runs} runs, mean and standard deviation. A value is identified if its estimate, for "
        f"OUE-Calibrate the posterior mean, is above the threshold. Dashed, ours, from the first {data.plan.added} "
        "runs: the posterior mean under the learned prior; and, under the power law, a posterior probability above "
        "1/2 of being above the threshold."
    )


def _over_eps(name: str, data: Collections, sample: Callable[[str, float], list[float]]) -> Curve:
    return _curve(name, data.plan.grid, [sample(name, e) for e in data.plan.grid], faint=name in _ADDED)


def _curve(
    name: str,
    at: tuple[float, ...],
    samples: Sequence[Sequence[float]],
    *,
    theory: tuple[float, ...] | None = None,
    faint: bool = False,
) -> Curve:
    means = tuple(float(np.mean(sample)) for sample in samples)
    several = len(samples[0]) > 1
    spread = tuple(float(np.std(sample, ddof=1)) for sample in samples) if several else None
    return Curve(name, at, means, spread, theory, faint=faint)
