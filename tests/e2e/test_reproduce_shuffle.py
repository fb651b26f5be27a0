"""`veil reproduce shuffle` without any data folder: every exhibit is there, claims have verdicts; and its own parts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced, tables_of, verdict_of

from veil.accounting import AUE
from veil.mechanisms import OLH
from veil_papers.shuffle.methods import LDP, SHUFFLED, drawn, made, sh, solh
from veil_papers.shuffle.strings import TOP, Crowd, groups, precision, tree_hist, without_noise

EXHIBITS = ["table-9.1", "figure-9.3", "table-9.2", "figure-9.4", "real-reports", "beyond-1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("shuffle", tmp_path_factory.mktemp("shuffle"))


@pytest.mark.acceptance
def test_every_exhibit_has_its_picture_and_its_table(run: Run) -> None:
    tables = tables_of(run, EXHIBITS)
    assert {row["method"] for row in tables["figure-9.3"]} >= {*LDP, *SHUFFLED, "Lap", "Base"}
    assert all("stand-in" in run[1][fact] for fact in ("cities", "pages", "queries"))


@pytest.mark.acceptance
def test_a_bound_whose_condition_fails_has_no_point(run: Run) -> None:
    rows = tables_of(run, EXHIBITS)["table-9.1"]
    small = [float(row["x"]) for row in rows if row["method"].startswith("[50]")]
    assert small
    assert max(small) < 0.5
    assert not [row for row in rows if row["method"].startswith("[49]") and row["panel"] != "(a) GRR of 2 values"]


@pytest.mark.acceptance
def test_what_was_asked_for_holds(run: Run) -> None:
    goals = [claim for claim in claims_of(run) if claim["says"].startswith("(goal)")]
    assert len(goals) == 11
    assert all(claim["holds"] for claim in goals)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "begins",
    [
        "OLH and Had are around 3 orders",
        "SH is worth nothing below",
        "Where there is no amplification, SH is even worse",
        "RAP_R is the best",
        "Except SH, the shuffled methods outperform",
        "(ours) The better of both has a lower error",
    ],
)
def test_what_the_thesis_is_about_holds_on_the_stand_in(run: Run, begins: str) -> None:
    assert verdict_of(run, begins) == "holds"


# -- methods -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*LDP, *SHUFFLED])
def test_drawn_estimates_have_the_mean_and_the_variance_of_the_formula(name: str) -> None:
    people, held = 600_000, np.array([300_000, 200_000, 100_000, *[0] * 997])
    oracle = made((LDP | SHUFFLED)[name], len(held), people, 0.9, 1e-9)
    assert oracle is not None
    rng = np.random.default_rng(1)
    runs = np.array([drawn(oracle, held, rng) for _ in range(20)])
    error = np.sqrt(oracle.variance(people, held / people))
    assert (abs(runs.mean(axis=0)[:3] - held[:3] / people) < 5 * error[:3] / np.sqrt(20)).all()
    assert runs[:, 3:].var() == pytest.approx(oracle.variance(people), rel=0.05)


def test_drawn_sums_of_aue_are_those_of_its_reports() -> None:
    oracle = AUE(1.0, 5, users=20_000, delta=1e-6)
    held = np.array([10_000, 6_000, 4_000, 0, 0])
    rng = np.random.default_rng(2)
    made_up = np.array([drawn(oracle, held, rng) for _ in range(400)])
    real = np.array(
        [oracle.estimate(oracle.tally(oracle.randomize(np.repeat(np.arange(5), held)))).frequencies for _ in range(100)]
    )
    assert real.mean() == pytest.approx(made_up.mean(), abs=5 * made_up.std() / np.sqrt(500))
    assert 0.7 < (real - held / 20_000).std() / (made_up - held / 20_000).std() < 1.4


def test_where_nothing_is_amplified_reports_are_as_without_a_shuffler() -> None:
    assert sh(915, 602_325, 0.6, 1e-9).epsilon == pytest.approx(0.6)
    assert sh(915, 602_325, 0.7, 1e-9).epsilon > 3
    found = solh(100, 990_002, 0.2, 1e-9, buckets=1_000)
    assert isinstance(found, OLH)
    assert (found.epsilon, found.hash_range) == (0.2, 2)
    assert made(SHUFFLED["AUE"], 915, 602_325, 0.1, 1e-9) is None


# -- strings -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def few() -> Crowd:
    codes = np.unique(np.random.default_rng(3).integers(0, 1 << 48, 60, dtype=np.uint64))
    return Crowd(codes, 1_000 + np.arange(len(codes)) * 10)


def test_without_noise_random_strings_come_out(few: Crowd) -> None:
    assert without_noise(few) >= 0.9
    assert len(few.top) == TOP


def test_groups_share_everybody_out(few: Crowd) -> None:
    split = groups(few, np.random.default_rng(4))
    assert sum(int(held.sum()) for _, held in split) == few.people
    for (mine, _), (every, _) in zip(split, few.prefixes, strict=True):
        assert mine.tolist() == every.tolist()


def test_a_method_without_an_oracle_finds_nothing(few: Crowd) -> None:
    found = tree_hist(few.prefixes, lambda held: None)
    assert len(found) == 0
    assert np.isnan(precision(found, few))
