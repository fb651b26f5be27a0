"""Studies in the stores, on SQLite and on a real PostgreSQL: bare tasks, rounds, takes, readings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.harness import SURVEY, framed, values
from tests.service.people import STUDIES, held, reports, undisturbed
from tests.service.reports import opened

from veil import OLH, Survey
from veil.collector.edge.decoding import decode_requests
from veil.collector.monitoring.metrics import Metrics
from veil.collector.store.base import Group, Store, StoredSurvey
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys import collection as in_store
from veil.collector.surveys.answers import AnswerRequest, ReaderThreads, ResultCache, ResultKey, prepare, size_in_memory
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.collector.surveys.collection import StoreCollection, catch_up
from veil.collector.surveys.rounds import RunningStudies
from veil.errors import InputError, ServiceError, StoreError
from veil.histogram import Questions
from veil.results.render.files import document
from veil.study import Study

SEARCH = STUDIES["pem"]
PEOPLE = 2_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = SqliteStore(tmp_path / "x.sqlite3")
    yield one
    one.close()


def published(store: Store, study: Study, people: int = PEOPLE, **options: Any) -> tuple[RunningStudies, StoredSurvey]:
    """A study whose people have reported to its first round."""
    catalogue = Catalogue(store)
    studies = RunningStudies(store, catalogue)
    stored, _ = studies.publish(study, options, precision=3_600, minimum=1)
    catalogue.open(stored.task)
    fill(store, stored, reports(study.survey, held(study, people)), study.survey)
    return studies, catalogue.look_up(stored.task)


def fill(store: Store, stored: StoredSurvey, body: bytes, survey: Survey) -> None:
    decoded = decode_requests(survey, [body])
    assert store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 1_000) == [decoded.count]


def test_a_bare_task_is_read_as_its_questions(store: Store) -> None:
    stored, body = opened(store), framed(SURVEY, values(300))
    assert stored.study is None
    fill(store, stored, body, SURVEY)
    tally = catch_up(store, store.survey(stored.key), SURVEY)
    assert tally is not None
    assert tally.people == 300
    found = prepare(store, RunningStudies(store, Catalogue(store)), store.survey(stored.key), AnswerRequest()).read()
    assert document(found) == document(Questions(SURVEY).read(tally))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_rounds_and_takes(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    url = request.getfixturevalue("postgres").database() if kind == "postgres" else ""
    store: Store = PostgresStore(url) if url else SqliteStore(tmp_path / "x.sqlite3")
    survey, other = (draft_of(Survey(OLH(1.0, size)), {}, precision=60, minimum=1) for size in (4, 5))
    assert store.add_round("a", 0, Fraction(1, 3), survey)
    assert store.add_round("a", 0, Fraction(1, 3), survey)  # again is fine
    assert not store.add_round("a", 1, Fraction(1, 3), survey)  # the same task in another round is not
    assert not store.add_round("b", 0, Fraction(1, 3), survey)
    assert store.create(other)
    assert not store.add_round("a", 1, Fraction(1, 3), other)
    assert [(one.number, one.share, one.opened) for one in store.rounds("a")] == [(0, Fraction(1, 3), None)]
    for now in (5, 9):
        store.note_opened("a", 0, now)
    assert store.rounds("a")[0].opened == 5
    store.save_take("a", 0, 0, 0, b"first")
    store.save_take("a", 0, 0, 0, b"second")  # what is there already stays
    store.save_take("a", 7, 0, 0, b"later")
    assert (store.take("a", 0, 0, 0), store.take("a", 0, 0, 1)) == (b"first", None)
    store.forget_marks_before("a", 7)
    assert (store.take("a", 0, 0, 0), store.take("a", 7, 0, 0)) == (None, b"later")
    store.forget_takes("a", 7, 0)
    assert store.take("a", 7, 0, 0) is None
    store.close()


def test_a_search_that_was_broken_off_goes_on_where_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    studies, stored = published(store, SEARCH)
    searched: list[int] = []
    best = StoreCollection.best

    def counted(self: StoreCollection, questions: Any, *rest: Any) -> Any:
        searched.append(questions[0])
        return best(self, questions, *rest)

    monkeypatch.setattr(StoreCollection, "best", counted)

    def broken_off() -> None:
        if len(searched) > 1:
            raise ServiceError(503, "stopping", "the collector is stopping")

    with pytest.raises(ServiceError, match="stopping"):
        prepare(store, studies, stored, AnswerRequest(), broken_off).read()
    assert searched == [0, 1]
    found = prepare(store, studies, stored, AnswerRequest()).read()
    assert searched[2:] == list(range(1, len(SEARCH.survey.questions)))  # what was taken is not taken again
    assert document(found) == undisturbed(SEARCH, PEOPLE, hide=None)
    searched.clear()
    assert document(prepare(store, studies, stored, AnswerRequest()).read()) == undisturbed(SEARCH, PEOPLE, hide=None)
    assert not searched
    # more reports are another search, and what was taken from fewer is forgotten
    fill(store, stored, framed(SEARCH.survey, held(SEARCH, 100)), SEARCH.survey)
    more = store.find(stored.task)
    assert more is not None
    assert prepare(store, studies, more, AnswerRequest()).read().population == PEOPLE + 100
    assert searched
    assert store.take(stored.task, stored.sequence, 0, 0) is None


def test_a_reading_stands_still_while_reports_come_in(store: Store) -> None:
    studies, stored = published(store, SEARCH)
    reading = prepare(store, studies, stored, AnswerRequest())
    fill(store, stored, framed(SEARCH.survey, held(SEARCH, 500)), SEARCH.survey)
    assert document(reading.read()) == undisturbed(SEARCH, PEOPLE, hide=None)


def test_purged_reports_leave_what_was_taken(store: Store) -> None:
    studies, stored = published(store, SEARCH)
    before = document(prepare(store, studies, stored, AnswerRequest()).read())
    with pytest.raises(InputError, match="closed"):
        studies.purge(stored)
    closed = Catalogue(store).close(stored.task)
    assert studies.purge(closed) == PEOPLE
    assert document(prepare(store, studies, closed, AnswerRequest()).read()) == before
    with pytest.raises(InputError, match="purged"):
        prepare(store, studies, closed, AnswerRequest(set=("k=1",))).read()


def test_a_round_is_not_purged_before_its_study_is_finished(store: Store) -> None:
    studies, stored = published(store, STUDIES["svim"])
    with pytest.raises(InputError, match="still needed"):
        studies.purge(Catalogue(store).close(stored.task))


def test_a_database_that_fails_within_a_round_loses_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    studies, stored = published(store, STUDIES["svim"])
    run = store.study_of(stored.task)
    assert run is not None
    studies.request_next(run.id)
    written, save = [], store.save_take

    def failing(*take: Any) -> None:
        if written:
            raise StoreError("full")
        written.append(take)
        save(*take)

    monkeypatch.setattr(store, "save_take", failing)
    with pytest.raises(StoreError):
        studies.advance(run.id)
    monkeypatch.setattr(store, "save_take", save)
    assert store.take(run.id, 0, 0, 0) is not None  # what was taken stays
    assert list(studies.waiting()) == [run.id]  # and whoever looks goes on
    assert studies.advance(run.id) == 1
    assert list(studies.waiting()) == []


def test_what_is_too_long_is_refused_before_it_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_store, "_MOST_VALUES", 16)
    catalogue = Catalogue(store)
    survey = Survey(OLH(1.0, 17))
    catalogue.create(draft_of(survey, {}, precision=60, minimum=1))
    stored = catalogue.open(survey.task)
    fill(store, stored, framed(survey, values(50)), survey)
    with pytest.raises(ServiceError, match="too large to list"):
        prepare(store, RunningStudies(store, catalogue), catalogue.look_up(survey.task), AnswerRequest()).read()


def test_one_result_is_kept_per_tally_and_made_once() -> None:
    made: list[int] = []
    proceed = threading.Event()

    def reading(mark: int, *, long: bool = False, wait: bool = False) -> ResultKey:
        def read() -> Any:
            if wait:
                assert proceed.wait(60)
            made.append(mark)
            return f"result {len(made)}"

        return ResultKey("task", "study", mark, long, read)

    async def ask() -> None:
        metrics = Metrics()
        quick, long = (ReaderThreads(name, threads=1, waiting=2) for name in ("quick", "long"))
        readings = ResultCache(metrics, quick, long)
        assert await readings.result(reading(1)) == await readings.result(reading(1)) == "result 1"
        assert made == [1]
        both = [asyncio.create_task(readings.result(reading(2, long=True, wait=True))) for _ in range(2)]
        await asyncio.sleep(0)
        both[0].cancel()  # who asked first is gone: the other still gets it
        other = ResultKey("task", "another study", 2, False, lambda: "quick")  # type: ignore[arg-type,return-value]
        assert await readings.result(other) == "quick"  # nobody waits for a long reading
        proceed.set()
        assert await both[1] == "result 2"
        assert made == [1, 2]
        assert await readings.result(reading(2)) == "result 2"
        assert metrics.value("veil_readings_total", outcome="made") == 3
        quick.stop()
        long.stop()

    asyncio.run(ask())


def test_kept_results_have_a_limit_of_bytes() -> None:
    made: list[str] = []

    def reading(study: str, size: int) -> ResultKey:
        def read() -> Any:
            made.append(study)
            return np.zeros(size, np.uint8)

        return ResultKey("task", study, 1, False, read)

    async def ask() -> None:
        quick, long = (ReaderThreads(name, threads=1, waiting=2) for name in ("quick", "long"))
        readings = ResultCache(Metrics(), quick, long)
        sizes = {"a": 20 << 20, "b": 20 << 20, "c": 30 << 20, "d": 65 << 20}
        for study, size in sizes.items():
            await readings.result(reading(study, size))
            await readings.result(reading(study, size))
        assert made == ["a", "b", "c", "d", "d"]  # d alone is larger than the limit, so it is never kept
        made.clear()
        for study in ("b", "c", "a"):
            await readings.result(reading(study, sizes[study]))
        assert made == ["a"]  # c took the place of a
        quick.stop()
        long.stop()

    asyncio.run(ask())


def test_size_in_memory_counts_arrays_texts_and_shared_parts_once() -> None:
    array = np.zeros(1_000_000)
    assert 8_000_000 <= size_in_memory(array) < 8_001_000
    assert size_in_memory([array, array]) < 8_001_000
    assert size_in_memory([array[1:]]) > 7_999_000
    assert size_in_memory({"rows": tuple("x" * 1_000 + str(n) for n in range(1_000))}) > 1_000_000
