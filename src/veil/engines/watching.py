"""Progress of long work, for whoever wants to watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["Advance", "Watch", "unwatched"]

Advance = Callable[[int], object]
Watch = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Makes a progress bar: what is going on, and of how many people if that is known."""


@contextmanager
def unwatched(what: str, total: int | None = None) -> Iterator[Advance]:
    """Progress that nobody watches."""
    yield lambda steps: None
