"""Reports that were drawn from a seed say so: files, tables, tallies and results; and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.support.commands import CliRunner

from veil import GRR, Survey
from veil.cli.main import app
from veil.engines.spark.pieces import Files
from veil.entropy import SeededForExperiments
from veil.errors import WireError
from veil.files import is_seeded, read_reports
from veil.files.arrow_files import open_arrow
from veil.results.render.files import load
from veil.study import study_from_json
from veil.wire.tallies import decode_tally, encode_tally

REMARK = "drawn from a seed, for an experiment"


def veil(*args: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def remarks(*args: Any) -> tuple[bool, dict[str, Any]]:
    """Whether a command says on standard error that the reports came from a seed; and its document."""
    result = veil(*args, "--json")
    return REMARK in " ".join(result.stderr.split()), json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeded")
    (folder / "values.csv").write_text("app\n" + "0\n1\n2\n" * 100)
    veil("plan", "histogram", "--domain", 3, "--epsilon", 1, "--method", "GRR", "-o", folder / "study.json")
    for name, seed in (("plain", []), ("seeded", ["--seed", 7])):
        for ending in ("arrow", "parquet"):
            out = folder / f"{name}.{ending}"
            veil("randomize", folder / "study.json", folder / "values.csv", "-o", out, *seed)
        veil("tally", folder / "study.json", folder / f"{name}.arrow", "-o", folder / f"{name}.tally")
    return folder


def test_files_of_reports_say_so_and_their_reports_are_the_same(folder: Path) -> None:
    survey = study_from_json((folder / "study.json").read_bytes()).survey
    expected = survey.randomize([0, 1, 2] * 100, SeededForExperiments(7)).to_bytes()
    for ending in ("arrow", "parquet"):
        assert is_seeded(folder / f"seeded.{ending}")
        assert not is_seeded(folder / f"plain.{ending}")
        names = [str(folder / f"{name}.{ending}") for name in ("plain", "seeded")]
        assert Files.of(survey, names).seeded  # as Spark's tasks see them
        assert not Files.of(survey, names[:1]).seeded
        (reports,) = read_reports(folder / f"seeded.{ending}", survey)
        assert reports.to_bytes() == expected
    with open_arrow(folder / "seeded.arrow") as file:
        assert file.schema.metadata == {b"veil.task": survey.task.encode(), b"veil.wire": b"1", b"veil.seeded": b"1"}


def test_a_mark_that_is_no_mark_is_refused(folder: Path, tmp_path: Path) -> None:
    table = pq.read_table(folder / "seeded.parquet")
    marked = table.replace_schema_metadata({**table.schema.metadata, b"veil.seeded": b"0"})
    pq.write_table(marked, tmp_path / "r.parquet")
    with pytest.raises(WireError, match=r"veil\.seeded: expected 1"):
        is_seeded(tmp_path / "r.parquet")
    veil("inspect", tmp_path / "r.parquet", code=5)


@pytest.mark.parametrize("ending", ["arrow", "parquet", "tally"])
def test_inspect_and_estimate_repeat_it(folder: Path, ending: str) -> None:
    study = folder / "study.json"
    for name, expected in (("seeded", True), ("plain", False)):
        file = folder / f"{name}.{ending}"
        for options in ([], ["--study", study]):
            said, facts = remarks("inspect", file, *options)
            assert (said, facts.get("seeded", False)) == (expected, expected)
        said, document = remarks("estimate", study, file)
        assert (said, any(REMARK in one for one in document["remarks"])) == (expected, expected)


def test_tally_and_merge_repeat_it_and_plain_tallies_are_unchanged(folder: Path, tmp_path: Path) -> None:
    study, out = folder / "study.json", tmp_path / "t"
    survey = study_from_json(study.read_bytes()).survey
    for files, expected in (
        (["plain.arrow"], False),
        (["seeded.parquet"], True),
        (["plain.arrow", "seeded.parquet"], True),
    ):
        said, document = remarks("tally", study, *(folder / file for file in files), "-o", out)
        assert (said, document["seeded"]) == (expected, expected)
        tally = decode_tally(survey, out.read_bytes())
        assert tally.seeded == expected
        assert encode_tally(tally) == out.read_bytes()
        assert (b'"seeded":true' in out.read_bytes()) == expected
    said, document = remarks("merge", study, folder / "plain.tally", folder / "seeded.tally", "-o", out)
    assert (said, document["seeded"], decode_tally(survey, out.read_bytes()).seeded) == (True, True, True)
    counted = survey.tally(next(read_reports(folder / "seeded.arrow", survey)))
    assert decode_tally(survey, (folder / "seeded.tally").read_bytes()) == counted


def test_a_header_with_another_mark_is_refused() -> None:
    import hashlib

    survey = Survey(GRR(1.0, 3))
    whole = encode_tally(survey.tally(survey.randomize([0, 1, 2])))
    start, size = 14, int.from_bytes(whole[6:14], "little")
    for mark in (b"false", b"1", b"null"):
        head = whole[start : start + size].replace(b',"task"', b',"seeded":' + mark + b',"task"', 1)
        made = whole[:6] + len(head).to_bytes(8, "little") + head + whole[start + size : -32]
        with pytest.raises(WireError):
            decode_tally(survey, made + hashlib.sha256(made).digest())


def test_saved_results_keep_it(folder: Path, tmp_path: Path) -> None:
    for name, expected in (("seeded", True), ("plain", False)):
        out = tmp_path / f"{name}.result.json"
        veil("estimate", folder / "study.json", folder / f"{name}.tally", "-o", out)
        assert ("seeded" in json.loads(out.read_bytes())) == expected
        assert load(out).n == 300
        said, facts = remarks("inspect", out)
        assert (said, facts.get("seeded", False)) == (expected, expected)
    bad = json.loads((tmp_path / "seeded.result.json").read_bytes()) | {"seeded": "yes"}
    (tmp_path / "bad.result.json").write_text(json.dumps(bad))
    veil("inspect", tmp_path / "bad.result.json", code=5)


def test_differences_and_rounds_repeat_it(folder: Path, tmp_path: Path) -> None:
    study = folder / "study.json"
    assert remarks("difference", study, folder / "plain.tally", folder / "seeded.arrow")[0]
    assert not remarks("difference", study, folder / "plain.tally", folder / "plain.arrow")[0]
    veil("next", tmp_path / "run", study)
    assert remarks("next", tmp_path / "run", folder / "seeded.arrow")[0]


def test_tables_repeat_it(tmp_path: Path) -> None:
    values, study, table = tmp_path / "v.csv", tmp_path / "study.json", tmp_path / "shop"
    values.write_text("age,spent\n" + "".join(f"{20 + i % 40},{i % 7}\n" for i in range(400)))
    veil("plan", "sql", values, "--private", "age", "--epsilon", 2, "-o", study)
    veil("randomize", study, values, "-o", table)
    assert not remarks("inspect", table)[0]
    veil("simulate", study, values, "--folder", table, "--seed", 3)
    said, facts = remarks("inspect", table)
    assert (said, facts["seeded"]) == (True, True)
    assert REMARK in " ".join(veil("sql", table, "SELECT count(*) FROM people").stderr.split())
