"""Plans: methods for a goal, with their costs and predicted errors, before a collection.

    plan(kind, Wishes(...))      the best method for a goal, or a kind of study with its parameters, as a Choice
    choose(domain, epsilon)      the best oracle for a histogram
    at_epsilon(study, epsilon)   the same study with another epsilon
    GOALS, goal_of               the goals by name, and the goal or kind of study of a name
    Goal, Option, Quantity       a goal, a method for it, and a number about a method
    Central                      the guarantee behind a shuffler

The command `veil plan` reads the wishes and shows the choice (`veil.cli.plan`).
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
