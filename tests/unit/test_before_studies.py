"""Files made before studies: task ids, tallies and readings are what they were, to the last digit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from veil import GRR, Bits, Interval, Piecewise, SquareWave, StudyRun, Survey, study_from_json
from veil.engines import FileCollection
from veil.hitters import PEM, SegmentPairs
from veil.itemsets import PSFO, SVIM, SVSM
from veil.numeric import Binning, HaarHierarchy, Hierarchy, HybridMean, TwoPhaseVariance, WaveDistribution
from veil.study import OneRound, TallyCollection
from veil.wire import decode_tally, encode_tally

FILES = Path(__file__).parent.parent / "fixtures" / "v0.1"
UNITS = Interval(0, 100)


def known(name: str) -> Any:
    return json.loads((FILES / f"{name}.json").read_text())


def survey_of(name: str) -> Survey:
    return Survey.from_json((FILES / f"{name}.task.json").read_bytes())


WAVE = WaveDistribution(SquareWave(2.0, UNITS, buckets=64))
TREE = Hierarchy(2.0, UNITS, buckets=64)
STUDIES: dict[str, tuple[OneRound[Any], dict[str, Callable[[Any], Any]]]] = {
    "square-wave": (WAVE, {"masses": lambda found: found.masses.tolist()}),
    "hierarchy": (TREE, {"exact": lambda found: found.masses.tolist()}),
    "haar-hierarchy": (HaarHierarchy(2.0, UNITS, buckets=64), {"masses": lambda found: found.masses.tolist()}),
    "binning": (Binning(2.0, UNITS, bins=8), {"masses": lambda found: found.masses.tolist()}),
    "hybrid-mean": (
        HybridMean(2.0, UNITS),
        {"value": lambda found: found.value, "stderr": lambda found: found.stderr},
    ),
    "psfo": (
        PSFO(3, GRR, 2.0, 5),
        {"frequencies": lambda found: found.frequencies.tolist(), "stderr": lambda found: found.stderr.tolist()},
    ),
}
SEARCHES: dict[str, OneRound[Any]] = {
    "pem": PEM(4.0, Bits(24), 4, budget=2**10),
    "segment-pairs": SegmentPairs(4.0, Bits(24), 4, segments=2),
}


@pytest.mark.parametrize("name", [*STUDIES, "histogram", "survey"])
def test_a_tally_of_the_reports_is_the_same_bytes(name: str) -> None:
    survey = survey_of(name)
    assert survey.task == known(name)["task"]
    stored = (FILES / f"{name}.tally").read_bytes()
    assert encode_tally(FileCollection(survey, [FILES / f"{name}.arrow"]).tally()) == stored
    assert encode_tally(decode_tally(survey, stored)) == stored


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_reads_what_was_read_before(name: str) -> None:
    study, facts = STUDIES[name]
    assert study.survey.task == known(name)["task"]
    tally = decode_tally(study.survey, (FILES / f"{name}.tally").read_bytes())
    for collected in (TallyCollection(study.survey, tally), FileCollection(study.survey, [FILES / f"{name}.arrow"])):
        found = study.read(collected)
        for fact, look in facts.items():
            # EM's sums are vectorised by the compiler: its last bits may differ from machine to machine
            exact = known(name)[fact]
            assert look(found) == (pytest.approx(exact, rel=1e-10) if name == "square-wave" else exact)


def test_other_readings_of_the_same_reports() -> None:
    tally = decode_tally(TREE.survey, (FILES / "hierarchy.tally").read_bytes())
    for method in ("admm", "consistent"):
        assert replace(TREE, method=method).read(tally).masses.tolist() == known("hierarchy")[method]
        assert TREE.changed(method=method) == replace(TREE, method=method)
    tally = decode_tally(WAVE.survey, (FILES / "square-wave.tally").read_bytes())
    assert replace(WAVE, smoothing="em").read(tally).masses.tolist() == pytest.approx(
        known("square-wave")["em"], rel=1e-10
    )


@pytest.mark.parametrize("name", ["histogram", "survey"])
def test_a_bare_task_is_the_study_of_its_questions(name: str) -> None:
    study = study_from_json((FILES / f"{name}.task.json").read_bytes())
    found = study.read(decode_tally(study.survey, (FILES / f"{name}.tally").read_bytes()))  # type: ignore[attr-defined]
    answers = [found] if name == "histogram" else list(found)
    expected = known(name)
    wanted = [expected["frequencies"]] if name == "histogram" else expected["frequencies"]
    errors = [expected["stderr"]] if name == "histogram" else expected["stderr"]
    assert [one.frequencies.tolist() for one in answers] == wanted
    assert [one.stderr.tolist() for one in answers] == errors


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_finds_what_was_found_before(name: str) -> None:
    study = SEARCHES[name]
    assert study.survey.task == known(name)["task"]
    found = study.read(FileCollection(study.survey, [FILES / f"{name}.arrow"]))
    assert found.values == known(name)["values"]
    assert found.estimates.frequencies.tolist() == known(name)["frequencies"]
    assert found.estimates.stderr.tolist() == known(name)["stderr"]


def answered(run: StudyRun, name: str) -> Any:
    """The rounds of a run, answered with the tallies that 0.1 kept in its folder."""
    tasks = []
    while run.round is not None:
        tasks.append(run.round.survey.task)
        file = FILES / name / f"round-{run.finished:03d}.tally"
        run.answer(decode_tally(run.round.survey, file.read_bytes()))
    assert tasks == known(name)["tasks"]
    return run.result


def same_estimates_with_more_doubt(rows: Any, before: list[list[float]]) -> None:
    """0.1 knew of the factor for what padding misses only how two readings of the sizes differ."""
    assert [row.frequency for row in rows] == [frequency for frequency, *_ in before]
    assert all(row.stderr >= stderr for row, (_, stderr, *_) in zip(rows, before, strict=True))
    assert all(0 <= row.low <= row.frequency <= row.high <= 1 for row in rows)


def test_rounds_of_items_are_read_as_before() -> None:
    found = answered(StudyRun(SVIM(2, 3.0, 30)), "svim")
    assert found.items == known("svim")["items"]
    same_estimates_with_more_doubt(found.rows, known("svim")["rows"])


def test_rounds_of_itemsets_are_read_as_before() -> None:
    found = answered(StudyRun(SVSM(4, 4.0, 9)), "svsm")
    assert [list(items) for items in found.itemsets] == known("svsm")["itemsets"]
    same_estimates_with_more_doubt(found.rows, known("svsm")["rows"])


def test_two_phases_are_read_as_before() -> None:
    found = answered(StudyRun(TwoPhaseVariance(Piecewise, 4.0, Interval(0, 10))), "two-phase")
    assert [found.mean.value, found.mean.stderr] == known("two-phase")["mean"]
    assert [found.variance.value, found.variance.stderr] == known("two-phase")["variance"]
