"""`make acceptance`: run the steps that have not passed on this code yet, and write what they measured.

Resumable: a step's result is stored as soon as it is there, with the commit and a fingerprint of the code; a step that
passed on the same fingerprint is not run again. `--redo` runs all, names run those alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from acceptance.steps import ROOT, STEPS, Outcome

FOLDER = ROOT / "docs" / "reproduction"
RESULTS = FOLDER / "acceptance"
PAGE = FOLDER / "acceptance.md"


def main() -> int:
    """Run what is left to run; 0 if every step passed."""
    parser = argparse.ArgumentParser(prog="make acceptance", description=__doc__)
    parser.add_argument("steps", nargs="*", help="only these")
    parser.add_argument("--redo", action="store_true", help="also what has passed on this code")
    asked = parser.parse_args()
    console = Console()
    mark = fingerprint()
    for name in asked.steps or STEPS:
        stored = read(name)
        if stored and stored["passed"] and stored["fingerprint"] == mark and not asked.redo:
            console.print(f"[dim]{name}: passed on this code already, at {stored['commit']}")
            continue
        with console.status(f"{name}: {STEPS[name].__doc__}"):
            start = time.monotonic()
            outcome = STEPS[name]()
            write(name, outcome, mark, time.monotonic() - start)
        console.print(shown(name, outcome))
    results = {name: read(name) for name in STEPS}
    PAGE.write_text(page(results))
    return 0 if all(result and result["passed"] for result in results.values()) else 1


def fingerprint() -> str:
    """SHA-256 over all code that the numbers depend on."""
    digest = hashlib.sha256()
    for folder in ("src", "acceptance", "bench"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def commit() -> str:
    """The commit, and whether the tree has changes beyond it."""
    head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    dirty = subprocess.run(["git", "status", "--porcelain", "src"], cwd=ROOT, capture_output=True, text=True)
    return head.stdout.strip() + ("+changes" if dirty.stdout.strip() else "")


def read(name: str) -> dict[str, Any] | None:
    """A stored result, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def write(name: str, outcome: Outcome, mark: str, seconds: float) -> None:
    """Store a result with where it came from."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    document = {
        "step": name,
        "what": STEPS[name].__doc__,
        "passed": outcome.passed,
        "commit": commit(),
        "fingerprint": mark,
        "seed": outcome.seed,
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds),
        "rows": outcome.rows,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def shown(name: str, outcome: Outcome) -> Table:
    """A result for the terminal."""
    table = Table(title=f"{name}: {'passed' if outcome.passed else 'FAILED'}", title_justify="left")
    for column in ("what", "measured", "required"):
        table.add_column(column)
    for row in outcome.rows:
        table.add_row(*row)
    return table


def page(results: dict[str, dict[str, Any] | None]) -> str:
    """All results as one page of the docs."""
    lines = [
        "# What was promised, in numbers",
        "",
        "Written by `make acceptance`; the files beside this page hold the same.",
    ]
    for name, result in results.items():
        if result is None:
            continue
        verdict = "passed" if result["passed"] else "FAILED"
        lines += ["", f"## {name}: {verdict}", "", result["what"], ""]
        lines += [f"Commit {result['commit']}, seed {result['seed']}, {result['date']}.", ""]
        lines += ["| what | measured | required |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in result["rows"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
