"""Answers of SQL: columns and errors, text and files, and differences of two answers."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from veil import GRR
from veil.errors import DomainError, InputError, MismatchError, ParameterError, WireError
from veil.results import Result
from veil.results.render.files import document, load, save, table_bytes
from veil.results.render.terminal import render
from veil.sql.answer import Answer, KeyColumn, MeasuredColumn
from veil.sql.change import AnswerChange

QUERY = "SELECT os, COUNT(*) AS people, AVG(spent) AS low FROM people GROUP BY os ORDER BY low"


def grouped(shift: float = 0.0, **changes: Any) -> Answer:
    given: dict[str, Any] = {
        "query": QUERY,
        "keys": (KeyColumn.of("os", ["web", "ios", None]),),
        "outputs": (
            MeasuredColumn("people", np.array([412.5 + shift, -3.25, np.nan]), np.array([20.0, 11.0, np.nan])),
            MeasuredColumn("low", np.array([1.5, 22.0, np.inf]), np.array([0.0123, 0.5, 1.0])),
        ),
        "people": np.array([1_000, 500, 0]),
        "n": 1_500,
        "population": 1_500,
        "used": ("age in fifths", "age in tenths"),
        "said": ("Few people.",),
        "lineage": ("HIO", "levels"),
        "guarantee": GRR(1.0, 4).guarantee,
    }
    return Answer(**(given | changes))


def single() -> Answer:
    one = MeasuredColumn("count", np.array([412.5]), np.array([20.0]))
    return Answer(query="SELECT COUNT(*) FROM people", outputs=(one,), people=np.array([9]), n=9, population=9)


def shown(result: Result, **options: Any) -> str:
    console = Console(width=100, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(render(result, **options))
    return captured.get()


@pytest.mark.parametrize("answer", [grouped(), single()], ids=["groups", "one row"])
def test_answer_is_saved_loaded_and_exported_like_any_result(answer: Answer, tmp_path: Any) -> None:
    assert Result.from_json(json.loads(json.dumps(answer.to_json(), allow_nan=False))) == answer
    save(answer, tmp_path / "a.result.json")
    assert load(tmp_path / "a.result.json") == answer
    for form in ("json", "csv", "parquet", "arrow"):
        assert table_bytes(answer, form)
    assert "<table>" in answer._repr_html_()


def test_every_output_has_its_standard_error_and_interval_beside_it() -> None:
    table = grouped().table(level=0.9)
    names = ["people", "people_stderr", "people_low", "people_high", "low", "low_stderr", "low_low", "low_high"]
    assert table.column_names == ["os", *names, "reports"]
    assert table["os"].to_pylist() == ["web", "ios", None]
    assert table["people_low"].to_pylist()[0] == pytest.approx(412.5 - 1.6448536 * 20)
    assert table["people_high"].to_pylist()[1] == pytest.approx(-3.25 + 1.6448536 * 11)  # never clipped
    assert table["people"].to_pylist()[2] is None
    assert table["low"].to_pylist()[2] is None
    assert table["reports"].to_pylist() == [1_000, 500, 0]


def test_rows_keep_the_order_of_the_query_and_none_is_hidden() -> None:
    told = grouped().told(rows=1, hide=True)
    assert told.table["os"].to_pylist() == ["web", "ios", None]
    assert (told.hidden, told.more) == (0, 0)
    many = np.arange(500.0)
    keys = (KeyColumn.of("day", range(500)),)
    answer = grouped(keys=keys, outputs=(MeasuredColumn("people", many, many),), people=np.arange(500))
    assert answer.told(rows=10).more == 300
    assert answer.told(rows=10).table["day"].to_pylist() == list(range(200))
    assert answer.told().table.num_rows == 500


def test_text_of_an_answer_in_a_terminal() -> None:
    text = shown(grouped())
    assert "1,500 reports, each guarantees" in text
    assert "HIO > levels" in text
    first, second, third = (line for line in text.splitlines() if line.startswith(("web", "ios", "(missing)")))
    assert first.split() == ["web", "412", "373", "to", "452", "1.500", "1.476", "to", "1.524", "1,000"]
    assert second.split()[:2] == ["ios", "-3"]
    assert third.split().count("\N{EN DASH}") == 4
    assert "Few people." in text
    assert "age in fifths; age in tenths" in text
    one = shown(single())
    assert "count, standard error  20" in one
    assert "373 to 452" in one


def test_duplicate_column_names_get_an_underscore() -> None:
    one = np.array([1.0])
    outputs = tuple(MeasuredColumn(name, one, one) for name in ("x", "x_low", "x", "reports"))
    answer = Answer(query="", keys=(KeyColumn("x", ("a",)),), outputs=outputs, people=[1], n=1, population=1)  # type: ignore[arg-type]
    names = answer.table().column_names
    assert len(set(names)) == len(names) == 1 + 4 * 4 + 1
    assert answer.output_names == ["x_", "x_low", "x__", "reports"]
    assert names[-1] == "reports_"


def test_output_names_do_not_clash_with_interval_columns() -> None:
    one = np.array([1.0, 2.0])
    outputs = (MeasuredColumn("low", one, one), MeasuredColumn("high", one, one), MeasuredColumn("changed", one, one))
    keys = (KeyColumn("from", ("a", "b")),)
    text = shown(Answer(query="", keys=keys, outputs=outputs, people=[1, 1], n=1, population=1))  # type: ignore[arg-type]
    head = next(line for line in text.splitlines() if "from" in line)
    assert all(name in head for name in ("from", "low", "high", "changed", "reports"))


@pytest.mark.parametrize(
    ("values", "kind", "labels"),
    [
        (["a", None], "text", ("a", None)),
        ([3, np.int64(4)], "integer", (3, 4)),
        ([1, 2.5, Decimal("0.25")], "number", (1.0, 2.5, 0.25)),
        ([True, None], "flag", (True, None)),
        ([dt.date(2026, 5, 1)], "date", ("2026-05-01",)),
        ([dt.datetime(2026, 5, 1, 12), dt.date(2026, 5, 2)], "time", ("2026-05-01T12:00:00", "2026-05-02T00:00:00")),
        (["a", 3], "text", ("a", "3")),
        ([None], "text", (None,)),
        ([], "text", ()),
    ],
)
def test_type_of_a_key_follows_from_its_values(values: list[Any], kind: str, labels: tuple[Any, ...]) -> None:
    key = KeyColumn.of("k", values)
    assert (key.type, key.labels) == (kind, labels)
    assert KeyColumn.from_json(json.loads(json.dumps(key.to_json()))) == key


def test_keys_are_typed_in_tables() -> None:
    day, moment = dt.date(2026, 5, 1), dt.datetime(2026, 5, 1, 12, 30)
    one = MeasuredColumn("count", np.array([1.0]), np.array([1.0]))
    keys = tuple(KeyColumn.of(name, [value]) for name, value in (("day", day), ("at", moment), ("year", 2026)))
    answer = grouped(keys=keys, outputs=(one,), people=[5])
    assert [str(kind) for kind in answer.table().schema.types[:3]] == ["date32[day]", "timestamp[us]", "int64"]
    row = next(iter(answer))
    assert (row.day, row.at, row.year) == (day, moment, 2026)
    assert "2026-05-01" in shown(answer)
    assert "2,026" not in shown(answer)
    assert document(answer)["rows"][0]["day"] == "2026-05-01"
    assert answer[(day, moment, 2026)].count == 1.0


def test_value_stderr_and_interval_by_output_name() -> None:
    assert (single().value(), single().stderr("count")) == (412.5, 20.0)
    assert grouped()["ios"].people == -3.25
    with pytest.raises(InputError, match="one row"):
        grouped().value("people")
    with pytest.raises(InputError, match="people, low"):
        grouped().interval("none")
    with pytest.raises(DomainError):
        grouped()["android"]
    with pytest.raises(ParameterError, match="one cell for each row"):
        grouped(people=[1])
    with pytest.raises(InputError, match="raw rows"):
        grouped().told(truth=[1.0])


@pytest.mark.parametrize(
    "damage",
    [
        {"keys": [{"name": "os"}]},
        {"keys": [{"name": "os", "type": "date", "labels": ["x", "y", "z"]}]},
        {"people": [1]},
    ],
)
def test_a_damaged_document_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        Result.from_json(grouped().to_json() | damage)


def test_the_picture_has_a_panel_for_each_output() -> None:
    pytest.importorskip("matplotlib")
    panel = grouped().plot()
    assert len(panel.figure.axes) == 2
    assert [text.get_text() for text in panel.get_yticklabels()] == ["web", "ios", "(missing)"]
    assert single().plot().get_xlabel() == "count, with 95 % interval"


# -- differences -------------------------------------------------------------------------------------------------------


def test_difference_is_saved_loaded_and_exported_like_any_result() -> None:
    change = grouped(shift=100.0).difference(grouped())
    assert isinstance(change, AnswerChange)
    assert Result.from_json(json.loads(json.dumps(change.to_json()))) == change
    rows = change.table().to_pylist()
    assert [(row["os"], row["output"]) for row in rows[:2]] == [("web", "people"), ("web", "low")]
    assert rows[0]["difference"] == 100.0
    assert rows[0]["difference_stderr"] == pytest.approx(20 * 2**0.5)
    assert rows[0]["p_value"] == pytest.approx(0.000407, rel=1e-3)  # 100 / 28.28 = 3.536 standard errors
    assert [row["changed"] for row in rows] == [True, False, False, False, False, False]
    assert rows[4]["difference"] is None
    assert rows[4]["p_value"] is None
    assert "3.54" not in shown(change)
    assert "changed" in shown(change)


def test_rows_are_matched_by_their_keys() -> None:
    before = grouped()
    turned = grouped(
        keys=(KeyColumn.of("os", ["ios", "web", "tv"]),),
        outputs=tuple(MeasuredColumn(one.name, one.values[[1, 0, 2]], one.stderr[[1, 0, 2]]) for one in before.outputs),
    )
    change = turned.difference(before)
    assert change.table()["os"].to_pylist() == ["ios", "ios", "web", "web"]
    assert change.differences.tolist() == [0.0] * 4
    assert not change.changed().any()
    assert change.facts()["only_after"] == 1
    assert "2 of them" in change.remarks()[-1]


def test_only_answers_to_the_same_query_are_compared() -> None:
    spaced = grouped(query=QUERY.replace(" FROM", "\n FROM") + ";")
    assert len(spaced.difference(grouped())) == 6
    with pytest.raises(MismatchError, match="same query"):
        grouped(query="SELECT 1").difference(grouped())
    with pytest.raises(MismatchError, match="row in common"):
        grouped(keys=(KeyColumn.of("os", ["a", "b", "c"]),)).difference(grouped())
    with pytest.raises(InputError, match="another Answer"):
        grouped().difference(grouped().difference(grouped()))


def test_intervals_of_differences_cover_the_truth() -> None:
    """95 % of 2,000 differences of equal truths lie within their interval; a rival's, from one side alone, do not."""
    draws = np.random.default_rng(15).normal(100.0, 5.0, size=(2, 2_000))
    errors = np.full(2_000, 5.0)
    keys = (KeyColumn.of("i", range(2_000)),)
    after, before = (
        grouped(keys=keys, outputs=(MeasuredColumn("x", side, errors),), people=np.ones(2_000)) for side in draws
    )
    change = after.difference(before)
    low, high = change.interval().T
    assert 0.94 < float(np.mean((low <= 0) & (high >= 0))) < 0.96
    rival = np.abs(change.differences) <= 1.96 * 5.0
    assert float(np.mean(rival)) < 0.9
    assert not change.changed().any()


def test_numbers_of_few_reports_can_be_withheld() -> None:
    answer = grouped().withheld(600)
    assert np.isnan(answer.output("people").values[1:]).all()
    assert answer.output("people").values[0] == 412.5
    assert "2 rows are withheld" in answer.remarks()[-1]
    assert grouped().withheld(0) == grouped()


def test_p_values_of_differences_include_the_sampling_error() -> None:
    one = np.array([100.0])
    noise, luck = np.array([3.0]), np.array([4.0])
    after, before = (
        Answer(query="", outputs=(MeasuredColumn("n", values, noise, luck),), people=[9], n=9, population=9)  # type: ignore[arg-type]
        for values in (one + 12, one)
    )
    change = after.difference(before)
    assert change.stderr[0] == pytest.approx(3 * 2**0.5)  # what intervals are made of
    assert change.p_values[0] == pytest.approx(0.08969, rel=1e-3)  # 12 / (5 sqrt 2) = 1.697 standard errors
    assert not any("luck" in said for said in change.remarks())
    assert any("luck" in said for said in grouped().difference(grouped()).remarks())


def test_a_difference_repeats_what_both_answers_remark() -> None:
    after, before = grouped(said=("one", "both")), grouped(said=("both", "other"))
    assert after.difference(before).remarks()[-3:] == ["one", "both", "other"]
