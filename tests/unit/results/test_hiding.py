"""What is not significant is hidden where people and programs read results, unless they ask: one rule for all."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pytest
from rich.console import Console
from tests.e2e.test_cli import save_study, small, veil, veil_json

from veil import OLH, Bits, simulate
from veil.collector.store.base import StoredSurvey
from veil.collector.surveys.answers import AnswerRequest, written
from veil.engines import DrawnCollection
from veil.errors import InputError
from veil.hitters import PEM, HeavyHitters
from veil.itemsets import SVIM
from veil.results.base import Result
from veil.results.render.files import document, load, table_bytes
from veil.results.render.terminal import render

HELD = [7] * 3000 + [9] * 2000 + list(range(100, 1100))
SEARCH = PEM(2.0, Bits(16), 12, budget=2**12)


def found() -> HeavyHitters:
    return SEARCH.read(DrawnCollection(SEARCH.survey, HELD, 1))


def histogram(values: int) -> Result:
    held = [0] * 3000 + [1] * 1000 + list(range(values)) * (1000 // values)
    return simulate(OLH(epsilon=2.0, domain=values), held, seed=1)


def shown(result: Result, **options: Any) -> str:
    sink = io.StringIO()
    Console(width=100, file=sink, highlight=False).print(render(result, **options))
    return " ".join(sink.getvalue().split())


def test_a_selection_tells_what_is_significant() -> None:
    hitters = found()
    table, told = hitters.table(), hitters.told(hide=True)
    sure = [row["value"] for row in table.to_pylist() if row["significant"]]
    assert sure == [7, 9]
    assert (told.table["value"].to_pylist(), told.hidden, told.more) == (sure, 10, 0)
    assert hitters.told().table.equals(table)
    assert hitters.told(rows=1, hide=True).more == 1
    assert hitters.told(rows=100).hidden == hitters.told(rows=100).more == 0
    assert told.remarks("--all") == [
        "Rows that are not significant are hidden (10), because noise alone can look like them; --all shows more."
    ]
    assert told._replace(hidden=1).remarks("--all")[0].startswith("Rows that are not significant are hidden (1)")
    assert hitters.told().remarks("--all") == []


def test_every_rendering_follows_the_rule() -> None:
    hitters = found()
    hidden, whole = document(hitters, hide="all=true"), document(hitters)
    assert (len(hidden["rows"]), hidden["hidden"], len(whole["rows"])) == (2, 10, 12)
    assert hidden["rows"] == whole["rows"][:2]
    assert "all=true" in hidden["remarks"][-1]
    assert "hidden" not in whole
    assert len(table_bytes(hitters, "csv", hide="--all").splitlines()) == 3
    assert len(table_bytes(hitters, "csv").splitlines()) == 13
    assert len(json.loads(table_bytes(hitters, "json", hide="--all"))["rows"]) == 2
    assert "Rows that are not significant are hidden (10)" in shown(hitters, hide="--all")
    assert "selected" in shown(hitters)
    assert "hidden" not in shown(hitters)
    assert hitters.plot(hide=True).get_ylim()[0] == 1.5


def test_of_a_histogram_only_the_first_rows_of_many_are_picked() -> None:
    large, small_one = histogram(50), histogram(5)
    told = large.told(rows=10, hide=True)
    assert all(told.table["significant"].to_pylist())
    assert told.hidden == 50 - sum(large.table()["significant"].to_pylist())  # of all, not of the first ten
    assert told.hidden + told.more + told.table.num_rows == 50
    assert large.told(hide=True).table.equals(large.table())  # a file has every value
    assert large.told(rows=50, hide=True).table.num_rows == 50
    assert small_one.told(rows=10, hide=True).table.num_rows == 5
    told = large.post("norm-sub").told(rows=10, hide=True)
    assert told.hidden + told.more + told.table.num_rows == 50


def test_items_are_a_selection_too() -> None:
    rng = np.random.default_rng(1)
    sets = [{"milk"} | set(rng.choice(list("abcdefgh"), rng.integers(0, 2)).tolist()) for _ in range(4000)]
    items = simulate(SVIM(epsilon=2.0, domain=["milk", *"abcdefgh"], k=6), sets, seed=1)
    told = items.told(hide=True)
    assert told.table["value"].to_pylist()[0] == "milk"
    assert all(told.table["significant"].to_pylist())
    assert told.hidden == 6 - told.table.num_rows


def test_the_command_line_hides_and_shows_with_all(tmp_path: Path) -> None:
    values = small(tmp_path, "id\n" + "\n".join(map(str, HELD)) + "\n")
    asked = ["simulate", save_study(tmp_path, SEARCH), values, "--seed", 1, "--top", 20]
    hidden, whole = veil_json(*asked, "-o", tmp_path / "h.csv"), veil_json(*asked, "--all", "-o", tmp_path / "w.csv")
    assert [row["value"] for row in hidden["rows"]] == [7, 9]
    assert hidden["hidden"] == 10
    assert any("--all" in remark for remark in hidden["remarks"])
    assert len(whole["rows"]) == 12
    assert not any("--all" in remark for remark in whole["remarks"])
    assert hidden["significant"] == whole["significant"] == 2  # the facts are about everything
    assert [pacsv.read_csv(tmp_path / name).num_rows for name in ("h.csv", "w.csv")] == [2, 12]
    veil(*asked, "-o", tmp_path / "whole.result.json")
    assert len(load(tmp_path / "whole.result.json")) == 12  # the result itself, exactly
    assert "Rows that are not significant are hidden (10)" in " ".join(veil(*asked).stdout.split())
    assert "hidden" not in veil(*asked, "--all").stdout


def test_the_collector_hides_and_shows_with_all() -> None:
    hitters = found()
    stored: Any = type("Stored", (StoredSurvey,), {"__init__": lambda self: None, "task": "0" * 64})()
    body, _ = written(stored, AnswerRequest(), hitters)
    whole, _ = written(stored, AnswerRequest(all=True), hitters)
    assert (len(json.loads(body)["rows"]), len(json.loads(whole)["rows"])) == (2, 12)
    assert "all=true" in json.loads(body)["remarks"][-1]
    assert len(written(stored, AnswerRequest(format="csv"), hitters)[0].splitlines()) == 3
    assert len(written(stored, AnswerRequest(format="csv", all=True), hitters)[0].splitlines()) == 13
    assert json.loads(AnswerRequest(all=True).parameters)["all"] is True
    with pytest.raises(InputError):
        AnswerRequest(all="yes")  # type: ignore[arg-type]
