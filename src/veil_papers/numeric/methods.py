"""Figures 2 to 4 of the Square Wave paper: how its methods are run on a data set, and what it says of their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from veil.mechanisms import MeanMechanism, Piecewise, SquareWave, StochasticRounding
from veil.metrics import ks, mean_error, quantile_error, range_mae, variance_error, wasserstein
from veil.numeric import Binning, HaarHierarchy, Hierarchy, HybridMean, TwoPhaseVariance
from veil_papers.common.asking import read, read_waves, run_campaign
from veil_papers.common.claims import Says, by_point, each, with_error
from veil_papers.common.exhibits import Advance, Panel, Parts, exhibit
from veil_papers.common.sweep import Scores, Sweep, known, measure
from veil_papers.numeric.people import BETA, FLIGHTS, INCOME, WAGES, Floats, M, People, Plan

Sets = Mapping[str, Sweep]  # the same measure on every data set

HOW = (
    "People who hold the same cell are drawn together, which equals simulating every person in distribution (OLH with "
    "an ideal hash); square waves and HaarHRR are drawn person by person. Estimates come from the shipped protocols."
)
_MEANS: dict[str, type[MeanMechanism] | type[HybridMean]] = {
    M.SR: StochasticRounding,
    M.PM: Piecewise,
    M.HM: HybridMean,
}
_DISTANCES: dict[str, Callable[[Floats, Floats], float]] = {
    "wasserstein": lambda found, truth: wasserstein(found, truth, length=1.0),
    "ks": ks,
    "mean": mean_error,
    "variance": variance_error,
    "quantiles": quantile_error,
}
_RANGES: dict[str, Callable[[Floats, Floats], float]] = {
    "range 0.1": lambda found, truth: range_mae(found, truth, 0.1),
    "range 0.4": lambda found, truth: range_mae(found, truth, 0.4),
}


def run(people: People, plan: Plan, seed: Sequence[int], advance: Advance) -> dict[str, Sweep]:
    """For every measure the errors of every method by eps: each on a collection of its own, or a shared one."""

    def trial(place: int, number: int) -> Scores:
        rng = np.random.default_rng([*seed, place, number])
        return _trial(people, plan.epsilons[place], rng, auto=number < plan.auto[people.label])

    return measure(plan.epsilons, plan.runs[people.label], trial, advance, paired=False)


def _trial(people: People, epsilon: float, rng: np.random.Generator, *, auto: bool) -> Scores:
    wave = SquareWave(epsilon, people.domain, people.buckets)
    smoothing = (True, False, "auto") if auto else (True, False)
    read_by_waves = read_waves([wave], people.codes, rng, smoothing)
    waves = {name: made.masses for name, made in zip((M.EMS, M.EM, M.AUTO), read_by_waves, strict=False)}
    trees = _from_trees(people, epsilon, rng)
    proper = waves | {name: masses for name, masses in trees.items() if name not in (M.HH, M.HAAR)}
    errors = {
        of: {name: score(masses, people.truth) for name, masses in proper.items()} for of, score in _DISTANCES.items()
    }
    for of, score in _RANGES.items():  # the only ones for which masses may be negative
        errors[of] = {name: score(masses, people.truth) for name, masses in (waves | trees).items()}
    for name in _MEANS:
        errors["mean"][name], errors["variance"][name] = _moment_errors(people, epsilon, name, rng)
    return errors


def _from_trees(people: People, epsilon: float, rng: np.random.Generator) -> dict[str, Floats]:
    """Hierarchies, and bins as trees of one level."""
    tree = Hierarchy(epsilon, people.bucketed, people.buckets)
    ways: dict[str, dict[str, Any]] = {M.ADMM: {"method": "admm"}, M.EXACT: {"method": "exact", "weighted": True}}
    ways[M.HH] = {"method": "consistent"}
    found = dict(zip(ways, read(tree, people.held, rng, *ways.values()), strict=True))
    (found[M.HAAR],) = read(HaarHierarchy(epsilon, people.bucketed, people.buckets), people.held, rng)
    for name in M.BINS:
        bins = int(name.removeprefix("CFO-"))
        (found[name],) = read(Binning(epsilon, people.bucketed, bins), people.held.reshape(bins, -1).sum(axis=1), rng)
    return {name: made.masses for name, made in found.items()}


def _moment_errors(people: People, epsilon: float, name: str, rng: np.random.Generator) -> tuple[float, float]:
    """Of the mean, asked of everybody, and of the variance, by halves; in units of [0, 1] and of its square."""
    kind, lo, length = _MEANS[name], people.numbers.lo, people.numbers.hi - people.numbers.lo
    true_mean, true_variance = people.moments
    (mean,) = read(kind(epsilon, people.bucketed), people.held, rng)
    spread = run_campaign(TwoPhaseVariance(kind, epsilon, people.bucketed), people.held, rng).variance
    return abs((mean.value - lo) / length - true_mean), abs(spread.value / length**2 - true_variance)


_STANDS_FOR = (
    "Flight times stand for the paper's taxi pick-up times, wages below 60,000 dollars for its retirement plans, and "
    "IPUMS incomes for its ACS incomes. HaarHRR is a binary tree, as it must be; the paper says 4."
)
_HISTOGRAMS = (M.EMS, M.EM, M.AUTO, M.ADMM, M.EXACT, *M.BINS)
_SMOOTH = (BETA, FLIGHTS, WAGES)


def panels(what: str, sets: Sets, methods: Sequence[str], letters: str = "abcd") -> list[Panel]:
    """One panel for each data set, by eps."""
    shown = zip(letters, sets.items(), strict=True)
    return [of.panel(f"({letter}) {label}", "eps", what, methods, faint=M.OURS) for letter, (label, of) in shown]


def told(runs: dict[str, int]) -> str:
    """Numbers of runs in words."""
    return f"{', '.join(f'{count:,} ({label})' for label, count in runs.items())} runs"


def _notes(plan: Plan) -> tuple[str, ...]:
    return (
        f"{HOW} {told(plan.runs)} ({told(plan.auto)} of SW-auto), mean and standard deviation; the paper has 100. "
        "EMS, EM and SW-auto read the same reports, and so do HH, HH-ADMM and HH-exact, which is HH-ADMM's problem "
        "with levels weighted by their variance, solved exactly.",
        _STANDS_FOR,
    )


@exhibit
def distances(wave: Sets, ks_: Sets, plan: Plan) -> Parts:
    """Figure 2: distances between the estimated and the true distribution."""
    # what section 6.2 says
    yield from panels("Wasserstein distance", wave, _HISTOGRAMS)
    yield from panels("KS distance", ks_, _HISTOGRAMS, "efgh")
    yield from _notes(plan)
    lowest = "SW-EMS has the lowest Wasserstein distance"
    yield Says(f"{BETA}: {lowest} at every eps").not_above(wave[BETA], M.EMS, M.DISTRIBUTIONS)
    says = f"{FLIGHTS}: {lowest} at every eps (here: within 5 % of the lowest)"
    yield Says(says).not_above(wave[FLIGHTS], M.EMS, M.DISTRIBUTIONS, most=1.05)
    yield Says(f"In most cases {lowest}").mostly(wave, M.EMS, M.DISTRIBUTIONS)
    falls = {label: {name: s.mean(name)[0] / s.mean(name)[-1] for name in M.BINS} for label, s in wave.items()}
    yield Says(
        "The lines of fewer bins flatten as eps increases (here: on every set the distance of 16 bins falls by a "
        "smaller factor than that of 64)"
    ).given(
        "; ".join(f"{label}: by {each(of, '.1f')}" for label, of in falls.items()),
        all(of["CFO-16"] < of["CFO-64"] for of in falls.values()),
    )
    binned = {label: zip(s.x, *s.over_best(M.EMS, M.BINS), strict=True) for label, s in wave.items()}
    listed = (f"{of} {', '.join(f'{with_error(r, e)} ({x:g})' for x, r, e in at)}" for of, at in binned.items())
    says = "Even with the best number of bins for each set and eps, binning is worse than SW-EMS (here: in all cases)"
    yield Says(says).given(
        f"SW-EMS over the best bins: {'; '.join(listed)}", not any(s.surely_above(M.EMS, M.BINS) for s in wave.values())
    )
    smooth, says = (
        {label: ks_[label] for label in _SMOOTH},
        "On Beta, flights and wages SW-EMS generally has the lowest",
    )
    yield Says(f"{says} KS distance").mostly(smooth, M.EMS, M.DISTRIBUTIONS)
    for rival in (M.EMS, M.EM):
        says = f"{INCOME}: HH-ADMM has a lower KS distance than {rival} at every eps"
        yield Says(says).not_above(ks_[INCOME], M.ADMM, (rival,))
    says = f"{INCOME}: HH-ADMM has a higher Wasserstein distance than SW-EMS at every eps"
    yield Says(says).not_above(wave[INCOME], M.EMS, (M.ADMM,))
    says = f"(ours) {INCOME}: SW-auto has a lower Wasserstein distance than SW-EMS at every eps"
    yield Says(says).not_above(wave[INCOME], M.AUTO, (M.EMS,))
    for label in _SMOOTH:
        says = f"(ours) {label}: SW-auto has at most 1.05 times the Wasserstein distance of SW-EMS at every eps"
        yield Says(says).not_above(wave[label], M.AUTO, (M.EMS,), most=1.05)
    for label, sweep in wave.items():
        says = f"(ours) {label}: HH-exact, with weights, has a lower Wasserstein distance than HH-ADMM at every eps"
        yield Says(says).not_above(sweep, M.EXACT, (M.ADMM,))


@exhibit
def ranges(alphas: Mapping[str, Sets], plan: Plan) -> Parts:
    """Figure 3: range queries."""
    # what section 6.3 says
    for letters, (alpha, sets) in zip(("abcd", "efgh"), alphas.items(), strict=True):
        methods = (*_HISTOGRAMS[:5], M.HH, M.HAAR, *M.BINS)
        yield from panels(f"mean absolute error, alpha = {alpha}", sets, methods, letters)
    yield from _notes(plan)
    yield "Ranges start at 10,000 evenly spread points of [0, 1 - alpha]; the paper draws them."
    for label in alphas["0.1"]:
        for alpha, sets in alphas.items():
            says = f"{label}: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = {alpha}"
            yield Says(says).not_above(sets[label], M.EMS, (M.HH, M.HAAR))
    every = {f"{label}, alpha = {alpha}": sweep for alpha, sets in alphas.items() for label, sweep in sets.items()}
    yield Says("SW-EMS has the lowest error in most cases").mostly(every, M.EMS, (*M.DISTRIBUTIONS, M.HH, M.HAAR))
    says = f"{FLIGHTS}: SW-EMS is similar to CFO-64 where alpha = 0.1 (here: within a factor of 1.5)"
    yield Says(says).ratio_within({FLIGHTS: alphas["0.1"][FLIGHTS]}, (M.EMS, "CFO-64"), 1 / 1.5, 1.5)
    best = {alpha: (of[INCOME].x, of[INCOME].best(M.DISTRIBUTIONS)) for alpha, of in alphas.items()}
    wins = {alpha: list(zip(*pair, strict=True)) for alpha, pair in best.items()}
    yield Says(f"{INCOME}: SW-EM or SW-EMS has the lowest error up to eps = 2, HH-ADMM above").given(
        "; ".join(f"alpha = {alpha}: {', '.join(f'{n} ({x:g})' for x, n in at)}" for alpha, at in wins.items()),
        all(name in ((M.EM, M.EMS) if x <= 2 else (M.ADMM,)) for at in wins.values() for x, name in at),
    )


@exhibit
def statistics(mean: Sets, variance: Sets, quantiles: Sets, plan: Plan) -> Parts:
    """Figure 4: means, variances and quantiles."""
    # what section 6.3 says
    yield from panels("absolute error of the mean", mean, (*_HISTOGRAMS, *_MEANS))
    yield from panels("absolute error of the variance", variance, (*_HISTOGRAMS, *_MEANS), "efgh")
    yield from panels("absolute error of quantiles", quantiles, _HISTOGRAMS, "ijkl")
    yield from _notes(plan)
    yield (
        "SR, PM and HM see numbers to the bucket. For the variance one half of the people is asked for the mean, the "
        "other half for squared distances to it. HM, the hybrid of both, is not in the paper's figures."
    )
    for label, sweep in mean.items():
        says = f"{label}: SW-EMS's mean is comparable to the better of SR and PM at every eps"
        most, here = (1.0, "its error is at most theirs") if label == BETA else (1.5, "at most 1.5 times their error")
        yield Says(f"{says} (here: {here})").not_above(sweep, M.EMS, (M.SR, M.PM), most=most)
    crossing = {label: list(zip(*sweep.ratio(M.SR, M.PM), strict=True)) for label, sweep in mean.items()}
    ends = {label: (at[0], at[-1]) for label, at in crossing.items()}
    yield Says(
        "For means SR is better than PM where eps is small, and worse where it is large (here: at the ends of the axis, "
        "on every set)"
    ).given(
        f"SR over PM: {'; '.join(f'{label} {with_error(*a)} to {with_error(*b)}' for label, (a, b) in ends.items())}",
        all(a[0] - 2 * known(a[1]) <= 1 <= b[0] + 2 * known(b[1]) for a, b in ends.values()),
    )
    between = _cases(mean, lambda off: off[M.EMS] < off[M.ADMM] < min(off[name] for name in M.BINS))
    says = "For means HH-ADMM is better than binning, and worse than SW-EMS (here: in more than half of the cases)"
    yield Says(says).given(f"in {sum(between)} of {len(between)} cases", sum(between) > len(between) / 2)
    spread = _cases(variance, lambda off: min(off[M.EM], off[M.EMS]) < min(off[M.SR], off[M.PM]))
    yield Says("For variances SR and PM have a larger error than SW-EM or SW-EMS in most cases").given(
        f"the better of SR and PM than the better of the two in {sum(spread)} of {len(spread)} cases",
        sum(spread) > len(spread) / 2,
    )
    smooth = {label: quantiles[label] for label in _SMOOTH}
    yield Says("For quantiles SW-EMS is the best on Beta, flights and wages").mostly(smooth, M.EMS, M.DISTRIBUTIONS)
    says = f"{INCOME}: for quantiles HH-ADMM is the best at every eps"
    yield Says(says).not_above(quantiles[INCOME], M.ADMM, M.DISTRIBUTIONS)
    coarse, _ = quantiles[INCOME].over_best("CFO-16", M.DISTRIBUTIONS)
    yield Says(
        f"{INCOME}: for quantiles few bins are worse than other methods by 1 to 2 orders of magnitude (here: 16 bins, "
        "10 to 100 times the best)"
    ).given(by_point(quantiles[INCOME].x, coarse, ".1f"), coarse.min() >= 10 and coarse.max() <= 100)


def _cases(sets: Sets, holds: Callable[[dict[str, float]], bool]) -> list[bool]:
    """Whether it holds of the methods' mean errors, for each case: a set and an eps."""
    return [holds(sweep.each_at(at)) for sweep in sets.values() for at in sweep.x]
