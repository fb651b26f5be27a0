"""`veil reproduce coverage --quick` without any data folder: every kind of result is there, red where it fails."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced

from veil import GRR
from veil_papers.common.exhibits import Exhibit, Grid, Reproduction
from veil_papers.common.writing import page, table_text
from veil_papers.coverage.exact import Supports

KINDS = (
    "frequencies, mid-p", "frequencies, exact", "frequencies, many people", "totals of sets", "after post-processing",
    "a sample of the people", "with weights", "differences", "the top 20, selected", "heavy hitters, selected",
    "items, selected", "itemsets, selected", "rules", "means", "distributions as printed: quantiles",
    "distributions, nothing assumed: at edges", "distributions, Hierarchy: at round numbers",
    "distributions, HaarHRR: at edges", "distributions, bins: at edges", "marginals, asked",
    "marginals, reconstructed", "conditionals", "correlations, Pearson", "correlations, Cramer",
    "SQL: COUNT", "SQL: SUM", "SQL: AVG", "SQL: GROUP BY", "SQL: differences",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("coverage", tmp_path_factory.mktemp("coverage"))


@pytest.mark.acceptance
def test_every_kind_of_result_is_in_the_table(run: Run) -> None:
    folder, document = run
    assert [exhibit["name"] for exhibit in document["exhibits"]] == [f"table-{i}" for i in range(1, 9)]
    rows = list(csv.DictReader((folder / "table-1.csv").read_text(encoding="utf-8").splitlines()))
    assert set(KINDS) <= {row["method"] for row in rows}
    assert all(0 <= float(row["mean"]) <= 1 for row in rows)
    assert (folder / "table-1.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.acceptance
def test_what_involves_no_chance_holds(run: Run) -> None:
    exact = [claim for claim in claims_of(run) if claim["exact"]]
    assert len(exact) >= 9
    assert [claim for claim in exact if not claim["holds"]] == []


def test_no_interval_covers_more_than_always() -> None:
    """A law's probabilities add up to a little more than 1 in doubles: that is not "more than it may"."""
    found, everybody = Supports(GRR(0.5, 70), 300), np.arange(301)
    always = np.tile([0.0, 300.0], (301, 1))
    assert found.laws(everybody).sum(axis=1).max() > 1
    assert found.coverage(always, everybody).max() == 1


def test_what_fails_is_marked() -> None:
    grid = Grid("Coverage", "95 %", ("good", "bad"), ("eps = 1",), ((0.95,), (0.71,)), ((False,), (True,)))
    made = Exhibit("table-1", "Table 1", (grid,), (), ())
    text = page(Reproduction("Coverage", (made,), {}, name="coverage"), "now")
    assert "| good | 0.950 |" in text
    assert "| bad | **0.710** \N{LARGE RED CIRCLE} |" in text
    assert table_text(made).splitlines()[1:] == [
        "Coverage,95 %,eps = 1,good,0.95,,",
        "Coverage,95 %,eps = 1,bad,0.71,,",
    ]
