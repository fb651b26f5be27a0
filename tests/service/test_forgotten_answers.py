"""Once an answer is delivered, nothing on the device depends on it: whoever takes the device reads what was spent."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from unittest import mock

import httpx
import pytest
from tests.service.harness import Collector, running
from tests.service.middleman import Middleman
from tests.service.test_online_client import Waiting, key_of
from tests.service.test_round_client import FIRST, asked
from tests.service.test_round_client import device as round_device
from tests.support.commands import CliRunner

from veil import GRR, Categories, Client, Ledger, Public, Rappor, Survey
from veil.cli.main import app
from veil.device.ledger import ANSWERED
from veil.device.ledger_file import open_locked
from veil.device.online import OnlineClient, open_client
from veil.device.outbox import Outbox
from veil.device.repeated_answers import written
from veil.entropy import Words
from veil.errors import AnsweredError, BudgetError, CollectorError, LedgerError, VeilError

WORDS = bytes(range(256)) * 8
TODAY = date(2027, 1, 15)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("forgotten") / "data") as one:
        yield one


@pytest.fixture
def survey(collector: Collector) -> Survey:
    """A survey of two values that no other test answers."""
    one = Survey(GRR(1.0, Categories(["no", "yes"])), public=[Public(f"c{os.urandom(4).hex()}")])
    collector.open_survey(one)
    return one


def beside(survey: Survey) -> dict[str, list[int]]:
    return {column.name: [7] for column in survey.public}


def device(middleman: Middleman, collector: Collector, survey: Survey, folder: Path) -> OnlineClient:
    """A person's device, on a day that is the same for all."""
    ledger = Ledger(folder / "ledger", lifetime=3.0, today=lambda: TODAY)
    return open_client(middleman.url, key_of(collector), survey.task, ledger, Waiting().clock)


def give(client: OnlineClient, value: str, *, changed: bool = False) -> str:
    """Answer with the same entropy as everybody else."""
    with mock.patch("veil.device.client.System", return_value=Words(WORDS)):
        return client.answer(value, beside(client.survey), patience=0, changed=changed).state


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def read_by_a_thief(folder: Path, survey: Survey) -> set[str]:
    """The values whose digest is in some file."""
    kept, probe = b"".join(files(folder).values()), Client(survey, Ledger(lifetime=9.0))
    return {value for value in ("no", "yes") if probe.mark(value, beside(survey)).encode() in kept}


def two_people(middleman: Middleman, collector: Collector, survey: Survey, folder: Path) -> list[Path]:
    """The folders of two people who have answered differently, and whose answers are on their way."""
    folders = []
    for value in ("no", "yes"):
        folders.append(folder / f"person-{len(folders)}")
        client = device(middleman, collector, survey, folders[-1])
        middleman.on_post[:] = [503]
        assert give(client, value) == "queued"
        assert read_by_a_thief(folders[-1], survey) == {value}
    return folders


def test_after_delivery_the_files_of_two_answers_are_the_same_bytes(
    collector: Collector, middleman: Middleman, survey: Survey, tmp_path: Path
) -> None:
    people = two_people(middleman, collector, survey, tmp_path)
    assert files(people[0]) != files(people[1])
    for person in people:
        assert device(middleman, collector, survey, person).deliver(patience=60) == 0
    assert files(people[0]) == files(people[1])
    assert [read_by_a_thief(person, survey) for person in people] == [set(), set()]
    ledger = Ledger(people[0] / "ledger")
    assert [(charge.task, charge.note) for charge in ledger.charges] == [(survey.task, "")]
    assert float(ledger.spent) == pytest.approx(1.0)


def test_a_ledger_that_forgets_nothing_is_read_at_once(
    collector: Collector, middleman: Middleman, survey: Survey, tmp_path: Path
) -> None:
    """The rival: the ledger as it was before."""
    people = two_people(middleman, collector, survey, tmp_path)
    with mock.patch.object(Ledger, "forget"):
        for person in people:
            assert device(middleman, collector, survey, person).deliver(patience=60) == 0
    assert files(people[0]) != files(people[1])
    assert [read_by_a_thief(person, survey) for person in people] == [{"no"}, {"yes"}]


def test_a_deleted_outbox_leaves_the_answer_in_the_ledger(
    collector: Collector, middleman: Middleman, survey: Survey, tmp_path: Path
) -> None:
    """Who withdraws an answer that waits deletes both: docs/devices.md and docs/collector/privacy-officer.md say so."""
    person, _ = two_people(middleman, collector, survey, tmp_path)
    (person / "ledger.outbox").unlink()
    client = device(middleman, collector, survey, person)
    assert client.deliver(patience=60) == 0
    assert collector.stored_ids(survey) == []  # nothing was sent
    assert read_by_a_thief(person, survey) == {"no"}
    closed = httpx.post(f"{collector.url}/v1/surveys/{survey.task}/close", headers=collector.token())
    assert closed.status_code == 200
    with pytest.raises(CollectorError, match="closed"):
        client.look()
    assert read_by_a_thief(person, survey) == set()


def test_an_answer_that_is_refused_for_good_is_forgotten_too(
    collector: Collector, middleman: Middleman, survey: Survey, tmp_path: Path
) -> None:
    people = two_people(middleman, collector, survey, tmp_path)
    for person in people:
        middleman.on_post[:] = [422]
        assert device(middleman, collector, survey, person).deliver(patience=60) == 0
        assert read_by_a_thief(person, survey) == set()
        (parcel,) = Outbox(person / "ledger.outbox").parcels()
        assert (parcel.report, parcel.drawn, parcel.attempts, parcel.not_before, parcel.held_until) == ("", 0, 0, 0, 0)
        receipt = device(middleman, collector, survey, person).answer("no", beside(survey))
        assert (receipt.state, receipt.earlier) == ("refused", True)
    assert files(people[0])["ledger"] == files(people[1])["ledger"]


def test_a_delivered_answer_is_neither_drawn_nor_paid_again_unless_it_is_changed(
    collector: Collector, middleman: Middleman, survey: Survey, tmp_path: Path
) -> None:
    client = device(middleman, collector, survey, tmp_path)
    assert give(client, "yes") == "delivered"
    for value in ("yes", "no"):  # the device cannot tell which of them it was
        receipt = client.answer(value, beside(survey))
        assert (receipt.state, receipt.earlier) == ("delivered", True)
    assert len(client.ledger.charges) == len(collector.stored_ids(survey)) == len(middleman.posts) == 1
    assert client.answer("no", beside(survey), changed=True).earlier is False
    assert len(client.ledger.charges) == len(collector.stored_ids(survey)) == 2
    middleman.on_post[:] = [503]
    assert client.answer("yes", beside(survey), changed=True, patience=0).state == "queued"
    middleman.on_post[:] = [503] * 2
    receipt = client.answer("no", beside(survey), patience=0)  # of several, one still waits
    assert (receipt.state, receipt.earlier) == ("queued", True)
    receipt = client.answer("yes", beside(survey), patience=60)  # this one is recognised, and is sent
    assert (receipt.state, receipt.earlier) == ("delivered", False)
    with pytest.raises(BudgetError, match="lifetime"):
        client.answer("yes", beside(survey), changed=True)
    with pytest.raises(VeilError):
        client.answer("perhaps", beside(survey))
    assert len(client.ledger.charges) == 3


KILLED = """
import os, sys
from pathlib import Path
from veil import Client, Ledger
from veil.device.outbox import Outbox
url, key, task, path, when = sys.argv[1:]
def killed(*given, **more):
    os._exit(9)
client = Client.open(url, key, task, Ledger(path, lifetime=3.0))
if when == "before forgetting":
    Ledger.forget = killed
elif when == "after forgetting":
    Outbox.remove = killed
else:
    forget = Ledger.forget
    def halfway(*given):
        Path.replace = killed
        forget(*given)
    Ledger.forget = halfway
client.answer("yes", {column.name: [7] for column in client.survey.public})
"""


@pytest.mark.parametrize("when", ["before forgetting", "while forgetting", "after forgetting"])
def test_a_process_killed_between_acknowledgement_and_forgetting(
    collector: Collector, survey: Survey, middleman: Middleman, tmp_path: Path, when: str
) -> None:
    """The report is sent once more, counts once, and is forgotten then; also what was left of a file."""
    script = [sys.executable, "-c", KILLED, collector.url, key_of(collector), survey.task, str(tmp_path / "ledger")]
    assert subprocess.run([*script, when], check=False).returncode == 9
    assert len(collector.stored_ids(survey)) == 1
    assert (len(files(tmp_path)) == 4) is (when == "while forgetting")  # a temporary file is beside the others
    receipt = Client.open(collector.url, key_of(collector), survey.task, Ledger(tmp_path / "ledger")).answer(
        "yes", beside(survey)
    )
    assert receipt.state == "delivered"
    assert len(collector.stored_ids(survey)) == len(Ledger(tmp_path / "ledger").charges) == 1
    assert read_by_a_thief(tmp_path, survey) == set()
    assert sorted(files(tmp_path)) == ["ledger", "ledger.outbox", "ledger.outbox.lock"]
    assert Outbox(tmp_path / "ledger.outbox").parcels() == []


def test_rappor_remembers_until_its_survey_is_closed(
    collector: Collector, middleman: Middleman, tmp_path: Path
) -> None:
    column = Public(f"c{os.urandom(4).hex()}")
    survey = Survey(Rappor(1.0, Categories(["no", "yes"]), instant=(0.25, 0.75)), public=[column])
    collector.open_survey(survey)
    waiting = Waiting()
    ledger = Ledger(tmp_path / "ledger", lifetime=9.0)
    client = open_client(middleman.url, key_of(collector), survey.task, ledger, waiting.clock)
    mark = client._client._mark(survey.domain.encode(["yes"])).encode()  # type: ignore[union-attr]
    for week in ("1", "2"):
        assert client.answer("yes", beside(survey), occasion=week).state == "delivered"
    assert mark in (tmp_path / "ledger").read_bytes()  # by design: the permanent step is repeated
    assert sum(charge.cost > 0 for charge in ledger.charges) == 1
    closed = httpx.post(f"{collector.url}/v1/surveys/{survey.task}/close", headers=collector.token())
    assert closed.status_code == 200
    with pytest.raises(CollectorError, match="closed"):
        client.look()
    assert mark not in b"".join(files(tmp_path).values())
    assert [(charge.task, charge.note) for charge in ledger.charges] == [(survey.task, "")]
    with pytest.raises(AnsweredError):  # not drawn anew for free, nor paid without a word
        Client(survey, ledger).answer("yes", beside(survey))


# -- the ledger alone --------------------------------------------------------------------------------------------------

ONE = GRR(1.0, 2).guarantee


@pytest.mark.parametrize("where", [None, "ledger"])
def test_forgetting_one_answer_leaves_charges_and_others(tmp_path: Path, where: str | None) -> None:
    ledger = Ledger(None if where is None else tmp_path / where, lifetime=9.0, today=lambda: TODAY)
    for task, mark in (("a", "m1"), ("a", "m2"), ("b", "m1")):
        ledger.spend_once(task, ONE, mark, f"kept-{mark}")
    ledger.remember("person:a", "cohort")
    ledger.forget("a", "kept-m1")
    assert [charge.note for charge in ledger.charges] == ["", "m2:kept-m2", "m1:kept-m1", "cohort"]
    assert ledger.spend_once("a", ONE, "m2", "other") == "kept-m2"
    with pytest.raises(AnsweredError):
        ledger.spend_once("a", ONE, "m1", "again")
    ledger.forget("a")
    assert [charge.note for charge in ledger.charges] == ["", "", "m1:kept-m1"]
    assert (ledger.spent, len({charge.day for charge in ledger.charges})) == (3, 1)
    if where:
        assert Ledger(tmp_path / where).charges == ledger.charges  # the checksums are right


def test_a_link_stays_and_leads_to_the_file_without_the_answer(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    Ledger(tmp_path / "real" / "ledger", lifetime=9.0)
    (tmp_path / "ledger").symlink_to(tmp_path / "real" / "ledger")
    ledger = Ledger(tmp_path / "ledger")
    ledger.spend_once("a", ONE, "m1", "kept-m1")
    (tmp_path / "real" / ".ledger.0123abcd").write_text("left by a process that was killed")
    (tmp_path / "real" / ".ledger.notes").write_text("somebody's")
    ledger.forget("a", "kept-m1")
    assert (tmp_path / "ledger").is_symlink()
    assert sorted(files(tmp_path / "real")) == [".ledger.notes", "ledger"]
    assert b"m1" not in (tmp_path / "real" / "ledger").read_bytes()
    assert (tmp_path / "real" / "ledger").stat().st_mode & 0o777 == 0o600


def test_a_charge_that_waits_while_the_file_is_replaced_is_in_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(path, lifetime=9.0)
    held = open_locked(path)
    spender = threading.Thread(target=lambda: ledger.spend("a", ONE))
    spender.start()
    spender.join(0.2)  # by then it most likely waits for the lock: if not, the test shows less
    shutil.copy(path, tmp_path / "new")
    (tmp_path / "new").replace(path)
    os.close(held)
    spender.join()
    assert len(Ledger(path).charges) == 1


def test_a_full_disk_forgets_nothing_and_says_so(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=9.0)
    ledger.spend_once("a", ONE, "m1", "kept-m1")
    full = OSError(28, "No space left on device")
    with (
        mock.patch("veil.device.ledger_file.write_secret", side_effect=full),
        pytest.raises(LedgerError, match="No space"),
    ):
        ledger.forget("a", "kept-m1")
    assert ledger.recall("a", "m1") == "kept-m1"


@pytest.mark.parametrize("given", [1, 2])
def test_a_client_without_a_network_forgets_when_it_is_told(tmp_path: Path, given: int) -> None:
    survey = Survey(GRR(1.0, 4))
    client = Client(survey, Ledger(tmp_path / "ledger", lifetime=9.0))
    report = client.answer(1)
    assert client.answer(1) == report
    client.delivered(report)
    kept = (tmp_path / "ledger").read_bytes()
    assert written(report).encode() not in kept
    assert client.mark(1).encode() not in kept
    with pytest.raises(AnsweredError, match="changed"):
        client.answer(given)
    assert client.answer(given, changed=True) != report
    assert len(client.ledger.charges) == 2


def test_a_round_is_forgotten_and_still_answered_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=9.0)
    report = round_device(ledger).answer(asked(), 1)
    assert report is not None
    mark = Client(FIRST, ledger).mark(1)
    assert (tmp_path / "ledger").read_bytes().count(mark.encode()) == 2
    round_device(ledger).delivered(report)
    kept = (tmp_path / "ledger").read_bytes()
    assert mark.encode() not in kept
    assert base64.urlsafe_b64encode(report) not in kept
    assert any(charge.task.startswith(ANSWERED) for charge in ledger.charges)
    for number, value in ((0, 1), (0, 2), (1, 1)):
        with pytest.raises(AnsweredError, match="one of its rounds, once"):
            round_device(ledger).answer(asked(number), value)
    assert ledger.spent == 1


def test_caps_and_their_changes_are_shown_and_raised_from_a_shell(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger", lifetime=1.0, per_day=0.5, today=lambda: TODAY)
    shown = CliRunner().invoke(app, ["ledger", "raise", str(tmp_path / "ledger"), "--lifetime", "2"])
    assert shown.exit_code == 0, shown.output
    assert "created on 2027-01-15: eps 1 for a lifetime, 0.5 per day, delta 0" in shown.output
    assert "raised on" in shown.output
    refused = CliRunner().invoke(app, ["ledger", "raise", str(tmp_path / "ledger"), "--lifetime", "1"])
    assert (refused.exit_code, "expected more than 2" in refused.output) == (3, True)
    assert Ledger(tmp_path / "ledger").lifetime == 2
