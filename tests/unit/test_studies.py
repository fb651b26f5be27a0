"""Studies: files both ways, readings that may change and askings that may not, runs that are recorded and replayed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from veil import (
    GRR,
    OLH,
    OUE,
    STUDIES,
    AllOf,
    Bits,
    Interval,
    Items,
    OneOf,
    Piecewise,
    Public,
    Record,
    SquareWave,
    StochasticRounding,
    Study,
    StudyRun,
    Survey,
    TallyCollection,
    Text,
    simulate,
    study_from_json,
)
from veil.accounting import Shuffler
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, InputError, MismatchError, VeilError, WireError
from veil.histogram import Histogram, Questions
from veil.hitters import PEM, EveryPrefix, MultipleChannel, PrivTrie, SegmentPairs, tree_hist
from veil.itemsets import PSFO, SVIM, SVSM, ItemMining, LDPMiner, Phase
from veil.marginals import CALM, AllMarginals, BinaryCALM, FourierMarginals, FullContingency, SplitEM
from veil.numeric import Binning, HaarHierarchy, Hierarchy, HybridMean, MeanOf, TwoPhaseVariance, WaveDistribution
from veil.privacy import Guarantee
from veil.reports.columns import Reports
from veil.reports.tally import Tally
from veil.sql import HI, HIO, MG, SC, Category, Grids, Measure, Moment, Table
from veil.study import Collection, Continuations, OneRound, Round, Rounds
from veil.study.run import FolderJournal
from veil.tools.json_documents import canonical

UNIT = Interval(0.0, 1.0)
RECORD = Record.of(a=2, b=3, c=2)
EVERY: list[Study] = [
    Questions(Survey(AllOf(GRR(1.0, 3), OUE(0.5, 3))), question=1, post="norm-sub"),
    Histogram(OLH(1.0, ["tea", "coffee"]), post="base-cut"),
    Histogram(OLH(1.0, Text(20)), candidates=("tea", "water")),
    Histogram(GRR(1.0, 3), shuffler=Shuffler(1_000, 1e-6)),
    WaveDistribution(SquareWave(1.0, UNIT, buckets=32), smoothing=0.125),
    Hierarchy(1.0, UNIT, buckets=32, method="consistent", total=1.0),
    HaarHierarchy(0.1, 20),
    Binning(1.0, UNIT, bins=8),
    MeanOf(StochasticRounding(1.0, UNIT)),
    HybridMean(2.0, UNIT),
    TwoPhaseVariance(Piecewise, 4.0, UNIT),
    TwoPhaseVariance(HybridMean, 4.0, UNIT),
    PEM(3.0, Text(8), 4, alphabet="abc", threshold=0.01),
    PEM(1.0, Bits(64), 16, oracle="PGR"),
    tree_hist(1.0, Bits(20), 4),
    EveryPrefix(6.0, Bits(16), 4, 4, (8, 16), hash_range=20),
    SegmentPairs(1.0, Bits(64), 16),
    MultipleChannel(1.0, Bits(32), 4, improved=False),
    PrivTrie(4.0, Bits(16), 3, people=20_000),
    PSFO(3, GRR, 2.0, Items(["a", "b", "c"]), candidates=((0,), (0, 2))),
    PSFO(3, OLH, 2.0, 5, delta=0.001),
    ItemMining(2, 1.0, 5, prune=Phase(GRR, 2), estimate=Phase(OUE, 1)),
    SVIM(2, 3.0, 30, sizes="threshold"),
    LDPMiner(2, 3.0, 30, improved=False),
    SVSM(2, 3.0, 30, items=LDPMiner(2, 3.0, 30)),
    CALM(1.0, RECORD, k=2, users=10_000, marginal=("b",), given=("a",)),
    CALM(1.0, RECORD, k=2, sets=(("a", "b"), ("c",)), inference="graphical"),
    FullContingency(1.0, RECORD, k=2),
    AllMarginals(1.0, RECORD, k=2, inference="consistent"),
    FourierMarginals(1.0, RECORD, k=2),
    SplitEM(1.0, RECORD, k=2),
    BinaryCALM(1.0, RECORD, k=2, users=10_000),
    Table(1.0, RECORD, (Measure("spent", 2), Category("os", ("a", "b"))), query="SELECT SUM(spent) FROM people"),
    Table(1.0, RECORD, (Moment("day"),), HIO(5, most=2), reading="plain", name="shop"),
    Table(1.0, RECORD, (), HI(5)),
    Table(1.0, RECORD, (), SC(levels="sampled")),
    Table(1.0, RECORD, (), MG(2)),
    Table(1.0, RECORD, (), Grids()),
]


# -- files -------------------------------------------------------------------------------------------------------------


def test_every_kind_of_study_is_here() -> None:
    assert {study.kind for study in EVERY} == set(STUDIES)
    assert all(kind.kind == name for name, kind in STUDIES.items())


@pytest.mark.parametrize("study", EVERY, ids=lambda study: study.kind)
def test_a_study_is_read_back_from_its_file(study: Study) -> None:
    data = study.to_bytes()
    again = study_from_json(data)
    assert again == study
    assert hash(again) == hash(study)
    assert again.to_bytes() == data
    assert again.survey == study.survey
    assert again.guarantee == study.guarantee
    assert study.guarantee.covers(study.survey.guarantee)
    task = json.loads(data)["task"]
    assert canonical(task) == study.survey.to_bytes()  # byte for byte what devices get
    assert study_from_json(task) == Questions(study.survey)


@pytest.mark.parametrize("study", EVERY, ids=lambda study: study.kind)
def test_the_guarantee_is_that_of_epsilon(study: Study) -> None:
    epsilon = getattr(study, "epsilon", None)
    if epsilon is not None:
        assert study.guarantee.within(epsilon)


def damaged() -> Iterator[tuple[str, Any]]:
    document = json.loads(Hierarchy(1.0, 20).to_bytes())
    yield "another version", document | {"version": 2}
    yield "another kind", document | {"study": document["study"] | {"kind": "nothing"}}
    yield "no kind", document | {"study": {}}
    yield "a parameter more", document | {"study": document["study"] | {"more": 1}}
    yield "a parameter less", document | {"study": {k: v for k, v in document["study"].items() if k != "method"}}
    yield "a parameter of another type", document | {"study": document["study"] | {"weighted": "yes"}}
    yield "a method that there is not", document | {"study": document["study"] | {"method": "magic"}}
    yield "an epsilon of nothing", document | {"study": document["study"] | {"epsilon": "0"}}
    yield "another epsilon", document | {"study": document["study"] | {"epsilon": "1.5"}}
    yield "another task", document | {"task": Hierarchy(1.5, 20).survey.to_json()}
    yield "no task", {key: value for key, value in document.items() if key != "task"}
    yield "a list", [document]
    yield "truncated", Hierarchy(1.0, 20).to_bytes()[:-7]
    yield "empty", b""


@pytest.mark.parametrize(("name", "document"), list(damaged()), ids=lambda part: part if isinstance(part, str) else "")
def test_a_damaged_study_file_is_one_clear_error(name: str, document: Any) -> None:
    with pytest.raises((WireError, MismatchError, InputError)) as caught:
        study_from_json(document)
    assert len(str(caught.value).splitlines()) == 1
    if name == "another epsilon":
        assert "changed" in str(caught.value)


def test_a_study_file_without_a_parameter_is_refused() -> None:
    document = json.loads(WaveDistribution(SquareWave(1.0, UNIT)).to_bytes())
    del document["study"]["smoothing"]
    with pytest.raises(WireError, match="has the parameters"):
        study_from_json(document)


# -- readings ----------------------------------------------------------------------------------------------------------


def test_readings_may_change_and_askings_may_not() -> None:
    study = Hierarchy(1.0, 20)
    assert study.changed(method="admm", weighted="yes") == replace(study, method="admm", weighted=True)
    assert WaveDistribution(SquareWave(1.0, UNIT)).changed(smoothing="0.125").smoothing == 0.125
    with pytest.raises(InputError, match=r"expected a parameter of hierarchy \(epsilon, .*'magic'"):
        study.changed(magic="1")
    with pytest.raises(InputError, match="exact, admm or consistent"):
        study.changed(method="magic")
    with pytest.raises(MismatchError, match="what people are asked"):
        study.changed(epsilon="2")
    with pytest.raises(InputError, match="yes or no"):
        study.changed(weighted="perhaps")
    with pytest.raises(InputError, match="cannot be set"):
        study.changed(domain="20")


def test_bands_are_a_parameter_of_the_reading() -> None:
    study = Hierarchy(2.0, UNIT, buckets=16, bands=0)
    values = np.linspace(0.2, 0.8, 5000)
    tally = study.survey.tally(study.survey.randomize(values, SeededForExperiments(1)))
    plain, banded = study.read(tally), study.changed(bands="20").read(tally)
    assert plain.bands is None
    assert banded.bands is not None
    assert banded.masses.tolist() == plain.masses.tolist()
    low, high = banded.bands.mean()
    assert low < plain.mean() < high
    with pytest.raises(InputError, match="at least 10"):
        study.changed(bands="3")


def test_public_columns_beside_a_study_change_nothing_in_its_reading() -> None:
    study = Hierarchy(2.0, UNIT, buckets=16, public=[Public("spent", 2)], bands=10)
    assert study_from_json(study.to_bytes()) == study
    values = np.linspace(0.2, 0.8, 3000)
    reports = study.survey.randomize(values, SeededForExperiments(1), {"spent": np.arange(3000)})
    found = study.read(study.survey.tally(reports))
    assert found.proper
    assert found.guarantee == study.guarantee


def test_a_search_looks_for_another_number_of_values_in_the_same_reports() -> None:
    study = PEM(4.0, Bits(32), 4, budget=2**12)
    reports = study.survey.randomize([7] * 6000 + [2**31] * 4000, SeededForExperiments(1))
    assert study.changed(k="2").survey.task == study.survey.task
    found = study.changed(k="2", threshold="0.05").read(MemoryCollection(study.survey, reports))
    assert found.values == [7, 2**31]


def test_candidates_are_taken_where_there_are_too_many_values() -> None:
    study = Histogram(OLH(4.0, Text(20)))
    reports = study.survey.randomize(["tea"] * 700 + ["water"] * 300, SeededForExperiments(1))
    found = study.with_candidates(["tea", "water"]).read(MemoryCollection(study.survey, reports))
    assert found.values == ["tea", "water"]
    with pytest.raises(InputError, match="candidates"):
        study.read(MemoryCollection(study.survey, reports))
    with pytest.raises(InputError, match="takes no candidates"):
        Hierarchy(1.0, 20).with_candidates([1])
    tally = study.survey.tally(reports, {0: ["tea"]})
    with pytest.raises(MismatchError, match="other candidates"):
        study.with_candidates(["tea", "water"]).read(tally)


def test_what_was_collected_for_another_study_is_refused() -> None:
    mine, other = Hierarchy(1.0, 20), Hierarchy(1.1, 20)
    tally = other.survey.tally(other.survey.randomize(np.arange(200) % 20, SeededForExperiments(1)))
    for wrong in (tally, TallyCollection(other.survey, tally), None, [tally]):
        with pytest.raises(MismatchError):
            mine.read(wrong)  # type: ignore[arg-type]
    with pytest.raises(MismatchError):
        TallyCollection(mine.survey, tally)
    search = PEM(1.0, Bits(8), 2)
    asked = search.survey
    counted = asked.tally(asked.randomize([1, 2, 3] * 9), {i: [1] for i in range(len(asked.questions))})
    with pytest.raises(InputError, match="reports themselves"):
        search.read(counted)


@pytest.mark.parametrize("mechanism", [Piecewise, HybridMean])
def test_means_of_a_round_speak_of_everybody(mechanism: Any) -> None:
    found = simulate(TwoPhaseVariance(mechanism, 2.0, UNIT), [0.5] * 4000)
    assert (found.mean.n, found.mean.population) == (2000, 4000)
    assert found.population == 4000


@dataclass(frozen=True)
class Half(Study):
    """The first half of the people alone."""

    inner: OneRound[Any]
    kind: ClassVar[str] = "half"

    @property
    def guarantee(self) -> Guarantee:
        return self.inner.guarantee

    def rounds(self) -> Rounds:
        return self.inner.read((yield Round(self.inner.survey, Fraction(1, 2))))


@pytest.mark.parametrize(
    "inner",
    [
        Histogram(GRR(2.0, 4)),
        Questions(Survey(OneOf((1, GRR(2.0, 4)), (1, OUE(2.0, 4))))),
        Hierarchy(2.0, 4),
        HaarHierarchy(2.0, 4),
        Binning(2.0, 4, bins=2),
        WaveDistribution(SquareWave(2.0, 4)),
        MeanOf(Piecewise(2.0, 4)),
        HybridMean(2.0, 4),
        PSFO(1, GRR, 2.0, 4),
    ],
    ids=lambda inner: inner.kind,
)
def test_every_study_knows_how_many_people_a_share_stands_for(inner: Any) -> None:
    values = [[1]] * 4000 if inner.kind == "psfo" else [1] * 4000
    found = simulate(Half(inner), values, seed=1)
    assert (found.n, found.population) == (2000, 4000)


def test_a_trie_says_how_many_people_it_asked() -> None:
    study = PrivTrie(6.0, Bits(16), 2, people=20_000)
    found = simulate(study, [0xABCD] * 10_000 + [0x1234] * 10_000)
    assert found.n == sum(step.people for step in found.history) < 20_000
    assert found.population == pytest.approx(20_000, rel=0.001)


def test_none_is_no_text() -> None:
    assert PEM(3.0, Text(8), 4, alphabet="abc", groups=2).changed(alphabet="none").alphabet is None
    assert Histogram(GRR(1.0, 3), post="norm-sub").changed(post="none").post is None
    with pytest.raises(InputError):
        Questions(Survey(GRR(1.0, 3)), question=0.0)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Hierarchy(1.0, 20, method="consistent", total=float("nan"))


def test_a_round_asks_a_share_and_estimates_speak_of_everybody() -> None:
    found = simulate(SVIM(2, 4.0, 30), [[0, 1]] * 4000 + [[1]] * 4000, seed=1)
    assert found.estimate.population == 8000
    assert found.estimate.n < 4000
    whole = simulate(Questions(Survey(OneOf((1, GRR(4.0, 2)), (1, OUE(4.0, 2))))), [0, 1] * 500, seed=1)
    assert [one.population for one in whole] == [1000, 1000]


# -- runs --------------------------------------------------------------------------------------------------------------


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
def test_a_search_that_was_broken_off_goes_on_where_it_was(study: Any, tmp_path: Path) -> None:
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


def test_other_reports_are_refused_in_the_middle_of_a_reading(tmp_path: Path) -> None:
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


def test_a_run_goes_on_in_the_same_process_after_an_interruption() -> None:
    study = PEM(4.0, Bits(24), 2, budget=2**10)
    reports = study.survey.randomize([7] * 3000 + [40_000] * 2000, SeededForExperiments(1))
    run = StudyRun(study)
    with pytest.raises(KeyboardInterrupt):
        run.answer(Counting(study.survey, reports, 1))
    assert run.round is not None
    assert run.result is None
    run.answer(MemoryCollection(study.survey, reports))
    assert run.result.values == [7, 40_000]  # type: ignore[attr-defined]


def test_what_is_refused_leaves_the_round_to_be_answered(tmp_path: Path) -> None:
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


def test_a_damaged_record_is_one_clear_error(tmp_path: Path) -> None:
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


def test_takes_are_forgotten_from_the_last_to_the_first(tmp_path: Path) -> None:
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


def test_collected_is_a_contract() -> None:
    assert Collection.__abstractmethods__ == {
        "people",
        "fingerprint",
        "answered",
        "tally",
        "support",
        "best",
        "joint",
        "columns",
        "reports",
    }
