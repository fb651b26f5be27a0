"""Times of reports finer than an hour: published on request alone, and refused by devices unless their owner allows."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.harness import running
from tests.service.test_online_client import key_of
from tests.service.test_round_client import FIRST, KEY, STUDY, stored
from tests.support.commands import CliRunner

from veil import GRR, Client, Ledger, Survey
from veil.cli.main import app
from veil.collector.keys_and_tokens import public_bytes
from veil.collector.surveys.catalogue import published_round
from veil.device.client import RoundClient, RoundPart
from veil.device.statements import statements
from veil.device.verification import read_published
from veil.errors import CollectorError

DRINKS = ["tea", "coffee", "water"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.json").write_bytes(Survey(GRR(1.0, DRINKS)).to_bytes())
    return tmp_path


def create(*options: str) -> Any:
    return CliRunner().invoke(app, ["survey", "create", "study.json", "--new", *options, "--json"])


def test_a_survey_with_fine_times_is_published_on_request_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for precision in ("1", "3599"):
        refused = create("--precision", precision)
        assert refused.exit_code == 3
        assert f"at least 3600 (1 hour), got {precision}" in refused.output
        assert "--allow-fine-times" in refused.output
    assert CliRunner().invoke(app, ["survey", "list", "--json"]).output.count('"task"') == 0
    monkeypatch.setenv("VEIL_PRECISION", "60")  # nor by the collector's settings
    assert create().exit_code == 3
    assert create("--precision", "3600").exit_code == 0
    (folder / "study.json").write_bytes(Survey(GRR(2.0, DRINKS)).to_bytes())
    fine = create("--precision", "1", "--allow-fine-times")
    assert json.loads(fine.stdout)["precision"] == 1
    assert "times of reports are kept to 1 second, which can show whose a report is" in fine.stderr


def test_a_request_for_fine_times_says_so(tmp_path: Path) -> None:
    with running(tmp_path / "data") as collector:
        asked: dict[str, Any] = {"survey": Survey(GRR(1.0, DRINKS)).to_json(), "precision": 1}
        token = collector.token("surveys:write")
        with httpx.Client(base_url=collector.url, headers=token) as client:
            refused = client.post("/v1/surveys", json=asked)
            assert (refused.status_code, "3600" in refused.json()["error"]["message"]) == (422, True)
            assert client.post("/v1/surveys", json=asked | {"allow_fine_times": "yes"}).status_code == 422
            assert client.post("/v1/surveys", json=asked | {"allow_fine_times": True}).status_code == 201


def test_devices_refuse_fine_times_unless_their_owner_allows_them(tmp_path: Path) -> None:
    survey = Survey(GRR(1.0, DRINKS))
    with running(tmp_path / "data") as collector:
        path = collector.open_survey(survey, precision=3_599, allow_fine_times=True)
        key, ledger = key_of(collector), Ledger(tmp_path / "ledger", lifetime=4.0)
        with pytest.raises(CollectorError, match="times of this survey's reports to 3599 seconds: expected 1 hour"):
            Client.open(collector.url, key, survey.task, ledger)
        assert ledger.spent == 0
        allowed = Client.open(collector.url, key, survey.task, ledger, allow_fine_times=True)
        assert allowed.answer("tea").state == "delivered"
        shell = [f"{collector.url}{path}", "--key", key, "--lifetime", "4", "--value", "tea"]
        arguments = ["answer", *shell, "--ledger", str(tmp_path / "shell")]
        refused = CliRunner().invoke(app, arguments)
        assert refused.exit_code == 7
        assert "unless this device's owner allows finer times" in refused.output
        answered = CliRunner().invoke(app, [*arguments, "--allow-fine-times"])
        assert answered.exit_code == 0
        assert "This is finer than an hour, and can show which report is yours." in answered.stderr


def test_a_round_of_a_study_with_fine_times_is_refused(tmp_path: Path) -> None:
    part = RoundPart(STUDY, 0, FIRST.task, Fraction(0), Fraction(1))
    published, key = published_round(replace(stored(FIRST), precision=60), part, KEY), public_bytes(KEY)
    with pytest.raises(CollectorError, match="reports to 1 minute"):
        RoundClient(STUDY, Ledger(lifetime=9.0), key).answer(published, 1)
    assert RoundClient(STUDY, Ledger(lifetime=9.0), key, allow_fine_times=True).answer(published, 1)
    told = statements(published, "https://collector.example", key)  # as docs/devices.md says for rounds
    assert told["time"].endswith("This is finer than an hour, and can show which report is yours.")
    assert "odds" in told


def test_the_time_until_reports_are_erased_is_signed(folder: Path) -> None:
    with running(folder / "data") as collector:
        path = collector.open_survey(Survey(GRR(1.0, DRINKS)), keep_days=30)
        answer = httpx.get(collector.url + path).json()
        key = base64.urlsafe_b64decode(key_of(collector) + "=")
        assert read_published(answer, key)["keep_days"] == 30
