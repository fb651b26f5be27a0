"""`python -m bench`: the table of ratios. Exit code 1 when a required one is missed."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.memory import memory_rows
from bench.peers import PureLdp
from bench.rows import speed_rows, start_row
from bench.timing import Outcome

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"
COLUMNS = ("what", "against", "ratio", "required", "verdict")


def main() -> int:
    """Measure, print, and write where asked."""
    options = _options()
    repeats = 5 if options.quick else options.repeats
    outcomes = _measure(repeats, memory_reports=1_000_000 if options.quick else 10_000_000)
    facts = {"commit": _commit(), "machine": _machine(), "repeats": repeats, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(_table(outcomes))
    required = [outcome for outcome in outcomes if outcome.required is not None]
    missed = [outcome for outcome in required if outcome.missed]
    skipped = [outcome for outcome in required if outcome.ratio is None]
    reached = len(required) - len(missed) - len(skipped)
    console.print(f"{reached} of {len(required)} required ratios reached, {len(missed)} missed, {len(skipped)} not run")
    if options.json:
        rows = [{**asdict(outcome), "verdict": outcome.verdict} for outcome in outcomes]
        options.json.write_text(json.dumps({**facts, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    if options.write:
        _write(outcomes, facts)
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--repeats", type=int, default=100, help="turns a row (100)")
    parser.add_argument("--quick", action="store_true", help="few turns and a small file: does everything still run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the rows as JSON as well")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    return parser.parse_args()


def _measure(repeats: int, memory_reports: int) -> list[Outcome]:
    outcomes = []
    progress = Console(stderr=True)
    with PureLdp() as pure_ldp, progress.status("warming up") as status:

        def note(outcome: Outcome) -> None:
            outcomes.append(outcome)
            status.update(f"{len(outcomes)} rows; last: {outcome.what}")

        for outcome in speed_rows(repeats, pure_ldp):
            note(outcome)
        note(start_row(min(repeats, 20)))
        for outcome in memory_rows(memory_reports):
            note(outcome)
    return outcomes


def _cells(outcome: Outcome) -> tuple[str, ...]:
    def number(value: float | None) -> str:
        if value is None:
            return ""
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    needed = "" if outcome.required is None else f">= {number(outcome.required)}"
    return outcome.what, outcome.against, number(outcome.ratio), needed, outcome.verdict


def _table(outcomes: list[Outcome]) -> Table:
    table = Table(title="veil against peers and limits: people per second, as ratios of best times")
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in ("ratio", "required") else "left")
    for outcome in outcomes:
        style = "red" if outcome.missed else "yellow" if outcome.ratio is None else None
        table.add_row(*_cells(outcome), style=style)
    return table


def _write(outcomes: list[Outcome], facts: dict[str, str | int]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    after = rest.split(END)[1]
    lines = [f"Commit {facts['commit']}, {facts['date']}, {facts['machine']}, best of {facts['repeats']} turns.", ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---|---|---:|---:|---|"]
    lines += [f"| {' | '.join(_cells(outcome))} |" for outcome in outcomes]
    PAGE.write_text(before + "\n".join([START, *lines, END]) + after, encoding="utf-8")


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--", "src", "bench") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def _machine() -> str:
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text(encoding="utf-8").splitlines() if cpus.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names) or '?'} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
