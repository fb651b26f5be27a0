"""Heavy hitters through the commands: a trial on a file, the same by roles through reports, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_study, save_values, small, veil, veil_json

from veil import Bits, Text, simulate
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.hitters import PEM, HeavyHitters, pem1, tree_hist

PEOPLE = 8_000
WORDS = ["tea", "milk", "zug", "so", "röst", "a", "ab", "ba", "mulled wine"]


def held(people: int = PEOPLE, seed: int = 1) -> Any:
    chances = np.array([8, 4, 2, 1, 1, 1, 1, 1, 6])
    return np.random.default_rng(seed).choice(WORDS, people, p=chances / chances.sum())


def saved(tmp_path: Path, name: str = "words.csv") -> Path:
    return save_values(tmp_path / name, pa.table({"word": held()}))


def pem(oracle: Any = "OLH", **more: Any) -> PEM:
    return PEM(4.0, Text(4), 3, **{"budget": 2**13, "oracle": oracle, **more})


def same(document: Any, found: HeavyHitters) -> None:
    rows = document["rows"]
    assert [row["value"] for row in rows] == found.values
    assert [row["frequency"] for row in rows] == found.estimates.frequencies.tolist()
    assert [(row["low"], row["high"]) for row in rows] == [tuple(pair) for pair in found.selected_interval()]
    assert [(row["alone_low"], row["alone_high"]) for row in rows] == [
        tuple(pair) for pair in found.estimates.interval()
    ]
    assert [row["truncated"] for row in rows] == found.truncated.tolist()
    assert [(step["length"], step["people"], step["candidates"], step["kept"]) for step in document["rounds"]] == [
        (step.length, step.people, step.candidates, step.kept) for step in found.history
    ]


@pytest.mark.parametrize("oracle", ["OLH", "PGR"])
def test_a_trial_is_what_the_library_simulates(tmp_path: Path, oracle: str) -> None:
    values, out, search = saved(tmp_path, "words.parquet"), tmp_path / "out.csv", pem(oracle)
    asked = ["simulate", save_study(tmp_path, search), values, "--seed", 3]
    document = veil_json(*asked, "--truth", "-o", out)
    found = simulate(search, held(), seed=3)
    same(document, found)
    assert [row["value"] for row in document["rows"]] == ["tea", "mull", "milk"]
    assert [row["truncated"] for row in document["rows"]] == [False, True, True]
    assert all(row["significant"] for row in document["rows"])
    assert [row["truth"] for row in document["rows"]] == [
        pytest.approx(np.mean(held() == word)) for word in ("tea", "mulled wine", "milk")
    ]
    table = pacsv.read_csv(out)
    fitted = ["fitted"] if found.fitted is not None else []
    bounds = ["low", "high", "alone_low", "alone_high"]
    assert table.column_names == ["value", "frequency", "count", "stderr", *bounds, "significant", "truncated", *fitted]
    assert table["frequency"].to_pylist() == found.estimates.frequencies.tolist()
    shown = veil(*asked)
    assert "mull" in shown.stdout
    assert "truncated" in shown.stdout
    assert "WARNING" in shown.stderr
    other = veil_json(*asked[:-2])
    assert other["rows"][0]["value"] == "tea"
    assert other["rows"] != document["rows"]
    assert "truth" not in other["rows"][0]


@pytest.mark.parametrize("oracle", ["OLH", "PGR"])
def test_by_roles(tmp_path: Path, oracle: str) -> None:
    search, parts = pem(oracle), []
    study = save_study(tmp_path, search)
    for i, some in enumerate(np.array_split(held(), 2)):
        values = save_values(tmp_path / f"v{i}.csv", pa.table({"word": some}))
        parts.append(tmp_path / f"r{i}.arrow")
        veil("randomize", study, values, "-o", parts[-1], "--seed", 5 + i)
    reports = [
        search.survey.randomize(some, SeededForExperiments(5 + i)) for i, some in enumerate(np.array_split(held(), 2))
    ]
    document = veil_json("estimate", study, *parts)
    same(document, search.read(MemoryCollection(search.survey, reports)))
    assert document["population"] == PEOPLE
    # reports do not depend on how many are looked for
    more = veil_json("estimate", study, *parts, "--set", "k=5", "--set", "keep=20")
    assert [row["value"] for row in more["rows"]][:3] == ["tea", "mull", "milk"]
    assert len(more["rows"]) == 5
    frequent = veil_json("estimate", study, *parts, "--set", "k=5", "--set", "keep=20", "--set", "threshold=0.2")
    assert [row["value"] for row in frequent["rows"]] == ["tea", "mull"]
    assert "tea" in veil("estimate", study, *parts).stdout
    none = veil_json("estimate", study, *parts, "--set", "threshold=0.9")
    assert none["rows"] == []
    assert "No value was found" in veil("estimate", study, *parts, "--set", "threshold=0.9").stdout


def test_an_alphabet_leaves_fewer_to_try(tmp_path: Path) -> None:
    values = saved(tmp_path)
    letters = "abcdefghijklmnopqrstuvwxyz"
    whole, spelled = (
        veil_json("simulate", save_study(tmp_path, pem(budget=2**16, alphabet=some)), values, "--seed", 1)
        for some in (None, letters)
    )
    assert [row["value"] for row in spelled["rows"]] == ["tea", "mull", "milk"]
    assert sum(step["candidates"] for step in spelled["rounds"]) < 2**16
    assert len(spelled["rounds"]) < len(whole["rounds"])


def test_strings_of_bits_and_every_kind_of_table(tmp_path: Path) -> None:
    numbers = np.random.default_rng(2).choice([7, 2**39, 12345], 4_000, p=[0.6, 0.3, 0.1])
    values = save_values(tmp_path / "codes.csv", pa.table({"id": numbers, "more": numbers}))
    search = PEM(4.0, Bits(40), 2, 2**14)
    asked = ["simulate", save_study(tmp_path, search), values, "--column", "id", "--seed", 1]
    document = veil_json(*asked, "-o", tmp_path / "o.json")
    found = simulate(search, numbers, seed=1)
    same(document, found)
    assert found.values == [7, 2**39]
    assert [row["value"] for row in json.loads((tmp_path / "o.json").read_text())["rows"]] == found.values
    veil(*asked, "-o", tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet")["value"].to_pylist() == found.values


@pytest.mark.parametrize("search", [pem1(4.0, Bits(12), 2), tree_hist(4.0, Bits(16), 2)])
def test_rivals_go_the_same_way(tmp_path: Path, search: Any) -> None:
    study, values = save_study(tmp_path, search), small(tmp_path, "id\n" + "77\n" * 500)
    veil("randomize", study, values, "-o", tmp_path / "r.arrow")
    asked = ["estimate", study, tmp_path / "r.arrow", "--set", "k=1"]
    assert [row["value"] for row in veil_json(*asked)["rows"]] == [77]


def test_a_search_goes_on_in_a_folder(tmp_path: Path) -> None:
    study, folder = save_study(tmp_path, pem()), tmp_path / "run"
    veil("randomize", study, saved(tmp_path), "-o", tmp_path / "r.arrow", "--seed", 5)
    whole = veil_json("estimate", study, tmp_path / "r.arrow")["rows"]
    first = veil_json("next", folder, study)
    assert (first["finished"], first["begun"]) == (False, False)
    assert veil_json("next", folder, tmp_path / "r.arrow")["rows"] == whole
    takes = sorted(folder.glob("round-000.take-*"))
    assert len(takes) > 4
    for take in takes[3:]:
        take.unlink()
    assert veil_json("next", folder)["begun"]
    assert "the same reports once more" in veil("next", folder).stdout
    veil("randomize", study, small(tmp_path, "word\ntea\n"), "-o", tmp_path / "few.arrow")
    assert "expected the same" in veil("next", folder, tmp_path / "few.arrow", code=4).stderr
    assert veil_json("next", folder, tmp_path / "r.arrow")["rows"] == whole
    assert veil_json("next", folder)["rows"] == whole


def test_bad_files_are_refused(tmp_path: Path) -> None:
    trial = ["simulate", save_study(tmp_path, pem())]
    assert "no people" in veil(*trial, small(tmp_path, "word\n"), code=3).stderr
    assert "is empty" in veil(*trial, small(tmp_path, ""), code=3).stderr
    assert "no file" in veil(*trial, tmp_path / "none.csv", code=3).stderr
    several = small(tmp_path, "word,age\nsecret77,5\n")
    for options in ([], ["--column", "name"]):
        refused = veil(*trial, several, *options, code=3)
        assert "secret77" not in refused.output
    missing = save_values(tmp_path / "m.parquet", pa.table({"word": ["secret77", None]}))
    refused = veil(*trial, missing, code=3)
    assert "missing" in refused.stderr
    assert "secret77" not in refused.output
    numbers = small(tmp_path, "id\n5\n300\n")
    refused = veil("simulate", save_study(tmp_path, PEM(1.0, Bits(8), 1), "bits.json"), numbers, code=3)
    assert "300" not in refused.output
    veil(*trial, numbers, "-o", numbers, code=3)
    veil(*trial, numbers, "--set", "threshold=2", code=3)
    veil(*trial, numbers, "--set", "epsilon=2", code=4)


def test_reports_and_studies_must_fit(tmp_path: Path) -> None:
    study, other = save_study(tmp_path, pem()), save_study(tmp_path, PEM(4.0, Text(5), 3), "other.json")
    reports = tmp_path / "r.arrow"
    veil("randomize", study, saved(tmp_path), "-o", reports)
    assert "another task" in veil("estimate", other, reports, code=4).stderr
    assert "twice" in veil("estimate", study, reports, reports, code=3).stderr
    veil("estimate", study, reports, "--set", "k=0", code=3)
    candidates = small(tmp_path, "tea\n", "c.txt")
    assert "no candidates" in veil("estimate", study, reports, "--candidates", candidates, code=3).stderr
    reports.write_bytes(reports.read_bytes()[:-9])
    veil("estimate", study, reports, code=5)
