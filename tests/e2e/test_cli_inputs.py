"""Values as people have them: missing ones, other spellings, compressed files, JSON lines, standard input."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.commands import CliRunner

from veil import GRR, OLH, AllOf, Categories, Integers, Interval, Items, Public, Question, Record, Survey, Text
from veil.cli.main import app
from veil.entropy import CHUNK_ROWS
from veil.errors import DomainError, InputError
from veil.files import ValueFile, read_values, values_of
from veil.files.values import MissingPolicy, read_columns
from veil.itemsets import SVIM
from veil.view import Project

DRINKS = ["tea", "coffee", "Green tea"]
NUMBERS = Survey(OLH(1.0, Integers(0, 99)))


def veil(*args: Any, code: int = 0, given: bytes | None = None) -> Any:
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=given)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def veil_json(*args: Any, code: int = 0, given: bytes | None = None) -> Any:
    return json.loads(veil(*args, "--json", code=code, given=given).stdout)


@pytest.fixture
def drinks(tmp_path: Path) -> Path:
    path = tmp_path / "drinks.json"
    veil("plan", "histogram", "--labels", ",".join(DRINKS), "--epsilon", 4, "-o", path)
    return path


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def written(folder: Path, name: str, column: str, cells: Sequence[Any]) -> Path:
    """The same cells in a file of any kind; None is a missing one."""
    path, kind = folder / name, name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        return parquet(path, **{column: cells})
    if kind in ("jsonl", "ndjson"):
        text = "".join(json.dumps({column: cell, "other": 1}) + "\n" for cell in cells)
    else:
        tab = "\t" if kind == "tsv" else ","
        text = "".join(f"{'' if cell is None else cell}{tab}1\n" for cell in (column, *cells)).replace("1", "other", 1)
    path.write_bytes(gzip.compress(text.encode(), 1) if name.lower().endswith(".gz") else text.encode())
    return path


# -- kinds of files ----------------------------------------------------------------------------------------------------

KINDS = ["a.tsv", "A.CSV.GZ", "a.ndjson", "a.jsonl.gz", "a.parquet"]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_makes_the_same_reports(tmp_path: Path, name: str) -> None:
    held = [i * 7 % 100 for i in range(CHUNK_ROWS + 1000)]
    values, study = written(tmp_path, name, "age", held), tmp_path / "study.json"
    study.write_bytes(NUMBERS.to_bytes())
    tables = list(read_values(values, NUMBERS, "age"))
    assert [table.num_rows for table in tables] == [CHUNK_ROWS, 1000]
    assert [cell for table in tables for cell in values_of(table, NUMBERS).to_pylist()] == held
    plain = written(tmp_path, "plain.csv", "age", held)
    for path, out in ((values, "a.arrow"), (plain, "b.arrow")):
        done = veil_json("randomize", study, path, "--column", "age", "--seed", 3, "-o", tmp_path / out)
        assert (done["people"], done["skipped"]) == (len(held), None)
    assert (tmp_path / "a.arrow").read_bytes() == (tmp_path / "b.arrow").read_bytes()


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "csv.gz", "jsonl.gz"])
def test_standard_input(tmp_path: Path, drinks: Path, form: str) -> None:
    values = written(tmp_path, f"v.{form}", "drink", DRINKS * 500)
    options = ["--column", "drink", "--seed", 3]
    veil("randomize", drinks, values, *options, "-o", tmp_path / "a.arrow")
    veil("randomize", drinks, "-", "--format", form, *options, "-o", tmp_path / "b.arrow", given=values.read_bytes())
    assert (tmp_path / "a.arrow").read_bytes() == (tmp_path / "b.arrow").read_bytes()
    for trial in (["simulate", "-", "--epsilon", 4], ["simulate", drinks, "-"], ["compare", "-", "--studies", drinks]):
        there = [values if part == "-" else part for part in trial]
        piped = veil_json(*trial, "--format", form, *options, given=values.read_bytes())
        assert piped == veil_json(*there, *options)  # which reads it more than once


def test_a_format_comes_before_the_ending(tmp_path: Path, drinks: Path) -> None:
    values = tmp_path / "export.dat"
    values.write_text("drink\ntea\n")
    done = veil("randomize", drinks, values, "--format", "csv", "-o", tmp_path / "r.arrow")
    assert "1 report of 1 byte" in " ".join(done.stdout.split())
    assert "--format" in veil("randomize", drinks, values, "-o", tmp_path / "s.arrow", code=3).stderr
    assert "csv, tsv" in veil("randomize", drinks, "-", "-o", tmp_path / "s.arrow", code=3, given=b"").stderr
    for form in ("parquet", "xlsx"):
        said = veil("randomize", drinks, values, "--format", form, "-o", tmp_path / "s.arrow", code=3).stderr
        assert "one of csv, tsv" in said


def test_standard_input_is_never_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"drink\ntea\n")))
    file = ValueFile("-", "csv")
    asked = Survey(GRR(1.0, DRINKS))
    assert sum(table.num_rows for table in read_values(file, asked)) == 1
    with pytest.raises(InputError, match="once only"):
        list(read_values(file, asked))


def test_damaged_standard_input(drinks: Path, tmp_path: Path) -> None:
    cut = gzip.compress(b"drink\n" + b"tea\n" * 9999)[:-30]
    for command in (["simulate", drinks, "-"], ["randomize", drinks, "-", "-o", tmp_path / "r.arrow"]):
        said = veil(*command, "--format", "csv.gz", code=3, given=cut).stderr
        assert "standard input cannot be read: expected a whole gzip file" in said


BROKEN = {
    "cut.csv.gz": gzip.compress(b"drink\n" + b"tea\n" * 9999)[:-30],
    "no.csv.gz": b"drink\nsecret77\n",
    "no.jsonl": b'{"drink": "tea"}\nsecret77\n',
    "list.jsonl": b'{"drink": "tea"}\n["secret77"]\n',
    "types.jsonl": b'{"drink": "tea"}\n{"drink": 77}\n',
    "utf.jsonl": b'{"drink": "tea"}\n{"drink": "\xff77"}\n',
    "large.jsonl": b'{"drink": 777777777777777777777777}\n',
    "empty.jsonl": b"",
    "other.jsonl": b'{"secret77": "tea", "b": 2}\n',
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_without_showing_them(tmp_path: Path, drinks: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BROKEN[name])
    column = ["--column", "drink"] if name != "cut.csv.gz" else []
    said = veil("randomize", drinks, tmp_path / name, *column, "-o", tmp_path / "r.arrow", code=3).stderr
    assert "77" not in said.replace(str(tmp_path), "")
    assert name in said
    if name in ("no.jsonl", "list.jsonl", "types.jsonl"):
        assert "line 2 of" in said
    assert not (tmp_path / "r.arrow").exists()


def test_json_lines_hold_what_parquet_holds(tmp_path: Path) -> None:
    """Lists, booleans, fractions beside whole numbers, empty lines and names that are not there."""
    sets = SVIM(1, 1.0, Items(["tea", "milk"])).survey
    (tmp_path / "s.jsonl").write_text('{"basket": ["tea", "milk"]}\n{"basket": []}\n')
    (table,) = read_values(tmp_path / "s.jsonl", sets)
    assert sets.domain.decode(sets.domain.encode(values_of(table, sets))) == [{"tea", "milk"}, set()]
    asked = Survey(GRR(1.0, Interval(0.0, 10.0, cells=10)))
    path = tmp_path / "v.jsonl"
    path.write_text('{"x": 1}\n\n{"x": 2.5}\n{"y": 3}\n{"x": "4"}\n'.replace('"4"', "4"))
    (table,) = read_values(path, asked, "x")
    assert values_of(table, asked).to_pylist() == [1.0, 2.5, None, 4.0]
    with pytest.raises(DomainError):
        asked.domain.encode(values_of(table, asked))
    refused = table.slice(0, 4)
    problem = ValueFile(path).placed(DomainError("expected numbers", 2), refused)
    assert "line 4 of" in str(problem)  # the empty line counts


SAME = {
    "labels": (Survey(GRR(1.0, DRINKS)), '"tea"', "7", "expected tea, coffee or Green tea"),
    "numbers": (Survey(GRR(1.0, Integers(0, 9))), "7", '"tea"', "expected integers from 0 to 9"),
}


def encoded(file: ValueFile, survey: Survey) -> None:
    for table in read_values(file, survey):
        try:
            survey.domain.encode(values_of(table, survey))
        except DomainError as problem:
            raise file.placed(problem, table) from None


@pytest.mark.parametrize("what", SAME)
def test_a_mistake_has_the_same_words_in_every_file(tmp_path: Path, what: str) -> None:
    survey, right, wrong, words = SAME[what]
    cells = [right, wrong, right, wrong]
    (tmp_path / "v.jsonl").write_text("".join(f'{{"held": {cell}}}\n' for cell in cells))
    (tmp_path / "v.csv").write_text("\n".join(["held", *(cell.strip('"') for cell in cells)]))
    for name, line in (("v.jsonl", 2), ("v.csv", 3)):
        file = ValueFile(tmp_path / name)
        with pytest.raises(DomainError) as refused:
            encoded(file, survey)
        assert str(refused.value).startswith(words)
        assert str(refused.value).endswith(f"(line {line} of {file}, and 1 more)")


BREAKS = b'note,drink\n"two\nlines",tea\n"and, ""three""\n\nof them",coffee\nnone,what\n'


def test_a_line_is_a_line_also_where_cells_hold_line_breaks(
    tmp_path: Path, drinks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v.csv").write_bytes(BREAKS)
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(BREAKS))
    for name in ("v.csv", "v.csv.gz"):
        assert ValueFile(tmp_path / name).place(4) == f"line 7 of {tmp_path / name}"
    asked = Survey(GRR(1.0, DRINKS))
    for given, place in ((BREAKS, "record 4"), (BREAKS.replace(b'"', b"").replace(b",", b"", 3), "line 4")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        file = ValueFile("-", "csv")
        with contextlib.suppress(InputError):
            list(read_values(file, asked, "drink"))
        assert file.place(4) == f"{place} of standard input"


def test_a_quoted_empty_cell_is_missing_unless_it_is_a_label(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text('"drink","age"\n"tea","30"\n"",""\n"coffee","40"\n')  # as pandas quotes everything
    for survey, column in ((Survey(GRR(1.0, DRINKS)), "drink"), (Survey(GRR(1.0, Integers(0, 99))), "age")):
        without = MissingPolicy("skip")
        assert sum(table.num_rows for table in read_values(path, survey, column, without=without)) == 2
        assert without.skipped == 1
    (table,) = read_values(path, Survey(GRR(1.0, ["tea", "coffee", ""])), "drink")
    assert table.column("drink").to_pylist() == ["tea", "", "coffee"]
    path.write_text('drink\ntea\n""\n\n')
    (table,) = read_values(path, Survey(GRR(1.0, ["tea", ""])), "drink")
    assert table.column("drink").to_pylist() == ["tea", "", None]
    record = Record.of(drink=Categories(["tea", ""]), age=Integers(30, 40))
    both = Survey(AllOf(*(Question(GRR(1.0, part), Project(record, (name,))) for name, part in record.attributes)))
    path.write_text('drink,age\n"","30"\n"tea",""\n')
    (table,) = read_values(path, both)
    assert [table.column(name).to_pylist() for name in ("drink", "age")] == [["", "tea"], [30, None]]
    (table,) = read_columns(path, ["drink"])  # nobody said that there is an empty label
    assert table.column("drink").to_pylist() == [None, "tea"]


@pytest.mark.parametrize("first", ["tea", "Tea", " TEA "])
def test_a_first_line_that_is_nearly_a_label_is_no_header(tmp_path: Path, first: str) -> None:
    path = tmp_path / "v.csv"
    path.write_text(f"{first}\ncoffee\ntea\n")
    survey = Survey(GRR(1.0, DRINKS))
    with pytest.raises(InputError, match="looks like a value"):
        list(read_values(path, survey))
    (table,) = read_values(path, survey, first)  # it is its name after all
    assert table.num_rows == 2


READING = """
import resource, sys
from veil import OLH, Integers, Survey
from veil.files import ValueFile, read_values

asked, most = Survey(OLH(1.0, Integers(0, 99))), []
for name in ("few", "many"):
    for ending in ("csv", "csv.gz", "jsonl"):
        assert sum(table.num_rows for table in read_values(f"{sys.argv[1]}/{name}.{ending}", asked, "age")) >= 4096
    if name == "many":
        assert sum(table.num_rows for table in read_values(ValueFile("-", "csv"), asked, "age")) > 4096
    most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(most[1] - most[0])
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    padding, times = "x" * 1000, {"few": 1, "many": 36}
    for name, blocks in times.items():
        with (tmp_path / f"{name}.csv").open("w") as text, gzip.open(tmp_path / f"{name}.csv.gz", "wt", 1) as zipped:
            for file in (text, zipped):
                file.write("age,other\n")
                file.writelines(f"7,{padding}\n" * 4096 for _ in range(blocks))
        with (tmp_path / f"{name}.jsonl").open("w") as lines:
            lines.writelines(f'{{"age": 7, "other": "{padding}"}}\n' * 4096 for _ in range(blocks))
    with (tmp_path / "many.csv").open() as piped:
        done = subprocess.run(
            [sys.executable, "-c", READING, str(tmp_path)], stdin=piped, capture_output=True, text=True, check=True
        )
    assert int(done.stdout) * 1024 < (tmp_path / "many.csv").stat().st_size / 2  # of 147 MB


# -- missing values ----------------------------------------------------------------------------------------------------

KINDS_WITH_GAPS = ["v.csv", "v.csv.gz", "v.jsonl", "v.parquet"]


@pytest.mark.parametrize("name", KINDS_WITH_GAPS)
def test_missing_values_are_refused_or_left_out(tmp_path: Path, drinks: Path, name: str) -> None:
    values = written(tmp_path, name, "drink", ["tea", None, "coffee", None])
    options = ["--column", "drink", "-o", tmp_path / "r.arrow", "--seed", 3]
    for refused in ([], ["--missing", "refuse"]):
        said = veil("randomize", drinks, values, *options, *refused, code=3).stderr
        assert "a value is missing" in said
        assert "and 1 more" in said
        assert "--missing skip" in said
    assert (
        "no answer for a missing value"
        in veil("randomize", drinks, values, *options, "--missing", "category", code=3).stderr
    )
    done = veil("randomize", drinks, values, *options, "--missing", "skip")
    assert "2 people without a value left out" in done.stdout
    whole = written(tmp_path, "whole.csv", "drink", ["tea", "coffee"])
    veil("randomize", drinks, whole, "--column", "drink", "--seed", 3, "-o", tmp_path / "w.arrow")
    assert (tmp_path / "r.arrow").read_bytes() == (tmp_path / "w.arrow").read_bytes()
    trial = veil_json("simulate", drinks, values, "--column", "drink", "--missing", "skip")
    assert (trial["skipped"], trial["people"]) == (2, 2)


@pytest.mark.parametrize("name", KINDS_WITH_GAPS)
def test_a_missing_value_can_be_an_answer(tmp_path: Path, name: str) -> None:
    study = tmp_path / "study.json"
    veil("plan", "histogram", "--labels", "tea,coffee", "--missing", "category", "--epsilon", 8, "-o", study)
    values = written(tmp_path, name, "drink", ["tea", None, None, "coffee"] * 500)
    column = ["--column", "drink"]
    for given in ([], ["--missing", "category"]):
        rows = veil_json("simulate", study, values, *column, *given, "--truth")["rows"]
        assert {row["value"]: row["truth"] for row in rows} == {"tea": 0.25, "coffee": 0.25, None: 0.5}
    assert "(missing)" in veil("simulate", study, values, *column).stdout
    said = veil("simulate", study, values, *column, "--missing", "refuse", code=3).stderr
    assert "a value is missing" in said
    planned = veil_json("simulate", values, "--epsilon", 8, *column, "--missing", "category", "--truth")["rows"]
    assert {row["value"]: row["truth"] for row in planned} == {"tea": 0.25, "coffee": 0.25, None: 0.5}
    skipped = veil_json("simulate", values, "--epsilon", 8, *column, "--missing", "skip", "--truth")["rows"]
    assert {row["value"]: row["truth"] for row in skipped} == {"tea": 0.5, "coffee": 0.5}


def test_who_lacks_one_attribute_of_several(tmp_path: Path) -> None:
    record = Record.of(age=Integers(0, 9), drink=Categories(["tea", "coffee"], missing="category"))
    asks = [Question(GRR(1.0, part), Project(record, (name,))) for name, part in record.attributes]
    asked = Survey(AllOf(*asks))
    study = tmp_path / "study.json"
    study.write_bytes(asked.to_bytes())
    values = parquet(tmp_path / "v.parquet", age=[1, None, 3, float("nan")], drink=["tea", "tea", None, "coffee"])
    full = parquet(tmp_path / "full.parquet", age=[1, 2, 3], drink=["tea", "tea", None])
    out = ["-o", tmp_path / "r.arrow"]
    assert "attribute 'age'" in veil("randomize", study, values, *out, code=3).stderr
    done = veil_json("randomize", study, values, *out, "--missing", "skip")
    assert (done["people"], done["skipped"]) == (2, 2)
    said = veil("randomize", study, full, *out, "--missing", "refuse", code=3).stderr
    assert "row 3 of" in said  # of what is an answer elsewhere


def test_nobody_has_a_value(tmp_path: Path, drinks: Path) -> None:
    values = written(tmp_path, "v.csv", "drink", [None, None])
    options = ["--column", "drink", "--missing", "skip", "-o", tmp_path / "r.arrow"]
    assert "no people with a value" in veil("randomize", drinks, values, *options, code=3).stderr


def test_a_mistake_after_people_who_were_left_out_has_its_own_line(tmp_path: Path, drinks: Path) -> None:
    for name, line in (("v.csv", "line 5 of"), ("v.jsonl", "line 4 of"), ("v.parquet", "row 4 of")):
        values = written(tmp_path, name, "drink", [None, "tea", None, "secret77"])
        for command in (["randomize", "-o", tmp_path / "r.arrow"], ["simulate"]):
            options = ["--column", "drink", "--missing", "skip"]
            said = veil(command[0], drinks, values, *command[1:], *options, code=3).stderr
            assert line in said
            assert "secret77" not in said


# -- messages ----------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, list[Any]]] = {
    "a missing label": (Categories(DRINKS), ["tea", None]),
    "a strange label": (Categories(DRINKS), ["tea", "secret77"]),
    "a label with spaces": (Categories(DRINKS), ["tea", " Tea "]),
    "a missing number": (Integers(0, 9), [1, None]),
    "a number outside": (Integers(0, 9), [1, 77]),
    "a missing fraction": (Interval(0.0, 9.0, cells=9), [1.5, None]),
    "a fraction outside": (Interval(0.0, 9.0, cells=9), [1.5, 77.5]),
    "no whole number": (Integers(0, 9), [1.0, 2.577]),
    "text for numbers": (Integers(0, 9), ["1", "secret77"]),
    "text for fractions": (Interval(0.0, 9.0, cells=9), ["1.5", "secret77"]),
    "a label of numbers": (Categories([3, 5]), [3, 77]),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_same_message_for_every_kind_of_file(tmp_path: Path, what: str) -> None:
    domain, cells = WRONG[what]
    study = tmp_path / "study.json"
    study.write_bytes(Survey(GRR(1.0, domain)).to_bytes())
    told = set()
    for name in ("v.csv", "v.csv.gz", "v.tsv", "v.jsonl", "v.parquet"):
        values = written(tmp_path, name, "held", cells)
        said = veil("randomize", study, values, "--column", "held", "-o", tmp_path / "r.arrow", code=3).stderr
        assert "77" not in said.replace(str(tmp_path), "")
        told.add(re.sub(r"(line|row) [23] of .*/v[.a-z]+", "PLACE", said))
    assert len(told) == 1, told
    assert "PLACE" in told.pop()


def test_public_columns_have_the_same_messages(tmp_path: Path) -> None:
    study = tmp_path / "study.json"
    study.write_bytes(Survey(GRR(1.0, DRINKS), public=[Public("weight")]).to_bytes())
    told = set()
    (tmp_path / "v.csv").write_text("drink,weight\ntea,1\ntea,secret77\n")
    (tmp_path / "v.jsonl").write_text('{"drink": "tea", "weight": "1"}\n{"drink": "tea", "weight": "secret77"}\n')
    parquet(tmp_path / "v.parquet", drink=["tea", "tea"], weight=["1", "secret77"])
    for name in ("v.csv", "v.jsonl", "v.parquet"):
        options = ["--column", "drink", "-o", tmp_path / "r.arrow"]
        said = veil("randomize", study, tmp_path / name, *options, code=3).stderr
        assert "secret77" not in said
        told.add(re.sub(r"(line|row) [23] of .*/v[.a-z]+", "PLACE", said))
    assert len(told) == 1, told
    assert "public column 'weight'" in told.pop()


def test_plans_are_made_from_any_kind_of_file(tmp_path: Path) -> None:
    """Columns that become public, of compressed files and JSON lines."""
    plans = []
    for name in ("v.csv", "v.csv.gz", "v.jsonl", "v.parquet"):
        values = written(tmp_path, name, "age", [18 + i % 40 for i in range(500)])
        plans.append(veil_json("plan", "sql", values, "--private", "age", "--epsilon", 1, "-o", tmp_path / "s.json"))
        assert (tmp_path / "s.json").exists()
    assert [plan["task"] for plan in plans] == [plans[0]["task"]] * 4


def test_labels_in_other_spellings_are_suggested_and_never_shown() -> None:
    many = Categories([f"label {i}" for i in range(100)])
    for wrong in (["LABEL 7"], ["label 7 "], ["\N{NO-BREAK SPACE}Label  7"], ["nothing", "LABEL 7"]):
        with pytest.raises(DomainError) as refused:
            many.encode([*wrong, "label 3"])
        said = str(refused.value)
        assert "one of them is a label but for capitals or spaces" in said
        assert "'label 0'" in said  # which does not depend on what people hold
        assert not re.search(r"(?i)label\s+7", said)
    with pytest.raises(DomainError) as strange:
        many.encode(["nothing"])
    assert "capitals" not in str(strange.value)
    with pytest.raises(DomainError, match="2 of them are labels but for capitals or spaces"):
        Categories(DRINKS).encode(["TEA", "green tea", "milk"])


def test_numbers_as_text_keep_every_digit(tmp_path: Path) -> None:
    asked = Survey(OLH(1.0, Integers(0, 2**53 - 1)))
    values = written(tmp_path, "v.csv", "held", [2**53 - 1, 7, None])
    (table,) = read_values(values, asked, "held")
    assert values_of(table, asked).to_pylist() == [2**53 - 1, 7, None]
    flags = Survey(GRR(1.0, Categories.range(2)))
    (table,) = read_values(written(tmp_path, "f.csv", "held", ["true", "False"]), flags, "held")
    assert flags.domain.encode(values_of(table, flags)).tolist() == [1, 0]
    text = Survey(OLH(1.0, Text(4)))
    (table,) = read_values(written(tmp_path, "t.csv", "held", ["007", "1e3"]), text, "held")
    assert values_of(table, text).to_pylist() == ["007", "1e3"]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_another_separator_is_named(drinks: Path, tmp_path: Path, mark: str) -> None:
    file = tmp_path / "people.csv"
    file.write_text(f"name{mark}drink\nJane Roe{mark}tea\n")
    said = veil("randomize", drinks, file, "--column", "drink", "-o", tmp_path / "r.arrow", code=3).output
    assert f"are its cells parted by {mark!r}? Expected ','" in " ".join(said.split())
    assert "Roe" not in said
