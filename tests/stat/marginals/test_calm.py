"""CALM on samples: unbiased before repair, biased and closer after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.significance import mean_fits

from veil import Record, simulate
from veil.marginals import CALM, Marginals

PEOPLE = 3_000
RECORD = Record.of(a=2, b=3, c=2, d=2)
PAIRS = CALM(1.0, RECORD, k=2, sets=2)


def people(seed: int = 0) -> dict[str, np.ndarray]:
    """Rare values and strong dependence: where clipping hurts."""
    rng = np.random.default_rng(seed)
    a = rng.random(PEOPLE) < 0.03
    b = np.where(a, 2, rng.choice(3, PEOPLE, p=[0.9, 0.08, 0.02]))
    c = np.where(rng.random(PEOPLE) < 0.9, a, ~a)
    return {"a": a.astype(int), "b": b, "c": c.astype(int), "d": (rng.random(PEOPLE) < 0.5).astype(int)}


HELD = people()
TRUTH = np.bincount(HELD["a"] * 3 + HELD["b"], minlength=6) / PEOPLE


@pytest.fixture(scope="module")
def found() -> list[Marginals]:
    return [simulate(PAIRS, HELD, seed=seed) for seed in range(120)]


def cells(found: list[Marginals], inference: str) -> np.ndarray:
    return np.array([replace(one, inference=inference).marginal(["a", "b"]).frequencies for one in found])


@pytest.mark.parametrize("inference", ["unbiased", "separate"])
def test_tables_are_unbiased_before_repair(found: list[Marginals], inference: str) -> None:
    drawn = cells(found, inference)
    errors = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert all(mean_fits(*both) for both in zip(drawn.mean(axis=0), TRUTH, errors, strict=True))


def test_repaired_tables_are_biased_and_closer(found: list[Marginals]) -> None:
    drawn = cells(found, "consistent")
    errors = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert not all(mean_fits(*both) for both in zip(drawn.mean(axis=0), TRUTH, errors, strict=True))
    squares = {how: ((cells(found, how) - TRUTH) ** 2).sum(axis=1).mean() for how in ("separate", "unbiased")}
    assert ((drawn - TRUTH) ** 2).sum(axis=1).mean() < 0.8 * squares["unbiased"] < 0.8 * squares["separate"]
