"""All goals that `veil plan` knows, and any kind of study beside them."""

from __future__ import annotations

from veil.errors import InputError
from veil.planning.base import Choice, Goal, Wishes
from veil.planning.direct import Direct
from veil.planning.histogram import HistogramGoal
from veil.planning.hitters import HittersGoal
from veil.planning.items import ItemsGoal
from veil.planning.marginals import MarginalsGoal
from veil.planning.mean import MeanGoal, VarianceGoal
from veil.planning.numbers import NumbersGoal
from veil.planning.sql import SqlGoal
from veil.study import STUDIES
from veil.tools.messages import unknown_name

__all__ = ["GOALS", "goal_of", "plan"]

GOALS: dict[str, Goal] = {
    goal.name: goal
    for goal in (
        HistogramGoal(),
        NumbersGoal(),
        MeanGoal(),
        VarianceGoal(),
        HittersGoal(),
        ItemsGoal(),
        MarginalsGoal(),
        SqlGoal(),
    )
}


def goal_of(kind: str) -> Goal:
    """The goal of this name, or the plan of a kind of study.

    >>> goal_of("numbers").takes, goal_of("hierarchy").summary[:6]
    (('range', 'integers', 'buckets', 'rough'), 'A tree')
    """
    if kind in GOALS:
        return GOALS[kind]
    if kind not in STUDIES:
        raise InputError(unknown_name("a goal or a kind of study", kind, dict.fromkeys((*GOALS, *STUDIES))))
    return Direct(STUDIES[kind])


def plan(kind: str, wishes: Wishes) -> Choice:
    """Which way to ask: of a goal, or one kind of study with its parameters.

    >>> from veil import Interval
    >>> [plan("mean", Wishes(epsilon, Interval(0, 100))).taken.name for epsilon in (0.5, 2.0)]
    ['StochasticRounding', 'HybridMean']
    """
    return goal_of(kind).choose(wishes)
