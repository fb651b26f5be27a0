"""Hierarchies against theory on fixed seeds: unbiased, the variances that least squares and Haar promise, the paper's
order of methods on ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.significance import mean_fits

from veil import HaarResponse, Interval
from veil.entropy import SeededForExperiments
from veil.numeric.distributions import Binning
from veil.numeric.hierarchy import HaarHierarchy, Hierarchy
from veil.survey import SurveyTally

Floats = NDArray[np.float64]
PEOPLE, RUNS, BUCKETS = 20_000, 160, 128


def held(buckets: int, people: int = PEOPLE) -> NDArray[np.uint64]:
    return np.random.default_rng(0).binomial(buckets - 1, 0.4, people).astype(np.uint64)


def tallies(protocol: Hierarchy | HaarHierarchy, runs: int = RUNS) -> list[SurveyTally]:
    codes = held(protocol.buckets)
    return [protocol.survey.tally(protocol.survey.reports(codes, SeededForExperiments(seed))) for seed in range(runs)]


def truth(buckets: int) -> Floats:
    return np.bincount(held(buckets), minlength=buckets) / PEOPLE


def haar_variance(protocol: HaarHierarchy) -> float:
    """Of a leaf with all its ancestors' siblings there: level l's coefficient counts for 1 / 4^(height - l + 1)."""
    height = protocol.tree.height
    moment = float(1 / (2 * HaarResponse(protocol.epsilon, 2).p - 1) ** 2)
    each = moment * height / PEOPLE
    return sum(each / 4 ** (height - level + 1) for level in range(1, height + 1))


def hierarchy_variance(protocol: Hierarchy) -> float:
    """The mean variance of a leaf by generalised least squares, with no answer about the root."""
    tree = protocol.tree
    noise = [question.pure.variance(PEOPLE) * tree.height for question in protocol.survey.questions]
    information = np.zeros((tree.leaves, tree.leaves))
    for level, variance in enumerate(noise, 1):
        for node in range(tree.sizes[level]):
            start, stop = tree.span(level, node)
            information[start:stop, start:stop] += 1 / variance
    return float(np.linalg.inv(information).diagonal().mean())


def test_consistent_estimates_have_the_variance_of_least_squares() -> None:
    """20,480 squared errors; the levels' people are a random share, so theory is met to a few percent."""
    protocol = Hierarchy(1.0, BUCKETS)
    found = np.array([replace(protocol, method="consistent").read(tally).masses for tally in tallies(protocol)])
    measured = float(np.mean((found - truth(BUCKETS)) ** 2))
    theory = hierarchy_variance(protocol)
    assert abs(measured / theory - 1) < 0.05
    for rival in (Hierarchy(0.9, BUCKETS), Hierarchy(1.1, BUCKETS)):
        assert abs(measured / hierarchy_variance(rival) - 1) > 0.05
    leaves = protocol.survey.questions[-1].pure.variance(PEOPLE) * protocol.tree.height
    assert measured < 0.9 * leaves  # the rival: the leaves' own level alone
    assert np.mean((found.mean(axis=0) - truth(BUCKETS)) ** 2) < 2 * theory / RUNS  # no bias hides in it


def test_haar_estimates_have_the_stated_variance() -> None:
    protocol = HaarHierarchy(1.0, BUCKETS)
    found = np.array([protocol.read(tally).masses for tally in tallies(protocol)])
    measured = float(np.mean((found - truth(BUCKETS)) ** 2))
    theory = haar_variance(protocol)
    assert abs(measured / theory - 1) < 0.05
    for rival in (HaarHierarchy(0.9, BUCKETS), HaarHierarchy(1.1, BUCKETS)):
        assert abs(measured / haar_variance(rival) - 1) > 0.05
    assert np.mean((found.mean(axis=0) - truth(BUCKETS)) ** 2) < 2 * theory / RUNS


@pytest.mark.parametrize("buckets", [5, 17, 100])
@pytest.mark.parametrize("kind", [Hierarchy, HaarHierarchy])
def test_odd_trees_are_unbiased(kind: type[Hierarchy] | type[HaarHierarchy], buckets: int) -> None:
    """The upper half's mass, much of it in the last bucket; the rival, which loses that bucket, is rejected."""
    protocol = kind(1.0, buckets)
    codes = held(buckets)
    codes[: PEOPLE // 5] = buckets - 1
    upper = np.arange(buckets) >= buckets // 2
    sums = []
    for seed in range(60):
        tally = protocol.survey.tally(protocol.survey.reports(codes, SeededForExperiments(seed)))
        options = {"method": "consistent"} if kind is Hierarchy else {}
        sums.append(replace(protocol, **options).read(tally).masses[upper].sum())  # type: ignore[arg-type]
    error = float(np.std(sums, ddof=1)) / np.sqrt(len(sums))
    expected = float(np.mean(upper[codes.astype(np.int64)]))
    assert mean_fits(float(np.mean(sums)), expected, error)
    assert not mean_fits(float(np.mean(sums)), expected - float(np.mean(codes == buckets - 1)), error)


def test_intervals_of_coefficients_cover() -> None:
    """95 % of the stated intervals hold the truth: of 160 x 64 pairs at the leaves' level."""
    protocol = HaarHierarchy(1.0, BUCKETS)
    gaps = truth(BUCKETS)[::2] - truth(BUCKETS)[1::2]
    inside, half = [], []
    for tally in tallies(protocol):
        level = protocol.levels(tally)[-1]
        low, high = level.interval().T
        inside.append(np.mean((low <= gaps) & (gaps <= high)))
        half.append(np.mean(np.abs(level.differences - gaps) < (high - low) / 4))
    assert 0.94 < np.mean(inside) < 0.96
    assert np.mean(half) < 0.75  # the rival: intervals half as wide


def test_constraints_help_on_ranges_as_in_the_paper() -> None:
    """Spiky data at eps 1: HH-ADMM is far better than HH and HaarHRR; wide bins cannot follow a spike."""
    values = np.concatenate([np.full(14_000, 0.2504), np.random.default_rng(1).beta(2, 5, 6_000)])
    starts = np.random.default_rng(2).random(50) * 0.9
    exact = np.array([np.mean((values >= lo) & (values < lo + 0.1)) for lo in starts])
    domain = Interval(0.0, 1.0)
    protocols = {
        "hh": (Hierarchy(1.0, domain, 256), {"method": "consistent"}),
        "hh-admm": (Hierarchy(1.0, domain, 256), {"method": "exact"}),
        "haar": (HaarHierarchy(1.0, domain, 256), {}),
        "binning": (Binning(1.0, domain, 8), {}),
    }
    errors = {}
    for name, (protocol, options) in protocols.items():
        runs = []
        for seed in range(10):
            tally = protocol.survey.tally(protocol.survey.randomize(values, SeededForExperiments(seed)))
            found = replace(protocol, **options).read(tally)  # type: ignore[arg-type]
            runs.append(np.mean(np.abs([found.range(lo, lo + 0.1) for lo in starts] - exact)))
        errors[name] = float(np.mean(runs))
    assert errors["hh-admm"] < 0.6 * min(errors["hh"], errors["haar"])
    assert errors["hh-admm"] < 0.6 * errors["binning"]
