"""The most frequent items of people's sets, or sets of items: who is asked for what."""

from __future__ import annotations

import math

from veil.errors import InputError
from veil.hitters import sensitivity_threshold
from veil.itemsets import SVIM, SVSM, LDPMiner
from veil.planning.base import Goal, Measure, Row, Ways, Wishes
from veil.study import Study
from veil.view import SampleItem

__all__ = ["ItemsGoal"]


class ItemsGoal(Goal):
    """SVIM for items, SVSM for sets of them."""

    name = "items"
    summary = "The most frequent items where each person holds a set; with --sets, sets of items."
    takes = ("universe", "domain", "k", "sets")
    about = "Floor: an item that this share of the people hold is likely to be among the candidates of the second half."

    def ways(self, wishes: Wishes) -> Ways:
        held, k, epsilon = wishes.held, wishes.k, wishes.epsilon
        if held is None or k is None:
            raise InputError("items are a number of those in a list: expected -k K, and --universe FILE or --domain N")
        if wishes.sets:
            return {"SVSM": lambda: SVSM(k, epsilon, held)}  # type: ignore[arg-type]  # a universe becomes its sets
        return {
            "SVIM": lambda: SVIM(k, epsilon, held),  # type: ignore[arg-type]
            "LDPMiner": lambda: LDPMiner(k, epsilon, held),  # type: ignore[arg-type]
        }

    def errors(self, study: Study, wishes: Wishes) -> Row:
        """The floor of the first round, where that one asks for items and not for the sizes of sets."""
        first = next(study.rounds())
        question, floor = first.survey.questions[0], None
        kept, items = 2 * study.k, question.view.values.size  # type: ignore[attr-defined]  # all of these have a k
        if isinstance(question.view, SampleItem) and 2 * kept < items:  # else noise alone is looked at closely
            people = max(int(wishes.users * first.people), 1)
            sigma = float(question.view.scale) * math.sqrt(question.pure.variance(1))
            floor = sensitivity_threshold(sigma, items, people, kept)
        return {"floor": Measure(floor, "share")}
