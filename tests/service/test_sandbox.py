"""The collector as it is shipped: a unit that may write nothing but its folder, without a home. Answers work too."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from tests.patience import until
from tests.service import sandbox
from tests.service.harness import FRAMED, SURVEY, Collector, framed, values
from tests.support.commands import CliRunner

from veil import Integers, Record
from veil.cli.main import app
from veil.collector import serve
from veil.collector.monitoring.health import Health
from veil.collector.monitoring.metrics import Metrics
from veil.collector.settings import CollectorSettings
from veil.collector.store.sqlite import SqliteStore
from veil.errors import ServiceError
from veil.sql import Category, Table

TABLE = Table(4.0, Record.of(age=Integers(18, 99)), (Category("os", ("ios", "web")),))
PAGE = sandbox.ROOT / "docs" / "collector" / "install.md"


def block(kind: str) -> str:
    """The first block of a kind on the operator's page."""
    found = re.search(rf"^```{kind}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_page_shows_the_unit_that_is_shipped() -> None:
    assert block("ini") == sandbox.UNIT.read_text()


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the shipped unit was NOT verified")
    unit = tmp_path / "veil.service"
    unit.write_text(sandbox.UNIT.read_text().replace("/opt/veil/bin/veil", "/bin/true"))  # it must be there
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "veil.service" in line]
    assert ours == []
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSytem=strict"))
    rival = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ProtectSytem" in rival.stdout + rival.stderr


@contextlib.contextmanager
def shipped(tmp_path: Path) -> Iterator[tuple[Collector, subprocess.Popen[bytes]]]:
    """A collector that was started by the shipped unit, with a survey that is open."""
    sandbox.check_possible()
    collector = Collector(tmp_path / "data")
    collector.folder.mkdir(mode=0o700)
    collector.open_survey()
    collector.open_survey(TABLE, minimum=20)
    for one in (collector.folder, *collector.folder.iterdir()):
        os.chown(one, sandbox.NOBODY, sandbox.NOBODY)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "veil.toml").write_text(block("toml"))
    command = sandbox.command(tmp_path / "scratch", collector.folder, tmp_path / "veil.toml")
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    environment |= {"HOME": "/nonexistent", "VEIL_PORT": "0"}
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            collector.port = until(lambda: _port(tmp_path / "log", process), (tmp_path / "log").read_text)
            until(collector._answers, (tmp_path / "log").read_text)
            yield collector, process
        finally:
            process.kill()


def test_kernels_are_compiled_before_the_collector_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    health = SimpleNamespace(prepare_answers=lambda: events.append("prepared"))
    service = SimpleNamespace(health=health, metrics=Metrics())
    listener = SimpleNamespace(listen=lambda backlog: events.append("listens"), getsockname=lambda: ("", 0))
    monkeypatch.setattr(serve, "_service", lambda *given, **options: service)
    monkeypatch.setattr(serve, "App", lambda service: SimpleNamespace(service=service))
    monkeypatch.setattr(serve, "Ingest", lambda app: None)
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: events.append("serves"))
    serve._serve(CollectorSettings(folder=str(tmp_path)), cast("Any", listener), files=0)
    assert events == ["prepared", "listens", "serves"]


def test_warm_compiles_and_touches_neither_database_nor_key(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["warm", "--folder", str(tmp_path / "data"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["seconds"] >= 0
    assert not (tmp_path / "data" / "collector.sqlite3").exists()
    assert not (tmp_path / "data" / "signing.key").exists()


def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    assert process.poll() is None, log.read_text()
    lines = [json.loads(line) for line in log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    return next((line["port"] for line in lines if line["event"] == "listening"), 0)


def test_the_shipped_unit_takes_reports_and_answers(tmp_path: Path) -> None:
    with shipped(tmp_path) as (collector, process), httpx.Client(base_url=collector.url, timeout=300) as client:
        mounts = Path(f"/proc/{process.pid}/mounts").read_text()
        assert re.search(r" / \S+ ro,", mounts), mounts  # it runs where we think that it does
        status = Path(f"/proc/{process.pid}/status").read_text()
        filtered = sandbox.allowed_calls(sandbox.shipped().lines) is not None
        assert ("Seccomp:\t2\n" in status) is filtered
        assert list((collector.folder / "kernels").rglob("*.nbc"))  # compiled before it listened
        sent = client.post(f"/v1/surveys/{SURVEY.task}/reports", content=framed(SURVEY, values(60)), headers=FRAMED)
        assert sent.status_code == 200, sent.text
        ready = client.get("/readyz")
        assert ready.status_code == 200, ready.text
        answer = client.get(f"/v1/surveys/{SURVEY.task}/answer", headers=collector.token("answers:read"))
        assert answer.status_code == 200, answer.text + (tmp_path / "log").read_text()
        assert answer.json()["people"] == 60
        public = TABLE.encode_public({"os": ["ios", "web"] * 30})
        rows = framed(TABLE.survey, [{"age": 30 + i} for i in range(60)], public=public)
        path = f"/v1/surveys/{TABLE.survey.task}"
        assert client.post(f"{path}/reports", content=rows, headers=FRAMED).status_code == 200
        query = {"set": "query=SELECT os, COUNT(*) AS n FROM people GROUP BY os"}
        answer = client.get(f"{path}/answer", params=query, headers=collector.token("answers:read"))
        assert answer.status_code == 200, answer.text + (tmp_path / "log").read_text()
        assert [row["n"] for row in answer.json()["rows"]] == [30, 30]
        kept = list((collector.folder / "kernels").rglob("*.nbc"))
        assert kept  # the next start need not compile
        assert {file.stat().st_uid for file in kept} == {sandbox.NOBODY}
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        assert peak is not None
        assert int(peak[1]) < 1 << 20  # kB: a gigabyte of MemoryMax is for the collector itself
        process.terminate()
        assert process.wait(300) in (0, -signal.SIGTERM)  # uvicorn ends itself by the signal that it was sent


def test_readiness_says_so_when_answers_cannot_be_computed(tmp_path: Path) -> None:
    def broken() -> None:
        raise RuntimeError("cannot cache function")

    store = SqliteStore(tmp_path / "x.sqlite3")
    health = Health(store, broken)
    health.check_store()
    with pytest.raises(ServiceError, match="answers") as refused:
        health.check_answers()
    assert refused.value.status == 503
    Health(store).check_answers()
    store.close()
