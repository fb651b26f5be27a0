"""Grids keep their promise over all dimensions together: every report of a tiny schema, with its exact probability."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from veil import Integers, Record
from veil.checks import worst_ratio
from veil.entropy import Source, Words, outcomes
from veil.mechanisms import GRR
from veil.privacy import exp_below
from veil.sql import Category, Grids, Measure, Table

PRIVATE = Record.of(a=Integers(0, 4), b=Integers(0, 1), c=["x", "y", "z"])
HELD = [*product(range(5), range(2), ("x", "y", "z"))]
PUBLIC = (Measure("spent", 2), Category("os", ("x", "y")))


def chances(table: Table, spent: int = 0) -> dict[bytes, list[Fraction]]:
    """Every report and its probability under each held value."""
    survey, found = table.survey, dict[bytes, list[Fraction]]()
    beside = {column.field.name: np.full(1, spent) for column in survey.public}
    for place, held in enumerate(HELD):
        codes = survey.domain.encode([dict(zip(PRIVATE.names, held, strict=True))])

        def report(source: Source, codes: Any = codes) -> bytes:
            return survey.reports(codes, source, beside).to_bytes()

        for sent, chance in outcomes(report).items():
            found.setdefault(sent, [Fraction(0)] * len(HELD))[place] = chance
    return found


@pytest.mark.parametrize("epsilon", [1.5, 2.0])
@pytest.mark.parametrize("cells", [(2, 2), (4, 2), (8, 4)])
def test_a_report_keeps_its_promise_over_all_dimensions_together(epsilon: float, cells: tuple[int, int]) -> None:
    table = Table(epsilon, PRIVATE, design=Grids(*cells))
    assert len(table.survey.ask) == 6
    assert all(isinstance(question.mechanism, GRR) for question in table.survey.ask.questions)
    found = chances(table)
    worst = worst_ratio(found)
    assert worst <= exp_below(epsilon)
    assert worst == table.guarantee.ratio
    assert all(sum(column) == 1 for column in zip(*found.values(), strict=True))


def test_check_fails_for_twice_the_budget() -> None:
    assert worst_ratio(chances(Table(2.0, PRIVATE, design=Grids(4, 2)))) > exp_below(1.0)


def test_public_columns_do_not_touch_the_randomness() -> None:
    table = Table(1.0, PRIVATE, PUBLIC, Grids(4, 2))
    width = sum(column.field.width for column in table.survey.public)
    one, other = ({sent[:-width]: chance for sent, chance in chances(table, spent).items()} for spent in (0, 1))
    assert one == other


def test_grids_together_tell_every_pair_of_dimensions() -> None:
    """Two people who differ anywhere are told apart by a grid, unless they share all cells."""
    table = Table(1.0, PRIVATE, design=Grids(8, 4))
    codes = PRIVATE.encode([dict(zip(PRIVATE.names, held, strict=True)) for held in HELD])
    shown = np.stack([question.view.apply(codes, Words(b"")) for question in table.survey.ask.questions], axis=1)
    assert len(np.unique(shown, axis=0)) == len(HELD)
