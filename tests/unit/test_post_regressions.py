"""What a review found in post-processing, and must not come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil import GRR, OLH, OUE, PGR, SHE, metrics, post, simulate
from veil.errors import InputError, ParameterError, VeilError
from veil.post.selection import redraw

TWO_NAMES = post.Family("two", ("a", "b"), lambda counts, _: -counts, lambda *_: (1.0,), (True,))
RAW = simulate(OLH(1.0, 100), [0] * 500 + [1] * 300 + [2] * 200, seed=1)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=50))
def test_norm_cut_keeps_what_adds_up_already(weights: list[int]) -> None:
    shares = np.array(weights) / sum(weights)
    assert np.array_equal(post.norm_cut(shares), shares)


@pytest.mark.parametrize("seed", range(20))
def test_norm_cut_keeps_all_that_grr_saw(seed: int) -> None:
    raw = simulate(GRR(4.0, 4), [0] * 400 + [1] * 200 + [2] * 200 + [3] * 200, seed=seed)
    assert (raw.post("norm-cut").frequencies > 0).all()


def test_reports_that_support_no_value_are_redrawn_too() -> None:
    """PGR in two dimensions has reports for one value at most, and some for none: not all of them are GRR's."""
    oracle, held = PGR(3.0, 2), np.array([6_000, 4_000])
    assert oracle.noise.hit == oracle.noise.miss == 0
    random = np.random.default_rng(0)
    drawn = np.mean([redraw(oracle.noise, held, random) for _ in range(400)], axis=0)
    error = np.sqrt(oracle.noise.variance(0.6) / 10_000 / 400)
    assert np.abs(drawn - [0.6, 0.4]).max() < 6 * error


def test_base_and_norm_keep_their_variances() -> None:
    assert np.array_equal(RAW.post("base").stderr, RAW.stderr)
    assert RAW.post("base").lineage == (*RAW.lineage, "base")
    once, twice = RAW.post("norm"), RAW.post("norm").post("norm")
    assert twice.stderr == pytest.approx(once.stderr)
    assert np.array_equal(RAW.post("base").post("norm").stderr, once.stderr)


def test_post_pos_answers_alike_at_every_door() -> None:
    made = RAW.post("post-pos")
    assert np.array_equal(made.frequencies, RAW.frequencies)
    assert min(made.table().column("frequency").to_pylist()) == 0.0
    truth = np.zeros(100)
    assert metrics.mse(made, truth) == metrics.mse(RAW.post("base-pos"), truth)


def test_a_processed_estimate_is_printed_in_a_line() -> None:
    assert (
        repr(RAW.post("auto"))
        == "Estimate(100 values from 1000 reports, OLH(epsilon=1) > calibrate(learned) > norm-sub)"
    )
    with pytest.raises(InputError, match="standard error"):
        _ = RAW.post("norm-sub").total([0, 1]).stderr


def test_few_candidates_are_not_learned_from() -> None:
    oracle = OLH(1.0, 1 << 20)
    reports = oracle.randomize([1] * 300 + [2] * 100)
    few = oracle.estimate(oracle.tally(reports, candidates=[1, 2, 3]))
    assert few.post("auto").lineage[-1] == "base-pos"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: post.em(OUE(1.0, 13), OUE(1.0, 13).randomize([1])),
        lambda: post.em(SHE(1.0, 8), SHE(1.0, 8).randomize([1])),
        lambda: post.em(OLH(1.0, 3), OLH(1.0, 3).randomize([1])),
        lambda: post.em(GRR(1.0, 3), GRR(1.0, 3).randomize([1]), most=0),
        lambda: post.em(GRR(1.0, 3), GRR(1.0, 3).randomize([1]), gap="a"),  # type: ignore[arg-type]
        lambda: RAW.post("calibrate").exceeds("a"),  # type: ignore[attr-defined]
        lambda: RAW.post("calibrate").exceeds(float("nan")),  # type: ignore[attr-defined]
        lambda: RAW.post("calibrate", prior=np.ones(3)),
        lambda: post.Prior("x", ["a"], [1]),  # type: ignore[arg-type]
        lambda: post.Prior("x", np.array([0.0, 5.0]), np.array([1.0, 1.0])),
        lambda: post.Prior.of_frequencies(["a"]),
        lambda: RAW.post("calibrate", prior=TWO_NAMES),
        lambda: post.select(None, "single"),  # type: ignore[arg-type]
        lambda: post.select(RAW, "single", methods=None),  # type: ignore[arg-type]
        lambda: post.select(RAW, "single", methods=[["a"]]),  # type: ignore[list-item]
        lambda: post.select(RAW, "single", seed=-1),
        lambda: post.select(RAW, np.array(5)),
        lambda: post.Sets(5),  # type: ignore[arg-type]
        lambda: post.norm([1e308, 1e308]),
        lambda: metrics.mse("a", [1]),
        lambda: metrics.mse([], []),
        lambda: metrics.ks([], []),
        lambda: metrics.top_mse([1.0], [1.0], 1.5),  # type: ignore[arg-type]
        lambda: metrics.set_mse([1.0], [1.0], [[3]]),
        lambda: metrics.set_mse([1.0], [1.0], [[]]),
        lambda: metrics.mnae([1.0], [1.0], "a"),  # type: ignore[arg-type]
        lambda: metrics.coverage([1.0], [1.0]),  # type: ignore[arg-type]
        lambda: metrics.coverage(RAW, [1.0]),
    ],
)
def test_mistakes_get_an_error_of_our_own(wrong: Any) -> None:
    with pytest.raises(VeilError):
        wrong()


def test_any_number_is_a_total() -> None:
    assert post.norm_sub([0.9, 0.4], total=np.int64(1)).sum() == pytest.approx(1.0)
    with pytest.raises(ParameterError):
        post.norm_sub([0.9, 0.4], total=True)


def test_a_learned_prior_is_not_certain_about_the_value_that_it_learned_from() -> None:
    """One large value puts an atom under itself; its posterior is as uncertain as its estimate."""
    made = RAW.post("calibrate")
    assert made.posterior_sd[0] > 0.8 * RAW.stderr[0]  # type: ignore[attr-defined]
    assert made.posterior_sd[50] < 0.8 * RAW.stderr[50]  # type: ignore[attr-defined]
    assert 0.05 < made.exceeds(float(made.frequencies[0]) + RAW.stderr[0])[0] < 0.3  # type: ignore[attr-defined]


def test_norm_sub_of_nothing_is_nothing() -> None:
    """A total of 0 kept nobody, and divided by their number."""
    assert post.consistency.norm_sub(np.array([0.5, -0.25]), 0.0).tolist() == [0.0, 0.0]
