"""Association rules: ranges of confidence and lift, and distances of their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.itemsets.rules import find_rules


@dataclass(frozen=True)
class Known:
    items: tuple[int, ...]
    frequency: float
    stderr: float
    low: float
    high: float


SHARES = st.tuples(st.floats(1e-3, 1.3), st.floats(0, 1), st.floats(0, 1))


def known(items: tuple[int, ...], share: tuple[float, float, float]) -> Known:
    frequency, down, up = share
    low = min(frequency, 1.0) * (1 - down)
    return Known(items, frequency, 0.1, low, max(low, min(1.0, frequency + up)))


@given(SHARES, SHARES, SHARES)
def test_rules_stay_within_possible_ranges(whole: object, left: object, right: object) -> None:
    rows = [known((0, 1), whole), known((0,), left), known((1,), right)]  # type: ignore[arg-type]  # three numbers
    for rule in find_rules(rows, rows, 0.0):
        low, high = rule.confidence_interval
        assert 0 <= low <= high <= 1
        assert 0 <= rule.confidence <= 1
        assert 0 <= rule.lift_interval[0] <= rule.lift_interval[1]
        assert rule.lift <= 1 / min(1.0, max(rows[1].frequency, rows[2].frequency)) + 1e-12


def test_rule_intervals_combine_distances_by_round() -> None:
    rows = [
        Known((0, 1), 0.2, 0.02, 0.1, 0.4),
        Known((0,), 0.5, 0.05, 0.25, 0.625),
        Known((1,), 0.4, 0.04, 0.2, 0.8),
    ]
    rule = next(rule for rule in find_rules(rows, rows, 0.0) if rule.given == (0,))
    low, high = rule.confidence_interval
    assert (rule.confidence, rule.lift) == pytest.approx((0.4, 1.0))
    assert low == pytest.approx(0.4 * math.exp(-math.hypot(math.log(2), math.log(1.25))))
    assert high == 1.0  # 0.4 e^(ln 2 sqrt 2) = 1.07 is cut
    assert rule.lift_interval[0] == pytest.approx(math.exp(-math.hypot(math.log(2), math.log(1.25) + math.log(2))))
    assert rule.lift_interval[1] == pytest.approx(min(4.0, math.exp(math.hypot(math.log(2), 2 * math.log(2)))))
    assert rule.confidence_stderr == pytest.approx(0.4 * math.hypot(0.1, 0.1))
    assert rule.lift_stderr == pytest.approx(math.hypot(0.1, 0.2))
