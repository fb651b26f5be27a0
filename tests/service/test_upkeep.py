"""What a collector does beside its requests, and how little of it: idle surveys, candidates that were counted, keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.service.harness import SURVEY, framed, values

from veil import GRR, OLH, Survey, Text
from veil.collector.edge.decoding import decode_requests
from veil.collector.keys_and_tokens import adopt, load_key
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.store.base import Group, StoredStudy, StoredSurvey
from veil.collector.store.blocks import BlockStore
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys import collection as in_store
from veil.collector.surveys.answers import AnswerRequest, prepare
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.collector.surveys.rounds import RunningStudies
from veil.errors import InputError
from veil.results.render.files import document

WORDS = Survey(OLH(epsilon=3.0, domain=Text(4)))


def opened(store: BlockStore, survey: Survey) -> StoredSurvey:
    catalogue = Catalogue(store)
    catalogue.create(draft_of(survey, {}, precision=60, minimum=1))
    return catalogue.open(survey.task)


def fill(store: BlockStore, stored: StoredSurvey, survey: Survey, held: Any) -> StoredSurvey:
    decoded = decode_requests(survey, [framed(survey, held)])
    assert store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 1_000) == [len(held)]
    return store.survey(stored.key)


def test_idle_surveys_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all surveys takes as many statements, and reads as many documents, for 40 surveys as for one."""
    store = SqliteStore(tmp_path / "x.sqlite3")
    service = Service(CollectorSettings(folder=str(tmp_path)), store, clock=lambda: 2_000.0)  # statements name the time
    stored = opened(store, SURVEY)
    asked: list[str] = []

    def looked() -> list[str]:
        asked.clear()
        service._caught_up()
        assert list(service.studies.waiting()) == []
        return list(asked)

    def watch() -> None:
        for connection in store._idle:
            connection.set_trace_callback(asked.append)

    assert looked() == []
    watch()
    few = looked()
    assert few
    for size in range(20, 40):
        fill(store, opened(store, one := Survey(OLH(1.0, size))), one, [1, 2])
        assert store.add_round(f"{size:064}", 0, 1, draft_of(Survey(GRR(1.0, size)), {}, precision=60, minimum=1))  # type: ignore[arg-type]
        store.create_study(StoredStudy(f"{size:064}", b"{}"))
    open_domain = fill(store, opened(store, WORDS), WORDS, ["ab"])
    watch()
    assert len(looked()) > len(few)  # tallies are made once
    watch()
    assert looked() == few
    fill(store, stored, SURVEY, [1, 2, 3])
    fill(store, open_domain, WORDS, ["cd"])
    watch()
    again = looked()
    assert len(few) < len(again) < len(few) + 8  # of the one that has new reports
    kept = store.tally(stored.key)
    assert kept is not None
    assert kept.sequence == 3
    store.close()


def test_candidates_are_counted_once(make: Callable[[], BlockStore], monkeypatch: pytest.MonkeyPatch) -> None:
    store = make()
    studies = RunningStudies(store, Catalogue(store))
    stored = fill(store, opened(store, WORDS), WORDS, ["ab", "cd"] * 100)
    counted: list[int] = []
    tally = Survey.tally

    def watched(self: Survey, reports: Any, *rest: Any, **named: Any) -> Any:
        counted.append(len(reports))
        return tally(self, reports, *rest, **named)

    monkeypatch.setattr(Survey, "tally", watched)

    def ask(stored: StoredSurvey, *candidates: str) -> Any:
        counted.clear()
        return document(prepare(store, studies, stored, AnswerRequest(candidates=candidates)).read())

    first = ask(stored, "ab", "xy")
    assert sum(counted) == 200
    assert ask(stored, "ab", "xy") == first
    assert not counted
    ask(stored, "ab")
    assert sum(counted) == 200  # other candidates are another count
    more = fill(store, stored, WORDS, ["ab"] * 50)
    after = ask(more, "ab", "xy")
    assert sum(counted) == 50
    monkeypatch.setattr(in_store.StoreCollection, "_asked", lambda self, *given: "anew")  # a rival that knows nothing
    assert ask(more, "ab", "xy") == after
    assert sum(counted) == 250
    assert ask(stored, "ab", "xy") == first  # from fewer reports than were counted since: from the first on
    monkeypatch.undo()
    closed = Catalogue(store).close(WORDS.task)
    store.purge(closed.key)
    assert ask(closed, "ab", "xy") == after  # what was counted is left of what was purged
    with pytest.raises(InputError, match="purged"):
        ask(closed, "zz")


def test_only_the_latest_candidates_are_kept(make: Callable[[], BlockStore], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_store, "_MOST_COUNTED", 2)
    store = make()
    stored = fill(store, opened(store, WORDS), WORDS, ["ab"] * 10)
    studies = RunningStudies(store, Catalogue(store))
    times = iter(range(100))
    monkeypatch.setattr(in_store.time, "time", lambda: next(times))

    def used() -> list[int]:
        with store.snapshot() as connection:
            return [at for (at,) in connection.execute("SELECT used FROM counted ORDER BY used").fetchall()]

    for word in ("a", "b", "c"):
        prepare(store, studies, stored, AnswerRequest(candidates=(word,))).read()
    assert used() == [1, 2]
    for word in ("b", "d"):  # the former is there, and asked for again
        prepare(store, studies, stored, AnswerRequest(candidates=(word,))).read()
    assert used() == [3, 4]


def test_a_database_has_one_signing_key(make: Callable[[], BlockStore], tmp_path: Path) -> None:
    first, second = (CollectorSettings(folder=str(tmp_path / name)) for name in ("one", "two"))
    Service(first, make())
    Service(first, make())  # a second collector with the same key
    with pytest.raises(InputError, match="that is not at "):
        Service(second, make())
    assert not second.key_path.exists()  # a new key there would pass for the database's own
    load_key(second.key_path)
    with pytest.raises(InputError, match="another key"):
        Service(second, make())
    adopt(make(), load_key(second.key_path))
    Service(second, make())
    with pytest.raises(InputError, match="another key"):
        Service(first, make())


def test_the_files_of_a_database_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    store = SqliteStore(path)
    fill(store, opened(store, SURVEY), SURVEY, values(10))
    for file in tmp_path.iterdir():
        file.chmod(0o644)  # as a copy may be
    again = SqliteStore(path)
    assert {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {
        f"x.sqlite3{ending}": 0o600 for ending in ("", "-wal", "-shm")
    }
    again.close()
    store.close()
