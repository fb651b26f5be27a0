"""Threads of their own for what takes long, so that nobody else waits for it; beyond a bound, requests are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from veil.errors import ServiceError

__all__ = ["Workers"]

_RETRY_SECONDS = 2
T = TypeVar("T")


class Workers:
    """A few threads, and a few places to wait for them.

    >>> workers = Workers("example", threads=1, waiting=1)
    >>> asyncio.run(workers.run(len, "four"))
    4
    >>> workers.stop()
    """

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"veil-{name}")
        self._places = threading.Semaphore(threads + waiting)

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """What the work returns; refuses it at once where too much waits already."""
        if not self._places.acquire(blocking=False):
            message = "the collector is busy: ask again later"
            raise ServiceError(429, "busy", message, retry_after=_RETRY_SECONDS, limit=f"threads-{self._name}")
        try:
            future = self._pool.submit(work, *arguments)
        except RuntimeError:  # it was stopped
            self._places.release()
            raise ServiceError(503, "stopping", "the collector is stopping: ask again later", retry_after=5) from None
        # only the end of the work frees its place: whoever asked may have gone long before
        future.add_done_callback(lambda done: self._places.release())
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
