"""Numbers printed in the papers, from the CSV files in tests/golden."""

from __future__ import annotations

import csv
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def golden_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file in tests/golden."""
    return list(csv.DictReader((FOLDER / name).read_text().splitlines()))
