"""The templates for a privacy officer: their figures are the study's own, and what they say of erasure is so."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import CliRunner
from tests.unit.study.test_studies import EVERY

from veil import GRR, Client, Ledger, Public, Rappor, Study, Survey
from veil.cli.main import app
from veil.collector.settings import CollectorSettings
from veil.collector.surveys.assessment import assessment, figures
from veil.device.statements import odds_statement
from veil.errors import BudgetError
from veil.histogram import Histogram, Questions
from veil.privacy import WEAK_EPSILON
from veil.study import OneRound
from veil.tools.messages import escape_text
from veil.wire.frames import encode_report

ROOT = Path(__file__).parents[2]
MORE = [
    Questions(Survey(GRR(1.0, 3), [Public("region"), Public("spent", 2)])),
    Questions(Survey(GRR(1.0, 3), wave=2)),
    Questions(Survey(Rappor(4.0, 3))),
]


@pytest.mark.parametrize("study", [*EVERY, *MORE], ids=lambda study: study.kind)
def test_the_figures_are_those_of_the_study(study: Study) -> None:
    known, text, promise, survey = figures(study), assessment(study), study.guarantee, study.survey
    assert known["task"] == survey.task in text
    assert known["public_columns"] == [column.name for column in survey.public]
    assert all(name in text for name in known["public_columns"])
    assert known["payload_bytes"] == survey.layout.size
    assert known["rounds"] == (1 if isinstance(study, OneRound) else None)
    assert Fraction(known["first_share"]) == next(study.rounds()).people
    assert (known["scope"], known["neighbours"]) == (promise.scope, promise.neighbours)
    assert (known["precision_seconds"], known["minimum"]) == (
        CollectorSettings().precision,
        CollectorSettings().minimum,
    )
    assert known["fold_seconds"] == CollectorSettings().fold_seconds
    assert f"for {CollectorSettings().fold_seconds // 60} minutes at most by default" in text
    assert "Longer while no collector runs, in backups that were made meanwhile" in text  # test_folding.py
    assert f"{known['framed_bytes']} with its frame" in text
    if promise.ratio is None:
        assert (known["epsilon"], known["odds"], known["guess_percent"]) == (None, None, None)
        assert "A report alone promises nothing" in text
        assert "eps = " not in text.replace(str(known["central"]), "")
        return
    assert promise.epsilon <= float(known["epsilon"]) <= promise.epsilon * (1 + 1e-5)
    assert promise.ratio <= Fraction(known["odds"].replace(",", "")) <= promise.ratio * Fraction(102, 100)
    assert promise.delta <= Fraction(known["delta"]) <= promise.delta * Fraction(11, 10)
    advantage = (promise.ratio - 1 + 2 * promise.delta) / (promise.ratio + 1)  # the largest total variation
    percent = 100 * (1 + advantage) / 2
    assert percent <= Fraction(known["guess_percent"]) <= percent * Fraction(1001, 1000)
    assert f"eps = {known['epsilon']}, delta = {known['delta']}" in text
    assert text.count(f"guesses right with a probability of at most {known['guess_percent']} %") == 1
    assert text.count(odds_statement(promise)) == 2  # in the assessment and in the notice, as devices show it
    assert ("- Warning: " in text) == (promise.epsilon > WEAK_EPSILON)


def test_the_unit_of_privacy_is_the_one_on_its_page(tmp_path: Path) -> None:
    """docs/privacy-unit.md: one answer replaced, one report, and eps that add up over waves and changed answers."""
    assert {(study.guarantee.neighbours, study.guarantee.scope) for study in EVERY} == {("replace", "report")}
    assert Survey(Rappor(4.0, 3)).guarantee.scope == "lifetime"
    ledger = Ledger(tmp_path / "ledger", lifetime=3.0)
    first, second = (Client(Survey(GRR(1.0, 3), wave=wave).to_bytes(), ledger) for wave in (1, 2))
    first.answer(0)
    first.answer(0)  # the same report
    first.answer(1)
    assert 1.9 < float(ledger.spent) <= 2
    second.answer(1)
    with pytest.raises(BudgetError):
        second.answer(2)
    other = Client(Survey(GRR(1.0, 3)).to_bytes(), Ledger(tmp_path / "another device", lifetime=3.0))
    other.answer(2)  # another ledger knows nothing of the first one


def test_each_party_of_the_threat_model_has_one_row() -> None:
    """A second row for analysts, from before answers went in steps, promised what no longer held."""
    page = (ROOT / "docs" / "collector" / "threat-model.md").read_text(encoding="utf-8")
    parties, _, _ = page.partition("\n## ")
    names = [line.split("|")[1].strip() for line in parties.splitlines() if line.startswith("|")]
    assert "an analyst with a token" in names
    assert len(names) == len(set(names))
    assert not re.search(r"[^\n]\n## ", page)  # or the heading is part of a paragraph


def test_the_size_is_that_of_a_report() -> None:
    survey = Survey(GRR(1.0, 3), [Public("region")])
    sent = encode_report(survey, survey.randomize([1], public={"region": [7]}), bytes(16))
    assert len(sent) == figures(Questions(survey))["framed_bytes"]


def test_a_figure_is_known_or_it_is_not_there() -> None:
    study = Histogram(GRR(1.25, 17))
    known, text = figures(study), assessment(study)
    given = {f"{value:,}" if isinstance(value, int) else str(value) for value in known.values()}
    given |= {str(known["precision_seconds"] // 3600), str(known["fold_seconds"] // 60)}
    given |= {"17", *"1234567"}  # the domain's size; headings
    text = (
        text.replace(known["task"], "")
        .replace(known["odds_statement"], "")
        .replace("Article 6(1)(a)", "")
        .replace("Article 11", "")
    )
    assert set(re.findall(r"\d[\d,.]*\d|\d", text)) <= given
    assert text.count("[TO FILL IN: ") > 20


@pytest.mark.parametrize("name", ["a](http://x)", "<script>", "`**x**`", "\x1b[31m", "two\n# lines", "| a |", "&lt;"])
def test_names_from_a_study_are_text_in_markdown(name: str) -> None:
    text = assessment(Questions(Survey(GRR(1.0, 3), [Public(name)])))
    (line,) = (line for line in text.splitlines() if line.startswith("- Public columns, sent"))
    written = line.removeprefix("- Public columns, sent and kept in clear: ").partition(". The promise")[0]
    assert re.sub(r"\\([\\`*_\[\]<>|~&])", r"\1", written) == escape_text(name)
    assert not re.search(r"(?<!\\)[`*_\[\]<>|~&]", written)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    return tmp_path


def run(*arguments: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def veil(*arguments: Any, code: int = 0) -> Any:
    return json.loads(run(*arguments, "--json", code=code))


def test_the_command_writes_the_templates(folder: Path) -> None:
    study = Histogram(GRR(1.0, ["tea", "coffee"]))
    (folder / "study.json").write_bytes(study.to_bytes())
    assert run("inspect", folder / "study.json", "--assessment") == assessment(study)
    document = veil("inspect", folder / "study.json", "--assessment")
    assert document["markdown"] == assessment(study)
    assert document["figures"] == json.loads(json.dumps(figures(study)))
    (folder / "none.bin").write_bytes(b"nothing")
    assert "error" in veil("inspect", folder / "none.bin", "--assessment", code=5)
