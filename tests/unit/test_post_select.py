"""Choosing a method: by the guideline, or by imagined collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from veil import OLH, post
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
    n, frequencies = PEOPLE, redraw(ORACLE.noise, HELD, np.random.default_rng(seed))
    return Estimate(ORACLE.domain, frequencies, n, ORACLE.noise, n, float(n), float(n), lineage=("OLH",))


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


def test_contrasting_queries_have_contrasting_answers() -> None:
    sets, frequent = (select(collected(1), query, METHODS).best for query in (WHOLE_BUT_FEW, MostFrequent(5)))
    assert sets not in ("base", "base-pos", "base-cut")
    assert frequent in ("base", "norm", "base-pos", "base-cut", "norm-cut")
    assert sets != frequent


def test_post_pos_is_judged_by_its_answers() -> None:
    """On single values it is Base-Pos, though its histogram is Base's."""
    found = select(collected(2), "single", ("base", "base-pos", "post-pos"), runs=5)
    assert found.errors["post-pos"] == pytest.approx(found.errors["base-pos"])
    assert found.errors["post-pos"] < 0.7 * found.errors["base"]


def test_seeds_decide() -> None:
    first, again, other = (select(collected(3), "single", ("base", "norm"), runs=3, seed=s) for s in (1, 1, 2))
    assert first.errors == again.errors
    assert first.errors != other.errors


def test_power_ns_selects_itself() -> None:
    """Synthesized from PowerNS, people follow a power law so closely that it wins."""
    methods = ("base", "norm-sub", "power-ns")
    assert select(collected(4), "single", methods, runs=5, synthesize="power-ns").best == "power-ns"


def test_counts_are_drawn_not_people() -> None:
    """A thousand million million people: nobody lives to see each of them drawn."""
    oracle, size, n = OLH(1.0, 1024), 1024, 10**15
    frequencies = redraw(oracle.noise, np.full(size, n // size), np.random.default_rng(0))
    raw = Estimate(oracle.domain, frequencies, n, oracle.noise, n, float(n), float(n))
    found = select(raw, [range(512), range(512, 1024)], METHODS, runs=30)
    assert set(found.errors) == set(METHODS)


def test_the_guideline() -> None:
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
