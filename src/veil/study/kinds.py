"""The table of all kinds of studies, and the reader of study files, which imports only the module of its kind."""

from __future__ import annotations

from typing import Any

from veil.errors import WireError
from veil.study.study import Study, read_study_file
from veil.survey import Survey
from veil.tools.json_documents import Kinds, parse_json

STUDIES: Kinds[Study] = Kinds(
    {
        "questions": "veil.histogram:Questions",
        "histogram": "veil.histogram:Histogram",
        "square-wave": "veil.numeric.distributions:WaveDistribution",
        "hierarchy": "veil.numeric.hierarchy:Hierarchy",
        "haar-hierarchy": "veil.numeric.hierarchy:HaarHierarchy",
        "binning": "veil.numeric.distributions:Binning",
        "mean": "veil.numeric.means:MeanOf",
        "hybrid-mean": "veil.numeric.means:HybridMean",
        "two-phase-variance": "veil.numeric.means:TwoPhaseVariance",
        "pem": "veil.hitters.pem:PEM",
        "prefix-search": "veil.hitters.search:PrefixSearch",
        "every-prefix": "veil.hitters.shuffled:EveryPrefix",
        "segment-pairs": "veil.hitters.rivals.segments:SegmentPairs",
        "multiple-channel": "veil.hitters.rivals.segments:MultipleChannel",
        "privtrie": "veil.hitters.rivals.prefixes:PrivTrie",
        "psfo": "veil.itemsets.sampling:PSFO",
        "item-mining": "veil.itemsets.mining:ItemMining",
        "svim": "veil.itemsets.mining:SVIM",
        "ldpminer": "veil.itemsets.mining:LDPMiner",
        "svsm": "veil.itemsets.svsm:SVSM",
        "calm": "veil.marginals.study:CALM",
        "full-contingency": "veil.marginals.rivals.contingency:FullContingency",
        "all-marginals": "veil.marginals.rivals.contingency:AllMarginals",
        "fourier-marginals": "veil.marginals.rivals.fourier:FourierMarginals",
        "split-em": "veil.marginals.rivals.split_em:SplitEM",
        "binary-calm": "veil.marginals.rivals.binary:BinaryCALM",
        "table": "veil.sql.table:Table",
    }
)


def study_from_json(document: Any) -> Study:
    """Return the study in a study file, given as text, bytes or parsed JSON; for a bare task, a study of its questions.

    >>> from veil import GRR
    >>> from veil.histogram import Histogram
    >>> study = Histogram(GRR(epsilon=1.0, domain=3))
    >>> study_from_json(study.to_bytes()) == study, study_from_json(study.survey.to_bytes()).kind
    (True, 'questions')
    """
    if isinstance(document, (str, bytes)):
        document = parse_json(document)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "veil-survey":
        return STUDIES["questions"](Survey.from_json(document))  # type: ignore[call-arg]  # its only required parameter
    if kind != "veil-study":
        raise WireError("expected a study or a task: an object of kind 'veil-study' or 'veil-survey'")
    return read_study_file(document, STUDIES)
