"""Surveys by their name, from a device: the latest wave, signed for that name, and paid for like any other survey."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import Collector, running
from tests.service.middleman import Middleman
from tests.support.commands import CliRunner, Result

from veil import OLH, Categories, Client, Ledger, Public, Survey
from veil.cli.main import app
from veil.collector.keys_and_tokens import load_key
from veil.collector.surveys.catalogue import key_text
from veil.device.online import Clock, open_client
from veil.device.statements import best_text
from veil.device.verification import written_time
from veil.errors import BudgetError, CollectorError, MismatchError, ParameterError, WireError

QUESTION = OLH(1.0, Categories(["tea", "coffee", "water"]))
TEXTS = {"en": "What do\x1byou drink?", "de": "Was trinken Sie?"}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("waves") / "data") as one:
        yield one


def wave(collector: Collector, name: str, number: int) -> Survey:
    """The very same question once more, open and known to devices: its number makes it a task of its own."""
    survey = Survey(QUESTION, [Public(name)], wave=number)
    collector.open_survey(survey, name=name, texts=TEXTS)
    known = httpx.get(f"{collector.url}/v1/surveys/{survey.task}", timeout=LIMIT).json()
    path = f"{collector.url}/v1/surveys/by-name/{name}"
    until(lambda: httpx.get(path, timeout=LIMIT).json() == known)  # a name is remembered for a second
    return survey


def key_of(collector: Collector) -> str:
    return key_text(load_key(collector.settings.key_path))


def beside(survey: Survey) -> dict[str, list[int]]:
    return {column.name: [7] for column in survey.public}


def close(collector: Collector, survey: Survey) -> None:
    closed = httpx.post(f"{collector.url}/v1/surveys/{survey.task}/close", headers=collector.token())
    assert closed.status_code == 200


def test_every_wave_is_paid_for_and_a_retry_is_not(collector: Collector, name: str, tmp_path: Path) -> None:
    def opened() -> Any:
        return Client.open(collector.url, key_of(collector), name, Ledger(tmp_path / "ledger", lifetime=2.0))

    for number in (1, 2):
        survey = wave(collector, name, number)
        client = opened()
        assert (client.survey, client.wave) == (survey, number)
        assert client.text("de") == "Was trinken Sie?"
        for again in (client, client, opened()):
            assert again.answer("tea", beside(survey)).state == "delivered"
        assert len(collector.stored_ids(survey)) == 1
        assert [charge.task for charge in client.ledger.charges][number - 1 :] == [survey.task]
    assert float(client.ledger.left) == 0
    third = wave(collector, name, 3)
    client = opened()
    assert client.wave == 3
    with pytest.raises(BudgetError, match="lifetime"):
        client.answer("tea", beside(third))
    assert collector.stored_ids(third) == []
    assert client.outbox.parcels() == []


def test_the_latest_wave_that_is_open_is_answered(collector: Collector, name: str) -> None:
    first, second = wave(collector, name, 1), wave(collector, name, 2)
    key = key_of(collector)
    assert Client.open(collector.url, key, name, Ledger(lifetime=1.0)).survey == second
    close(collector, second)
    assert Client.open(collector.url, key, name, Ledger(lifetime=1.0)).survey == first
    close(collector, first)
    with pytest.raises(CollectorError, match="closed"):
        Client.open(collector.url, key, name, Ledger(lifetime=1.0))
    with pytest.raises(CollectorError, match="404"):
        Client.open(collector.url, key, f"{name}-x", Ledger(lifetime=1.0))


def test_an_answer_goes_to_the_wave_that_the_person_was_asked(collector: Collector, name: str, tmp_path: Path) -> None:
    now = [time.time()]
    first, ledger = wave(collector, name, 1), Ledger(tmp_path / "ledger", lifetime=2.0)
    client = open_client(collector.url, key_of(collector), name, ledger, Clock(now=lambda: now[0]))
    second = wave(collector, name, 2)
    now[0] += 301  # it looks again before an answer is paid for
    with pytest.raises(MismatchError, match="another wave"):
        client.answer("tea", beside(first))
    assert (ledger.charges, client.wave) == ([], 1)
    assert collector.stored_ids(first) == collector.stored_ids(second) == []


def test_a_report_that_came_too_early_asks_for_its_own_wave(
    collector: Collector, middleman: Middleman, name: str
) -> None:
    early, opens = Survey(QUESTION, public=[Public(f"{name}-1")]), int(time.time()) + 3_600
    collector.open_survey(early, name=name, opens=written_time(opens))
    clock = Clock(now=lambda: opens + 60.0)
    client = open_client(middleman.url, key_of(collector), name, Ledger(lifetime=1.0), clock)
    wave(collector, name, 2)
    middleman.on_post[:] = [409]
    assert client.answer("tea", beside(early), patience=0).state == "queued"
    assert [parcel.opens for parcel in client.outbox.parcels()] == [opens]


def test_without_a_network_the_copy_of_a_name_is_verified_again(
    collector: Collector, middleman: Middleman, name: str, tmp_path: Path
) -> None:
    survey, key, outbox = wave(collector, name, 1), key_of(collector), tmp_path / "ledger.outbox"

    def opened(asked_for: str = name) -> Any:
        return Client.open(middleman.url, key, asked_for, Ledger(tmp_path / "ledger", lifetime=1.0))

    opened()
    middleman.on_get[:], middleman.down = [503] * 3, True
    client = opened()
    assert (client.wave, client.text("en")) == (1, TEXTS["en"])
    assert client.answer("tea", beside(survey), patience=0).state == "queued"
    outbox.write_text(outbox.read_text().replace(f"by-name/{name}", f"by-name/{name}-x"))
    with pytest.raises(MismatchError, match="another name"):
        opened(f"{name}-x")
    middleman.down = False
    assert client.deliver() == 0
    assert len(collector.stored_ids(survey)) == 1


def about_changed(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    """A published survey with something else said about it, under the old signature."""

    def altered(body: bytes) -> bytes:
        envelope = json.loads(body)
        document = json.loads(base64.urlsafe_b64decode(envelope["about"]["document"] + "=="))
        change(document)
        written = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        envelope["about"]["document"] = base64.urlsafe_b64encode(written).rstrip(b"=").decode()
        return json.dumps(envelope).encode()

    return altered


def test_another_survey_cannot_be_handed_out_under_a_name(
    collector: Collector, middleman: Middleman, name: str
) -> None:
    asked, other = wave(collector, name, 1), wave(collector, f"{name}-x", 1)
    plain = Survey(QUESTION, public=[Public(f"{name}-plain")])
    collector.open_survey(plain)
    key, ledger = key_of(collector), Ledger(lifetime=1.0)

    def refused(kind: type[Exception], match: str, asked_for: str = name) -> None:
        with pytest.raises(kind, match=match):
            Client.open(middleman.url, key, asked_for, ledger)

    for elsewhere in (f"by-name/{name}-x", other.task, plain.task):  # signed, but under another name or none
        middleman.names = {f"by-name/{name}": elsewhere}
        refused(MismatchError, "another name")
    middleman.names = {}
    middleman.alter = about_changed(lambda about: about.update(name=name))  # the other's, renamed
    refused(WireError, "not signed", f"{name}-x")
    middleman.alter = about_changed(lambda about: about["texts"].update(en="Harmless?"))
    refused(WireError, "not signed")
    refused(WireError, "not signed", asked.task)  # what is shown to people must be right by the task id, too
    foreign = httpx.get(f"{collector.url}/v1/surveys/{other.task}").json()
    middleman.alter = lambda body: json.dumps({**foreign, "about": json.loads(body)["about"]}).encode()
    refused(MismatchError, "about another survey")  # the right statement beside the wrong survey
    for about in (None, [], "about", {}, {"document": 3}):
        middleman.alter = lambda body, about=about: json.dumps({**json.loads(body), "about": about}).encode()  # type: ignore[misc]
        refused(WireError, "not signed")
    assert (ledger.charges, middleman.posts) == ([], [])
    middleman.alter = lambda body: body
    assert Client.open(middleman.url, key, name, ledger).survey == asked


def test_a_survey_without_a_name_has_no_wave_and_no_text(collector: Collector, name: str) -> None:
    plain = Survey(QUESTION, public=[Public(f"{name}-plain")])
    collector.open_survey(plain)
    client = Client.open(collector.url, key_of(collector), plain.task, Ledger(lifetime=1.0))
    assert (client.wave, client.text("de"), client.text()) == (None, None, None)
    named = wave(collector, name, 1)
    client = Client.open(collector.url, key_of(collector), named.task, Ledger(lifetime=1.0))  # by its task id
    assert (client.wave, client.text("de-AT")) == (1, TEXTS["de"])


@pytest.mark.parametrize(
    ("texts", "languages", "wanted"),
    [
        ("de en", "de", "de"),
        ("de en", "DE-ch", "de"),
        ("de de-CH en", "de-CH-1996", "de-CH"),
        ("de-AT de-CH en", "de", "de-AT"),
        ("de-CH en", "de-AT", "de-CH"),
        ("de en", "fr de", "de"),
        ("de en fr", "de fr", "de"),
        ("de en", "fr", "en"),
        ("de en-GB", "", "en-GB"),
        ("it de", "fr", "de"),
        ("den en", "de", "en"),
        ("", "de", None),
    ],
)
def test_the_language_that_a_person_reads_best(texts: str, languages: str, wanted: str | None) -> None:
    assert best_text({tag: tag for tag in texts.split()}, languages.split()) == wanted


def test_a_language_is_named_by_text() -> None:
    with pytest.raises(ParameterError, match="language"):
        best_text({"de": "?"}, [None])  # type: ignore[list-item]


# -- from a shell ------------------------------------------------------------------------------------------------------


def shell(folder: Path, *arguments: str, language: str = "C.UTF-8") -> Result:
    environment = {"XDG_STATE_HOME": str(folder), "LC_ALL": language}
    return CliRunner().invoke(app, ["answer", *arguments], env=environment)


def test_an_answer_by_name_from_a_shell(collector: Collector, name: str, tmp_path: Path) -> None:
    options = ("--key", key_of(collector), "--lifetime", "2", "--value", "tea")
    for number in (1, 2):
        survey = wave(collector, name, number)
        column = ("--public", f"{name}=7")
        given = shell(tmp_path, collector.url, "--name", name, *options, *column, "--json")
        assert given.exit_code == 0, given.stderr
        wanted = {"state": "delivered", "task": survey.task, "wave": number, "cost": 1, "left": 2 - number}
        assert json.loads(given.stdout) == {**wanted, "waiting": 0}
        address = f"{collector.url}/v1/surveys/by-name/{name}"
        again = shell(tmp_path, address, *options, *column)  # with the escape shown
        assert (again.exit_code, again.stdout.splitlines()[0]) == (
            0,
            f"{name}, wave {number}: What do\\x1byou drink?",
        )  # no escape
        german = shell(tmp_path, address, *options, *column, language="de_CH.UTF-8")
        assert german.stdout.splitlines()[0] == f"{name}, wave {number}: Was trinken Sie?"
        assert len(collector.stored_ids(survey)) == 1
    third = wave(collector, name, 3)
    refused = shell(tmp_path, collector.url, "--name", name, *options, "--public", f"{name}=7")
    assert (refused.exit_code, refused.stdout) == (6, "")
    assert collector.stored_ids(third) == []
    for address in (f"{collector.url}/v1/surveys/{third.task}", f"{collector.url}/v1/surveys/by-name/{name}"):
        both = shell(tmp_path, address, "--name", name, *options)
        assert (both.exit_code, "either" in both.stderr) == (3, True)
    assert shell(tmp_path, collector.url, *options).exit_code == 3
