"""Choosing a method: by the guideline, or by imagined collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.post_estimates import drawn_estimate

from veil import OLH, PGR, post
from veil.errors import DomainError, InputError, ParameterError
from veil.post import EveryValue, MostFrequent, Sets, recommend, select
from veil.post.selection import redraw
from veil.results.estimate import Estimate

SIZE, PEOPLE = 256, 200_000
ORACLE = OLH(1.0, SIZE)
WEIGHTS = 1 / np.arange(1, SIZE + 1) ** 1.5
HELD = np.diff(np.rint(np.cumsum(WEIGHTS / WEIGHTS.sum()) * PEOPLE).astype(int), prepend=0)
TRUTH = HELD / PEOPLE
METHODS = ("base", "base-pos", "norm", "norm-mul", "norm-cut", "norm-sub", "base-cut")
WHOLE_BUT_FEW = [[v for v in range(SIZE) if v % 16 != skipped] for skipped in range(16)]


def collected(seed: int) -> Estimate:
    return drawn_estimate(ORACLE, HELD, np.random.default_rng(seed))


def truly_best(groups: list[Any], methods: tuple[str, ...] = METHODS, runs: int = 120) -> dict[str, float]:
    """Mean squared errors over many collections from the true people."""
    errors = dict.fromkeys(methods, 0.0)
    for seed in range(1_000, 1_000 + runs):
        raw = collected(seed)
        for name in methods:
            made = raw.post(name).frequencies
            errors[name] += float(np.mean([(made[g].sum() - TRUTH[g].sum()) ** 2 for g in groups])) / runs
    return errors


@pytest.mark.parametrize(
    ("queries", "groups", "poor"),
    [
        (WHOLE_BUT_FEW, [np.array(chosen) for chosen in WHOLE_BUT_FEW], "base-pos"),
        (MostFrequent(5), [np.array([v]) for v in range(5)], "norm-mul"),
    ],
    ids=["large sets", "frequent values"],
)
def test_the_best_method_is_found(queries: Any, groups: list[Any], poor: str) -> None:
    errors = truly_best(groups)
    found = select(collected(1), queries, METHODS, runs=40)
    assert errors[found.best] <= 1.1 * min(errors.values())  # methods may tie
    assert errors[poor] > 2 * min(errors.values())
    assert list(found.errors)[-1] != found.best
    assert list(found.errors.values()) == sorted(found.errors.values())
    assert set(found.errors) == set(METHODS)
    assert found.runs == 40


def test_different_queries_select_different_methods() -> None:
    sets, frequent = (select(collected(1), query, METHODS).best for query in (WHOLE_BUT_FEW, MostFrequent(5)))
    assert sets not in ("base", "base-pos", "base-cut")
    assert frequent in ("base", "norm", "base-pos", "base-cut", "norm-cut")
    assert sets != frequent


def test_post_pos_is_judged_by_its_answers() -> None:
    """On single values it is Base-Pos, though its histogram is Base's."""
    found = select(collected(2), "single", ("base", "base-pos", "post-pos"), runs=5)
    assert found.errors["post-pos"] == pytest.approx(found.errors["base-pos"])
    assert found.errors["post-pos"] < 0.7 * found.errors["base"]


def test_the_seed_determines_the_selection() -> None:
    first, again, other = (select(collected(3), "single", ("base", "norm"), runs=3, seed=s) for s in (1, 1, 2))
    assert first.errors == again.errors
    assert first.errors != other.errors


def test_synthesis_by_power_ns_selects_power_ns() -> None:
    """Synthesized from PowerNS, people follow a power law so closely that it wins."""
    methods = ("base", "norm-sub", "power-ns")
    assert select(collected(4), "single", methods, runs=5, synthesize="power-ns").best == "power-ns"


def test_selection_time_does_not_depend_on_the_number_of_people() -> None:
    """A thousand million million people: nobody lives to see each of them drawn."""
    oracle, size, n = OLH(1.0, 1024), 1024, 10**15
    frequencies = redraw(oracle.noise, np.full(size, n // size), np.random.default_rng(0))
    raw = Estimate(oracle.domain, frequencies, n, oracle.noise, n, float(n), float(n))
    found = select(raw, [range(512), range(512, 1024)], METHODS, runs=30)
    assert set(found.errors) == set(METHODS)


def test_recommendations_are_those_of_the_paper() -> None:
    assert [recommend(kind) for kind in ("single", "frequent", "sets")] == ["base-cut", "norm", "power-ns"]
    assert recommend(EveryValue()) == "base-cut"
    assert recommend(MostFrequent(3)) == "norm"
    assert recommend([[1, 2], [3]]) == recommend(Sets([[1, 2], [3]])) == "power-ns"
    for bad in ("all", [], 5, [1, 2], None):
        with pytest.raises(InputError, match="quer"):
            recommend(bad)


@pytest.mark.parametrize("bad", ["all", [], 5, None, [1, 2], ["ab"], [[]], [[1], []]])
def test_bad_queries_are_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="set"):
        select(collected(1), bad, ("base",), runs=1)


def test_bad_choices_are_refused() -> None:
    raw = collected(1)
    with pytest.raises(DomainError):
        select(raw, [[SIZE]], ("base",), runs=1)
    for methods in ((), ("base", "best"), "base"):
        with pytest.raises(ParameterError, match="norm-sub"):
            select(raw, "single", methods, runs=1)
    for runs in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="runs"):
            select(raw, "single", ("base",), runs=runs)  # type: ignore[arg-type]
    for k in (0, 1.5, True):
        with pytest.raises(ParameterError, match="at least 1"):
            MostFrequent(k)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a method"):
        select(raw, "single", ("base",), runs=1, synthesize="best")
    assert set(post.PAPER_METHODS) <= set(post.METHODS)
    assert len(post.PAPER_METHODS) == 11


def test_redrawn_frequencies_are_unbiased_where_reports_support_no_value() -> None:
    """PGR in two dimensions has reports for one value at most, and some for none: not all of them are GRR's."""
    oracle, held = PGR(3.0, 2), np.array([6_000, 4_000])
    assert oracle.noise.hit == oracle.noise.miss == 0
    random = np.random.default_rng(0)
    drawn = np.mean([redraw(oracle.noise, held, random) for _ in range(400)], axis=0)
    error = np.sqrt(oracle.noise.variance(0.6) / 10_000 / 400)
    assert np.abs(drawn - [0.6, 0.4]).max() < 6 * error
