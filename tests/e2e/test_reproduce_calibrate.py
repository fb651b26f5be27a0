"""`veil reproduce calibrate` without any data folder: figures and tables are there, and claims have verdicts."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced, tables_of

from veil import metrics
from veil_papers.calibrate.trials import M, Plan, collect, scored
from veil_papers.datasets import Counts

FIGURES = [f"figure-{i}" for i in range(4, 10)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("calibrate", tmp_path_factory.mktemp("calibrate") / "new")


@pytest.mark.acceptance
def test_every_figure_has_its_picture_and_its_table(run: Run) -> None:
    assert all(len(rows) >= 24 for rows in tables_of(run, FIGURES).values())
    assert "stand-in" in run[1]["clicks"]
    assert "stand-in" in run[1]["sales"]


@pytest.mark.acceptance
def test_every_claim_has_a_verdict(run: Run) -> None:
    assert [claim["verdict"] for claim in claims_of(run) if claim["exact"]] == ["holds"] * 4


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("figures", "starts"),
    [
        ((4,), "The noise has mean 0"),
        ((4,), "The noise is normal"),
        ((7,), "Kosarak: OUE-Calibrate has a lower error than OUE-Zero at every eps"),
        ((7,), "Retail: OUE-Calibrate has a lower error than OUE-Zero at every eps"),
        ((5, 6), "OUE-Calibrate has a better F-score than OUE-Zero at and below"),
        ((5, 6), "OUE-Calibrate has a higher precision and a lower recall than OUE"),
    ],
)
def test_what_the_paper_is_about_holds_on_the_stand_ins(run: Run, figures: tuple[int, ...], starts: str) -> None:
    for number in figures:
        exhibit = next(e for e in run[1]["exhibits"] if e["name"] == f"figure-{number}")
        chosen = [claim for claim in exhibit["claims"] if claim["says"].startswith(starts)]
        assert [claim["holds"] for claim in chosen] == [True], chosen


@pytest.mark.acceptance
def test_the_printed_variance_is_reported_as_a_standard_deviation(run: Run) -> None:
    claims = run[1]["exhibits"][0]["claims"]
    printed = next(claim for claim in claims if "5,434" in claim["says"])
    assert not printed["holds"]
    assert "square root 5,434.3" in printed["measured"]


def test_hits_are_scored_as_the_metrics_do() -> None:
    for found, true in (({1, 2, 3}, {2, 3, 4, 5}), (set(), {1}), ({1}, set()), (set(), set())):
        precision, recall, f_score = scored(len(found), len(true), len(found & true))
        assert precision == metrics.precision(found, true)
        assert recall == metrics.recall(found, true)
        assert f_score == metrics.f1(found, true)


def test_a_collection_depends_on_its_seed_alone_and_has_all_methods() -> None:
    held = np.array([50_000, 20_000, 5_000, *([50] * 97)])
    plan = Plan((1.0, 4.0), runs=2, added=1, factors=(0.5, 1.0))
    steps: list[int] = []
    counts, watch = Counts(held, "made", True), lambda what, total: nullcontext(steps.append)
    first, again = (collect("a", "people", counts, plan, (1, 2), watch) for _ in range(2))
    assert sum(steps) == 8
    for name, (_, at_four) in first.errors.runs.items():
        assert at_four.tolist() == again.errors.runs[name][1].tolist()
    assert first.errors.runs[M.RAW][1][0] != first.errors.runs[M.RAW][1][1]
    assert first.gain(M.ZERO, 4.0) == 0
    assert first.gain(M.CALIBRATE, 4.0) > 0 > first.gain(M.RAW, 4.0)
    assert len(first.errors.runs["learned prior"][0]) == 1
