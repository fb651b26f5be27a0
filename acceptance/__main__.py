"""`make acceptance`: run the steps that have not passed on this code yet, and write what they measured.

A step that takes long runs on a sample; --full runs all of it (`python -m acceptance --full`), which takes hours. Each
step is a process of its own; two run at a time, except where time or memory is measured. Resumable: a result is stored
as soon as it is there, with the commit and a fingerprint of the code, and a step that passed on the same code is not
run again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from acceptance.results import Result, fingerprint, read, write, write_page
from acceptance.steps import AGAINST, ROOT, STEPS

AT_ONCE = 2
ONE_THREAD = dict.fromkeys(("VEIL_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")


def main() -> int:
    """Run what is left to run; 0 if every step that was asked for has passed on this code."""
    parser = argparse.ArgumentParser(prog="make acceptance", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"only these, of: {', '.join(STEPS)}")
    parser.add_argument("--full", action="store_true", help="all of every step, and no samples")
    parser.add_argument("--redo", action="store_true", help="also what has passed on this code")
    parser.add_argument("--against", metavar="COMMIT", help="the rival of hardening-load; default: before hardening")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # one step, in this process
    asked = parser.parse_args()
    if unknown := set(asked.steps) - set(STEPS):
        parser.error(f"there is no step {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    if asked.against:
        os.environ[AGAINST] = asked.against
    names = [name for name in STEPS if not asked.steps or name in asked.steps]
    if asked.here:
        return 0 if all(run_here(name, asked.full) for name in names) else 1
    console = Console()
    left = [name for name in names if asked.redo or asked.against or not passed(name, asked.full)]
    if len(left) < len(names):
        console.print(f"[dim]{len(names) - len(left)} of {len(names)} steps have passed on this code already")
    progress = Progress(left, asked.full)
    console.print(f"{len(left)} steps, about {minutes(progress.remaining())}")

    failed = []
    for name, well in run_all(left, asked.full):
        progress.done(name)
        console.print(shown(name, current(name, asked.full), passed=well), f"[dim]{progress.line()}")
        failed += [] if well else [name]
        write_page()
    console.print(f"[red]FAILED: {', '.join(failed)}" if failed else f"[green]all {len(names)} steps passed")
    return 1 if failed else 0


def run_all(names: Sequence[str], full: bool) -> Iterator[tuple[str, bool]]:
    """Run steps, each in a process of its own: first two at a time with one thread each, then those that measure time.

    Gives each step's name and whether it passed, as soon as that is known. The longest come first.
    """
    ordered = sorted(names, key=lambda name: expected(name, full), reverse=True)
    for at_once, alone in ((AT_ONCE, False), (1, True)):
        environment = {**os.environ, **({} if alone else ONE_THREAD)}

        def run(name: str, environment: dict[str, str] = environment) -> tuple[str, bool]:
            command = [sys.executable, "-m", "acceptance", "--here", *(["--full"] if full else []), name]
            return name, not subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode

        with ThreadPoolExecutor(at_once) as pool:
            begun = [pool.submit(run, name) for name in ordered if STEPS[name].alone is alone]
            for done in as_completed(begun):
                yield done.result()


def run_here(name: str, full: bool) -> bool:
    """Run a step in this process, and store what it measured."""
    step, start = STEPS[name], time.monotonic()
    mark = fingerprint(step.code)
    outcome = (step.full or step.run)() if full else step.run()
    write(name, outcome, full=full, mark=mark, seconds=time.monotonic() - start)
    return outcome.passed


def current(name: str, full: bool) -> Result | None:
    """The result of this code; a full one serves where a sample was asked for."""
    mark = fingerprint(STEPS[name].code)
    found = [read(name, full=True), *([] if full else [read(name, full=False)])]
    return next((result for result in found if result and result["fingerprint"] == mark), None)


def passed(name: str, full: bool) -> bool:
    """Whether a step has passed on this code."""
    result = current(name, full)
    return result is not None and result["passed"]


def expected(name: str, full: bool) -> float:
    """How many seconds a step will take: what it took last, or else what it usually takes."""
    stored, step = read(name, full=full), STEPS[name]
    return float(stored["seconds"]) if stored else float((full and step.full_seconds) or step.seconds)


@dataclass
class Progress:
    """How far it is, and how long the rest takes if it takes as long as before."""

    names: list[str]
    full: bool
    start: float = field(default_factory=time.monotonic)
    finished: set[str] = field(default_factory=set)

    def done(self, name: str) -> None:
        """Count a step."""
        self.finished.add(name)

    def remaining(self) -> float:
        """Seconds, about."""
        left = {name: expected(name, self.full) for name in self.names if name not in self.finished}
        beside = [seconds for name, seconds in left.items() if not STEPS[name].alone]
        alone = sum(left.values()) - sum(beside)
        return alone + max(sum(beside) / AT_ONCE, max(beside, default=0.0))

    def line(self) -> str:
        """Where it stands."""
        elapsed = time.monotonic() - self.start
        steps = f"{len(self.finished)} of {len(self.names)} steps"
        return f"{steps}; {minutes(elapsed)} so far, about {minutes(self.remaining())} to go"


def minutes(seconds: float) -> str:
    """A time as people say it."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def shown(name: str, result: Result | None, *, passed: bool) -> Table | str:
    """A line for what passed; what did not, in full."""
    if result is None:
        return f"[red]{name}: FAILED without a result; what it said is above"
    title = f"{name}: {'passed' if passed else 'FAILED'} ({result['form']}, {minutes(result['seconds'])})"
    if passed:
        return title
    table = Table(title=title, title_justify="left")
    for column in ("what", "measured", "required"):
        table.add_column(column)
    for row in result["rows"]:
        table.add_row(*row)
    return table


if __name__ == "__main__":
    sys.exit(main())
