"""All kinds of studies: a new one works everywhere by joining this list."""

from __future__ import annotations

from typing import Any

from veil.errors import WireError
from veil.histogram import Histogram, Questions
from veil.hitters import PEM, EveryPrefix, MultipleChannel, PrefixSearch, PrivTrie, SegmentPairs
from veil.itemsets import PSFO, SVIM, SVSM, ItemMining, LDPMiner
from veil.marginals import CALM, AllMarginals, BinaryCALM, FourierMarginals, FullContingency, SplitEM
from veil.numeric import Binning, HaarHierarchy, Hierarchy, HybridMean, MeanOf, TwoPhaseVariance, WaveDistribution
from veil.sql import Table
from veil.study.study import Study, read_study_file
from veil.survey import Survey
from veil.tools.canonical import parse

__all__ = ["STUDIES", "study_from_json"]

STUDIES: dict[str, type[Study]] = {
    study.kind: study
    for study in (
        Questions,
        Histogram,
        WaveDistribution,
        Hierarchy,
        HaarHierarchy,
        Binning,
        MeanOf,
        HybridMean,
        TwoPhaseVariance,
        PEM,
        PrefixSearch,
        EveryPrefix,
        SegmentPairs,
        MultipleChannel,
        PrivTrie,
        PSFO,
        ItemMining,
        SVIM,
        LDPMiner,
        SVSM,
        CALM,
        FullContingency,
        AllMarginals,
        FourierMarginals,
        SplitEM,
        BinaryCALM,
        Table,
    )
}


def study_from_json(document: Any) -> Study:
    """The study in a study file, text, bytes or parsed; of a bare task, the study of its questions.

    >>> from veil import GRR
    >>> made = Histogram(GRR(epsilon=1.0, domain=3))
    >>> study_from_json(made.to_bytes()) == made, study_from_json(made.survey.to_bytes()).kind
    (True, 'questions')
    """
    if isinstance(document, (str, bytes)):
        document = parse(document)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "veil-survey":
        return Questions(Survey.from_json(document))
    if kind != "veil-study":
        raise WireError("expected a study or a task: an object of kind 'veil-study' or 'veil-survey'")
    return read_study_file(document, STUDIES)
