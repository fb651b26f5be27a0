"""Views of sets of items: against plain Python, as documents, Arrow columns, invalid parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil import GRR, Categories, Items, OneOf, Question, Survey
from veil.device import Client, Ledger
from veil.entropy import SeededForExperiments, Words
from veil.errors import DomainError, ParameterError, VeilError, WireError
from veil.itemsets import PSFO
from veil.tools.json_documents import canonical, parse_json
from veil.view import CountContained, SampleContained, SetSize, View, view_from_json
from veil.view.sets import _Index

NONE = Words(b"")
SETS = st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=12)
LISTED = st.lists(st.frozensets(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=12, unique=True)


@given(SETS, LISTED)
def test_contained_candidates_match_plain_python(sets: list[list[int]], listed: list[frozenset[int]]) -> None:
    candidates = tuple(tuple(sorted(candidate)) for candidate in listed)
    codes = Items(10).encode(sets) if sets else Items(10).encode([[]])[:0]
    found = _Index(candidates).contained(codes)
    expected = [[j for j, candidate in enumerate(listed) if candidate <= set(held)] for held in sets]
    assert np.diff(found.offsets).tolist() == [len(held) for held in expected]
    assert found.items.tolist() == [j for held in expected for j in held]
    most = max(1, len(candidates) // 2)
    counted = CountContained(Items(10), candidates, most).apply(codes, NONE)
    assert counted.tolist() == [min(len(held), most) for held in expected]
    assert SetSize(Items(10), 3).apply(codes, NONE).tolist() == [min(len(set(held)), 3) for held in sets]


def test_a_contained_candidate_is_drawn_uniformly_after_padding() -> None:
    view = SampleContained(Items(10), ((3,), (3, 7), (8,)), length=4)
    shown = np.bincount(view.apply(Items(10).encode([[3, 7, 9]] * 40_000), SeededForExperiments(1)), minlength=7)
    assert set(np.flatnonzero(shown)) == {0, 1, 3, 4}
    assert np.all(np.abs(shown[[0, 1, 3, 4]] - 10_000) < 7 * np.sqrt(7_500))
    more = SampleContained(Items(10), ((3,), (3, 7), (7,)), length=2).apply(
        Items(10).encode([[3, 7]] * 600), SeededForExperiments(2)
    )
    assert set(more.tolist()) == {0, 1, 2}


VIEWS: list[View] = [
    SampleContained(Items(["tea", "milk", "salt"]), ((1,), (0, 2)), 3),
    CountContained(Items(9), ((1,), (0, 2), (5, 6, 8)), 2),
    SetSize(Items(9), 4),
]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.kind)
def test_views_of_sets_round_trip_and_work_on_a_device(view: View) -> None:
    assert view_from_json(parse_json(canonical(view.to_json()))) == view
    survey = Survey(Question(GRR(1.0, view.domain), view))
    read = Survey.from_json(survey.to_bytes())
    assert read == survey
    assert read.task == survey.task
    values = [view.held.universe.label(1)]  # type: ignore[attr-defined]  # all of them look at Items
    assert len(Client(survey.to_bytes(), Ledger(lifetime=1.0)).answer(values)) == 1 + 32 + 16 + survey.layout.size


def test_survey_of_two_views_of_one_set() -> None:
    survey = Survey(OneOf((1, Question(GRR(1.0, VIEWS[2].domain), VIEWS[2])), (2, PSFO(2, GRR, 1.0, 9).survey.ask)))
    assert survey.guarantee.within(1.0)


@pytest.mark.parametrize(
    "candidates",
    [(), ((),), ((1, 0),), ((0, 0),), ((0,), (0,)), ((9,),), ((-1,),), ((True,),), ((0.5,),), (("a",),), (0, 1), None],
)
def test_wrong_candidates_are_refused(candidates: Any) -> None:
    for view in (SampleContained, CountContained):
        with pytest.raises(ParameterError):
            view(Items(9), candidates, 1)


@pytest.mark.parametrize("candidates", [None, {}, [1], [[1.5]], ["a"], [["a"]], [[True]]])
def test_wrong_candidates_in_a_task_are_refused(candidates: Any) -> None:
    document = {"kind": "sample-contained", "source": Items(9).to_json(), "candidates": candidates, "length": 2}
    with pytest.raises(WireError):
        view_from_json(document)


def test_wrong_lengths_and_sources_are_refused() -> None:
    for call in (
        lambda: SampleContained(Items(9), ((1,),), 0),
        lambda: CountContained(Items(9), ((1,),), 2),
        lambda: CountContained(Items(9), ((1,),), 0),
        lambda: SetSize(Items(9), 10),
        lambda: SetSize(Items(9), True),
        lambda: SetSize(Categories.range(9), 1),  # type: ignore[arg-type]  # that is the test
        lambda: SampleContained(Categories.range(9), ((1,),), 1),  # type: ignore[arg-type]  # and that
        lambda: view_from_json({"kind": "set-size", "source": Categories.range(9).to_json(), "most": 3}),
    ):
        with pytest.raises(VeilError):
            call()


def test_numpy_integers_become_python_integers() -> None:
    codes = np.array([3, 5], dtype=np.uint64)
    view = SampleContained(Items(9), (tuple(codes),), np.int64(2))  # type: ignore[arg-type]  # that is the test
    assert view == SampleContained(Items(9), ((3, 5),), 2)
    assert canonical(view.to_json())


@given(SETS)
def test_arrow_columns_are_encoded_like_lists(sets: list[list[int]]) -> None:
    plain = Items(10).encode(sets)
    kinds = [pa.list_(pa.uint16()), pa.large_list(pa.int64())]
    for column in (*(pa.array(sets, kind) for kind in kinds), pa.chunked_array([pa.array(sets, kinds[0])])):
        read = Items(10).encode(column)
        assert read.offsets.tolist() == plain.offsets.tolist()
        assert read.items.tolist() == plain.items.tolist()
    sliced = Items(10).encode(pa.array([[1, 2], *sets], kinds[0])[1:])
    assert sliced.items.tolist() == plain.items.tolist()


def test_arrow_columns_with_unknown_items_are_refused_with_their_row() -> None:
    for column in (pa.array([[1], [2, 10]]), pa.array([[1], [2, None]]), pa.array([[1], None])):
        with pytest.raises(DomainError) as problem:
            Items(10).encode(column)
        assert problem.value.row == 1
