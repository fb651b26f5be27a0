"""Writes docs/cli.md from the commands' own help: `python -m veil.cli.docs [FILE]`.

The layout is our own, so that the page does not change with the version of typer. A test keeps the two in step.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import typer

from veil.cli.main import app
from veil.cli.outcome import EXIT_CODES

__all__ = ["page"]

_WIDTH = 100
_HEAD = """\
# The command line

Written by `python -m veil.cli.docs` from the commands' own help; change it there.

The way of a value, as commands:

    veil plan --labels-file labels.txt --epsilon 1 --users 1000000 --out task.json
    veil randomize task.json values.csv -o reports.arrow          # on the devices
    veil tally task.json reports*.arrow -o tally.bin              # at the collector
    veil merge task.json here.bin there.bin -o tally.bin
    veil estimate task.json tally.bin -o estimate.csv --plot estimate.svg

Numbers and times are asked for in the same way ([architecture](architecture.md) names what comes out):

    veil plan --numeric 0 250000 --epsilon 1 --out task.json      # a distribution, by SquareWave
    veil plan --numeric 18 99 --integers --mean --epsilon 1       # the mean alone
    veil plan --numeric 2026-01-01 2027-01-01 --epsilon 1         # dates and times, in ISO 8601 and UTC
    veil randomize task.json incomes.csv --clip -o reports.arrow  # what lies outside counts as the nearer end
    veil estimate task.json tally.bin --bands 200 --plot incomes.svg

The plan tells two errors. Of a mean: the standard error in the worst case, from exact moments, in units of the domain.
Of a range: the root mean square error over all ranges of a tenth of the domain, measured on made-up people who are
distributed like Beta(5, 2), a million at most. Where a task's questions are read together (Hierarchy, HaarHierarchy,
HybridMean), `veil estimate` prints their one answer; `--question` asks for a single one.

Strings that nobody listed before are found in stored reports; `simulate` walks the whole way on a file of values:

    veil hitters plan --epsilon 2 -k 20 --max-bytes 12 --out task.json
    veil randomize task.json words.csv -o reports.arrow           # on the devices, each person once
    veil hitters find task.json reports*.arrow -k 20 -o hitters.csv
    veil hitters simulate words.csv --epsilon 2 -k 20 --max-bytes 12 --truth

Frequent items and sets of items take several rounds, each of people who were not asked before. A folder keeps the
campaign; `next` takes a round's tally and writes the next task, or shows what was found:

    veil itemsets plan campaign --universe items.txt --epsilon 2 -k 20 --sets
    veil randomize campaign/round-000.json baskets.csv -o r.arrow # the share of the people that the round asks
    veil tally campaign/round-000.json r.arrow -o t.bin
    veil itemsets next campaign t.bin
    veil itemsets simulate baskets.parquet --epsilon 2 -k 20 --sets --rules 0.5 --folder trial

Sets are lists in Parquet and Arrow files. In text files they are cells with a separator between the items, and an empty
cell is an empty set.

The same with a service between the devices and the analyst ([docs/collector](collector/service.md)):

    veil serve                                                    # takes reports over HTTP
    veil survey create task.json --open
    veil token create --scope answers:read

Every command takes `--json`: standard output then holds exactly one JSON document. A mistake is one line on standard
error, or with `--json` the document `{"error": {"kind": ..., "message": ...}}`; wrong usage always goes to standard
error. No message shows anybody's value. Progress and warnings go to standard error. An output file appears only once it
is whole.
"""


def page() -> str:
    """The whole page, the same wherever it is made."""
    root: Any = typer.main.get_command(app)
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    parts = [_HEAD, f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n", _section(root, "veil")]
    parts += _sections(root, "veil")
    return "\n".join(parts)


def _sections(group: Any, name: str) -> list[str]:
    """A section for every command of a group, and for the commands of groups within it."""
    made: list[str] = []
    for sub, command in getattr(group, "commands", {}).items():
        made += [_section(command, f"{name} {sub}"), *_sections(command, f"{name} {sub}")]
    return made


def _section(command: Any, name: str) -> str:
    # laid out here and not by typer: its boxes and metavars change from version to version
    entries = [_entry(parameter) for parameter in command.params]
    entries += [(sub, inner.help) for sub, inner in getattr(command, "commands", {}).items()]
    width = 2 + max(len(left) for left, _ in entries)
    arguments = [left for left, _ in entries if left.isupper()]
    usage = " ".join([name, *(["COMMAND"] if hasattr(command, "commands") else arguments)])
    lines = [f"{usage} [OPTIONS]", "", *textwrap.wrap(command.help, _WIDTH), ""]
    for left, right in entries:
        lines += textwrap.wrap(
            left.ljust(width) + right, _WIDTH, initial_indent="  ", subsequent_indent=" " * (width + 2)
        )
    return f"## `{name}`\n\n```text\n" + "\n".join(lines) + "\n```\n"


def _entry(parameter: Any) -> tuple[str, str]:
    """How a parameter is written, and what it means."""
    if parameter.param_type_name == "argument":
        many = "..." if parameter.nargs == -1 else ""
        return parameter.name.upper() + many, parameter.help
    shown = [] if parameter.default in (None, False) or parameter.required else [f"default: {parameter.default}"]
    if parameter.required:
        shown.append("required")
    return ", ".join(parameter.opts), parameter.help + "".join(f" [{fact}]" for fact in shown)


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/cli.md")
    out.write_text(page(), encoding="utf-8")
