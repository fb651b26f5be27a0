"""A mean, or a mean and a variance, and nothing else: which mechanism has the smallest error in the worst case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from veil.domain import Numeric
from veil.domain.text_values import is_time
from veil.errors import InputError
from veil.mechanisms import MeanMechanism, Piecewise, StochasticRounding
from veil.numeric import HybridMean, MeanOf, TwoPhaseVariance
from veil.planning.base import Goal, Measure, Option, Row, Ways, Wishes, byte_text
from veil.study import Study
from veil.view import SquaredDistance

__all__ = ["MeanGoal", "VarianceGoal", "held_numbers"]

Asking = type[MeanMechanism] | type[HybridMean]
_ASKING: dict[str, Asking] = {
    "StochasticRounding": StochasticRounding,
    "Piecewise": Piecewise,
    "HybridMean": HybridMean,
}


def held_numbers(wishes: Wishes) -> Numeric:
    """What people hold, if it is numbers."""
    if not isinstance(wishes.held, Numeric):
        raise InputError("people hold numbers here: expected --range LO HI")
    return wishes.held


class MeanGoal(Goal):
    """The mechanism whose mean has the smallest standard error in the worst case, from exact moments."""

    name = "mean"
    summary = "The mean of a number, and nothing else."
    takes = ("range", "integers")
    about = "Error: the standard error in the worst case, exact."
    judged = "mean's error"

    def ways(self, wishes: Wishes) -> Ways:
        held = held_numbers(wishes)
        return {name: self._asking(kind, wishes.epsilon, held) for name, kind in _ASKING.items()}

    def _asking(self, kind: Asking, epsilon: float, held: Numeric) -> Callable[[], Study]:
        def build() -> Study:
            asked = kind(epsilon, held)
            return asked if isinstance(asked, HybridMean) else MeanOf(asked)

        return build

    def errors(self, study: Study, wishes: Wishes) -> Row:
        asked = study.mechanism if isinstance(study, MeanOf) else study
        assert isinstance(asked, (MeanMechanism, HybridMean))
        return {self.judged: _error(asked, held_numbers(wishes), wishes.users)}

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        # rounded: where HybridMean is StochasticRounding alone, the first of them in the order of the table is taken
        errors = {option.name: float(f"{option.error(self.judged):.9e}") for option in allowed}
        taken = min(allowed, key=lambda option: errors[option.name])
        others = sorted(errors[option.name] for option in allowed if option is not taken)
        better = f", {others[0] / errors[taken.name]:.2f} times smaller than the next" if others else ""
        size = byte_text(taken.report_bytes)
        return taken, f"{taken.name} has the smallest error in the worst case{better}, in reports of {size}."


class VarianceGoal(MeanGoal):
    """The same in two rounds: a mean from one half of the people, and squared distances to it from the other."""

    name = "variance"
    summary = "The mean and the variance of a number, in two rounds."
    about = (
        "Errors: the standard errors in the worst case, exact; each from one half of the people. A variance is in"
        " squared units; of times, in squared seconds."
    )
    judged = "variance's error"

    def _asking(self, kind: Asking, epsilon: float, held: Numeric) -> Callable[[], Study]:
        return lambda: TwoPhaseVariance(kind, epsilon, held)

    def errors(self, study: Study, wishes: Wishes) -> Row:
        assert isinstance(study, TwoPhaseVariance)
        half = max(wishes.users // 2, 1)
        squares = SquaredDistance(study.domain, study.domain.ends[0]).domain  # the farthest centre: the largest squares
        assert isinstance(squares, Numeric)
        return {
            "mean's error": _error(study.mechanism(study.epsilon, study.domain), study.domain, half),
            self.judged: Measure(math.sqrt(study.mechanism(study.epsilon, squares).variance(half)), "length"),
        }


def _error(asked: MeanMechanism | HybridMean, held: Numeric, people: int) -> Measure:
    return Measure(math.sqrt(asked.variance(people)), "duration" if is_time(held) else "length")
