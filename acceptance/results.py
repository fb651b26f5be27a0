"""What steps measured, as files: one per step and form, and a page of all. A fingerprint tells which code it was."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acceptance.steps import ROOT, STEPS, Outcome
from veil_papers.common.writing import commit

FOLDER = ROOT / "docs" / "reproduction"
RESULTS = FOLDER / "acceptance"
PAGE = FOLDER / "acceptance.md"

Result = dict[str, Any]


def fingerprint(folders: tuple[str, ...]) -> str:
    """SHA-256 over all code in these folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def read(name: str, *, full: bool) -> Result | None:
    """A stored result of a step in one of its forms, or None."""
    path = _path(name, full)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write(name: str, outcome: Outcome, *, full: bool, mark: str, seconds: float) -> None:
    """Store a result with where it came from."""
    step = STEPS[name]
    document = {
        "step": name,
        "what": step.what,
        "form": "in full" if full or step.full is None else "sampled",
        "passed": outcome.passed,
        "commit": commit(),
        "fingerprint": mark,
        "seed": outcome.seed,
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds),
        "rows": outcome.rows,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    _path(name, full).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_page() -> None:
    """All results as one page of the docs."""
    lines = [
        "# What was promised, in numbers",
        "",
        "Written by `make acceptance`; the files beside this page hold the same. A sample has fewer runs and points "
        "than `python -m acceptance --full`, and the same thresholds.",
    ]
    for name, step in STEPS.items():
        for full in (True, False) if step.full else (True,):
            if result := read(name, full=full):
                lines += _section(name, result)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _section(name: str, result: Result) -> list[str]:
    verdict = "passed" if result["passed"] else "FAILED"
    sampled = " on a sample" if result["form"] == "sampled" else ""
    return [
        *("", f"## {name}: {verdict}{sampled}", "", result["what"], ""),
        f"Commit {result['commit']}, seed {result['seed']}, {result['date']}, {result['seconds']} s.",
        *("", "| what | measured | required |", "|---|---|---|"),
        *(f"| {' | '.join(row)} |" for row in result["rows"]),
    ]


def _path(name: str, full: bool) -> Path:
    return RESULTS / (f"{name}.json" if full or STEPS[name].full is None else f"{name}.sampled.json")
