"""`veil hitters`: a trial on a file, the same by roles through tasks and reports, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_values, small, veil, veil_json

from veil import GRR, OLH, Bits, OneOf, Question, Survey, Text, simulate
from veil.entropy import Seeded
from veil.hitters import PEM, HeavyHitters, Stored, pem1, tree_hist
from veil.view import Segment

PEOPLE = 8_000
WORDS = ["tea", "milk", "zug", "so", "röst", "a", "ab", "ba", "mulled wine"]
ASKED = ["--epsilon", 4, "-k", 3, "--max-bytes", 4, "--budget", 2**13]


def held(people: int = PEOPLE, seed: int = 1) -> Any:
    chances = np.array([8, 4, 2, 1, 1, 1, 1, 1, 6])
    return np.random.default_rng(seed).choice(WORDS, people, p=chances / chances.sum())


def saved(tmp_path: Path, name: str = "words.csv") -> Path:
    return save_values(tmp_path / name, pa.table({"word": held()}))


def same(document: Any, found: HeavyHitters) -> None:
    rows = document["hitters"]
    assert [row["value"] for row in rows] == found.values
    assert [row["frequency"] for row in rows] == found.estimates.frequencies.tolist()
    assert [(row["low"], row["high"]) for row in rows] == [tuple(pair) for pair in found.estimates.interval()]
    assert [row["truncated"] for row in rows] == found.truncated.tolist()
    assert [(step["length"], step["people"], step["candidates"], step["kept"]) for step in document["rounds"]] == [
        (step.length, step.people, step.candidates, step.kept) for step in found.history
    ]


@pytest.mark.parametrize("oracle", ["OLH", "pgr"])
def test_a_trial_is_what_the_library_simulates(tmp_path: Path, oracle: str) -> None:
    values, out = saved(tmp_path, "words.parquet"), tmp_path / "out.csv"
    asked = ["hitters", "simulate", values, *ASKED, "--oracle", oracle, "--seed", 3]
    document = veil_json(*asked, "--truth", "-o", out)
    found = simulate(PEM(4.0, Text(4), 3, 2**13, oracle.upper()), held(), seed=3)  # type: ignore[arg-type]
    same(document, found)
    assert [row["value"] for row in document["hitters"]] == ["tea", "mull", "milk"]
    assert [row["truncated"] for row in document["hitters"]] == [False, True, True]
    assert all(row["significant"] for row in document["hitters"])
    assert document["found"] == 3
    assert document["hitters"][0]["truth"] == pytest.approx(np.mean(held() == "tea"))
    table = pacsv.read_csv(out)
    fitted = ["fitted"] if found.fitted is not None else []
    assert table.column_names == ["value", "frequency", "count", "stderr", "low", "high", "truncated", *fitted]
    assert table["frequency"].to_pylist() == found.estimates.frequencies.tolist()
    shown = veil(*asked)
    assert "mull…" in shown.stdout
    assert "3 of them are significant" in shown.stdout
    assert "WARNING" in shown.stderr
    other = veil_json("hitters", "simulate", values, *ASKED, "--oracle", oracle)
    assert other["hitters"][0]["value"] == "tea"
    assert other["hitters"] != document["hitters"]
    assert "truth" not in other["hitters"][0]


@pytest.mark.parametrize("oracle", ["OLH", "PGR"])
def test_by_roles(tmp_path: Path, oracle: str) -> None:
    task, parts = tmp_path / "task.json", []
    plan = veil_json("hitters", "plan", *ASKED, "--oracle", oracle, "--users", PEOPLE, "-o", task)
    protocol = PEM(4.0, Text(4), 3, 2**13, oracle)  # type: ignore[arg-type]
    assert Survey.from_json(task.read_bytes()) == protocol.survey
    assert [row["bits"] for row in plan["rounds"]] == list(protocol.lengths)
    assert plan["queries"] <= 2**13
    for i, some in enumerate(np.array_split(held(), 2)):
        values = save_values(tmp_path / f"v{i}.csv", pa.table({"word": some}))
        parts.append(tmp_path / f"r{i}.arrow")
        veil("randomize", task, values, "-o", parts[-1], "--seed", 5 + i)
    reports = [protocol.survey.randomize(some, Seeded(5 + i)) for i, some in enumerate(np.array_split(held(), 2))]
    stored = Stored(protocol.survey, reports)
    document = veil_json("hitters", "find", task, *parts, "-k", 3)
    same(document, protocol.find(stored))
    assert document["people"] == PEOPLE
    assert document["files"] == 2
    more = veil_json("hitters", "find", task, *parts, "-k", 5)  # reports do not depend on how many are looked for
    assert [row["value"] for row in more["hitters"]][:3] == ["tea", "mull", "milk"]
    assert len(more["hitters"]) == 5
    frequent = veil_json("hitters", "find", task, *parts, "-k", 5, "--threshold", 0.2)
    assert [row["value"] for row in frequent["hitters"]] == ["tea", "mull"]
    assert "heavy hitters" in veil("hitters", "find", task, *parts, "-k", 3).stdout
    none = veil_json("hitters", "find", task, *parts, "-k", 5, "--threshold", 0.9)
    assert none["hitters"] == []
    assert "0 heavy hitters" in veil("hitters", "find", task, *parts, "-k", 5, "--threshold", 0.9).stdout


def test_an_alphabet_leaves_fewer_to_try(tmp_path: Path) -> None:
    values = saved(tmp_path)
    letters = ["--alphabet", "abcdefghijklmnopqrstuvwxyz"]
    whole, spelled = (
        veil_json("hitters", "simulate", values, *ASKED[:-2], "--budget", 2**16, *more, "--seed", 1)
        for more in ([], letters)
    )
    assert [row["value"] for row in spelled["hitters"]] == ["tea", "mull", "milk"]
    assert sum(step["candidates"] for step in spelled["rounds"]) < 2**16
    assert len(spelled["rounds"]) < len(whole["rounds"])
    plan = veil_json("hitters", "plan", "--epsilon", 1, "-k", 3, "--max-bytes", 4, *letters)
    assert [row["bits"] % 8 for row in plan["rounds"]] == [0] * len(plan["rounds"])


def test_strings_of_bits_and_every_kind_of_table(tmp_path: Path) -> None:
    numbers = np.random.default_rng(2).choice([7, 2**39, 12345], 4_000, p=[0.6, 0.3, 0.1])
    values = save_values(tmp_path / "codes.csv", pa.table({"id": numbers, "more": numbers}))
    asked = ["hitters", "simulate", values, "--epsilon", 4, "-k", 2, "--bits", 40, "--budget", 2**14, "--column", "id"]
    document = veil_json(*asked, "--seed", 1, "-o", tmp_path / "o.json")
    found = simulate(PEM(4.0, Bits(40), 2, 2**14), numbers, seed=1)
    same(document, found)
    assert found.values == [7, 2**39]
    assert [row["value"] for row in json.loads((tmp_path / "o.json").read_text())] == found.values
    veil(*asked, "--seed", 1, "-o", tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet")["value"].to_pylist() == found.values


@pytest.mark.parametrize("search", [pem1(4.0, Bits(12), 2), tree_hist(4.0, Bits(16), 2)])
def test_only_prefixes_that_get_longer_are_searched(tmp_path: Path, search: Any) -> None:
    task, values = tmp_path / "task.json", small(tmp_path, "id\n" + "77\n" * 500)
    task.write_bytes(search.survey.to_bytes())
    veil("randomize", task, values, "-o", tmp_path / "r.arrow")
    asked = ["hitters", "find", task, tmp_path / "r.arrow", "-k", 1]
    if search.test is None:
        assert [row["value"] for row in veil_json(*asked)["hitters"]] == [77]
    else:  # a final test of its own, by people who tell the whole value as well
        assert "do not get longer" in veil(*asked, code=3).stderr


BAD: list[tuple[list[Any], int, str]] = [
    (["-k", 0], 3, "at least one"),
    (["-k", 3, "--bits", 0], 3, "between 1 and 4096 bits"),
    (["-k", 3, "--bits", 8, "--max-bytes", 2], 3, "not both"),
    (["-k", 3, "--max-bytes", 0], 3, "between 1 and 512 bytes"),
    (["-k", 5, "--bits", 2], 3, "larger than the domain"),
    (["-k", 3, "--oracle", "GRR"], 3, "OLH or PGR"),
    (["-k", 3, "--budget", 1], 3, "budget"),
    (["-k", 3, "--budget", 4], 3, "too small"),
    (["-k", 3, "--oracle", "PGR", "--alphabet", "ab"], 3, "take OLH"),
    (["-k", 3, "--bits", 8, "--alphabet", "ab"], 3, "for text"),
    ([], 2, "Missing option"),
]


@pytest.mark.parametrize(("options", "code", "message"), BAD)
def test_bad_options_are_refused(tmp_path: Path, options: list[Any], code: int, message: str) -> None:
    values, out = saved(tmp_path), tmp_path / "out.csv"
    refused = veil("hitters", "simulate", values, "--epsilon", 1, *options, "-o", out, code=code)
    assert message in refused.stderr
    veil("hitters", "plan", "--epsilon", 1, *options, "-o", tmp_path / "task.json", code=code)
    assert not out.exists()
    assert not (tmp_path / "task.json").exists()


def test_bad_files_are_refused(tmp_path: Path) -> None:
    trial = ["hitters", "simulate"]
    assert "no people" in veil(*trial, small(tmp_path, "word\n"), *ASKED, code=3).stderr
    assert "is empty" in veil(*trial, small(tmp_path, ""), *ASKED, code=3).stderr
    assert "no file" in veil(*trial, tmp_path / "none.csv", *ASKED, code=3).stderr
    several = small(tmp_path, "word,age\nsecret77,5\n")
    for options in ([], ["--column", "name"]):
        refused = veil(*trial, several, *ASKED, *options, code=3)
        assert "secret77" not in refused.output
    missing = save_values(tmp_path / "m.parquet", pa.table({"word": ["secret77", None]}))
    refused = veil(*trial, missing, *ASKED, code=3)
    assert "missing" in refused.stderr
    assert "secret77" not in refused.output
    numbers = small(tmp_path, "id\n5\n300\n")
    refused = veil(*trial, numbers, "--epsilon", 1, "-k", 1, "--bits", 8, code=3)
    assert "300" not in refused.output
    veil(*trial, numbers, *ASKED, "-o", numbers, code=3)
    veil(*trial, numbers, *ASKED, "--threshold", 2, code=3)


def test_reports_and_tasks_must_fit(tmp_path: Path) -> None:
    task, other = tmp_path / "task.json", tmp_path / "other.json"
    veil("hitters", "plan", *ASKED, "-o", task)
    veil("hitters", "plan", *ASKED[:-4], "--max-bytes", 5, "-o", other)
    reports = tmp_path / "r.arrow"
    veil("randomize", task, saved(tmp_path), "-o", reports)
    assert "another task" in veil("hitters", "find", other, reports, "-k", 3, code=4).stderr
    assert "twice" in veil("hitters", "find", task, reports, reports, "-k", 3, code=3).stderr
    veil("hitters", "find", task, reports, "-k", 0, code=3)
    whole = Question(OLH(1.0, Text(4)))
    early = Segment(Text(4), 8, 32)
    for ask in (Question(GRR(1.0, 8)), whole, OneOf((1, Question(OLH(1.0, early.domain), early)))):
        other.write_bytes(Survey(ask).to_bytes())
        assert "prefixes" in veil("hitters", "find", other, reports, "-k", 3, code=3).stderr
    reports.write_bytes(reports.read_bytes()[:-9])
    veil("hitters", "find", task, reports, "-k", 3, code=5)
