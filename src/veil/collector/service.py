"""What the routes work with: the store, the key, the catalogue, the queue; and their life from start to drain."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from veil.collector.catalogue import Catalogue, parsed
from veil.collector.commit import CommitQueue
from veil.collector.documents import published
from veil.collector.keys import load_key
from veil.collector.logs import log
from veil.collector.metrics import Metrics
from veil.collector.settings import Settings
from veil.collector.store import AuditEntry, Store, StoredSurvey
from veil.collector.tallying import catch_up, is_maintained
from veil.collector.workers import Workers
from veil.errors import InputError, VeilError
from veil.tools.canonical import Json
from veil.tools.durable import make_private_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["Service", "open_store"]


def open_store(settings: Settings) -> Store:
    """The store that the settings name, made ready for use."""
    url, path = settings.database, settings.database_file
    if path is not None:
        from veil.collector.sqlite_store import SqliteStore

        make_private_folder(path.parent)
        return SqliteStore(path)
    if url.startswith(("postgresql://", "postgres://")):
        from veil.collector.postgres_store import PostgresStore

        return PostgresStore(url)
    raise InputError("database_url must begin with sqlite:/// or postgresql://")


class Service:
    """One collector. `start` within the event loop, `stop` to drain it."""

    queue: CommitQueue

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        self.settings = settings
        self.store = open_store(settings) if store is None else store
        self.key: Ed25519PrivateKey = load_key(settings.key_path)
        self.metrics = Metrics()
        self.catalogue = Catalogue(self.store)
        self.body_bytes = 0
        # analysts may wait for each other, and relays that send Arrow too; look-ups and devices wait for none of them
        self.answering = Workers("answer", threads=2, waiting=8)
        self.decoding = Workers("decode", threads=2, waiting=16)
        self._published: dict[str, Json] = {}
        self._seen: dict[int, int] = {}  # how far each survey was when its tally was last caught up
        self._tallier: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to take reports."""
        self.queue = CommitQueue(
            self.store,
            self.metrics,
            most_reports=self.settings.queue_reports,
            most_bytes=self.settings.queue_bytes,
            group_reports=self.settings.group_reports,
        )
        self._tallier = asyncio.create_task(self._keep_tallies())
        log("info", "started", store=self.settings.database.partition(":")[0])

    async def stop(self) -> None:
        """Commit what waits, then let go of the store."""
        if self._tallier is not None:
            self._tallier.cancel()
            await asyncio.gather(self._tallier, return_exceptions=True)  # however it ended, what waits is committed
        self.answering.stop()
        self.decoding.stop()
        await self.queue.drain()
        self.store.close()
        log("info", "stopped")

    def published(self, stored: StoredSurvey) -> Json:
        """The signed survey; signed once, because it does not change once it is open."""
        if stored.task not in self._published:
            self._published[stored.task] = published(stored, self.key)
        return self._published[stored.task]

    def note(self, token: str, action: str, task: str | None = None, parameters: str = "{}") -> None:
        """Into the audit log, before the answer is given."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.store.note(AuditEntry(now, token, action, task, parameters))

    async def _keep_tallies(self) -> None:
        """Catch tallies up now and then, so that an answer has little left to count."""
        while True:
            await asyncio.sleep(self.settings.tally_seconds)
            try:
                await asyncio.to_thread(self._catch_up_all)
            except VeilError as problem:
                log("warning", "tallies-wait", problem)
            except Exception as problem:  # a bug here must not end the task: answers catch up on their own
                log("error", "tallies-failed", problem)

    def _catch_up_all(self) -> None:
        for stored in self.store.surveys():
            survey = parsed(stored.document)
            if self._seen.get(stored.key) == stored.sequence or not stored.reports or not is_maintained(survey):
                continue
            start = time.perf_counter()
            catch_up(self.store, stored, survey)
            self._seen[stored.key] = stored.sequence
            self.metrics.observe("veil_tally_seconds", time.perf_counter() - start)
