"""A result of every kind and variant, and the reading of every kind of study, from simulated reports of small surveys.

Last digits may differ between machines: tests compare the numbers with the recorded ones, not the bytes.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
from tests.support.document_examples import AMOUNT, BASKET, BINARY, DRINKS, PERSON, PRIVATE, YEAR

from veil import (
    GRR,
    OLH,
    SHE,
    Bits,
    Guarantee,
    HaarResponse,
    Integers,
    Interval,
    OneOf,
    Piecewise,
    Rappor,
    SquareWave,
    Study,
    Survey,
    Text,
    simulate,
)
from veil.accounting import Shuffler
from veil.comparison import Comparison
from veil.entropy import SeededForExperiments
from veil.histogram import Histogram, Questions
from veil.hitters import PEM, EveryPrefix, MultipleChannel, PrefixSearch, PrivTrie, SegmentPairs
from veil.itemsets import PSFO, SVIM, SVSM, ItemMining, LDPMiner, Phase
from veil.marginals import CALM, AllMarginals, BinaryCALM, FourierMarginals, FullContingency, SplitEM, Uniform
from veil.numeric import (
    Binning,
    HaarHierarchy,
    Hierarchy,
    HybridMean,
    MeanOf,
    TwoPhaseVariance,
    WaveDistribution,
    free_bands,
    wave_bands,
)
from veil.post import METHODS
from veil.results import Answers, Result
from veil.sql import Answer, Explanation, KeyColumn, MeasuredColumn, Table
from veil.sql.execution.explaining import PlanStep
from veil.view import SquaredDistance

PEOPLE = [{"sex": "f", "age": 3, "region": 1}, {"sex": "m", "age": 7, "region": 2}] * 1_000
SHOPPERS = [{"age": 20 + i % 30, "state": ("NY", "WA", "CA", "NY")[i % 4]} for i in range(2_000)]
NUMBERS = np.random.default_rng(1).beta(2, 5, 3_000) * 10
AGES = np.random.default_rng(2).integers(18, 70, 3_000)
WORDS = ["tea"] * 3_000 + ["coff"] * 2_000
STRINGS = [5] * 3_000 + [40_000] * 2_000 + [77] * 1_000
BASKETS: list[list[str]] = [[("tea", "milk", "salt")[i] for i in range(3) if n >> i & 1] for n in range(8)] * 400


def studies() -> dict[str, tuple[Study, Any]]:
    """Return a study of every kind and reading, with what people hold."""
    held, ages, bits = AMOUNT, Integers(18, 81), Bits(16)
    distance = SquaredDistance(held, 4.0)
    query = "SELECT state, COUNT(*) AS c FROM people WHERE age < 35 GROUP BY state"
    return {
        "questions": (Questions(Survey(OneOf((1, GRR(2.0, 3)), (2, OLH(2.0, 3))))), [0, 0, 1] * 500),
        "histogram behind a shuffler": (
            Histogram(GRR(2.0, 4), shuffler=Shuffler(1_000, 1e-6, 100)),
            [0, 1, 2, 3] * 100,
        ),
        "square wave": (WaveDistribution(SquareWave(2.0, held, 16), bands=10), NUMBERS),
        "square wave by EM": (WaveDistribution(SquareWave(2.0, held, 16), "em", bands=10), NUMBERS),
        "square wave with free bands": (WaveDistribution(SquareWave(2.0, held, 16), assume="nothing"), NUMBERS),
        "hierarchy": (Hierarchy(2.0, ages, bands=10), AGES),
        "hierarchy by ADMM": (Hierarchy(2.0, ages, method="admm", bands=10), AGES),
        "consistent hierarchy": (Hierarchy(2.0, ages, method="consistent", bands=10), AGES),
        "Haar hierarchy": (HaarHierarchy(2.0, ages, bands=10), AGES),
        "binning": (Binning(2.0, held, 8, bands=10), NUMBERS),
        "mean": (MeanOf(Piecewise(2.0, held)), NUMBERS),
        "mean of a view": (MeanOf(Piecewise(2.0, distance.domain), distance), NUMBERS),
        "hybrid mean": (HybridMean(2.0, held), NUMBERS),
        "two-phase variance": (TwoPhaseVariance(Piecewise, 4.0, held), NUMBERS),
        "PEM": (PEM(4.0, Text(4), k=2), WORDS),
        "prefix search": (PrefixSearch(4.0, bits, 2, 4, (8, 16)), STRINGS),
        "every prefix": (EveryPrefix(4.0, bits, 2, 4, (8, 16), hash_range=9), STRINGS),
        "segment pairs": (SegmentPairs(4.0, bits, 2, segments=2), STRINGS),
        "multiple channel": (MultipleChannel(4.0, bits, 2), STRINGS),
        "PrivTrie": (PrivTrie(4.0, bits, 2, people=len(STRINGS)), STRINGS),
        "PSFO": (PSFO(2, GRR, 2.0, BASKET), BASKETS),
        "item mining": (
            ItemMining(2, 4.0, BASKET, prune=Phase(OLH, 1), estimate=Phase(OLH, "candidates")),
            BASKETS,
        ),
        "SVIM": (SVIM(2, 4.0, BASKET), BASKETS),
        "LDPMiner": (LDPMiner(2, 4.0, BASKET), BASKETS),
        "SVSM": (SVSM(2, 4.0, BASKET), BASKETS),
        "CALM": (CALM(4.0, PERSON, k=2, sets=2), PEOPLE),
        "binary CALM": (BinaryCALM(4.0, PERSON, k=2, sets=2), PEOPLE),
        "all marginals": (AllMarginals(4.0, PERSON, k=2), PEOPLE),
        "full contingency": (FullContingency(4.0, PERSON), PEOPLE),
        "Fourier marginals": (FourierMarginals(4.0, PERSON, k=2), PEOPLE),
        "split EM": (SplitEM(4.0, BINARY, k=2), [dict.fromkeys("abcd", 1)] * 500),
        "table": (Table(2.0, PRIVATE, query=query), SHOPPERS),
        "table read plainly": (Table(2.0, PRIVATE, reading="plain", query=query), SHOPPERS),
        "table read consistently": (Table(2.0, PRIVATE, reading="consistent", query=query), SHOPPERS),
    }


def results() -> dict[str, Result]:
    """Make the results, by name."""
    wave = SquareWave(2.0, Interval(0, 100), buckets=16)
    tally = wave.tally(wave.randomize(NUMBERS * 10, SeededForExperiments(1)))
    bandless = wave.estimate(tally)
    drinks, later = (
        simulate(Histogram(GRR(2.0, DRINKS)), ["tea"] * tea + ["water"] * (3_000 - tea), seed=tea)
        for tea in (2_000, 1_000)
    )
    rough = simulate(Histogram(OLH(1.0, 8)), [0] * 500 + [1] * 200 + [2] * 50, seed=1)  # does not add up to 1
    made: dict[str, Any] = {
        f"read by {name}": simulate(study, held, seed=1) for name, (study, held) in studies().items()
    }
    joint, mean, tree = (made[f"read by {name}"] for name in ("CALM", "hybrid mean", "hierarchy"))
    keys = (
        KeyColumn("day", ("2026-05-01", None), "date"),
        KeyColumn("os", ("ios", "win")),
        KeyColumn("seen", ("2026-05-01T12:00:00", None), "time"),
        KeyColumn("adult", (True, False), "flag"),
        KeyColumn("age", (18, 19), "integer"),
        KeyColumn("price", (1.5, None), "number"),
    )
    numbers = np.array([10.5, np.nan]), np.array([0.1, np.nan])
    answer = Answer(
        query="SELECT COUNT(*) AS c FROM people GROUP BY day",
        outputs=(MeasuredColumn("c", *numbers), MeasuredColumn("a", *numbers, np.array([0.5, 0.25]))),
        people=np.array([7, 3]),
        n=10,
        population=10,
        keys=keys,
        used=("state",),
        said=("A remark.",),
        lineage=("HIO(epsilon=2, levels)",),
        guarantee=Guarantee.of(2.0),
    )
    plan = Explanation(
        query=answer.query,
        steps=(PlanStep("public", "DuckDB evaluates it"), PlanStep("read", "HIO: no report")),
        outputs=answer.outputs,
        keys=keys,
        boxes=1,
        groups=2,
        cells=3,
        pairs=4,
        megabytes=5,
        seconds=0.25,
        rows=2,
        n=10,
        population=10,
        said=("A remark.",),
        lineage=answer.lineage,
        guarantee=Guarantee.of(2.0),
    )
    made |= {
        "frequencies": drinks,
        "frequencies of candidates": simulate(OLH(1.0, Bits(100)), [2**99, 5], candidates=[2**99, 5], seed=1),
        "frequencies with additive noise": simulate(SHE(1.0, 4), [1] * 100, seed=1),
        "frequencies with unknown noise": simulate(Rappor(4.0, 4), [1] * 2_000 + [2] * 900, seed=1),
        "distribution": bandless,
        "distribution with smooth bands": replace(bandless, bands=wave_bands(wave, tally, bandless, replicates=10)),
        "distribution with free bands": replace(bandless, bands=free_bands(wave, tally, bandless)),
        "mean of times": simulate(Piecewise(2.0, YEAR), [dt.datetime(2026, 5, 6)] * 900, seed=1),
        "differences": simulate(HaarResponse(4.0, 9), AGES % 9, seed=1),
        "uniform": Uniform.of(PERSON, 10),
        "marginal": joint.marginal(["sex", "region"]),
        "conditional": joint.conditional(["sex"], given=["region"]),
        "correlations": joint.correlations(),
        "answers": Answers([drinks, mean], [0, 5]),
        "frequency change": later.difference(drinks),
        "mean change": simulate(HybridMean(2.0, AMOUNT), NUMBERS, seed=2).difference(mean),
        "distribution change": simulate(studies()["hierarchy"][0], AGES, seed=2).difference(tree),
        "comparison": Comparison(("one", "two"), (0.5, 1.0), np.full((2, 2, 3), 0.25), 100, lineage=("trials",)),
        "answer to a query": answer,
        "plan of a query": plan,
        "change of an answer": replace(answer, n=11).difference(answer),
    }
    made |= {f"frequencies after {name}": (drinks if name == "mle" else rough).post(name) for name in METHODS}
    return made
