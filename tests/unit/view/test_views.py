"""Views against plain Python on every value of small domains."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.domain import (
    Bits,
    Categories,
    Domain,
    Integers,
    Interval,
    Items,
    Record,
    Text,
    Tuples,
    domain_from_json,
    labels_from_json,
)
from veil.entropy import SeededForExperiments, Words
from veil.errors import DomainError, ParameterError, VeilError
from veil.view import (
    Ancestor,
    BitsOf,
    Composed,
    Identity,
    Parity,
    Product,
    Project,
    SampleItem,
    Segment,
    SquaredDistance,
    View,
    bits_of,
    prefix,
    view_from_json,
)

NONE = Words(b"")
PERSON = Record.of(sex=["f", "m"], age=Integers(0, 99))


@given(st.integers(1, 150), st.data())
def test_segments_of_any_length(bits: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, bits - 1))
    stop = data.draw(st.integers(start + 1, bits))
    values = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=4))
    view = Segment(Bits(bits), start, stop)
    shown = view.domain.decode(view.apply(Bits(bits).encode(values), NONE))
    assert shown == [int(f"{value:0{bits}b}"[start:stop], 2) for value in values]


def test_prefixes_of_text_are_prefixes_of_its_bytes() -> None:
    view = prefix(Text(20), 24)
    assert view.apply(Text(20).encode(["tea", "team"]), NONE).tolist() == [int.from_bytes(b"tea", "big")] * 2
    long = prefix(Text(20), 96)
    assert long.domain.decode(long.apply(Text(20).encode(["teapots, chipped"]), NONE)) == [
        int.from_bytes(b"teapots, chi", "big")
    ]


@given(st.integers(2, 300), st.integers(2, 6))
def test_ancestors_are_whole_numbers_of_leaves(size: int, branching: int) -> None:
    domain = Categories.range(size)
    height = Ancestor(domain, branching, 1).height
    assert branching ** (height - 1) < size <= branching**height
    codes = np.arange(size, dtype=np.uint64)
    below = codes
    for level in range(height, 0, -1):
        view = Ancestor(domain, branching, level)
        shown = view.apply(codes, NONE)
        assert int(shown.max()) == view.domain.size - 1
        assert np.array_equal(shown, below)
        below = shown // branching


def test_projections_are_mixed_radix() -> None:
    record = Record.of(a=2, b=3, c=Integers(5, 8))
    table = {"a": [1, 0], "b": [2, 1], "c": [8, 5]}
    codes = record.encode(table)
    assert Project(record, ("a", "c")).apply(codes, NONE).tolist() == [1 * 4 + 3, 0]
    assert Project(record, ("c", "a")).apply(codes, NONE).tolist() == [3 * 2 + 1, 0]
    assert Project(record, ("b",)).domain == Categories.range(3)
    assert Project(record, ("c",)).domain == Integers(5, 8)


def test_sampling_is_uniform_over_the_padded_set() -> None:
    view = SampleItem(Items(10), 4)
    many = [[3, 7]] * 40_000
    shown = np.bincount(view.apply(Items(10).encode(many), SeededForExperiments(1)), minlength=14)
    assert set(np.flatnonzero(shown)) == {3, 7, 10, 11}
    assert np.all(np.abs(shown[[3, 7, 10, 11]] - 10_000) < 7 * np.sqrt(7_500))
    large = view.apply(Items(10).encode([[0, 1, 2, 3, 4, 5]] * 6_000), SeededForExperiments(2))
    assert set(large.tolist()) == set(range(6))
    empty = view.apply(Items(10).encode([[]] * 4_000), SeededForExperiments(3))
    assert set(empty.tolist()) == {10, 11, 12, 13}


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 50), st.floats(-2e6, 2e6), st.integers(1, 1 << 32))
def test_squared_distances_of_an_interval_are_the_stated_doubles(
    lo: float, length: float, size: int, centre: float, cells: int
) -> None:
    hi = lo + length
    view = SquaredDistance(Interval(lo, hi, size), centre, cells)
    middles = [lo + ((u + 0.5) / size) * (hi - lo) for u in range(size)]
    squares = [(middle - centre) * (middle - centre) for middle in middles]
    reach = max(squares[0], squares[-1])
    assert view.domain == Interval(0.0, reach, cells)
    assert max(squares) == reach
    shown = view.apply(np.arange(size, dtype=np.uint64), NONE)
    assert shown.tolist() == [min(math.floor(square / reach * cells), cells - 1) for square in squares]


@given(st.integers(-(2**52), 2**52), st.integers(1, 60), st.floats(-1e3, 1e3))
def test_squared_distances_of_integers_are_the_stated_doubles(lo: int, length: int, centre: float) -> None:
    view = SquaredDistance(Integers(lo, lo + length), centre)
    distances = [(float(lo) - 0.5) + (u + 0.5) - centre for u in range(length + 1)]
    reach = max(distances[0] * distances[0], distances[-1] * distances[-1])
    shown = view.apply(view.held.encode(range(lo, lo + length + 1)), NONE)
    assert shown.tolist() == [min(math.floor(d * d / reach * 2**20), 2**20 - 1) for d in distances]


VIEWS: list[View] = [
    Identity(Categories(["a", "b"])),
    Segment(Bits(12), 3, 7),
    Ancestor(Integers(0, 99), 4, 2),
    Project(Record.of(a=2, b=["x", "y"]), ("b", "a")),
    SampleItem(Items(["tea", "milk"]), 3),
    SquaredDistance(Interval(-1.0, 2.0, 12), 0.1, 64),
    SquaredDistance(Integers(18, 99), 40),
    Composed(Project(PERSON, ("age",)), Ancestor(Integers(0, 99), 10, 1)),
    Composed(Segment(Bits(100), 0, 80), Segment(Bits(80), 70, 80)),
    Product(Project(PERSON, ("sex",)), Composed(Project(PERSON, ("age",)), Ancestor(Integers(0, 99), 10, 1))),
    BitsOf(PERSON, (("age", 3), ("sex", 0))),
    Parity(PERSON, (("age", 6), ("age", 0))),
]


def test_bits_are_those_of_the_codes_in_binary() -> None:
    record = Record.of(a=1, b=5, c=Bits(60), d=2)
    widths = {"a": 0, "b": 3, "c": 60, "d": 1}
    assert bits_of(record) == tuple((name, bit) for name, width in widths.items() for bit in range(width))
    rows = [(0, 4, 2**59 + 5, 1), (0, 3, 0, 0), (0, 1, 2**60 - 1, 1)]
    codes = np.array(rows, dtype=np.uint64)
    chosen = (("d", 0), ("c", 57), ("c", 0), ("b", 0), ("b", 2))
    wanted = []
    for row in rows:
        text = "".join(f"{code:0{width}b}" for code, width in zip(row, widths.values(), strict=True) if width)
        wanted.append("".join(text[bits_of(record).index(bit)] for bit in sorted(chosen, key=bits_of(record).index)))
    assert BitsOf(record, chosen).apply(codes, NONE).tolist() == [int(text, 2) for text in wanted]
    assert Parity(record, chosen).apply(codes, NONE).tolist() == [text.count("1") % 2 for text in wanted]
    assert BitsOf(record, chosen) == BitsOf(record, chosen[::-1])


@pytest.mark.parametrize("kind", [BitsOf, Parity])
@pytest.mark.parametrize("bits", [(), (("age", 7),), (("age", -1),), (("x", 0),), (("age", 0),) * 2, "age", (1, 2)])
def test_bits_that_are_not_there_are_refused(kind: type[BitsOf | Parity], bits: Any) -> None:
    with pytest.raises(ParameterError, match="bit"):
        kind(PERSON, bits)
    with pytest.raises(ParameterError, match="Record"):
        kind(Categories.range(4), bits)  # type: ignore[arg-type]
    with pytest.raises(VeilError):
        view_from_json({"kind": kind.kind, "held": PERSON.to_json(), "bits": [99]})


def test_composed_views_show_what_their_parts_show() -> None:
    codes = PERSON.encode({"sex": ["f", "m", "m"], "age": [0, 39, 99]})
    decade = Composed(Project(PERSON, ("age",)), Ancestor(Integers(0, 99), 10, 1))
    both = Product(Project(PERSON, ("sex",)), decade)
    assert decade.apply(codes, NONE).tolist() == [0, 3, 9]
    assert both.apply(codes, NONE).tolist() == [0, 13, 19]
    assert both.values.decode(both.apply(codes, NONE)) == [("f", 0), ("m", 3), ("m", 9)]
    assert both.domain == Categories.range(20)
    assert Product(both, decade).values.decode([199]) == [(("m", 9), 9)]
    tail = Composed(Segment(Bits(100), 0, 80), Segment(Bits(80), 70, 80))
    value = 0b1011 << 20
    assert tail.domain.decode(tail.apply(Bits(100).encode([value]), NONE)) == [0b1011]


def test_cells_are_labelled_by_tuples() -> None:
    cells = Project(PERSON, ("age", "sex")).values
    assert isinstance(cells, Tuples)
    pairs = [(0, "f"), (0, "m"), (99, "m")]
    assert cells.encode(pairs).tolist() == [0, 1, 199]
    assert cells.decode(cells.encode(pairs)) == pairs
    assert cells.encode(np.array([[3, 4]])[:, :0].reshape(0, 2)).tolist() == []
    assert labels_from_json(cells.to_json()) == cells
    assert labels_from_json(Categories.range(3).to_json()) == Categories.range(3)
    for wrong in ([(0,)], [0], ["of"], [(100, "f")], [(0, "x")], [(0, "f", 1)], [None]):
        with pytest.raises(DomainError):
            cells.encode(wrong)
    with pytest.raises(VeilError):  # it labels results, and is no domain of a task
        domain_from_json(cells.to_json())


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.kind)
def test_json_both_ways(view: View) -> None:
    assert view_from_json(view.to_json()) == view
    for key in view.to_json():
        with pytest.raises(VeilError):
            view_from_json({**view.to_json(), key: None})


@pytest.mark.parametrize(
    "build",
    [
        lambda: Segment(Bits(8), 3, 3),
        lambda: Segment(Bits(8), 0, 9),
        lambda: Segment(Categories.range(8), 0, 1),  # type: ignore[arg-type]
        lambda: Ancestor(Categories.range(8), 1, 1),
        lambda: Ancestor(Categories.range(8), 2, 4),
        lambda: Ancestor(Text(3), 2, 1),
        lambda: Project(Record.of(a=2), ("b",)),
        lambda: Project(Record.of(a=2), ()),
        lambda: Project(Record.of(a=2**30, b=2**30), ("a", "b")),
        lambda: Composed(Project(PERSON, ("age",)), Ancestor(Integers(0, 98), 10, 1)),
        lambda: Composed(Identity(Items(3)), SampleItem(Items(3), 1)),
        lambda: Composed(SampleItem(Items(3), 1), Ancestor(Categories.range(4), 2, 1)),
        lambda: Product(Project(PERSON, ("age",))),
        lambda: Product(Project(PERSON, ("age",)), Identity(Integers(0, 99))),
        lambda: Product(Identity(PERSON), Identity(PERSON)),
        lambda: Product(Identity(Bits(30)), Identity(Bits(30))),
        lambda: reduce(lambda view, _: Composed(Identity(PERSON), view), range(8), Project(PERSON, ("age",))),
        lambda: SampleItem(Items(3), 0),
        lambda: SampleItem(Categories.range(3), 1),  # type: ignore[arg-type]
        lambda: SquaredDistance(Categories.range(3), 1.0),  # type: ignore[arg-type]
        lambda: SquaredDistance(Integers(0, 2**33), 1.0),
        lambda: SquaredDistance(Integers(4, 4), 4.0),
        lambda: SquaredDistance(Integers(0, 9), float("nan")),
        lambda: SquaredDistance(Integers(0, 9), 1e200),
        lambda: SquaredDistance(Integers(0, 9), True),
        lambda: SquaredDistance(Integers(0, 9), "4"),  # type: ignore[arg-type]
        lambda: SquaredDistance(Integers(0, 9), 4.0, cells=0),
        lambda: SquaredDistance(Integers(0, 9), 4.0, cells=2.5),  # type: ignore[arg-type]
    ],
)
def test_impossible_views_are_refused(build: object) -> None:
    with pytest.raises(ParameterError):
        build()  # type: ignore[operator]


def test_sets_need_a_view() -> None:
    domain: Domain = Items(3)
    with pytest.raises(ParameterError, match="SampleItem"):
        Identity(domain).apply(domain.encode([[1]]), NONE)
