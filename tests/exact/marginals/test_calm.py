"""CALM by enumeration: its privacy ratio, and unbiased tables."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.exact.survey.test_surveys import channel

from veil import Record
from veil.checks import worst_ratio
from veil.entropy import SeededForExperiments
from veil.marginals import CALM
from veil.privacy import exp_below
from veil.reports.columns import Reports

RECORD = Record.of(a=2, b=3, c=2)
HELD = [dict(zip("abc", row, strict=True)) for row in product(range(2), range(3), range(2))]
CASES = [(1, 1.0), (2, 1.0), (2, 0.3), ((("a", "b"), ("c",)), 2.0)]


@pytest.mark.parametrize(("sets", "epsilon"), CASES, ids=["singles", "pairs", "subsets", "listed"])
def test_ratio_is_reached_and_never_exceeded(sets: object, epsilon: float) -> None:
    study = CALM(epsilon, RECORD, k=2, sets=sets)  # type: ignore[arg-type]
    found = channel(study.survey, HELD)
    assert worst_ratio(found) == study.guarantee.ratio
    assert study.guarantee.ratio <= exp_below(epsilon)
    assert worst_ratio(found) > exp_below(epsilon * 0.99)  # a study that promised less would break it


@pytest.mark.parametrize(("sets", "epsilon"), CASES, ids=["singles", "pairs", "subsets", "listed"])
def test_raw_tables_have_no_bias(sets: object, epsilon: float) -> None:
    """The mean of what one person's report adds to a view's table, over everything it may be, is that person's cell."""
    study = CALM(epsilon, RECORD, k=2, sets=sets)  # type: ignore[arg-type]
    survey, views = study.survey, range(len(study.family))
    tables = [np.full((len(HELD), survey.questions[i].view.domain.size), Fraction(0)) for i in views]
    for report, chances in channel(survey, HELD).items():
        tally = survey.tally(Reports.from_bytes(survey.task, survey.layout, report))
        (number,) = (i for i in views if tally.part(i).people)
        oracle, counts = survey.questions[number].pure, tally.part(number).counts.tolist()
        said = np.array([(count - oracle.q) / (oracle.p - oracle.q) for count in counts])
        tables[number] = tables[number] + np.outer(chances, said) * len(views)
    for number, table in enumerate(tables):
        held = survey.questions[number].view.apply(RECORD.encode(HELD), SeededForExperiments(0))
        assert np.array_equal(table, np.eye(table.shape[1], dtype=int)[held])
