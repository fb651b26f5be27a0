"""`veil reproduce itemsets` without any data folder: figures and tables are there, and claims have verdicts."""

from __future__ import annotations

import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced, tables_of, verdict_of

FIGURES = ["figure-5.3", "figure-5.4", "figure-5.6", "figure-5.7", "figure-5.8"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("itemsets", tmp_path_factory.mktemp("itemsets"))


@pytest.mark.acceptance
def test_every_figure_has_its_picture_and_its_table(run: Run) -> None:
    assert all(len(rows) >= 8 for rows in tables_of(run, FIGURES).values())
    assert "stand-in" in run[1]["pos"]


@pytest.mark.acceptance
def test_every_claim_has_a_verdict(run: Run) -> None:
    assert sum(claim["says"].startswith("(goal)") for claim in claims_of(run)) == 6  # two more at eps = 1, in full


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "starts",
    [
        "(goal) SVIM at eps = 2: NCR at least 1.8 times improved",
        "(goal) SVIM at eps = 2: squared error at least 200 times",
        "SVSM is better on SVIM than on LDPMiner, Kosarak",
        "SVIM is better than LDPMiner, Kosarak (here: Var",
    ],
)
def test_what_the_thesis_is_about_holds_on_the_stand_in(run: Run, starts: str) -> None:
    assert verdict_of(run, starts) == "holds"
