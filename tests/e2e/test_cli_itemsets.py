"""`veil itemsets`: a whole campaign on a file, again after an interruption, by roles in a folder, and mistakes."""

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
from tests.e2e.test_cli import save_values, small, veil, veil_json

from veil import Items, Survey, simulate
from veil.campaign import CampaignRun
from veil.cli import mining
from veil.entropy import Seeded
from veil.itemsets import SVIM, SVSM
from veil.simulation import walk_rounds

ITEMS = sorted(["tea", "milk", "salt", "rice", "soap", "bread", "jam", "egg", "oil", "fish", "ham", "nut"])
ASKED = ["--epsilon", 4, "-k", 3]
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


def universe(tmp_path: Path, items: Any = ITEMS) -> Path:
    return small(tmp_path, "\n".join(map(str, items)) + "\n", "items.txt")


def trial(*options: Any, code: int = 0) -> Any:
    return veil_json("itemsets", "simulate", *options, code=code)


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "separator"), [("parquet", ";"), ("csv", ";"), ("tsv", " | "), ("csv", " ")])
def test_items_are_those_of_the_library(tmp_path: Path, ending: str, separator: str) -> None:
    out = tmp_path / "out.csv"
    options = [saved(tmp_path, ending, separator), *ASKED, "--seed", 2, "--separator", separator]
    document = trial(*options, "--universe", universe(tmp_path), "-o", out)
    found = simulate(SVIM(3, 4.0, ITEMS), baskets(), seed=2)
    assert [(row["value"], row["frequency"], row["low"]) for row in document["items"]] == [
        (row.value, row.frequency, row.low) for row in found.rows
    ]
    assert {row["value"] for row in document["items"]} == set(ITEMS[:3])
    assert all(row["significant"] for row in document["items"])
    assert [(step["name"], step["people"], step["length"]) for step in document["rounds"]] == [
        (step.name, step.people, step.length) for step in found.history
    ]
    assert (document["people"], document["universe"]) == (PEOPLE, 12)
    assert pacsv.read_csv(out)["value"].to_pylist() == found.items
    assert trial(*options)["items"] == document["items"]  # the same items, listed from the sets
    assert trial(*options[:-4], "--separator", separator)["items"] != document["items"]


def test_sets_and_rules(tmp_path: Path) -> None:
    options = [saved(tmp_path), *ASKED[:-1], 6, "--seed", 1, "--universe", universe(tmp_path)]
    document = trial(*options, "--sets", "--rules", 0.6)
    found = simulate(SVSM(6, 4.0, ITEMS), baskets(), seed=1)
    assert [tuple(row["items"]) for row in document["itemsets"]] == found.itemsets
    assert (ITEMS[0], ITEMS[1]) in found.itemsets
    rules = found.rules(0.6)
    assert [(rule["given"], rule["then"], rule["lift"]) for rule in document["rules"]] == [
        (list(rule.given), list(rule.then), rule.lift) for rule in rules
    ]
    assert any(rule.given == (ITEMS[0],) and rule.then == (ITEMS[1],) for rule in rules)
    assert "rules" not in trial(*options, "--sets")
    shown = veil("itemsets", "simulate", *options, "--sets", "--rules", 0.6)
    assert f"{ITEMS[0]} + {ITEMS[1]}" in shown.stdout
    assert "also holds" in shown.stdout
    for ending in ("csv", "parquet", "json"):
        veil("itemsets", "simulate", *options, "--sets", "-o", tmp_path / f"out.{ending}")
    listed = [[str(item) for item in items] for items in found.itemsets]
    assert [row["items"] for row in pq.read_table(tmp_path / "out.parquet").to_pylist()] == listed
    assert [row["items"] for row in json.loads((tmp_path / "out.json").read_text())] == listed
    assert pacsv.read_csv(tmp_path / "out.csv")["items"].to_pylist() == [";".join(items) for items in listed]


def test_whole_numbers_as_items(tmp_path: Path) -> None:
    numbers = [[10 * ITEMS.index(item) - 20 for item in one] for one in baskets()]
    values = save_values(tmp_path / "n.parquet", pa.table({"basket": numbers}))
    names = universe(tmp_path, range(-20, 100, 10))
    document = trial(values, *ASKED, "--seed", 2, "--universe", names)
    assert {row["value"] for row in document["items"]} == {-20, -10, 0}
    assert document["items"] == trial(values, *ASKED, "--seed", 2)["items"]
    folder = tmp_path / "campaign"
    veil("itemsets", "plan", folder, *ASKED, "--universe", names)
    text = small(tmp_path, "basket\n" + "\n".join(";".join(map(str, one)) for one in numbers) + "\n")
    done = veil_json("randomize", folder / "round-000.json", text, "-o", tmp_path / "r.arrow")
    assert done["people"] == PEOPLE
    bad = small(tmp_path, "basket\n10;secret77\n", "bad.csv")
    refused = veil("randomize", folder / "round-000.json", bad, "-o", tmp_path / "r.arrow", code=3)
    assert "whole numbers" in refused.stderr
    assert "secret77" not in refused.output


# -- interruptions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [True, False])
def test_after_an_interruption_it_goes_on(tmp_path: Path, seeded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def watched(run: CampaignRun, codes: Any, order: Any, devices: Any) -> Any:
        numbered = mining.Items(len(codes)).encode([[i] for i in range(len(codes))])  # to see who is asked

        class Seen:
            def __len__(self) -> int:
                return len(codes)

            def __getitem__(self, rows: Any) -> Any:
                asked.append(set(numbered[rows].items.tolist()))
                return codes[rows]

        return walk_rounds(run, Seen(), order, devices)

    monkeypatch.setattr(mining, "walk_rounds", watched)
    folder, values = tmp_path / "campaign", saved(tmp_path)
    options = [values, *ASKED, "--sets", "--folder", folder, *(["--seed", 4] if seeded else [])]
    whole = trial(*options)
    assert (whole["answered_before"], len(whole["rounds"])) == (0, 5)
    first, asked[:] = list(asked), []
    assert sum(map(len, first)) == PEOPLE == len(set().union(*first))
    assert trial(*options)["answered_before"] == 5
    assert asked == []
    for late in (2, 3, 4):
        (folder / f"round-00{late}.tally").unlink()
    again = trial(*options)
    assert again["answered_before"] == 2
    assert asked == first[2:]  # the others were asked before: nobody is asked twice
    assert (again["itemsets"] == whole["itemsets"]) is seeded
    shown = veil("itemsets", "simulate", *options).stdout
    assert "5 rounds had been answered before" in shown


def test_a_folder_holds_one_campaign(tmp_path: Path) -> None:
    folder, values = tmp_path / "campaign", saved(tmp_path)
    options = [values, "--folder", folder, "--universe", universe(tmp_path)]
    trial(*options, *ASKED)
    for other in (["--epsilon", 4, "-k", 2], ["--epsilon", 3, "-k", 3], [*ASKED, "--sets"], [*ASKED, "--seed", 1]):
        assert trial(*options, *other, code=4)["error"]["kind"] == "MismatchError"
    fewer = save_values(tmp_path / "fewer.parquet", pa.table({"basket": baskets()[:-1]}))
    veil("itemsets", "simulate", fewer, *options[1:], *ASKED, code=4)
    (folder / "round-001.tally").write_bytes(b"VEILT")
    veil("itemsets", "simulate", *options, *ASKED, code=5)


# -- by roles ----------------------------------------------------------------------------------------------------------


def test_by_roles(tmp_path: Path) -> None:
    folder, names = tmp_path / "campaign", universe(tmp_path)
    document = veil_json("itemsets", "plan", folder, *ASKED, "--universe", names)
    run = CampaignRun(SVIM(3, 4.0, Items(ITEMS)))
    shares, people = [], baskets()
    for number in range(3):
        task = folder / f"round-00{number}.json"
        assert run.round is not None
        assert (document["finished"], document["round"], document["out"]) == (False, number, str(task))
        assert Survey.from_json(task.read_bytes()) == run.round.survey
        shares.append(document["share"])
        some = save_values(tmp_path / "some.parquet", pa.table({"basket": people[number::3]}))
        veil("randomize", task, some, "-o", tmp_path / "r.arrow", "--seed", number)
        veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
        where = veil_json("itemsets", "next", folder)
        assert (where["round"], where["task"]) == (number, document["task"])
        if number == 0:
            shown = veil("itemsets", "next", folder, tmp_path / "t.bin", "--rules", 0.5)
            assert "a round to go" in shown.stderr
            assert "ask 10 %" in shown.stdout
            document = veil_json("itemsets", "next", folder)
        else:
            document = veil_json("itemsets", "next", folder, tmp_path / "t.bin")
        run.answer(run.round.survey.tally(run.round.survey.randomize(people[number::3], Seeded(number))))
    assert shares == [0.5, 0.1, 0.4]
    assert document["finished"]
    assert [(row["value"], row["frequency"]) for row in document["items"]] == [
        (row.value, row.frequency) for row in run.result.rows
    ]
    assert veil_json("itemsets", "next", folder)["items"] == document["items"]
    assert "finished" in veil("itemsets", "next", folder, tmp_path / "t.bin", code=3).stderr
    veil("itemsets", "next", folder, "--rules", 0.5, code=2)


def test_a_round_takes_its_own_answer_only(tmp_path: Path) -> None:
    folder, names = tmp_path / "campaign", universe(tmp_path)
    veil("itemsets", "plan", folder, *ASKED, "--universe", names)
    veil("randomize", folder / "round-000.json", saved(tmp_path), "-o", tmp_path / "r.arrow")
    veil("tally", folder / "round-000.json", tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    veil("itemsets", "next", folder, tmp_path / "t.bin")
    assert "another task" in veil("itemsets", "next", folder, tmp_path / "t.bin", code=4).stderr
    assert not (folder / "round-001.tally").exists()
    veil("itemsets", "plan", folder, *ASKED, "--universe", names)  # the same campaign: where it stands
    veil("itemsets", "plan", folder, *ASKED, "--universe", names, "--sets", code=4)
    assert "no campaign" in veil("itemsets", "next", tmp_path / "other", code=3).stderr
    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other" / "campaign.json").write_text('{"kind":"veil-itemsets"}')
    veil("itemsets", "next", tmp_path / "other", code=5)


# -- mistakes ----------------------------------------------------------------------------------------------------------

BAD: list[tuple[list[Any], int, str]] = [
    (["--epsilon", 1, "-k", 0], 3, "at least 1"),
    (["--epsilon", 0, "-k", 1], 3, "epsilon"),
    ([*ASKED, "--rules", 0.5], 2, "--sets"),
    ([*ASKED, "--sets", "--rules", -1], 3, "confidence"),
    ([*ASKED, "--separator", ""], 3, "separator"),
    ([*ASKED, "--column", "name"], 3, "no column"),
    (["-k", 3], 2, "Missing option"),
]


@pytest.mark.parametrize(("options", "code", "message"), BAD)
def test_bad_options_are_refused(tmp_path: Path, options: list[Any], code: int, message: str) -> None:
    out = tmp_path / "out.csv"
    refused = veil("itemsets", "simulate", saved(tmp_path, "csv"), *options, "-o", out, code=code)
    assert message in refused.stderr
    assert not out.exists()


def test_bad_files_are_refused(tmp_path: Path) -> None:
    def refused(values: Path, *options: Any) -> str:
        done = veil("itemsets", "simulate", values, *ASKED, *options, code=3)
        assert "secret77" not in done.output
        return str(done.stderr)

    def lists(*sets: Any, kind: Any = None) -> Path:
        return save_values(tmp_path / "l.parquet", pa.table({"basket": pa.array(sets, kind)}))

    some = universe(tmp_path, ["tea", "milk", "salt"])
    assert "a set holds what is no item" in refused(lists(["tea"], ["secret77"]), "--universe", some)
    assert "whole numbers" in refused(lists([1], [2]), "--universe", some)
    assert "column of lists" in refused(lists("secret77", "tea"))
    assert "text or of whole numbers" in refused(lists([1.5]))
    assert "missing" in refused(lists(["tea", "milk"], None))
    assert "missing" in refused(lists(["tea", "milk"], [None]))
    assert "nothing to mine" in refused(lists([], [], kind=pa.list_(pa.string())))
    assert "a universe of" in refused(lists(["tea"]))
    assert "too few people" in refused(lists(["tea", "milk"]))
    assert "no people" in refused(small(tmp_path, "basket\n"))
    assert "no file" in refused(tmp_path / "none.csv")
    assert "empty" in refused(lists(["tea"]), "--universe", small(tmp_path, "\n", "nothing.txt"))
