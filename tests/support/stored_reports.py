"""Reports, tallies and rounds stored by version 0.1, and the results that it read from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from veil import Survey

FILES = Path(__file__).parent.parent / "fixtures" / "v0.1"
SURVEYS = ("square-wave", "hierarchy", "haar-hierarchy", "binning", "hybrid-mean", "psfo", "histogram", "survey")
"""Names of surveys with a task, reports, a tally and numbers; searches and runs have other files."""


def known(name: str) -> Any:
    """Return the stored numbers of a survey, search or run."""
    return json.loads((FILES / f"{name}.json").read_text())


def survey_of(name: str) -> Survey:
    """Return the survey of a stored task."""
    return Survey.from_json((FILES / f"{name}.task.json").read_bytes())
