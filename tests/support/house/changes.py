"""Compare a checkout with an earlier commit, with lines that only moved counted apart.

Python files only: recorded data and other languages are not counted. A changed line is one that `git diff` shows as
added or removed, without blank ones. It moved if it stands in a run of at least three lines that was removed somewhere
and added somewhere, in any of the folders; indentation is ignored. A removed run explains one added run: a copy is new.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.house.figures import CONCEPTS, LIMITED, SIZES, TREES, concepts, limited, read, sizes

RUN = 3
"""Lines of the shortest run that counts as moved."""

Run = tuple[str, ...]


@contextmanager
def checkout_of(root: Path, commit: str) -> Iterator[Path]:
    """The measured folders of a commit, in a temporary folder."""
    command = ["git", "archive", commit, "--", *TREES]
    archive = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def against(before: Path, after: Path) -> list[tuple[str, int | str, int | str, int]]:
    """Return rows of a figure, its values before and after, and its change: three folders together, then `src/veil`."""
    rows: list[tuple[str, int | str, int | str, int]] = []
    removed, added = changed_runs(before, after)
    gone, new = sum(map(len, removed)), sum(map(len, added))
    moved = moved_lines(removed, added)
    old, now = _figures(before), _figures(after)
    rows += [(name, old[name], now[name], now[name] - old[name]) for name in now]
    rows.append(("moved lines", "", "", min(moved)))
    rows.append(("removed lines, without moved and blank", "", "", -(gone - moved[0])))
    rows.append(("added lines, without moved and blank", "", "", new - moved[1]))
    return rows


def _figures(checkout: Path) -> dict[str, int]:
    sources = {tree: read(checkout / tree) for tree in TREES}
    together = [source for one in sources.values() for source in one]
    figures = {f"lines of {tree}": sum(source.lines for source in one) for tree, one in sources.items()}
    figures |= {f"{_plain(name)}, together": value for name, value in sizes(together).items()}
    figures |= {f"{_plain(name)}, together": len(places) for name, places in concepts(together).items()}
    figures |= {f"{_plain(name)}, src/veil": len(places) for name, places in concepts(sources[TREES[0]]).items()}
    figures |= {f"{_plain(name)}, src/veil": len(places) for name, places in limited(sources[TREES[0]]).items()}
    assert len(figures) == len(TREES) + len(SIZES) + 2 * len(CONCEPTS) + len(LIMITED)
    return figures


def _plain(name: str) -> str:
    return name.replace("_", " ")


# -- moved lines -------------------------------------------------------------------------------------------------------


def changed_runs(before: Path, after: Path) -> tuple[list[Run], list[Run]]:
    """Return the runs of adjacent removed lines, and those of added lines, over all measured folders."""
    removed, added = list[Run](), list[Run]()
    for tree in TREES:
        command = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "--no-renames", "-U0"]
        folders = [str(side / tree) for side in (before, after)]
        for folder in folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
        done = subprocess.run([*command, *folders], capture_output=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(done.stderr.decode())
        for file in re.split(r"^diff --git ", done.stdout.decode("utf-8", "replace"), flags=re.MULTILINE)[1:]:
            head, *hunks = re.split(r"^@@ .*\n", file, flags=re.MULTILINE)
            if head.splitlines()[0].endswith(".py"):
                for hunk in hunks:
                    for sign, runs in (("-", removed), ("+", added)):
                        lines = (line[1:].strip() for line in hunk.splitlines() if line.startswith(sign))
                        runs.append(tuple(line for line in lines if line))
    return [run for run in removed if run], [run for run in added if run]


def moved_lines(removed: Sequence[Run], added: Sequence[Run]) -> tuple[int, int]:
    """Return the numbers of removed and of added lines that only moved.

    >>> body = ("def f(x):", "y = x + 1", "return y")
    >>> moved_lines([body], [("import os", *body)])
    (3, 3)
    >>> moved_lines([body], [body, body])  # the second is a copy
    (3, 3)
    >>> moved_lines([body], [body[:2]])
    (0, 0)
    """
    return _covered(removed, _windows(added)), _covered(added, _windows(removed))


def _windows(runs: Sequence[Run]) -> Counter[Run]:
    return Counter(run[i : i + RUN] for run in runs for i in range(len(run) - RUN + 1))


def _covered(runs: Sequence[Run], windows: Mapping[Run, int]) -> int:
    """Count the lines in windows of the other side, each of which is used once."""
    left, lines = Counter(windows), 0
    for run in runs:
        covered = set[int]()
        for i in range(len(run) - RUN + 1):
            if left[run[i : i + RUN]] > 0:
                left[run[i : i + RUN]] -= 1
                covered.update(range(i, i + RUN))
        lines += len(covered)
    return lines
