"""Frequencies in every form that they are printed in: many people, sets, after post-processing, samples, weights.

Supports are drawn from their law, which is exact for single values of every pure oracle; for sums over values, of
oracles whose supports are independent of each other, and of GRR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from veil import GRR, OLH, OUE, PGR, SHE, Estimate, SubsetSelection, Tally, simulate
from veil.mechanisms import PureOracle
from veil.results import FrequencyChange
from veil_papers.common.asking import drawn_tally
from veil_papers.coverage.cells import LEVELS, Case, Generator, Seen, never
from veil_papers.coverage.populations import seventy

Ints = NDArray[np.int64]
Oracle = Callable[[float, int], PureOracle]

_MANY: tuple[Oracle, ...] = (GRR, OLH, OUE, PGR, SubsetSelection)
_JOINT: tuple[Oracle, ...] = (GRR, OLH, OUE)
_SIZE = 70
_SETS = tuple(np.arange(start, _SIZE, step) for start, step in ((0, 2), (1, 7), (35, 1), (60, 1)))
_WEIGHTS = (1, 2, 5)


def cases(epsilons: Iterable[float], runs: int) -> Iterator[Case]:
    """All kinds of frequencies that are not judged by sums over every support."""
    for epsilon in epsilons:
        for n in (20_000, 1_000_000):
            for label, held in seventy(n).items():
                for kind in _MANY:
                    oracle = kind(epsilon, _SIZE)
                    yield Case(oracle.name, label, n, epsilon, partial(many, oracle, held), runs)
        for n in (300, 3_000, 100_000):
            held = seventy(n)["Zipf"]
            for kind in _JOINT:
                oracle = kind(epsilon, _SIZE)
                yield Case(oracle.name, "Zipf", n, epsilon, partial(totals, oracle, held), 4 * runs)
            oracle = OLH(epsilon, _SIZE)
            for way in ("norm", "norm-sub", "base-cut"):
                yield Case(f"OLH, {way}", "Zipf", n, epsilon, partial(processed, oracle, held, way), runs)
            for kind in (GRR, OLH):
                oracle = kind(epsilon, _SIZE)
                yield Case(f"{oracle.name}, a tenth", "Zipf", n, epsilon, partial(sampled, oracle, held), runs)
                yield Case(f"{oracle.name}, {_WEIGHTS}", "Zipf", n, epsilon, partial(weighted, oracle, held), runs)
                yield Case(oracle.name, "Zipf, other Zipf", n, epsilon, partial(differing, oracle, held), runs)
        held = seventy(1_000)["Zipf"]
        yield Case("SHE", "Zipf", 1_000, epsilon, partial(additive, SHE(epsilon, _SIZE), held), max(runs // 4, 2))


def support_tally(oracle: PureOracle, held: Ints, rng: Generator) -> Tally:
    """What the collector counts, value by value; the values' supports are drawn independently of each other."""
    n, every = int(held.sum()), np.arange(len(held), dtype=np.uint64)
    counts = rng.binomial(held, float(oracle.p)) + rng.binomial(n - held, float(oracle.q))
    return Tally(oracle.digest, counts, n, n, n, every)


def shown(kind: str, estimate: Estimate, truth: NDArray[np.float64]) -> Iterator[Seen]:
    """The intervals of all values, at every level."""
    for level in LEVELS:
        low, high = estimate.interval(level).T
        yield Seen(kind, level, truth, low, high)


def many(oracle: PureOracle, held: Ints, rng: Generator) -> Iterator[Seen]:
    """Single values, many people."""
    yield from shown("frequencies, many people", oracle.estimate(support_tally(oracle, held, rng)), held / held.sum())


def totals(oracle: PureOracle, held: Ints, rng: Generator) -> Iterator[Seen]:
    """Sets of values, from half of all to a few rare ones."""
    estimate = oracle.estimate(drawn_tally(oracle, held, rng))
    truth = [held[chosen].sum() / held.sum() for chosen in _SETS]
    for level in LEVELS:
        ends = np.array([estimate.total(chosen).interval(level) for chosen in _SETS])
        yield Seen("totals of sets", level, truth, ends[:, 0], ends[:, 1])


def processed(oracle: PureOracle, held: Ints, way: str, rng: Generator) -> Iterator[Seen]:
    """Single values after post-processing."""
    estimate = oracle.estimate(drawn_tally(oracle, held, rng)).post(way)
    yield from shown("after post-processing", estimate, held / held.sum())


def sampled(oracle: PureOracle, held: Ints, rng: Generator) -> Iterator[Seen]:
    """A tenth of the people is asked, and the intervals are about everybody."""
    everybody = 10 * held
    asked = rng.multivariate_hypergeometric(everybody, int(held.sum()), method="marginals")
    estimate = oracle.estimate(support_tally(oracle, asked, rng), population=int(everybody.sum()))
    yield from shown("a sample of the people", estimate, everybody / everybody.sum())


def weighted(oracle: PureOracle, held: Ints, rng: Generator) -> Iterator[Seen]:
    """People count 1, 2 or 5 times; which, has nothing to do with what they hold."""
    n = int(held.sum())
    chances = np.array([0.6, 0.3, 0.1])
    by_weight = rng.multivariate_hypergeometric(held, round(n * chances[0]), method="marginals")
    rest = rng.multivariate_hypergeometric(held - by_weight, round(n * chances[1]), method="marginals")
    parts = (by_weight, rest, held - by_weight - rest)
    tallies = [support_tally(oracle, part, rng) for part in parts]
    counts = sum(weight * tally.counts for weight, tally in zip(_WEIGHTS, tallies, strict=True))
    people = [int(part.sum()) for part in parts]
    weight, square = (sum(of**power * count for of, count in zip(_WEIGHTS, people, strict=True)) for power in (1, 2))
    estimate = oracle.estimate(Tally(oracle.digest, np.asarray(counts), n, weight, square))
    truth = sum(of * part for of, part in zip(_WEIGHTS, parts, strict=True)) / weight
    yield from shown("with weights", estimate, np.asarray(truth))


def additive(oracle: SHE, held: Ints, rng: Generator) -> Iterator[Seen]:
    """Noise that is added, and is the same for every value."""
    values = np.repeat(np.arange(len(held)), held)
    yield from shown("frequencies, SHE", simulate(oracle, values, seed=int(rng.integers(1 << 32))), held / held.sum())


def differing(oracle: PureOracle, held: Ints, rng: Generator) -> Iterator[Seen]:
    """Two collections from different people: by how much each value changed, and what is called changed if none did."""
    other = np.roll(held, 1)
    change = _change(oracle, held, other, rng)
    for level in LEVELS:
        low, high = change.interval(level).T
        yield Seen("differences", level, (held - other) / held.sum(), low, high)
    n, shares = int(held.sum()), held / held.sum()
    same = _change(oracle, rng.multinomial(n, shares), rng.multinomial(n, shares), rng)
    yield never("differences: nothing is called changed", same.changed().any(), 0.95)


def _change(oracle: PureOracle, held: Ints, other: Ints, rng: Generator) -> FrequencyChange:
    after, before = (oracle.estimate(support_tally(oracle, part, rng)) for part in (held, other))
    found = after.difference(before)
    assert isinstance(found, FrequencyChange)
    return found
