"""Proofs for families of questions on the code that ships: the promise, and that every question is equally likely."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from tests.exact.survey.test_surveys import channel

from veil import GRR, OUE, AllOf, EachOf, Record, Survey
from veil.checks import worst_ratio
from veil.domain import Domain
from veil.mechanisms import Mechanism
from veil.privacy import exp_below
from veil.survey import AttributeSets, Levels, ListedBits, ListedSets, Parities, Rule

RECORD = Record.of(a=2, b=3, c=2)
HELD = [dict(zip("abc", row, strict=True)) for row in product(range(2), range(3), range(2))]


def by_size(domain: Domain) -> Mechanism:
    """Different budgets, so that it matters which is the weakest."""
    return GRR(1.0, domain) if domain.size < 6 else OUE(0.5, domain)


@pytest.mark.parametrize(
    "rule",
    [
        AttributeSets(RECORD, 1),
        AttributeSets(RECORD, 2),
        ListedSets(RECORD, (("b",), ("a", "c"), ("a", "b"))),
        Levels(RECORD, (("b", 2), ("a", 2))),
        ListedBits(RECORD, ((("b", 0),), (("a", 0), ("b", 1)), (("a", 0), ("b", 0), ("c", 0)))),
        Parities(RECORD, 2),
    ],
    ids=["singles", "pairs", "listed", "levels", "bits", "parities"],
)
def test_questions_are_equally_likely_and_the_weakest_guarantee_holds(rule: Rule) -> None:
    family = EachOf(rule, by_size)
    survey = Survey(family)
    found = channel(survey, HELD)
    weakest = max(question.guarantee.ratio or 0 for question in survey.questions)
    assert worst_ratio(found) == survey.guarantee.ratio == weakest
    for choice in range(len(family)):
        mine = [chances for report, chances in found.items() if report[0] == choice]
        assert [sum(column) for column in zip(*mine, strict=True)] == [Fraction(1, len(family))] * len(HELD)


def test_the_ratio_of_a_family_is_above_that_of_its_smallest_budget() -> None:
    """The promise of the family is its own: that of the smallest budget would be broken."""
    survey = Survey(EachOf(AttributeSets(RECORD, 2), by_size))
    assert worst_ratio(channel(survey, HELD)) > exp_below(0.5)


def test_ratios_of_families_in_an_all_of_multiply() -> None:
    inner = EachOf(AttributeSets(Record.of(a=2, b=2), 1), lambda domain: GRR(0.5, domain))
    survey = Survey(AllOf(inner, inner))
    held = [{"a": a, "b": b} for a in range(2) for b in range(2)]
    assert worst_ratio(channel(survey, held)) == survey.guarantee.ratio == (inner.guarantee.ratio or 0) ** 2


def test_estimates_of_every_question_are_unbiased() -> None:
    """The expected tally of one person, over all reports, gives back exactly what the view shows of them."""
    survey = Survey(EachOf(AttributeSets(RECORD, 2), lambda domain: GRR(1.0, domain)))
    for place, value in enumerate(HELD[:4]):
        chances = {report: row[place] for report, row in channel(survey, HELD).items()}
        for i, question in enumerate(survey.questions):
            oracle = question.pure
            own = [Fraction(0)] * oracle.domain.size
            for report, chance in chances.items():
                if report[0] == i:
                    own[report[1]] += chance * len(survey.questions)
            shown = int(question.view.apply(RECORD.encode([value]), None)[0])  # type: ignore[arg-type]  # draws nothing
            unbiased = [(support - oracle.q) / (oracle.p - oracle.q) for support in own]
            assert unbiased == [index == shown for index in range(oracle.domain.size)]
