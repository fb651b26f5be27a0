"""`veil reproduce marginals` without any data folder: seven figures with tables, and every claim with a verdict."""

from __future__ import annotations

import numpy as np
import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced, tables_of, verdict_of

from veil_papers.datasets import kosarak_sets
from veil_papers.marginals.classify import classified
from veil_papers.marginals.parameters import preview, spread_sets
from veil_papers.marginals.runs import Case, M, able

FIGURES = [f"figure-6.{i}" for i in range(3, 10)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("marginals", tmp_path_factory.mktemp("marginals"))


@pytest.mark.acceptance
def test_every_figure_has_its_picture_and_its_table(run: Run) -> None:
    tables = tables_of(run, FIGURES)
    assert all(len(rows) >= 8 for rows in tables.values())
    methods = {row["method"] for row in tables["figure-6.4"] + tables["figure-6.5"]}
    assert methods == {M.CALM, M.GRAPHICAL, M.FC, M.AM, M.FT, M.EM, M.BE, M.UNIFORM}
    for data in ("kosarak", "pos", "adult", "us"):
        assert "stand-in" in run[1][data]


@pytest.mark.acceptance
def test_every_claim_has_a_verdict_and_the_analysis_holds(run: Run) -> None:
    exact = [claim["verdict"] for claim in claims_of(run, "figure-6.3")]
    assert exact == ["holds"] * 3
    assert sum(claim["says"].startswith("(goal)") for claim in claims_of(run)) >= 15


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "begins",
    [
        "(goal) CALM is below Uniform in every setting",
        "(goal) Adult, 3 categories, n = 2^18, eps = 2: AM",
        "PreView is one to two magnitudes better",
    ],
)
def test_what_the_thesis_is_about_holds_on_the_stand_in(run: Run, begins: str) -> None:
    assert verdict_of(run, begins) == "holds"


def test_a_classifier_learns_what_a_table_says() -> None:
    people = np.zeros((2, 3, 2), dtype=np.int64)
    people[0, :, 0], people[1, :, 1] = 30, 10  # the first attribute is the label
    assert classified(people, people) == 0
    assert classified(people[..., ::-1], people) == 1
    only = people.copy()
    only[..., 1] = 0
    assert classified(only, people) == pytest.approx(0.25)  # one label was all it saw


def test_a_trusted_curator_covers_all_pairs_and_hardly_errs() -> None:
    people = kosarak_sets().records(12).resample(1 << 14, seed=1)
    case = Case("Kosarak", people, 3)
    rng = np.random.default_rng(0)
    queries = case.queries(10, rng)
    found = preview(1.0, people, 2, rng)
    assert all(len(one) == 8 for one in found.sets)
    pairs = {(a, b) for one in found.sets for a in one for b in one}
    assert len(pairs) == 12 * 12
    curated = case.sse(lambda names: found.marginal(names).frequencies, queries)
    uniform = case.sse(lambda names: np.full(8, 1 / 8), queries)
    assert curated < 1e-3 * uniform


def test_what_can_run_depends_on_people_and_cells() -> None:
    people = kosarak_sets().records(32).resample(1 << 12, seed=1)
    assert {M.CALM, M.UNIFORM} == set(able(Case("Kosarak", people, 6)))
    small = able(Case("Kosarak", people.only(people.domain.names[:8]), 3))
    assert (small[M.FC], small[M.AM], small[M.FT]) == (256, 56, 92)


def test_views_of_the_heat_maps_are_spread() -> None:
    sets = spread_sets("abcdefgh", 3, 8, seed=0)
    assert len(set(sets)) == 8
    assert {sum(letter in one for one in sets) for letter in "abcdefgh"} == {3}
    assert len(spread_sets("abc", 2, 9, seed=0)) == 3
