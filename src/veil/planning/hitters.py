"""Plans for heavy hitters: strings found without a list of candidates, and frequent items or sets of items.

For strings the rounds of PEM are shown, with the share from which on a value stands out of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from veil.errors import InputError
from veil.hitters import PEM, sensitivity_threshold
from veil.hitters.search import words
from veil.itemsets import SVIM, SVSM, LDPMiner
from veil.planning.base import Goal, Option, Quantity, Row, Ways, Wishes, byte_text
from veil.study import Study
from veil.survey import OneOf
from veil.tools.json_documents import Json
from veil.view import SampleItem


class HittersGoal(Goal):
    """PEM through OLH, or through PGR, which tries more candidates in the same time."""

    name = "hitters"
    summary = "The most frequent strings, without a list of candidates."
    takes = ("max_bytes", "bits", "k")
    about = "Floor: the share of the people from which on a value is likely to be found."
    usual = "OLH"

    def ways(self, wishes: Wishes) -> Ways:
        held, k = wishes.held, wishes.k
        if held is None or k is None:
            raise InputError("hitters are a number of strings: expected -k K, and --max-bytes B or --bits M")
        return {
            "OLH": lambda: PEM(wishes.epsilon, held, k, oracle="OLH"),  # type: ignore[arg-type]  # refuses others
            "PGR": lambda: PEM(wishes.epsilon, held, k, oracle="PGR"),  # type: ignore[arg-type]
        }

    def errors(self, study: Study, wishes: Wishes) -> Row:
        rounds = self.rounds(study, wishes)
        floors = [row["floor"].value for row in rounds]
        tried = [row["candidates"].value for row in rounds]
        return {
            "floor": Quantity(max(floors), "share"),  # type: ignore[type-var]
            "candidates": Quantity(sum(tried), "count"),  # type: ignore[arg-type]
        }

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        taken = allowed[0]
        found = f"finds values that at least {100 * taken.error('floor'):.2g} % of the people hold"
        return taken, f"PEM through {taken.name} {found}, in reports of {byte_text(taken.report_bytes)}."

    def facts(self, study: Study, wishes: Wishes) -> Json:
        assert isinstance(study, PEM)
        return {"k": study.k, "keep": study.keep}

    def rounds(self, study: Study, wishes: Wishes) -> tuple[Row, ...]:
        assert isinstance(study, PEM)
        ask, questions = study.survey.ask, study.survey.questions
        shares = [share for share, _ in ask.branches] if isinstance(ask, OneOf) else [1]
        rows = []
        for i, length in enumerate(study.lengths):
            people = max(wishes.users * shares[i] // sum(shares), 1)
            tried = _tried(study, i)
            sigma = math.sqrt(questions[i].pure.variance(1))
            kept = study.keep if i + 1 < len(study.lengths) else 1
            floor = sensitivity_threshold(sigma, tried, people, kept) if kept < tried else 0.0
            counts = {"bits": length, "people": people, "candidates": tried}
            rows.append({name: Quantity(count, "count") for name, count in counts.items()})
            rows[-1]["floor"] = Quantity(floor, "share")
        return tuple(rows)


def _tried(search: PEM, level: int) -> int:
    before = search.lengths[level - 1] if level else 0
    step = search.lengths[level] - before
    each = 1 << step if search.alphabet is None else words(search.alphabet.encode(), step // 8)
    return each * min(search.keep, 1 << before)


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
        return {"floor": Quantity(floor, "share")}
