"""Choice of a design: predicted errors for schemas and workloads whose best design is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from veil import Integers, Record
from veil.errors import ParameterError
from veil.sql.columns import Category
from veil.sql.designs.choosing import (
    asked_queries,
    choose_design,
    default_queries,
    expected_counts,
    known_designs,
    predicted_error,
    typical_queries,
)
from veil.sql.designs.conjunction import SC
from veil.sql.designs.grids import Grids
from veil.sql.designs.hio import HI, HIO
from veil.sql.designs.marginal import MG
from veil.sql.table import Table

ONE = Record.of(a=Integers(0, 1023))
EIGHT = Record.of(
    **{name: Integers(1, 625) for name in "abcd"},
    **dict(zip("efgh", (2, 7, 16, 50), strict=True)),  # type: ignore[arg-type]
)
LINEAR = ("HIO", "HIO-1", "HIO-2", "SC", "SC-sampled", "MG", "MG-1", "HI")


def ranges(volume: float) -> dict[str, list[list[tuple[tuple[tuple[int, int], ...], ...]]]]:
    length = round(1024 * volume)
    starts = np.random.default_rng(1).integers(0, 1025 - length, 20).tolist()
    return {"ranges": [[(((start, start + length),),)] for start in starts]}


def linear(private: Record) -> dict[str, object]:
    return {name: one for name, one in known_designs(len(private.parts), 10**6).items() if name in LINEAR}


@pytest.mark.parametrize(
    ("volume", "best", "errors"),
    [(0.01, "MG", (0.00269, 0.00282)), (0.1, "HIO", (0.00357, 0.00816)), (0.8, "HIO", (0.00377, 0.0109))],
)
def test_best_design_of_one_dimension(volume, best, errors):
    found = choose_design(ONE, 2.0, 1_000_000, ranges(volume))
    assert found[0].name == best
    by_name = {one.name: one.error for one in found}
    assert sorted([by_name["HIO"], by_name["MG"]]) == pytest.approx(errors, rel=0.01)
    assert by_name["HI"] > 2 * by_name["HIO"]


def test_best_design_for_queries_about_one_of_many_dimensions():
    one = typical_queries(EIGHT, 1)
    found = choose_design(EIGHT, 5.0, 1_000_000, one, designs=linear(EIGHT))
    errors = {each.name: each.error for each in found}
    assert found[0].name == "HIO-1"
    assert found[0].design == HIO(most=1).fitted(EIGHT, 5.0)
    assert errors["SC-sampled"] < errors["HIO"]  # as in the thesis: fewer dimensions asked about, SC is better
    assert errors["HIO-1"] < 0.2 * errors["HIO"]


def test_best_design_for_queries_about_two_of_many_dimensions():
    found = choose_design(EIGHT, 5.0, 1_000_000, designs=linear(EIGHT))
    errors = {each.name: each.error for each in found}
    assert found[0].name == "HIO-2"
    assert errors["HIO-2"] < 0.3 * errors["HIO"] < 0.3 * errors["SC-sampled"]
    assert errors["HIO-1"] == errors["MG-1"] == math.inf  # nobody is asked about two at once


def test_grids_are_best_for_ranges_over_two_of_six_dimensions():
    six = Record.of(**{f"a{i}": Integers(0, 63) for i in range(6)})
    rng = np.random.default_rng(3)
    side = round(64 * math.sqrt(0.5))
    queries = []
    for _ in range(10):
        places = rng.choice(6, 2, replace=False)
        starts = rng.integers(0, 65 - side, 6).tolist()
        queries.append([tuple(((starts[i], starts[i] + side),) if i in places else None for i in range(6))])
    found = choose_design(six, 1.0, 1_000_000, {"two": queries}, designs=known_designs(6, 1_000_000))
    assert isinstance(found[0].design, Grids)  # where it is named: see the next test
    errors = {each.name: each.error for each in found}
    assert errors["Grids"] < min(error for name, error in errors.items() if name != "Grids")


def test_default_candidates_have_intervals_without_assumptions():
    for private in (ONE, Record.of(**{f"a{i}": Integers(0, 63) for i in range(6)})):
        found = choose_design(private, 1.0, 1_000_000, {"one": [[(((0, 20),), *[None] * (len(private.parts) - 1))]]})
        assert {type(one.design) for one in found} == {HIO, HI, SC, MG}
        assert not any(one.design.assumption for one in found)
    assert Grids().assumption


def test_default_queries_ask_about_three_dimensions_together():
    three = Record.of(a=Integers(0, 15), b=3, c=2)
    assert set(default_queries(three)) == {"one, narrow", "one, wide", "two", "three"}
    found = {one.name: one.error for one in choose_design(three, 1.0, 100_000)}
    assert found["HIO-2"] == math.inf
    assert found["HIO"] < math.inf


def test_typical_queries_are_deterministic_and_within_their_dimensions():
    assert typical_queries(EIGHT, 3) == typical_queries(EIGHT, 3)
    for kind, queries in typical_queries(EIGHT, 3).items():
        for (box,) in queries:
            sides = [(place, runs) for place, runs in enumerate(box) if runs is not None]
            assert len(sides) == {"one, narrow": 1, "one, wide": 1, "two": 2, "three": 3}[kind]
            for place, ((start, stop),) in sides:
                assert 0 <= start < stop <= EIGHT.parts[place].size
                assert stop - start == 1 or place < 4


def test_workload_from_queries_in_sql():
    table = Table(2.0, ONE, (Category("os", ("x", "y")),))
    texts = ["SELECT COUNT(*) FROM people WHERE a < 512 AND os = 'x'", "SELECT a, COUNT(*) FROM people GROUP BY a"]
    found = asked_queries(texts, table)
    assert found[texts[0]] == [[(((0, 512),),)]]
    assert 20 < len(found[texts[1]]) < 60
    everybody = asked_queries(["SELECT COUNT(*) FROM people"], table)
    assert predicted_error(table, everybody["SELECT COUNT(*) FROM people"][0], 1000) == 0.0


def test_expected_counts_add_up():
    table = Table(2.0, EIGHT)
    counts = expected_counts(table, 1_000_003)
    assert counts.sum() == 1_000_003
    assert counts.max() - counts.min() <= 1
    assert expected_counts(Table(2.0, ONE, design=known_designs(1, 10)["SC"]), 10).tolist() == [10]


def test_predicted_error_is_infinite_for_too_few_people():
    assert predicted_error(Table(2.0, EIGHT, design=HIO(most=2)), [(((0, 5),), ((0, 5),), *(None,) * 6)], 2) == math.inf


def test_an_empty_workload_is_refused():
    with pytest.raises(ParameterError, match="at least one query"):
        choose_design(ONE, 1.0, 100, {})
