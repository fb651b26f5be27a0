"""Somebody between device and collector who holds no key shows devices what the collector signed before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.service.harness import Collector, running
from tests.service.middleman import Middleman, between

from veil import OLH, Categories, Ledger, Public, Survey
from veil.collector.catalogue import draft_of
from veil.collector.documents import key_text, published
from veil.collector.keys import load_key, public_bytes
from veil.device.online import Clock, OnlineClient, open_client
from veil.device.outbox import Outbox
from veil.errors import CollectorError

QUESTION = OLH(1.0, Categories(["tea", "coffee", "water"]))
NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """Takes the reports. What devices are shown is written by the tests, with its key."""
    with running(tmp_path_factory.mktemp("rollback") / "data") as one:
        yield one


@pytest.fixture
def middleman(collector: Collector) -> Iterator[Middleman]:
    with between(collector.port) as one:
        yield one


@pytest.fixture
def name() -> str:
    """A name that no other test of this file uses."""
    return f"drinks-{os.urandom(4).hex()}"


def wave(collector: Collector, name: str, number: int) -> tuple[Survey, bytes]:
    """A wave that takes reports, and the bytes that devices are shown of it."""
    survey = Survey(QUESTION, [Public(name)], wave=number)
    collector.open_survey(survey, name=name)
    return survey, signed(collector.settings.key_path, survey, name, number)


def signed(key: Path, survey: Survey, name: str, number: int) -> bytes:
    draft = draft_of(survey, {"name": name}, precision=86_400, minimum=1)
    return json.dumps(published(replace(draft, wave=number), load_key(key))).encode()


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
    assert device.open(new).answer("coffee", beside(second)).state == "delivered"
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
def killed(*given):
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
