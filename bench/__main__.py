"""`python -m bench`: the tables of ratios. Exit code 1 when a required one is missed."""

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

from bench.collector_load import collector_rows
from bench.hitters_rows import hitters_rows
from bench.interval_rows import interval_rows
from bench.marginal_rows import marginal_rows
from bench.memory import memory_rows
from bench.numeric_rows import numeric_rows
from bench.oracles import Effort, OracleLine, all_oracles
from bench.peers import MULTI_FREQ, PURE_LDP, Peer
from bench.peos_rows import peos_rows
from bench.post_rows import post_rows
from bench.rows import speed_rows, start_row, transform_rows
from bench.shuffle_rows import shuffle_rows
from bench.sql_rows import sql_rows
from bench.tables import oracle_tables, ratio_table, write_page
from bench.timing import Outcome
from bench.tree_rows import tree_rows

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
QUICK = Effort(turns=3, seconds=0, people=2_000, seeds=1, size=0.002, apart=False)


def main() -> int:
    """Measure, print, and write where asked."""
    options = _options()
    repeats = QUICK.turns if options.quick else options.repeats
    effort = QUICK if options.quick else Effort(turns=repeats)
    outcomes, lines = _measure(repeats, 1_000_000 if options.quick else 10_000_000, effort)
    facts = {"commit": _commit(), "machine": _machine(), "repeats": repeats, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    console = Console(width=None if sys.stdout.isatty() else 180)
    console.print(ratio_table(outcomes), *oracle_tables(lines))
    required = [outcome for outcome in outcomes if outcome.required is not None]
    missed = [outcome for outcome in required if outcome.missed]
    skipped = [outcome for outcome in required if outcome.ratio is None]
    reached = len(required) - len(missed) - len(skipped)
    console.print(f"{reached} of {len(required)} required ratios reached, {len(missed)} missed, {len(skipped)} not run")
    if options.json:
        rows = [{**asdict(outcome), "verdict": outcome.verdict} for outcome in outcomes]
        options.json.write_text(json.dumps({**facts, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    if options.write:
        write_page(PAGE, outcomes, lines, facts)
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--repeats", type=int, default=100, help="turns a row (100)")
    parser.add_argument("--quick", action="store_true", help="few turns and a small file: does everything still run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the rows as JSON as well")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    return parser.parse_args()


def _measure(repeats: int, reports: int, effort: Effort) -> tuple[list[Outcome], list[OracleLine]]:
    outcomes: list[Outcome] = []
    lines: list[OracleLine] = []
    progress = Console(stderr=True)
    with Peer(PURE_LDP) as pure_ldp, Peer(MULTI_FREQ) as multi_freq, progress.status("warming up") as status:

        def note(outcome: Outcome) -> None:
            outcomes.append(outcome)
            status.update(f"{len(outcomes)} rows; last: {outcome.what}")

        for outcome in speed_rows(repeats, pure_ldp, multi_freq):
            note(outcome)
        for outcome in transform_rows(repeats, reports // 10):
            note(outcome)
        for rows in (
            interval_rows,
            post_rows,
            numeric_rows,
            tree_rows,
            hitters_rows,
            marginal_rows,
            shuffle_rows,
            peos_rows,
        ):
            for outcome in rows(repeats):
                note(outcome)
        for outcome in sql_rows(repeats, reports):
            note(outcome)
        note(start_row(min(repeats, 20)))
        for outcome in memory_rows(reports):
            note(outcome)
        turns, seconds = (1, 1) if effort is QUICK else (5, 5)
        for outcome in collector_rows(turns, seconds, reports // 10):
            note(outcome)
        for line in all_oracles(effort, (pure_ldp, multi_freq)):
            lines.append(line)
            status.update(f"{len(outcomes)} rows, {len(lines)} oracles; last: {line.oracle}")
    return outcomes, lines


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
