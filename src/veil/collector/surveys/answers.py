"""Answers for analysts: what a study finds in the reports of its survey, as JSON, CSV or Arrow.

`prepare` checks an `AnswerRequest` and returns a `ResultKey`: the study, the reports and the function that reads them.
`ResultCache` runs it in `ReaderThreads`, once for all who ask at the same time, and keeps the result until there are
more reports. Answers from too few reports and answers that are too long are refused.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from veil.collector.monitoring.metrics import Metrics
from veil.collector.store.base import Store, StoredSurvey
from veil.collector.surveys.catalogue import parsed_study, read_by
from veil.collector.surveys.collection import (
    InterruptedReadingError,
    StoreCollection,
    StoreJournal,
    at_once,
    is_maintained,
)
from veil.collector.surveys.rounds import RunningStudies
from veil.errors import EmptyError, InputError, MismatchError, ServiceError, WireError
from veil.results.base import Result
from veil.results.render.files import FORMATS, document, table_bytes
from veil.sql.answer import Answer
from veil.sql.table import Table
from veil.study import OneRound, Study, StudyRun, study_from_json
from veil.tools.json_documents import digest
from veil.tools.limits import Limits, limited

_RETRY_SECONDS = 2
T = TypeVar("T")
_MOST_KEPT = 32
_MOST_BYTES = 64 << 20  # of all results that are kept
ReadingId = tuple[str, str]
"""The digests of a task and of a study that reads it."""
FORMS = {"json": "json", "csv": "csv", "arrow": "arrows"}
"""Formats of answers, with their names in `veil.results.render.files`; Arrow is a stream here."""
_MOST_CANDIDATES = 100_000
_MOST_ROWS = 131_072
_MOST_SETTINGS = 32


@dataclass(frozen=True)
class AnswerRequest:
    """A request of an analyst: parameters of the reading as NAME=VALUE, the level of intervals, and the format.

    `candidates` are the values to count, where the study takes them; `study` is another study of the same task, or the
    bare task itself, to read the reports with in place of the published one. `all` is for what a search found and is
    not significant: it is hidden otherwise.
    """

    level: float = 0.95
    format: str = "json"
    set: tuple[str, ...] = ()
    candidates: tuple[Any, ...] | None = None
    study: Any = None
    all: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.format, str) or self.format not in FORMS:
            raise InputError(f"the format is one of {', '.join(FORMS)}")
        if not (isinstance(self.level, float) and math.isfinite(self.level) and 0 < self.level < 1):
            raise InputError("the level of an interval lies between 0 and 1")
        if not isinstance(self.all, bool):
            raise InputError("all is true or false")
        if len(self.set) > _MOST_SETTINGS or not all(isinstance(one, str) and "=" in one for one in self.set):
            raise InputError("a parameter of the reading is set as NAME=VALUE")
        if self.candidates is not None and not 1 <= len(self.candidates) <= _MOST_CANDIDATES:
            raise InputError(f"expected 1 to {_MOST_CANDIDATES:,} candidates")
        if not all(_is_scalar(candidate) for candidate in self.candidates or ()):
            raise InputError("a candidate is text or a number")

    @property
    def parameters(self) -> str:
        """For the audit log: what was asked, without any value."""
        asked: dict[str, Any] = {"set": list(self.set), "level": self.level, "format": self.format}
        asked |= {"all": True} if self.all else {}
        if self.candidates is not None:
            asked["candidates"] = len(self.candidates)
        return json.dumps(asked | ({} if self.study is None else {"study": study_from_json(self.study).kind}))

    def applied(self, published: Study) -> Study:
        """The study to read with; refuses one of another task, and parameters that it does not have."""
        study = published if self.study is None else study_from_json(self.study)
        if study.survey.task != published.survey.task:
            raise MismatchError("expected a study of the same task: this one asks people something else")
        if self.set:
            study = study.changed(**dict(one.split("=", 1) for one in self.set))
        return study if self.candidates is None else study.with_candidates(self.candidates)


def _none() -> int:
    return 0


@dataclass(frozen=True, eq=False)
class ResultKey:
    """A result to read: a study of a task, by their digests, from the reports up to a mark."""

    task: str
    study: str
    mark: int
    long: bool
    """Whether it goes through the reports themselves, which may take minutes."""
    read: Callable[[], Result]
    missing: Callable[[], int] = _none
    """Return how many damaged reports the result lacks, once it is read. Blocks."""


def prepare(
    store: Store,
    studies: RunningStudies,
    stored: StoredSurvey,
    query: AnswerRequest,
    check: Callable[[], object] = at_once,
    limits: Limits | None = None,
) -> ResultKey:
    """What has to be read for an answer, from the reports so far; refuses what can be refused before that.

    `limits` bound the reading itself: None where an operator reads in a process of their own.
    """
    with store.steady() as epoch:
        reading = _prepared(store, studies, stored, query, check, limits)

    def read() -> Result:
        with store.steady(epoch):
            return reading.read()

    # what is kept of another server's reports must not answer for this one's
    return replace(reading, study=f"{reading.study} {epoch}", read=read)


def written(stored: StoredSurvey, query: AnswerRequest, found: Result, missing: int = 0) -> tuple[bytes, str]:
    """An answer as bytes, and its media type. In JSON a remark says how many damaged reports it lacks."""
    form, hide = FORMS[query.format], None if query.all else "all=true"
    if form == "json":
        answer = document(found, query.level, hide=hide)
        if missing:  # an answer of several parts has no remarks of its own otherwise
            answer["remarks"] = [*answer.get("remarks", []), *without(missing)]
        body = json.dumps({"task": stored.task, **answer}, allow_nan=False).encode()
    else:
        body = table_bytes(found, form, query.level, hide=hide, guard_formulas=True)
    return body, FORMATS[form]


def without(missing: int) -> list[str]:
    """Return the remark on an answer that lacks damaged reports, or none."""
    if not missing:
        return []
    are = "report is" if missing == 1 else "reports are"
    return [f"{missing:,} {are} damaged in the collector's database and not counted here."]


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


class ResultCache:
    """Results in memory, used by one event loop only. Quick readings never wait for long ones."""

    def __init__(self, metrics: Metrics, quick: ReaderThreads, long: ReaderThreads) -> None:
        self._metrics, self._quick, self._long = metrics, quick, long
        self._kept: OrderedDict[ReadingId, tuple[int, Result, int]] = OrderedDict()
        self._under_way: dict[tuple[ReadingId, int], asyncio.Task[Result]] = {}

    async def result(self, reading: ResultKey) -> Result:
        """What was found: remembered, under way already, or read now. Whoever goes away leaves it to the others."""
        place = reading.task, reading.study
        mark, kept, _ = self._kept.get(place, (-1, None, 0))
        if kept is not None and mark == reading.mark:
            self._kept.move_to_end(place)
            self._metrics.add("veil_readings_total", outcome="kept")
            return kept
        task = self._under_way.get((place, reading.mark))
        if task is None:
            task = asyncio.create_task(self._made(place, reading))
            self._under_way[place, reading.mark] = task
        return await asyncio.shield(task)

    async def _made(self, place: ReadingId, reading: ResultKey) -> Result:
        start = time.perf_counter()
        try:
            found, size = await (self._long if reading.long else self._quick).run(lambda: _with_size(reading.read()))
        finally:
            del self._under_way[place, reading.mark]
        self._metrics.add("veil_readings_total", outcome="made")
        self._metrics.observe("veil_reading_seconds", time.perf_counter() - start)
        if size <= _MOST_BYTES and self._kept.get(place, (-1, None, 0))[0] < reading.mark:
            self._kept[place] = reading.mark, found, size
            self._kept.move_to_end(place)
        while len(self._kept) > _MOST_KEPT or sum(size for _, _, size in self._kept.values()) > _MOST_BYTES:
            self._kept.popitem(last=False)
        return found


def size_in_memory(value: Any) -> int:
    """Return the approximate memory of an object and of everything it refers to, in bytes; shared parts count once."""
    total, counted, waiting = 0, set[int](), [value]
    while waiting:
        item = waiting.pop()
        if id(item) in counted or isinstance(item, type):
            continue
        counted.add(id(item))
        total += sys.getsizeof(item)
        if isinstance(item, np.ndarray):
            total += item.nbytes if item.base is not None else 0
            waiting.extend(item.flat if item.dtype.hasobject else ())
        elif isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting.extend(item)
        elif hasattr(item, "__dict__"):
            waiting.append(vars(item))
    return total


def _prepared(
    store: Store,
    studies: RunningStudies,
    stored: StoredSurvey,
    query: AnswerRequest,
    check: Callable[[], object],
    limits: Limits | None,
) -> ResultKey:
    run = store.study_of(stored.task) if query.study is None else None
    if run is not None:
        if query.set or query.candidates is not None:
            raise InputError("a study of several rounds was read as it was published: leave set and candidates out")
        takes = StoreJournal(store, run.id)
        return ResultKey(
            stored.task, run.id, 0, False, lambda: _checked(studies.result(run), stored), lambda: takes.missing
        )
    survey = read_by(stored)
    published = parsed_study(stored.study or stored.document)
    study = query.applied(published)
    if not isinstance(study, OneRound):  # its first round may ask just what was published
        raise InputError("expected a study of one round")
    journal: StoreJournal | None = None

    def note(reports: int) -> None:
        if journal is not None and reports:
            journal.note_missing(0, reports)

    collected = StoreCollection(store, stored, survey, check=check, note=note)
    if collected.people < stored.minimum:
        raise _too_few(stored)
    # what is kept as a tally is read at once; a reading of the published study is written down as it goes
    kept = is_maintained(survey) and not isinstance(study, Table)  # a query goes through the reports themselves
    if not kept and study == published:
        journal = StoreJournal(store, stored.task, collected.mark)
        note(collected.missing)

    def missing() -> int:
        if journal is not None:
            return journal.missing
        return collected.missing if kept else max(collected.missing, store.missing(stored.key))

    def read() -> Result:
        try:
            with nullcontext() if limits is None else limited(limits):
                return _checked(
                    study.read(collected) if journal is None else _recorded(study, journal, collected), stored
                )
        except EmptyError:
            raise _too_few(stored) from None
        except InterruptedReadingError as problem:
            raise problem.cause from None
        except ServiceError as problem:
            if problem.code == "candidates-needed" and "candidates" not in study.parameters():
                raise InputError(f"{problem}: export the reports instead") from None
            raise

    return ResultKey(stored.task, digest(study.to_json()), collected.mark, not kept, read, missing)


def _recorded(study: OneRound[Any], journal: StoreJournal, collected: StoreCollection) -> Result:
    """A reading that goes on where one before it was broken off."""
    try:
        run = StudyRun(study, journal)
    except (MismatchError, WireError):  # another version of veil wrote it down, or another reading of this task
        journal.forget(0)
        run = StudyRun(study, journal)
    if run.round is not None:
        run.answer(collected)
    assert run.result is not None
    return run.result


def _checked(found: Result, stored: StoredSurvey) -> Result:
    parts = [part for _, part in found.parts()]
    if any(part.n < stored.minimum for part in parts):
        raise _too_few(stored)
    if sum(len(part) for part in parts) > _MOST_ROWS:
        raise InputError(f"an answer has at most {_MOST_ROWS:,} rows: export the reports instead")
    return found.withheld(stored.minimum) if isinstance(found, Answer) else found


def _too_few(stored: StoredSurvey) -> ServiceError:
    message = f"too few reports for an answer: expected at least {stored.minimum:,}"
    if stored.minimum % stored.step:
        message += f", counted in steps of {stored.step:,}"
    return ServiceError(409, "too-few-reports", message, expected=f"at least {stored.minimum} reports")


def _with_size(result: Result) -> tuple[Result, int]:
    return result, size_in_memory(result)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**64
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)  # half a character: JSON lets it pass
    return value is None or (isinstance(value, float) and math.isfinite(value))
