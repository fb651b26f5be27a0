"""Progress bars on standard error: for people who wait, silent where nobody watches.

They count people, and never touch standard output.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

__all__ = ["progress"]


@contextlib.contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar that counts people; without a total, one that only shows that something moves."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from veil.cli.screen import Screen

    console = Screen(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    # transient: the numbers stand in the command's own output once it is done
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda people: bar.advance(task, people)
