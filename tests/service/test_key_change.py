"""`veil key adopt` on a live database: running collectors notice, sign nothing more, and say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running
from tests.service.postgres import Server
from tests.support.commands import CliRunner

from veil import Client, Ledger
from veil.cli.main import app
from veil.collector.keys_and_tokens import KeyWatch, adopt, claim, make_key
from veil.collector.store.blocks import BlockStore
from veil.errors import CollectorError, ServiceError


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    server: Server | None = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return {} if server is None else {"VEIL_DATABASE_URL": server.database()}


def adopt_another_key(collector: Collector) -> str:
    """As an operator does who does not stop the collector. Returns what the command says on both streams."""
    collector.settings.key_path.unlink()
    folder = ["--folder", str(collector.folder)]
    done = CliRunner().invoke(app, ["key", "adopt", "--yes", *folder], env=collector.environment)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_running_collector_signs_nothing_after_another_key_was_adopted(
    database: dict[str, str], tmp_path: Path
) -> None:
    with running(tmp_path / "data", **database) as collector, httpx.Client(base_url=collector.url) as client:
        path = collector.open_survey(name="sleep")
        before = client.get(path).json()["key"]
        assert client.get("/v1/surveys/by-name/sleep").status_code == client.get("/readyz").status_code == 200
        assert "restart every one of them" in adopt_another_key(collector)
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "unavailable")
        assert "signing key" in ready.json()["error"]["message"]
        # what was signed before is remembered, and not served any more either
        until(lambda: client.get(path).status_code == 503)
        until(lambda: client.get("/v1/surveys/by-name/sleep").status_code == 503)
        until(lambda: '"key-changed"' in collector.log)
        lines = [json.loads(line) for line in collector.log.splitlines() if '"key-changed"' in line]
        assert {line["level"] for line in lines} == {"error"}
        assert all(line["signs_with"] != line["database"] for line in lines)
        # who has paid for a report is not turned away
        assert client.post(f"{path}/reports", content=framed(SURVEY, [1]), headers=FRAMED).status_code == 200
        collector.stop()
        collector.start()
        with httpx.Client(base_url=collector.url, timeout=LIMIT) as again:
            assert again.get("/readyz").status_code == 200
            assert again.get(path).json()["key"] != before


def test_nothing_is_signed_anew_right_after_the_change(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="3600") as collector:
        path = collector.open_survey()  # never asked for: there is nothing remembered, and no regular look to come
        adopt_another_key(collector)
        answer = httpx.get(f"{collector.url}{path}", timeout=LIMIT)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        # a device does not call a collector unreachable that answers
        with pytest.raises(CollectorError, match=r"publishes no survey now \(status 503\)"):
            Client.open(collector.url, bytes(32), SURVEY.task, Ledger(lifetime=9.0))


def test_a_change_is_logged_once_and_can_be_undone(
    make: Callable[[], BlockStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    monkeypatch.setattr("veil.collector.keys_and_tokens.log", lambda level, event, **facts: events.append(event))
    mine, other = make_key(tmp_path / "mine"), make_key(tmp_path / "other")
    store = make()
    claim(store, mine)
    watch = KeyWatch(store, mine)
    watch.confirm()
    adopt(make(), other)
    watch.check()  # it has not looked yet
    for _ in range(3):
        watch.look()
        with pytest.raises(ServiceError, match="restarted"):
            watch.check()
    adopt(make(), mine)
    watch.confirm()
    assert events == ["key-changed", "key-restored"]
