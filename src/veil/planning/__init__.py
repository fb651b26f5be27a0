"""Which way to ask: what each would cost and reach, before anybody is asked.

    plan(kind, Wishes(...))    the best way for a goal, or a kind of study with its parameters, as a Choice
    choose(domain, epsilon)    the best oracle for a histogram
    at_epsilon(study, epsilon) the same study with another epsilon

Not here: the command `veil plan`, which reads the wishes and shows the choice.
"""

from veil.planning.base import Central, Choice, Goal, Option, Quantity, Wishes
from veil.planning.goals import GOALS, goal_of, plan
from veil.planning.histogram import choose
from veil.planning.rebuilding import at_epsilon

__all__ = [
    "GOALS",
    "Central",
    "Choice",
    "Goal",
    "Option",
    "Quantity",
    "Wishes",
    "at_epsilon",
    "choose",
    "goal_of",
    "plan",
]
