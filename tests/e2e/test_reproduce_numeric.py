"""`veil reproduce numeric` without any data folder: six figures with tables, and every claim with a verdict."""

from __future__ import annotations

import numpy as np
import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced, tables_of, verdict_of

from veil_papers.common.claims import Says
from veil_papers.common.sweep import Sweep
from veil_papers.numeric.methods import M
from veil_papers.numeric.waves import SHAPES

METHODS = {
    "figure-2": {*M.DISTRIBUTIONS, M.AUTO, M.EXACT},
    "figure-3": {*M.DISTRIBUTIONS, M.AUTO, M.EXACT, M.HH, M.HAAR},
    "figure-4": {*M.DISTRIBUTIONS, M.AUTO, M.EXACT, M.SR, M.PM, M.HM},
    "figure-5": set(SHAPES),
    "figure-6": {"Beta", "flights", "income", "wages"},
    "figure-7": {"256 buckets", "1024 buckets"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("numeric", tmp_path_factory.mktemp("numeric"))


@pytest.mark.acceptance
def test_every_figure_has_its_picture_and_its_table(run: Run) -> None:
    for name, rows in tables_of(run, list(METHODS)).items():
        assert {row["method"] for row in rows} == METHODS[name]
        assert all(float(row["mean"]) > 0 for row in rows)
    for data in ("flights", "income", "wages"):
        assert "stand-in" in run[1][data]


@pytest.mark.acceptance
def test_every_claim_has_a_verdict(run: Run) -> None:
    assert len(claims_of(run)) > 40


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("figure", "begins"),
    [
        ("figure-2", "Beta: SW-EMS has the lowest Wasserstein distance"),
        ("figure-2", "income: HH-ADMM has a lower KS distance than SW-EMS"),
        ("figure-3", "Beta: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = 0.1"),
        ("figure-3", "Beta: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = 0.4"),
        ("figure-4", "Beta: SW-EMS's mean is comparable to the better of SR and PM"),
        ("figure-5", "Beta: at the formula's b the square wave is better than ratios up to 0.4"),
        ("figure-6", "Beta: the formula's b is among the best"),
    ],
)
def test_what_the_paper_is_about_holds(run: Run, figure: str, begins: str) -> None:
    assert verdict_of(run, begins, figure) == "holds"


@pytest.mark.acceptance
def test_distances_of_binning_are_far_above_those_of_waves_on_beta(run: Run) -> None:
    rows = tables_of(run, list(METHODS))["figure-2"]
    means = {(row["method"], row["x"]): float(row["mean"]) for row in rows if row["panel"] == "(a) Beta"}
    assert all(means["SW-EMS", at] < 0.8 * means[name, at] for name in (*M.BINS, M.ADMM) for at in ("1", "2.5"))


def test_errors_are_compared_with_their_standard_errors() -> None:
    errors = Sweep(
        (0.5, 1.0),
        {
            "a": [np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])],
            "b": [np.array([2.0, 2.0, 2.0]), np.array([1.7, 1.8, 1.9])],
        },
        paired=False,
    )
    ratio, error = errors.ratio("a", "b")
    assert ratio.tolist() == pytest.approx([0.5, 2 / 1.8])
    assert error[0] == 0
    assert error[1] == pytest.approx(2 / 1.8 * np.hypot(1 / 2, 0.1 / 1.8) / np.sqrt(3))
    assert errors.surely_above("b", ("a",)) == [("a", 0.5)]  # at 1.0 the runs of a say too little
    assert errors.surely_above("b", ("a",), most=2.0) == []
    assert errors.best(("a", "b")) == ["a", "b"]
    assert errors.only((1.0,)).mean("a").tolist() == [2.0]
    assert not Says("b is better").not_above(errors, "b", ("a",)).holds
    assert not Says("a is the best").mostly({"set": errors}, "a", ("a", "b")).holds  # in half, not in more


def test_what_paired_runs_share_cancels_out() -> None:
    runs = {"a": [np.array([1.0, 2.0, 3.0])], "b": [np.array([1.7, 1.8, 1.9, 9.0])]}
    ratio, error = Sweep((1.0,), runs).ratio("a", "b")
    assert ratio[0] == pytest.approx(2 / 1.8)  # over the runs that both have
    assert error[0] == pytest.approx((1 - 0.1 * ratio[0]) / 1.8 / np.sqrt(3))
    gap, error = Sweep((1.0,), runs).gap("a", "b")
    assert (gap[0], error[0]) == (pytest.approx(0.2), pytest.approx(0.9 / np.sqrt(3)))
    assert np.isnan(Sweep((1.0,), {"a": [np.array([1.0])], "b": [np.array([2.0])]}).ratio("a", "b")[1][0])
