"""Thesis 3.4.2: several questions to the same people. Split the people among them (OneOf), or the budget (AllOf)?"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from veil.datasets import zipf_people
from veil.domain import Integers, Record
from veil.mechanisms import OLH
from veil.privacy import split_epsilon
from veil.simulation import simulate
from veil.survey import AllOf, OneOf, Question, Survey
from veil.view import Project
from veil_papers.common.exhibits import Claim, Curve, Exhibit, Panel, Setting, Study, brief

__all__ = ["budget_variance", "measure", "people_variance", "reproduce", "surveys", "wins_up_to"]

SEED = 3
BUDGETS = (1.0, 2.0, 4.0)
QUESTIONS = tuple(range(2, 11))
_SIZE = 32


def people_variance(epsilon: float, questions: int, frequency: float = 0.0) -> float:
    """n times the variance of a frequency where everybody answers one question with the whole eps.

    With a frequency above 0, also the chance of whom the question was put to.
    """
    sampling = (questions - 1) * frequency * (1 - frequency)
    return questions * OLH(epsilon, _SIZE).noise.variance(frequency) + sampling


def budget_variance(epsilon: float, questions: int, frequency: float = 0.0) -> float:
    """n times the variance of a frequency where everybody answers all questions, each with a part of eps."""
    return OLH(split_epsilon(epsilon, questions), _SIZE).noise.variance(frequency)


def wins_up_to(epsilon: float, questions: int) -> float:
    """The frequency of a value up to which splitting people is better; 1 where it always is."""

    def gap(frequency: float) -> float:
        return budget_variance(epsilon, questions, frequency) - people_variance(epsilon, questions, frequency)

    inner = [share / 100 for share in range(101) if gap(share / 100) < 0]
    return float(brentq(gap, 0.0, inner[0])) if inner else 1.0


def surveys(epsilon: float, questions: int) -> tuple[Survey, Survey]:
    """The same questions, one an attribute: people split, and the budget split. Both promise eps."""
    domain = Record.of(**{f"q{i}": Integers(0, _SIZE - 1) for i in range(questions)})
    views = [Project(domain, (f"q{i}",)) for i in range(questions)]
    part = split_epsilon(epsilon, questions)
    return (
        Survey(OneOf(*((1, Question(OLH(epsilon, view.domain), view)) for view in views))),
        Survey(AllOf(*(Question(OLH(part, view.domain), view) for view in views))),
    )


def measure(epsilon: float, questions: int, people: int, runs: int) -> tuple[list[float], list[float]]:
    """n times the mean squared error over all values and questions, run by run, of either survey."""
    columns = {f"q{i}": zipf_people(_SIZE, people, 1.1, SEED + i) for i in range(questions)}
    truths = [np.bincount(column, minlength=_SIZE) / people for column in columns.values()]

    def errors(survey: Survey) -> list[float]:
        found = []
        for run in range(runs):
            estimates = simulate(survey, columns, seed=SEED + run)
            off = [estimate.frequencies - truth for estimate, truth in zip(estimates, truths, strict=True)]
            found.append(people * float(np.mean(np.square(off))))
        return found

    split, divided = surveys(epsilon, questions)
    return errors(split), errors(divided)


def reproduce(setting: Setting) -> Study:
    """The comparison by analysis at f = 0, as the thesis has it, and through real surveys."""
    asked = (2, 4) if setting.quick else (2, 4, 6, 8, 10)
    people, runs = (5_000, 3) if setting.quick else (20_000, 10)
    panels = tuple(_analysis(epsilon) for epsilon in BUDGETS)
    with setting.watch("Splitting: surveys", len(asked)) as advance:
        measured = []
        for questions in asked:
            measured.append(measure(2.0, questions, people, runs))
            advance(1)
    empirical = _empirical(asked, measured, people, runs)
    notes = (
        "OLH. Panels (a) to (c): 4 Q e^eps / (e^eps - 1)^2 against 4 e^(eps/Q) / (e^(eps/Q) - 1)^2, with the "
        "integer hash ranges of the shipped oracle. Panel (d): marks are measured, lines are the analysis with f.",
    )
    exhibit = Exhibit(
        "splitting",
        "Splitting people against splitting the budget",
        (*panels, empirical),
        (_analysis_claim(), _measured_claim(empirical), _frequent_claim()),
        notes,
    )
    facts = {"Source": "Wang's thesis (2021), 3.4.2", "Seed": str(SEED)}
    return Study("splitting", "Several questions: split the people or the budget?", (exhibit,), facts)


def _analysis(epsilon: float) -> Panel:
    at = tuple(float(q) for q in QUESTIONS)
    people = Curve("people", at, tuple(people_variance(epsilon, q) for q in QUESTIONS))
    budget = Curve("budget", at, tuple(budget_variance(epsilon, q) for q in QUESTIONS))
    letter = "abc"[BUDGETS.index(epsilon)]
    return Panel(f"({letter}) eps = {epsilon:g}, by analysis", "questions Q", "n times variance", (people, budget))


def _empirical(
    asked: tuple[int, ...], measured: list[tuple[list[float], list[float]]], people: int, runs: int
) -> Panel:
    at, mean = tuple(float(q) for q in asked), 1 / _SIZE  # frequencies add up to 1, and the noise is linear in them
    shares = np.bincount(zipf_people(_SIZE, people, 1.1, SEED), minlength=_SIZE) / people
    theories = (
        tuple(float(np.mean([people_variance(2.0, q, float(f)) for f in shares])) for q in asked),
        tuple(budget_variance(2.0, q, mean) for q in asked),
    )
    curves = []
    for place, name in enumerate(("people", "budget")):
        samples = [pair[place] for pair in measured]
        means = tuple(float(np.mean(sample)) for sample in samples)
        spread = tuple(float(np.std(sample, ddof=1)) for sample in samples)
        curves.append(Curve(name, at, means, spread, theories[place]))
    title = f"(d) eps = 2, measured: {people:,} people, {runs} runs"
    return Panel(title, "questions Q", "n times squared error", tuple(curves))


def _analysis_claim() -> Claim:
    gains = [budget_variance(e, q) / people_variance(e, q) for e in BUDGETS for q in QUESTIONS]
    return Claim(
        "Splitting people always has the smaller variance (of a rare value)",
        f"splitting the budget has {min(gains):.2f} to {max(gains):.1f} times the variance, "
        "for Q = 2 to 10 and eps = 1, 2, 4",
        min(gains) > 1,
        exact=True,
    )


def _measured_claim(panel: Panel) -> Claim:
    people, budget = panel.curves
    gains = [b / a for a, b in zip(people.y, budget.y, strict=True)]
    return Claim(
        "The same through real surveys, OneOf against AllOf, at eps = 2",
        f"splitting the budget has {', '.join(f'{g:.1f}' for g in gains)} times the squared error for "
        f"Q = {', '.join(brief(x) for x in people.x)}",
        min(gains) > 1,
    )


def _frequent_claim() -> Claim:
    ends = {(e, q): wins_up_to(e, q) for e in BUDGETS for q in QUESTIONS}
    lost = {key: end for key, end in ends.items() if end < 1}
    listed = ", ".join(f"{end:.0%} (eps = {e:g}, Q = {q})" for (e, q), end in lost.items())
    return Claim(
        "(ours) It also holds for values that many people hold, where f and the sampling of people count",
        f"not for values above {listed}; elsewhere for all" if lost else "for all values",
        not lost,
        exact=True,
    )
