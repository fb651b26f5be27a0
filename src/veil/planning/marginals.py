"""How attributes go together: which views of a record people are asked for, and how far marginals will be off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from veil.domain import Integers, Record
from veil.errors import InputError
from veil.marginals import CALM, MarginalStudy
from veil.marginals.predicting import predicted_error
from veil.planning.base import Choice, Goal, Measure, Option, Row, Ways, Wishes, byte_text, in_words
from veil.study import Study
from veil.tools.canonical import Json

__all__ = ["MarginalsGoal"]

_FINE = 24


class MarginalsGoal(Goal):
    """CALM, beside the ways that it is measured against."""

    name = "marginals"
    summary = "How several attributes of each person go together: tables of any of them, and synthetic people."
    takes = ("file", "private", "attribute", "k")
    about = (
        "Marginal's error: squared errors added up over the cells of a marginal of k attributes, on average over these "
        "marginals; cell's error: the standard error of one cell. Both are before cells are made non-negative, and "
        "without what no view holds."
    )
    usual = "CALM"

    def ways(self, wishes: Wishes) -> Ways:
        held, epsilon, users = wishes.held, wishes.epsilon, wishes.users
        if not isinstance(held, Record):
            raise InputError(
                "marginals are of several attributes: expected FILE with --private age,sex,... or --attribute sex=f,m "
                "once for each"
            )
        k = min(3, len(held.names)) if wishes.k is None else wishes.k
        return {"CALM": lambda: CALM(epsilon, held, k=k, users=users)}

    def errors(self, study: Study, wishes: Wishes) -> Row:
        assert isinstance(study, MarginalStudy)
        views, separate = _views(study), study.inference == "separate"
        lengths = sorted({len(view) for view in views})
        found = None
        if lengths[-1] >= study.k or not separate:
            sizes = tuple(part.size for part in study.domain.parts)
            found = predicted_error(sizes, views, study.epsilon, wishes.users, study.k, separate=separate)
        return {
            "views": Measure(len(views), "count"),
            "attributes each": Measure("-".join(map(str, lengths[:: max(len(lengths) - 1, 1)])), "text"),
            "marginals held whole": Measure(found.held if found else 0.0, "share"),
            "cell's error": Measure(found.cell if found else None, "share"),
            "marginal's error": Measure(found.sse if found else None, "square"),
        }

    def notes(self, study: Study) -> tuple[str, ...]:
        """What is asked of nobody, and which attributes are finer than they need to be."""
        assert isinstance(study, MarginalStudy)
        many = math.comb(len(study.domain.names), 2)
        apart = many - len({pair for view in _views(study) for pair in combinations(view, 2)})
        said = []
        if apart:
            said.append(
                f"{apart:,} of {many:,} pairs of attributes stand in no view, and go together only as far as others "
                "tell; a larger --set threshold=0.01 asks for more"
            )
        fine = [
            (name, part) for name, part in study.domain.attributes if isinstance(part, Integers) and part.size > _FINE
        ]
        for name, part in fine:
            said.append(
                f"{name} has {part.size:,} values, and in cells its tables would have less noise: "
                f"--attribute {name}={part.lo}..{part.hi + 1}/10"
            )
        return tuple(said)

    def choose(self, wishes: Wishes) -> Choice:
        """The choice, explained by the views that are asked in the end."""
        choice = super().choose(wishes)
        return choice if wishes.method is not None else replace(choice, why=self._why(choice.taken))

    def _why(self, taken: Option) -> str:
        many = len(_views(taken.study))
        asked = (
            f"asks each person for one of {many:,} views" if many > 1 else "asks everybody for one and the same view"
        )
        return f"{taken.name} {asked}, in reports of {byte_text(taken.report_bytes)}."

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        return allowed[0], self._why(allowed[0])

    def facts(self, study: Study, wishes: Wishes) -> Json:
        assert isinstance(study, MarginalStudy)
        cells = study.domain.size
        return {"k": study.k, "combinations_of_values": cells if cells < 10**15 else float(f"{cells:.3g}")}

    def attributes(self, study: Study, wishes: Wishes) -> tuple[Row, ...]:
        assert isinstance(study, MarginalStudy)
        views = _views(study)
        return tuple(
            {
                "attribute": Measure(name, "text"),
                "people hold": Measure(in_words(part), "text"),
                "values": Measure(part.size, "count"),
                "views": Measure(sum(place in view for view in views), "count"),
            }
            for place, (name, part) in enumerate(study.domain.attributes)
        )


def _views(study: Study) -> list[tuple[int, ...]]:
    assert isinstance(study, MarginalStudy)
    place = {name: i for i, name in enumerate(study.domain.names)}
    family = study.family
    return [tuple(place[name] for name in family.question(i).view.attributes) for i in range(len(family))]  # type: ignore[attr-defined]  # views of sets are projections
