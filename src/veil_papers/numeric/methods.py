"""Figures 2 to 4 of the Square Wave paper: people, methods, how they are run, and what it says of their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Interval
from veil.mechanisms import MeanMechanism, Piecewise, SquareWave, StochasticRounding
from veil.metrics import ks, mean_error, quantile_error, range_mae, variance_error, wasserstein
from veil.numeric import Binning, HaarHierarchy, Hierarchy, HybridMean, TwoPhaseVariance
from veil_papers.common.asking import read, read_waves, run_study
from veil_papers.common.claims import Says, by_point, each, with_error
from veil_papers.common.exhibits import Panel, Parts, Setting, exhibit
from veil_papers.common.sweep import Scores, Sweep, known, measure
from veil_papers.datasets import Numbers, beta_numbers, flight_times, income, wages

Floats = NDArray[np.float64]

BETA, FLIGHTS, INCOME, WAGES = "Beta", "flights", "income", "wages"
_EARNERS, _RIDES = 2_308_374, 2_189_968  # people in the paper's income and taxi data


class M:
    """The methods, by the names of the paper and ours."""

    EMS, EM, AUTO = "SW-EMS", "SW-EM", "SW-auto (ours)"
    ADMM, EXACT, HH, HAAR = "HH-ADMM", "HH-exact (ours)", "HH", "HaarHRR"
    SR, PM, HM = "SR", "PM", "HM (ours)"
    BINS = ("CFO-16", "CFO-32", "CFO-64")
    DISTRIBUTIONS = (EMS, EM, ADMM, *BINS)  # the paper's methods whose results are probability distributions
    OURS = (AUTO, EXACT, HM)  # what is not in the paper's figures; drawn dashed


class Plan:
    """How much is run; numbers of runs are by data set."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch = setting.pick, setting.watch

        def by_set(full: tuple[int, ...], quick: tuple[int, ...]) -> dict[str, int]:
            return dict(zip((BETA, FLIGHTS, INCOME, WAGES), pick(full, quick), strict=True))

        self.epsilons = pick((0.5, 1.0, 1.5, 2.0, 2.5), (1.0, 2.5))
        self.runs = by_set((500, 100, 100, 100), (20, 3, 3, 3))
        self.auto = by_set((100, 20, 20, 20), (2, 1, 1, 1))
        """In how many of them smoothing="auto" is tried, which takes 26 fits instead of one."""
        self.wave_runs = by_set((100, 12, 12, 25), (4, 1, 1, 1))  # runs at a point of Figures 5 and 7
        self.width_runs = by_set((100, 40, 20, 60), (4, 1, 1, 1))
        """Runs at a point of Figure 6: the least of many means is too small by chance, where they are of few runs."""
        self.formula_runs = by_set((800, 60, 60, 125), (12, 2, 2, 2))
        """The same at the formula's b, which claims are about."""
        self.widths = pick((0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.34, 0.38), (0.05, 0.38))
        self.granularities = pick((256, 512, 1024, 2048), (256, 1024))
        vars(self).update(setting.changes)


@dataclass(frozen=True, eq=False)
class People:
    """So many people who stand for a data set, and the buckets in which their distribution is asked for."""

    label: str
    numbers: Numbers
    buckets: int
    count: int

    @property
    def domain(self) -> Interval:
        """What they hold, on a grid so fine that a wave does not notice."""
        return Interval(self.numbers.lo, self.numbers.hi)

    @property
    def bucketed(self) -> Interval:
        """What they hold, to the bucket: for everything but waves."""
        return Interval(self.numbers.lo, self.numbers.hi, cells=self.buckets)

    @cached_property
    def codes(self) -> NDArray[np.uint64]:
        """The fine cell of every person, in order."""
        return np.asarray(self.domain.encode(self.numbers.spread(self.count)))

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """How many people each bucket has."""
        return np.bincount(self.codes.astype(np.int64) * self.buckets // self.domain.cells, minlength=self.buckets)

    @cached_property
    def truth(self) -> Floats:
        """The distribution that is to be found."""
        return self.numbers.histogram(self.buckets)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of the buckets' middles, as mechanisms for means see people; in units of [0, 1]."""
        shares, middles = self.held / self.count, (np.arange(self.buckets) + 0.5) / self.buckets
        mean = float(shares @ middles)
        return mean, float(shares @ (middles - mean) ** 2)

    def __str__(self) -> str:
        span = f"{self.numbers.lo:g} to {self.numbers.hi:,.0f} {self.numbers.unit}".strip()
        return f"{self.numbers.origin}; {self.count:,} people, {span}, {self.buckets:,} buckets"


def data_sets(setting: Setting) -> dict[str, People]:
    """The paper's synthetic data and what stands for its three real sets; a quick run has fewer people in the large."""
    share, paid = setting.pick(1, 10), wages(setting.data, below=60_000)
    made = (
        People(BETA, beta_numbers(), 256, 100_000),
        People(FLIGHTS, flight_times(setting.data), 1024, _RIDES // share),
        People(INCOME, income(setting.data, bins=1024), 1024, _EARNERS // share),
        People(WAGES, paid, 1024, paid.people),
    )
    return {people.label: people for people in made}


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


def run(people: People, plan: Plan, seed: Sequence[int]) -> dict[str, Sweep]:
    """For every measure the errors of every method by eps: each on a collection of its own, or a shared one."""

    def trial(place: int, number: int) -> Scores:
        rng = np.random.default_rng([*seed, place, number])
        return _trial(people, plan.epsilons[place], rng, auto=number < plan.auto[people.label])

    title, runs = f"Figures 2 to 4: {people.label}", plan.runs[people.label]
    return measure(title, plan.watch, plan.epsilons, runs, trial, paired=False)


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
    spread = run_study(TwoPhaseVariance(kind, epsilon, people.bucketed), people.held, rng).variance
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
    says = "The lines of fewer bins flatten as eps increases (here: 16 bins fall by less than 64, on every set)"
    yield Says(says).given(
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
    yield "SR, PM and HM see numbers to the bucket. HM, the hybrid of both, is not in the paper's figures."
    yield "For the variance half of the people is asked for the mean, the other half for squared distances to it."
    for label, sweep in mean.items():
        says = f"{label}: SW-EMS's mean is comparable to the better of SR and PM at every eps"
        most, here = (1.0, "its error is at most theirs") if label == BETA else (1.5, "at most 1.5 times their error")
        yield Says(f"{says} (here: {here})").not_above(sweep, M.EMS, (M.SR, M.PM), most=most)
    crossing = {label: list(zip(*sweep.ratio(M.SR, M.PM), strict=True)) for label, sweep in mean.items()}
    ends = {label: (at[0], at[-1]) for label, at in crossing.items()}
    says = (
        "For means SR is better than PM at small eps and worse at large (here: at the ends of the axis, on every set)"
    )
    yield Says(says).given(
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
    says = f"{INCOME}: for quantiles few bins are worse by 1 to 2 orders of magnitude (here: 16 bins, 10 to 100 times)"
    yield Says(says).given(by_point(quantiles[INCOME].x, coarse, ".1f"), coarse.min() >= 10 and coarse.max() <= 100)


def _cases(sets: Sets, holds: Callable[[dict[str, float]], bool]) -> list[bool]:
    """Whether it holds of the methods' mean errors, for each case: a set and an eps."""
    return [holds(sweep.each_at(at)) for sweep in sets.values() for at in sweep.x]
