"""Thesis 3.4.2: several questions to the same people. Split the people among them (OneOf), or the budget (AllOf)?"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from veil.domain import Integers, Record
from veil.mechanisms import OLH
from veil.privacy import split_epsilon
from veil.simulation import simulate
from veil.survey import AllOf, OneOf, Question, Survey
from veil.view import Project
from veil_papers.common.claims import Says, by_point, span
from veil_papers.common.exhibits import Curve, Panel, Parts, Reproduction, Setting, exhibit
from veil_papers.common.sweep import Sweep
from veil_papers.datasets import zipf_people

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
    """The same questions, one for each attribute: people split, and the budget split. Both promise eps."""
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

    def error(survey: Survey, run: int) -> float:
        estimates = zip(simulate(survey, columns, seed=SEED + run), truths, strict=True)
        return people * float(np.mean(np.square([estimate.frequencies - truth for estimate, truth in estimates])))

    split, divided = ([error(survey, run) for run in range(runs)] for survey in surveys(epsilon, questions))
    return split, divided


def reproduce(setting: Setting) -> Reproduction:
    """The comparison by analysis at f = 0, as the thesis has it, and through real surveys."""
    title = "Several questions: split the people or the budget?"
    return Reproduction(title, (_comparison(setting),), {})


@exhibit
def _comparison(setting: Setting) -> Parts:
    """Splitting: people against the budget."""
    asked, people, runs = setting.pick((2, 4, 6, 8, 10), (2, 4)), setting.pick(20_000, 5_000), setting.pick(10, 3)
    yield "OLH, with its integer hash ranges. Panel (d): marks are measured, lines are the analysis with f."
    yield "Panels (a) to (c): 4 Q e^eps / (e^eps - 1)^2 against 4 e^(eps/Q) / (e^(eps/Q) - 1)^2."
    ways, at = {"people": people_variance, "budget": budget_variance}, tuple(float(q) for q in QUESTIONS)
    for letter, epsilon in zip("abc", BUDGETS, strict=True):
        curves = (Curve(name, at, tuple(way(epsilon, q) for q in QUESTIONS)) for name, way in ways.items())
        title = f"({letter}) eps = {epsilon:g}, by analysis"
        yield Panel(title, "questions Q", "n times variance", tuple(curves))
    measured = [measure(2.0, questions, people, runs) for questions in asked]
    shares, x = np.bincount(zipf_people(_SIZE, people, 1.1, SEED), minlength=_SIZE) / people, tuple(map(float, asked))
    errors = Sweep(x, {name: [np.array(pair[i]) for pair in measured] for i, name in enumerate(ways)})
    exact = {name: [np.array([way(2.0, q, float(f)) for f in shares]) for q in asked] for name, way in ways.items()}
    title = f"(d) eps = 2, measured: {people:,} people, {runs} runs"
    yield errors.panel(title, "questions Q", "n times squared error", theory=Sweep(x, exact))
    cases = [(e, q) for e in BUDGETS for q in QUESTIONS]
    gains = [budget_variance(*case) / people_variance(*case) for case in cases]
    yield Says("Splitting people always has the smaller variance (of a rare value)").exactly(
        f"splitting the budget has {span(gains)} times the variance, for Q = 2 to 10 and eps = 1, 2, 4", min(gains) > 1
    )
    times = errors.over("budget", "people")
    yield Says("The same through real surveys, OneOf against AllOf, at eps = 2").given(
        f"splitting the budget has {by_point(x, times, '.1f', 'Q')} times the squared error", times.min() > 1
    )
    lost = {case: end for case in cases if (end := wins_up_to(*case)) < 1}
    listed = ", ".join(f"{end:.0%} (eps = {e:g}, Q = {q})" for (e, q), end in lost.items())
    yield Says(
        "(ours) It also holds for values that many people hold, where f and the sampling of people count"
    ).exactly(f"not for values above {listed}; elsewhere for all" if lost else "for all values", not lost)
