"""The Square Wave paper's figures as exhibits: which curves stand in which panel, and how they were made."""

from __future__ import annotations

from collections.abc import Sequence

from veil_papers.common.exhibits import Exhibit, Panel
from veil_papers.common.sweep import Errors
from veil_papers.square_wave import claims as claims
from veil_papers.square_wave import wave_claims as wave_claims
from veil_papers.square_wave.methods import ADMM, AUTO, BINS, EM, EMS, EXACT, HAAR, HH, MEANS, OURS, Plan
from veil_papers.square_wave.people import HOW
from veil_papers.square_wave.waves import formula

__all__ = ["REMARKS", "buckets", "distances", "ranges", "statistics", "wave_shapes", "wave_widths"]

_HISTOGRAMS = (EMS, EM, AUTO, ADMM, EXACT, *BINS)
_STANDS_FOR = (
    "Flight times stand for the paper's taxi pick-up times, wages below 60,000 dollars for its retirement plans, and "
    "IPUMS incomes for its ACS incomes. HaarHRR is a binary tree, as it must be; the paper says 4."
)
REMARKS = {
    "figure-2": "Why SW-EMS is not the best everywhere. Flights: hardly anybody departs before 5:45, many from 6:00 "
    "on; EMS smooths that edge, where its largest error lies (at 5:54 in most runs), and all three kinds of bins "
    "happen to end at 6:00. Wages below 60,000 dollars are so even that 16 bins have little bias: 0.0015 without any "
    "noise. Income: one person in eight is in the first bucket, of 400 dollars, and many are at round thousands; EMS "
    "spreads these spikes over their neighbours, while EM, HH-ADMM and SW-auto keep part of them.",
    "figure-3": "Bins answer short ranges well on flights and wages, for the reasons above. On income HH overtakes "
    "SW-EMS at large eps: spikes that are spread are a bias, which shrinks more slowly than noise.",
    "figure-4": "On income the mean of SW-EMS is too large, by 0.002 at eps = 0.5 and 0.0004 at eps = 2.5, more than "
    "its standard deviation: what is spread of the spike at zero can only go upwards; SW-EM has a quarter of that bias "
    "or less. HH-ADMM's means are pulled towards the middle, because noise in buckets without people can only be "
    "positive (on Beta by 0.017 at eps = 0.5, where 16 bins are pulled by 0.007).",
    "figure-5": "On wages flatter waves win because EMS stops earlier for them, by the paper's rule for tau: after 557 "
    "steps for 0.2 and 1,249 for the square wave, and a smoother estimate suits wages, which are even. Run until "
    "nothing moves any more (tau = 1e-6), the square wave is the best here too: 0.0067, against 0.0075 for 0.4, 0.0084 "
    "for 0.2 and 0.0086 for the triangle (30 runs, standard errors up to 0.0004).",
    "figure-7": "EMS averages neighbouring buckets, so that more buckets are smoothed over a shorter distance: better "
    "for the edge of flights and the spikes of income, worse for wages, which are even.",
}
"""What the real data have to do with claims that do not hold, by figure."""


def distances(wasserstein: dict[str, Errors], ks: dict[str, Errors], plan: Plan) -> Exhibit:
    """Figure 2."""
    panels = (
        *_panels("abcd", wasserstein, _HISTOGRAMS, "Wasserstein distance"),
        *_panels("efgh", ks, _HISTOGRAMS, "KS distance"),
    )
    title = "Figure 2: distances between the estimated and the true distribution"
    return Exhibit("figure-2", title, panels, claims.about_distances(wasserstein, ks), _notes(plan))


def ranges(short: dict[str, Errors], long: dict[str, Errors], plan: Plan) -> Exhibit:
    """Figure 3."""
    methods = (EMS, EM, AUTO, ADMM, EXACT, HH, HAAR, *BINS)
    panels = (
        *_panels("abcd", short, methods, "mean absolute error, alpha = 0.1"),
        *_panels("efgh", long, methods, "mean absolute error, alpha = 0.4"),
    )
    notes = (*_notes(plan), "Ranges start at 10,000 evenly spread points of [0, 1 - alpha]; the paper draws them.")
    return Exhibit("figure-3", "Figure 3: range queries", panels, claims.about_ranges(short, long), notes)


def statistics(
    mean: dict[str, Errors], variance: dict[str, Errors], quantiles: dict[str, Errors], plan: Plan
) -> Exhibit:
    """Figure 4."""
    with_means = (*_HISTOGRAMS, *MEANS)
    panels = (
        *_panels("abcd", mean, with_means, "absolute error of the mean"),
        *_panels("efgh", variance, with_means, "absolute error of the variance"),
        *_panels("ijkl", quantiles, _HISTOGRAMS, "absolute error of quantiles"),
    )
    more = (
        "SR, PM and HM see numbers to the bucket. For the variance one half of the people is asked for the mean, the "
        "other half for squared distances to it. HM, the hybrid of both, is not in the paper's figures."
    )
    title = "Figure 4: means, variances and quantiles"
    about = claims.about_statistics(mean, variance, quantiles)
    return Exhibit("figure-4", title, panels, about, (*_notes(plan), more))


def wave_shapes(found: dict[str, Errors], epsilon: float, plan: Plan) -> Exhibit:
    """Figure 5."""
    axes = ("b", "Wasserstein distance")
    panels = tuple(
        Panel(
            f"({letter}) {label}, eps = {epsilon:g}",
            *axes,
            tuple(errors.curve(name) for name in errors.runs),
            marks=(formula(epsilon),),
        )
        for letter, (label, errors) in zip("abcd", found.items(), strict=True)
    )
    notes = (
        "EMS. Numbers are the ratio of a trapezoid's upper to its lower side. The dotted line is the formula's b. "
        f"{_runs(plan.wave_runs)} a point, {_runs(plan.formula_runs)} at the formula's b.",
    )
    about = wave_claims.about_shapes(found, formula(epsilon))
    return Exhibit("figure-5", "Figure 5: shapes of waves", panels, about, notes)


def wave_widths(found: dict[float, Errors], plan: Plan) -> Exhibit:
    """Figure 6."""
    axes = ("b", "Wasserstein distance")
    panels = tuple(
        Panel(
            f"({letter}) eps = {epsilon:g}",
            *axes,
            tuple(errors.curve(label) for label in errors.runs),
            marks=(formula(epsilon),),
        )
        for letter, (epsilon, errors) in zip("abcde", found.items(), strict=False)
    )
    notes = (
        f"EMS. The dotted line is the formula's b. {_runs(plan.width_runs)} a point, {_runs(plan.formula_runs)} at the "
        "formula's b.",
    )
    about = wave_claims.about_widths({epsilon: (formula(epsilon), errors) for epsilon, errors in found.items()})
    return Exhibit("figure-6", "Figure 6: widths of the square wave", panels, about, notes)


def buckets(found: dict[str, Errors], plan: Plan) -> Exhibit:
    """Figure 7."""
    methods = tuple(next(iter(found.values())).runs)
    panels = _panels("abcd", found, methods, "Wasserstein distance")
    notes = (
        f"EMS. {_runs(plan.wave_runs)}; all numbers of buckets read the same reports, and are held against one truth "
        f"in {max(plan.granularities):,} buckets.",
    )
    return Exhibit("figure-7", "Figure 7: numbers of buckets", panels, wave_claims.about_buckets(found), notes)


def _panels(letters: str, found: dict[str, Errors], methods: Sequence[str], what: str) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            f"({letter}) {label}",
            "eps",
            what,
            tuple(errors.curve(name, faint=name in OURS) for name in methods),
        )
        for letter, (label, errors) in zip(letters, found.items(), strict=True)
    )


def _notes(plan: Plan) -> tuple[str, ...]:
    return (
        f"{HOW} {_runs(plan.runs)} ({_runs(plan.auto)} of SW-auto), mean and standard deviation; the paper has 100. "
        "EMS, EM and SW-auto read the same reports, and so do HH, HH-ADMM and HH-exact, which is HH-ADMM's problem "
        "with levels weighted by their variance, solved exactly.",
        _STANDS_FOR,
    )


def _runs(by_set: dict[str, int]) -> str:
    return f"{', '.join(f'{runs:,} ({label})' for label, runs in by_set.items())} runs"
