"""A limit by address that keeps no address; settings that are misspelt; log lines that are whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from tests.patience import LIMIT
from tests.service.harness import FRAMED, SURVEY, framed, running

from veil.collector.edge.limits import AddressLimit, _packed
from veil.collector.monitoring.logs import Seldom
from veil.collector.monitoring.metrics import Metrics
from veil.collector.problems import noted
from veil.collector.settings import CollectorSettings, load_settings
from veil.errors import InputError, StoreError


def test_the_next_minute_begins_anew_and_has_another_key() -> None:
    now = SimpleNamespace(time=120.0)
    limit = AddressLimit(3, lambda: now.time)
    assert [limit.wait("192.0.2.7") for _ in range(5)] == [0, 0, 0, 60, 60]
    now.time = 179.5
    assert limit.wait("192.0.2.7") == 1
    key = bytes(limit._key)
    now.time = 180.0
    assert limit.wait("192.0.2.7") == 0
    assert limit._key != key
    assert b"192.0.2.7" not in bytes(limit._table)
    assert _packed("192.0.2.7") not in bytes(limit._table)


def test_the_last_minute_is_forgotten_even_if_nobody_sends() -> None:
    now = SimpleNamespace(time=60.0)
    limit = AddressLimit(3, lambda: now.time)
    table, key = limit._table, limit._key
    assert limit.wait("192.0.2.7") == 0
    first = bytes(key)
    assert sum(count > 0 for count in limit._counts) == 2
    now.time = 120.0
    limit.turn()
    assert not any(limit._counts)
    assert limit._table is table  # both are overwritten where they stand in memory
    assert limit._key is key
    assert key != first


def test_an_address_is_found_nowhere_in_the_table_without_the_key() -> None:
    one, other = (AddressLimit(5, lambda: 0.0) for _ in range(2))
    for limit in (one, other):
        for i in range(50):
            limit.wait(f"192.0.2.{i}")
    touched = [{i for i, count in enumerate(limit._counts) if count} for limit in (one, other)]
    assert len(touched[0]) > 90  # two cells for each of 50
    assert len(touched[0] & touched[1]) < 10  # another key, other places


def test_many_addresses_hardly_ever_share_a_limit() -> None:
    limit = AddressLimit(2, lambda: 0.0)
    refused = sum(limit.wait(f"10.{i >> 8}.{i & 255}.1") > 0 for i in range(5_000) for _ in range(2))
    assert refused < 100  # of 10,000; a table with one row would refuse several hundred


def test_what_counts_as_one_address() -> None:
    assert _packed("2001:db8:1:2:3::4") == _packed("2001:db8:1:2::9") != _packed("2001:db8:1:3::9")
    assert _packed("::ffff:192.0.2.1") == _packed("192.0.2.1") != _packed("192.0.2.2")
    assert _packed("unix") == b"unix"


def test_too_many_requests_from_an_address_are_told_to_wait(tmp_path: Path) -> None:
    limits = {"VEIL_REQUESTS_PER_MINUTE": "20", "VEIL_ADDRESS_HEADER": "X-Real-IP"}
    with running(tmp_path / "data", **limits) as collector:
        path = f"{collector.url}{collector.open_survey()}/reports"

        def send(address: str) -> httpx.Response:
            headers = {**FRAMED, "X-Real-IP": address}
            return httpx.post(path, content=framed(SURVEY, [1]), headers=headers, timeout=LIMIT)

        def refused() -> httpx.Response | None:  # a minute may end meanwhile
            answers = [send("203.0.113.9") for _ in range(21)]
            return next((answer for answer in answers if answer.status_code == 429), None)

        answer = refused() or refused()
        assert answer is not None
        assert answer.json()["error"]["code"] == "too-many-requests"
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert answer.headers["access-control-allow-origin"] == "*"  # the page can read it
        assert send("203.0.113.10").status_code == 200
        for _ in range(25):
            assert httpx.get(f"{collector.url}/healthz", headers={"X-Real-IP": "203.0.113.9"}).status_code == 200
        for file in collector.folder.iterdir():
            assert b"203.0.113" not in file.read_bytes(), file


def test_single_posts_are_limited_by_default_and_batches_by_token(tmp_path: Path) -> None:
    default = {"VEIL_REQUESTS_PER_MINUTE": "120", "VEIL_ADDRESS_HEADER": "X-Real-IP"}
    assert CollectorSettings().requests_per_minute == 120
    with running(tmp_path / "data", **default) as collector, httpx.Client(timeout=LIMIT) as client:
        task = collector.open_survey()
        path = f"{collector.url}{task}/reports"
        wrong, right = collector.token("answers:read"), collector.token("reports:write")

        def send(address: str, count: int, **headers: str) -> httpx.Response:
            given = {**FRAMED, "X-Real-IP": address, **headers}
            return client.post(path, content=framed(SURVEY, [1] * count), headers=given)

        def refused(address: str) -> bool:  # a minute may end meanwhile
            return any(send(address, 1).status_code == 429 for _ in range(2 * 121))

        assert refused("203.0.113.1")
        assert client.get(f"{collector.url}{task}", headers={"X-Real-IP": "203.0.113.1"}).status_code == 200
        assert send("203.0.113.2", 120).status_code == 200  # all reports of a batch count
        assert any(send("203.0.113.2", 60).status_code == 429 for _ in range(5))
        answer = send("203.0.113.3", 121)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "no-token")
        assert "reports:write" in answer.json()["error"]["expected"]
        for _ in range(5):
            assert send("203.0.113.4", 500, **right).status_code == 200
        assert send("203.0.113.5", 1, **wrong).status_code == 403
        assert any(send("203.0.113.5", 1, **wrong).status_code == 429 for _ in range(2 * 121))
        assert '"proxy-counts-as-one-address"' not in collector.log


@pytest.mark.parametrize("limit", [{"VEIL_LIMITS_AT_PROXY": "true"}, {"VEIL_REQUESTS_PER_MINUTE": "0"}, {}])
def test_a_limit_at_the_proxy_replaces_the_collectors(limit: dict[str, str], tmp_path: Path) -> None:
    with running(tmp_path / "data", **{"VEIL_REQUESTS_PER_MINUTE": "120", **limit}) as collector:
        path = f"{collector.url}{collector.open_survey()}/reports"
        headers = {**FRAMED, "X-Forwarded-For": "203.0.113.1"}
        with httpx.Client(timeout=LIMIT) as client:
            answers = [client.post(path, content=framed(SURVEY, [1]), headers=headers) for _ in range(2 * 121)]
        assert (429 in {answer.status_code for answer in answers}) is not bool(limit)
        assert ('"proxy-counts-as-one-address"' in collector.log) is not bool(limit)


@pytest.mark.parametrize("wrong", ["-1", "65535", "many"])
def test_the_largest_limit_is_checked_at_the_start(wrong: str) -> None:
    with pytest.raises(InputError, match=r"requests_per_minute|REQUESTS_PER_MINUTE"):
        load_settings(None, {"VEIL_REQUESTS_PER_MINUTE": wrong})
    assert load_settings(None, {"VEIL_REQUESTS_PER_MINUTE": "65534"}).requests_per_minute == 65_534


@pytest.mark.parametrize("text", ["port = ", "port = " + "9" * 5_000, "port = " + "[" * 5_000])
def test_settings_that_are_no_toml_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "veil.toml").write_text(text)
    with pytest.raises(InputError, match="are not TOML"):
        load_settings(tmp_path / "veil.toml", {})


def test_a_misspelt_variable_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    for wrong, right in (("VEIL_PROT", "VEIL_PORT"), ("VEIL_DATABASE_ULR", "VEIL_DATABASE_URL")):
        with pytest.raises(InputError, match=f"did you mean {right}"):
            load_settings(None, {wrong: "1"})
    with pytest.raises(InputError, match=r"expected a variable \(VEIL_HOST"):
        load_settings(None, {"VEIL_SOMETHING_ELSE": "1"})
    assert load_settings(None, {"VEIL_DATA": "x", "VEIL_THREADS": "2", "VEIL_TEST_TASK": "x", "HOME": "/"}).port == 8321
    file = tmp_path / "veil.toml"
    file.write_text("hots = '0.0.0.0'")
    with pytest.raises(InputError, match="did you mean host"):
        load_settings(file, {})


def test_the_variables_that_others_read_are_known() -> None:
    sources = (Path(__file__).parents[2] / "src").rglob("*.py")
    named = {
        word for file in sources for word in file.read_text().replace('"', " ").split() if word.startswith("VEIL_")
    }
    plain = {name for name in named if name.replace("_", "").isalpha() and name not in ("VEIL_", "VEIL_NAME")}
    assert "VEIL_THREADS" in plain
    load_settings(None, dict.fromkeys(plain - {"VEIL_SETTINGS"}, "1"))


def test_a_database_that_is_down_writes_no_line_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    now, lines = SimpleNamespace(time=0.0), list[tuple[str, int]]()
    monkeypatch.setattr("veil.collector.problems._log", Seldom(lambda: now.time))
    monkeypatch.setattr(
        "veil.collector.monitoring.logs.log", lambda level, event, problem, times: lines.append((event, times))
    )
    metrics = Metrics()
    for now.time in (0.0, 5.0, 10.0, 12.0):
        for _ in range(50):
            assert noted(metrics, StoreError("down")).status == 503
    assert lines == [("unavailable", 1), ("unavailable", 100)]
    assert metrics.value("veil_refused_total", code="unavailable") == 200
    noted(metrics, RuntimeError("a bug"))  # another kind has a line of its own
    assert lines[2:] == [("internal", 1)]


def test_lines_of_several_processes_and_threads_never_mix(tmp_path: Path) -> None:
    code = """
import sys, threading
from veil.collector.monitoring.logs import log, set_up
set_up("info")
def write():
    for i in range(300):
        log("info", "event", filler="x" * 900, process=int(sys.argv[1]), number=i)
threads = [threading.Thread(target=write) for _ in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
"""
    reader, writer = os.pipe()
    processes = [subprocess.Popen([sys.executable, "-c", code, str(i)], stderr=writer) for i in range(3)]
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        lines = pipe.read().splitlines()
    for process in processes:
        assert process.wait(LIMIT) == 0
    found = [json.loads(line) for line in lines]
    assert len(found) == 3 * 4 * 300
    assert {(line["process"], line["number"]) for line in found} == {(w, i) for w in range(3) for i in range(300)}
