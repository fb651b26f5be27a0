"""The same study with another epsilon: equal to one planned with it, for every mechanism and kind of study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from veil import GRR, MECHANISMS, OLH, AllOf, Bits, Integers, Interval, Items, Public, Record, Survey, Text
from veil.errors import InputError, ParameterError
from veil.histogram import Histogram, Questions
from veil.hitters import PEM, EveryPrefix, MultipleChannel, PrefixSearch, PrivTrie, SegmentPairs
from veil.itemsets import PSFO, SVIM, SVSM, ItemMining, LDPMiner, Phase
from veil.marginals import CALM, AllMarginals, BinaryCALM, FourierMarginals, FullContingency, SplitEM
from veil.mechanisms import FrequencyOracle, HaarResponse, LinearHashing, Piecewise, SquareWave
from veil.numeric import Binning, HaarHierarchy, Hierarchy, HybridMean, MeanOf, TwoPhaseVariance, WaveDistribution
from veil.planning.rebuilding import at_epsilon
from veil.sql import SC, Measure, Table
from veil.study import STUDIES, Study
from veil.survey import OneOf, Question
from veil.view import SampleItem

HELD = Interval(0, 10)
STUDY_OF: list[Callable[[float], Study]] = [
    lambda e: Questions(Survey(OneOf((1, GRR(e, 3)), (2, OLH(e, 3)))), question=1),
    lambda e: Questions(Survey(OLH(e, 3), public=[Public("weight", 2)])),
    lambda e: Histogram(OLH(e, 100), post="norm-sub"),
    lambda e: PEM(e, Text(8), 4),
    lambda e: PEM(e, Bits(32), 4, oracle="PGR", budget=2**12, threshold=0.1),
    lambda e: SVSM(4, e, Items(50)),
    lambda e: SVSM(4, e, Items(50), items=LDPMiner(4, e, Items(50))),
    lambda e: SVIM(4, e, Items(50)),
    lambda e: LDPMiner(4, e, Items(50), improved=False),
    lambda e: ItemMining(4, e, Items(50), prune=Phase(OLH, 1), estimate=Phase(OLH, "candidates")),
    lambda e: PSFO(3, GRR, e, 20),
    lambda e: PSFO(10, OLH, e, 20, delta=1e-3),
    lambda e: Hierarchy(e, HELD, 64, method="admm"),
    lambda e: HaarHierarchy(e, HELD, 64),
    lambda e: Binning(e, HELD, 8),
    lambda e: HybridMean(e, HELD),
    lambda e: TwoPhaseVariance(Piecewise, e, HELD),
    lambda e: WaveDistribution(SquareWave(e, HELD, 64), smoothing="em"),
    lambda e: MeanOf(Piecewise(e, HELD)),
    lambda e: PrivTrie(e, Bits(32), 4, people=10**6),
    lambda e: SegmentPairs(e, Bits(32), 4),
    lambda e: MultipleChannel(e, Bits(32), 4),
    lambda e: PrefixSearch(e, Bits(16), 4, 8, (8, 16)),
    lambda e: EveryPrefix(e, Bits(16), 4, 8, (8, 16), hash_range=9),
    lambda e: CALM(e, Record.of(a=2, b=2, c=2, d=2, e=2, f=2, g=2, h=3), users=2**16),
    lambda e: BinaryCALM(e, Record.of(a=2, b=3, c=5), k=2, users=2**16),
    lambda e: AllMarginals(e, Record.of(a=2, b=3, c=5), k=2),
    lambda e: FullContingency(e, Record.of(a=2, b=3, c=5)),
    lambda e: FourierMarginals(e, Record.of(a=2, b=3, c=5), k=2),
    lambda e: SplitEM(e, Record.of(a=2, b=3, c=5), k=2),
    lambda e: Table(e, Record.of(age=Integers(0, 999), b=3), (Measure("spent", 2),)),  # trees follow from epsilon
    lambda e: Table(e, Record.of(age=Integers(0, 999), b=3), (), SC(5)),
]


@pytest.mark.parametrize("made", STUDY_OF)
def test_a_study_is_as_if_planned_with_the_other_epsilon(made: Callable[[float], Study]) -> None:
    found = at_epsilon(made(0.5), 3.0)
    assert found == made(3.0)
    assert found.to_bytes() == made(3.0).to_bytes()
    assert at_epsilon(found, 0.5) == made(0.5)


def test_examples_cover_all_kinds_of_studies() -> None:
    assert {made(1.0).kind for made in STUDY_OF} >= set(STUDIES)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_as_if_made_with_the_other_epsilon(name: str) -> None:
    kind = MECHANISMS[name]
    domain: Any = 64 if issubclass(kind, (FrequencyOracle, HaarResponse)) else HELD
    domain = Bits(16) if kind is LinearHashing else domain
    assert at_epsilon(Questions(Survey(kind(1.0, domain))), 2.0) == Questions(Survey(kind(2.0, domain)))


def test_explicit_arguments_stay_at_another_epsilon() -> None:
    kept = at_epsilon(PEM(0.5, Bits(32), 4, last=7), 3.0)
    assert (kept.last, kept.fit) == (7, True)
    changed = at_epsilon(Histogram(OLH(1.0, 100, hash_range=2)), 3.0)
    assert changed.oracle == OLH(3.0, 100, hash_range=2)


def test_at_epsilon_refuses_studies_that_must_be_planned_again() -> None:
    with pytest.raises(InputError, match="plan it again"):
        at_epsilon(Questions(Survey(AllOf(GRR(1.0, 3), GRR(1.0, 3)))), 2.0)
    view = SampleItem(Items(5), 3)
    with pytest.raises(InputError, match="plan it again"):
        at_epsilon(Questions(Survey(Question(GRR(1.0, view.domain), view))), 2.0)
    with pytest.raises(ParameterError):
        at_epsilon(Histogram(GRR(1.0, 3)), -1.0)
