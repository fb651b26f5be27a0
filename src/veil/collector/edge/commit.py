"""Group commit: reports of many requests are stored in one transaction, and only then acknowledged.

One thread decodes and stores. Meanwhile new requests gather and make up the next group. The queue is bounded: requests
beyond it are refused at once, so that memory does not grow with the load.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from veil.collector.edge.decoding import decode_requests
from veil.collector.monitoring.health import Health
from veil.collector.monitoring.logs import RateLimitedLog
from veil.collector.monitoring.metrics import Metrics
from veil.collector.problems import as_service_error
from veil.collector.store.base import Group, Store, StoredSurvey, SurveyPhase
from veil.errors import ServiceError, StoreDamagedError, StoreError
from veil.survey import Survey

_PATIENCE = 0.25  # of the last commit's time

_CLOSED: dict[SurveyPhase, tuple[int, str, str]] = {
    "draft": (404, "unknown-survey", "there is no survey with this task id"),
    "waiting": (409, "survey-not-open", "this survey does not take reports yet"),
    "closed": (410, "survey-closed", "this survey is closed"),
    "expired": (410, "survey-expired", "this survey has ended"),
}


def refusal_of(phase: SurveyPhase) -> ServiceError:
    """Why a survey takes no reports."""
    return ServiceError(*_CLOSED[phase])


@dataclass(frozen=True, eq=False)
class _Pending:
    stored: StoredSurvey
    survey: Survey
    frames: bytes
    count: int
    done: Callable[[Exception | None], None]


class CommitQueue:
    """A bounded queue of reports beside one event loop. `submit` returns once they are on the disk."""

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        *,
        most_reports: int,
        most_bytes: int,
        group_reports: int,
        clock: Callable[[], float] = time.time,
        health: Health | None = None,
    ) -> None:
        self._health = Health(store) if health is None else health
        self._store, self._metrics, self._clock = store, metrics, clock
        self._most_reports, self._most_bytes, self._group_reports = most_reports, most_bytes, group_reports
        self._waiting: deque[_Pending] = deque()
        self._reports = self._bytes = 0
        self._changed = threading.Condition()
        self._log = RateLimitedLog()
        self._stopping = False
        self._wanted = 1  # so many wait before the thread is woken
        self._last, self._took = 0, 0.0  # of the last commit: how many requests, how many seconds
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="veil-commit", daemon=True)
        self._thread.start()

    async def submit(self, stored: StoredSurvey, survey: Survey, frames: bytes, count: int) -> None:
        """Store the reports of one request durably; all of them, or an error and none."""
        done: asyncio.Future[None] = self._loop.create_future()
        self.offer(stored, survey, frames, count, functools.partial(_settle, done))
        await done  # a device that hangs up does not undo what is under way: nobody asks the future

    def offer(
        self, stored: StoredSurvey, survey: Survey, frames: bytes, count: int, done: Callable[[Exception | None], None]
    ) -> None:
        """The same from within the event loop; `done` is called there with None, or with why nothing was stored."""
        self._health.check()
        if self._reports + count > self._most_reports or self._bytes + len(frames) > self._most_bytes:
            met = "queue_reports" if self._reports + count > self._most_reports else "queue_bytes"
            message = "the collector is busy: send it again later"
            raise ServiceError(429, "busy", message, retry_after=1, limit=met)
        pending = _Pending(stored, survey, frames, count, done)
        self._count(count, len(frames))
        with self._changed:
            if self._stopping:
                self._count(-count, -len(frames))
                raise ServiceError(503, "stopping", "the collector is stopping: send it again later", retry_after=5)
            self._waiting.append(pending)
            if len(self._waiting) >= self._wanted:
                self._changed.notify()

    async def drain(self) -> None:
        """Commit what waits, and stop."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    def _count(self, reports: int, size: int) -> None:
        self._reports += reports
        self._bytes += size
        self._metrics.set("veil_queue_reports", self._reports)

    def _run(self) -> None:
        while group := self._next_group():
            start = time.perf_counter()
            try:
                outcomes = self._commit(group)
            except Exception as problem:  # whatever it is, nobody waits for ever and nothing is acknowledged
                self._log("error", "internal", problem)
                outcomes = [as_service_error(problem)] * len(group)
            self._last, self._took = len(group), time.perf_counter() - start
            self._loop.call_soon_threadsafe(self._resolve, group, outcomes)

    def _next_group(self) -> list[_Pending]:
        with self._changed:
            while not self._waiting and not self._stopping:
                self._changed.wait()
            self._gather()
            group: list[_Pending] = []
            reports = 0
            while self._waiting and (not group or reports + self._waiting[0].count <= self._group_reports):
                reports += self._waiting[0].count
                group.append(self._waiting.popleft())
            return group

    def _gather(self) -> None:
        """Wait for a fraction of a commit until those who were just answered have sent again.

        Without it, half of the senders wait for the commit that the other half is in, and a disk that takes long to
        sync does twice the work. A sender who is alone never waits.
        """
        if self._last > 1 and not self._stopping:
            self._wanted = len(self._waiting) + self._last
            self._changed.wait_for(lambda: len(self._waiting) >= self._wanted or self._stopping, self._took * _PATIENCE)
            self._wanted = 1

    def _commit(self, pending: list[_Pending]) -> list[Exception | None]:
        """What became of each request: None once it is durable."""
        by_survey: dict[int, list[int]] = {}
        for i, one in enumerate(pending):
            by_survey.setdefault(one.stored.key, []).append(i)
        outcomes: list[Exception | None] = [None] * len(pending)
        groups: list[Group] = []
        members: list[list[int]] = []
        for key, mine in by_survey.items():
            decoded = decode_requests(pending[mine[0]].survey, [pending[i].frames for i in mine])
            for i, problem in zip(mine, decoded.problems, strict=True):
                outcomes[i] = problem
            if decoded.count:
                task = pending[mine[0]].stored.task
                groups.append(Group(key, decoded.ids, decoded.payloads, decoded.count, task))
                members.append([i for i in mine if outcomes[i] is None])
        if groups:
            shared = self._store_groups(groups, members, outcomes)
            if (
                shared
            ):  # one request's ids may be in a damaged place: the others of the same survey need not fail with it
                alone = [decode_requests(pending[i].survey, [pending[i].frames]) for i in shared]
                stored = [pending[i].stored for i in shared]
                again = [
                    Group(of.key, one.ids, one.payloads, one.count, of.task)
                    for of, one in zip(stored, alone, strict=True)
                ]
                self._store_groups(again, [[i] for i in shared], outcomes)
        return outcomes

    def _store_groups(
        self, groups: list[Group], members: list[list[int]], outcomes: list[Exception | None]
    ) -> list[int]:
        """Store groups. Return the requests that failed together because of damage in the ids of their survey."""
        start, failed_before = time.perf_counter(), self._store.failed_upkeep
        try:
            self._health.check()  # what waited behind a call that timed out must not wait for another
            results = self._store.append(groups, int(self._clock()))
            self._health.wrote()
        except (StoreError, ServiceError) as failed:
            if isinstance(failed, StoreError):
                self._health.wrote(failed, sum(len(group.ids) + len(group.payloads) for group in groups))
            self._metrics.add("veil_commit_failures_total")
            self._log("warning", "unavailable", failed)  # no line is written for a report
            refusal = as_service_error(failed)
            for i in (i for mine in members for i in mine):
                outcomes[i] = refusal
            return []
        self._metrics.observe("veil_commit_seconds", time.perf_counter() - start)
        self._metrics.add("veil_upkeep_failures_total", self._store.failed_upkeep - failed_before)
        shared: list[int] = []
        for group, mine, result in zip(groups, members, results, strict=True):
            for i in mine:  # what failed before, together with others, may be stored now
                outcomes[i] = None
            if isinstance(result, int):
                self._metrics.add("veil_reports_total", result, outcome="stored")
                self._metrics.add("veil_reports_total", group.count - result, outcome="replayed")
            elif isinstance(result, StoreDamagedError):
                self._metrics.add("veil_commit_failures_total")
                self._log("error", "damaged", result)
                shared += mine if len(mine) > 1 else []
                for i in mine:
                    outcomes[i] = as_service_error(result)
            else:
                for i in mine:
                    outcomes[i] = refusal_of(result)
        return shared

    def _resolve(self, group: list[_Pending], outcomes: list[Exception | None]) -> None:
        for one, outcome in zip(group, outcomes, strict=True):
            self._count(-one.count, -len(one.frames))
            one.done(outcome)


def _settle(done: asyncio.Future[None], outcome: Exception | None) -> None:
    if done.cancelled():
        return
    if outcome is None:
        done.set_result(None)
    else:
        done.set_exception(outcome)
        done.exception()  # seen: the device may have hung up
