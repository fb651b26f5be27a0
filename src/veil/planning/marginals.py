"""Plans for joint distributions: the views of a record to ask for, and the predicted error of marginals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from veil.domain import Integers, Record
from veil.errors import InputError, ParameterError
from veil.marginals import CALM, AllMarginals, FourierMarginals, FullContingency, JointStudy, MarginalStudy
from veil.marginals.choosing import MOST_VIEWS, PredictedError, predicted_error, predicted_fourier_error, products
from veil.marginals.tables import MOST_CELLS
from veil.planning.base import Choice, Goal, Option, Quantity, Row, Ways, Wishes, byte_text, in_words
from veil.study import Study
from veil.survey import EachOf
from veil.tools.json_documents import Json

_FINE = 24  # values of an attribute, above which fewer are recommended
_MOST_CELLS = 12  # of an attribute, where cells are recommended

Views = list[tuple[int, ...]]


class MarginalsGoal(Goal):
    """CALM, beside the ways that it is measured against."""

    name = "marginals"
    summary = "How several attributes of each person go together: tables of any of them, and synthetic people."
    takes = ("file", "private", "attribute", "k")
    about = (
        "Marginal's error: squared errors added up over the cells of a marginal of k attributes, on average over these "
        "marginals; cell's error: the standard error of one cell. Both are before cells are made non-negative. There "
        "is a dash where views do not hold all these marginals whole: the others are reconstructed, and how far they "
        "are off depends on the data."
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
        return {
            "CALM": lambda: CALM(epsilon, held, k=k, users=users),
            "AllMarginals": lambda: _all_marginals(epsilon, held, k),
            "FullContingency": lambda: FullContingency(epsilon, held, k=k),
            "FourierMarginals": lambda: FourierMarginals(epsilon, held, k=k),
        }

    def errors(self, study: Study, wishes: Wishes) -> Row:
        assert isinstance(study, JointStudy)
        found, ask = _predicted(study, wishes.users), study.survey.ask
        whole = found is not None and found.held == 1.0  # else what is missing depends on the data
        sizes = sorted({len(view) for view in _views(study)}) or [1, study.k]  # a coefficient is of up to k attributes
        return {
            "views": Quantity(len(ask) if isinstance(ask, EachOf) else 1, "count"),
            "view size": Quantity("-".join(map(str, sizes[:: max(len(sizes) - 1, 1)])), "text"),
            "cell's error": Quantity(found.cell if found and whole else None, "share"),
            "marginal's error": Quantity(found.sse if found and whole else None, "square"),
        }

    def notes(self, study: Study) -> tuple[str, ...]:
        """What is asked of nobody, and which attributes are finer than they need to be."""
        if not isinstance(study, CALM):
            return ()
        said = [_left_out(study, size) for size in sorted({min(2, study.k), study.k})]
        for name, part in study.domain.attributes:
            if isinstance(part, Integers) and part.size > _FINE:
                said.append(
                    f"{name} has {part.size:,} values, and in cells its tables would have less noise: "
                    f"--attribute {name}={_round_cells(part.lo, part.hi)}"
                )
        return tuple(filter(None, said))

    def choose(self, wishes: Wishes) -> Choice:
        """The choice, explained by the views that are asked in the end."""
        choice = super().choose(wishes)
        return choice if wishes.method is not None else replace(choice, why=self._why(choice.taken))

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        return allowed[0], self._why(allowed[0])

    def _why(self, taken: Option) -> str:
        many = taken.errors["views"].value
        asked = (
            f"asks each person for one of {many:,} views" if many != 1 else "asks everybody for one and the same view"
        )
        return f"{taken.name} {asked}, in reports of {byte_text(taken.report_bytes)}."

    def facts(self, study: Study, wishes: Wishes) -> Json:
        assert isinstance(study, JointStudy)
        cells, found = study.domain.size, _predicted(study, wishes.users)
        return {
            "k": study.k,
            "combinations_of_values": cells if cells < 10**15 else float(f"{cells:.3g}"),
            "share_of_marginals_held_whole": round(found.held, 4) if found else 0.0,
        }

    def attributes(self, study: Study, wishes: Wishes) -> tuple[Row, ...]:
        assert isinstance(study, JointStudy)
        views = _views(study)
        return tuple(
            {
                "attribute": Quantity(name, "text"),
                "people hold": Quantity(in_words(part), "text"),
                "values": Quantity(part.size, "count"),
                "views": Quantity(sum(place in view for view in views) if views else None, "count"),
            }
            for place, (name, part) in enumerate(study.domain.attributes)
        )


def _all_marginals(epsilon: float, held: Record, k: int) -> AllMarginals:
    """The study of all sets of k attributes, if there are few enough to be of use."""
    if k <= len(held.names) and math.comb(len(held.names), k) > MOST_VIEWS:
        raise ParameterError(f"{len(held.names)} attributes have more than {MOST_VIEWS:,} sets of {k}: take CALM")
    return AllMarginals(epsilon, held, k=k)


def _left_out(study: CALM, size: int) -> str:
    """What to know about the sets of so many attributes that no view holds; nothing where views hold all of them."""
    sizes, views = [part.size for part in study.domain.parts], _views(study)
    many = math.comb(len(sizes), size)
    whole = _held(views, size)
    if whole == many:
        return ""
    sets = "pairs of attributes" if size == 2 else f"set{'s' if many > 1 else ''} of {size} attributes"
    fits = many <= MOST_VIEWS and products(sizes, size) <= MOST_CELLS
    advice = f"; --set sets={size} asks for all of them" if fits else ""
    if size < study.k:
        return (
            f"{many - whole:,} of {many:,} {sets} stand in no view, and go together only as far as others tell{advice}"
        )
    measured = next(s for s in range(size) if _held(views, s + 1) < math.comb(len(sizes), s + 1))
    known = ""
    if measured:
        cell = predicted_error(sizes, views, study.epsilon, study.users, measured).cell
        what = "single attributes" if measured == 1 else f"tables of {measured} attributes"
        known = f"; {what} are measured, with an error of {100 * cell:.2g} % per cell"
    return (
        f"{whole:,} of {many:,} {sets} {'is' if whole == 1 else 'are'} in a view: {'other' if whole else 'their'} "
        f"tables are reconstructed, and their intervals rest on bounds{known}{advice}"
    )


def _held(views: Views, size: int) -> int:
    """How many sets of so many attributes some view holds whole."""
    return len({some for view in views for some in combinations(view, size)})


def _round_cells(low: int, high: int) -> str:
    """A range around two integers, in at most 12 equal cells that begin at round numbers.

    >>> _round_cells(3, 100), _round_cells(18, 77)
    ('0..100/10', '10..80/7')
    """
    for step in (digit * 10**power for power in range(20) for digit in (1, 2, 5)):
        first, last = low // step, -(-high // step)
        if last - first <= _MOST_CELLS:
            break
    return f"{first * step}..{last * step}/{last - first}"


def _views(study: Study) -> Views:
    """The views by the places of their attributes; none where people are asked for something else."""
    if not isinstance(study, MarginalStudy):
        return []
    rule = study.family.rule
    rows = rule.places(np.arange(len(rule)))  # type: ignore[attr-defined]  # a rule about sets of attributes
    return [tuple(place for place in row if place >= 0) for row in rows.tolist()]


def _predicted(study: Study, users: int) -> PredictedError | None:
    """What to expect of the marginals that a study is made for; None where no view holds one, and each stands alone."""
    assert isinstance(study, JointStudy)
    sizes = tuple(part.size for part in study.domain.parts)
    if not isinstance(study, MarginalStudy):
        return predicted_fourier_error(sizes, study.epsilon, users, study.k)
    views, separate = _views(study), study.inference == "separate"
    if separate and max(map(len, views)) < study.k:
        return None
    return predicted_error(sizes, views, study.epsilon, users, study.k, separate=separate)
