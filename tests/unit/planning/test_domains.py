"""Domains from the words of a command line: labels, items, ranges, and attributes of records."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from veil import Categories, Integers, Interval, Items
from veil.domain import Domain
from veil.errors import InputError, ParameterError
from veil.planning.domains import attribute, between, items_of, labelled

YEAR_1990: Any = dt.date(1990, 1, 1)
YEAR_2000: Any = dt.date(2000, 1, 1)


@pytest.mark.parametrize(
    ("text", "name", "domain"),
    [
        ("sex=f,m", "sex", Categories(["f", "m"])),
        (" drink = tea, green tea ", "drink", Categories(["tea", "green tea"])),
        ("stars=1,2,5", "stars", Categories([1, 2, 5])),
        ("zip=007,010", "zip", Categories(["007", "010"])),
        ("smokes=2", "smokes", Categories.range(2)),
        ("age=18..99", "age", Integers(18, 99)),
        ("degrees=-40..-1", "degrees", Integers(-40, -1)),
        ("age=0..100/10", "age", Interval(0, 100, cells=10)),
        ("height=1.5..2.1/6", "height", Interval(1.5, 2.1, cells=6)),
        ("born=1990-01-01..2000-01-01/10", "born", Interval(YEAR_1990, YEAR_2000, cells=10)),
        ("a=b=c,d", "a", Categories(["b=c", "d"])),
    ],
)
def test_attribute_reads_names_and_values(text: str, name: str, domain: Domain) -> None:
    assert attribute(text) == (name, domain)


@pytest.mark.parametrize(
    "text", ["sex", "=f,m", "sex=", "sex=f", "sex=f,,m", "age=..", "age=1..x", "age=a..b/3", "age=0..9/x"]
)
def test_attribute_refuses_malformed_text(text: str) -> None:
    with pytest.raises(InputError, match="an attribute is NAME=VALUES: labels as in sex=f,m"):
        attribute(text)


@pytest.mark.parametrize("text", ["age=99..18", "age=5..5/10", "age=0..9/0", "smokes=0", "sex=f,f"])
def test_attribute_refuses_impossible_domains(text: str) -> None:
    with pytest.raises(ParameterError):
        attribute(text)


def test_labels_items_and_ranges_from_text() -> None:
    assert labelled("tea, coffee") == Categories(["tea", "coffee"])
    assert items_of(["1", "-2"]) == Items(Categories([1, -2]))
    assert items_of(["1", "b"]) == Items(Categories(["1", "b"]))
    assert between("0", "250000") == Interval(0, 250_000)
    days = between("2026-01-01", "2027-01-01", buckets=365)
    assert isinstance(days, Interval)
    assert days.cells % 365 == 0
    for bad in (["x", "1"], ["2026-01-01", "5"], ["1.5", "3"]):
        with pytest.raises(InputError):
            between(*bad, integers=bad[0] == "1.5")
    with pytest.raises(InputError, match="two commas"):
        labelled("tea,,coffee")
