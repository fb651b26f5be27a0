"""`veil plan marginals`: attributes from a file or in words, the views that are asked, and what they reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.commands import CliRunner

from veil import Categories, Integers, Interval, Record
from veil.cli.plan import plan
from veil.marginals import CALM, FourierMarginals
from veil.planning import Wishes
from veil.planning import plan as planned
from veil.study import study_from_json

app = typer.Typer(add_completion=False)
app.command()(plan)
app.command("other")(lambda: None)  # with two commands, the first has to be named

ASKED = ("-k", 3, "--epsilon", 1, "--users", 100_000)


def veil(*words: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["plan", "marginals", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


def veil_json(*words: Any, code: int = 0) -> Any:
    return json.loads(veil(*words, "--json", code=code))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = [f"{18 + i % 60},{'fm'[i % 2]},{i % 2},{'nesw'[i % 4]},secret{i}" for i in range(300)]
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["age,sex,smokes,region,name", *rows]))
    return file


def test_attributes_come_from_a_file(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "study.json"
    found = veil_json(people, "--private", "age,sex,smokes,region", *ASKED, "-o", out)
    record = Record.of(age=Integers(18, 77), sex=["f", "m"], smokes=Categories([0, 1]), region=["e", "n", "s", "w"])
    study = study_from_json(out.read_bytes())
    assert study == CALM(1.0, record, k=3, users=100_000)
    assert (found["kind"], found["task"], found["k"]) == ("calm", study.survey.task, 3)
    assert b"secret" not in out.read_bytes()
    assert [row["attribute"] for row in found["attributes"]] == ["age", "sex", "smokes", "region"]
    assert [row["values"] for row in found["attributes"]] == [60, 2, 2, 4]
    option = found["options"][0]
    assert sum(row["views"] for row in found["attributes"]) == option["views"] * int(option["view_size"])


def test_attributes_in_words_come_before_the_file(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "study.json"
    words = ("--attribute", "age=0..100/10", "--attribute", "smokes=2")
    veil(people, "--private", "age,sex", *words, *ASKED, "-o", out)
    study = study_from_json(out.read_bytes())
    record = Record.of(age=Interval(0, 100, cells=10), sex=["f", "m"], smokes=2)
    assert study.survey.domain == record
    veil("--attribute", "age=0..100/10", "--attribute", "sex=f,m", "--attribute", "smokes=2", *ASKED, "-o", out)
    assert study_from_json(out.read_bytes()) == study
    veil(people, "--private", "age", "--private", "sex", *words, *ASKED, "-o", out)
    assert study_from_json(out.read_bytes()) == study


def test_the_table_says_what_to_expect(people: Path) -> None:
    cells = ("--attribute", "age=0..100/10", "--set", "sets=3")
    words = (people, "--private", "age,sex,smokes,region", *cells, *ASKED)
    text, found = veil(*words), veil_json(*words)
    assert "people hold records of 4 attributes: age (10 values), sex (2 values)" in " ".join(text.split())
    assert "combinations of values: 160" in text
    for said in (
        "CALM",
        "AllMarginals",
        "FullContingency",
        "FourierMarginals",
        "marginal's",
        "age",
        "region",
        "one of 4 values",
        "numbers from 0 to 100",
    ):
        assert said in text
    option = found["options"][0]
    assert 0 < option["cell's_error"] < 0.05
    assert 0 < option["marginal's_error"] < 0.05
    more = veil_json(*words[:-1], 10_000_000)["options"][0]
    assert more["marginal's_error"] < option["marginal's_error"] / 20
    done = CliRunner().invoke(app, ["plan", "marginals", *map(str, words)])
    assert "stand in the study, which is public" in done.stderr


def test_what_to_know_beside_the_table(people: Path) -> None:
    words = (people, "--private", "age,sex,smokes,region", "--epsilon", 1, "--users", 3000)
    notes = veil_json(*words)["options"][0]["notes"]
    assert notes[0].startswith("3 of 6 pairs of attributes stand in no view")
    assert notes[0].endswith("--set sets=2 asks for all of them")
    assert notes[1].startswith("0 of 4 sets of 3 attributes are in a view: their tables are reconstructed")
    assert "single attributes are measured, with an error of " in notes[1]
    assert notes[1].endswith("--set sets=3 asks for all of them")
    assert notes[2].endswith("--attribute age=10..80/7")
    coarse = (*words, "--attribute", "age=10..80/7")
    pairs = veil_json(*coarse, "--set", "sets=2")["options"]
    assert [note[:30] for note in pairs[0]["notes"]] == ["0 of 4 sets of 3 attributes ar"]
    assert "tables of 2 attributes are measured" in pairs[0]["notes"][0]
    assert pairs[0]["cell's_error"] is pairs[0]["marginal's_error"] is None  # not to be compared with measured triples
    assert pairs[1]["cell's_error"] > 0
    triples = veil_json(*coarse, "--set", "sets=3")["options"][0]
    assert triples["notes"] == []
    assert triples["cell's_error"] > 0


def test_advice_is_given_where_it_helps() -> None:
    words = [word for name in "abcdef" for word in ("--attribute", f"{name}=2")]
    few = ("--epsilon", 1, "--users", 50, "-k", 2)
    (note,) = veil_json(*words, *few)["options"][0]["notes"]
    assert note.startswith("3 of 15 pairs of attributes are in a view: other tables are reconstructed")
    assert note.endswith("--set sets=2 asks for all of them")
    assert veil_json(*words, *few, "--set", "sets=2")["options"][0]["notes"] == []
    large = [word for name in "abcdef" for word in ("--attribute", f"{name}=1500")]
    (note,) = veil_json(*large, *few)["options"][0]["notes"]
    assert "--set" not in note


def test_other_parameters_are_set_by_name(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "study.json"
    words = (people, "--private", "sex,smokes,region", *ASKED, "-o", out)
    found = veil_json(*words, "--set", "sets=3", "--set", "inference=separate")
    study = study_from_json(out.read_bytes())
    assert isinstance(study, CALM)
    assert (study.sets, study.inference) == (3, "separate")
    assert found["options"][0]["views"] == 1
    assert "asks everybody for one and the same view" in found["why"]
    alone = veil_json(*words, "--set", "sets=2", "--set", "inference=separate")["options"][0]
    assert (alone["views"], alone["view_size"], alone["marginal's_error"]) == (3, "2", None)
    assert veil_json(*words, "--set", "threshold=0.5")["options"][0]["views"] <= 3


def test_views_are_named(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "study.json"
    words = (people, "--private", "sex,smokes,region", *ASKED, "-o", out)
    veil(*words, "--set", "sets=sex+smokes, smokes+region")
    study = study_from_json(out.read_bytes())
    assert isinstance(study, CALM)
    assert study.sets == (("sex", "smokes"), ("smokes", "region"))
    assert "there is no attribute 'age'; the attributes are" in veil(*words, "--set", "sets=sex+age", code=3)


def test_a_kind_of_study_takes_records_too(tmp_path: Path) -> None:
    out = tmp_path / "study.json"
    words = ("plan", "calm", "--attribute", "a=2", "--attribute", "b=3", "--epsilon", "2", "-k", "2", "--users", "5000")
    done = CliRunner().invoke(app, [*words, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert study_from_json(out.read_bytes()) == CALM(2.0, Record.of(a=2, b=3), k=2, users=5000)
    done = CliRunner().invoke(app, ["plan", "calm", "--epsilon", "2"])
    assert "expected FILE with --private, or --attribute" in " ".join(done.output.split())


TWO = ("--attribute", "a=2", "--attribute", "b=2")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 3, "marginals are of several attributes: expected FILE with --private"),
        (("--attribute", "a=2"), 3, "a joint distribution needs at least two attributes"),
        ((*TWO, "-k", 3), 3, "k is the number of attributes of a marginal, from 1 to the record's 2"),
        ((*TWO, "--attribute", "c"), 3, "c is no attribute: an attribute is NAME=VALUES"),
        ((*TWO, "--attribute", "c=0-100/10"), 3, "attribute c: an attribute is NAME=VALUES"),
        ((*TWO, "--attribute", "c=100..0/10"), 3, "attribute c: 100 is not below 0: expected the smaller end first"),
        ((*TWO, "--attribute", "c=9..1"), 3, "attribute c: 9 is not below 1"),
        ((*TWO, "--attribute", "c=f,f"), 3, "attribute c: labels must differ"),
        ((*TWO, "--attribute", "a=3"), 2, "--attribute a is given twice"),
        (("--attribute", "a=1", "--attribute", "b=2"), 3, "attribute 'a' has one value only"),
        (("--attribute", "a=100000", "--attribute", "b=100000"), 3, "put values of the largest attributes together"),
        ((*TWO, "--private", "a,b"), 2, "FILE and --private go together"),
        (
            (*TWO, "--domain", 4),
            2,
            "--domain does not apply to marginals, which takes FILE, --private, --attribute, -k",
        ),
    ],
)
def test_bad_words(words: tuple[Any, ...], code: int, said: str) -> None:
    assert said in " ".join(veil(*words, "--epsilon", 1, code=code).replace("│", " ").split())


@pytest.mark.parametrize(
    ("private", "code", "said"),
    [
        ("age,sex,shoes", 3, "got 'shoes'"),
        ("age,sex,height", 3, "expected a column (age, sex, smokes, region, name), got 'height'"),
        ("agee,sex", 3, "got 'agee'; did you mean age?"),
        ("age", 3, "at least two attributes"),
        ("age,age", 2, "--private names columns that differ"),
        ("age,", 2, "--private names columns that differ"),
    ],
)
def test_bad_columns(people: Path, private: str, code: int, said: str) -> None:
    output = veil(people, "--private", private, "--epsilon", 1, code=code)
    assert said in " ".join(output.replace("│", " ").split())
    assert "secret" not in output


def test_an_attribute_that_is_no_column(people: Path) -> None:
    words = ("--private", "age,sex", "--attribute", "aeg=0..100/10", "--epsilon", 1)
    said = veil(people, *words, code=3)
    assert "got 'aeg'; did you mean age?" in " ".join(said.replace("│", " ").split())


def test_many_labels_are_warned_of(people: Path) -> None:
    words = ["plan", "marginals", str(people), "--private", "sex,name", "--epsilon", "1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "name has 300 different labels" in " ".join(done.stderr.split())
    assert "different labels" not in CliRunner().invoke(app, [*words[:4], "sex,region", *words[5:]]).stderr


def test_bad_files(people: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    rest = ("--private", "age,sex", "--epsilon", 1)
    assert "is empty" in veil(empty, *rest, code=3)
    assert "there is no file" in veil(tmp_path / "none.csv", *rest, code=3)
    assert "FILE and --private go together" in " ".join(veil(people, "--epsilon", 1, code=2).split())
    assert veil(people, *rest, "-o", people, code=3)


def test_many_attributes() -> None:
    record = Record(tuple((f"a{i}", Categories.range(2)) for i in range(100)))
    choice = planned("marginals", Wishes(1.0, record, users=10**6))
    assert choice.facts["combinations_of_values"] == 1.27e30
    assert all(row["views"].value for row in choice.attributes)
    assert [option.name for option in choice.options] == ["CALM", "FourierMarginals"]  # the others are beyond reach


def test_the_plan_in_python() -> None:
    record = Record(tuple((f"a{i}", Categories.range(2)) for i in range(8)))
    choice = planned("marginals", Wishes(2.0, record, users=2**16, k=3))
    assert choice.taken.errors["views"].value == 14
    assert choice.facts["share_of_marginals_held_whole"] == 1.0
    assert [option.name for option in choice.options] == ["CALM", "AllMarginals", "FullContingency", "FourierMarginals"]
    assert all(
        choice.taken.error("marginal's error") < option.error("marginal's error") for option in choice.options[1:]
    )
    fourier = planned("marginals", Wishes(2.0, record, users=2**16, k=3, method="FourierMarginals"))
    assert fourier.study == FourierMarginals(2.0, record, k=3)
    assert {row["views"].value for row in fourier.attributes} == {None}
    assert planned("marginals", Wishes(2.0, record, users=2**16)).study == choice.study
