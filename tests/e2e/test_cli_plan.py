"""`veil plan KIND`: for every goal, and for a study that only this test knows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest
import typer
from tests.support.commands import CliRunner

from veil import GRR, OLH, Categories, Integers, Interval, Items, Survey, Text, choose
from veil.cli.plan import plan
from veil.domain import Domain
from veil.histogram import Histogram
from veil.hitters import PEM
from veil.itemsets import SVSM
from veil.numeric import Hierarchy, HybridMean
from veil.results.estimate import Estimate
from veil.study import STUDIES, Collection, OneRound, study_from_json

app = typer.Typer(add_completion=False)
app.command()(plan)
app.command("other")(lambda: None)  # with two commands, the first has to be named


@dataclass(frozen=True)
class Shyness(OneRound[Estimate]):
    """How shy people are, to show that any study can be planned. Guarantee: GRR's."""

    epsilon: float
    held: Domain
    steps: int
    loud: bool = False
    kind: ClassVar[str] = "shyness"

    @cached_property
    def survey(self) -> Survey:
        return Survey(GRR(self.epsilon, self.held))

    def answer(self, collected: Collection) -> Estimate:
        return collected.estimate((0,), collected.tally().part(0))


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, Shyness.kind, Shyness)


def veil(*words: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["plan", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


def veil_json(*words: Any, code: int = 0) -> Any:
    return json.loads(veil(*words, "--json", code=code))


def written(path: Path, *words: Any) -> Any:
    found = veil_json(*words, "-o", path)
    study = study_from_json(path.read_bytes())
    assert (found["out"], found["kind"], found["task"]) == (str(path), study.kind, study.survey.task)
    return study


def test_a_histogram_shows_every_oracle_and_writes_the_chosen(tmp_path: Path) -> None:
    words = ("histogram", "--domain", 1024, "--epsilon", 1, "--users", 10_000)
    choice = choose(1024, 1.0, 10_000)
    found = veil_json(*words)
    assert [option["name"] for option in found["options"]] == [option.name for option in choice.options]
    assert (found["chosen"], found["why"]) == (choice.oracle.name, choice.why)
    assert written(tmp_path / "study.json", *words) == Histogram(choice.oracle)
    text = veil(*words)
    assert all(option.name in text for option in choice.options)
    assert "one of 1,024 values" in text
    assert written(tmp_path / "study.json", *words, "--oracle", "olh") == Histogram(OLH(1.0, 1024))
    assert veil_json(*words, "--max-report-bytes", 4)["chosen"] == "PGR"


def test_labels_come_from_a_list_or_a_file(tmp_path: Path) -> None:
    names = ["tea", "coffee", "[bold]milk[/]", "NA"]
    (tmp_path / "labels.txt").write_text("\n".join(names) + "\n")
    asked = ("--epsilon", 1, "--method", "OLH")
    first = written(tmp_path / "a.json", "histogram", "--labels", ", ".join(names), *asked)
    second = written(tmp_path / "b.json", "histogram", "--labels-file", tmp_path / "labels.txt", *asked)
    assert first == second == Histogram(OLH(1.0, Categories(names)))


def test_every_goal_writes_a_study(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("\n".join(map(str, range(30))))
    few, out = ("--epsilon", 1, "--users", 500), tmp_path / "study.json"
    numbers = written(out, "numbers", "--range", 0, 9, "--integers", "--method", "Hierarchy", *few)
    assert numbers == Hierarchy(1.0, Integers(0, 9))
    assert written(out, "numbers", "--range", 0, 9, "--integers", "--rough", *few) == numbers
    assert written(out, "mean", "--range", -40, 60, *few) == HybridMean(1.0, Interval(-40, 60))
    assert written(out, "variance", "--range", "2026-01-01", "2027-01-01", *few).kind == "two-phase-variance"
    letters = ("--set", "alphabet=abc", "--set", "budget=5000")
    hitters = written(out, "hitters", "--max-bytes", 4, "-k", 3, *letters, *few)
    assert hitters == PEM(1.0, Text(4), 3, alphabet="abc", budget=5000)
    sets = written(out, "items", "--universe", tmp_path / "items.txt", "-k", 3, "--sets", *few)
    assert sets == SVSM(3, 1.0, Items(Categories(list(range(30)))))


def test_hitters_show_their_rounds() -> None:
    words = ("hitters", "--bits", 32, "-k", 4, "--epsilon", 2)
    rounds = veil_json(*words)["rounds"]
    assert [row["bits"] for row in rounds][-1] == 32
    assert all(f"{row['candidates']:,}" in veil(*words) for row in rounds)


def test_a_study_that_nobody_foresaw(tmp_path: Path) -> None:
    words = ("shyness", "--labels", "shy,bold", "--epsilon", 2, "--set", "steps=3")
    held = Categories(["shy", "bold"])
    assert written(tmp_path / "s.json", *words) == Shyness(2.0, held, 3)
    assert written(tmp_path / "s.json", *words, "--set", "loud=yes") == Shyness(2.0, held, 3, loud=True)
    assert "A study of kind shyness" in veil(*words)
    assert "needs steps: expected --set steps=VALUE" in veil("shyness", "--domain", 4, "--epsilon", 1, code=3)
    assert "got 'noise'" in veil(*words, "--set", "noise=1", code=3)
    assert "steps is an integer" in veil(*words[:-1], "steps=few", code=3)


def test_a_list_of_everything() -> None:
    listed = veil_json()
    assert listed == veil_json("--list") == veil_json("histogram", "--list")
    assert listed["studies"]["shyness"] == "How shy people are, to show that any study can be planned."
    assert set(listed["goals"]) == {"histogram", "numbers", "mean", "variance", "hitters", "items", "marginals", "sql"}
    assert "shyness" in veil()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["histogram", "--range", 0, 1], 2, "--range does not apply to histogram, which takes --domain, --labels"),
        (["mean", "--range", 0, 1, "--buckets", 4], 2, "--buckets does not apply to mean"),
        (["shyness", "--domain", 4, "-k", 3], 2, "-k does not apply to shyness"),
        (["histogram", "--domain", 4, "--labels", "a,b"], 2, "say once what people hold"),
        (["hierarchy", "--domain", 4, "--integers"], 2, "--integers goes with --range"),
        (["histogram", "--domain", 4, "--set", "post"], 2, "NAME=VALUE"),
        (["histogram"], 3, "expected --domain, --labels or --labels-file"),
        (["hitters", "--bits", 8], 3, "expected -k K"),
        (["nonsense"], 3, "expected a goal"),
        (["histogram", "--labels", "tea,,coffee"], 3, "between two commas"),
        (["histogram", "--domain", 4, "--method", "XYZ"], 3, "expected a method for histogram"),
        (["histogram", "--domain", 1024, "--method", "OUE", "--max-report-bytes", 3], 3, "fits into 3 bytes"),
        (["histogram", "--domain", 4, "--max-report-bytes", 0], 3, "at least one"),
        (["histogram", "--labels-file", "nowhere.txt"], 3, "nowhere.txt"),
        (["histogram", "--domain", 4, "-o", "nowhere/study.json"], 3, "nowhere"),
        (["mean", "--range", 1, 0], 3, ""),
        (["mean", "--range", "soon", "later"], 3, "two numbers or two times"),
        (["mean", "--range", 1.5, 3, "--integers"], 3, "two integers"),
    ],
)
def test_mistakes_are_one_clear_sentence(words: list[Any], code: int, said: str) -> None:
    text = " ".join(veil(*words, "--epsilon", 1, code=code).replace("│", " ").split())
    assert said in text
    if code == 3:
        assert said in veil_json(*words, "--epsilon", 1, code=code)["error"]["message"]


def test_epsilon_is_needed_and_checked() -> None:
    assert "--epsilon" in veil("histogram", "--domain", 4, code=2)
    veil("histogram", "--domain", 4, "--epsilon", "nan", code=3)


def test_a_kind_that_no_text_can_say_is_made_in_python(tmp_path: Path) -> None:
    universe = tmp_path / "items.txt"
    universe.write_text("tea\nmilk\n")
    assert "made in Python" in veil("item-mining", "--epsilon", 1, "--universe", universe, "-k", 1, code=3)
