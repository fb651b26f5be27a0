"""`veil reproduce` without any data folder: every figure and table is there, and every claim has a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.e2e.reproductions import Run, claims_of, reproduced, tables_of, verdict_of
from tests.support.commands import CliRunner

import veil_papers
from veil.cli.main import app
from veil.errors import InputError
from veil_papers import EXPERIMENTS
from veil_papers.datasets import kosarak_clicks

FIGURES = [f"figure-3.{i}" for i in range(1, 6)]


def veil(*args: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("frequency-oracles", tmp_path_factory.mktemp("frequency-oracles") / "new")


def test_every_figure_has_its_picture_and_its_table(run: Run) -> None:
    assert all(len(rows) >= 8 for rows in tables_of(run, FIGURES).values())
    assert "stand-in" in run[1]["clicks"]


def test_every_claim_has_a_verdict_and_analysis_holds(run: Run) -> None:
    exact = [claim["verdict"] for claim in claims_of(run) if claim["exact"]]
    assert len(exact) >= 6
    assert set(exact) == {"holds"}


@pytest.mark.parametrize(
    "says",
    [
        "For eps > 1 OLH is the best of the four",
        "At eps = 4 OLH finds more than twice Rappor's true positives",
        "At a threshold of 5,000 OLH has tens of false positives, BLH thousands",
    ],
)
def test_what_the_thesis_is_about_holds_on_the_stand_in(run: Run, says: str) -> None:
    assert verdict_of(run, says) == "holds"


def test_splitting_in_words(tmp_path: Path) -> None:
    text = veil("reproduce", "splitting", "--quick", "--out", tmp_path).stdout
    assert "holds" in text
    assert "indicative" in text
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "splitting.svg", "splitting.csv"}


def test_without_a_name_the_experiments_are_listed() -> None:
    text = " ".join(veil("reproduce").stdout.split())
    listed = json.loads(veil("reproduce", "--json").stdout)["experiments"]
    assert [one["name"] for one in listed] == list(EXPERIMENTS)
    help_text = " ".join(veil("reproduce", "--help").stdout.replace("│", " ").split())
    for one in listed:
        assert (Path(veil_papers.__file__).parent / one["name"].replace("-", "_") / "__init__.py").exists()
        assert one["name"] in text
        assert one["name"] in help_text
        assert one["minutes"] > 0


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
