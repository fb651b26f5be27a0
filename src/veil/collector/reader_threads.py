"""Thread pools for long readings, so that other requests do not wait for them; a full pool refuses work at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from veil.errors import ServiceError

__all__ = ["ReaderThreads"]

_RETRY_SECONDS = 2
T = TypeVar("T")


class ReaderThreads:
    """A thread pool with a bounded queue.

    >>> pool = ReaderThreads("example", threads=1, waiting=1)
    >>> asyncio.run(pool.run(len, "four"))
    4
    >>> pool.stop()
    """

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"veil-{name}")
        self._places = threading.Semaphore(threads + waiting)

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Run the work in a thread and return its result; refuse it at once if the queue is full."""
        if not self._places.acquire(blocking=False):
            message = "the collector is busy: ask again later"
            raise ServiceError(429, "busy", message, retry_after=_RETRY_SECONDS, limit=f"threads-{self._name}")
        try:
            future = self._pool.submit(work, *arguments)
        except RuntimeError:  # the pool is stopped
            self._places.release()
            raise ServiceError(503, "stopping", "the collector is stopping: ask again later", retry_after=5) from None
        # the place is free when the work ends, also if the client has gone before
        future.add_done_callback(lambda done: self._places.release())
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Start no more work; cancel what waits."""
        self._pool.shutdown(wait=False, cancel_futures=True)
