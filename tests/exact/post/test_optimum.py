"""Methods that are the optimum of something: against general solvers, optimality conditions, and printed mistakes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from veil import BLH, GRR, OLH, OUE, SHE, THE, HadamardResponse, SubsetSelection, post, simulate
from veil.entropy import SeededForExperiments
from veil.errors import FitWarning, InputError, MismatchError, ParameterError
from veil.mechanisms import FrequencyOracle
from veil.post.consistency import norm_sub
from veil.results.estimate import Estimate

Floats = NDArray[np.float64]


def solved(loss: Any, slope: Any, size: int) -> Floats:
    """The minimum of a smooth loss over the simplex, by sequential quadratic programming."""
    found = minimize(
        loss,
        np.full(size, 1 / size),
        jac=slope,
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    assert found.success or found.status == 8  # 8: no further progress within rounding
    return np.asarray(found.x)


def estimated(oracle: FrequencyOracle, frequencies: Any, n: int) -> Estimate:
    return Estimate(oracle.domain, np.asarray(frequencies, float), n, oracle.noise, n, float(n), float(n))


def drawn(oracle: Any, n: int, seed: int) -> Floats:
    """An estimate that the oracle can give, about as often negative as not."""
    random = np.random.default_rng(seed)
    held = random.multinomial(n, random.dirichlet(np.full(oracle.domain.size, 0.4)))
    if isinstance(oracle, SHE):
        return held / n + random.normal(0, np.sqrt(oracle.variance(n)), len(held))
    p, q = float(oracle.p), float(oracle.q)
    if isinstance(oracle, GRR):
        kept = random.binomial(held, p - q)
        supports = kept + random.multinomial(n - kept.sum(), np.full(len(held), 1 / len(held)))
    else:
        supports = random.binomial(held, p) + random.binomial(n - held, q)
    return np.asarray((supports / n - q) / (p - q))


# -- Norm-Sub ----------------------------------------------------------------------------------------------------------


def bisected(frequencies: Floats, total: float) -> Floats:
    """The shift that makes what is positive add up, by bisection."""
    low, high = float(frequencies.min()) - total, float(frequencies.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(frequencies - middle, 0).sum() > total else (low, middle)
    return np.maximum(frequencies - low, 0)


@pytest.mark.parametrize("seed", range(8))
def test_norm_sub_is_constrained_least_squares(seed: int) -> None:
    random = np.random.default_rng(seed)
    frequencies = random.normal(0.1, 0.4, int(random.integers(1, 9)))
    found = solved(lambda x: ((x - frequencies) ** 2).sum(), lambda x: 2 * (x - frequencies), len(frequencies))
    assert post.norm_sub(frequencies) == pytest.approx(found, abs=1e-6)
    assert post.norm_mul(frequencies) != pytest.approx(found, abs=1e-3) or len(frequencies) == 1  # the rival


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("total", [1.0, 0.3])
def test_norm_sub_is_exact(seed: int, total: float) -> None:
    random = np.random.default_rng(seed)
    frequencies = random.normal(0, 10.0 ** random.integers(-3, 3), int(random.integers(1, 300)))
    assert post.norm_sub(frequencies, total=total) == pytest.approx(bisected(frequencies, total), abs=1e-12)


# -- MLE-Apx -----------------------------------------------------------------------------------------------------------

ORACLES = [
    *(kind(epsilon, size) for kind in (GRR, OUE, OLH) for epsilon, size in ((0.5, 3), (2.0, 6), (4.0, 8))),
    THE(2.0, 5),
    BLH(1.0, 6),  # p + q > 1: the variance falls with the frequency
    HadamardResponse(3.0, 7),
]


def loss(noise: Any, frequencies: Floats) -> Any:
    low, slope = noise.variance(0.0), noise.variance(1.0) - noise.variance(0.0)
    return lambda x: float((((x - frequencies) ** 2) / (low + slope * x)).sum() / 2 * low)


def gradient(noise: Any, frequencies: Floats) -> Any:
    low, slope = noise.variance(0.0), noise.variance(1.0) - noise.variance(0.0)

    def found(x: Floats) -> Floats:
        step = (x - frequencies) / (low + slope * x)
        return (step - slope * step**2 / 2) * low

    return found


def printed(frequencies: Floats, p: float, q: float) -> Floats:
    """(10) as the paper prints it, with the sign of x as derived but gamma and delta with theirs."""
    kept = np.ones(len(frequencies), bool)
    while True:
        x = (p - q) * (1 - frequencies[kept].sum()) / (kept.sum() * q * (1 - q) + (p - q) * (1 - p - q))
        made = (q * (1 - q) * x + (p - q) * frequencies) / ((p - q) * (1 + (1 - p - q) * x))
        if not (kept & (made < 0)).any():
            return np.where(kept, made, 0)
        kept &= made >= 0


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_mle_apx_is_the_optimum(oracle: Any) -> None:
    beaten = 0
    for seed in range(6):
        estimate = estimated(oracle, drawn(oracle, 300, seed), 300)
        f = estimate.frequencies
        value, slope = loss(oracle.noise, f), gradient(oracle.noise, f)
        made = estimate.post("mle-apx").frequencies
        assert made.sum() == pytest.approx(1, abs=1e-12)
        best = solved(value, slope, len(f))
        assert value(made) <= value(best) + 1e-12
        assert made == pytest.approx(best, abs=1e-4)
        pull = slope(made)  # the optimality conditions: equal where positive, not below where zero
        assert pull[made > 0] == pytest.approx(pull[made > 0][0], abs=1e-9)
        assert (pull[made == 0] >= pull[made > 0][0] - 1e-9).all()
        wrong = printed(f, float(oracle.p), float(oracle.q))
        beaten += abs(wrong.sum() - 1) > 1e-6 or value(wrong) > value(made) + 1e-9
    assert beaten or oracle.p + oracle.q == 1 or isinstance(oracle, GRR)  # GRR's sum is 1 from the start: x is small


def test_mle_apx_of_equal_noise_is_norm_sub() -> None:
    for seed in range(5):
        estimate = estimated(SHE(1.0, 7), drawn(SHE(1.0, 7), 200, seed), 200)
        assert estimate.post("mle-apx").frequencies == pytest.approx(norm_sub(estimate.frequencies, 1.0), abs=1e-12)
    high = estimated(OLH(4.0, 7), drawn(OLH(4.0, 7), 200, 0), 200)
    assert high.post("mle-apx").frequencies != pytest.approx(norm_sub(high.frequencies, 1.0), abs=1e-4)


# -- the exact likelihood of GRR ---------------------------------------------------------------------------------------


def log_likelihood(rows: Floats, shares: Floats, x: Floats) -> float:
    return float(shares @ np.log(rows @ x))


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 2), (1.0, 4), (1.0, 8), (4.0, 8), (0.1, 5)])
def test_mle_is_the_maximum_of_the_multinomial_likelihood(epsilon: float, size: int) -> None:
    oracle = GRR(epsilon, size)
    p, q = float(oracle.p), float(oracle.q)
    channel = np.full((size, size), q) + (p - q) * np.eye(size)
    for seed in range(5):
        estimate = estimated(oracle, drawn(oracle, 200, seed), 200)
        shares = estimate.frequencies * (p - q) + q
        made = estimate.post("mle").frequencies
        score = channel.T @ (shares / (channel @ made))  # KKT: 1 where positive, at most 1 where zero
        assert score[made > 0] == pytest.approx(1, abs=1e-9)
        assert (score <= 1 + 1e-9).all()
        best = solved(
            lambda x, shares=shares: -log_likelihood(channel, shares, x),
            lambda x, shares=shares: -channel.T @ (shares / (channel @ x)),
            size,
        )
        assert made == pytest.approx(best, abs=2e-4)
        assert log_likelihood(channel, shares, made) >= log_likelihood(channel, shares, best) - 1e-12


def test_mle_is_more_likely_than_norm_sub() -> None:
    oracle = GRR(1.0, 8)
    p, q = float(oracle.p), float(oracle.q)
    channel = np.full((8, 8), q) + (p - q) * np.eye(8)
    estimate = estimated(oracle, drawn(oracle, 200, 1), 200)
    shares = estimate.frequencies * (p - q) + q
    rival = estimate.post("norm-sub").frequencies
    assert (
        log_likelihood(channel, shares, estimate.post("mle").frequencies)
        > log_likelihood(channel, shares, rival) + 1e-5
    )


def test_mle_is_refused_where_it_is_not_exact() -> None:
    for oracle in (OUE(1.0, 4), OLH(1.0, 4), SHE(1.0, 4), SubsetSelection(1.0, 9)):
        with pytest.raises(InputError, match="exact for GRR"):
            estimated(oracle, [1 / oracle.domain.size] * oracle.domain.size, 10).post("mle")
    some = simulate(GRR(1.0, 4), [0, 1, 2], candidates=[0, 1])
    for name in ("mle", "mle-apx"):
        with pytest.raises(InputError, match="do not add up to one"):
            some.post(name)


# -- EM ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 3), (2.0, 6), (0.5, 4)])
def test_em_is_mle_for_grr(epsilon: float, size: int) -> None:
    oracle = GRR(epsilon, size)
    reports = oracle.randomize([0] * 300 + [1] * 80 + [2] * 20, SeededForExperiments(1))
    made = post.em(oracle, reports, gap=1e-10)
    exact = oracle.estimate(oracle.tally(reports)).post("mle")
    assert made.frequencies == pytest.approx(exact.frequencies, abs=1e-3)
    assert made.frequencies != pytest.approx(made.raw.frequencies, abs=1e-3) or made.raw.frequencies.min() >= 0
    assert made.lineage[-1] == "em"


@pytest.mark.parametrize(
    "oracle", [OUE(1.0, 3), SubsetSelection(1.0, 5, subset_size=2), HadamardResponse(1.0, 4)], ids=repr
)
def test_em_finds_the_most_likely(oracle: Any) -> None:
    reports = oracle.randomize([0] * 120 + [1] * 30, SeededForExperiments(2))
    channel = oracle.channel()
    packed = np.frombuffer(reports.to_bytes(), np.uint8).reshape(len(reports), -1)
    rows = np.array([[float(chance) for chance in channel[row.tobytes()]] for row in packed])
    shares = np.full(len(rows), 1 / len(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the first ones stop before they have converged
        steps = [post.em(oracle, reports, most=most).frequencies for most in (1, 2, 5, 30, 100_000)]
    likely = [log_likelihood(rows, shares, step) for step in steps]
    assert likely == sorted(likely)
    assert likely[0] < likely[2]
    raw = oracle.estimate(oracle.tally(reports))
    for rival in ("norm-sub", "mle-apx", "norm-mul"):
        assert likely[-1] >= log_likelihood(rows, shares, raw.post(rival).frequencies) - 1e-8
    best = solved(
        lambda x: -log_likelihood(rows, shares, x), lambda x: -rows.T @ (shares / (rows @ x)), oracle.domain.size
    )
    assert likely[-1] >= log_likelihood(rows, shares, best) - 1e-8


def test_em_refuses_what_it_cannot_use() -> None:
    oracle = OUE(1.0, 3)
    reports = oracle.randomize([0, 1, 2])
    for other in (OUE(2.0, 3), GRR(1.0, 3)):
        with pytest.raises(MismatchError, match="another task"):
            post.em(other, reports)
    with pytest.raises(MismatchError):
        post.em(oracle, reports.to_bytes())  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="oracle"):
        post.em("OUE", reports)  # type: ignore[arg-type]
    large = GRR(1.0, 1000)
    with pytest.raises(InputError, match="at most"):
        post.em(large, large.randomize([1, 2, 3]))
