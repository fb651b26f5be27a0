"""Surveys by name: their waves and texts, signed beside the survey, whose own document stays what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.patience import LIMIT
from tests.service.harness import running

from veil import GRR, Survey
from veil.collector.keys_and_tokens import load_key, public_bytes
from veil.collector.store.base import Store, StoredSurvey
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys.catalogue import Catalogue, draft_of, parsed, published
from veil.collector.surveys.rounds import RunningStudies
from veil.device.verification import read_about, verified
from veil.errors import InputError, MismatchError, ServiceError, WireError

FIRST, SECOND, OTHER = (Survey(GRR(1.0, size)) for size in (3, 4, 5))
TEXTS = {"en": "How often?", "de-CH": "Wie häufig?"}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = request.getfixturevalue("postgres").database() if request.param == "postgres" else ""
    one: Store = PostgresStore(url) if url else SqliteStore(tmp_path / "x.sqlite3")
    yield one
    one.close()


def named(store: Store, survey: Survey, name: str | None, **options: Any) -> Any:
    given = {**options, **({} if name is None else {"name": name})}
    return Catalogue(store).create(draft_of(survey, given, precision=3_600, minimum=1))[0]


def test_the_latest_wave_is_remembered_for_a_moment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veil.collector.surveys.catalogue._REMEMBERED_SECONDS", LIMIT)
    catalogue = Catalogue(store)
    for survey in (FIRST, SECOND):
        named(store, survey, "sleep")
        catalogue.open(survey.task)
        assert catalogue.recall_named("sleep") is None  # what is opened here is there at once
        assert catalogue.named("sleep").task == survey.task
        remembered = catalogue.recall_named("sleep")
        assert remembered is not None
        assert remembered.task == survey.task
    monkeypatch.setattr("veil.collector.surveys.catalogue._REMEMBERED_SECONDS", 0.0)
    catalogue.named("sleep")
    assert catalogue.recall_named("sleep") is None


def test_surveys_of_one_name_are_waves(store: Store) -> None:
    catalogue = Catalogue(store)
    with pytest.raises(ServiceError, match="no survey of this name"):
        catalogue.named("sleep")
    for hostile in ("\0", "\ud800", "x'; --", "A" * 99, ""):
        with pytest.raises(ServiceError, match="no survey of this name"):
            catalogue.named(hostile)
    assert named(store, FIRST, "sleep", texts=TEXTS).wave == 1
    with pytest.raises(ServiceError, match="no survey of this name"):
        catalogue.named("sleep")  # a draft is not there yet
    catalogue.open(FIRST.task)
    assert named(store, FIRST, "sleep", texts=TEXTS).wave == 1  # again is fine
    with pytest.raises(ServiceError, match="other times, limits or texts"):
        named(store, FIRST, "sleep", texts={"en": "Why?"})
    assert named(store, OTHER, None).wave is None
    assert named(store, SECOND, "sleep").wave == 2
    assert catalogue.named("sleep").task == FIRST.task
    catalogue.open(SECOND.task)
    assert catalogue.named("sleep").task == SECOND.task
    catalogue.close(SECOND.task)
    assert catalogue.named("sleep").task == FIRST.task  # the latest that takes reports
    catalogue.close(FIRST.task)
    assert catalogue.named("sleep").task == SECOND.task
    described = catalogue.describe(catalogue.look_up(FIRST.task))
    assert (described["name"], described["wave"], described["texts"]) == ("sleep", 1, TEXTS)


def test_two_who_create_the_same_wave_at_once_get_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(draft: StoredSurvey) -> bool:
        """Both have looked which wave is next, and the other one is stored first."""
        monkeypatch.undo()
        assert named(store, FIRST, "sleep", wave=2).wave == 2
        return store.create(draft)

    named(store, FIRST, "sleep")
    monkeypatch.setattr(store, "create", overtaken)
    with pytest.raises(ServiceError, match="wave 2 of sleep asked something else"):
        named(store, SECOND, "sleep", wave=2)
    assert named(store, OTHER, "sleep").wave == 3
    assert [(one.wave, parsed(one.document).wave) for one in store.named("sleep")] == [(3, 1), (2, 2), (1, 1)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Sleep"},
        {"name": "-x"},
        {"name": 3},
        {"texts": TEXTS},
        {"name": "x", "texts": []},
        {"name": "x", "texts": {"deutsch!": "?"}},
        {"name": "x", "texts": {"de": ""}},
        {"name": "x", "texts": {"de": 3}},
        {"name": "x", "texts": {"de": "\ud800"}},
    ],
)
def test_wrong_names_and_texts_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        draft_of(FIRST, wrong, precision=60, minimum=1)


def test_what_is_said_about_a_survey_is_signed_beside_it(tmp_path: Path) -> None:
    store, key = SqliteStore(tmp_path / "x.sqlite3"), load_key(tmp_path / "key")
    public = public_bytes(key)
    plain = published(draft_of(FIRST, {}, precision=3_600, minimum=1), key)
    stored = named(store, FIRST, "sleep", texts=TEXTS)
    answer = published(stored, key, 86_400)
    assert {name: answer[name] for name in plain} == plain  # devices that know nothing of names verify it as ever
    assert verified(answer, public, FIRST.task) == FIRST
    assert read_about(answer, public, FIRST.task) == {
        "name": "sleep",
        "wave": 1,
        "texts": TEXTS,
        "valid_until": 86_400,
    }
    with pytest.raises(WireError, match="validity"):
        read_about(published(stored, key), public, FIRST.task)
    assert read_about(plain, public, FIRST.task) is None
    with pytest.raises(MismatchError):
        read_about(answer, public, SECOND.task)
    with pytest.raises(WireError):  # the survey's own signature is none of these
        read_about({"about": plain}, public, FIRST.task)
    with pytest.raises(WireError):
        read_about(answer, bytes(32), FIRST.task)
    store.close()


def test_rounds_have_no_names(tmp_path: Path) -> None:
    from tests.service.people import STUDIES

    store = SqliteStore(tmp_path / "x.sqlite3")
    with pytest.raises(InputError, match="one round"):
        RunningStudies(store, Catalogue(store)).publish(STUDIES["svim"], {"name": "x"}, precision=3_600, minimum=1)
    store.close()


def test_devices_find_a_survey_by_its_name(tmp_path: Path) -> None:
    with running(tmp_path / "data") as collector, httpx.Client(base_url=collector.url) as client:
        path = collector.open_survey(FIRST, name="sleep", texts=TEXTS)
        answer = client.get("/v1/surveys/by-name/sleep", headers={"Origin": "https://page.example"})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.json() == client.get(path).json()
        assert verified(answer.json(), None, FIRST.task) == FIRST
        missing = client.get("/v1/surveys/by-name/state")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown-survey")
