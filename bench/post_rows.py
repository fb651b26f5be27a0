"""Rows about post-processing: norm-sub against a sort, power against its formula, the learned prior against EM.

BLAS has one thread in these rows, on both sides: on a busy machine its threads wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from acceptance.post_cells import one_blas_thread
from numpy.typing import NDArray

from bench.ours import collected
from bench.timing import Contestant, Row, Setting, local
from veil import OLH, simulate
from veil.post import CalibratedEstimate, norm_sub, power, select
from veil.post.priors import grid
from veil.results.estimate import Estimate
from veil.tools.numbers import proportional
from veil_papers.datasets import kosarak_clicks

Floats = NDArray[np.float64]

VALUES = 1_000_000
POWER_VALUES, POWER_PEOPLE = 1_000, 100_000
EM_STEPS, LEARN_SECONDS = 100, 2.0
SELECT_VALUES, SELECT_RUNS, SELECT_PEOPLE = 1_024, 30, 1_000_000
LONG = 50
"""A turn that takes seconds is taken once for so many turns of others."""


def post_rows(setting: Setting) -> Iterator[Row]:
    """Every row; what takes seconds gets few turns, and the row says how many."""
    repeats = setting.repeats
    few = max(1, repeats // LONG)
    with one_blas_thread():
        noisy = np.random.default_rng(0).normal(1 / VALUES, 0.002, VALUES)
        yield Row(
            f"norm-sub of {VALUES:,} frequencies",
            "numpy.sort of the same",
            1 / 3,
            local(lambda: norm_sub(noisy), 1),
            local(lambda: np.sort(noisy), 1),
            repeats,
        )
        yield _power_row(min(repeats, 5 * few))
        for epsilon in (1.0, 4.0):
            yield from _learned_rows(epsilon, min(repeats, 20), few)
        yield _select_row(min(repeats, 5 * few))


def _power_row(turns: int) -> Row:
    """Equation (11) of Calibrate as it stands: a sum over all counts for each value. The exponent is given to it."""
    held = proportional(np.arange(1, POWER_VALUES + 1) ** -1.5, POWER_PEOPLE)
    estimate = collected(OLH(1.0, POWER_VALUES), held, np.random.default_rng(1))
    made = power(estimate)
    assert isinstance(made, CalibratedEstimate)
    exponent = made.prior.parameters["alpha"]
    if not np.allclose(_equation_11(estimate, exponent), made.frequencies, rtol=0.01, atol=1e-3 * estimate.stderr[0]):
        raise AssertionError("power is not what equation (11) says")
    rival = local(lambda: _equation_11(estimate, exponent), 1)
    return Row(
        f"power, d = {POWER_VALUES:,}, n = {POWER_PEOPLE:,} (best of {turns})",
        "equation (11) on every value and count, numpy",
        20,
        local(lambda: power(estimate), 1),
        rival,
        turns,
    )


def _equation_11(estimate: Estimate, exponent: float, chunk: int = 50) -> Floats:
    counts = np.arange(1.0, estimate.n + 1)
    log_mass = -exponent * np.log(counts)
    precision = 0.5 / (float(estimate.variance_at(np.zeros(1))[0]) * estimate.n**2)
    means = []
    for start in range(0, len(estimate), chunk):
        seen = estimate.counts[start : start + chunk, None]
        weights = log_mass - precision * (seen - counts) ** 2
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        means.append(weights @ counts / weights.sum(axis=1))
    return np.concatenate(means) / estimate.n


def _learned_rows(epsilon: float, turns: int, few: int) -> Iterator[Row]:
    """All pages of Kosarak: against a limit, and against plain EM with the matrix of likelihoods made beforehand."""
    held = kosarak_clicks().held
    estimate = collected(OLH(epsilon, len(held)), held, np.random.default_rng(1))
    ours = local(lambda: estimate.post("calibrate"), 1)
    what = f"learned prior, d = {len(held):,}, n = {held.sum():,}, eps = {epsilon:g}"
    yield Row(f"{what} (best of {turns})", f"a limit of {LEARN_SECONDS:g} s", 1.0, ours, LEARN_SECONDS, turns)
    against = f"{EM_STEPS} dense EM steps, numpy"
    yield Row(f"{what} (best of {few})", against, None, ours, lambda: _dense_em(estimate), few)


def _dense_em(estimate: Estimate) -> Contestant:
    sigma = float(np.sqrt(estimate.variance_at(np.zeros(1))[0]))
    atoms = grid(estimate.frequencies, sigma)
    sd = np.sqrt(estimate.variance_at(atoms))
    dense = (estimate.frequencies[:, None] - atoms) / sd
    np.multiply(dense, dense, out=dense)
    dense *= -0.5
    dense -= np.log(sd)
    dense -= dense.max(axis=1, keepdims=True)
    np.exp(dense, out=dense)

    def work() -> Floats:
        masses = np.full(len(atoms), 1.0 / len(atoms))
        for _ in range(EM_STEPS):
            masses *= (1.0 / (dense @ masses)) @ dense / len(dense)
        return masses

    return local(work, 1)


def _select_row(turns: int) -> Row:
    oracle = OLH(1.0, SELECT_VALUES)
    held = proportional(np.arange(1, SELECT_VALUES + 1) ** -1.5, SELECT_PEOPLE)
    people = np.repeat(np.arange(SELECT_VALUES), held)
    estimate = collected(oracle, held, np.random.default_rng(1))
    return Row(
        f"select, d = {SELECT_VALUES:,}, {SELECT_RUNS} runs with all methods (best of {turns})",
        f"simulating {SELECT_PEOPLE:,} people as often, without methods",
        None,
        local(lambda: select(estimate, "single", runs=SELECT_RUNS), SELECT_RUNS),
        local(lambda: simulate(oracle, people, seed=1), 1),
        turns,
    )
