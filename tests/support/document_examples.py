"""One example of every kind and variant of document, made by public constructors.

They hold parameters alone, so that every machine writes the same bytes. `result_examples` has results.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from veil import (
    BLH,
    GRR,
    OLH,
    OUE,
    PGR,
    SHE,
    SUE,
    THE,
    AllOf,
    Bits,
    Categories,
    EachOf,
    Guarantee,
    HaarResponse,
    HadamardResponse,
    Integers,
    Interval,
    Items,
    LinearHashing,
    OneOf,
    Piecewise,
    Public,
    Question,
    RandomProjection,
    Rappor,
    Record,
    SquareWave,
    StochasticRounding,
    Study,
    SubsetSelection,
    Survey,
    Text,
)
from veil.accounting import Shuffler
from veil.device.client import RoundPart
from veil.domain import Tuples
from veil.entropy import SeededForExperiments
from veil.histogram import Histogram, Questions
from veil.hitters import PEM, EveryPrefix, MultipleChannel, PrefixSearch, PrivTrie, SegmentPairs
from veil.itemsets import PSFO, SVIM, SVSM, Adap, ItemMining, LDPMiner, Phase
from veil.marginals import CALM, AllMarginals, BinaryCALM, FourierMarginals, FullContingency, SplitEM
from veil.numeric import (
    Binning,
    HaarHierarchy,
    Hierarchy,
    HybridMean,
    MeanOf,
    TwoPhaseVariance,
    WaveDistribution,
)
from veil.post import METHODS
from veil.shuffle.peos import SecretKey
from veil.shuffle.plan import Address, CollectionPlan
from veil.shuffle.sequential import Key, SpotChecks
from veil.shuffle.submissions import Submission
from veil.sql import (
    HI,
    HIO,
    MG,
    SC,
    Category,
    Grids,
    Measure,
    Moment,
    QuadTree,
    Table,
    Wavelet,
)
from veil.survey import AttributeSets, Levels, ListedBits, ListedSets, Parities
from veil.view import (
    Ancestor,
    BitsOf,
    ChannelSegment,
    Composed,
    CountContained,
    Identity,
    Parity,
    Product,
    Project,
    SampleContained,
    SampleItem,
    Segment,
    SetSize,
    SquaredDistance,
)

DRINKS = Categories(["tea", "coffee", "water"])
AMOUNT = Interval(0, 10, cells=32)
YEAR = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1), 12)
BASKET = Items(["tea", "milk", "salt", "rice", "soap"])
CANDIDATES = ((1,), (0, 1), (3, 4))
PERSON = Record.of(sex=["f", "m"], age=Integers(0, 9), region=3)
BINARY = Record.of(a=2, b=2, c=2, d=2)
PRIVATE = Record.of(age=Integers(18, 97), state=["NY", "WA", "CA"])
COLUMNS = (Measure("purchase", 2), Category("os", ("ios", "android")), Moment("bought"), Moment("seen", "second"))

DOMAINS: dict[str, Any] = {
    "categories": DRINKS,
    "categories by number": Categories.range(8),
    "categories with a category for missing values": Categories(["a", 1], missing="category"),
    "integers": Integers(-3, 12),
    "interval": AMOUNT,
    "interval of times": YEAR,
    "bits": Bits(100),
    "text": Text(8),
    "items": BASKET,
    "items by number": Items(20),
    "record": PERSON,
    "tuples": Tuples((DRINKS, Integers(1, 4))),
}
SAMPLED = SampleItem(BASKET, 3)
CONTAINED = SampleContained(BASKET, CANDIDATES, length=2)
VIEWS: dict[str, Any] = {
    "identity": Identity(DRINKS),
    "segment of bits": Segment(Bits(32), 4, 12),
    "segment of text": Segment(Text(4), 0, 16),
    "channel segment": ChannelSegment(Bits(32), 8, 0, 4),
    "ancestor": Ancestor(Integers(0, 63), 4, 2),
    "project": Project(PERSON, ("sex",)),
    "project to two attributes": Project(PERSON, ("sex", "region")),
    "bits of attributes": BitsOf(PERSON, (("sex", 0), ("age", 2))),
    "parity": Parity(PERSON, (("sex", 0), ("age", 2))),
    "squared distance": SquaredDistance(Integers(0, 9), 4.0),
    "squared distance in cells": SquaredDistance(AMOUNT, 2.5),
    "sampled item": SAMPLED,
    "sampled item with a load": SampleItem(BASKET, 10, load=5),
    "sampled candidate": CONTAINED,
    "number of candidates": CountContained(BASKET, CANDIDATES, most=3),
    "size of a set": SetSize(BASKET, most=4),
    "composed": Composed(Project(PERSON, ("age",)), Ancestor(Integers(0, 9), 3, 1)),
    "product": Product(Project(PERSON, ("sex",)), Project(PERSON, ("region",))),
}
MECHANISMS: dict[str, Any] = {
    "GRR": GRR(1.0, DRINKS),
    "OUE": OUE(1.0, 8),
    "OLH": OLH(1.0, 100),
    "OLH with a hash range": OLH(3.0, 100, hash_range=7),
    "OLH with short seeds": OLH(1.0, 100, seed_bytes=4),
    "SubsetSelection": SubsetSelection(1.0, 20),
    "SubsetSelection of a given size": SubsetSelection(1.0, 20, subset_size=3),
    "HadamardResponse": HadamardResponse(1.0, 12),
    "SHE": SHE(1.0, 4),
    "SUE": SUE(1.0, 8),
    "THE": THE(1.0, 8),
    "THE with a threshold": THE(1.0, 8, theta=0.75),
    "BLH": BLH(1.0, 100),
    "RandomProjection": RandomProjection(1.0, 100),
    "RandomProjection of some rows": RandomProjection(1.0, 100, rows=64),
    "Rappor": Rappor(4.0, 10),
    "Rappor with an instantaneous step": Rappor(4.0, 10, bits=16, hashes=1, cohorts=2, instant=(0.25, 0.75)),
    "PGR": PGR(1.0, 100),
    "LinearHashing": LinearHashing(1.0, Bits(16)),
    "SquareWave": SquareWave(1.0, AMOUNT),
    "SquareWave of a given shape": SquareWave(1.0, AMOUNT, buckets=16, half_width=4, ramp=2),
    "HaarResponse": HaarResponse(1.0, 9),
    "StochasticRounding": StochasticRounding(1.0, AMOUNT),
    "Piecewise": Piecewise(1.0, AMOUNT),
    "Piecewise of some steps": Piecewise(1.0, YEAR, steps=300),
}


def _each(rule: Any, make: Callable[[Any], Any] = lambda domain: OLH(1.0, domain)) -> Survey:
    return Survey(EachOf(rule, make))


TASKS: dict[str, Survey] = {
    "question": Survey(GRR(1.0, DRINKS)),
    "second wave": Survey(GRR(1.0, DRINKS), wave=2),
    "public columns": Survey(OLH(1.0, DRINKS), public=[Public("spent", 2), Public("visits")]),
    "one of": Survey(OneOf((1, GRR(1.0, DRINKS)), (3, OLH(1.0, DRINKS)))),
    "all of": Survey(AllOf(GRR(1.0, DRINKS), OneOf((1, OUE(0.5, DRINKS)), (1, GRR(0.5, DRINKS))))),
    "view": Survey(Question(OUE(1.0, PERSON.parts[0]), Project(PERSON, ("sex",)))),
    "sampled item": Survey(Question(OLH(1.0, SAMPLED.domain), SAMPLED)),
    "sampled candidate": Survey(
        Question(GRR(CONTAINED.inner_epsilon(1.0, disjoint=True), CONTAINED.domain), CONTAINED)
    ),
    "attribute sets": _each(AttributeSets(PERSON, 2)),
    "attribute sets with a mechanism by size": _each(AttributeSets(PERSON, 2), lambda domain: GRR(1.0, domain)),
    "listed sets": _each(ListedSets(PERSON, (("sex",), ("age", "region")))),
    "levels": _each(Levels(PERSON, (("age", 3), ("region", 2)))),
    "listed bits": _each(ListedBits(PERSON, ((("age", 2), ("sex", 0)), (("age", 0),)))),
    "parities": _each(Parities(PERSON, 2)),
    **{f"mechanism {name}": Survey(made) for name, made in MECHANISMS.items()},
}


def _studies() -> dict[str, Study]:
    held, designs = Interval(0, 10), {"HIO": HIO(fan_outs=4), "HIO of two dimensions": HIO(most=1, oracle="OLH")}
    designs |= {"HI": HI(fan_outs=4), "SC": SC(fan_outs=4), "SC sampled": SC(4, levels="sampled"), "MG": MG()}
    designs |= {"Grids": Grids(), "Grids of given sizes": Grids(fine=16, coarse=4, people=10_000)}
    grid = Record.of(x=Integers(0, 15), y=Integers(0, 15))
    return {
        "questions": Questions(Survey(OneOf((1, GRR(1.0, 3)), (2, OLH(1.0, 3)))), question=1),
        "questions with candidates": Questions(Survey(OLH(1.0, 50)), candidates=(1, 2)),
        "histogram": Histogram(OLH(1.0, 100)),
        "histogram with candidates": Histogram(OLH(1.0, Text(4)), candidates=("tea", "milk")),
        "histogram behind a shuffler": Histogram(GRR(2.0, 8), shuffler=Shuffler(10_000, 1e-9)),
        "histogram behind a shuffler with fakes": Histogram(
            OLH(2.0, 256, hash_range=8, seed_bytes=4), shuffler=Shuffler(10_000, 1e-9, 500)
        ),
        **{f"histogram by {name}": Histogram(GRR(1.0, 8), post=name) for name in METHODS},
        "square wave": WaveDistribution(SquareWave(1.0, held, 64)),
        "square wave read otherwise": WaveDistribution(SquareWave(1.0, held, 64), "em", bands=0, assume="nothing"),
        "square wave by a share": WaveDistribution(SquareWave(1.0, held, 64), smoothing=0.25),
        "hierarchy": Hierarchy(1.0, held, 64),
        "hierarchy read otherwise": Hierarchy(
            1.0, held, 64, 8, "admm", weighted=True, bands=0, public=[Public("visits")]
        ),
        "hierarchy of a total": Hierarchy(1.0, held, 64, method="consistent", total=0.5),
        "Haar hierarchy": HaarHierarchy(1.0, held, 64),
        "binning": Binning(1.0, held, 8),
        "mean": MeanOf(Piecewise(1.0, held)),
        "mean of a view": MeanOf(Piecewise(1.0, SquaredDistance(held, 4.0).domain), SquaredDistance(held, 4.0)),
        "hybrid mean": HybridMean(1.0, held),
        "two-phase variance": TwoPhaseVariance(Piecewise, 1.0, held),
        "two-phase variance by a hybrid": TwoPhaseVariance(HybridMean, 1.0, held),
        "PEM": PEM(1.0, Text(8), 4),
        "PEM with a threshold": PEM(1.0, Bits(32), 4, oracle="PGR", budget=2**12, threshold=0.1),
        "prefix search": PrefixSearch(1.0, Bits(16), 4, 8, (8, 16)),
        "every prefix": EveryPrefix(1.0, Bits(16), 4, 8, (8, 16), hash_range=9),
        "segment pairs": SegmentPairs(1.0, Bits(32), 4),
        "multiple channel": MultipleChannel(1.0, Bits(32), 4),
        "PrivTrie": PrivTrie(1.0, Bits(32), 4, people=10**6),
        "PSFO": PSFO(3, GRR, 1.0, 20),
        "PSFO with a delta": PSFO(10, OLH, 1.0, 20, delta=1e-3),
        "PSFO of candidates": PSFO(2, Adap, 1.0, BASKET, candidates=CANDIDATES),
        "item mining": ItemMining(4, 1.0, Items(50), prune=Phase(OLH, 1), estimate=Phase(Adap, "candidates")),
        "SVIM": SVIM(4, 1.0, Items(50)),
        "LDPMiner": LDPMiner(4, 1.0, Items(50), improved=False),
        "SVSM": SVSM(4, 1.0, Items(50)),
        "SVSM after LDPMiner": SVSM(4, 1.0, Items(50), items=LDPMiner(4, 1.0, Items(50))),
        "CALM": CALM(1.0, BINARY, k=2, sets=(("a", "b"), ("c", "d"))),
        "CALM with chosen sets": CALM(1.0, PERSON, k=2, users=2**16, marginal=("sex",), given=("region",)),
        "binary CALM": BinaryCALM(1.0, PERSON, k=2, users=2**16),
        "all marginals": AllMarginals(1.0, PERSON, k=2),
        "full contingency": FullContingency(1.0, PERSON),
        "Fourier marginals": FourierMarginals(1.0, PERSON, k=2),
        "split EM": SplitEM(1.0, PERSON, k=2),
        **{f"table by {name}": Table(2.0, PRIVATE, COLUMNS, design) for name, design in designs.items()},
        "table by QuadTree": Table(2.0, grid, (), QuadTree()),
        "table by Wavelet": Table(2.0, grid, (), Wavelet()),
        "table": Table(2.0, PRIVATE),
        "table read plainly": Table(2.0, PRIVATE, reading="plain", name="shop", query="SELECT COUNT(*) FROM shop"),
        "table read consistently": Table(2.0, PRIVATE, reading="consistent"),
        "table by default": Table(2.0, PRIVATE, (Measure("visits"),), HI()),
        "table sampled by default": Table(2.0, PRIVATE, (), SC()),
        **{f"{kind.kind} by default": kind(1.0, held) for kind in (Hierarchy, HaarHierarchy, Binning)},
        **{
            f"{kind.kind} by default": kind(1.0, PERSON)
            for kind in (CALM, BinaryCALM, AllMarginals, FourierMarginals, SplitEM)
        },
        "every prefix by default": EveryPrefix(1.0, Bits(16), 4, 8, (8, 16)),
    }


COUNTED = TASKS["public columns"]
REPORTS = COUNTED.randomize(
    ["tea", "tea", "water"], SeededForExperiments(1), public={"spent": [150, -1, 7], "visits": [1, 2, 3]}
)
BRANCHES = TASKS["one of"]
ANSWERS = BRANCHES.randomize(["tea", "water", "tea", "coffee"], SeededForExperiments(2))
TALLY = BRANCHES.tally(ANSWERS)
WORDS = Survey(OLH(1.0, Text(4)))
FAKED = TASKS["question"].tally(TASKS["question"].randomize(["tea"] * 5, SeededForExperiments(3))).with_fakes(2)
LASTING: Any = MECHANISMS["Rappor with an instantaneous step"]
MEMO = LASTING.permanent([1, 2, 3], SeededForExperiments(4))
DGK: Any = {
    "modulus": (
        "b8f2fcf502a85e8f0692140af46b0034cb10319ab8d90807701cd168a71339dde0557d3f7d342e3b456e3334a5cb4f7d"
        "5b9dbedb316840b80000000000000001"
    ),
    "g": (
        "afa54a7665aa3152265dac61b434b42cf99f4fe525e0aab5cde1b37282474c804312eb16db587fd12697527c1472bf1d"
        "a068509eb7d7026f026575a86110276a"
    ),
    "h": (
        "4b25c6a981f36f4f378d51eeffa9e7e17c9dd1662206af8437610763f6b50a592368388ad9dde048baf5fbb7d3a5ce2d"
        "f71d3c8e55eec9ad588aed6216fbf013"
    ),
    "ring": 64,
    "order_bits": 64,
    "p": "dd8fc3a21878200db718815bb316787ddb664bd81f5196830000000000000001",
    "order": "d5ba64b83c5f299b",
}

BUILT: dict[str, dict[str, Any]] = {
    "domain": DOMAINS,
    "view": VIEWS,
    "mechanism": MECHANISMS,
    "public": {"public column": Public("visits"), "public column with a scale": Public("spent", 2)},
    "guarantee": {
        "exact": Guarantee.of(1.0),
        "of a lifetime, with a delta": Guarantee(Fraction(5, 2), Fraction(1, 1000), "remove", "lifetime"),
        "with a shuffler only": Guarantee(None, needs_shuffler=True),
    },
    "shuffler": {"shuffler": Shuffler(10_000, 1e-9), "shuffler with fakes": Shuffler(10_000, 1e-9, 500)},
    "task": TASKS,
    "study": _studies(),
    "plan of parties": {
        "two shufflers": CollectionPlan(
            protocol="sequential",
            collection="test",
            study={"kind": "veil-study"},
            fakes=20,
            ring=64,
            shufflers=(("one", Address("127.0.0.1", 7001)), ("two", Address("shuffler.example", 7002))),
            keys={"server": "00"},
            least=5,
        )
    },
    "round of a study": {"second half": RoundPart("study", 1, "task", Fraction(1, 2), Fraction(1))},
    "report": {
        "of one question": ((bytes(range(16)), REPORTS[:1]), COUNTED.to_json()),
        "of a branch": ((bytes(range(16)), ANSWERS[1:2]), BRANCHES.to_json()),
    },
    "batch": {
        "of one question with public columns": (REPORTS, COUNTED.to_json()),
        "of two branches": (ANSWERS, BRANCHES.to_json()),
    },
    "tally": {
        "of two branches": (TALLY, BRANCHES.to_json()),
        "of one branch": (replace(TALLY, parts=TALLY.parts[1:], questions=(1,)), BRANCHES.to_json()),
        "of the second wave": (replace(TALLY, wave=2), BRANCHES.to_json()),
        "of seeded reports": (replace(TALLY, seeded=True), BRANCHES.to_json()),
        "with fakes": (FAKED, TASKS["question"].to_json()),
        "of candidates": (
            WORDS.tally(WORDS.randomize(["tea"] * 3, SeededForExperiments(5)), candidates={0: ["tea", "milk"]}),
            WORDS.to_json(),
        ),
    },
    "memo": {"of three people": (MEMO, LASTING.to_json())},
    "DGK public key": {"of 512 bits": SecretKey.from_json(DGK).public},
    "DGK secret key": {"of 512 bits": SecretKey.from_json(DGK)},
    "onion key": {"key": Key(bytes(range(32)))},
    "submission": {"of two people": Submission(bytes(range(16)), 2, (b"one", b"three", b""))},
    "spot checks": {"three": SpotChecks((1, 2**63, 5))},
}

REFUSED: tuple[tuple[str, str, tuple[Any, ...], Any], ...] = (
    ("domain", "interval", ("unit",), "number"),
    ("task", "mechanism SquareWave", ("domain", "lo"), "0.0"),
    ("task", "mechanism SquareWave", ("domain", "unit"), "number"),
    ("domain", "categories", ("size",), 3),
    ("view", "sampled item", ("load",), None),
    ("mechanism", "OLH", ("seed_bytes",), 8),
    ("shuffler", "shuffler", ("fakes",), 0),
    ("task", "question", ("wave",), 1),
    ("task", "sampled item", ("ask", "view", "load"), None),
    ("task", "question", ("ask", "mechanism", "epsilon"), "1.0"),
    ("study", "histogram behind a shuffler", ("study", "shuffler", "fakes"), 0),
    ("result", "frequencies", ("fakes",), None),
)
"""Documents that state a default or write a number otherwise: family, name, path and value."""
