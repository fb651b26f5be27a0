"""Fake reports in tallies, files, studies, results and commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.commands import CliRunner

from veil import GRR, OLH, OUE, AllOf, Public, Survey
from veil.accounting import Shuffler
from veil.cli.main import app
from veil.collector.edge.decoding import frames_of_arrow
from veil.engines import FileCollection, MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError, VeilError, WireError
from veil.files import ReportWriter, count_fakes, read_reports
from veil.files.reports import write_parquet
from veil.histogram import Histogram, Questions
from veil.mechanisms import Mechanism
from veil.reports.columns import Reports
from veil.reports.tally import Tally, merge
from veil.results.base import Result
from veil.results.estimate import Estimate
from veil.results.laws import FakeLaw
from veil.study import Collection, OneRound, StudyRun
from veil.study.collection import TallyCollection
from veil.wire.arrow import arrow_schema, to_arrow
from veil.wire.ring import ring_of
from veil.wire.tallies import decode_tally, describe_tally, encode_tally

ORACLE = GRR(3.0, ["tea", "coffee", "water"])
SURVEY = Survey(ORACLE)
PEOPLE, FAKES = 90, 30


def shuffled(mechanism: Mechanism = ORACLE, seed: int = 1) -> Reports:
    survey = Survey(mechanism)
    ring, values = ring_of(survey), mechanism.domain.decode(np.arange(PEOPLE, dtype=np.uint64) % 3)
    elements = ring.encode(survey.randomize(values, SeededForExperiments(seed)).columns, SeededForExperiments(seed + 1))
    return ring.reports(np.concatenate([elements, ring.uniform(FAKES, SeededForExperiments(seed + 2))]))


def test_tallies_add_up_with_their_fakes() -> None:
    whole = SURVEY.tally(shuffled())
    tally = whole.with_fakes(FAKES)
    part = tally.part(0)
    assert (tally.people, tally.fakes, part.people, part.weight, part.square, part.fakes) == (90, 30, 90, 90, 90, 30)
    both = merge([tally, tally])
    assert (both.people, both.fakes, both.part(0).fakes) == (180, 60, 60)
    assert tally != whole
    assert part != replace(part, fakes=29)
    assert "90 reports and 30 fakes" in repr(part)
    halves = [SURVEY.tally(shuffled()[:60]).with_fakes(10), SURVEY.tally(shuffled()[60:]).with_fakes(20)]
    assert merge(halves) == tally
    assert whole.with_fakes(0) == whole


@pytest.mark.parametrize("fakes", [-1, 1.5, True, "3", 120, 121])
def test_a_wrong_number_of_fakes_is_refused(fakes: Any) -> None:
    for refused in (
        lambda: SURVEY.tally(shuffled()).part(0).with_fakes(fakes),
        lambda: MemoryCollection(SURVEY, shuffled(), fakes=fakes),
    ):
        with pytest.raises(InputError, match="fakes"):
            refused()


def test_weights_and_fakes_do_not_go_together() -> None:
    with pytest.raises(InputError, match="no weights"):
        ORACLE.tally(ORACLE.randomize(["tea"] * 3), weights=[1, 2, 3]).with_fakes(1)
    with pytest.raises(InputError, match="no weights"):
        ORACLE.estimate(replace(ORACLE.tally(ORACLE.randomize(["tea"] * 3), weights=[1, 2, 3]), fakes=1))


def test_fakes_are_refused_for_other_mechanisms() -> None:
    for mechanism in (OUE(1.0, 3),):
        with pytest.raises(InputError, match="OUE does not know what uniform fakes support"):
            mechanism.estimate(mechanism.tally(mechanism.randomize([0, 1, 2])).with_fakes(1))


@pytest.mark.parametrize("mechanism", [ORACLE, OLH(2.0, 3, seed_bytes=4)], ids=lambda m: m.name)
def test_a_tally_with_fakes_goes_over_the_wire(mechanism: Mechanism) -> None:
    survey = Survey(mechanism)
    tally = survey.tally(shuffled(mechanism)).with_fakes(FAKES)
    data = encode_tally(tally)
    assert decode_tally(survey, data) == tally
    assert (describe_tally(data)["reports"], describe_tally(data)["fakes"]) == (PEOPLE, FAKES)
    plain = encode_tally(survey.tally(shuffled(mechanism)))
    assert b"fakes" not in plain
    assert "fakes" not in describe_tally(plain)


@pytest.mark.parametrize(
    "change",
    [
        lambda part: replace(part, fakes=-1),
        lambda part: replace(part, fakes=2**63),
        lambda part: replace(part, weight=91, square=91),
    ],
)
def test_a_tally_with_impossible_fakes_is_refused(change: Callable[[Tally], Tally]) -> None:
    tally = SURVEY.tally(shuffled()).with_fakes(FAKES)
    wrong = replace(tally, parts=(change(tally.part(0)),))
    with pytest.raises(WireError):
        decode_tally(SURVEY, encode_tally(wrong))


def test_surveys_of_several_questions_refuse_fakes() -> None:
    survey = Survey(AllOf(GRR(1.0, 3), GRR(1.0, 3)))
    reports = survey.randomize([0, 1, 2])
    tally = survey.tally(reports)
    with pytest.raises(InputError, match="one question"):
        tally.with_fakes(1)
    with pytest.raises(InputError, match="one question"):
        MemoryCollection(survey, reports, fakes=1).tally()
    wrong = replace(tally, parts=tuple(part.with_fakes(1) for part in tally.parts))
    with pytest.raises(WireError, match="one question"):
        decode_tally(survey, encode_tally(wrong))
    beside = Survey(GRR(1.0, 3), public=[Public("age")])
    with pytest.raises(InputError, match="one question"):
        assert MemoryCollection(beside, beside.randomize([0, 1], public={"age": [1, 2]}), fakes=1).people


def test_people_are_the_reports_less_the_fakes() -> None:
    collected = MemoryCollection(SURVEY, [shuffled()[:50], shuffled()[50:]], fakes=FAKES)
    assert (collected.people, collected.fakes, collected.population, collected.answered(0)) == (90, 30, 90, 90)
    assert collected.tally() == SURVEY.tally(shuffled()).with_fakes(FAKES)
    codes = np.array([0, 2], dtype=np.uint64)
    support = collected.support((0,), codes)
    assert (support.people, support.fakes) == (90, 30)
    assert support.counts.tolist() == collected.tally().part(0).counts[[0, 2]].tolist()
    assert collected.estimate((0,), support).n == 90
    assert collected.fingerprint != MemoryCollection(SURVEY, shuffled()).fingerprint
    kept = TallyCollection(SURVEY, collected.tally())
    assert (kept.people, kept.fakes) == (90, 30)


def test_single_reports_are_refused_with_fakes() -> None:
    collected = MemoryCollection(SURVEY, shuffled(), fakes=FAKES)
    for refused in (
        lambda: collected.reports(),
        lambda: collected.columns(0),
        lambda: collected.joint({0: ["tea"]}),
        lambda: collected.best((0,), None, 1),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match="30 of these reports are fakes"):
            refused()
    plain = MemoryCollection(SURVEY, shuffled())
    assert sum(map(len, plain.reports())) == 120
    assert len(next(plain.columns(0))["value"]) == 120


class Counted(OneRound[Estimate]):
    """A study that never heard of fakes."""

    kind = "counted"
    survey = SURVEY

    def answer(self, collected: Collection) -> Estimate:
        return ORACLE.estimate(replace(collected.tally().part(0), fakes=0))


def test_studies_without_support_for_fakes_refuse_them() -> None:
    collected = MemoryCollection(SURVEY, shuffled(), fakes=FAKES)
    for given in (collected, collected.tally()):
        with pytest.raises(InputError, match="30 of these are fakes"):
            Counted().read(given)
        with pytest.raises(InputError, match="30 of these are fakes"):
            StudyRun(Counted()).answer(given)
    assert Counted().read(MemoryCollection(SURVEY, shuffled())).n == 120


@pytest.mark.parametrize("study", [Histogram(ORACLE), Questions(SURVEY)], ids=lambda study: study.kind)
def test_run_stores_the_number_of_fakes(study: Any, tmp_path: Path) -> None:
    collected = MemoryCollection(SURVEY, shuffled(), fakes=FAKES)
    run = StudyRun(study, tmp_path / "run")
    run.answer(collected)
    again = StudyRun(study, tmp_path / "run")
    assert again.result == run.result == study.read(collected)
    assert again.result is not None
    assert again.result.fakes == FakeLaw(30, Fraction(1, 3), Fraction(0))
    assert again.result.n == again.result.population == 90


def test_results_are_stored_with_their_fakes_or_without_the_key() -> None:
    found = Histogram(ORACLE).read(MemoryCollection(SURVEY, shuffled(), fakes=FAKES))
    for one in (found, found.post("norm-sub"), found.post("norm"), found.difference(found)):
        again = Result.from_json(json.loads(json.dumps(one.to_json())))
        assert again == one
    assert found.to_json()["fakes"] == {"count": 30, "support": "1/3", "pair": "0"}
    assert found.facts()["fakes"] == 30
    plain = Histogram(ORACLE).read(MemoryCollection(SURVEY, shuffled()))
    document = plain.to_json()
    assert "fakes" not in document
    assert "fakes" not in plain.facts()
    assert Result.from_json(document) == plain
    for wrong in (None, 3, {"count": 1}, {"count": 1.5, "support": "1/3", "pair": "0"}):
        with pytest.raises(WireError):
            Result.from_json({**document, "fakes": wrong})


def test_post_processing_accepts_fakes() -> None:
    oracle = GRR(2.0, 70)
    survey, ring = Survey(oracle), ring_of(oracle)
    real = survey.randomize(np.random.default_rng(1).zipf(2.0, 5000) % 70, SeededForExperiments(1))
    fake = Reports(survey.task, survey.layout, ring.decode(ring.uniform(2000, SeededForExperiments(2))))
    found = Histogram(oracle).read(MemoryCollection(survey, [real, fake], fakes=2000))
    from veil.post import METHODS, select

    for name in METHODS:
        made = found.post(name)
        assert made.fakes == found.fakes
        assert np.isfinite(made.interval()).all()
    # the noise that a threshold and a prior see is that of people and fakes
    assert found.post("base-cut").frequencies.astype(bool).sum() <= (
        replace(found, fakes=None).post("base-cut").frequencies.astype(bool).sum()
    )
    assert select(found, "single", ("base", "norm-sub"), runs=3).best == "norm-sub"


def write_arrow(path: Path, fakes: int = FAKES) -> Path:
    with ReportWriter(path, SURVEY, fakes=fakes) as writer:
        writer.write(shuffled())
    return path


def test_files_say_how_many_fakes_they_have(tmp_path: Path) -> None:
    arrow, parquet = write_arrow(tmp_path / "a.arrow"), tmp_path / "b.parquet"
    write_parquet(parquet, SURVEY, [shuffled(seed=9)], fakes=FAKES)
    for path in (arrow, parquet):
        assert count_fakes(path) == FAKES
        collected = FileCollection(SURVEY, [path])
        assert (collected.people, collected.fakes, collected.tally().people) == (90, 30, 90)
        with pytest.raises(WireError, match="uniform fakes among these reports"):
            list(read_reports(path, SURVEY))
        assert sum(map(len, read_reports(path, SURVEY, fakes=True))) == 120
    several = FileCollection(SURVEY, [arrow, parquet, write_arrow(tmp_path / "c.arrow", 0)])
    assert (several.people, several.fakes) == (300, 60)
    assert several.tally() == merge(FileCollection(SURVEY, [one]).tally() for one in several._files)
    assert (tmp_path / "c.arrow").read_bytes().count(b"veil.fakes") == 0


def test_a_file_of_fakes_alone_does_not_appear(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="120 fakes are all there is"):
        write_arrow(tmp_path / "a.arrow", 120)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="120 fakes are all there is"):
        write_parquet(tmp_path / "b.parquet", SURVEY, [shuffled()], fakes=120)


@pytest.mark.parametrize("said", [b"0", b"-1", b"007", b"many", b"1.0", b"", b"9" * 20])
def test_file_with_an_invalid_number_of_fakes_is_refused(said: bytes, tmp_path: Path) -> None:
    schema = arrow_schema(SURVEY)
    schema = schema.with_metadata({**schema.metadata, b"veil.fakes": said})
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(to_arrow(shuffled(), SURVEY))
    with pytest.raises(WireError, match="decimal number"):
        assert FileCollection(SURVEY, [path]).people


def veil(*args: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def test_commands_read_files_with_fakes(tmp_path: Path) -> None:
    study, reports, tally = tmp_path / "study.json", write_arrow(tmp_path / "a.arrow"), tmp_path / "tally.bin"
    study.write_bytes(Histogram(ORACLE).to_bytes())
    said = veil("tally", study, reports, "--out", tally).output
    assert "90 reports and 30 fakes" in " ".join(said.split())
    counted = json.loads(veil("tally", study, reports, "--out", tally, "--json").stdout)
    assert (counted["people"], counted["fakes"]) == (90, 30)
    assert "90 reports and 30 fakes" in " ".join(veil("inspect", tally).stdout.split())
    assert "30 of them are uniform fakes" in " ".join(veil("inspect", reports, "--study", study).stdout.split())
    shown = json.loads(veil("inspect", reports, "--json").stdout)
    assert (shown["reports"], shown["people"], shown["fakes"]) == (120, 90, 30)
    (tmp_path / "other.bin").write_bytes(tally.read_bytes())
    both = tally, tmp_path / "other.bin"
    merged = json.loads(veil("merge", study, *both, "--out", tmp_path / "two.bin", "--json").stdout)
    assert (merged["people"], merged["fakes"]) == (180, 60)
    for collected in (reports, tally):
        found = json.loads(veil("estimate", study, collected, "--json").stdout)
        assert (found["people"], found["fakes"]) == (90, 30)
        assert found["lineage"] == ["GRR(epsilon=3)", "30 uniform fakes removed"]
        printed = " ".join(veil("estimate", study, collected, "--out", tmp_path / "r.result.json").stdout.split())
        assert "30 uniform fakes removed" in printed
    assert json.loads(veil("inspect", tmp_path / "r.result.json", "--json").stdout)["fakes"] == 30
    change = json.loads(veil("difference", study, tally, reports, "--json").stdout)
    assert change["people"] == 180


def test_an_upload_with_fakes_is_refused() -> None:
    batch = to_arrow(shuffled(), SURVEY)
    schema = arrow_schema(SURVEY, FAKES)
    ids = pa.array([bytes([i]) * 16 for i in range(120)], pa.binary(16))
    with_ids = pa.schema([*schema, pa.field("report_id", pa.binary(16), nullable=False)], metadata=schema.metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, with_ids) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, ids], schema=with_ids))
    with pytest.raises(VeilError, match="fakes"):
        frames_of_arrow(SURVEY, sink.getvalue().to_pybytes(), 1000)


def test_guarantee_of_two_collections_counts_fakes_once() -> None:
    """Nobody hides among the fakes of another collection."""
    study = Histogram(GRR(4.0, 4), shuffler=Shuffler(1000, 1e-6, 50))
    ring = ring_of(study.survey)
    reports = [ring.reports(ring.uniform(1050, SeededForExperiments(seed))) for seed in (1, 2)]
    one, both = (study.answer(MemoryCollection(study.survey, reports[:k], fakes=50 * k)).lineage for k in (1, 2))
    assert one[-1] == both[-1]
    assert "among 50 fakes" in both[-1]
