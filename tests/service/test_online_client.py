"""`veil.Client.open` and `veil answer` against a real collector: delivered once, whatever happens on the way."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
import os
import ssl
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID
from tests.service.harness import Collector, running
from tests.service.middleman import LOST, Middleman, between, shortened
from tests.support.commands import CliRunner, Result

from veil import GRR, OLH, Categories, Client, Ledger, Public, Rappor, Record, Survey
from veil.cli.device import held_value
from veil.cli.main import app
from veil.collector.keys_and_tokens import load_key, public_bytes
from veil.device.online import Clock, OnlineClient, open_client
from veil.device.outbox import Outbox
from veil.device.web import read_address
from veil.domain import Domain, Integers, Interval, Items, Text
from veil.errors import BudgetError, CollectorError, DomainError, LedgerError, MismatchError, ParameterError, WireError

DRINKS = Survey(OLH(1.0, Categories(["tea", "coffee", "water"])))
DAILY = Survey(Rappor(1.0, Categories(["tea", "coffee", "water"]), instant=(0.25, 0.75)), public=[Public("week")])
FOREIGN = base64.urlsafe_b64encode(public_bytes(Ed25519PrivateKey.generate())).decode()


@dataclass
class Waiting:
    """A clock that passes only while a device waits; it remembers how long that was."""

    time: float = 1_800_000_000.0
    slept: list[float] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self.sleep, uniform=lambda: 0.5)

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.time += seconds


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("online") / "data") as one:
        yield one


@pytest.fixture
def fresh(collector: Collector) -> Survey:
    """A survey that nobody else of this file answers: each has a public column of its own."""
    survey = Survey(DRINKS.ask, public=[Public(f"c{os.urandom(4).hex()}")])
    collector.open_survey(survey)
    return survey


def key_of(collector: Collector) -> str:
    return base64.urlsafe_b64encode(public_bytes(load_key(collector.settings.key_path))).rstrip(b"=").decode()


def beside(survey: Survey) -> dict[str, list[int]]:
    return {column.name: [7] for column in survey.public}


def ledger_in(folder: Path, lifetime: float = 2.0) -> Ledger:
    return Ledger(folder / "ledger", lifetime=lifetime)


def test_an_answer_is_delivered_and_the_same_again_counts_once(
    collector: Collector, fresh: Survey, tmp_path: Path
) -> None:
    client = Client.open(collector.url, key_of(collector), fresh.task, ledger_in(tmp_path))
    assert client.survey.task == fresh.task
    for _ in range(2):
        assert client.answer("tea", beside(fresh)).state == "delivered"
    assert client.waiting == 0
    assert len(collector.stored_ids(fresh)) == 1
    assert len(client.ledger.charges) == 1
    assert client.answer("coffee", beside(fresh), changed=True).state == "delivered"
    with pytest.raises(BudgetError):
        client.answer("water", beside(fresh), changed=True)
    assert len(collector.stored_ids(fresh)) == 2
    assert client.outbox.parcels() == []  # nothing is left of what was refused by the budget


def test_a_collector_that_is_down_gets_the_report_later(tmp_path: Path) -> None:
    with running(tmp_path / "data") as collector:
        collector.open_survey(DRINKS)
        key = key_of(collector)
        Client.open(collector.url, key, DRINKS.task, ledger_in(tmp_path))
        collector.kill()
        with pytest.raises(CollectorError, match="no copy"):
            Client.open(collector.url, key, DRINKS.task, Ledger(lifetime=1.0))
        client = Client.open(collector.url, key, DRINKS.task, ledger_in(tmp_path))  # by the copy that it has
        assert client.answer("tea", patience=0).state == "queued"
        assert client.waiting == 1
        for name in ("ledger", "ledger.outbox", "ledger.outbox.lock"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert b"tea" not in (tmp_path / "ledger.outbox").read_bytes() + (tmp_path / "ledger").read_bytes()
        collector.start()
        later = Client.open(collector.url, key, DRINKS.task, ledger_in(tmp_path))
        assert later.deliver() == 0
        assert later.answer("tea").state == "delivered"
        assert len(collector.stored_ids(DRINKS)) == 1


def test_503_is_tried_again_at_growing_intervals_with_the_same_bytes(
    collector: Collector, fresh: Survey, middleman: Middleman
) -> None:
    waiting = Waiting()
    client = open_client(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0), waiting.clock)
    middleman.on_post[:] = [503, 500, 408, 502]
    assert client.answer("tea", beside(fresh), patience=60).state == "delivered"
    assert waiting.slept == [1, 2, 4, 8]
    assert len(middleman.posts) == 5
    assert len(set(middleman.posts)) == 1
    assert len(collector.stored_ids(fresh)) == 1


def test_patience_ends_and_the_intervals_stay_long(collector: Collector, fresh: Survey, middleman: Middleman) -> None:
    waiting = Waiting()
    client = open_client(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0), waiting.clock)
    middleman.on_post[:] = [503] * 15
    assert client.answer("tea", beside(fresh), patience=2_000).state == "queued"
    assert waiting.slept == [1, 2, 4, 8, 16, 32, 64, 128, 256, *[300] * 4]
    middleman.on_post.clear()
    assert client.deliver() == 0
    assert len(set(middleman.posts)) == 1


def test_patience_ends_also_where_the_clock_is_set_back(
    collector: Collector, fresh: Survey, middleman: Middleman
) -> None:
    waiting = Waiting()

    def set_back(seconds: float) -> None:
        waiting.sleep(seconds)
        waiting.time -= 3_600 if len(waiting.slept) == 1 else 0

    clock = Clock(now=lambda: waiting.time, sleep=set_back, uniform=lambda: 0.5)
    client = open_client(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0), clock)
    middleman.on_post[:] = [503, 503]
    assert client.answer("tea", beside(fresh), patience=30).state == "queued"
    assert waiting.slept == [1]
    assert client.deliver() == 1  # still refused, and not for long
    assert client.deliver() == 0
    assert len(set(middleman.posts)) == 1


def test_jitter_spreads_devices_that_lost_the_same_collector(
    collector: Collector, fresh: Survey, middleman: Middleman
) -> None:
    waits = set()
    for uniform in (0.0, 0.25, 0.999):
        waiting = Waiting()
        clock = Clock(now=lambda waiting=waiting: waiting.time, sleep=waiting.sleep, uniform=lambda u=uniform: u)  # type: ignore[misc]
        client = open_client(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0), clock)
        middleman.on_post[:] = [503]
        assert client.answer("tea", beside(fresh), patience=5).state == "delivered"
        waits |= set(waiting.slept)
    assert waits == {0.5, 0.75, 1.499}
    assert 0 <= Clock().uniform() < 1


@pytest.mark.parametrize("written", ["7", "Fri, 15 Jan 2027 08:00:07 GMT"])
def test_429_is_not_tried_again_before_its_time(
    collector: Collector, fresh: Survey, middleman: Middleman, written: str
) -> None:
    waiting = Waiting(dt.datetime(2027, 1, 15, 8, tzinfo=dt.UTC).timestamp())
    client = open_client(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0), waiting.clock)
    middleman.on_post[:] = [(429, {"Retry-After": written})]
    assert client.answer("tea", beside(fresh), patience=5).state == "queued"
    assert waiting.slept == []  # it would not be welcome within its patience
    assert client.deliver() == 1  # nor is it now, however eager
    assert len(middleman.posts) == 1
    assert client.deliver(patience=10) == 0
    assert waiting.slept == [7]
    assert len(collector.stored_ids(fresh)) == 1


def test_a_connection_lost_after_the_commit_counts_once(
    collector: Collector, fresh: Survey, middleman: Middleman
) -> None:
    waiting = Waiting()
    client = open_client(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0), waiting.clock)
    middleman.on_post[:] = [LOST, LOST]
    assert client.answer("tea", beside(fresh), patience=0).state == "queued"
    assert len(collector.stored_ids(fresh)) == 1  # it has arrived, and nobody knows
    assert client.answer("tea", beside(fresh), patience=60).state == "delivered"
    assert len(middleman.posts) == 3
    assert len(set(middleman.posts)) == 1
    assert len(collector.stored_ids(fresh)) == 1


def test_rappor_counts_once_per_occasion(collector: Collector, middleman: Middleman, tmp_path: Path) -> None:
    collector.open_survey(DAILY)
    waiting = Waiting()
    client = open_client(middleman.url, key_of(collector), DAILY.task, ledger_in(tmp_path), waiting.clock)
    for week in (46, 47):
        middleman.on_post[:] = [LOST, 503]
        for _ in range(3):  # whoever is not sure answers again
            assert client.answer("tea", {"week": [week]}, occasion=f"{week}", patience=60).state == "delivered"
    assert len(collector.stored_ids(DAILY)) == 2
    assert len(set(middleman.posts)) == 2
    assert sum(charge.cost > 0 for charge in client.ledger.charges) == 1


def test_a_wrong_key_is_refused_before_anything_is_paid(
    collector: Collector, fresh: Survey, middleman: Middleman
) -> None:
    ledger = Ledger(lifetime=1.0)
    with pytest.raises(WireError, match="key that this device knows"):
        Client.open(middleman.url, FOREIGN, fresh.task, ledger)
    assert (ledger.charges, middleman.posts) == ([], [])
    keys = [FOREIGN, key_of(collector)]  # while keys change
    assert Client.open(middleman.url, keys, fresh.task, ledger).answer("tea", beside(fresh)).state == "delivered"
    for wrong in ("", "tea", b"short", [], None, 7, [key_of(collector), "x"]):
        with pytest.raises(ParameterError, match="public key"):
            Client.open(collector.url, wrong, fresh.task, ledger)  # type: ignore[arg-type]


def test_an_altered_survey_and_another_survey_are_refused(
    collector: Collector, fresh: Survey, middleman: Middleman
) -> None:
    collector.open_survey(DRINKS)
    middleman.names = {fresh.task: DRINKS.task}  # signed, but not what was asked for
    with pytest.raises(MismatchError, match="another survey"):
        Client.open(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0))
    middleman.alter = shortened
    with pytest.raises(WireError, match="not signed"):
        Client.open(middleman.url, key_of(collector), DRINKS.task, Ledger(lifetime=1.0))


def test_a_promise_beyond_the_budget_is_refused_before_anything_is_asked(collector: Collector, fresh: Survey) -> None:
    for budget in (Ledger(lifetime=0.5), Ledger(lifetime=5.0, per_day=0.5)):
        with pytest.raises(BudgetError, match="would exceed"):
            Client.open(collector.url, key_of(collector), fresh.task, budget)
        assert budget.charges == []
    spent = Ledger(lifetime=1.0)
    spent.spend("another", GRR(1.0, 2).guarantee)
    client = Client.open(collector.url, key_of(collector), fresh.task, spent)  # what it gave before, it may send again
    with pytest.raises(BudgetError):
        client.answer("tea", beside(fresh))
    assert collector.stored_ids(fresh) == []


def test_what_the_collector_will_never_take_is_not_sent_again(
    collector: Collector, fresh: Survey, middleman: Middleman
) -> None:
    client = Client.open(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0))
    middleman.on_post[:] = [422]
    for _ in range(2):
        receipt = client.answer("tea", beside(fresh), patience=60)
        assert receipt.state == "refused"
        assert receipt.reason is not None
        assert receipt.reason.status == 422
    assert len(middleman.posts) == 1
    assert client.waiting == 0


def test_a_closed_survey_is_not_asked_any_more(collector: Collector, fresh: Survey, tmp_path: Path) -> None:
    waiting = Waiting()
    client = open_client(collector.url, key_of(collector), fresh.task, ledger_in(tmp_path), waiting.clock)
    closed = httpx.post(f"{collector.url}/v1/surveys/{fresh.task}/close", headers=collector.token())
    assert closed.status_code == 200
    waiting.time += 301  # it looks again before an answer is paid for
    with pytest.raises(CollectorError, match="closed"):
        client.answer("tea", beside(fresh))
    with pytest.raises(CollectorError, match="closed"):
        Client.open(collector.url, key_of(collector), fresh.task, ledger_in(tmp_path))
    assert client.ledger.charges == []
    with pytest.raises(CollectorError, match="404"):
        Client.open(collector.url, key_of(collector), "0" * 64, ledger_in(tmp_path))


def test_what_is_neither_a_task_id_nor_a_name_is_asked_nowhere(collector: Collector, middleman: Middleman) -> None:
    for wrong in ("", "../admin", "a b", "a/b", "a.b", "Drinks", "drinks\n", "x" * 64, "0" * 65, None):
        with pytest.raises(ParameterError, match="task id"):
            Client.open(middleman.url, key_of(collector), wrong, Ledger(lifetime=1.0))  # type: ignore[arg-type]
    assert middleman.headers == []


KILLED = """
import os, sys
from veil import Client, Ledger
url, key, task, path, when = sys.argv[1:]
client = Client.open(url, key, task, Ledger(path, lifetime=2.0))
pay = Ledger.spend_once
def killed(*given, **more):
    if when == "after":
        pay(*given, **more)
    os._exit(9)
Ledger.spend_once = killed
client.answer("tea", {column.name: [7] for column in client.survey.public})
"""


@pytest.mark.parametrize(("when", "arrives"), [("before", 0), ("after", 1)])
def test_a_process_killed_while_it_pays(
    collector: Collector, fresh: Survey, tmp_path: Path, when: str, arrives: int
) -> None:
    """Paid: the report is sent by whoever comes next. Not paid: nothing is ever sent."""
    key, path = key_of(collector), tmp_path / "ledger"
    script = [sys.executable, "-c", KILLED, collector.url, key, fresh.task, str(path), when]
    assert subprocess.run(script, check=False).returncode == 9
    assert len(Outbox(tmp_path / "ledger.outbox").parcels()) == 1
    client = Client.open(collector.url, key, fresh.task, ledger_in(tmp_path))
    assert client.deliver() == 0
    assert len(collector.stored_ids(fresh)) == arrives == len(client.ledger.charges)
    assert len(client.outbox.parcels()) == 1 - arrives  # it might be somebody's who is about to pay
    tomorrow = Clock(now=lambda: time.time() + 2 * 86_400)
    assert open_client(collector.url, key, fresh.task, ledger_in(tmp_path), tomorrow).deliver() == 0
    assert client.outbox.parcels() == []
    assert len(collector.stored_ids(fresh)) == arrives


def test_many_threads_deliver_each_report_once(collector: Collector, fresh: Survey, tmp_path: Path) -> None:
    def answer(value: str) -> str:
        client = Client.open(collector.url, key_of(collector), fresh.task, ledger_in(tmp_path / value, 100.0))
        return client.answer(value, beside(fresh)).state

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(answer, ["tea", "coffee", "water"] * 4)) == {"delivered"}
    assert len(collector.stored_ids(fresh)) == 3
    assert [len(ledger_in(tmp_path / value, 100.0).charges) for value in ("tea", "coffee", "water")] == [1, 1, 1]


def test_a_value_is_in_no_error_and_no_file(collector: Collector, middleman: Middleman, tmp_path: Path) -> None:
    survey = Survey(OLH(1.0, Text(24)))
    collector.open_survey(survey)
    ledger = ledger_in(tmp_path, 1.0)
    client = Client.open(middleman.url, key_of(collector), survey.task, ledger)
    secrets = ["my-secret-illness", "another-secret" * 9, 123456789.5]
    client.answer(secrets[0], patience=0)
    for value in secrets[1:]:  # outside of the domain, or beyond the budget
        with pytest.raises((DomainError, BudgetError)) as caught:
            client.answer(value, changed=True)
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(client.outbox.parcels())
        assert not any(str(secret) in shown for secret in secrets)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert not any(str(secret).encode() in kept for secret in secrets)
    assert {header for seen in middleman.headers for header in seen} <= {
        *("Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "User-Agent")
    }
    assert {seen["User-Agent"] for seen in middleman.headers} == {"veil"}


@pytest.mark.parametrize(
    "address",
    [
        "http://collector.example",
        "http://10.0.0.1:8321",
        "ftp://127.0.0.1",
        "https://me:secret@collector.example",
        "https://collector.example/?a=1",
        "https://collector.example/#key",
        "https://",
        "https://host:port",
        "collector.example",
        "file:///etc/passwd",
        "https://a..b",
        "https://.",
        f"https://{'a' * 70}.example",
        "https://collector.example/größe",
        None,
    ],
)
def test_addresses_that_would_not_protect_a_report_are_refused(address: Any) -> None:
    with pytest.raises(ParameterError, match="address") as caught:
        read_address(address)
    assert "secret" not in str(caught.value)
    for good in ("http://localhost:1", "http://127.0.0.9", "http://[::1]:81", "https://collector.example:444/below"):
        assert read_address(good + "/") == good


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("HTTPS://Collector.Example/", "https://collector.example"),
        ("https://collector.example:443", "https://collector.example"),
        ("https://collector.example:80", "https://collector.example:80"),
        ("HTTP://LOCALHOST:80/Below//", "http://localhost/Below"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://Bücher.example", "https://xn--bcher-kva.example"),
    ],
)
def test_an_address_has_one_spelling(written: str, address: str) -> None:
    assert read_address(written) == read_address(address) == address


def test_a_report_waits_for_its_collector_however_that_is_spelled(
    collector: Collector, fresh: Survey, middleman: Middleman, tmp_path: Path
) -> None:
    key, spelled = key_of(collector), middleman.url.replace("http://127.0.0.1", "HTTP://127.0.0.1")
    client = Client.open(f"{spelled}/", key, fresh.task, ledger_in(tmp_path))
    middleman.on_post[:] = [503]
    assert client.answer("tea", beside(fresh), patience=0).state == "queued"
    again = Client.open(middleman.url, key, fresh.task, ledger_in(tmp_path))
    assert again.waiting == 1
    middleman.on_post[:] = [(429, {"Retry-After": "80000"})]
    assert again.deliver() == 1
    moved = Client.open(collector.url, key, fresh.task, ledger_in(tmp_path))  # the same collector at another address
    assert moved.waiting == 0
    assert moved.answer("tea", beside(fresh), patience=0).state == "delivered"
    assert again.waiting == 0
    assert len(collector.stored_ids(fresh)) == 1


def test_a_survey_that_is_not_open_yet_says_when_it_opens(collector: Collector, fresh: Survey, tmp_path: Path) -> None:
    early = Survey(DRINKS.ask, public=[Public(f"{fresh.public[0].name}-early")])
    path = collector.open_survey(early, opens="2998-01-01T00:00:00Z")
    options = ("--key", key_of(collector), "--lifetime", "1", "--value", "tea")
    refused = shell(tmp_path, f"{collector.url}{path}", *options)
    assert (refused.exit_code, "open yet: it takes answers from 2998-01-01T00:00:00Z" in refused.stderr) == (7, True)


def test_a_path_is_no_ledger(collector: Collector, fresh: Survey) -> None:
    for wrong in ("ledger", Path("ledger"), None):
        with pytest.raises(ParameterError, match=r"as veil.Ledger\(.ledger., lifetime"):
            Client.open(collector.url, key_of(collector), fresh.task, wrong)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="expected a ledger"):
            Client(fresh, wrong)  # type: ignore[arg-type]


def test_a_redirect_is_not_followed(collector: Collector, fresh: Survey, middleman: Middleman) -> None:
    client = Client.open(middleman.url, key_of(collector), fresh.task, Ledger(lifetime=1.0))
    with between(collector.port) as elsewhere:
        to = {"Location": f"{elsewhere.url}/v1/surveys/{fresh.task}/reports"}
        middleman.on_post[:] = [(307, to), (302, to)]
        for _ in range(2):
            assert client.answer("tea", beside(fresh), patience=0).state == "queued"
        assert elsewhere.headers == []


def test_only_a_certificate_that_can_be_verified_is_talked_to(
    collector: Collector, fresh: Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, secret = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, secret)
    with between(collector.port, context) as guarded:
        with pytest.raises(CollectorError, match="certificate"):
            Client.open(guarded.url, key_of(collector), fresh.task, ledger_in(tmp_path))
        assert guarded.headers == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # what the system trusts
        client = Client.open(guarded.url, key_of(collector), fresh.task, ledger_in(tmp_path))
        assert client.answer("tea", beside(fresh)).state == "delivered"
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(CollectorError, match="certificate"):  # also where there is a copy of the survey
            Client.open(guarded.url, key_of(collector), fresh.task, ledger_in(tmp_path))


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine that nobody trusts, and its key."""
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "secret.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pem, format_ = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files[1].write_bytes(secret.private_bytes(pem, format_, plain))
    return files


def test_a_damaged_outbox_is_refused_and_nothing_is_sent(collector: Collector, fresh: Survey, tmp_path: Path) -> None:
    for text in ("", "{}", "[]", '{"kind": "veil-outbox", "version": 1, "surveys": {}, "parcels": [{}]}'):
        (tmp_path / "ledger.outbox").write_text(text)
        with pytest.raises(LedgerError, match="outbox is damaged"):
            Client.open(collector.url, key_of(collector), fresh.task, ledger_in(tmp_path)).deliver()
    assert collector.stored_ids(fresh) == []


# -- from a shell ------------------------------------------------------------------------------------------------------


def shell(folder: Path, *arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, ["answer", *arguments], input=given, env={"XDG_STATE_HOME": str(folder)})


def test_an_answer_from_a_shell(collector: Collector, tmp_path: Path) -> None:
    survey = Survey(GRR(0.5, Categories(["tea", "coffee", "water"])), public=[Public("region")])
    url = f"{collector.url}{collector.open_survey(survey)}"
    options = (url, "--key", key_of(collector), "--lifetime", "0.5", "--public", "region=7")
    first = shell(tmp_path, *options, "--value", "-", "--json", given="tea\n")
    assert first.exit_code == 0, first.stderr
    wanted = {"state": "delivered", "task": survey.task, "wave": None, "cost": 0.5, "left": 0.0, "waiting": 0}
    assert json.loads(first.stdout) == wanted
    again = shell(tmp_path, *options, "--value", "tea")
    assert (again.exit_code, again.stdout.splitlines()[0].split(":")[0]) == (0, "delivered")
    assert len(collector.stored_ids(survey)) == 1
    for name in ("ledger", "ledger.outbox"):
        assert stat.S_IMODE((tmp_path / "veil" / name).stat().st_mode) == 0o600
    assert "an earlier answer" in again.stdout
    changed = shell(tmp_path, *options, "--value", "water", "--changed")
    assert (changed.exit_code, changed.stdout) == (6, "")
    wrong = shell(tmp_path, *options, "--value", "-", given="secret-drink")
    assert wrong.exit_code == 3
    assert "secret-drink" not in wrong.stderr + wrong.stdout
    assert shell(tmp_path, *options[:2], FOREIGN, *options[3:], "--value", "tea").exit_code == 5
    gone = shell(tmp_path, url.replace(str(collector.port), "1"), *options[1:], "--value", "tea", "--patience", "0")
    assert gone.exit_code == 7
    assert "cannot be reached" in gone.stderr
    assert shell(tmp_path, collector.url, *options[1:], "--value", "tea").exit_code == 3


@pytest.mark.parametrize(
    ("domain", "text", "held"),
    [
        (Categories(["tea", "7"]), "7", "7"),
        (Categories([5, 7]), "7", 7),
        (Categories.range(10), "7", 7),
        (Categories(["tea"], missing="category"), "", None),
        (Integers(0, 9), "7", 7),
        (Interval(0, 1), "0.25", 0.25),
        (Text(20), "7 ", "7 "),
        (Items(["tea", "milk"]), "tea; milk;", ["tea", "milk"]),
        (Items(10), "1;2", [1, 2]),
        (Record.of(age=100, sex=["f", "m"]), '{"age": 30, "sex": "f"}', {"age": 30, "sex": "f"}),
    ],
)
def test_a_value_from_text_is_what_the_survey_asks_for(domain: Domain, text: str, held: Any) -> None:
    assert held_value(domain, text) == held
    domain.encode([held])


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (Integers(0, 9), "soon"),
        (Interval(0, 1), "some"),
        (Record.of(age=9), "31"),
        (Record.of(age=9), "{]"),
        (Items(9), "sooner"),
    ],
)
def test_a_value_from_text_that_is_none_is_refused_without_showing_it(domain: Domain, text: str) -> None:
    with pytest.raises(DomainError, match="expected") as caught:
        domain.encode([held_value(domain, text)])
    assert text not in str(caught.value)


def test_what_open_returns_has_no_other_names() -> None:
    public = {name for name in dir(OnlineClient) if not name.startswith("_")}
    assert public == {"answer", "deliver", "look", "step", "statements", "survey", "text", "waiting", "wave"}
