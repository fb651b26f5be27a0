"""What a person is told follows from the signed survey: by Python, from a shell, on the page, and before publishing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.service.harness import running
from tests.service.test_online_client import key_of
from tests.support.commands import CliRunner
from tests.unit.project.test_vectors import read

from veil import GRR, OLH, Client, Ledger, Public, Rappor, Survey
from veil.cli.main import app
from veil.device.statements import statements

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


def create(survey: Survey, *options: str) -> Any:
    Path("study.json").write_bytes(survey.to_bytes())
    return CliRunner().invoke(app, ["survey", "create", "study.json", "--new", *options])


def test_statements_are_those_of_the_vectors() -> None:
    vectors = read("statements")
    for case in vectors["cases"]:
        assert list(statements(case["published"], vectors["collector"]).items()) == list(case["statements"].items())


def test_a_preview_names_odds_public_columns_times_and_retention(tmp_path: Path) -> None:
    survey = Survey(GRR(4.0, 5), [Public("postcode"), Public("age")])
    with running(tmp_path / "data") as collector:
        path = collector.open_survey(survey, keep_days=30)
        ledger = Ledger(tmp_path / "ledger", lifetime=5.0)
        told = Client.open(collector.url, key_of(collector), survey.task, ledger).statements
        arguments = [
            "answer",
            collector.url + path,
            "--key",
            key_of(collector),
            "--lifetime",
            "5",
            "--ledger",
            "ledger",
        ]
        shown = CliRunner().invoke(app, [*arguments, "--preview"])
        assert shown.exit_code == 0
        assert shown.output.splitlines() == list(told.values())
        assert "at most 54.6 times as likely" in told["odds"]
        assert "eps is above 3" in told["weak"]
        assert "in clear beside your report: postcode, age." in told["public"]
        assert told["time"] == "The time of your report is kept to 1 day."
        assert f"{collector.url} keeps the report until 30 days after" in told["kept"]
        preview = json.loads(CliRunner().invoke(app, [*arguments, "--preview", "--json"]).output)
        assert preview["statements"] == told
        assert (ledger.charges, collector.stored_ids(survey)) == ([], [])
        answer = [*arguments, "--value", "1", "--public", "postcode=8001", "--public", "age=40"]
        answered = CliRunner().invoke(app, answer)
        assert answered.exit_code == 0
        assert all(told[topic] in answered.output for topic in ("weak", "public"))
    assert CliRunner().invoke(app, arguments).exit_code == 2  # neither --value nor --preview


def test_an_eps_above_3_is_warned_of_and_one_above_10_needs_an_option() -> None:
    assert "eps =" not in create(Survey(GRR(3.0, 4))).output
    warned = create(Survey(GRR(3.01, 4)))
    assert warned.exit_code == 0
    assert "eps = 3.01 per report is weak: a report can make its sender's answer 20.3 times as likely" in warned.output
    assert "hardly" not in create(Survey(GRR(10.0, 4))).output
    refused = create(Survey(OLH(10.01, 4)))
    assert refused.exit_code == 3
    assert "expected at most 10 per report" in refused.output
    assert "--allow-weak-privacy" in refused.output
    allowed = create(Survey(OLH(10.01, 4)), "--allow-weak-privacy")
    assert allowed.exit_code == 0
    assert "hardly any protection" in allowed.output


def test_a_weak_promise_of_a_lifetime_is_about_all_reports_of_a_value() -> None:
    warned = create(Survey(Rappor(4.0, 4))).output
    assert "per value is weak: all reports of a value can make its sender's answer 54.6 times as likely" in warned


def test_public_columns_are_named_when_a_survey_is_created() -> None:
    assert "in clear" not in create(Survey(GRR(1.0, 4))).output
    assert "may identify people: region, age" in create(Survey(GRR(1.0, 4), [Public("region"), Public("age")])).output


def test_a_step_of_one_report_is_warned_of() -> None:
    warning = "answers count every single report"
    assert warning not in create(Survey(GRR(1.0, 4))).output
    assert warning not in create(Survey(GRR(1.0, 5)), "--minimum", "1", "--step", "5").output
    assert warning in create(Survey(GRR(1.0, 6)), "--minimum", "1").output
    assert warning in create(Survey(GRR(1.0, 7)), "--step", "1").output


@pytest.mark.parametrize(("epsilon", "weak"), [("3", False), ("3.5", True), ("12", True)])
def test_plans_warn_above_3(epsilon: str, weak: bool) -> None:
    arguments = ["plan", "histogram", "--labels", "tea,coffee", "--epsilon", epsilon, "--users", "1000"]
    planned = CliRunner().invoke(app, arguments)
    assert planned.exit_code == 0
    assert ("times as likely as another" in planned.output) == weak


def test_texts_promise_no_certainty() -> None:
    page = (ROOT / "examples" / "survey-page" / "index.html").read_text(encoding="utf-8")
    assert "be sure which" not in " ".join(page.split())
    assert 'id="statements"' in page
