"""Studies: study files both ways, parameters of readings, and stored reports with their stored results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.support.stored_reports import FILES, known

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
    Survey,
    TallyCollection,
    Text,
    simulate,
    study_from_json,
)
from veil.accounting import Shuffler
from veil.engines import FileCollection, MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError, MismatchError, WireError
from veil.histogram import Histogram, Questions
from veil.hitters import PEM, EveryPrefix, MultipleChannel, PrivTrie, SegmentPairs, tree_hist
from veil.itemsets import PSFO, SVIM, SVSM, ItemMining, LDPMiner, Phase
from veil.marginals import CALM, AllMarginals, BinaryCALM, FourierMarginals, FullContingency, SplitEM
from veil.numeric import Binning, HaarHierarchy, Hierarchy, HybridMean, MeanOf, TwoPhaseVariance, WaveDistribution
from veil.privacy import Guarantee
from veil.sql import HI, HIO, MG, SC, Category, Grids, Measure, Moment, Table
from veil.study import Collection, OneRound, Round, Rounds
from veil.tools.json_documents import canonical
from veil.wire import decode_tally

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

HUNDRED = Interval(0, 100)
WAVE = WaveDistribution(SquareWave(2.0, HUNDRED, buckets=64))
TREE = Hierarchy(2.0, HUNDRED, buckets=64)
STORED: dict[str, tuple[OneRound[Any], dict[str, Callable[[Any], Any]]]] = {
    "square-wave": (WAVE, {"masses": lambda found: found.masses.tolist()}),
    "hierarchy": (TREE, {"exact": lambda found: found.masses.tolist()}),
    "haar-hierarchy": (HaarHierarchy(2.0, HUNDRED, buckets=64), {"masses": lambda found: found.masses.tolist()}),
    "binning": (Binning(2.0, HUNDRED, bins=8), {"masses": lambda found: found.masses.tolist()}),
    "hybrid-mean": (
        HybridMean(2.0, HUNDRED),
        {"value": lambda found: found.value, "stderr": lambda found: found.stderr},
    ),
    "psfo": (
        PSFO(3, GRR, 2.0, 5),
        {"frequencies": lambda found: found.frequencies.tolist(), "stderr": lambda found: found.stderr.tolist()},
    ),
}
STORED_SEARCHES: dict[str, OneRound[Any]] = {
    "pem": PEM(4.0, Bits(24), 4, budget=2**10),
    "segment-pairs": SegmentPairs(4.0, Bits(24), 4, segments=2),
}


def test_the_examples_contain_every_kind_of_study() -> None:
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
def test_the_guarantee_is_within_epsilon(study: Study) -> None:
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


def test_parameters_of_the_reading_can_be_changed_and_others_are_refused() -> None:
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


def test_a_search_reads_the_same_reports_with_another_k() -> None:
    study = PEM(4.0, Bits(32), 4, budget=2**12)
    reports = study.survey.randomize([7] * 6000 + [2**31] * 4000, SeededForExperiments(1))
    assert study.changed(k="2").survey.task == study.survey.task
    found = study.changed(k="2", threshold="0.05").read(MemoryCollection(study.survey, reports))
    assert found.values == [7, 2**31]


def test_candidates_are_required_for_large_domains() -> None:
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


def test_a_collection_of_another_study_is_refused() -> None:
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
def test_means_of_a_round_are_about_the_whole_population(mechanism: Any) -> None:
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
def test_results_of_a_share_have_the_whole_population(inner: Any) -> None:
    values = [[1]] * 4000 if inner.kind == "psfo" else [1] * 4000
    found = simulate(Half(inner), values, seed=1)
    assert (found.n, found.population) == (2000, 4000)


def test_privtrie_counts_the_people_that_it_asked() -> None:
    study = PrivTrie(6.0, Bits(16), 2, people=20_000)
    found = simulate(study, [0xABCD] * 10_000 + [0x1234] * 10_000)
    assert found.n == sum(step.people for step in found.history) < 20_000
    assert found.population == pytest.approx(20_000, rel=0.001)


def test_the_text_none_is_no_value() -> None:
    assert PEM(3.0, Text(8), 4, alphabet="abc", groups=2).changed(alphabet="none").alphabet is None
    assert Histogram(GRR(1.0, 3), post="norm-sub").changed(post="none").post is None
    with pytest.raises(InputError):
        Questions(Survey(GRR(1.0, 3)), question=0.0)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Hierarchy(1.0, 20, method="consistent", total=float("nan"))


def test_estimates_from_a_share_have_the_whole_population() -> None:
    found = simulate(SVIM(2, 4.0, 30), [[0, 1]] * 4000 + [[1]] * 4000, seed=1)
    assert found.estimate.population == 8000
    assert found.estimate.n < 4000
    whole = simulate(Questions(Survey(OneOf((1, GRR(4.0, 2)), (1, OUE(4.0, 2))))), [0, 1] * 500, seed=1)
    assert [one.population for one in whole] == [1000, 1000]


@pytest.mark.parametrize("name", STORED)
def test_stored_reports_give_the_stored_results(name: str) -> None:
    study, facts = STORED[name]
    assert study.survey.task == known(name)["task"]
    tally = decode_tally(study.survey, (FILES / f"{name}.tally").read_bytes())
    for collected in (TallyCollection(study.survey, tally), FileCollection(study.survey, [FILES / f"{name}.arrow"])):
        found = study.read(collected)
        for fact, look in facts.items():
            # EM's sums are vectorised by the compiler: its last bits may differ from machine to machine
            exact = known(name)[fact]
            assert look(found) == (pytest.approx(exact, rel=1e-10) if name == "square-wave" else exact)


def test_stored_tallies_give_the_stored_results_of_other_methods() -> None:
    tally = decode_tally(TREE.survey, (FILES / "hierarchy.tally").read_bytes())
    for method in ("admm", "consistent"):
        assert replace(TREE, method=method).read(tally).masses.tolist() == known("hierarchy")[method]
        assert TREE.changed(method=method) == replace(TREE, method=method)
    tally = decode_tally(WAVE.survey, (FILES / "square-wave.tally").read_bytes())
    assert replace(WAVE, smoothing="em").read(tally).masses.tolist() == pytest.approx(
        known("square-wave")["em"], rel=1e-10
    )


@pytest.mark.parametrize("name", ["histogram", "survey"])
def test_a_stored_bare_task_is_read_question_by_question(name: str) -> None:
    study = study_from_json((FILES / f"{name}.task.json").read_bytes())
    found = study.read(decode_tally(study.survey, (FILES / f"{name}.tally").read_bytes()))  # type: ignore[attr-defined]
    answers = [found] if name == "histogram" else list(found)
    expected = known(name)
    wanted = [expected["frequencies"]] if name == "histogram" else expected["frequencies"]
    errors = [expected["stderr"]] if name == "histogram" else expected["stderr"]
    assert [one.frequencies.tolist() for one in answers] == wanted
    assert [one.stderr.tolist() for one in answers] == errors


@pytest.mark.parametrize("name", STORED_SEARCHES)
def test_stored_reports_of_a_search_give_the_stored_values(name: str) -> None:
    study = STORED_SEARCHES[name]
    assert study.survey.task == known(name)["task"]
    found = study.read(FileCollection(study.survey, [FILES / f"{name}.arrow"]))
    assert found.values == known(name)["values"]
    assert found.estimates.frequencies.tolist() == known(name)["frequencies"]
    assert found.estimates.stderr.tolist() == known(name)["stderr"]


def test_the_abstract_methods_of_a_collection_are_these() -> None:
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
