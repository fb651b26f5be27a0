"""`veil reproduce heavy-hitters` without any data folder: tables and figures are there, and claims have verdicts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced, tables_of, verdict_of

from veil.domain import Bits, Text
from veil.hitters import PrivTrie
from veil.simulation import simulate
from veil_papers.common.sweep import Sweep
from veil_papers.datasets import Strings
from veil_papers.heavy_hitters.searching import PAPER, Crowd, Source, found_codes, measure, search, some

EXHIBITS = ["table-4.1", "table-4.2", "table-4.3", *(f"figure-4.{i}" for i in range(2, 7)), "text", "real-reports"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("heavy-hitters", tmp_path_factory.mktemp("heavy-hitters"))


@pytest.mark.acceptance
def test_every_exhibit_has_its_picture_and_its_table(run: Run) -> None:
    assert all(tables_of(run, EXHIBITS).values())
    assert "stand-in" in run[1]["urls"]


@pytest.mark.acceptance
def test_every_claim_has_a_verdict_and_analysis_holds(run: Run) -> None:
    claims = claims_of(run)
    assert [claim["verdict"] for claim in claims if claim["exact"]] == ["holds"] * 2
    assert sum(claim["says"].startswith("(goal)") for claim in claims) == 9


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "starts",
    [
        "PEM performs best at every eps, synthetic",
        "With the true prefixes in the last round",
        "Splitting people is better than splitting the budget",
        "PEM1, whose last group is smaller",
        "Drawn supports are as good as real reports",
    ],
)
def test_what_the_thesis_is_about_holds_on_few_people(run: Run, starts: str) -> None:
    assert verdict_of(run, starts) == "holds"


def crowd(people: int = 40_000) -> Crowd:
    codes = np.array([0x1234_5678_9ABC_DEF0, 0xFFFF_0000_1111_2222, 99], dtype=np.uint64)
    return Crowd.of(Bits(64), codes, np.array([people // 4, people // 2, people // 4 - 1]))


def test_a_drawn_campaign_finds_what_a_simulated_one_does() -> None:
    held = crowd()
    trie = PrivTrie(6.0, Bits(64), 3, held.people, improved=True)
    values = np.repeat(held.codes, held.counts)
    drawn, real = search(trie, held, [1]), simulate(trie, values, seed=1)
    assert set(found_codes(drawn)) == set(found_codes(real)) == set(held.top(3))
    assert [step.people for step in drawn.history] == [step.people for step in real.history]
    for found in (drawn, real):
        assert np.abs(found.estimates.frequencies[0] - 0.5) < 6 * found.estimates.stderr[0]


def test_every_method_searches_and_a_run_depends_on_its_seed_alone() -> None:
    steps: list[int] = []
    methods, points = some((PAPER, "PEM1", "HASH", "SPM, original", "PrivTrie")), [(6.0, 6.0, 3)]

    def watch(what: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
        assert total == 2
        return nullcontext(steps.append)

    first, again = (measure("a search", lambda run: crowd(), points, methods, 2, [5], watch) for _ in range(2))
    assert sum(steps) == 4
    for name in methods:
        assert np.array_equal(first["F1"].runs[name], again["F1"].runs[name])
        assert first["F1"].at(name, 6.0) == 1.0
    assert first["Var"].at(PAPER, 6.0) > 0


def test_what_would_take_minutes_is_left_out() -> None:
    spm, hash_ = some(("SPM", "HASH")).values()
    assert spm(1.0, Bits(64), 16, 1_000) is not None
    assert spm(1.0, Bits(64), 17, 1_000) is None
    assert hash_(1.0, Bits(64), 33, 1_000) is None
    assert hash_(1.0, Text(20), 17, 1_000) is None


def test_cut_strings_are_one_and_the_rarest_are_left_out() -> None:
    strings = Strings(["abcdef", "abcxyz", "b", "c"], np.array([5, 4, 3, 1]), "by hand", stand_in=True)
    source = Source.of(strings, 3, most=3)
    assert source.domain.decode(source.codes) == ["abc", "b"]
    assert source.shares.tolist() == [0.75, 0.25]


def test_gaps_are_of_paired_runs_and_nothing_found_is_no_number() -> None:
    rows = {"a": np.array([[1.0, 3.0], [np.nan, np.nan]]), "b": np.array([[2.0, 4.0], [1.0, 1.0]])}
    sweep = Sweep((1.0, 2.0), {name: list(row) for name, row in rows.items()})
    gap, error = sweep.gap("b", "a")
    assert (gap[0], error[0]) == (1.0, 0.0)
    assert np.isnan(gap[1])
    assert np.isnan(sweep.mean("a")[1])
    assert sweep.curve("a").x == (1.0,)
