"""Proofs for whole surveys: OneOf, AllOf, and views, on the code that ships."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from veil import GRR, OUE, AllOf, Bits, Items, OneOf, Question, Record, SubsetSelection, Survey
from veil.checks import TabledOLH, worst_ratio
from veil.entropy import outcomes
from veil.privacy import exp_below
from veil.view import Ancestor, Project, SampleItem, Segment


def channel(survey: Survey, held: list[Any]) -> dict[bytes, list[Fraction]]:
    """Each report's exact probability under each held value."""
    matrix: dict[bytes, list[Fraction]] = {}
    for i, value in enumerate(held):
        codes = survey.domain.encode([value])
        for report, chance in outcomes(lambda s, codes=codes: survey.reports(codes, s).to_bytes()).items():
            matrix.setdefault(report, [Fraction(0)] * len(held))[i] = chance
    return matrix


def test_one_of_has_the_largest_ratio_and_an_independent_choice() -> None:
    survey = Survey(OneOf((1, Question(GRR(0.5, 4))), (3, Question(OUE(1.0, 4))), (2, Question(TabledOLH(0.7, 4, 2)))))
    found = channel(survey, [0, 1, 2, 3])
    assert worst_ratio(found) == survey.guarantee.ratio == OUE(1.0, 4).guarantee.ratio
    for choice, share in enumerate((1, 3, 2)):
        mine = [chances for report, chances in found.items() if report[0] == choice]
        assert [sum(column) for column in zip(*mine, strict=True)] == [Fraction(share, 6)] * 4


def test_the_ratio_of_all_of_is_the_product() -> None:
    survey = Survey(AllOf(Question(GRR(0.5, 3)), Question(SubsetSelection(0.25, 3)), Question(OUE(0.25, 3))))
    worst = worst_ratio(channel(survey, [0, 1, 2]))
    assert worst == survey.guarantee.ratio
    assert worst <= exp_below(0.5) * exp_below(0.25) ** 2
    assert survey.guarantee.epsilon == pytest.approx(1.0, abs=1e-12)


def test_nested_trees_are_recursive() -> None:
    pair = AllOf(Question(GRR(0.5, 3)), Question(GRR(0.5, 3)))
    survey = Survey(OneOf((1, pair), (1, Question(OUE(0.9, 3)))))
    assert worst_ratio(channel(survey, [0, 1, 2])) == survey.guarantee.ratio == GRR(0.5, 3).guarantee.ratio ** 2


def test_views_keep_the_ratio() -> None:
    bits = Bits(3)
    for view in (Segment(bits, 0, 2), Segment(bits, 1, 3), Ancestor(bits, branching=2, level=1)):
        survey = Survey(Question(GRR(1.0, view.domain), view))
        assert (
            worst_ratio(channel(survey, list(range(8))))
            == survey.guarantee.ratio
            == GRR(1.0, view.domain).guarantee.ratio
        )


def test_projection_of_a_record() -> None:
    record = Record.of(a=2, b=3)
    whole = Project(record, ("b", "a"))
    survey = Survey(OneOf((1, Question(GRR(1.0, 2), Project(record, ("a",)))), (1, Question(OUE(1.0, 6), whole))))
    held = [{"a": a, "b": b} for a in range(2) for b in range(3)]
    assert worst_ratio(channel(survey, held)) == survey.guarantee.ratio


@pytest.mark.parametrize("length", [1, 2, 3])
def test_padding_and_sampling_amplifies_grr_exactly(length: int) -> None:
    view = SampleItem(Items(3), length)
    sets: list[set[int]] = [set(), {0}, {1}, {0, 1}, {1, 2}, {0, 1, 2}]
    inner = GRR(2.0, view.domain)
    survey = Survey(Question(inner, view))
    assert inner.guarantee.ratio is not None
    assert survey.guarantee.ratio == 1 + (inner.guarantee.ratio - 1) / length
    assert worst_ratio(channel(survey, sets)) == survey.guarantee.ratio
    assert view.inner_ratio(survey.guarantee.ratio, disjoint=True) == inner.guarantee.ratio


def test_padding_and_sampling_does_not_amplify_local_hashing() -> None:
    view = SampleItem(Items(2), 2)
    survey = Survey(Question(TabledOLH(1.0, view.domain, 2), view))
    found = worst_ratio(channel(survey, [set(), {0}, {1}, {0, 1}]))
    assert found == survey.guarantee.ratio == TabledOLH(1.0, view.domain, 2).guarantee.ratio
