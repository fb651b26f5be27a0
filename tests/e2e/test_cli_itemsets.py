"""Frequent items and sets through the commands: the whole way on a file, again after an interruption, by roles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_study, save_values, small, veil, veil_json

from veil import Items, Survey, simulate
from veil.cli import trials
from veil.entropy import SeededForExperiments
from veil.itemsets import SVIM, SVSM
from veil.simulation import walk_rounds
from veil.study import Study, StudyRun

ITEMS = sorted(["tea", "milk", "salt", "rice", "soap", "bread", "jam", "egg", "oil", "fish", "ham", "nut"])
PEOPLE = 6_000


def baskets() -> list[list[str]]:
    draw = np.random.default_rng(1)
    often = draw.random((PEOPLE, 12)) < np.array([0.6, 0.5, 0.4, *[0.05] * 9])
    often[:, 1] |= often[:, 0]  # who holds the first holds the second
    return [[ITEMS[i] for i in np.flatnonzero(row)] for row in often]


def saved(tmp_path: Path, ending: str = "parquet", separator: str = ";") -> Path:
    if ending == "parquet":
        return save_values(tmp_path / "sets.parquet", pa.table({"basket": baskets()}))
    return small(tmp_path, "basket\n" + "\n".join(separator.join(one) for one in baskets()) + "\n", f"sets.{ending}")


def items(tmp_path: Path, study: Study | None = None) -> Path:
    return save_study(tmp_path, study or SVIM(3, 4.0, Items(ITEMS)))


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "separator"), [("parquet", ";"), ("csv", ";"), ("tsv", " | "), ("csv", " ")])
def test_items_are_those_of_the_library(tmp_path: Path, ending: str, separator: str) -> None:
    out = tmp_path / "out.csv"
    options = ["simulate", items(tmp_path), saved(tmp_path, ending, separator), "--separator", separator]
    document = veil_json(*options, "--seed", 2, "--truth", "-o", out)
    found = simulate(SVIM(3, 4.0, ITEMS), baskets(), seed=2)
    assert [(row["value"], row["frequency"], row["low"]) for row in document["rows"]] == [
        (row.value, row.frequency, row.low) for row in found.rows
    ]
    assert {row["value"] for row in document["rows"]} == set(ITEMS[:3])
    assert all(row["significant"] for row in document["rows"])
    for row in document["rows"]:
        assert row["truth"] == pytest.approx(np.mean([row["value"] in one for one in baskets()]))
    assert [(step["name"], step["people"], step["length"]) for step in document["rounds"]] == [
        (step.name, step.people, step.length) for step in found.history
    ]
    assert document["people"] == PEOPLE
    assert pacsv.read_csv(out)["value"].to_pylist() == found.items
    assert veil_json(*options)["rows"] != document["rows"]


def test_sets_and_rules(tmp_path: Path) -> None:
    options = ["simulate", items(tmp_path, SVSM(6, 4.0, Items(ITEMS))), saved(tmp_path), "--seed", 1]
    document = veil_json(*options, "--truth")
    found = simulate(SVSM(6, 4.0, ITEMS), baskets(), seed=1)
    assert [tuple(row["items"]) for row in document["rows"]] == found.itemsets
    assert (ITEMS[0], ITEMS[1]) in found.itemsets
    for row in document["rows"]:
        assert row["truth"] == pytest.approx(np.mean([set(row["items"]) <= set(one) for one in baskets()]))
    rules = found.rules(0.5)
    assert [(rule["given"], rule["then"], rule["lift"]) for rule in document["rules"]] == [
        (list(rule.given), list(rule.then), rule.lift) for rule in rules
    ]
    assert any(rule.given == (ITEMS[0],) and rule.then == (ITEMS[1],) for rule in rules)
    shown = veil(*options)
    assert f"{ITEMS[0]} + {ITEMS[1]}" in shown.stdout
    assert "rules" in shown.stdout
    for ending in ("csv", "parquet", "json"):
        veil(*options, "-o", tmp_path / f"out.{ending}")
    listed = [[str(item) for item in one] for one in found.itemsets]
    assert [row["items"] for row in pq.read_table(tmp_path / "out.parquet").to_pylist()] == listed
    assert [row["items"] for row in json.loads((tmp_path / "out.json").read_text())["rows"]] == listed
    assert pacsv.read_csv(tmp_path / "out.csv")["items"].to_pylist() == [";".join(one) for one in listed]


def test_whole_numbers_as_items(tmp_path: Path) -> None:
    numbers = [[10 * ITEMS.index(item) - 20 for item in one] for one in baskets()]
    values = save_values(tmp_path / "n.parquet", pa.table({"basket": numbers}))
    study = items(tmp_path, SVIM(3, 4.0, Items(list(range(-20, 100, 10)))))
    document = veil_json("simulate", study, values, "--seed", 2)
    assert {row["value"] for row in document["rows"]} == {-20, -10, 0}
    text = small(tmp_path, "basket\n" + "\n".join(";".join(map(str, one)) for one in numbers) + "\n")
    done = veil_json("randomize", study, text, "-o", tmp_path / "r.arrow")
    assert done["people"] == PEOPLE
    bad = small(tmp_path, "basket\n10;secret77\n", "bad.csv")
    refused = veil("randomize", study, bad, "-o", tmp_path / "r.arrow", code=3)
    assert "whole numbers" in refused.stderr
    assert "secret77" not in refused.output


# -- interruptions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [True, False])
def test_after_an_interruption_it_goes_on(tmp_path: Path, seeded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def watched(run: StudyRun[Any], codes: Any, *more: Any) -> Any:
        numbered = Items(len(codes)).encode([[i] for i in range(len(codes))])  # to see who is asked

        class Seen:
            def __len__(self) -> int:
                return len(codes)

            def __getitem__(self, rows: Any) -> Any:
                asked.append(set(numbered[rows].items.tolist()))
                return codes[rows]

        return walk_rounds(run, Seen(), *more)

    monkeypatch.setattr(trials, "walk_rounds", watched)
    folder, values = tmp_path / "run", saved(tmp_path)
    study = items(tmp_path, SVSM(3, 4.0, Items(ITEMS)))
    options = ["simulate", study, values, "--folder", folder, *(["--seed", 4] if seeded else [])]
    whole = veil_json(*options)
    assert (whole["answered_before"], len(whole["rounds"])) == (0, 5)
    first, asked[:] = list(asked), []
    assert sum(map(len, first)) == PEOPLE == len(set().union(*first))
    assert veil_json(*options)["answered_before"] == 5
    assert asked == []
    for late in (2, 3, 4):
        for take in folder.glob(f"round-00{late}.take-*"):
            take.unlink()
    again = veil_json(*options)
    assert again["answered_before"] == 2
    assert asked == first[2:]  # the others were asked before: nobody is asked twice
    assert again["rows"] == whole["rows"]  # and who is asked again after a loss reports the same
    shown = veil(*options).stdout
    assert "5 rounds had been answered before" in shown
    assert "finished, after 5 rounds" in veil("inspect", folder).stdout


def test_a_folder_holds_one_study(tmp_path: Path) -> None:
    folder, values = tmp_path / "run", saved(tmp_path)
    veil("simulate", items(tmp_path), values, "--folder", folder)
    for other in (SVIM(2, 4.0, Items(ITEMS)), SVIM(3, 3.0, Items(ITEMS)), SVSM(3, 4.0, Items(ITEMS))):
        refused = veil_json("simulate", items(tmp_path, other), values, "--folder", folder, code=4)
        assert refused["error"]["kind"] == "MismatchError"
    study = items(tmp_path)
    veil("simulate", study, values, "--folder", folder, "--seed", 1, code=4)
    fewer = save_values(tmp_path / "fewer.parquet", pa.table({"basket": baskets()[:-1]}))
    veil("simulate", study, fewer, "--folder", folder, code=4)
    (folder / "round-001.take-001").write_bytes(b"VEILT")
    veil("simulate", study, values, "--folder", folder, code=5)


# -- by roles ----------------------------------------------------------------------------------------------------------


def test_by_roles(tmp_path: Path) -> None:
    folder, study = tmp_path / "run", items(tmp_path)
    document = veil_json("next", folder, study)
    run: StudyRun[Any] = StudyRun(SVIM(3, 4.0, Items(ITEMS)))
    shares, people = [], baskets()
    for number in range(3):
        task = folder / f"round-00{number}.json"
        assert run.round is not None
        assert (document["finished"], document["round"], document["out"]) == (False, number, str(task))
        assert Survey.from_json(task.read_bytes()) == run.round.survey
        shares.append(document["share"])
        some = save_values(tmp_path / "some.parquet", pa.table({"basket": people[number::3]}))
        asked = task if number else folder  # the folder of a run stands for its current round
        veil("randomize", asked, some, "-o", tmp_path / "r.arrow", "--seed", number)
        veil("tally", asked, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
        where = veil_json("next", folder)
        assert (where["round"], where["task"]) == (number, document["task"])
        if number == 0:
            shown = veil("next", folder, tmp_path / "t.bin", "-o", tmp_path / "o.csv")
            assert "a round to go" in shown.stderr
            assert "ask 10 %" in shown.stdout
            assert "1 round answered, round 1 is to ask" in veil("inspect", folder).stdout
            document = veil_json("next", folder)
        elif number == 1:
            document = veil_json("next", folder, tmp_path / "r.arrow")  # reports are as good as their tally
        else:
            document = veil_json("next", folder, tmp_path / "t.bin")
        run.answer(run.round.survey.tally(run.round.survey.randomize(people[number::3], SeededForExperiments(number))))
    assert shares == [0.5, 0.1, 0.4]
    assert document["finished"]
    assert [(row["value"], row["frequency"]) for row in document["rows"]] == [
        (row.value, row.frequency) for row in run.result.rows
    ]
    assert veil_json("next", folder, "-o", tmp_path / "o.csv")["rows"] == document["rows"]
    assert (tmp_path / "o.csv").exists()
    assert "finished" in veil("next", folder, tmp_path / "t.bin", code=3).stderr
    assert "finished" in veil("randomize", folder, some, "-o", tmp_path / "r.arrow", code=3).stderr


def test_a_round_takes_its_own_answer_only(tmp_path: Path) -> None:
    folder, study = tmp_path / "run", items(tmp_path)
    veil("next", folder, study)
    veil("randomize", folder / "round-000.json", saved(tmp_path), "-o", tmp_path / "r.arrow")
    veil("tally", folder / "round-000.json", tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    assert "several rounds" in veil("estimate", study, tmp_path / "t.bin", code=3).stderr
    veil("next", folder, tmp_path / "t.bin")
    assert "several rounds" in veil("estimate", folder, tmp_path / "t.bin", code=3).stderr
    assert "another task" in veil("next", folder, tmp_path / "t.bin", code=4).stderr
    assert "another task" in veil("next", folder, tmp_path / "r.arrow", code=4).stderr
    assert not list(folder.glob("round-001.take-*"))
    veil("next", folder, study)  # the same study: where it stands
    veil("next", folder, items(tmp_path, SVSM(3, 4.0, Items(ITEMS))), code=4)
    assert "no study" in veil("next", tmp_path / "other", code=3).stderr
    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other" / "study.json").write_text('{"kind":"veil-study"}')
    veil("next", tmp_path / "other", code=5)


# -- mistakes ----------------------------------------------------------------------------------------------------------

BAD: list[tuple[list[Any], int, str]] = [
    (["--separator", ""], 3, "separator"),
    (["--column", "name"], 3, "no column"),
    (["--set", "rules=0.5"], 3, "got 'rules'"),
    (["--set", "domain=9"], 3, "set from the command line"),
    (["--level", "1.5"], 3, "between 0 and 1"),
    (["--clip"], 3, "only numbers"),
]


@pytest.mark.parametrize(("options", "code", "message"), BAD)
def test_bad_options_are_refused(tmp_path: Path, options: list[Any], code: int, message: str) -> None:
    out = tmp_path / "out.csv"
    refused = veil("simulate", items(tmp_path), saved(tmp_path, "csv"), *options, "-o", out, code=code)
    assert message in refused.stderr
    assert not out.exists()


def test_bad_files_are_refused(tmp_path: Path) -> None:
    def refused(values: Path, universe: Any = ("tea", "milk", "salt")) -> str:
        study = items(tmp_path, SVIM(1, 1.0, Items(list(universe))))
        done = veil("simulate", study, values, code=3)
        assert "secret77" not in done.output
        return str(done.stderr)

    def lists(*sets: Any, kind: Any = None) -> Path:
        return save_values(tmp_path / "l.parquet", pa.table({"basket": pa.array(sets, kind)}))

    assert "a set holds what is no item" in refused(lists(["tea"], ["secret77"]))
    assert "missing" in refused(lists(["tea", "milk"], None))
    assert "missing" in refused(lists(["tea", "milk"], [None]))
    assert "too few people" in refused(lists(["tea", "milk"]))
    assert "no people" in refused(small(tmp_path, "basket\n"))
    assert "no file" in refused(tmp_path / "none.csv")
    refused(lists("secret77", "tea"))
    refused(lists([1.5]))
    refused(lists([1], [2]))
