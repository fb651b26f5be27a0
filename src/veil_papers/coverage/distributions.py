"""Means and distributions of numbers: what is printed, what assumes nothing, and hierarchies, on six populations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil import Piecewise, SquareWave, StochasticRounding
from veil.domain import Integers, Interval
from veil.numeric import Binning, Distribution, HaarHierarchy, Hierarchy, HybridMean, WaveDistribution
from veil_papers.common.asking import collect, read
from veil_papers.coverage.cells import LEVELS, Case, Generator, Seen
from veil_papers.coverage.populations import Population

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PRINTED = {0.9: 0.87, 0.95: 0.92, 0.99: 0.97}
"""What bands have to reach that are printed by default, smooth ones where reports do not speak against them."""
QUANTILES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
_BUCKETS, _MEAN_CELLS = 1_024, 1_024
_NARROW = 0.99  # what intervals of 95 % of a hierarchy may cover at most, which knows its errors exactly
_MEANS = {"stochastic rounding": StochasticRounding, "piecewise": Piecewise, "hybrid": HybridMean}


def means(populations: Mapping[str, Population], epsilons: Iterable[float], runs: int) -> Iterator[Case]:
    """The mean, asked of everybody."""
    for epsilon in epsilons:
        for label, population in populations.items():
            for n in (300, 10_000):
                people = population.spread(n)
                for way in _MEANS:
                    yield Case(way, label, n, epsilon, partial(_mean, people, way, epsilon), runs)


def _mean(people: Population, way: str, epsilon: float, rng: Generator) -> Iterator[Seen]:
    """The mean of these people, and how much it differs from that of others, who hold the same values turned around."""
    domain, others = _cut(people, _MEAN_CELLS), replace(people, held=people.held[::-1].copy())
    found, other = (read(_MEANS[way](epsilon, domain), by_cell(of, domain), rng)[0] for of in (people, others))
    change = found.difference(other)
    for level in LEVELS:
        yield Seen("means", level, people.mean, *found.interval(level))
        yield Seen("differences of means", level, people.mean - others.mean, *change.interval(level))


def waves(
    populations: Mapping[str, Population], epsilons: Iterable[float], n: int, runs: int, levels: Sequence[float]
) -> Iterator[Case]:
    """Square Wave: what is printed by default, and what assumes nothing, from the same reports."""
    for label, population in populations.items():
        people = population.spread(n)
        for epsilon in epsilons:
            run = partial(_wave, people, epsilon, levels)
            yield Case("Square Wave", label, n, epsilon, run, runs, PRINTED)


def _wave(people: Population, epsilon: float, levels: Sequence[float], rng: Generator) -> Iterator[Seen]:
    study = WaveDistribution(SquareWave(epsilon, people.domain))
    tally = collect(study.survey, by_cell(people, people.domain), rng)
    yield from asked("distributions as printed", study.read(tally), people, levels)
    for seen in asked("distributions, nothing assumed", replace(study, assume="nothing").read(tally), people, levels):
        yield replace(seen, least=seen.nominal)


def trees(
    populations: Mapping[str, Population], epsilons: Iterable[float], n: int, runs: int, levels: Sequence[float]
) -> Iterator[Case]:
    """Hierarchies, whose levels are unbiased on any data, and bins."""
    for label, population in populations.items():
        people = population.spread(n)
        for epsilon in epsilons:
            for way in ("Hierarchy", "HaarHRR", "bins"):
                yield Case(way, label, n, epsilon, partial(_tree, people, way, epsilon, levels), runs)


def _tree(people: Population, way: str, epsilon: float, levels: Sequence[float], rng: Generator) -> Iterator[Seen]:
    study: Any
    if way == "bins":
        study = Binning(epsilon, people.domain, 32)
        held = by_cell(people, study.survey.domain)
    else:
        kind = Hierarchy if way == "Hierarchy" else HaarHierarchy
        study = kind(epsilon, _cut(people, _BUCKETS))
        held = by_cell(people, study.domain)
    found = study.read(collect(study.survey, held, rng))
    for seen in asked(f"distributions, {way}", found, people, levels):
        # quantiles may be covered more often: their intervals also hold beside gaps
        narrow = way == "Hierarchy" and seen.nominal == 0.95 and "quantiles" not in seen.kind
        yield replace(seen, most=_NARROW if narrow else 1.0)


def asked(kind: str, found: Distribution, people: Population, levels: Sequence[float]) -> Iterator[Seen]:
    """The cumulative share at edges of buckets and at round numbers, and quantiles where there are any."""
    edges = near_deciles(found, people)
    rounds = np.array(people.rounds)
    whole = isinstance(people.domain, Integers)
    at = np.floor(edges).astype(np.int64) if whole else edges  # an edge of integers lies halfway between two
    told = rounds.astype(np.int64) if whole else rounds
    for level in levels:
        assert found.bands is not None
        yield Seen(f"{kind}: at edges", level, people.below(edges), *found.bands.cdf(at, level))
        yield Seen(f"{kind}: at round numbers", level, people.cdf(rounds), *found.bands.cdf(told, level))
        if found.proper:
            ends = found.bands.quantile_numbers(QUANTILES, level)
            yield Seen(f"{kind}: quantiles", level, people.quantile(QUANTILES), *ends)


def near_deciles(found: Distribution, people: Population) -> Floats:
    """The edges of buckets that lie nearest to the true deciles, each once."""
    deciles = people.quantile(np.arange(1, 10) / 10)
    inner = found.edges[1:-1]
    return np.unique(inner[np.abs(inner[:, None] - deciles).argmin(axis=0)])


def by_cell(people: Population, domain: Interval | Integers) -> Ints:
    """How many people hold each cell of a domain that is as long as theirs."""
    values = people.values.astype(np.int64) if isinstance(domain, Integers) else people.values
    return np.bincount(domain.encode(values).astype(np.int64), weights=people.held, minlength=domain.size).astype(
        np.int64
    )


def _cut(people: Population, cells: int) -> Interval | Integers:
    """The domain cut into so many cells; integers stay as they are."""
    return people.domain if isinstance(people.domain, Integers) else replace(people.domain, cells=cells)
