"""Rivals of CALM by enumeration: their privacy ratios, and unbiased estimates."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.exact.survey.test_surveys import channel

from veil import Record
from veil.checks import worst_ratio
from veil.entropy import SeededForExperiments
from veil.marginals import (
    AllMarginals,
    BinaryCALM,
    FourierCoefficients,
    FourierMarginals,
    FullContingency,
    JointStudy,
    SplitEM,
)
from veil.marginals.rivals.split_em import unmixed
from veil.privacy import exp_below
from veil.reports.columns import Reports

RECORD = Record.of(a=2, b=3, c=2)


def held_in(record: Record) -> list[dict[str, int]]:
    return [dict(zip(record.names, row, strict=True)) for row in product(*(range(part.size) for part in record.parts))]


HELD = held_in(RECORD)
CELLS = RECORD.encode(HELD)
STUDIES: dict[str, JointStudy[Any]] = {
    "FC": FullContingency(2.0, RECORD),
    "FC, subsets": FullContingency(0.2, Record.of(a=2, b=3)),
    "AM": AllMarginals(1.0, RECORD, k=2),
    "FT": FourierMarginals(1.0, RECORD, k=2),
    "FT, everything": FourierMarginals(0.7, RECORD, k=3),
    "EM": SplitEM(1.0, RECORD, k=2),
    "BE": BinaryCALM(1.0, RECORD, k=2, sets=2),
    "BE, listed": BinaryCALM(1.0, RECORD, k=2, sets=(("a.0", "b.1"), ("b.0", "b.1", "c.0"))),
}


@pytest.mark.parametrize("name", STUDIES)
def test_ratio_is_reached_and_never_exceeded(name: str) -> None:
    study = STUDIES[name]
    found = channel(study.survey, held_in(study.domain))
    assert worst_ratio(found) == study.guarantee.ratio
    assert study.guarantee.ratio <= exp_below(study.epsilon)
    assert worst_ratio(found) > exp_below(study.epsilon * 0.99)  # a study that promised less would break it


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 1.7, 3.0])
@pytest.mark.parametrize("many", [2, 3, 5, 7])
def test_split_budgets_add_up_to_the_whole_and_no_more(epsilon: float, many: int) -> None:
    study = SplitEM(epsilon, Record.of(**{f"a{i}": 2 + i % 3 for i in range(many)}), k=2)
    assert study.guarantee.ratio is not None
    assert exp_below(epsilon * (1 - 1e-9)) < study.guarantee.ratio <= exp_below(epsilon)


@pytest.mark.parametrize("name", ["FC", "FC, subsets", "AM", "BE", "BE, listed"])
def test_raw_tables_have_no_bias(name: str) -> None:
    """The mean of what one person's report adds to a view's table, over everything it may be, is that person's cell."""
    survey, people = STUDIES[name].survey, held_in(STUDIES[name].domain)
    views = range(len(survey.questions))
    tables = [np.full((len(people), survey.questions[i].view.domain.size), Fraction(0)) for i in views]
    for report, chances in channel(survey, people).items():
        tally = survey.tally(Reports.from_bytes(survey.task, survey.layout, report))
        (number,) = (i for i in views if tally.part(i).people)
        oracle, counts = survey.questions[number].pure, tally.part(number).counts.tolist()
        said = np.array([(count - oracle.q) / (oracle.p - oracle.q) for count in counts])
        tables[number] = tables[number] + np.outer(chances, said) * len(views)
    for number, table in enumerate(tables):
        held = survey.questions[number].view.apply(survey.domain.encode(people), SeededForExperiments(0))
        assert np.array_equal(table, np.eye(table.shape[1], dtype=int)[held])


@pytest.mark.parametrize("name", ["FT", "FT, everything"])
def test_coefficients_have_no_bias_and_transform_to_the_cell_that_is_held(name: str) -> None:
    study = STUDIES[name]
    survey, many = study.survey, len(study.survey.questions)
    oracle = survey.questions[0].pure
    means = np.full((len(HELD), many), Fraction(0))
    for report, chances in channel(survey, HELD).items():
        columns = Reports.from_bytes(survey.task, survey.layout, report).columns
        sign = 1 - 2 * int(columns["value"][0])
        for person, chance in enumerate(chances):
            means[person, columns["choice"][0]] += many * chance * sign / (oracle.p - oracle.q)
    for person, own in enumerate(means):
        assert set(own) <= {-1, 1}
        found = FourierCoefficients(
            record=RECORD, n=1, population=1, lineage=("FT",), k=study.k,
            coefficients=own.astype(float), people=np.ones(many, np.int64), noise=oracle.noise,
        )  # fmt: skip
        for names in (["a"], ["b"], ["a", "b"], ["c", "b"], ["a", "b", "c"][: study.k]):
            shares = found.marginal(names).shares
            wanted = np.zeros(shares.shape)
            wanted[tuple(HELD[person][one] for one in names)] = 1.0
            assert np.allclose(shares, wanted, atol=1e-12)


def test_inverted_channels_have_no_bias() -> None:
    survey = STUDIES["EM"].survey
    noises = [question.pure.noise for question in survey.questions]
    tables = np.zeros((len(HELD), 2, 3, 2))
    for report, chances in channel(survey, HELD).items():
        columns = Reports.from_bytes(survey.task, survey.layout, report).columns
        said = np.zeros((2, 3, 2))
        said[tuple(int(columns[f"{i}.value"][0]) for i in range(3))] = 1.0
        tables += np.array([float(chance) for chance in chances])[:, None, None, None] * unmixed(said, noises)
    wanted = np.zeros_like(tables)
    for person, row in enumerate(CELLS.tolist()):
        wanted[(person, *row)] = 1.0
    assert np.allclose(tables, wanted, atol=1e-12)
