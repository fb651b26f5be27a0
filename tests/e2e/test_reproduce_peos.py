"""`veil reproduce peos`: every exhibit is there, claims have verdicts; and `veil peos plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.e2e.reproductions import Run, reproduced, tables_of, verdict_of
from tests.support.commands import CliRunner

from veil.cli.main import app
from veil.histogram import Histogram
from veil.study import study_from_json
from veil_papers.peos.choices import best, printed

EXHIBITS = ["table-9.3", "choice-1", "choice-2", "choice-3"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return reproduced("peos", tmp_path_factory.mktemp("peos"))


@pytest.mark.acceptance
def test_every_exhibit_has_its_picture_and_its_table(run: Run) -> None:
    tables = tables_of(run, EXHIBITS)
    for name in ("choice-1", "choice-2"):
        by = {
            bound: [float(row["mean"]) for row in tables[name] if row["method"].startswith(bound)]
            for bound in ("thesis", "blanket")
        }
        assert all(ours < theirs for theirs, ours in zip(by["thesis"], by["blanket"], strict=True))


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("begins", "verdict"),
    [
        ("PEOS provides eps_c <= eps_1", "holds"),
        ("(ours) The exact blanket needs at least 5 times fewer fakes", "holds"),
        ("(ours) By the exact blanket the variance is never larger", "holds"),
        ("(ours) Stronger promises never have a smaller variance", "holds"),
        ("Introducing n_r will reduce", "does not hold"),
        ("(ours) It raises it", "holds"),
    ],
)
def test_verdicts(run: Run, begins: str, verdict: str) -> None:
    assert verdict_of(run, begins) == verdict


def test_the_best_buckets_are_those_of_the_derivation() -> None:
    for fakes in (0, 50_000, 300_000):
        assert best(602_325, fakes, 0.3) == pytest.approx(printed(602_325, fakes, 0.3, 1), abs=1)
    assert best(602_325, 300_000, 0.3) != pytest.approx(printed(602_325, 300_000, 0.3, -1), abs=5)


# -- veil peos plan ----------------------------------------------------------------------------------------------------

PLAN = ["peos", "plan", "--users", "2e4", "--epsilon-server", "0.2", "--epsilon-users", "0.5", "--delta", "1e-6"]


def test_a_plan_writes_a_study_that_keeps_its_promises(tmp_path: Path) -> None:
    out = tmp_path / "study.json"
    asked = [*PLAN, "--epsilon-local", "4", "--labels", "tea,coffee,water", "-o", str(out)]
    result = CliRunner().invoke(app, [*asked, "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert sorted(one["oracle"] for one in document["options"]) == ["GRR", "OLH"]
    best_one = document["options"][0]
    assert best_one["standard_error"] == min(one["standard_error"] for one in document["options"])
    study = study_from_json(out.read_bytes())
    assert isinstance(study, Histogram)
    assert study.shuffler is not None
    assert study.shuffler.fakes == best_one["fakes"] > 0
    assert study.central is not None
    assert study.central.epsilon <= 0.2
    assert study.among_fakes is not None
    assert study.among_fakes.epsilon <= 0.5
    shown = CliRunner().invoke(app, asked)
    assert f"{best_one['fakes']:,}" in shown.output
    inspected = json.loads(CliRunner().invoke(app, ["inspect", str(out), "--json"]).stdout)
    assert inspected["fakes"] == best_one["fakes"]


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--epsilon-local", "4"], 2, "what people hold"),
        (["--epsilon-local", "4", "--domain", "4", "--labels", "a,b"], 2, "what people hold"),
        (["--epsilon-local", "0.1", "--domain", "4"], 3, "from small to large"),
        (["--epsilon-local", "4", "--domain", "4", "--bound", "clones"], 3, "blanket"),
        (["--epsilon-local", "4", "--domain", "4", "--most-fakes", "-1"], 3, "most fakes"),
    ],
)
def test_bad_plans_are_refused_in_words(more: list[str], code: int, words: str) -> None:
    result = CliRunner().invoke(app, [*PLAN, *more])
    assert result.exit_code == code
    assert words in " ".join(result.output.split())
