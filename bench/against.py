"""Compare this code with an earlier commit: the same rows on both sides, in turns, as one table of ratios.

Each side runs in processes of its own, from its own checkout and environment. A run starts both sides anew, and takes
the best of several turns; the side that comes first changes. A row is worse if it costs more than 1.03 times as much
as before in at least four of five runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.timing import Setting

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".bench-against"
EXTRAS = "plot,rappor,collector,sql,peos"
MORE = ("hypothesis", "osqp", "psutil")  # what rows and the steps of acceptance that they call import
RUNS, ENOUGH, WORSE = 5, 4, 1.03
TURNS, SECONDS = 10, 20.0


@dataclass(frozen=True)
class Side:
    """A checkout, and the Python that runs it."""

    checkout: Path
    python: str


@dataclass(frozen=True)
class Wanted:
    """The rows to measure: those of a group whose names contain a text."""

    group: str
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """Read `GROUP` or `GROUP:TEXT`."""
        group, _, rest = text.partition(":")
        return cls(group, rest)


@dataclass
class Comparison:
    """A row and its costs, before over after, one ratio for each run; 2 means twice as fast as before."""

    group: str
    what: str
    required: bool
    ratios: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def worse(self) -> bool:
        """True if enough runs were worse by more than 3 %."""
        return sum(ratio < 1 / WORSE for ratio in self.ratios) >= math.ceil(ENOUGH / RUNS * len(self.ratios)) > 0

    @property
    def better(self) -> bool:
        return sum(ratio > WORSE for ratio in self.ratios) >= math.ceil(ENOUGH / RUNS * len(self.ratios)) > 0

    @property
    def verdict(self) -> str:
        if not self.ratios:
            return f"not compared: {self.note}"
        return "worse" if self.worse else "better" if self.better else "the same"


def compare(
    before: Side,
    after: Side,
    wanted: Sequence[Wanted],
    setting: Setting,
    runs: int = RUNS,
    note: Callable[[str], None] = lambda text: None,
) -> list[Comparison]:
    """Measure all wanted rows that both sides know; the others are in the list without ratios."""
    found = list[Comparison]()
    for each in wanted:
        note(f"{each.group}: listing rows")
        named = [_listed(side, each, setting) for side in (before, after)]
        rows = {what: Comparison(each.group, what, row["required"]) for what, row in (named[0] | named[1]).items()}
        for what, row in rows.items():
            row.note = (
                "" if what in named[0] and what in named[1] else f"only {'after' if what in named[1] else 'before'}"
            )
        both = [what for what, row in rows.items() if not row.note]
        for number in range(runs if both else 0):
            with _Process(before, each.group, setting) as old, _Process(after, each.group, setting) as new:
                for what in both:
                    note(f"{each.group}: {what} ({number + 1} of {runs} runs)")
                    _measure(rows[what], (old, new), first=number % 2)
        found += rows.values()
    return found


def table(comparisons: Sequence[Comparison], commit: str) -> Table:
    """The table for the terminal."""
    made = Table(title=f"this code beside {commit}: how many times as fast (or small), median and all runs")
    for name in ("group", "what", "median", "runs", "verdict"):
        made.add_column(name, justify="right" if name == "median" else "left")
    for row in comparisons:
        runs, style = " ".join(f"{ratio:.2f}" for ratio in row.ratios), "red" if row.worse else None
        middle = f"{sorted(row.ratios)[len(row.ratios) // 2]:.3f}" if row.ratios else ""
        verdict = row.verdict if row.required or not row.ratios else f"{row.verdict} (for orientation)"
        made.add_row(row.group, row.what, middle, runs, verdict, style=style)
    return made


def _listed(side: Side, wanted: Wanted, setting: Setting) -> dict[str, dict[str, Any]]:
    """The wanted rows by name, not measured. Rows with one name have the same work, and several rivals."""
    rows = dict[str, dict[str, Any]]()
    with _Process(side, wanted.group, setting) as process:
        while "end" not in (row := process.ask("next")):
            if wanted.text in row["what"]:
                known = rows.setdefault(row["what"], row)
                known["required"] |= row["required"]
    return rows


def _measure(row: Comparison, sides: tuple[_Process, _Process], first: int) -> None:
    """Append the ratio of one run: best of several turns of each side."""
    described = [side.advance(row.what) for side in sides]
    if any("end" in each for each in described):
        row.note = "the rows come in another order"
        return
    turns = min(TURNS, *(each["turns"] for each in described))
    best, end = [math.inf, math.inf], time.monotonic() + SECONDS
    order = (first, 1 - first)
    for turn in range(-1 if described[0]["warm"] else 0, turns):
        for one in order:
            answer = sides[one].ask("turn")
            if "not_run" in answer:
                row.note = answer["not_run"]
                return
            if turn >= 0:
                best[one] = min(best[one], answer["cost"])
        if turn >= 2 and time.monotonic() > end:
            break
    row.ratios.append(best[0] / best[1])


class _Process:
    """A process that measures the rows of one group of one side; a context manager."""

    def __init__(self, side: Side, group: str, setting: Setting) -> None:
        command = [side.python, "-m", "bench.side", group, str(setting.repeats), str(setting.reports)]
        environment = {**os.environ, "PYTHONPATH": str(side.checkout / "src")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else one side would compile what it imports in each process
        self._process = subprocess.Popen(
            command, cwd=side.checkout, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._row: dict[str, Any] = {}

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes its input, which ends it

    def ask(self, command: str) -> dict[str, Any]:
        """Return the answer to a command. A side that ends early, as where a name has moved, has no more rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            print(command, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"end": True, "not_run": "the side ended early"}
        return answer

    def advance(self, what: str) -> dict[str, Any]:
        """Go on to the first row of a name."""
        while self._row.get("what") != what and "end" not in self._row:
            self._row = self.ask("next")
        return self._row


# -- the earlier commit ------------------------------------------------------------------------------------------------


def prepare(commit: str) -> Side:
    """Make a worktree of a commit, with an environment that has the tested versions; both stay for the next time."""
    checkout = FOLDER / _git("rev-parse", "--short", f"{commit}^{{commit}}")
    if not (checkout / "pyproject.toml").exists():
        _git("worktree", "add", "--quiet", "--force", "--detach", str(checkout), commit)
    if not _git("ls-tree", commit, "bench/side.py"):
        print(f"{commit} cannot measure rows one by one: the rows of this checkout are used for both", file=sys.stderr)
        shutil.copytree(ROOT / "bench", checkout / "bench", dirs_exist_ok=True)
        if (checkout / "src" / "veil" / "datasets").exists():  # rows take their data where it is today
            (checkout / "src" / "veil_papers" / "datasets.py").write_text("from veil.datasets import *\n")
    python = checkout / ".venv" / "bin" / "python"
    ready = checkout / ".venv" / ".bench-ready"
    constraints = ROOT / "constraints.txt"
    digest = hashlib.sha256(constraints.read_bytes()).hexdigest()
    if not ready.exists() or ready.read_text() != digest:
        print(f"installing {commit} with its dependencies in {checkout.relative_to(ROOT)}/.venv", file=sys.stderr)
        venv.create(checkout / ".venv", with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        pip += ["--constraint", str(constraints), "--editable", f".[{EXTRAS}]", *MORE]
        subprocess.run(pip, cwd=checkout, check=True)
        ready.write_text(digest)
    return Side(checkout, str(python))


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
