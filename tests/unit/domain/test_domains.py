"""Domains: values in, codes, values out; and what does not belong is refused without being shown."""

from __future__ import annotations

import contextlib
import unicodedata
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.domain import Bits, Categories, Domain, Integers, Interval, Items, Record, Text, as_domain, domain_from_json
from veil.errors import DomainError, InputError, ParameterError, PrivacyWarning, VeilError
from veil.tools.json_documents import canonical, parse_json

COLOURS = Categories(["red", "green", "blue"])
EVERY: list[tuple[Domain, list[Any]]] = [
    (Categories.range(5), [0, 4, 2]),
    (COLOURS, ["blue", "red"]),
    (Categories(["a", 7]), [7, "a"]),
    (Categories(["x", "y"], missing="category"), ["y", None, "x"]),
    (Integers(-3, 12), [-3, 12, 0]),
    (Bits(7), [0, 127, 64]),
    (Bits(64), [0, 2**64 - 1]),
    (Bits(100), [0, 2**100 - 1, 12345]),
    (Text(12), ["", "tea", "größe", "日本"]),
    (Items(5), [{0, 4}, set(), {2}]),
    (Record.of(sex=["f", "m"], age=Integers(0, 99)), [{"sex": "m", "age": 3}, {"sex": "f", "age": 99}]),
]


@pytest.mark.parametrize(("domain", "values"), EVERY, ids=lambda part: repr(part)[:40])
def test_values_come_back_and_json_brings_the_same_domain(domain: Domain, values: list[Any]) -> None:
    assert domain.decode(domain.encode(values)) == values
    again = domain_from_json(parse_json(canonical(domain.to_json())))
    assert again == domain
    assert hash(again) == hash(domain)


def test_interval_cells_contain_their_values() -> None:
    domain = Interval(-1.5, 2.5, cells=40)
    values = np.linspace(-1.5, 2.5, 1001)
    middles = np.array(domain.decode(domain.encode(values)))
    assert np.all(np.abs(middles - values) <= 0.05 + 1e-12)
    assert domain.encode([2.5]).tolist() == [39]
    assert domain_from_json(domain.to_json()) == domain


@pytest.mark.parametrize(
    "column",
    [
        ["red", "blue"],
        ("red", "blue"),
        np.array(["red", "blue"]),
        np.array(["red", "blue"], dtype=object),
        pd.Series(["red", "blue"]),
        pd.Series(["red", "blue"], dtype="category"),
        pl.Series(["red", "blue"]),
        pa.array(["red", "blue"]),
        pa.array(["red", "blue"]).dictionary_encode(),
        pa.chunked_array([["red"], ["blue"]]),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_labels_from_every_library(column: Any) -> None:
    assert COLOURS.encode(column).tolist() == [0, 2]


@pytest.mark.parametrize(
    "column",
    [
        [3, 1],
        np.array([3, 1], dtype=np.int8),
        np.array([3.0, 1.0]),
        pd.Series([3, 1]),
        pl.Series([3, 1]),
        pa.array([3, 1], pa.uint16()),
        [np.int64(3), np.int32(1)],
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_integers_from_every_library(column: Any) -> None:
    assert Categories.range(4).encode(column).tolist() == [3, 1]
    assert Integers(0, 3).encode(column).tolist() == [3, 1]


@pytest.mark.parametrize(
    "column",
    [
        ["x", None],
        np.array(["x", None], dtype=object),
        pd.Series(["x", None]),
        pl.Series(["x", None]),
        pa.array(["x", None]),
    ],
)
def test_missing_is_refused_or_an_answer_of_its_own(column: Any) -> None:
    with pytest.raises(DomainError, match="missing"):
        Categories(["x", "y"]).encode(column)
    assert Categories(["x", "y"], missing="category").encode(column).tolist() == [0, 2]


def test_nullable_integers_do_not_pass_through_doubles() -> None:
    big = 2**53 - 2
    domain = Categories.range(2**53 - 1, missing="category")
    assert domain.encode(pa.array([big, None])).tolist() == [big, 2**53 - 1]


PRIVATE = "my-private-value"
BAD: list[tuple[Domain, list[Any]]] = [
    (Categories.range(5), [5]),
    (Categories.range(5), [-1]),
    (Categories.range(5), [2.5]),
    (Categories.range(5), [float("nan")]),
    (Categories.range(5), [float("inf")]),
    (Categories.range(5), [2**70]),
    (Categories.range(5), [PRIVATE]),
    (Categories.range(2), [0, True]),
    (Categories.range(3), [True]),
    (COLOURS, [PRIVATE]),
    (COLOURS, [1]),
    (Categories([0, 1]), [0, True]),
    (Categories([1, 2]), [True]),
    (Categories(["yes", "no"]), [True]),
    (Integers(0, 9), [10]),
    (Integers(0, 9), [PRIVATE]),
    (Interval(0, 1), [1.01]),
    (Interval(0, 1), [float("nan")]),
    (Interval(0, 1), [float("inf")]),
    (Interval(0, 1), [PRIVATE]),
    (Bits(4), [16]),
    (Bits(4), [-1]),
    (Bits(100), [2**100]),
    (Bits(100), [b"short"]),
    (Bits(4), [PRIVATE]),
    (Text(4), [7]),
    (Text(4), ["a\0b"]),
    (Text(4), ["\ud800"]),
    (Items(4), [[4]]),
    (Items(4), [PRIVATE]),
    (Items(4), [7]),
]


@pytest.mark.parametrize(("domain", "values"), BAD, ids=repr)
def test_what_does_not_belong_is_refused_and_not_shown(domain: Domain, values: list[Any]) -> None:
    with pytest.raises(DomainError) as caught:
        domain.encode(values)
    assert PRIVATE not in str(caught.value)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize(
    ("domain", "codes"),
    [
        (Categories.range(2), [1, 0, 1]),
        (Categories([1, 0]), [0, 1, 0]),
        (Categories(["false", "true"]), [1, 0, 1]),
        (Categories(["True", "False", "unknown"]), [0, 1, 0]),
    ],
)
def test_booleans_where_it_is_plain_which_is_which(domain: Categories, codes: list[int]) -> None:
    held = [True, False, True]
    for column in (held, np.array(held), pa.array(held), pd.Series(held), pl.Series(held)):
        assert domain.encode(column).tolist() == codes
    asked = Categories(domain.labels or range(2), missing="category")
    assert asked.encode([True, None]).tolist() == [codes[0], domain.size]


def test_booleans_in_text_are_written_in_any_case() -> None:
    assert Categories(["false", "true"]).encode(["True", "FALSE", "true"]).tolist() == [1, 0, 1]
    exact = Categories(["true", "True", "false"])
    assert exact.encode(["True", "true"]).tolist() == [1, 0]
    for domain in (exact, Categories(["yes", "no"]), Categories([0, 1])):
        with pytest.raises(DomainError):
            domain.encode(["TRUE"])


def test_few_labels_are_named_in_a_refusal() -> None:
    with pytest.raises(DomainError, match="attribute 'sex': expected f or m"):
        Record.of(sex=["f", "m"]).encode({"sex": [PRIVATE]})
    with pytest.raises(DomainError, match="expected n, e or s"):
        Categories(["n", "e", "s"]).encode([PRIVATE])
    for many in (Categories([f"l{i}" for i in range(9)]), Categories(["x" * 50, "y" * 50])):
        with pytest.raises(DomainError, match=r"expected one of the [92] categories"):
            many.encode([PRIVATE])


def test_records_name_the_attribute_not_the_value() -> None:
    record = Record.of(sex=["f", "m"], age=Integers(0, 99))
    with pytest.raises(DomainError, match="'age'") as caught:
        record.encode({"sex": ["f"], "age": [123_456]})
    assert "123" not in str(caught.value)
    with pytest.raises(InputError, match="age"):
        record.encode({"sex": ["f"]})
    with pytest.raises(InputError, match="lengths"):
        record.encode({"sex": ["f", "m"], "age": [3]})
    frame = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], "more": [0, 0]})
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.to_dict("list")):
        assert record.encode(table).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("values", ["abc", b"abc", {"a": 1}, 5, None, np.zeros((2, 2))])
def test_what_is_no_column_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        Categories.range(3).encode(values)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Categories([]),
        lambda: Categories(["a", "a"]),
        lambda: Categories(["é", unicodedata.normalize("NFD", "é")]),
        lambda: Categories([1.5]),  # type: ignore[list-item]
        lambda: Categories([True]),
        lambda: Categories(["a"], missing="maybe"),  # type: ignore[arg-type]
        lambda: Categories.range(0),
        lambda: Categories.range(2**53 + 1),
        lambda: Categories.range(2.0),  # type: ignore[arg-type]
        lambda: Integers(3, 2),
        lambda: Integers(0, 2**53 + 1),
        lambda: Interval(1, 1),
        lambda: Interval(0, float("inf")),
        lambda: Interval(0, float("nan")),
        lambda: Interval(0, 1, cells=0),
        lambda: Bits(0),
        lambda: Bits(5000),
        lambda: Text(0),
        lambda: Items(Text(3)),
        lambda: Record(()),
        lambda: Record.of(a=Text(3)),
        lambda: as_domain("abc"),
        lambda: as_domain(2.5),  # type: ignore[arg-type]
    ],
)
def test_impossible_domains_are_refused(build: Any) -> None:
    with pytest.raises(ParameterError):
        build()


def test_a_domain_read_off_data_warns() -> None:
    with pytest.warns(PrivacyWarning, match="leaks"):
        domain = Categories.of(["b", "a", "b", None])
    assert domain.labels == ("a", "b")


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)))
def test_text_is_cut_at_its_bytes_and_never_elsewhere(strings: list[str]) -> None:
    domain = Text(10)
    codes = domain.encode(strings) if strings else np.zeros((0, 10), np.uint8)
    for string, code in zip(strings, codes, strict=True):
        whole = unicodedata.normalize("NFC", string).encode()
        assert code.tobytes() == whole[:10].ljust(10, b"\0")


@given(st.lists(st.sets(st.integers(0, 30), max_size=6), min_size=1, max_size=20))
def test_sets_can_be_taken_by_rows(sets: list[set[int]]) -> None:
    domain = Items(31)
    codes = domain.encode([sorted(held, reverse=True) * 2 for held in sets])
    assert domain.decode(codes) == sets
    rows = np.arange(len(sets))[::-2]
    assert domain.decode(codes[rows]) == [sets[i] for i in rows]
    assert domain.decode(codes[1:3]) == sets[1:3]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([domain for domain, _ in EVERY]), st.data())
def test_edited_documents_give_only_our_errors(domain: Domain, data: st.DataObject) -> None:
    document = dict(domain.to_json())
    key = data.draw(st.sampled_from(sorted(document)))
    document[key] = data.draw(JSON_VALUES)
    with contextlib.suppress(VeilError):
        domain_from_json(document)


def test_masks_mixed_numbers_and_rows() -> None:
    with pytest.raises(DomainError, match="missing"):
        Categories.range(5).encode(np.ma.array([1, 2], mask=[False, True]))
    assert Interval(0, 4, cells=4).encode([1, 2.5]).tolist() == [1, 2]
    assert Categories.range(5).encode([1, 2.0]).tolist() == [1, 2]
    with pytest.raises(DomainError) as caught:
        Items(4).encode([[1], [2], [3, 9]])
    assert caught.value.row == 2
    with pytest.raises(DomainError) as caught:
        Categories.range(5).encode(["1", "2", "x", "3"])
    assert (caught.value.row, caught.value.count) == (2, 1)
    with pytest.raises(DomainError, match="text") as caught:
        Interval(0, 1).encode(np.array(["a long answer"]))
    assert "13" not in str(caught.value)
    for odd in ([["x"]], [{"a": 1}]):
        with pytest.raises(DomainError):
            COLOURS.encode(odd)
