"""Somebody between device and collector who holds no key shows devices what the collector signed before."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.harness import Collector, running
from tests.service.middleman import Middleman

from veil import OLH, Categories, Ledger, Public, Survey
from veil.collector.http.app import App
from veil.collector.keys_and_tokens import load_key, public_bytes
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.surveys.catalogue import draft_of, key_text, published
from veil.device.online import Clock, OnlineClient, open_client
from veil.device.outbox import Outbox
from veil.device.verification import read_about
from veil.errors import CollectorError, InputError

QUESTION = OLH(1.0, Categories(["tea", "coffee", "water"]))
NOW, DAY = 1_800_000_000.0, 86_400


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """Takes the reports. What devices are shown is written by the tests, with its key."""
    with running(tmp_path_factory.mktemp("rollback") / "data") as one:
        yield one


def wave(collector: Collector, name: str, number: int) -> tuple[Survey, bytes]:
    """A wave that takes reports, and the bytes that devices are shown of it."""
    survey = Survey(QUESTION, [Public(name)], wave=number)
    collector.open_survey(survey, name=name)
    return survey, signed(collector.settings.key_path, survey, name, number)


def signed(key: Path, survey: Survey, name: str, number: int, until: float = NOW + 30 * DAY) -> bytes:
    draft = draft_of(survey, {"name": name}, precision=86_400, minimum=1)
    return json.dumps(published(replace(draft, wave=number), load_key(key), int(until))).encode()


def key_of(collector: Collector) -> str:
    return key_text(load_key(collector.settings.key_path))


def beside(survey: Survey) -> dict[str, list[int]]:
    return {column.name: [7] for column in survey.public}


class Device:
    """A person's device behind somebody who decides what it is shown."""

    def __init__(self, collector: Collector, middleman: Middleman, name: str, folder: Path) -> None:
        self.key, self.middleman, self.name, self.folder = key_of(collector), middleman, name, folder
        self.now = NOW

    @property
    def ledger(self) -> Ledger:
        """The ledger as another process opens it."""
        return Ledger(self.folder / "ledger", lifetime=9.0)

    def open(self, shown: bytes, asked: str | None = None, key: Any = None) -> OnlineClient:
        self.show(shown)
        clock = Clock(now=lambda: self.now)
        return open_client(self.middleman.url, key or self.key, asked or self.name, self.ledger, clock)

    def show(self, shown: bytes) -> None:
        self.middleman.alter = lambda body: body if b"acknowledged" in body else shown

    def refuses(self, shown: bytes) -> None:
        before = self.ledger.charges, Outbox(self.folder / "ledger.outbox")._read(), len(self.middleman.posts)
        with pytest.raises(CollectorError, match=f"this is wave 1 of {self.name}, and this device has seen wave 2"):
            self.open(shown)
        after = self.ledger.charges, Outbox(self.folder / "ledger.outbox")._read(), len(self.middleman.posts)
        assert before == after


@pytest.fixture
def device(collector: Collector, middleman: Middleman, name: str, tmp_path: Path) -> Device:
    return Device(collector, middleman, name, tmp_path)


def test_a_wave_that_was_shown_before_a_later_one_is_refused(collector: Collector, device: Device) -> None:
    (first, old), (second, new) = (wave(collector, device.name, number) for number in (1, 2))
    assert device.open(old).answer("tea", beside(first)).state == "delivered"
    client = device.open(new)
    assert client.answer("tea", beside(second)).state == "delivered"
    assert len(device.ledger.charges) == 2
    device.refuses(old)
    device.show(old)
    device.now += 301  # it looks again before an answer is paid for
    with pytest.raises(CollectorError, match="has seen wave 2"):
        client.answer("coffee", beside(second))
    assert len(device.ledger.charges) == len(device.middleman.posts) == 2
    copy = device.folder / "copy"
    copy.mkdir()
    shutil.copy(device.folder / "ledger", copy)
    device.folder = copy  # the person's new device
    device.refuses(old)
    assert device.open(new).answer("coffee", beside(second), changed=True).state == "delivered"
    assert [charge.task for charge in device.ledger.charges] == [first.task, second.task, second.task]


def test_a_wave_that_was_seen_needs_no_answer_to_be_remembered(collector: Collector, device: Device) -> None:
    (first, old), (_, new) = (wave(collector, device.name, number) for number in (1, 2))
    device.open(new)
    device.refuses(old)
    client = device.open(old, first.task)  # by its task id it is what was asked for, and cannot be another
    assert client.answer("tea", beside(first)).state == "delivered"
    assert client.answer("tea", beside(first)).state == "delivered"
    assert [charge.task for charge in device.ledger.charges] == [first.task]
    other = device.folder / "other"
    other.mkdir()
    device.folder = other
    device.open(new, Survey(QUESTION, [Public(device.name)], wave=2).task)  # seen by its task id
    device.refuses(old)


OPENER = """
import sys
from veil import Client, Ledger
url, key, name, path = sys.argv[1:]
print(Client.open(url, key, name, Ledger(path, lifetime=9.0)).wave)
"""


def test_another_process_with_the_same_ledger_sees_the_later_wave(collector: Collector, device: Device) -> None:
    (first, old), (_, new) = (wave(collector, device.name, number) for number in (1, 2))
    client = device.open(old)
    device.show(new)
    script = [sys.executable, "-c", OPENER, device.middleman.url, device.key, device.name]
    opened = subprocess.run([*script, str(device.folder / "ledger")], capture_output=True, check=True)
    assert opened.stdout == b"2\n"
    with pytest.raises(CollectorError, match="has seen wave 2"):
        client.answer("tea", beside(first))  # though it need not look again yet
    assert (device.ledger.charges, client.outbox.parcels(), device.middleman.posts) == ([], [], [])


def test_names_and_keys_do_not_mix(collector: Collector, device: Device, tmp_path: Path) -> None:
    (_, old), (_, new) = (wave(collector, device.name, number) for number in (1, 2))
    device.open(new)
    other = f"{device.name}-x"
    assert device.open(wave(collector, other, 1)[1], other).wave == 1
    foreign = load_key(tmp_path / "key")
    survey = Survey(QUESTION, [Public(device.name)])
    again = signed(tmp_path / "key", survey, device.name, 1)
    assert device.open(again, key=[device.key, key_text(foreign)]).wave == 1  # an equal name, another collector's key
    device.refuses(old)


KILLED = """
import os, sys
from veil import Client, Ledger
url, key, name, path, when = sys.argv[1:]
write = os.write
def torn(file, data):
    write(file, data[: len(data) // 2])
    os._exit(9)
def killed(*given, **more):
    os._exit(9)
if when == "remembering":
    os.write = torn
else:
    Ledger.spend_once = killed
client = Client.open(url, key, name, Ledger(path, lifetime=9.0))
client.answer("tea", {column.name: [7] for column in client.survey.public})
"""


@pytest.mark.parametrize(("when", "highest"), [("remembering", 1), ("paying", 2)])
def test_a_device_killed_while_it_remembers_or_pays(
    collector: Collector, device: Device, when: str, highest: int
) -> None:
    """The ledger is whole: the wave is on record or was never seen, and nothing is paid."""
    (first, old), (second, new) = (wave(collector, device.name, number) for number in (1, 2))
    device.open(old).answer("tea", beside(first))
    device.show(new)
    script = [sys.executable, "-c", KILLED, device.middleman.url, device.key, device.name]
    assert subprocess.run([*script, str(device.folder / "ledger"), when], check=False).returncode == 9
    assert [charge.task for charge in device.ledger.charges] == [first.task]
    assert device.ledger.see_wave(public_bytes(load_key(collector.settings.key_path)), device.name, 1) == highest
    if highest == 2:
        device.refuses(old)
    assert device.open(new).answer("tea", beside(second)).state == "delivered"
    device.refuses(old)
    assert [charge.task for charge in device.ledger.charges] == [first.task, second.task]


# -- a statement is valid for so long ----------------------------------------------------------------------------------


def test_a_statement_that_was_not_renewed_is_refused_and_a_clock_may_be_a_day_off(
    collector: Collector, device: Device
) -> None:
    survey, _ = wave(collector, device.name, 1)
    until = NOW + 30 * DAY
    shown = signed(collector.settings.key_path, survey, device.name, 1, until)
    for off in (-DAY, DAY):  # at the collector it is the statement's last second
        device.now = until - 1 + off
        assert device.open(shown).answer("tea", beside(survey)).state == "delivered"
    client = device.open(shown)
    device.now = until + DAY
    before = device.ledger.charges, len(device.middleman.posts)
    with pytest.raises(CollectorError, match=rf"{device.name} was valid until 2027-02-14T08:00:00Z.*renewed"):
        device.open(shown)
    device.now += 301
    with pytest.raises(CollectorError, match="renewed"):
        client.answer("coffee", beside(survey))
    assert (device.ledger.charges, len(device.middleman.posts)) == before
    bare = {name: part for name, part in json.loads(shown).items() if name != "about"}
    without = device.open(json.dumps(bare).encode(), survey.task)
    assert (without.wave, without.text()) == (None, None)
    by_task = device.open(shown, survey.task)  # nothing else can be shown in its place, however old
    assert by_task.answer("tea", beside(survey)).state == "delivered"
    renewed = signed(collector.settings.key_path, survey, device.name, 1, until + 30 * DAY)
    assert device.open(renewed).answer("coffee", beside(survey)).state == "delivered"


def test_a_device_without_a_network_answers_while_the_statement_that_it_holds_is_valid(
    collector: Collector, device: Device
) -> None:
    survey, shown = wave(collector, device.name, 1)
    device.open(shown)
    middleman = device.middleman
    middleman.down, middleman.on_get[:] = True, [503] * 9
    device.now = NOW + 31 * DAY - 1
    client = device.open(b"")
    assert client.answer("tea", beside(survey), patience=0).state == "queued"
    device.now += 1
    with pytest.raises(CollectorError, match="renewed"):
        device.open(b"")
    device.now += 301
    with pytest.raises(CollectorError, match="renewed"):
        client.answer("coffee", beside(survey), patience=0)
    assert [charge.task for charge in device.ledger.charges] == [survey.task]
    middleman.down = False
    device.now += DAY
    assert client.deliver() == 0  # what was paid for in time
    assert len(collector.stored_ids(survey)) == 1


def test_statements_are_renewed_while_the_collector_runs(collector: Collector, device: Device, tmp_path: Path) -> None:
    survey, _ = wave(collector, device.name, 1)
    now = [NOW]
    service = Service(replace(collector.settings, valid_days=7), clock=lambda: now[0])
    shown = []
    for days in (0.0, 0.5, 1.0, 7.5, 8.0, 400.0):
        now[0] = NOW // DAY * DAY + days * DAY
        shown.append(asyncio.run(served(service, f"by-name/{device.name}")))
        assert shown[-1] == asyncio.run(served(service, survey.task))
        about = read_about(json.loads(shown[-1]), None, survey.task)
        assert about is not None
        assert 7 * DAY <= about["valid_until"] - now[0] <= 8 * DAY
        device.now = now[0]
        assert device.open(shown[-1]).answer("tea", beside(survey)).state == "delivered"
    service.store.close()
    assert shown[0] == shown[1]  # all devices of a day get the same bytes
    assert len(set(shown)) == len(shown) - 1
    assert len({json.loads(document)["document"] for document in shown}) == 1  # the survey's own is as it was
    assert len(device.ledger.charges) == 1
    for old in shown[:-1]:
        with pytest.raises(CollectorError, match="renewed"):
            device.open(old)


async def served(service: Service, path: str) -> bytes:
    transport = httpx.ASGITransport(App(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://collector") as client:
        answer = await client.get(f"/v1/surveys/{path}")
    assert answer.status_code == 200
    return answer.content


def test_a_running_collector_states_thirty_days(collector: Collector, device: Device) -> None:
    survey, _ = wave(collector, device.name, 1)
    begin = time.time()
    about = read_about(httpx.get(f"{collector.url}/v1/surveys/{survey.task}").json(), None, survey.task)
    assert about is not None
    assert about["valid_until"] - begin >= 30 * DAY
    assert about["valid_until"] - time.time() <= 31 * DAY
    for wrong in (0, 36_526):
        with pytest.raises(InputError, match="valid_days"):
            CollectorSettings(valid_days=wrong)
