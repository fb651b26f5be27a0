"""Joint distributions through the commands: the whole way on a file of records, marginals, made-up people, refusals."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_study, save_values, small, veil, veil_json

from veil import GRR, Integers, Interval, Record, Survey
from veil.errors import InputError, MismatchError
from veil.histogram import Histogram
from veil.marginals import CALM, AllMarginals, BinaryCALM, FourierMarginals, FullContingency, SplitEM
from veil.results import load
from veil.study import TallyCollection

AGES = ["18-39", "40-64", "65+"]
PERSON = Record.of(age=AGES, sex=["f", "m"], smokes=2, children=Integers(0, 3), region=["01", "02", "10"])
STUDY = CALM(4.0, PERSON, k=2, sets=2)
PEOPLE = 20_000


@cache
def people() -> pa.Table:
    """Who is older smokes more, and a column that nobody asks for stands in between."""
    draw = np.random.default_rng(1)
    age, sex = draw.integers(0, 3, PEOPLE), draw.integers(0, 2, PEOPLE)
    smokes = (draw.random(PEOPLE) < 0.1 + 0.35 * age).astype(np.int64)
    columns = {
        "name": [f"secret {i}" for i in range(PEOPLE)],
        "smokes": smokes,
        "age": np.array(AGES)[age],
        "region": np.array(["01", "02", "10"])[draw.integers(0, 3, PEOPLE)],
        "children": draw.integers(0, 4, PEOPLE),
        "sex": np.array(["f", "m"])[sex],
    }
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def true_share(**held: Any) -> float:
    frame = people().to_pandas()
    return float(np.mean(np.logical_and.reduce([frame[name] == value for name, value in held.items()])))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study, its people, their reports and their tally."""
    made = tmp_path_factory.mktemp("marginals")
    study, values = save_study(made, STUDY), save_values(made / "people.parquet", people())
    veil("randomize", study, values, "-o", made / "reports.arrow", "--seed", 1)
    veil("tally", study, made / "reports.arrow", "-o", made / "tally.bin")
    return made


def study_and_tally(folder: Path) -> tuple[Path, Path]:
    return folder / "study.json", folder / "tally.bin"


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "tsv", "arrow"])
def test_every_kind_of_file_gives_the_same_tally(folder: Path, tmp_path: Path, ending: str) -> None:
    """By the names of columns, in any order; labels that look like numbers stay labels."""
    study, tally = study_and_tally(folder)
    values = save_values(tmp_path / f"people.{ending}", people())
    veil("randomize", study, values, "-o", tmp_path / "r.arrow", "--seed", 1)
    veil("tally", study, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    assert (tmp_path / "t.bin").read_bytes() == tally.read_bytes()


def test_booleans_are_labels_or_0_and_1_in_every_kind_of_file(tmp_path: Path) -> None:
    study = save_study(tmp_path, CALM(4.0, Record.of(smokes=["false", "true"], sex=["f", "m"]), k=2, sets=2))
    table, tallies = pa.table({"sex": ["f", "m", "m"], "smokes": [True, False, True]}), []
    for ending in ("csv", "parquet"):
        veil("randomize", study, save_values(tmp_path / f"v.{ending}", table), "-o", tmp_path / "r.arrow", "--seed", 1)
        veil("tally", study, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
        tallies.append((tmp_path / "t.bin").read_bytes())
    assert tallies[0] == tallies[1]
    numbers = save_study(tmp_path, CALM(4.0, Record.of(smokes=2, sex=["f", "m"]), k=2, sets=2))
    veil("randomize", numbers, tmp_path / "v.parquet", "-o", tmp_path / "r.arrow")
    three = save_study(tmp_path, CALM(4.0, Record.of(smokes=3, sex=["f", "m"]), k=2, sets=2))
    said = refused("randomize", three, tmp_path / "v.parquet", "-o", tmp_path / "r.arrow")
    assert "attribute 'smokes': expected integers from 0 to 2, got a column of booleans" in said


def test_without_names_every_attribute_stands_alone(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "alone.csv"
    found = veil_json("estimate", *study_and_tally(folder), "-o", out, "--top", 20)
    assert (found["kind"], found["people"], found["views"], found["attributes"]) == ("marginals", PEOPLE, 10, 5)
    assert [(row["attribute"], row["value"]) for row in found["rows"]][:5] == [
        *(("age", label) for label in AGES),
        *(("sex", label) for label in "fm"),
    ]
    for row in found["rows"][:5]:
        assert abs(row["frequency"] - true_share(**{row["attribute"]: row["value"]})) < 0.03
    assert pacsv.read_csv(out).num_rows == 3 + 2 + 2 + 4 + 3


def test_one_marginal_beside_its_sugar_and_the_library(folder: Path, tmp_path: Path) -> None:
    study, tally = study_and_tally(folder)
    out, whole, picture = tmp_path / "m.parquet", tmp_path / "m.result.json", tmp_path / "m.svg"
    found = veil_json("estimate", study, tally, "--marginal", "smokes,age", "-o", out, "--plot", picture)
    assert found == veil_json("estimate", study, tally, "--set", "marginal=smokes, age") | {
        "out": str(out),
        "plot": str(picture),
    }
    assert [(row["smokes"], row["age"]) for row in found["rows"]] == [(s, age) for s in (0, 1) for age in AGES]
    for row in found["rows"]:
        assert abs(row["frequency"] - true_share(smokes=row["smokes"], age=row["age"])) < 0.03
    assert abs(found["rows"][0]["frequency"] - true_share(smokes=1, age="18-39")) > 0.1  # another cell would be seen
    table = pq.read_table(out)
    assert table.column_names[:4] == ["smokes", "age", "frequency", "count"]
    assert table["frequency"].to_pylist() == [row["frequency"] for row in found["rows"]]
    assert "<svg" in picture.read_text()
    veil("estimate", study, tally, "--marginal", "smokes,age", "-o", whole)
    again: Any = load(whole)
    assert again.marginal(["smokes", "age"]).frequencies.tolist() == [row["frequency"] for row in found["rows"]]
    shown = veil("estimate", study, tally, "--marginal", "smokes,age").stdout
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "18-39" in shown


def test_the_truth_beside_it(folder: Path, tmp_path: Path) -> None:
    study, values = folder / "study.json", folder / "people.parquet"
    options = ["simulate", study, values, "--seed", 3, "--truth"]
    for row in veil_json(*options, "--marginal", "sex,smokes,age"[4:])["rows"]:
        assert row["truth"] == pytest.approx(true_share(smokes=row["smokes"], age=row["age"]))
        assert abs(row["frequency"] - row["truth"]) < 0.03
    alone = veil_json(*options, "--top", 20)["rows"]
    assert sum(row["truth"] for row in alone) == pytest.approx(5)
    by_region = {row["value"]: row["truth"] for row in alone if row["attribute"] == "region"}
    assert by_region["10"] == pytest.approx(true_share(region="10"))
    first = veil_json(*options, "--marginal", "smokes,age", "--top", 4, "-o", tmp_path / "truth.csv")
    assert (len(first["rows"]), first["more"]) == (4, 2)
    written = pacsv.read_csv(tmp_path / "truth.csv")  # a file has every row
    assert (written.num_rows, written.column_names[-2:]) == (6, ["truth", "covered"])
    assert sum(written["truth"].to_pylist()) == pytest.approx(1)


def test_conditional_shares_beside_the_truth(folder: Path) -> None:
    study, values = folder / "study.json", folder / "people.parquet"
    found = veil_json("simulate", study, values, "--seed", 3, "--truth", "--marginal", "smokes", "--given", "age")
    for row in found["rows"]:
        among = true_share(smokes=row["smokes"], age=row["age"]) / true_share(age=row["age"])
        assert row["truth"] == pytest.approx(among)
        assert abs(row["frequency"] - row["truth"]) < 0.06


def test_what_no_view_has_is_reconstructed(folder: Path) -> None:
    found = veil_json("estimate", *study_and_tally(folder), "--marginal", "age,sex,smokes")
    assert (found["measured"], found["cells"]) == (False, 12)
    assert any("maximum entropy" in remark for remark in found["remarks"])
    assert sum(row["frequency"] for row in found["rows"]) <= 1.0 + 1e-9


def test_compare_by_the_error_of_marginals(folder: Path, tmp_path: Path) -> None:
    """All pairs are asked for directly, or out of one table of everything, which errs more."""
    whole = save_study(tmp_path, CALM(4.0, PERSON, k=2, sets=(PERSON.names,)), "whole.json")
    options = ["compare", folder / "people.parquet", "--epsilon", "1,4", "--runs", 2, "--seed", 1]
    found = veil_json(*options, "--studies", f"{folder / 'study.json'},{whole}")
    assert found["best"] == [{"epsilon": 1.0, "study": "study"}, {"epsilon": 4.0, "study": "study"}]
    threes = save_study(tmp_path, CALM(4.0, PERSON, k=3, sets=3), "threes.json")
    refused = veil(*options, "--studies", f"{folder / 'study.json'},{threes}", code=3).stderr
    assert "marginals of as many of them" in refused


def test_inspect_says_what_is_asked(folder: Path) -> None:
    found = veil_json("inspect", folder / "study.json")
    assert (found["study"], found["asked"], found["epsilon"]) == ("calm", 10, 4.0)
    assert found["questions"][0]["attributes"] == ["age", "sex"]
    text = " ".join(veil("inspect", folder / "study.json").stdout.split())
    assert "one of 10 questions, drawn for each person; one report promises eps = 4, exactly." in text
    assert "records of 5 attributes: age (3 values), sex (2 values)" in text
    assert "attributes (age, sex)" in text
    assert "more_questions" not in found
    tally = folder / "tally.bin"
    assert veil_json("inspect", tally, "--study", folder / "study.json")["questions"][0]["attributes"] == ["age", "sex"]
    assert "With --study it is checked" in " ".join(veil("inspect", tally).stdout.split())


def test_inspect_says_how_many_questions_are_not_shown(tmp_path: Path) -> None:
    study = save_study(tmp_path, CALM(1.0, Record.of(**dict.fromkeys("abcdefgh", 2)), k=2, sets=2))
    found = veil_json("inspect", study)
    assert (found["asked"], len(found["questions"]), found["more_questions"]) == (28, 12, 16)
    assert "more_questions 16" in " ".join(veil("inspect", study).stdout.split())


def test_numbers_of_records_are_clipped_on_request(tmp_path: Path) -> None:
    record = Record.of(sex=["f", "m"], children=Integers(0, 3), height=Interval(1.0, 2.0, cells=4))
    study = save_study(tmp_path, CALM(4.0, record, k=2, sets=2))
    held = {"sex": ["f", "m"], "children": [7, 2], "height": [0.5, 3.0]}
    outside = save_values(tmp_path / "outside.csv", pa.table(held))
    inside = save_values(tmp_path / "inside.csv", pa.table(held | {"children": [3, 2], "height": [1.0, 2.0]}))
    out = tmp_path / "r.arrow"
    assert "attribute 'children': expected integers from 0 to 3" in refused("randomize", study, outside, "-o", out)
    assert veil_json("randomize", study, outside, "-o", out, "--seed", 3, "--clip")["clipped"] == 3
    clipped = out.read_bytes()
    veil("randomize", study, inside, "-o", out, "--seed", 3)
    assert out.read_bytes() == clipped
    labels = save_study(tmp_path, CALM(4.0, Record.of(sex=["f", "m"], smokes=2), k=2, sets=2))
    said = refused("randomize", labels, outside, "-o", out, "--clip")
    assert "only numbers can be clipped: none of the attributes is one" in said


# -- made-up people ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_made_up_people_have_the_labels_and_the_shares(folder: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"people.{ending}"
    found = veil_json("synthesize", *study_and_tally(folder), "-n", 30_000, "-o", out, "--seed", 5)
    assert (found["people"], found["made_up"], found["columns"]) == (PEOPLE, 30_000, list(PERSON.names))
    assert any("made up" in remark for remark in found["remarks"])
    strings = pacsv.ConvertOptions(column_types={"region": pa.string()})
    table = {
        "csv": lambda: pacsv.read_csv(out, convert_options=strings),
        "parquet": lambda: pq.read_table(out),
        "arrow": lambda: pa.ipc.open_file(out).read_all(),
    }[ending]()
    assert (table.num_rows, table.column_names) == (30_000, list(PERSON.names))
    frame = table.to_pandas()
    assert set(frame["age"]) == set(AGES)
    assert set(frame["region"]) == {"01", "02", "10"}
    for smokes, age in [(0, "18-39"), (1, "65+")]:
        made = float(np.mean((frame["smokes"] == smokes) & (frame["age"] == age)))
        assert abs(made - true_share(smokes=smokes, age=age)) < 0.03
    # they are people for every other command: what was learnt of them is again the same
    again = veil_json("simulate", folder / "study.json", out, "--marginal", "smokes,age", "--seed", 1, "--truth")
    assert again["people"] == 30_000


def test_the_same_seed_makes_the_same_people(folder: Path, tmp_path: Path) -> None:
    made = []
    for i, seed in enumerate((1, 1, 2)):
        out = tmp_path / f"{i}.csv"
        veil("synthesize", *study_and_tally(folder), "-n", 500, "-o", out, "--seed", seed)
        made.append(out.read_bytes())
    assert made[0] == made[1] != made[2]


def test_people_are_not_made_up_from_other_studies(tmp_path: Path, folder: Path) -> None:
    other = save_study(tmp_path, Histogram(GRR(1.0, 4)), "other.json")
    said = refused("synthesize", other, folder / "tally.bin", "-n", 10, "-o", tmp_path / "o.csv")
    assert "a study of kind histogram does not read" in said
    for wrong in ("o.txt", "missing/o.csv"):
        veil("synthesize", *study_and_tally(folder), "-n", 10, "-o", tmp_path / wrong, code=3)
    veil("synthesize", *study_and_tally(folder), "-n", 0, "-o", tmp_path / "o.csv", code=2)
    assert not (tmp_path / "o.csv").exists()


# -- bad input ---------------------------------------------------------------------------------------------------------


def refused(*command: Any, code: int = 3) -> str:
    return " ".join(veil(*command, code=code).stderr.split())


def test_unknown_attributes(folder: Path) -> None:
    said = refused("estimate", *study_and_tally(folder), "--marginal", "age,income")
    assert "no attribute 'income'" in said
    assert "age, sex, smokes, children, region" in said
    assert "each named once" in refused("estimate", *study_and_tally(folder), "--marginal", "age,age")
    both = refused("estimate", *study_and_tally(folder), "--marginal", "age", "--given", "age")
    assert "age is both in marginal and in given" in both
    alone = refused("estimate", *study_and_tally(folder), "--given", "age")
    assert "given=age says among whom to look, but not what to show of them" in alone
    assert "as in --marginal sex" in alone
    twice = ["--marginal", "age", "--set", "marginal=sex"]
    assert "given twice" in refused("estimate", *study_and_tally(folder), *twice, code=2)


def test_marginals_of_another_kind_of_study(tmp_path: Path) -> None:
    values = small(tmp_path, "app\n1\n2\n3\n")
    other = save_study(tmp_path, Histogram(GRR(1.0, 4)))
    veil("randomize", other, values, "-o", tmp_path / "r.arrow")
    for command in (["estimate", other, tmp_path / "r.arrow"], ["simulate", other, values]):
        said = refused(*command, "--marginal", "app,sex")
        assert "a study of kind histogram" in said
        assert "veil plan marginals" in said


def test_a_tally_of_another_task(folder: Path, tmp_path: Path) -> None:
    other = CALM(3.0, PERSON, k=2, sets=2)
    for command in (["estimate"], ["synthesize", "-n", 5, "-o", tmp_path / "o.csv"]):
        assert "another task" in refused(*command, save_study(tmp_path, other), folder / "tally.bin", code=4)
    with pytest.raises(MismatchError):
        other.read(TallyCollection(STUDY.survey, STUDY.survey.tally(STUDY.survey.randomize(people().slice(0, 10)))))


def test_records_that_do_not_belong(folder: Path, tmp_path: Path) -> None:
    study, out = folder / "study.json", tmp_path / "r.arrow"
    frame = people().slice(0, 70_000).to_pandas()

    def with_last(**cells: Any) -> Path:
        changed = frame.astype(object)
        for name, value in cells.items():
            changed.loc[len(changed) - 1, name] = value
        changed.to_csv(tmp_path / "bad.csv", index=False)
        return tmp_path / "bad.csv"

    for cells, name in [({"age": "secret"}, "age"), ({"children": 77_777}, "children"), ({"sex": None}, "sex")]:
        for command in (["randomize", "-o", out], ["simulate"]):
            said = refused(*command, study, with_last(**cells))
            assert f"attribute '{name}'" in said
            assert f"line {len(frame) + 1:,} of" in said  # the header is line 1
            assert "secret" not in said
            assert "77" not in said
    lacking = save_values(tmp_path / "lacking.parquet", people().drop_columns(["sex", "children"]))
    for command in (["randomize", "-o", out], ["simulate"]):
        assert f"{lacking} has no column sex, children" in refused(*command, study, lacking)
    assert "several columns, by their own names" in refused("randomize", study, lacking, "-o", out, "--column", "age")
    assert not out.exists()


def test_a_marginal_with_too_many_cells(tmp_path: Path) -> None:
    record = Record(tuple((f"a{i}", Integers(0, 7)) for i in range(10)))
    study = CALM(2.0, record, k=2, sets=2)
    values = save_values(tmp_path / "v.parquet", pa.table({name: np.arange(200) % 8 for name in record.names}))
    said = refused("simulate", save_study(tmp_path, study), values, "--marginal", ",".join(record.names))
    assert "1,073,741,824 cells" in said
    assert "fewer attributes" in said
    with pytest.raises(InputError, match="1,073,741,824 cells"):
        CALM(2.0, record, k=10, sets=(record.names,))


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"k": 6}, 3, "from 1 to the record's 5"),
        ({"k": 0}, 3, "from 1 to the record's 5"),
        ({"epsilon": "-1"}, 3, "epsilon"),
        ({"inference": "guess"}, 5, "inference"),
        ({"sets": [["age", "income"]]}, 3, "no attribute 'income'"),
        ({"marginal": ["income"]}, 3, "no attribute 'income'"),
        ({"domain": Record.of(age=3).to_json()}, 3, "at least two attributes"),
        ({"domain": GRR(1.0, 4).domain.to_json()}, 5, "domain"),
    ],
)
def test_study_files_that_no_study_has(tmp_path: Path, changes: Any, code: int, said: str) -> None:
    document = json.loads(STUDY.to_bytes())
    document["study"].update(changes)
    (tmp_path / "bad.json").write_text(json.dumps(document, sort_keys=True, separators=(",", ":")))
    assert said in refused("inspect", tmp_path / "bad.json", code=code)


def test_a_bare_task_of_views_is_read_view_by_view(folder: Path, tmp_path: Path) -> None:
    """Whoever has the task and not the study can still read its questions, but not their joint distribution."""
    bare = tmp_path / "task.json"
    bare.write_bytes(json.dumps(STUDY.survey.to_json(), sort_keys=True, separators=(",", ":")).encode())
    assert Survey.from_json(bare.read_bytes()).task == STUDY.survey.task
    found = veil_json("estimate", bare, folder / "tally.bin", "--set", "question=0")
    assert found["rows"][0]["value"] in {f"{age}, {sex}" for age in AGES for sex in "fm"}
    assert "veil plan marginals" in refused("estimate", bare, folder / "tally.bin", "--marginal", "age,sex")


# -- what CALM is compared with ----------------------------------------------------------------------------------------

RIVALS = {
    "calm": STUDY,
    "full": FullContingency(4.0, PERSON, k=2),
    "all": AllMarginals(4.0, PERSON, k=2),
    "fourier": FourierMarginals(4.0, PERSON, k=2),
    "split": SplitEM(4.0, PERSON, k=2),
    "binary": BinaryCALM(4.0, PERSON, k=2, users=PEOPLE),
}


@pytest.mark.parametrize("name", RIVALS)
def test_every_way_goes_through_every_command(folder: Path, tmp_path: Path, name: str) -> None:
    study, values = save_study(tmp_path, RIVALS[name]), folder / "people.parquet"
    veil("randomize", study, values, "-o", tmp_path / "r.arrow", "--seed", 1)
    collected = tmp_path / "r.arrow"
    if name != "split":  # which goes through the reports themselves
        collected = tmp_path / "t.bin"
        veil("tally", study, tmp_path / "r.arrow", "-o", collected)
    whole = tmp_path / "m.result.json"
    found = veil_json("estimate", study, collected, "--marginal", "smokes,age", "-o", whole)
    assert [(row["smokes"], row["age"]) for row in found["rows"]] == [(s, age) for s in (0, 1) for age in AGES]
    again: Any = load(whole)
    assert again.marginal(["smokes", "age"]).frequencies.tolist() == [row["frequency"] for row in found["rows"]]
    beside = veil_json("simulate", study, values, "--seed", 1, "--marginal", "smokes,age", "--truth")
    for row in beside["rows"]:
        assert row["truth"] == pytest.approx(true_share(smokes=row["smokes"], age=row["age"]))
        assert abs(row["frequency"] - row["truth"]) < 0.1
    making = ["synthesize", study, collected, "-n", 500, "-o", tmp_path / "made.csv", "--seed", 1]
    assert veil_json(*making)["made_up"] == pacsv.read_csv(tmp_path / "made.csv").num_rows == 500
    text = " ".join(veil("inspect", study).stdout.split())
    assert "eps = 4" in text
    assert "records of 5 attributes" in text


def test_all_ways_are_compared(folder: Path, tmp_path: Path) -> None:
    files = [save_study(tmp_path, study, f"{name}.json") for name, study in RIVALS.items()]
    options = ["compare", folder / "people.parquet", "--epsilon", "2", "--runs", 1, "--seed", 1]
    found = veil_json(*options, "--studies", ",".join(map(str, files)))
    errors = {row["study"]: row["error"] for row in found["rows"]}
    assert set(errors) == set(RIVALS)
    assert all(0 < error < 0.5 for error in errors.values())
    assert errors["calm"] < errors["full"]
