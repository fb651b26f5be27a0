"""Rivals of CALM on samples: their squared errors match their formulas, and not those of each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.significance import mean_fits

from veil import Record, simulate
from veil.marginals import AllMarginals, FourierMarginals, FullContingency, JointStudy, SplitEM, variance_factor
from veil.survey import Parities

PEOPLE, RUNS, MANY, K, EPSILON = 4_000, 120, 8, 3, 1.0
RECORD = Record.of(**{f"a{i}": 2 for i in range(MANY)})
RNG = np.random.default_rng(0)
HELD = (RNG.random((PEOPLE, MANY)) < RNG.random((PEOPLE, 1))).astype(int)  # attributes that go together
TABLE = {name: HELD[:, place] for place, name in enumerate(RECORD.names)}
TRUTH = np.bincount(HELD[:, :K] @ (4, 2, 1), minlength=8) / PEOPLE


def squares(study: JointStudy[Any]) -> np.ndarray:
    """The squared error of one marginal, run after run."""
    runs = (simulate(study, TABLE, seed=seed).marginal(RECORD.names[:K]).frequencies for seed in range(RUNS))
    return np.array([((found - TRUTH) ** 2).sum() for found in runs])


def one_over(groups: int) -> float:
    """The mean of one over the people of a group, where everybody draws one of so many groups."""
    counts = np.arange(1, PEOPLE + 1)
    chances = stats.binom.pmf(counts, PEOPLE, 1 / groups)
    return float((chances / counts).sum() / chances.sum())


def expected() -> dict[str, float]:
    """Noise per person, and for those who ask a part of the people the error of that sample."""
    whole = FullContingency(EPSILON, RECORD).family.mechanisms[0].noise  # type: ignore[attr-defined]
    half = AllMarginals(EPSILON, RECORD, k=K).family.mechanisms[0].noise  # type: ignore[attr-defined]
    response = FourierMarginals(EPSILON, RECORD, k=K).survey.questions[0].pure
    signs = 1 - 2 * HELD
    means = np.array(
        [signs[:, some].prod(axis=1).mean() for size in (1, 2, 3) for some in combinations(range(K), size)]
    )
    groups, sampled = one_over(len(Parities(RECORD, K))), one_over(comb(MANY, K))
    noise = (1 / float(response.p - response.q) ** 2 - 1) * groups + (1 - means**2) * (groups - 1 / PEOPLE)
    return {
        # cells of a marginal are sums of 32 of 256; the total is known to be 1, so what all share does not count
        "FC": (sum(whole.total_variance(32, share) for share in TRUTH) - whole.total_variance(256, 1.0) / 8) / PEOPLE,
        "AM": sum(half.total_variance(1, share) for share in TRUTH) * sampled
        + (1 - (TRUTH**2).sum()) * (sampled - 1 / PEOPLE),
        "FT": float(noise.sum()) / 8,
    }


EXPECTED = expected()
STUDIES: dict[str, JointStudy[Any]] = {
    "FC": FullContingency(EPSILON, RECORD),
    "AM": AllMarginals(EPSILON, RECORD, k=K),
    "FT": FourierMarginals(EPSILON, RECORD, k=K),
}


@pytest.mark.parametrize("name", STUDIES)
def test_squared_errors_match_the_formula(name: str) -> None:
    found = squares(STUDIES[name])
    error = found.std(ddof=1) / np.sqrt(RUNS)
    assert mean_fits(found.mean(), EXPECTED[name], error)
    rivals = [other for key, other in EXPECTED.items() if key != name]
    assert not any(mean_fits(found.mean(), rival, error) for rival in rivals)


@pytest.mark.parametrize(("name", "epsilon"), [("FC", 1.0), ("FT", 1.0), ("EM", 12.0)])
def test_intervals_cover_and_narrower_ones_do_not(name: str, epsilon: float) -> None:
    study = replace({**STUDIES, "EM": SplitEM(EPSILON, RECORD, k=K)}[name], epsilon=epsilon)
    covered, narrow = 0, 0
    for seed in range(RUNS):
        found = simulate(study, TABLE, seed=seed)
        for level in (0.95, 0.8):
            bounds = found.bounds(RECORD.names[:K], level)
            inside = int(((bounds.low <= TRUTH + 1e-12) & (bounds.high + 1e-12 >= TRUTH)).sum())
            covered, narrow = (covered + inside, narrow) if level == 0.95 else (covered, narrow + inside)
    assert covered / (RUNS * 8) > 0.93
    assert narrow / (RUNS * 8) < 0.93


def test_order_of_the_thesis() -> None:
    """Its factors leave out that a total is known, and that a part of the people is a sample: little of the whole."""
    factors = {way: variance_factor(way, (2,) * MANY, K) for way in ("FC", "AM", "FT")}
    assert factors == {"FC": 256, "AM": 448, "FT": 93}
    assert EXPECTED["FT"] < EXPECTED["FC"] < EXPECTED["AM"]
    for name, factor in factors.items():
        oracle = STUDIES[name].survey.questions[0].pure
        cell = 1 / float(oracle.p - oracle.q) ** 2 if name == "FT" else oracle.noise.variance(0.0)
        assert EXPECTED[name] == pytest.approx(factor * cell / PEOPLE, rel=0.25)


def test_split_budgets_are_the_worst_and_em_improves_them() -> None:
    em = squares(SplitEM(EPSILON, RECORD, k=K))
    raw = squares(SplitEM(EPSILON, RECORD, k=K, method="unbiased"))
    assert em.mean() < 0.1 * raw.mean()
    assert raw.mean() > 10 * max(EXPECTED.values())
