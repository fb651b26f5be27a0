"""What a review of joint distributions found: each stays found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from veil import Categories, Record, simulate
from veil.errors import VeilError
from veil.marginals import CALM, AllMarginals, FourierMarginals, FullContingency, SplitEM, Uniform
from veil.results.base import Result

BITS = Record(tuple((f"a{i}", Categories.range(2)) for i in range(16)))
SMALL = Record.of(a=2, b=3, c=2)


def coins(people: int, attributes: int, share: float, seed: int) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(seed).random((people, attributes)) < share
    return {f"a{i}": drawn[:, i].astype(int) for i in range(attributes)}


def test_a_view_that_nobody_answered_says_nothing() -> None:
    """It once kept all tables from agreeing: a third of everything became uniform."""
    held = coins(500, 16, 0.05, seed=0)
    found = simulate(CALM(4.0, BITS, k=3, sets=2), held, seed=1)
    assert len(found.sets) < 120
    assert found.repaired.rounds < 200
    for name in BITS.names:
        assert abs(found.marginal(name).frequencies[1] - held[name].mean()) < 0.12
    never = found.marginal(next(pair for pair in combinations(BITS.names, 2) if pair not in found.sets))
    assert not never.measured
    assert never.remarks()


def test_independent_people_are_not_called_associated() -> None:
    """A test of the people who took part alone rejects: no people are independent to the last one."""
    five = Record(BITS.attributes[:5])
    rejected = 0
    for seed in range(30):
        found = simulate(FullContingency(8.0, five), coins(2_000, 5, 0.5, seed), seed=seed)
        rejected += found.correlations().facts()["significant"] > 0
    assert rejected <= 6  # one in twenty, by Holm; it was all of them
    both = coins(2_000, 5, 0.5, seed=1)
    both["a1"] = both["a0"]
    assert simulate(FullContingency(8.0, five), both, seed=1).correlation("a0", "a1").p_value < 1e-9


@pytest.mark.parametrize("study", [AllMarginals(2.0, SMALL, k=2), FourierMarginals(2.0, SMALL, k=2)])
def test_people_are_made_up_where_the_whole_table_is_not_known(study: Any) -> None:
    held = {"a": [0, 1] * 2_000, "b": [0, 1, 2, 0] * 1_000, "c": [0, 1] * 2_000}
    made = simulate(study, held, seed=1).synthesize(2_000, seed=1).to_pandas()
    assert (made["a"] == made["c"]).mean() > 0.9
    assert 0.3 < (made["b"] == 1).mean() + (made["b"] == 2).mean() < 0.7


def test_uniform_is_a_result_like_others() -> None:
    found = Uniform.of(SMALL, people=100)
    assert found.marginal(["a", "b"]).frequencies.tolist() == pytest.approx([1 / 6] * 6)
    assert Result.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: CALM(1.0, BITS, marginal=5),  # type: ignore[arg-type]
        lambda: CALM(1.0, BITS, sets=True),
        lambda: CALM(1.0, BITS, sets=1.5),  # type: ignore[arg-type]
        lambda: CALM(1.0, BITS, sets="ab"),  # type: ignore[arg-type]
        lambda: SplitEM(10.0, Record(tuple((f"a{i}", Categories.range(2)) for i in range(100))), k=5),
        lambda: CALM(1.0, Record(tuple((f"a{i}", Categories.range(200)) for i in range(40))), k=2, sets=2),
        lambda: AllMarginals(1.0, Record(tuple((f"a{i}", Categories.range(100)) for i in range(5))), k=5),
        lambda: Uniform.of(SMALL).marginal(5),
        lambda: Uniform.of(SMALL).marginal([["a"]]),
        lambda: Uniform.of(SMALL).conditional("a", None),
        lambda: Uniform.of(SMALL).synthesize(3, seed=-1),
    ],
)
def test_wrong_arguments_get_an_error_of_our_own(wrong: Callable[[], Any]) -> None:
    with pytest.raises(VeilError):
        wrong()


def test_one_name_is_as_good_as_a_list() -> None:
    assert CALM(1.0, SMALL, k=2, marginal="a").marginal == ("a",)  # type: ignore[arg-type]
