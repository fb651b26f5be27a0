"""What a processed estimate remembers, shows and refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.post_estimates import HUNDRED

from veil import GRR, OLH, OUE, Categories, Items, Question, Rappor, Survey, metrics, post, simulate
from veil.errors import FitWarning, InputError, ParameterError
from veil.post import CalibratedEstimate, NormedEstimate, PositiveAnswers, ProcessedEstimate
from veil.results.estimate import Estimate
from veil.view import SampleItem

LABELS = Categories(["tea", "coffee", "water", "juice", *(f"drink {i}" for i in range(28))])
RAW = simulate(OLH(2.0, LABELS), ["tea"] * 6_000 + ["coffee"] * 3_000 + ["juice"] * 1_000, seed=1)
SOME = simulate(OLH(2.0, LABELS), ["tea"] * 600 + ["juice"] * 400, candidates=["tea", "water"])
ITEMS = simulate(
    Survey(Question(OLH(4.0, 4 + 3), SampleItem(Items(4), 3))), [[0, 1, 2]] * 2_000 + [[0, 1]] * 2_000, seed=1
)[0]
BIASED = [name for name in post.METHODS if name not in ("base", "norm", "mle")]
NEED_TOTAL = ("norm", "norm-mul", "norm-cut", "norm-sub", "significance")


def test_the_examples_have_negative_frequencies() -> None:
    assert RAW.frequencies.min() < 0
    assert not SOME.adds_up
    assert not ITEMS.adds_up
    assert RAW.adds_up


# -- lineage and chains ------------------------------------------------------------------------------------------------


def test_by_name_and_by_call_are_the_same() -> None:
    for name, method in post.METHODS.items():
        if name != "mle":
            named, called = RAW.post(name), method(RAW)  # type: ignore[operator]
            assert np.array_equal(named.frequencies, called.frequencies)
            assert named.lineage == called.lineage
    assert post.norm_sub is post.method("norm-sub")


def test_the_lineage_names_every_step_with_its_options() -> None:
    first = RAW.lineage
    assert first == ("OLH(epsilon=2)",)
    assert RAW.post("base-cut", alpha=3).lineage == (*first, "base-cut(alpha=3)")
    assert RAW.post("base-cut", k=5).post("norm-sub").post("base").lineage == (
        *first,
        "base-cut(k=5)",
        "norm-sub",
        "base",
    )
    assert RAW.post("calibrate").post("norm-sub").lineage == (*first, "calibrate(learned)", "norm-sub")
    alpha = RAW.post("power").prior.parameters["alpha"]  # type: ignore[attr-defined]
    assert RAW.post("power-ns").lineage == (*first, f"calibrate(power-law, alpha={alpha:.4g})", "norm-sub")
    given = post.Prior.of_frequencies([0.6, 0.3, 0.1, 0.0], "census")
    assert RAW.post("calibrate", prior=given).lineage == (*first, "calibrate(census)")
    assert "norm-sub" in repr(RAW.post("norm-sub"))


def test_the_unbiased_estimate_is_kept() -> None:
    chain = RAW.post("norm").post("base-cut", k=5).post("norm-sub")
    assert isinstance(chain, ProcessedEstimate)
    assert chain.raw is RAW
    assert chain.step == "norm-sub"
    assert chain.n == RAW.n
    assert chain.noise == RAW.noise
    assert isinstance(RAW.post("norm"), NormedEstimate)
    assert isinstance(RAW.post("calibrate"), CalibratedEstimate)
    assert isinstance(RAW.post("post-pos"), PositiveAnswers)
    assert not isinstance(RAW.post("norm-sub").post("norm"), NormedEstimate)  # its noise is no longer the oracle's


@pytest.mark.parametrize(
    "name", ["mle-apx", "power", "power-ns", "calibrate", "mle", "auto", "base-cut", "significance"]
)
def test_methods_with_a_noise_model_refuse_processed_estimates(name: str) -> None:
    for before in ("base-pos", "norm-sub", "norm", "auto"):
        with pytest.raises(InputError, match="before"):
            RAW.post(before).post(name)


def test_select_refuses_processed_estimates() -> None:
    for wrong in (RAW.post("norm-sub"), SOME, ITEMS):
        with pytest.raises(InputError, match="unprocessed"):
            post.select(wrong, "single")


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BIASED)
def test_biased_methods_have_no_standard_error(name: str) -> None:
    made = RAW.post(name)
    for refused in ("variance", "stderr"):
        with pytest.raises(InputError, match="biased"):
            getattr(made, refused)
    assert all(math.isnan(row.stderr) for row in made.top(3))
    assert made.table().column("stderr").null_count == len(made)


def test_norm_stays_unbiased() -> None:
    made = RAW.post("norm")
    assert (made.variance < RAW.variance).all()
    assert made.top(1)[0].stderr == pytest.approx(made.stderr[0])
    assert made.interval(kind="normal")[0] == pytest.approx(
        made.frequencies[0] + 1.959964 * made.stderr[0] * np.array([-1, 1]), rel=1e-6
    )


@pytest.mark.parametrize("estimate", [SOME, ITEMS], ids=["candidates", "items"])
def test_estimates_that_do_not_add_up_need_a_total(estimate: Estimate) -> None:
    for name in NEED_TOTAL:
        with pytest.raises(InputError, match="total="):
            estimate.post(name)
    for name in ("norm", "norm-mul", "norm-sub"):
        assert estimate.post(name, total=0.6).frequencies.sum() == pytest.approx(0.6)
    for name in ("base", "base-pos", "post-pos", "base-cut"):
        assert len(estimate.post(name)) == len(estimate)
    for name in ("mle-apx", "mle"):
        with pytest.raises(InputError):
            estimate.post(name)
    assert estimate.post("auto").frequencies.min() >= 0
    with pytest.raises(ParameterError, match="no option 'total'"):
        estimate.post("auto", total=1.0)


def test_methods_with_a_noise_model_refuse_oracles_without_one() -> None:
    raw = simulate(Rappor(4.0, 20), [0] * 3_000 + [1] * 1_000, seed=1)
    for name in ("power", "power-ns", "calibrate", "mle-apx", "base-cut"):
        with pytest.raises(InputError, match="closed form"):
            raw.post(name)
    made = raw.post("norm-sub")
    assert made.frequencies.sum() == pytest.approx(1)
    assert made.table().column("low").null_count == 20
    assert math.isnan(made.top(1)[0].low)
    assert np.array_equal(raw.post("auto").frequencies, made.frequencies)  # as its docstring says


# -- intervals and answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BIASED)
def test_intervals_contain_the_shown_frequency(name: str) -> None:
    made = RAW.post(name)
    assert isinstance(made, ProcessedEstimate)
    bounds, shown = made.interval(), np.maximum(made.frequencies, 0) if name == "post-pos" else made.frequencies
    assert ((bounds[:, 0] <= shown) & (shown <= bounds[:, 1])).all()
    raw = RAW.interval()
    assert ((bounds[:, 0] <= raw[:, 0]) & (raw[:, 1] <= bounds[:, 1])).all()
    assert (made.interval(0.99)[:, 1] >= bounds[:, 1]).all()
    total = made.total(["tea", "coffee"])
    low, high = total.interval()
    assert low <= total.frequency <= high
    assert low < 0.9 < high
    assert total.unbiased.frequency == pytest.approx(float(RAW.post("norm").frequencies[:2].sum()))
    for level in (0, 1, "0.5"):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            made.interval(level)  # type: ignore[arg-type]


def test_totals_of_items_may_exceed_one() -> None:
    """People hold several items: two items of which everybody holds both have a total of 2."""
    made = ITEMS.post("base-pos").total([0, 1])
    low, high = made.interval()
    assert 1 < low < 2 <= high  # more than that nobody can hold
    pinched = ITEMS.post("base-cut", alpha=1e-30).total([0, 1])  # shows 0, or too little: the interval still knows
    assert pinched.interval()[1] == 2


def test_post_pos_answers_are_not_negative() -> None:
    made = RAW.post("post-pos")
    assert np.array_equal(made.frequencies, RAW.frequencies)
    worst = RAW.values[int(RAW.frequencies.argmin())]
    assert RAW.at(worst).frequency < 0
    assert made.at(worst).frequency == made.at(worst).count == 0
    assert made.total([worst]).frequency == 0
    assert made.total([worst, "tea"]).frequency == pytest.approx(RAW.total([worst, "tea"]).frequency)  # inconsistent
    assert min(row.frequency for row in made.top(32)) == 0
    assert made.at("tea").low <= made.at("tea").frequency <= made.at("tea").high


def test_tables_and_rows_of_processed_estimates() -> None:
    for name in ("norm-sub", "norm", "auto", "post-pos", "base-cut"):
        made = RAW.post(name)
        table = made.table()
        assert table.column_names == ["value", "frequency", "count", "stderr", "low", "high", "significant"]
        assert table.column("low").null_count == 0
        assert table.column("frequency").to_pylist() == made.shown.tolist()
        assert made.to_pandas()["value"].tolist()[0] == "tea"
        assert [row.value for row in made.top(3)] == ["tea", "coffee", "juice"]
        assert made.at("coffee").frequency == pytest.approx(0.3, abs=0.05)
        assert [row.value for row in made.above(0.2)] == ["tea", "coffee"]
        assert [row.value for row in made.significant()] == [row.value for row in RAW.significant()]
        assert made.counts == pytest.approx(made.shown * 10_000)


def test_significance_is_judged_before_shrinking() -> None:
    """What is certainly there stays so, though a method shows less of it."""
    assert {row.value for row in RAW.post("calibrate").significant()} == {"tea", "coffee", "juice"}
    assert RAW.post("norm-mul").threshold() == RAW.threshold()


def test_pictures_of_processed_estimates(tmp_path: Path) -> None:
    from veil.results import save_figure

    for name in ("norm-sub", "norm", "auto", "post-pos"):
        axes = RAW.post(name).plot(5, truth=[0.6, 0.3, 0.0, 0.1] + [0.0] * 28)
        assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["tea", "coffee"]
        save_figure(axes, str(tmp_path / f"{name}.svg"))
        assert b"<svg" in (tmp_path / f"{name}.svg").read_bytes()


def test_grr_already_adds_up() -> None:
    raw = simulate(GRR(1.0, 8), [0] * 500 + [1] * 200, seed=3)
    normed: Any = raw.post("norm")
    assert normed.frequencies == pytest.approx(raw.frequencies, abs=1e-12)
    assert normed.variance == pytest.approx(raw.variance, rel=1e-9)


def test_an_estimate_of_one_value() -> None:
    one = simulate(OUE(1.0, 8), [0] * 900 + [1] * 100, candidates=[0])
    assert len(one) == 1
    for name in ("base-pos", "base-cut", "calibrate", "auto"):
        assert 0.5 < one.post(name).frequencies[0] < 1.3, name
    with pytest.warns(FitWarning, match="power-law"):  # a mean so large cannot be a power law's
        assert 0.5 < one.post("power").frequencies[0] < 1.3
    assert one.post("norm-sub", total=0.9).frequencies.tolist() == pytest.approx([0.9])


def test_base_and_norm_keep_their_variances_in_chains() -> None:
    assert np.array_equal(HUNDRED.post("base").stderr, HUNDRED.stderr)
    assert HUNDRED.post("base").lineage == (*HUNDRED.lineage, "base")
    once, twice = HUNDRED.post("norm"), HUNDRED.post("norm").post("norm")
    assert twice.stderr == pytest.approx(once.stderr)
    assert np.array_equal(HUNDRED.post("base").post("norm").stderr, once.stderr)


def test_post_pos_gives_the_same_answers_in_tables_and_metrics() -> None:
    made = HUNDRED.post("post-pos")
    assert np.array_equal(made.frequencies, HUNDRED.frequencies)
    assert min(made.table().column("frequency").to_pylist()) == 0.0
    truth = np.zeros(100)
    assert metrics.mse(made, truth) == metrics.mse(HUNDRED.post("base-pos"), truth)


def test_the_repr_of_a_processed_estimate_is_one_line() -> None:
    assert (
        repr(HUNDRED.post("auto"))
        == "Estimate(100 values from 1000 reports, OLH(epsilon=1) > calibrate(learned) > norm-sub)"
    )
    with pytest.raises(InputError, match="standard error"):
        _ = HUNDRED.post("norm-sub").total([0, 1]).stderr
