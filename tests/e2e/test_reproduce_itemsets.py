"""`veil reproduce itemsets` without any data folder: figures and tables are there, and claims have verdicts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from veil.cli.main import app

FIGURES = ["figure-5.3", "figure-5.4", "figure-5.6", "figure-5.7", "figure-5.8"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("itemsets")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VEIL_DATA", raising=False)
        result = CliRunner().invoke(app, ["reproduce", "itemsets", "--quick", "--out", str(folder), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return folder, json.loads(result.stdout)


def test_every_figure_has_its_picture_and_its_table(run: tuple[Path, Any]) -> None:
    folder, document = run
    assert [exhibit["name"] for exhibit in document["exhibits"]] == FIGURES
    for name in FIGURES:
        assert (folder / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        rows = list(csv.DictReader((folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        assert len(rows) >= 8
        assert all(np.isfinite([float(row["x"]), float(row["mean"])]).all() for row in rows)
    assert {path.name for path in folder.iterdir()} == set(document["files"])
    assert "stand-in" in document["pos"]


def test_every_claim_has_a_verdict(run: tuple[Path, Any]) -> None:
    folder, document = run
    page = (folder / "README.md").read_text(encoding="utf-8")
    claims = [claim for exhibit in document["exhibits"] for claim in exhibit["claims"]]
    assert all(exhibit["claims"] for exhibit in document["exhibits"])
    for claim in claims:
        assert claim["verdict"] in ("holds", "does not hold")
        assert f"| {claim['says']} | {claim['measured']} | {claim['verdict']} |" in page
    assert sum(claim["says"].startswith("(goal)") for claim in claims) == 6  # two more at eps = 1, in full


@pytest.mark.parametrize(
    "starts",
    [
        "(goal) SVIM at eps = 2: NCR at least 1.8 times improved",
        "(goal) SVIM at eps = 2: squared error at least 200 times",
        "SVSM is better on SVIM than on LDPMiner, Kosarak",
        "SVIM is better than LDPMiner, Kosarak (here: Var",
    ],
)
def test_what_the_thesis_is_about_holds_on_the_stand_in(run: tuple[Path, Any], starts: str) -> None:
    claims = [claim for exhibit in run[1]["exhibits"] for claim in exhibit["claims"]]
    assert [claim["verdict"] for claim in claims if claim["says"].startswith(starts)] == ["holds"]
