"""Progress bars on standard error: for people who wait, silent where nobody watches.

They count people, and never touch standard output.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

__all__ = ["Advance", "progress"]

Advance = Callable[[int], None]
"""Called with how many people are done since the last call."""


@contextlib.contextmanager
def progress(what: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Advance]:
    """A bar that counts people; without a total, one that only shows that something moves."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = quiet or not console.is_terminal
    # transient: the numbers stand in the command's own output once it is done
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=hidden, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda people: bar.advance(task, people)
