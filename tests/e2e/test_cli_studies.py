"""Every study goes through the same verbs: a study of one's own, trials beside the truth, comparisons, bad input."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_study, save_values, small, veil, veil_json

from veil import GRR, OLH, OUE, EachOf, Integers, Interval, Question, Record, SquareWave, Survey
from veil.comparison import TrueValues
from veil.errors import FitWarning, InputError, PrivacyWarning
from veil.histogram import Histogram, Questions
from veil.itemsets import PSFO
from veil.numeric import Binning, Hierarchy, HybridMean, TwoPhaseVariance, WaveDistribution
from veil.results.estimate import Estimate
from veil.results.mean import Mean, MeanAndVariance
from veil.results.render.files import load, save
from veil.study import STUDIES, Collection, OneRound, Study
from veil.survey import AttributeSets
from veil.view import Ancestor, Project
from veil.wire.arrow import to_arrow

PEOPLE = 4_000


# -- a study of one's own ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agreement(OneRound[Estimate]):
    """How many people agree; `cautious` leaves nothing negative. Guarantee: GRR's."""

    epsilon: float
    cautious: bool = False
    kind: ClassVar[str] = "agreement"

    @cached_property
    def survey(self) -> Survey:
        return Survey(GRR(self.epsilon, ["no", "yes"]))

    def answer(self, collected: Collection) -> Estimate:
        found: Estimate = self.survey.estimate_question(collected.tally(), 0, population=collected.population)
        return found.post("norm-sub") if self.cautious else found


@pytest.fixture
def agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, Agreement.kind, Agreement)


@pytest.mark.usefixtures("agreement")
def test_a_study_of_one_s_own_goes_the_whole_way(tmp_path: Path) -> None:
    study, reports, tally = tmp_path / "study.json", tmp_path / "r.arrow", tmp_path / "t.bin"
    planned = veil_json("plan", "agreement", "--epsilon", 2, "-o", study)
    assert planned["task"] == Agreement(2.0).survey.task
    values = small(tmp_path, "answer\n" + "yes\n" * 3_000 + "no\n" * 1_000)
    veil("randomize", study, values, "-o", reports, "--seed", 1)
    veil("tally", study, reports, "-o", tally)
    veil("merge", study, tally, "-o", tmp_path / "m.bin")
    found = veil_json("estimate", study, tmp_path / "m.bin", "-o", tmp_path / "o.csv", "--plot", tmp_path / "p.svg")
    assert found["rows"] == veil_json("estimate", study, reports)["rows"]
    assert found["rows"][0]["value"] == "yes"
    assert abs(found["rows"][0]["frequency"] - 0.75) < 6 * found["rows"][0]["stderr"]
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    posted = veil_json("estimate", study, tally, "--set", "cautious=yes")
    assert posted["lineage"][-1] == "norm-sub"
    trial = veil_json("simulate", study, values, "--truth", "--people", 500)
    assert trial["people"] == 500
    assert sum(row["truth"] for row in trial["rows"]) == pytest.approx(1)
    rival = save_study(tmp_path, Histogram(OUE(2.0, ["no", "yes"])), "rival.json")
    compared = veil_json("compare", values, "--studies", f"{study},{rival}", "--epsilon", "1,4", "--runs", 3)
    assert [(row["study"], row["epsilon"]) for row in compared["rows"]] == [
        (name, epsilon) for name in ("study", "rival") for epsilon in (1.0, 4.0)
    ]
    assert not veil_json("next", tmp_path / "run", study)["finished"]
    assert veil_json("next", tmp_path / "run", tally)["rows"] == found["rows"]
    assert veil_json("inspect", study)["study"] == "agreement"
    assert veil_json("inspect", tmp_path / "run")["finished"] is True


# -- trials beside the truth -------------------------------------------------------------------------------------------

NUMBERS = np.random.default_rng(1).beta(2, 6, PEOPLE) * 100


def numbers(tmp_path: Path) -> Path:
    return save_values(tmp_path / "numbers.parquet", pa.table({"held": NUMBERS}))


def test_the_truth_of_a_distribution_stands_beside_it(tmp_path: Path) -> None:
    study = save_study(tmp_path, WaveDistribution(SquareWave(2.0, Interval(0, 100), buckets=64)))
    found = veil_json("simulate", study, numbers(tmp_path), "--truth", "--plot", tmp_path / "p.png", "--seed", 1)
    edges = [row["from"] for row in found["rows"]] + [100.0]
    known = np.histogram(NUMBERS, edges)[0] / PEOPLE
    assert [row["truth"] for row in found["rows"]] == pytest.approx(known.tolist(), abs=2e-3)  # up to the grid
    assert sum(row["truth"] for row in found["rows"]) == pytest.approx(1)
    assert "truth" in veil("simulate", study, numbers(tmp_path), "--truth").stdout


@pytest.mark.parametrize(
    "study", [HybridMean(2.0, Interval(0, 100)), TwoPhaseVariance(HybridMean, 2.0, Interval(0, 100))]
)
def test_the_truth_of_a_mean_stands_beside_it(tmp_path: Path, study: Study) -> None:
    found = veil_json("simulate", save_study(tmp_path, study), numbers(tmp_path), "--truth", "--seed", 1)
    (row,) = found["rows"]
    assert row["truth"] == pytest.approx(NUMBERS.mean(), abs=1e-3)
    shown = veil("simulate", save_study(tmp_path, study), numbers(tmp_path), "--truth", "--seed", 1).stdout
    assert f"{NUMBERS.mean():.2f}" in shown


def test_more_people_than_the_file_has(tmp_path: Path) -> None:
    study, values = save_study(tmp_path, Histogram(GRR(4.0, 4))), small(tmp_path, "held\n" + "1\n" * 3 + "2\n")
    found = veil_json("simulate", study, values, "--people", 20_000, "--truth", "--seed", 1)
    truth = {row["value"]: row["truth"] for row in found["rows"]}
    assert found["people"] == 20_000
    assert truth[1] != 0.75  # drawn at random
    assert abs(truth[1] - 0.75) < 6 * (0.75 * 0.25 / 20_000) ** 0.5
    assert abs(truth[1] - 0.70) > 6 * (0.75 * 0.25 / 20_000) ** 0.5
    assert veil_json("simulate", study, values, "--people", 20_000, "--truth", "--seed", 1)["rows"] == found["rows"]


def test_from_data_to_picture_in_one_command(tmp_path: Path) -> None:
    drinks = small(tmp_path, "drink\n" + "tea\n" * 900 + "coffee\n" * 100, "drinks.csv")
    shown = veil("simulate", drinks, "--epsilon", 4, "--plot", tmp_path / "p.svg", "--truth")
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    assert "must be public" in shown.stderr
    assert "tea" in shown.stdout
    listed = small(tmp_path, "tea\ncoffee\nwater\n", "labels.txt")
    found = veil_json("simulate", drinks, "--epsilon", 4, "--labels-file", listed)
    assert {row["value"] for row in found["rows"]} == {"tea", "coffee", "water"}
    found = veil_json("simulate", numbers(tmp_path), "--epsilon", 2, "--range", 0, 100, "--plot", tmp_path / "n.svg")
    assert found["kind"] == "distribution"
    veil("simulate", drinks, "--epsilon", "nan", code=3)
    veil("simulate", drinks, "--epsilon", 1, "--range", 0, 1, "--labels-file", listed, code=2)


def _records(tmp_path: Path) -> Path:
    rows = [("f", 30)] * 2_000 + [("m", 31)] * 1_500 + [("m", 32)] * 500
    return small(tmp_path, "sex,age\n" + "".join(f"{sex},{age}\n" for sex, age in rows), "people.csv")


RECORD = Record.of(sex=["f", "m"], age=Integers(30, 39))
PAIR = Project(RECORD, ("sex", "age"))
PAIRS = {"f, 30": 0.5, "m, 31": 0.375, "m, 32": 0.125}
VIEWED = {
    "a pair": (Survey(Question(OUE(4.0, PAIR.domain), PAIR)), (), PAIRS),
    "a family's question": (
        Survey(EachOf(AttributeSets(RECORD, size=1), lambda domain: OUE(4.0, domain))),
        ("--set", "question=1"),
        {30: 0.5, 31: 0.375, 32: 0.125},
    ),
}


@pytest.mark.parametrize("name", VIEWED)
def test_the_truth_behind_a_view_of_a_record(tmp_path: Path, name: str) -> None:
    survey, options, known = VIEWED[name]
    study, values = save_study(tmp_path, Questions(survey)), _records(tmp_path)
    found = veil_json("simulate", study, values, "--truth", "--top", 99, "--seed", 1, *options)
    truth = {row["value"]: row["truth"] for row in found["rows"]}
    assert {value: share for value, share in truth.items() if share} == known
    (row,) = veil_json("compare", values, "--studies", study, "--epsilon", 4, "--runs", 2, *options)["rows"]
    mechanism = survey.questions[1 if options else 0].pure
    assert row["error"] < 3 * mechanism.variance(PEOPLE if not options else PEOPLE // 2) ** 0.5


def test_the_truth_of_ancestors_and_of_candidates(tmp_path: Path) -> None:
    view = Ancestor(Interval(0, 100, 64), branching=4, level=1)
    study = save_study(tmp_path, Questions(Survey(Question(OUE(4.0, view.domain), view))))
    found = veil_json("simulate", study, numbers(tmp_path), "--truth", "--seed", 1)
    known = np.histogram(NUMBERS, [0, 25, 50, 75, 100])[0] / PEOPLE
    assert {row["value"]: row["truth"] for row in found["rows"]} == dict(enumerate(known.tolist()))
    asked = PSFO(2, GRR, 4.0, ["tea", "milk", "salt"], candidates=((0,), (0, 1), (2,)))
    study = save_study(tmp_path, asked, "psfo.json")
    baskets = small(tmp_path, "basket\n" + "tea\n" * 100 + "tea;milk\n" * 300 + "milk\n" * 600, "baskets.csv")
    found = veil_json("simulate", study, baskets, "--truth", "--seed", 1)
    assert {row["value"]: row["truth"] for row in found["rows"]} == {0: 0.4, 1: 0.3, 2: 0.0}
    (row,) = veil_json("compare", baskets, "--studies", study, "--epsilon", 8, "--runs", 2)["rows"]
    assert row["error"] < 0.05


def test_a_truth_that_is_not_known_is_not_told() -> None:
    survey = Survey(OLH(1.0, 8))
    held = TrueValues(survey, np.zeros(9, dtype=np.uint64))
    other = Survey(OLH(1.0, ["tea", "milk"]))
    found = other.estimate_question(other.tally(other.randomize(["tea"])), 0)
    assert held.truth(found) is None
    with pytest.raises(InputError, match="not known"):
        held.error(found)


# -- comparisons -------------------------------------------------------------------------------------------------------


def test_compare_shows_which_study_errs_least(tmp_path: Path) -> None:
    values = save_values(tmp_path / "v.parquet", pa.table({"held": np.arange(PEOPLE) % 7}))
    files = [save_study(tmp_path, Histogram(kind(1.0, 64)), f"{kind.__name__}.json") for kind in (GRR, OUE)]
    out, picture = tmp_path / "o.csv", tmp_path / "p.svg"
    asked = ["compare", values, "--studies", ",".join(map(str, files)), "--epsilon", "0.5,2", "--runs", 3, "--seed", 1]
    found = veil_json(*asked, "-o", out, "--plot", picture)
    assert (found["kind"], found["people"], found["runs"]) == ("comparison", PEOPLE, 3)
    assert found["best"] == [{"epsilon": 0.5, "study": "OUE"}, {"epsilon": 2.0, "study": "OUE"}]
    rows = {(row["study"], row["epsilon"]): row for row in found["rows"]}
    for kind in (GRR, OUE):
        for epsilon in (0.5, 2.0):
            known = kind(epsilon, 64).variance(PEOPLE) ** 0.5
            assert 0.7 * known < rows[kind.__name__, epsilon]["error"] < 1.4 * known
            assert 0 < rows[kind.__name__, epsilon]["stderr"] < 0.3 * known
    assert pacsv.read_csv(out).column_names == ["study", "epsilon", "error", "stderr"]
    legend = picture.read_text()
    assert legend.startswith("<?xml")
    text = veil(*asked).stdout
    assert all(name in text for name in ("GRR", "OUE", "epsilon", "error"))
    assert veil_json(*asked)["rows"] == found["rows"]


def test_studies_of_every_kind_are_compared(tmp_path: Path) -> None:
    domain = Interval(0, 100)
    studies: list[Study] = [
        WaveDistribution(SquareWave(1.0, domain, buckets=64)),
        Hierarchy(1.0, domain, 16),
        Binning(1.0, domain, bins=8),
    ]
    files = [save_study(tmp_path, study, f"{study.kind}.json") for study in studies]
    found = veil_json("compare", numbers(tmp_path), "--studies", ",".join(map(str, files)), "--epsilon", 2, "--runs", 2)
    errors = {row["study"]: row["error"] for row in found["rows"]}
    assert set(errors) == {"square-wave", "hierarchy", "binning"}
    assert all(0 < error < 0.2 for error in errors.values())
    mean = save_study(tmp_path, HybridMean(1.0, domain), "mean.json")
    (row,) = veil_json("compare", numbers(tmp_path), "--studies", mean, "--epsilon", 4, "--runs", 4)["rows"]
    assert row["error"] < 6 * HybridMean(4.0, domain).variance(PEOPLE) ** 0.5
    spread = save_study(tmp_path, TwoPhaseVariance(HybridMean, 1.0, domain), "spread.json")
    refused = veil("compare", numbers(tmp_path), "--studies", f"{mean},{spread}", "--runs", 1, code=3).stderr
    assert "means with means" in refused
    refused = veil("compare", numbers(tmp_path), "--studies", mean, "--epsilon", "1,1", code=3).stderr
    assert "one is given twice" in refused


def test_a_variance_is_judged_by_its_standard_deviation_too() -> None:
    domain = Interval(0, 100)
    codes = domain.encode(NUMBERS)
    mean, true = float(np.mean(domain.decode(codes))), float(np.std(domain.decode(codes)))
    study = TwoPhaseVariance(HybridMean, 1.0, domain)
    squares = Interval(0, 10_000)
    found = MeanAndVariance(Mean(mean, 1.0, 9, domain), Mean((true + 6) ** 2, 1.0, 9, squares))
    assert TrueValues(study, codes).error(found) == pytest.approx(6 / 2**0.5)


def test_what_was_not_found_counts() -> None:
    survey = Survey(OLH(1.0, 8))
    codes = np.repeat(np.arange(4, dtype=np.uint64), [70, 20, 10, 0])
    held = TrueValues(survey, codes)
    found = survey.estimate_question(survey.tally(survey.randomize(codes), {0: [0, 3]}), 0)
    off = np.array([found["0" if isinstance(found.values[0], str) else 0].frequency - 0.7, found[3].frequency])
    assert held.truth(found) == [0.7, 0.0]
    assert held.error(found) == pytest.approx(np.sqrt((np.sum(off**2) + 0.2**2) / 3))  # 1 is the second, and missing


# -- candidates, and one question of several ---------------------------------------------------------------------------


def test_candidates_of_a_pair_are_written_as_its_table_writes_them(tmp_path: Path) -> None:
    record = Record.of(sex=["f", "m"], drink=["tea", "tea, black", "milk"])
    view = Project(record, ("sex", "drink"))
    study = save_study(tmp_path, Questions(Survey(Question(OLH(4.0, view.domain), view))))
    values = small(tmp_path, "sex,drink\n" + "m,tea\n" * 300 + 'f,"tea, black"\n' * 100)
    chosen = small(tmp_path, "m, tea\nf, tea, black\n", "chosen.txt")
    found = veil_json("simulate", study, values, "--truth", "--candidates", chosen, "--seed", 1)
    assert {row["value"]: row["truth"] for row in found["rows"]} == {"m, tea": 0.75, "f, tea, black": 0.25}
    veil("randomize", study, values, "-o", tmp_path / "r.arrow")
    veil("tally", study, tmp_path / "r.arrow", "--candidates", chosen, "-o", tmp_path / "t.bin")
    assert len(veil_json("estimate", study, tmp_path / "t.bin", "--candidates", chosen)["rows"]) == 2
    for wrong in ("m\n", "m, beer\n", "m; tea\n"):
        refused = veil("simulate", study, values, "--candidates", small(tmp_path, wrong, "w.txt"), code=3).stderr
        assert "candidate 1" in refused
    refused = veil("estimate", study, tmp_path / "t.bin", "--set", "candidates=1,2", code=3).stderr
    assert "--candidates FILE" in refused


def test_one_question_of_several_is_tallied_alone(tmp_path: Path) -> None:
    survey, options, _ = VIEWED["a family's question"]
    study, reports, tally = save_study(tmp_path, Questions(survey)), tmp_path / "r.arrow", tmp_path / "t.bin"
    veil("randomize", study, _records(tmp_path), "-o", reports, "--seed", 1)
    veil("tally", study, reports, "-o", tally, *options)
    found = veil_json("estimate", study, tally, *options)
    assert found["rows"] == veil_json("estimate", study, reports, *options)["rows"]
    assert veil_json("inspect", tally)["questions"][0]["question"] == 1
    veil("next", tmp_path / "run", study, *options)
    assert "when a study begins" in veil("next", tmp_path / "run", tally, *options, code=3).stderr
    assert veil_json("next", tmp_path / "run", reports)["rows"] == found["rows"]


# -- inspect -----------------------------------------------------------------------------------------------------------


def test_inspect_reads_saved_results_and_exports(tmp_path: Path) -> None:
    from veil import simulate

    estimate = simulate(OLH(2.0, 8), np.arange(800) % 8)
    save(estimate, tmp_path / "result.json")
    facts = veil_json("inspect", tmp_path / "result.json")
    assert (facts["kind"], facts["result"], facts["people"]) == ("result", "frequencies", 800)
    assert "from 800 reports" in veil("inspect", tmp_path / "result.json").stdout
    study, values = save_study(tmp_path, Histogram(OLH(2.0, 8))), small(tmp_path, "held\n" + "1\n2\n" * 40)
    whole, table = tmp_path / "o.result.json", tmp_path / "o.json"
    shown = veil("simulate", study, values, "-o", whole, "--seed", 1).stdout
    assert "wrote the result" in shown
    found = veil_json("simulate", study, values, "-o", table, "--seed", 1)
    assert [row.frequency for row in load(whole).top(8)] == [row["frequency"] for row in found["rows"]]
    facts = veil_json("inspect", whole)
    assert (facts["kind"], facts["result"], facts["people"]) == ("result", "frequencies", 80)
    facts = veil_json("inspect", table)
    assert (facts["kind"], facts["result"], facts["people"], facts["rows"]) == ("table", "frequencies", 80, 8)
    survey = Survey(OLH(2.0, 8))
    reports = to_arrow(survey.randomize(np.arange(80) % 8), survey)
    pq.write_table(pa.Table.from_batches([reports]), tmp_path / "export.parquet")
    facts = veil_json("inspect", tmp_path / "export.parquet")
    assert (facts["kind"], facts["task"], facts["reports"]) == ("reports", survey.task, 80)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return save_study(tmp_path, Histogram(OLH(1.0, 16)))


def _edited(path: Path, **changes: Any) -> bytes:
    return json.dumps(json.loads(path.read_bytes()) | changes, separators=(",", ":"), sort_keys=True).encode()


def _bad_studies(study: Path) -> Iterator[tuple[bytes, int, str]]:
    document = json.loads(study.read_bytes())
    yield _edited(study, version=2), 5, "another version"
    yield _edited(study, kind="veil-poll"), 5, "'veil-study' or 'veil-survey'"
    yield _edited(study, study=document["study"] | {"kind": "poll"}), 5, "a study"
    yield _edited(study, study=document["study"] | {"post": "norm-sub", "more": 1}), 5, "parameters"
    oracle = document["study"]["oracle"] | {"epsilon": "2"}
    yield _edited(study, study=document["study"] | {"oracle": oracle}), 5, ""
    other = json.loads(Histogram(OLH(1.0, 17)).to_bytes())
    yield _edited(study, study=other["study"]), 4, "one was changed"
    yield study.read_bytes()[:-1], 5, "a study or a task"
    yield b"", 5, ""
    yield b"{}", 5, "a study or a task"


def test_bad_studies_are_refused(tmp_path: Path, study: Path) -> None:
    values, bad = small(tmp_path), tmp_path / "bad.json"
    for data, code, message in _bad_studies(study):
        bad.write_bytes(data)
        for command in (
            ["randomize", bad, values, "-o", tmp_path / "r.arrow"],
            ["estimate", bad, values],
            ["simulate", bad, values],
            ["compare", values, "--studies", bad],
        ):
            refused = veil(*command, code=code)
            assert message in refused.stderr, (data, refused.stderr)
            assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "r.arrow").exists()


def test_parameters_that_cannot_be_set(tmp_path: Path, study: Path) -> None:
    veil("randomize", study, small(tmp_path), "-o", tmp_path / "r.arrow")
    veil("tally", study, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    asked = ["estimate", study, tmp_path / "t.bin"]
    refusal = veil(*asked, "--set", "method=admm", code=3).stderr
    assert "expected a parameter of histogram (oracle, post, candidates, shuffler), got 'method'" in refusal
    assert "cannot be set" in veil(*asked, "--set", "oracle=GRR", code=3).stderr
    level = save_study(tmp_path, Hierarchy(1.0, Integers(0, 15)), "h.json")
    veil("randomize", level, small(tmp_path, "held\n" + "1\n2\n3\n" * 50), "-o", tmp_path / "h.arrow")
    refused = veil("estimate", level, tmp_path / "h.arrow", "--set", "branching=2", code=4).stderr
    assert "would change what people are asked" in refused
    assert "exact" in veil("estimate", level, tmp_path / "h.arrow", "--set", "method=best", code=3).stderr
    assert veil_json("estimate", level, tmp_path / "h.arrow", "--set", "method=admm")["kind"] == "distribution"


def test_what_was_collected_must_fit(tmp_path: Path, study: Path) -> None:
    from veil import Bits
    from veil.hitters import PEM

    veil("randomize", study, small(tmp_path), "-o", tmp_path / "r.arrow")
    veil("tally", study, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    assert "not both" in veil("estimate", study, tmp_path / "t.bin", tmp_path / "r.arrow", code=3).stderr
    assert "twice" in veil("estimate", study, tmp_path / "t.bin", tmp_path / "t.bin", code=3).stderr
    assert "twice" in veil("merge", study, tmp_path / "t.bin", tmp_path / "t.bin", "-o", tmp_path / "m", code=3).stderr
    search = PEM(2.0, Bits(8), 2, lengths=(4, 8))
    other = save_study(tmp_path, search, "pem.json")
    veil("estimate", other, tmp_path / "t.bin", code=4)
    veil("randomize", other, small(tmp_path, "held\n" + "1\n2\n3\n" * 50), "-o", tmp_path / "p.arrow")
    veil("tally", other, tmp_path / "p.arrow", "-o", tmp_path / "p.bin")
    assert "files of reports, not a tally" in veil("estimate", other, tmp_path / "p.bin", code=3).stderr
    veil("next", tmp_path / "run", other)
    assert "files of reports, not a tally" in veil("next", tmp_path / "run", tmp_path / "p.bin", code=3).stderr
    assert "p.arrow" not in veil("next", tmp_path / "run", tmp_path / "p.arrow").stderr


def test_a_finished_study_takes_nothing_more(tmp_path: Path, study: Path) -> None:
    veil("randomize", study, small(tmp_path), "-o", tmp_path / "r.arrow")
    veil("next", tmp_path / "run", study)
    veil("next", tmp_path / "run", tmp_path / "r.arrow")
    for command in (
        ["next", tmp_path / "run", tmp_path / "r.arrow"],
        ["tally", tmp_path / "run", tmp_path / "r.arrow", "-o", tmp_path / "t.bin"],
        ["estimate", tmp_path / "run", tmp_path / "r.arrow"],
    ):
        assert "finished" in veil(*command, code=3).stderr
    assert veil_json("next", tmp_path / "run")["finished"]


def test_warnings_of_a_reading_are_lines_and_remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Doubtful(Agreement):
        def answer(self, collected: Collection) -> Estimate:
            warnings.warn("the model does not fit", FitWarning, stacklevel=1)
            warnings.warn("it may leak", PrivacyWarning, stacklevel=1)
            warnings.warn("it may leak", PrivacyWarning, stacklevel=1)
            return super().answer(collected)

    monkeypatch.setitem(STUDIES, Agreement.kind, Doubtful)
    study = save_study(tmp_path, Doubtful(2.0))
    values = small(tmp_path, "answer\n" + "yes\n" * 300)
    shown = veil("simulate", study, values)
    assert shown.stderr.splitlines() == ["WARNING: the model does not fit", "WARNING: it may leak"]
    assert veil_json("simulate", study, values)["remarks"] == ["the model does not fit", "it may leak"]
