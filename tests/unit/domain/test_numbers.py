"""Numeric domains: times, clipping, and what they refuse."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from veil import Integers, Interval
from veil.domain import domain_from_json
from veil.errors import DomainError, ParameterError, WireError

YEAR = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1), cells=365)
NOON = dt.datetime(2026, 2, 1, 12)


def test_an_interval_of_times_takes_times_in_every_form() -> None:
    forms = [
        [NOON],
        [dt.datetime(2026, 2, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))],
        np.array(["2026-02-01T12:00"], dtype="datetime64[s]"),
        pd.Series([pd.Timestamp(NOON)]),
        pd.Series([pd.Timestamp(NOON, tz="UTC")]),
        pa.array([NOON]),
    ]
    assert [YEAR.encode(form).tolist() for form in forms] == [[31]] * len(forms)
    assert YEAR.encode([dt.date(2026, 1, 2)]).tolist() == [1]
    assert YEAR.decode([31]) == [NOON]


def test_an_interval_of_times_goes_through_json_and_others_keep_their_form() -> None:
    assert domain_from_json(YEAR.to_json()) == YEAR
    assert YEAR.to_json()["unit"] == "time"
    assert "unit" not in Interval(0, 1).to_json()
    for unit in ("number", "dollar", 3, None):
        with pytest.raises(WireError):
            domain_from_json(Interval(0, 1).to_json() | {"unit": unit})


def test_times_refuse_what_is_no_time() -> None:
    for values in ([1.5], ["2026-02-01"], [None], [pd.NaT], np.array(["NaT"], "datetime64[s]"), [dt.time(3)]):
        with pytest.raises(DomainError):
            YEAR.encode(values)
    with pytest.raises(DomainError, match=r"times from 2026-01-01 00:00:00 to 2027-01-01 00:00:00"):
        YEAR.encode([dt.datetime(2031, 5, 6)])
    with pytest.raises(DomainError) as refused:
        YEAR.encode([dt.datetime(2031, 5, 6)])
    assert "2031" not in str(refused.value)
    with pytest.raises(DomainError):
        Interval(0, 1).encode([NOON])
    with pytest.raises(DomainError):  # in microseconds it would wrap around into 2026
        YEAR.encode(np.array([213_524_500], "datetime64[D]"))
    with pytest.raises(DomainError):
        YEAR.encode([dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))])
    for ends in ((dt.date(2026, 1, 1), 5), (dt.date(2027, 1, 1), dt.date(2026, 1, 1)), ("soon", "later"), (True, 5)):
        with pytest.raises(ParameterError):
            Interval(*ends)


def test_times_lie_in_the_years_that_python_knows() -> None:
    widest = Interval(-62_135_596_800, 253_402_300_799, cells=4, unit="time")
    assert widest.encode([dt.datetime.min, dt.datetime(9999, 12, 31)]).tolist() == [0, 3]
    assert len(widest.decode([0, 3])) == 2
    for ends in ((-62_135_596_801, 0), (0, 253_402_300_800), (-1e11, 0)):
        with pytest.raises(ParameterError, match="years 1 and 9999"):
            Interval(*ends, unit="time")


def test_clipping_moves_and_counts_and_never_hides_what_is_missing() -> None:
    values, moved = Interval(0, 10).clip([-1.0, 0.0, 10.0, 99.0])
    assert (values.tolist(), moved) == ([0.0, 0.0, 10.0, 10.0], 2)
    values, moved = Integers(18, 99).clip([3, 18, 120])
    assert (Integers(18, 99).encode(values).tolist(), moved) == ([0, 0, 81], 2)
    values, moved = YEAR.clip([dt.datetime(2020, 1, 1), NOON])
    assert (YEAR.encode(values).tolist(), moved) == ([0, 31], 1)
    start = dt.datetime(1900, 1, 2, 21, 54, 36, 355285)
    early = Interval(start, start + dt.timedelta(days=30))
    inside = np.array([start + dt.timedelta(days=3, microseconds=1)], "datetime64[us]")
    values, moved = early.clip([dt.datetime(1800, 1, 1), inside[0].item(), dt.datetime(2050, 1, 1)])
    assert (values[1], moved) == (inside[0], 2)
    assert early.encode(values)[[0, 2]].tolist() == [0, early.cells - 1]
    for domain in (Interval(0, 10), Integers(0, 10)):
        for value in (float("nan"), float("inf"), None, "7"):
            with pytest.raises(DomainError):
                domain.clip([value])
    with pytest.raises(DomainError):
        Interval(0, 10).encode([-1.0])
