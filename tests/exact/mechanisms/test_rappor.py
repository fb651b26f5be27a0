"""Rappor, proved by enumeration on tiny filters: the ratio, the chance of clearing a 1 bit, the two steps apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import Rappor
from veil.checks import CheckError, worst_ratio
from veil.entropy import Source, outcomes
from veil.errors import ParameterError
from veil.mechanisms.longitudinal.rappor import positions
from veil.privacy import exp_below
from veil.reports.layout import Columns


@dataclass(frozen=True, init=False)
class NeverClears(Rappor):
    """A public library's mistake: bits are only ever set, because the filter is edited in place."""

    def draw_permanent(
        self, codes: NDArray[Any], source: Source, person: Columns | None = None
    ) -> dict[str, NDArray[Any]]:
        columns = super().draw_permanent(codes, source, person)
        places = positions(columns["cohort"], self.spread(codes), self.bits, self.hashes)
        for place in places.T:
            rows = np.arange(len(codes))
            columns["bits"][rows, place >> np.uint64(3)] |= np.uint8(1) << (place & np.uint64(7)).astype(np.uint8)
        return columns


@pytest.mark.parametrize(
    ("f", "hashes", "epsilon"),
    [(0.5, 2, 4.39), (0.25, 2, 7.78), (0.5, 1, math.log(9)), (0.25, 1, math.log(49))],
)
def test_epsilon_follows_from_f_by_the_formula(f: float, hashes: int, epsilon: float) -> None:
    oracle = Rappor.with_f(f, 1000, hashes=hashes)
    assert oracle.epsilon == pytest.approx(epsilon, abs=0.005)
    assert oracle.epsilon == pytest.approx(2 * hashes * math.log((1 - f / 2) / (f / 2)), rel=1e-14)
    assert float(oracle.f) == pytest.approx(f, rel=1e-14)
    assert oracle.guarantee.scope == "lifetime"
    assert oracle.guarantee.ratio is not None
    assert oracle.guarantee.ratio <= exp_below(oracle.epsilon)
    # and f back from epsilon: one step less noise would break the promise
    flip = oracle.thresholds["flip"]
    assert Fraction(2**64 - flip + 1, flip - 1) ** (2 * hashes) > exp_below(oracle.epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 4.39])
@pytest.mark.parametrize(("bits", "hashes", "cohorts"), [(4, 1, 1), (4, 1, 2), (6, 1, 3), (6, 2, 2), (7, 3, 1)])
def test_the_ratio_of_every_report_is_within_epsilon(epsilon: float, bits: int, hashes: int, cohorts: int) -> None:
    oracle = Rappor(epsilon, 4, bits=bits, hashes=hashes, cohorts=cohorts)
    channel = oracle.channel()
    assert len(channel) == cohorts * 2**bits
    assert all(sum(chances[held] for chances in channel.values()) == 1 for held in range(4))
    bound = oracle.guarantee.ratio
    assert bound is not None
    # values whose positions coincide differ in fewer bits: then the bound is not reached, but holds
    each = np.stack([positions(np.arange(cohorts), oracle.spread(np.full(cohorts, v)), bits, hashes) for v in range(4)])
    differing = max(
        len(set(each[v, c].tolist()) ^ set(each[u, c].tolist()))
        for c in range(cohorts)
        for v in range(4)
        for u in range(4)
    )
    step = Fraction(2**64, oracle.thresholds["flip"]) - 1
    assert worst_ratio(channel) == step**differing <= bound <= exp_below(epsilon)


@pytest.mark.parametrize("cohorts", [1, 2])
def test_a_true_bit_is_cleared_with_probability_half_f(cohorts: int) -> None:
    for f in (0.25, 0.5, 0.9):
        oracle = Rappor.with_f(f, 3, bits=4, hashes=1, cohorts=cohorts)
        for held in range(3):
            assert chance_of_clearing(oracle, held) == oracle.f / 2
            assert chance_of_clearing(oracle, held, others=True) == 1 - oracle.f / 2
    rival = NeverClears(oracle.epsilon, 3, bits=4, hashes=1, cohorts=cohorts)
    assert chance_of_clearing(rival, 0) == 0
    with pytest.raises(CheckError, match="impossible under some value"):
        worst_ratio(rival.channel())


def chance_of_clearing(oracle: Rappor, held: int, *, others: bool = False) -> Fraction:
    """That the held value's bit is 0 in the permanent filter; or the bit after it, which is not the value's."""
    codes = np.array([held], dtype=np.uint64)

    def is_clear(source: Source) -> bool:
        columns = oracle.draw_permanent(codes, source)
        place = int(positions(columns["cohort"], oracle.spread(codes), oracle.bits, 1)[0, 0])
        place = (place + 1) % oracle.bits if others else place
        return not columns["bits"][0, 0] >> place & 1

    return outcomes(is_clear).get(True, Fraction(0))


def test_the_instantaneous_step_does_not_raise_the_ratio() -> None:
    plain = Rappor(2.0, 3, bits=2, hashes=1, cohorts=2)
    twice = Rappor(2.0, 3, bits=2, hashes=1, cohorts=2, instant=(0.25, 0.75))
    assert twice.guarantee == plain.guarantee
    bound = plain.guarantee.ratio
    assert bound is not None
    assert worst_ratio(twice.channel()) < worst_ratio(plain.channel()) <= bound


def test_the_estimator_reads_the_probabilities_that_the_reports_have() -> None:
    oracle = Rappor(2.0, 3, bits=2, hashes=1, cohorts=1, instant=(0.2, 0.7))
    clear, gap = oracle._reporting()
    place = int(positions(np.zeros(1), oracle.spread(np.zeros(1)), 2, 1)[0, 0])
    rates = [Fraction(0), Fraction(0)]
    for report, chances in oracle.channel().items():
        for bit in (0, 1):
            rates[bit] += chances[0] * (report[1] >> bit & 1)
    assert float(rates[place]) == pytest.approx(clear + gap, rel=1e-14)
    assert float(rates[1 - place]) == pytest.approx(clear, rel=1e-14)


def test_the_cohort_is_drawn_before_the_value_is_looked_at() -> None:
    cohorts = {
        value: outcomes(lambda source, v=value: int(tiny().draw(np.array([v], np.uint64), source)["cohort"][0]))
        for value in range(3)
    }
    assert all(found == dict.fromkeys(range(3), Fraction(1, 3)) for found in cohorts.values())


def tiny() -> Rappor:
    return Rappor(1.0, 3, bits=2, hashes=1, cohorts=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bits": 3},
        {"bits": 1.5},
        {"hashes": 0},
        {"hashes": 65, "bits": 200},
        {"cohorts": 0},
        {"cohorts": 2**20},
        {"cohorts": True},
        {"instant": (0.75, 0.25)},
        {"instant": (0.5, 0.5)},
        {"instant": (0, 1)},
        {"instant": (0.5,)},
        {"instant": "1/2"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Rappor(1.0, 10, **wrong)


def test_bad_shares_are_refused() -> None:
    for f in (0, 1, -0.5, 2.0, True, "0.5", None):
        with pytest.raises(ParameterError):
            Rappor.with_f(f, 10)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="epsilon"):
        Rappor(1e-25, 10)
    assert Rappor.with_f(Fraction(1, 2), 10) == Rappor.with_f(0.5, 10)
