"""Studies in progress: recorded rounds, replay after an interruption, and damaged records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.stored_reports import FILES, known

from veil import (
    Bits,
    Interval,
    Piecewise,
    StudyRun,
    Survey,
)
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, InputError, MismatchError, VeilError
from veil.hitters import PEM, SegmentPairs
from veil.itemsets import SVIM, SVSM
from veil.numeric import Hierarchy, TwoPhaseVariance
from veil.reports.columns import Reports
from veil.reports.tally import Tally
from veil.study import Continuations
from veil.study.run import FolderJournal
from veil.wire import decode_tally


class Counting(MemoryCollection):
    """Reports that say how often they were gone through, and a process that dies at a given take."""

    def __init__(self, survey: Survey, reports: Reports, dies_at: int | None = None) -> None:
        super().__init__(survey, reports)
        self.takes, self._dies_at = 0, dies_at

    def _take(self) -> None:
        if self.takes == self._dies_at:
            raise KeyboardInterrupt
        self.takes += 1

    def tally(self, questions: Any = None, candidates: Mapping[int, Any] | None = None) -> Any:
        self._take()
        return super().tally(questions, candidates)

    def best(self, questions: Any, continuations: Continuations, keep: int) -> Tally:
        self._take()
        return super().best(questions, continuations, keep)

    def joint(self, candidates: Mapping[int, Any]) -> Any:
        self._take()
        return super().joint(candidates)


@pytest.mark.parametrize("study", [PEM(4.0, Bits(24), 3, budget=2**10), SegmentPairs(6.0, Bits(16), 2, segments=2)])
def test_an_interrupted_search_continues_after_its_last_record(study: Any, tmp_path: Path) -> None:
    reports = study.survey.randomize([7] * 3000 + [40_000] * 2000, SeededForExperiments(1))
    whole = study.read(MemoryCollection(study.survey, reports))
    undisturbed = Counting(study.survey, reports)
    study.read(undisturbed)
    taken = 0
    for dies_at in range(undisturbed.takes):
        run = StudyRun(study, tmp_path / str(dies_at))
        with pytest.raises(KeyboardInterrupt):
            run.answer(Counting(study.survey, reports, dies_at))
        again = StudyRun(study, tmp_path / str(dies_at))
        assert again.round is not None
        rest = Counting(study.survey, reports)
        again.answer(rest)
        taken += rest.takes
        assert again.result.values == whole.values  # type: ignore[union-attr]
        assert again.result.estimates.frequencies.tolist() == whole.estimates.frequencies.tolist()  # type: ignore[union-attr]
        replayed = StudyRun(study, tmp_path / str(dies_at)).result
        assert replayed.values == whole.values  # type: ignore[union-attr]
    takes = undisturbed.takes
    assert taken == takes * (takes + 1) // 2  # what was taken before was not taken again


def test_different_reports_are_refused_when_a_run_continues(tmp_path: Path) -> None:
    study = PEM(4.0, Bits(24), 3, budget=2**10)
    reports = study.survey.randomize([7] * 3000 + [40_000] * 2000, SeededForExperiments(1))
    with pytest.raises(KeyboardInterrupt):
        StudyRun(study, tmp_path).answer(Counting(study.survey, reports, 2))
    taken = sorted(tmp_path.iterdir())
    with pytest.raises(MismatchError, match="5,000 reports and now has 4,000"):
        StudyRun(study, tmp_path).answer(MemoryCollection(study.survey, reports[slice(0, 4000)]))
    assert sorted(tmp_path.iterdir()) == taken  # what was taken before is still there
    others = study.survey.randomize([7] * 3000 + [40_000] * 2000, SeededForExperiments(2))
    with pytest.raises(MismatchError, match="other reports"):
        StudyRun(study, tmp_path).answer(MemoryCollection(study.survey, others))
    run, rest = StudyRun(study, tmp_path), Counting(study.survey, reports)
    run.answer(rest)
    assert run.result.values[:2] == [7, 40_000]  # type: ignore[union-attr]
    assert rest.takes == len(study.lengths) - 2


def test_an_interrupted_run_continues_in_the_same_process() -> None:
    study = PEM(4.0, Bits(24), 2, budget=2**10)
    reports = study.survey.randomize([7] * 3000 + [40_000] * 2000, SeededForExperiments(1))
    run = StudyRun(study)
    with pytest.raises(KeyboardInterrupt):
        run.answer(Counting(study.survey, reports, 1))
    assert run.round is not None
    assert run.result is None
    run.answer(MemoryCollection(study.survey, reports))
    assert run.result.values == [7, 40_000]  # type: ignore[attr-defined]


def test_a_refused_answer_leaves_the_round_open(tmp_path: Path) -> None:
    study = PEM(4.0, Bits(16), 2, budget=2**10)
    asked = study.survey
    reports = asked.randomize([7] * 3000 + [40_000] * 2000, SeededForExperiments(1))
    run = StudyRun(study, tmp_path)
    with pytest.raises(InputError, match="reports themselves"):
        run.answer(asked.tally(reports, {i: [1] for i in range(len(asked.questions))}))
    with pytest.raises(EmptyError):
        run.answer(MemoryCollection(asked, reports[:0]))
    assert list(tmp_path.iterdir()) == []
    run.answer(MemoryCollection(asked, reports))
    assert run.result.values == [7, 40_000]  # type: ignore[union-attr]
    with pytest.raises(InputError, match="finished"):
        run.answer(MemoryCollection(asked, reports))


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    study = Hierarchy(1.0, 20)
    run = StudyRun(study, tmp_path)
    run.answer(study.survey.tally(study.survey.randomize(np.arange(2000) % 20, SeededForExperiments(1))))
    for file in sorted(tmp_path.iterdir()):
        data = file.read_bytes()
        for damage in (b"", data[:-1], data[:10] + b"x" + data[11:]):
            file.write_bytes(damage)
            with pytest.raises(VeilError):
                StudyRun(study, tmp_path)
        file.write_bytes(data)
    with pytest.raises(MismatchError):
        StudyRun(Hierarchy(1.0, 21), tmp_path)
    assert StudyRun(study, tmp_path).round is None


def test_a_journal_forgets_all_records_of_a_round(tmp_path: Path) -> None:
    journal = FolderJournal(tmp_path)
    for i in range(3):
        journal.write(0, i, b"x")
    journal.write(1, 0, b"y")
    for i in range(3, 1002):  # their names grow longer
        journal.write(0, i, b"x")
    journal.forget(0)
    assert journal.read(0, 0) is None
    assert journal.read(0, 1001) is None
    assert journal.read(1, 0) == b"y"


def answered(run: StudyRun, name: str) -> Any:
    """The rounds of a run, answered with the tallies of its stored folder."""
    tasks = []
    while run.round is not None:
        tasks.append(run.round.survey.task)
        file = FILES / name / f"round-{run.finished:03d}.tally"
        run.answer(decode_tally(run.round.survey, file.read_bytes()))
    assert tasks == known(name)["tasks"]
    return run.result


def assert_estimates_with_larger_errors(rows: Any, before: list[list[float]]) -> None:
    """Compare with version 0.1, whose errors of the factor for padding were too small."""
    assert [row.frequency for row in rows] == [frequency for frequency, *_ in before]
    assert all(row.stderr >= stderr for row, (_, stderr, *_) in zip(rows, before, strict=True))
    assert all(0 <= row.low <= row.frequency <= row.high <= 1 for row in rows)


def test_stored_rounds_of_svim_give_the_stored_items() -> None:
    found = answered(StudyRun(SVIM(2, 3.0, 30)), "svim")
    assert found.items == known("svim")["items"]
    assert_estimates_with_larger_errors(found.rows, known("svim")["rows"])


def test_stored_rounds_of_svsm_give_the_stored_itemsets() -> None:
    found = answered(StudyRun(SVSM(4, 4.0, 9)), "svsm")
    assert [list(items) for items in found.itemsets] == known("svsm")["itemsets"]
    assert_estimates_with_larger_errors(found.rows, known("svsm")["rows"])


def test_stored_rounds_of_two_phase_variance_give_the_stored_values() -> None:
    found = answered(StudyRun(TwoPhaseVariance(Piecewise, 4.0, Interval(0, 10))), "two-phase")
    assert [found.mean.value, found.mean.stderr] == known("two-phase")["mean"]
    assert [found.variance.value, found.variance.stderr] == known("two-phase")["variance"]
