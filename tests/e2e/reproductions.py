"""What every `veil reproduce` is held to: pictures, tables with finite numbers, and a verdict for every claim."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.commands import CliRunner

from veil.cli.main import app

Run = tuple[Path, Any]
"""The folder that was written, and the command's document."""


def reproduced(name: str, folder: Path) -> Run:
    """A quick run without any data folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VEIL_DATA", raising=False)
        result = CliRunner().invoke(app, ["reproduce", name, "--quick", "--out", str(folder), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return folder, json.loads(result.stdout)


def tables_of(run: Run, names: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """The rows of each exhibit's table, where there are just these exhibits, each with its picture."""
    folder, document = run
    assert sorted(exhibit["name"] for exhibit in document["exhibits"]) == sorted(names)
    tables = {}
    for name in names:
        assert (folder / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        tables[name] = list(csv.DictReader((folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        # a grid's columns are labels: it has no axis
        numbers = [
            float(row[part]) for row in tables[name] for part in ("x", "mean") if part == "mean" or row["x_axis"]
        ]
        assert numbers
        assert np.isfinite(numbers).all()
    assert {path.name for path in folder.iterdir()} == set(document["files"])
    return tables


def claims_of(run: Run, exhibit: str | None = None) -> list[dict[str, Any]]:
    """The claims, of one exhibit or of all, as they stand on the page; where chance decides they are indicative."""
    folder, document = run
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert all(one["claims"] for one in document["exhibits"])
    claims = [claim for one in document["exhibits"] if exhibit in (None, one["name"]) for claim in one["claims"]]
    for claim in claims:
        word = "holds" if claim["holds"] else "does not hold"
        assert claim["verdict"] == (word if claim["exact"] else "indicative")
        assert claim["measured"]
        assert f"| {claim['says']} | {claim['measured']} | {claim['verdict']} |" in page
    return claims


def verdict_of(run: Run, begins: str, exhibit: str | None = None) -> str:
    """What the quick run indicates of the one claim that begins so."""
    [claim] = [claim for claim in claims_of(run, exhibit) if claim["says"].startswith(begins)]
    return "holds" if claim["holds"] else "does not hold"
