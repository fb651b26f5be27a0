"""`veil reproduce` without any data folder: every figure and table is there, and every claim has a verdict."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from veil.cli.main import app
from veil.datasets import kosarak_clicks
from veil.errors import InputError

FIGURES = [f"figure-3.{i}" for i in range(1, 6)]


def veil(*args: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("reproduction") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VEIL_DATA", raising=False)
        text = veil("reproduce", "frequency-oracles", "--quick", "--out", folder, "--json").stdout
    return folder, json.loads(text)


def test_every_figure_has_its_picture_and_its_table(run: tuple[Path, Any]) -> None:
    folder, document = run
    assert [exhibit["name"] for exhibit in document["exhibits"]] == FIGURES
    for name in FIGURES:
        picture = (folder / f"{name}.svg").read_text(encoding="utf-8")
        assert picture.startswith("<?xml")
        rows = list(csv.DictReader((folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        assert len(rows) >= 8
        assert all(np.isfinite([float(row["x"]), float(row["mean"])]).all() for row in rows)
    assert {path.name for path in folder.iterdir()} == set(document["files"])
    assert "stand-in" in document["clicks"]


def test_every_claim_has_a_verdict_and_analysis_holds(run: tuple[Path, Any]) -> None:
    folder, document = run
    page = (folder / "README.md").read_text(encoding="utf-8")
    claims = [claim for exhibit in document["exhibits"] for claim in exhibit["claims"]]
    assert all(exhibit["claims"] for exhibit in document["exhibits"])
    for claim in claims:
        assert claim["verdict"] in ("holds", "does not hold")
        assert claim["measured"]
        assert f"| {claim['says']} | {claim['measured']} | {claim['verdict']} |" in page
    exact = [claim for claim in claims if claim["exact"]]
    assert len(exact) >= 6
    assert not [claim for claim in exact if claim["verdict"] != "holds"]


def test_what_the_thesis_is_about_holds_on_the_stand_in(run: tuple[Path, Any]) -> None:
    verdicts = {c["says"]: c["verdict"] for exhibit in run[1]["exhibits"] for c in exhibit["claims"]}
    for says in (
        "For eps > 1 OLH is the best of the four",
        "At eps = 4 OLH finds more than twice Rappor's true positives",
        "At a threshold of 5,000 OLH has tens of false positives, BLH thousands",
    ):
        assert verdicts[says] == "holds"


def test_splitting_in_words(tmp_path: Path) -> None:
    text = veil("reproduce", "splitting", "--quick", "--out", tmp_path).stdout
    assert "holds" in text
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "splitting.svg", "splitting.csv"}


def test_mistakes(tmp_path: Path) -> None:
    veil("reproduce", "chapter-11", "--out", tmp_path, code=3)
    veil("reproduce", "frequency-oracles", "--quick", "--out", tmp_path, "--data", tmp_path / "no", code=3)
    (tmp_path / "file").touch()
    veil("reproduce", "splitting", "--quick", "--out", tmp_path / "file", code=3)


def test_clicks_are_read_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no file"):
        kosarak_clicks(tmp_path)
    pq.write_table(pa.table({"items": [[1, 2], [2], [41_270]]}), tmp_path / "kosarak_first100k.parquet")
    monkeypatch.setenv("VEIL_DATA", str(tmp_path))
    clicks = kosarak_clicks()
    assert (len(clicks.held), clicks.people, clicks.stand_in) == (41_270, 40, False)
    assert clicks.held[[0, 1, -1]].tolist() == [10, 20, 10]


def test_the_stand_in_is_as_large_as_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VEIL_DATA", raising=False)
    clicks = kosarak_clicks()
    assert (len(clicks.held), clicks.people) == (41_270, 8_019_470)
    assert clicks.held.min() == 0  # some pages without a click, as absent candidates
