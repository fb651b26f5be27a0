"""Splitting people beats splitting the budget (thesis 3.4.2): by analysis, and through real surveys on fixed seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from veil_papers.splitting import (
    BUDGETS,
    QUESTIONS,
    budget_variance,
    measure,
    people_variance,
    surveys,
    wins_up_to,
)


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("questions", QUESTIONS)
def test_people_win_by_analysis(epsilon: float, questions: int) -> None:
    assert people_variance(epsilon, questions) < budget_variance(epsilon, questions)
    z = math.exp(epsilon / questions)  # the proof's last line
    assert sum(z**i for i in range(questions)) ** 2 > questions * z ** (questions - 1)


@pytest.mark.parametrize(("epsilon", "questions"), [(1.0, 3), (2.0, 7), (4.0, 10)])
def test_both_surveys_promise_the_same(epsilon: float, questions: int) -> None:
    for survey in surveys(epsilon, questions):
        assert survey.guarantee.within(epsilon)
        assert survey.guarantee.epsilon > epsilon - 1e-9
        assert len(survey.questions) == questions


def test_people_win_through_real_surveys() -> None:
    people, budget = (np.array(errors) for errors in measure(2.0, 4, people=5_000, runs=10))
    assert people.max() < budget.min()
    # Each has the error that the analysis says, and a rival that swaps the two is rejected on the same sample.
    for errors, right, wrong in (
        (people, people_variance, budget_variance),
        (budget, budget_variance, people_variance),
    ):
        assert abs(errors.mean() / right(2.0, 4, 1 / 32) - 1) < 0.15
        assert abs(errors.mean() / wrong(2.0, 4, 1 / 32) - 1) > 0.5


def test_frequent_values_turn_the_tables_at_large_eps() -> None:
    assert wins_up_to(1.0, 2) == 1.0
    turn = wins_up_to(4.0, 2)
    assert 0.3 < turn < 0.4
    assert people_variance(4.0, 2, turn - 0.01) < budget_variance(4.0, 2, turn - 0.01)
    assert people_variance(4.0, 2, turn + 0.01) > budget_variance(4.0, 2, turn + 0.01)
