"""`python -m bench`: the tables of ratios. Exit code 1 when a required one is missed."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench.against import RUNS, Comparison, Side, Wanted, compare, prepare, table
from bench.groups import GROUPS, rows_of
from bench.oracles import Effort, OracleLine, all_oracles
from bench.peers import MULTI_FREQ, PURE_LDP, Peer
from bench.tables import oracle_tables, ratio_table, write_page
from bench.timing import Outcome, Setting

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
QUICK = Effort(turns=3, seconds=0, people=2_000, seeds=1, size=0.002, apart=False)


def main() -> int:
    """Measure, print, and write where asked."""
    options = _options()
    repeats = QUICK.turns if options.quick else options.repeats
    setting = Setting(repeats, 1_000_000 if options.quick else 10_000_000, quick=options.quick)
    if options.against:
        return _compare(options.against, options.rows, setting, options.json)
    effort = QUICK if options.quick else Effort(turns=repeats)
    outcomes, lines = _measure(options.rows, setting, effort)
    facts = {"commit": _commit(), "machine": _machine(), "repeats": repeats, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    console = Console(width=None if sys.stdout.isatty() else 180)
    console.print(ratio_table(outcomes), *(oracle_tables(lines) if lines else ()))
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
    parser.add_argument(
        "--rows",
        action="append",
        metavar="GROUP[:TEXT]",
        help=f"only these rows, by group and a part of their names; repeatable. Groups: {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare with an earlier commit instead of peers and limits"
    )
    options = parser.parse_args()
    if options.write and (options.rows or options.against):
        parser.error("--write: expected neither --rows nor --against, because the page has all rows")
    options.rows = [Wanted.parse(text) for text in options.rows or ()]
    if unknown := [each.group for each in options.rows if each.group not in GROUPS]:
        parser.error(f"--rows: expected one of {', '.join(GROUPS)}, got {unknown[0]}")
    return options


def _compare(commit: str, rows: Sequence[Wanted], setting: Setting, file: Path | None) -> int:
    progress = Console(stderr=True)
    setting = replace(setting, reports=1_000_000)
    before, after = prepare(commit), Side(ROOT, sys.executable)
    with progress.status("starting") as status:
        wanted = rows or [Wanted(group) for group in GROUPS]
        found: list[Comparison] = compare(before, after, wanted, setting, RUNS, status.update)
    Console(width=None if sys.stdout.isatty() else 180).print(table(found, commit))
    if file:
        lines = [{**asdict(row), "verdict": row.verdict} for row in found]
        file.write_text(json.dumps({"against": commit, "rows": lines}, indent=2) + "\n", encoding="utf-8")
    worse = [row for row in found if row.worse and row.required]
    print(f"{len(worse)} required rows are worse, of {sum(row.required for row in found)}")
    return 1 if worse else 0


def _measure(rows: Sequence[Wanted], setting: Setting, effort: Effort) -> tuple[list[Outcome], list[OracleLine]]:
    outcomes, lines = list[Outcome](), list[OracleLine]()
    with Console(stderr=True).status("warming up") as status:
        for wanted in rows or [Wanted(group) for group in GROUPS]:
            for row in rows_of(wanted.group, setting):
                if wanted.text in row.what:
                    outcomes.append(row.outcome())
                    status.update(f"{len(outcomes)} rows; last: {row.what}")
        if not rows:
            with Peer(PURE_LDP) as pure_ldp, Peer(MULTI_FREQ) as multi_freq:
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
