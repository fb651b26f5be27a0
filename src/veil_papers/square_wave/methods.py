"""The methods of the Square Wave paper on one data set: how they are run, and how far off they are, run by run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.datasets import beta_numbers, flight_times, income, wages
from veil.mechanisms import MeanMechanism, Piecewise, SquareWave, StochasticRounding
from veil.metrics import ks, mean_error, quantile_error, range_mae, variance_error, wasserstein
from veil.numeric.binning import Binning
from veil.numeric.haar import HaarHierarchy
from veil.numeric.hierarchy import Hierarchy
from veil.numeric.means import HybridMean, TwoPhaseVariance
from veil.survey import Survey
from veil_papers.common.exhibits import Advance, Setting
from veil_papers.square_wave.people import People, collect, run_campaign, wave_tally

__all__ = [
    "ADMM",
    "AUTO",
    "BETA",
    "BINS",
    "DISTRIBUTIONS",
    "EM",
    "EMS",
    "EXACT",
    "FLIGHTS",
    "FULL",
    "HAAR",
    "HH",
    "HM",
    "INCOME",
    "MEANS",
    "OURS",
    "PM",
    "QUICK",
    "SR",
    "WAGES",
    "Plan",
    "data_sets",
    "measure",
]

Floats = NDArray[np.float64]
Score = Callable[[Floats, Floats], float]

BETA, FLIGHTS, INCOME, WAGES = "Beta", "flights", "income", "wages"
EMS, EM, AUTO = "SW-EMS", "SW-EM", "SW-auto (ours)"
ADMM, EXACT, HH, HAAR = "HH-ADMM", "HH-exact (ours)", "HH", "HaarHRR"
BINS = {"CFO-16": 16, "CFO-32": 32, "CFO-64": 64}
SR, PM, HM = "SR", "PM", "HM (ours)"
DISTRIBUTIONS = (EMS, EM, ADMM, *BINS)
"""The paper's methods whose results are probability distributions."""
OURS = (AUTO, EXACT, HM)
"""What is not in the paper's figures; drawn dashed."""
MEANS: dict[str, type[MeanMechanism] | type[HybridMean]] = {SR: StochasticRounding, PM: Piecewise, HM: HybridMean}

_EARNERS, _RIDES = 2_308_374, 2_189_968  # people in the paper's income and taxi data
_DISTANCES: dict[str, Score] = {
    "wasserstein": lambda found, truth: wasserstein(found, truth, length=1.0),
    "ks": ks,
    "mean": mean_error,
    "variance": variance_error,
    "quantiles": quantile_error,
}
_RANGES: dict[str, Score] = {
    "range 0.1": lambda found, truth: range_mae(found, truth, 0.1),
    "range 0.4": lambda found, truth: range_mae(found, truth, 0.4),
}


@dataclass(frozen=True)
class Plan:
    """How much is run; numbers of runs are by data set."""

    epsilons: tuple[float, ...]
    runs: dict[str, int]
    auto: dict[str, int]
    """In how many of them smoothing="auto" is tried, which takes 26 fits instead of one."""
    wave_runs: dict[str, int]
    """Runs at a point of Figures 5 and 7."""
    width_runs: dict[str, int]
    """Runs at a point of Figure 6: the least of many means is too small by chance, where they are of few runs."""
    formula_runs: dict[str, int]
    """The same at the formula's b, which claims are about."""
    widths: tuple[float, ...]
    granularities: tuple[int, ...] = (256, 512, 1024, 2048)


FULL = Plan(
    epsilons=(0.5, 1.0, 1.5, 2.0, 2.5),
    runs={BETA: 500, FLIGHTS: 100, INCOME: 100, WAGES: 100},
    auto={BETA: 100, FLIGHTS: 20, INCOME: 20, WAGES: 20},
    wave_runs={BETA: 100, FLIGHTS: 12, INCOME: 12, WAGES: 25},
    width_runs={BETA: 100, FLIGHTS: 40, INCOME: 20, WAGES: 60},
    formula_runs={BETA: 800, FLIGHTS: 60, INCOME: 60, WAGES: 125},
    widths=(0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.34, 0.38),
)
QUICK = Plan(
    epsilons=(1.0, 2.5),
    runs={BETA: 20, FLIGHTS: 3, INCOME: 3, WAGES: 3},
    auto={BETA: 2, FLIGHTS: 1, INCOME: 1, WAGES: 1},
    wave_runs={BETA: 4, FLIGHTS: 1, INCOME: 1, WAGES: 1},
    width_runs={BETA: 4, FLIGHTS: 1, INCOME: 1, WAGES: 1},
    formula_runs={BETA: 12, FLIGHTS: 2, INCOME: 2, WAGES: 2},
    widths=(0.05, 0.38),
    granularities=(256, 1024),
)


def data_sets(setting: Setting) -> dict[str, People]:
    """The paper's synthetic data and what stands for its three real sets; a quick run has fewer people in the large."""
    share = 10 if setting.quick else 1
    paid = wages(setting.data, below=60_000)
    made = (
        People(BETA, beta_numbers(), 256, 100_000),
        People(FLIGHTS, flight_times(setting.data), 1024, _RIDES // share),
        People(INCOME, income(setting.data, bins=1024), 1024, _EARNERS // share),
        People(WAGES, paid, 1024, paid.people),
    )
    return {people.label: people for people in made}


def measure(
    people: People, epsilon: float, plan: Plan, seed: Sequence[int], advance: Advance
) -> dict[str, dict[str, Floats]]:
    """For every measure the errors of every method, run by run."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in range(plan.runs[people.label]):
        errors = _trial(people, epsilon, np.random.default_rng([*seed, run]), auto=run < plan.auto[people.label])
        for of, by_method in errors.items():
            for method, error in by_method.items():
                found.setdefault(of, {}).setdefault(method, []).append(error)
        advance(1)
    return {of: {method: np.array(errors) for method, errors in by.items()} for of, by in found.items()}


def _trial(people: People, epsilon: float, rng: np.random.Generator, *, auto: bool) -> dict[str, dict[str, float]]:
    """Every method's errors, each on a collection of its own; those that read the same reports share one."""
    waves, trees = _from_waves(people, epsilon, rng, auto=auto), _from_trees(people, epsilon, rng)
    proper = waves | {name: masses for name, masses in trees.items() if name not in (HH, HAAR)}
    errors = {
        of: {name: score(masses, people.truth) for name, masses in proper.items()} for of, score in _DISTANCES.items()
    }
    for of, score in _RANGES.items():  # the only ones for which masses may be negative
        errors[of] = {name: score(masses, people.truth) for name, masses in (waves | trees).items()}
    for name in MEANS:
        errors["mean"][name], errors["variance"][name] = _moment_errors(people, epsilon, name, rng)
    return errors


def _from_waves(people: People, epsilon: float, rng: np.random.Generator, *, auto: bool) -> dict[str, Floats]:
    wave = SquareWave(epsilon, people.domain, people.buckets)
    tally = wave_tally(wave, people, rng)
    found = {EMS: wave.estimate(tally).masses, EM: wave.estimate(tally, smoothing=False).masses}
    return found | ({AUTO: wave.estimate(tally, smoothing="auto").masses} if auto else {})


def _from_trees(people: People, epsilon: float, rng: np.random.Generator) -> dict[str, Floats]:
    """Hierarchies, and bins as trees of one level."""
    tree, haar = (
        Hierarchy(epsilon, people.bucketed, people.buckets),
        HaarHierarchy(epsilon, people.bucketed, people.buckets),
    )
    tally = collect(tree.survey, people.held, rng)
    found = {
        ADMM: tree.estimate(tally, "admm").masses,
        EXACT: tree.estimate(tally, "exact", weighted=True).masses,
        HH: tree.estimate(tally, "consistent").masses,
        HAAR: haar.estimate(collect(haar.survey, people.held, rng)).masses,
    }
    for name, bins in BINS.items():
        asked = Binning(epsilon, people.bucketed, bins)
        inside = people.held.reshape(bins, -1).sum(axis=1)
        found[name] = asked.estimate(collect(asked.survey, inside, rng)).masses
    return found


def _moment_errors(people: People, epsilon: float, name: str, rng: np.random.Generator) -> tuple[float, float]:
    """Of the mean, asked of everybody, and of the variance, by halves; in units of [0, 1] and of its square."""
    kind, lo, length = MEANS[name], people.numbers.lo, people.numbers.hi - people.numbers.lo
    true_mean, true_variance = people.moments
    asked = kind(epsilon, people.bucketed)
    if isinstance(asked, HybridMean):
        mean = asked.estimate(collect(asked.survey, people.held, rng))
    else:
        (mean,) = (survey := Survey(asked)).estimate(collect(survey, people.held, rng))
    spread = run_campaign(TwoPhaseVariance(kind, epsilon, people.bucketed), people.held, rng).variance
    return abs((mean.value - lo) / length - true_mean), abs(spread.value / length**2 - true_variance)
