"""Bounds on e^eps, thresholds and guarantees: exact, and rounded the right way."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.domain import Items
from veil.errors import ParameterError, WireError
from veil.mechanisms import GRR, OLH, OUE, SHE, SubsetSelection
from veil.privacy import (
    Guarantee,
    check_epsilon,
    coin_threshold,
    decimal_text,
    exp_below,
    log_above,
    split_epsilon,
)
from veil.view import SampleItem

EPSILONS = st.floats(1e-6, 20.0)


def precise_exp(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 100
        return Fraction(Decimal(epsilon).exp())


@given(EPSILONS)
def test_exp_below_is_below_and_close(epsilon: float) -> None:
    bound = exp_below(epsilon)
    exact = precise_exp(epsilon)
    assert bound < exact
    assert exact - bound < exact * Fraction(1, 10**14)  # the double and its decimal differ by an ulp at most


@given(EPSILONS)
def test_exp_below_keeps_the_printed_epsilon_too(epsilon: float) -> None:
    with localcontext() as context:
        context.prec = 100
        assert exp_below(epsilon) < Fraction(Decimal(repr(epsilon)).exp())


@given(st.fractions(min_value=1, max_value=10**6))
def test_log_above_is_the_next_double(ratio: Fraction) -> None:
    above = log_above(ratio)
    assert precise_exp(above) >= ratio
    if above > 0:
        assert precise_exp(math.nextafter(above, -math.inf)) < ratio


@given(st.floats(0.01, 8.0), st.integers(2, 300))
def test_every_mechanism_keeps_epsilon_in_every_setting(epsilon: float, size: int) -> None:
    for oracle in (GRR(epsilon, size), OUE(epsilon, size), OLH(epsilon, size), SubsetSelection(epsilon, size)):
        assert oracle.guarantee.within(epsilon)
        assert oracle.guarantee.epsilon <= epsilon
        assert oracle.guarantee.epsilon > epsilon * (1 - 1e-9) - 1e-12


@given(st.floats(0.01, 8.0), st.integers(2, 12))
def test_a_split_budget_is_kept_and_hardly_wasted(epsilon: float, parts: int) -> None:
    part = split_epsilon(epsilon, parts)
    assert exp_below(part) ** parts <= exp_below(epsilon)
    assert part > epsilon / parts * (1 - 1e-14)


def test_plain_division_of_a_budget_exceeds_it() -> None:
    settings = [(i / 10, parts) for i in range(1, 60) for parts in (2, 3, 5, 7)]
    broken = [
        setting for setting in settings if exp_below(setting[0] / setting[1]) ** setting[1] > exp_below(setting[0])
    ]
    assert len(broken) > len(settings) // 10


@given(st.floats(0.01, 4.0), st.integers(1, 50))
def test_amplification_is_exact_too(epsilon: float, length: int) -> None:
    view = SampleItem(Items(5), length)
    inner = view.inner_epsilon(epsilon, disjoint=True)
    assert view.outer(Guarantee(exp_below(inner)), disjoint=True).within(epsilon)
    assert inner == pytest.approx(math.log1p(length * math.expm1(epsilon)), rel=1e-12)
    assert view.inner_epsilon(epsilon, disjoint=False) == pytest.approx(epsilon, rel=1e-15)


def test_textbook_probabilities_in_doubles_exceed_epsilon() -> None:
    """The reason for all this: the same probability in doubles exceeds eps in about half of all settings."""
    settings = [(i / 17, size) for i in range(1, 60) for size in (2, 3, 10, 100)]
    broken = 0
    for epsilon, size in settings:
        p = Fraction(math.exp(epsilon) / (math.exp(epsilon) + size - 1))
        broken += p / (1 - p) * (size - 1) > precise_exp(epsilon)
    assert 0.25 < broken / len(settings) < 0.75


@given(st.fractions(min_value=0, max_value=1))
def test_thresholds_round_as_asked(probability: Fraction) -> None:
    low, high = coin_threshold(probability), coin_threshold(probability, up=True)
    assert Fraction(low, 2**64) <= probability <= Fraction(high, 2**64)
    assert high - low <= 1


@pytest.mark.parametrize("bad", [0, -1, 0.0, math.nan, math.inf, -math.inf, 41, "x", None, True, [1]])
def test_epsilon_is_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        check_epsilon(bad)  # type: ignore[arg-type]


@given(st.floats(1e-12, 1e12))
def test_decimal_text_reads_back(value: float) -> None:
    text = decimal_text(value)
    assert float(text) == value
    assert "e" not in text.lower()
    assert not text.endswith(".")


def test_guarantees_combine() -> None:
    small, large = Guarantee(Fraction(2)), Guarantee(Fraction(3), delta=Fraction(1, 100))
    assert Guarantee.largest([small, large]).ratio == 3
    assert Guarantee.together([small, large]).ratio == 6
    assert Guarantee.together([large, large]).delta == Fraction(1, 50)
    assert Guarantee.largest([large, large]).delta == Fraction(1, 100)
    nothing = Guarantee(None, needs_shuffler=True)
    assert Guarantee.largest([small, nothing]).ratio is None
    assert Guarantee.together([small, nothing]).needs_shuffler
    assert nothing.epsilon == math.inf
    assert not nothing.within(10.0)
    with pytest.raises(ParameterError):
        Guarantee.largest([small, Guarantee(Fraction(2), neighbours="remove")])

    with pytest.raises(ParameterError, match="at least one"):
        Guarantee.together([])


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (GRR(1.0, 7).guarantee, "eps = 1, exactly"),
        (GRR(0.1, 7).guarantee, "eps = 0.1, exactly"),
        (Guarantee(exp_below(2.0), Fraction(28, 10**5)), "eps = 2, delta = 2.8e-4"),
        (Guarantee(exp_below(2.0), Fraction(2801, 10**7)), "eps = 2, delta = 2.9e-4"),
        (Guarantee(Fraction(1), Fraction(1, 10**6)), "eps = 0, delta = 1e-6"),
        (Guarantee(Fraction(3), neighbours="remove"), "eps = 1.09861, exactly, for adding or removing a person"),
        (Guarantee(Fraction(3), scope="lifetime"), "eps = 1.09861, exactly, over all reports of one value"),
        (Guarantee(None, needs_shuffler=True), "nothing on its own: it needs a shuffler"),
    ],
)
def test_guarantees_in_words_and_in_json(guarantee: Guarantee, words: str) -> None:
    assert str(guarantee) == words
    assert Guarantee.from_json(json.loads(json.dumps(guarantee.to_json()))) == guarantee


def test_a_guarantee_may_have_more_digits_than_python_prints() -> None:
    long = Guarantee(SHE(1.0, 4, grid=1024).guarantee.ratio, delta=Fraction(1, 2**40_000))
    with pytest.raises(ValueError, match="digits"):
        str(long.delta)
    assert Guarantee.from_json(long.to_json()) == long
    assert str(long).startswith("eps = 1, delta = ")


@pytest.mark.parametrize(
    "change",
    [
        {"ratio": 2},
        {"ratio": "2"},
        {"ratio": "4/2"},
        {"ratio": "1/2"},
        {"ratio": "02/1"},
        {"ratio": "2/0"},
        {"delta": None},
        {"delta": "-1/2"},
        {"delta": "1/1"},
        {"delta": "0.1"},
        {"scope": "week"},
        {"neighbours": None},
        {"needs_shuffler": 0},
        {"central": "2/1"},
    ],
)
def test_json_that_is_no_guarantee_is_refused(change: dict[str, object]) -> None:
    with pytest.raises((WireError, ParameterError)):
        Guarantee.from_json(Guarantee(Fraction(2)).to_json() | change)
    with pytest.raises(WireError):
        Guarantee.from_json("2/1")


@pytest.mark.parametrize("bad", [{"ratio": Fraction(1, 2)}, {"ratio": Fraction(2), "delta": Fraction(1)}])
def test_impossible_guarantees_are_refused(bad: dict[str, Fraction]) -> None:
    with pytest.raises(ParameterError):
        Guarantee(**bad)  # type: ignore[arg-type]
