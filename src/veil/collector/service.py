"""The service behind the routes: store, key, catalogue, studies and queue, from the start to the drain.

Beside the requests it keeps tallies up to date, advances studies of several rounds, erases reports that are due and
watches the signing key.
"""

from __future__ import annotations

import asyncio
import functools
import json
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from veil.collector.edge.commit import CommitQueue
from veil.collector.keys_and_tokens import KeyWatch, fingerprint, is_signed_for, own_key
from veil.collector.monitoring.health import Health
from veil.collector.monitoring.logs import log
from veil.collector.monitoring.metrics import Metrics, measure
from veil.collector.settings import CollectorSettings
from veil.collector.store.backup import remove_copies
from veil.collector.store.base import AuditEntry, Store, StoredSurvey
from veil.collector.surveys.answers import ReaderThreads, ResultCache
from veil.collector.surveys.catalogue import Catalogue, published, published_round, read_by, valid_until
from veil.collector.surveys.collection import catch_up, is_maintained
from veil.collector.surveys.rounds import RunningStudies
from veil.device.client import RoundPart
from veil.errors import InputError, ServiceError, StoreError, VeilError
from veil.tools.filesystem import make_private_folder
from veil.tools.json_documents import Json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from veil.collector.store.blocks import BlockStore, OldSchema


T = TypeVar("T")

_RETENTION_SECONDS = 60.0
_FOLD_PAUSE = 60.0  # after a failure


def open_store(
    settings: CollectorSettings, *, make: bool = True, hurried: bool = False, old: OldSchema = "refuse"
) -> Store:
    """Open the store that the settings name; without `make`, refuse an empty or missing one.

    A `hurried` store gives up on a server that does not answer in time, because devices wait for it. `old` says what to
    do with a database of an earlier schema: only a collector that starts updates it.
    """
    url, path = settings.database, settings.database_file
    if path is not None and not make and not path.exists():
        raise InputError(
            f"there is no database {path}: name its folder with --folder, or its settings with --settings; --new of"
            " veil survey create and veil restore makes one"
        )
    store: BlockStore
    if path is not None:
        from veil.collector.store.sqlite import SqliteStore

        make_private_folder(path.parent)
        store = SqliteStore(path, old=old, make=make)
    elif url.startswith(("postgresql://", "postgres://")):
        from veil.collector.store.postgres import PostgresStore

        store = PostgresStore(url, settings.database_seconds if hurried else None, old=old, make=make)
    else:
        raise InputError("database_url must begin with sqlite:/// or postgresql://")
    store.remember(settings.ids_megabytes)
    return store


class Service:
    """A running collector. `start` it within the event loop; `stop` commits what waits."""

    queue: CommitQueue

    def __init__(
        self,
        settings: CollectorSettings,
        store: Store | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.store = open_store(settings, hurried=True, old="update") if store is None else store
        remove_copies(Path(settings.folder))
        self.health = Health(self.store)
        self._new = not is_signed_for(self.store)
        self.key: Ed25519PrivateKey = own_key(self.store, settings.key_path)
        self.key_watch = KeyWatch(self.store, self.key)
        self.metrics, self._clock = Metrics(), clock
        self.catalogue = Catalogue(self.store)
        self.studies = RunningStudies(self.store, self.catalogue)
        self.body_bytes = 0
        largest = settings.max_body_bytes  # in steps of it: no single body shows
        self.metrics.watch("veil_body_bytes", lambda: self.body_bytes // largest * largest)
        self.marks: list[tuple[str, int, int]] | None = None  # of surveys, for metrics, as they were seen last
        self.metrics.watch("veil_damaged_reports", self.store.missing)
        # Analysts may wait for each other, and relays that send Arrow too; look-ups and devices wait for none of them.
        # What goes through reports again and again has threads of its own, and so has what reads a kept tally.
        self.answering = ReaderThreads("answer", threads=2, waiting=8)
        self.reading = ReaderThreads("read", threads=2, waiting=8)
        self.searching = ReaderThreads("search", threads=2, waiting=8)
        self.moving = ReaderThreads("rounds", threads=1, waiting=64)
        self.decoding = ReaderThreads("decode", threads=2, waiting=16)
        self.readings = ResultCache(self.metrics, self.reading, self.searching)
        self._stopping = threading.Event()
        self._published: dict[str, tuple[int, Json]] = {}  # by task, with the end of the statement's validity
        self._rounds: dict[str, Json] = {}
        self._epoch = self.store.epoch
        self._look_again = 0.0  # when to look for reports that are to be erased
        self._fold_again = 0.0  # not before, after a failure
        self._folded = -1  # the period whose reports are folded
        self._purging: set[int] = set()  # surveys whose end the audit log knows of
        self._untallied: set[int] = set()  # surveys for which no tally is kept
        self._moves: dict[str, asyncio.Task[None]] = {}
        self._stuck: set[str] = set()  # studies whose next step was refused: tried again when an operator asks for it
        self._tallier: asyncio.Task[None] | None = None
        self._mover: asyncio.Task[None] | None = None
        self._key_watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to take reports."""
        self.queue = CommitQueue(
            self.store,
            self.metrics,
            most_reports=self.settings.queue_reports,
            most_bytes=self.settings.queue_bytes,
            group_reports=self.settings.group_reports,
            health=self.health,
        )
        self._key_watcher = asyncio.create_task(self._now_and_then("key", self._watch_key))
        self._tallier = asyncio.create_task(self._now_and_then("tallies", self._catch_up_all))
        self._mover = asyncio.create_task(self._now_and_then("studies", self._move_all))
        if self._new:  # an operator who named the wrong folder sees it here
            log("warning", "new-database", database=self.settings.place, key=fingerprint(self.key))
        log("info", "started", store=self.settings.database.partition(":")[0])

    async def stop(self) -> None:
        """Commit what waits, then let go of the store."""
        self._stopping.set()
        self.health.stop()
        beside = [task for task in (self._tallier, self._mover, self._key_watcher) if task is not None]
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)  # however they ended, what waits is committed
        for threads in (self.answering, self.reading, self.searching, self.moving, self.decoding):
            threads.stop()
        await self.queue.drain()
        self.store.close()
        log("info", "stopped")

    async def published(self, stored: StoredSurvey) -> Json:
        """Return the signed survey. It is signed once a day, so that the statement about its name stays valid."""
        self._forget_other_servers()
        until = valid_until(self._clock(), self.settings.valid_days)
        if stored.task not in self._published or self._published[stored.task][0] != until:
            epoch = await self._confirm_key()
            document = published(stored, self.key, until)
            if epoch != self.store.epoch:  # another server took over meanwhile: remember nothing of the one before
                return document
            self._published[stored.task] = until, document
        self.key_watch.check()
        return self._published[stored.task][1]

    async def published_round(self, stored: StoredSurvey, part: RoundPart) -> Json:
        """The same for a round of a study, with whom it asks."""
        self._forget_other_servers()
        if stored.task not in self._rounds:
            epoch = await self._confirm_key()
            document = published_round(stored, part, self.key)
            if epoch != self.store.epoch:
                return document
            self._rounds[stored.task] = document
        self.key_watch.check()
        return self._rounds[stored.task]

    async def _confirm_key(self) -> int:
        """Refuse to sign if the database's key is another one by now. Return the store's epoch before the look."""
        epoch = self.store.epoch
        await self.in_thread(self.key_watch.confirm)
        return epoch

    async def _watch_key(self) -> None:
        await self.in_thread(self.key_watch.look)

    def _forget_other_servers(self) -> None:
        """Forget what was remembered of a database server that another one replaced: it may be ahead of that."""
        if self._epoch != self.store.epoch:
            self._epoch = self.store.epoch
            for remembered in (self._published, self._rounds, self._purging, self._untallied, self._stuck):
                remembered.clear()

    def note(self, token: str, action: str, task: str | None = None, parameters: str = "{}") -> None:
        """Into the audit log, before the answer is given."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.store.note(AuditEntry(now, token, action, task, parameters))

    def check_stopping(self) -> None:
        """Break a long reading off once the collector stops: what it took is written down."""
        if self._stopping.is_set():
            raise ServiceError(503, "stopping", "the collector is stopping: ask again later", retry_after=5)

    async def move_study(self, id_: str) -> None:
        """Close, read and open rounds of a study as far as is wanted; once, however many ask for it."""
        task = self._moves.get(id_)
        if task is None:
            task = self._moves[id_] = asyncio.create_task(self._moved(id_))
        await asyncio.shield(task)

    async def _moved(self, id_: str) -> None:
        try:
            read = await self.moving.run(self.studies.advance, id_, self.check_stopping)
            self._stuck.discard(id_)
        except VeilError as problem:
            if not isinstance(problem, StoreError):
                self._stuck.add(id_)
            raise
        finally:
            del self._moves[id_]
        self.metrics.add("veil_rounds_total", read)
        log("info", "study-moved", study=id_, rounds=read)

    async def _now_and_then(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        waits = False
        while True:
            try:
                if not self.health.hangs:
                    await work()
                    if waits:
                        log("info", f"{what}-go-on")
                        waits = False
            except StoreError as problem:  # it may be away for hours: a line when it goes, and one when it is back
                if not waits:
                    log("warning", f"{what}-wait", problem)
                waits = True
            except VeilError as problem:
                log("warning", f"{what}-wait", problem)
            except Exception as problem:  # a bug here must not end the task: answers catch up on their own
                log("error", f"{what}-failed", problem)
            await asyncio.sleep(self.settings.tally_seconds)

    async def _move_all(self) -> None:
        for id_ in await self.in_thread(lambda: list(self.studies.waiting())):
            if id_ not in self._stuck:
                await self.move_study(id_)

    async def _catch_up_all(self) -> None:
        await self.in_thread(self._caught_up)

    async def in_thread(self, work: Callable[..., T], *arguments: object, by: ReaderThreads | None = None) -> T:
        """What a call to the database returns; refused at once while the database hangs.

        By one of the threads that serve everybody, unless other ones are named.
        """

        def watched() -> T:
            self.health.check()  # what waited for a thread behind one that timed out must not wait for another
            try:
                return work(*arguments)
            except StoreError as problem:
                self.health.failed(problem)
                raise

        self.health.check()
        return await (asyncio.to_thread(watched) if by is None else by.run(watched))

    def _forget_due(self) -> None:
        """Erase the reports of surveys that are closed for long enough; one that cannot be is tried again later."""
        for key in self.store.due_to_forget(int(time.time())):
            stored = self.store.survey(key)
            try:
                if stored.state != "closed":  # it ended by time
                    stored = self.catalogue.close(stored.task)
                forgotten = self.studies.purge(stored, functools.partial(self._note_purge, stored))
            except VeilError as problem:
                log("warning", "retention-wait", problem)
                continue
            log("info", "survey-purge", task=stored.task, reports=forgotten)

    def _note_purge(self, stored: StoredSurvey) -> None:
        """Into the audit log before anything is erased; once, however often it is tried."""
        if stored.key not in self._purging:
            begun = {} if stored.purging is None else {"resumed": True}
            self.note("collector", "purge", stored.task, json.dumps({"keep_days": stored.keep_days, **begun}))
            self._purging.add(stored.key)

    def _caught_up(self) -> None:
        self._forget_other_servers()
        for key in self.store.to_end(int(self._clock())):
            self.store.end(key, int(self._clock()))
        if time.monotonic() >= self._look_again:
            self._look_again = time.monotonic() + _RETENTION_SECONDS
            self._forget_due()
            measure(self.metrics, self.store, Path(self.settings.folder), self.settings.database.partition(":")[0])
        for key in self.store.behind():
            if key in self._untallied:
                continue
            stored = self.store.survey(key)
            survey = read_by(stored)
            if not is_maintained(survey):
                self._untallied.add(key)
                continue
            start = time.perf_counter()
            catch_up(self.store, stored, survey)
            self.metrics.observe("veil_tally_seconds", time.perf_counter() - start)
        self._fold_due()

    def _fold_due(self) -> None:
        """Take the links between ids and payloads away: of surveys that take no more reports, and of all now and then.

        No time of a report is needed for that: what came before the end of a period is folded after it. What a process
        before this one left is folded at once.
        """
        period, now = int(self._clock()) // self.settings.fold_seconds, time.monotonic()
        if now < self._fold_again:
            return
        final = self.store.unfolded(final=True)
        if period == self._folded and not final:
            return
        self._fold_again = now + _FOLD_PAUSE
        self.store.fold_all(final if period == self._folded else self.store.unfolded(final=False))
        self._folded, self._fold_again = period, 0.0
