"""Searches for heavy hitters on simulated people: the people, the methods, and their accuracy.

Supports are drawn, as `veil.engines.DrawnCollection` describes. People are stored as distinct values with their counts,
so that a run costs no more than its distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil import Study, StudyRun, hitters
from veil.domain import Bits, Text
from veil.engines import DrawnCollection
from veil.hitters import PEM, HeavyHitters, HitterSearch, MultipleChannel, PrivTrie, SegmentPairs
from veil.metrics import f1, found_mse, ncr
from veil_papers.common import sweep
from veil_papers.common.exhibits import Setting, Watch, brief
from veil_papers.common.sweep import Scores, Sweep
from veil_papers.datasets import Strings, exponential_bits

Ints = NDArray[np.int64]
Method = Callable[[float, Bits | Text, int, int], Study | None]
"""What searches: from eps, the domain, k and the number of people. None where it would take minutes."""
Methods = Mapping[str, Method]
Crowds = Callable[[int], "Crowd"]
Points = Sequence[tuple[float, float, int]]
Seed = Sequence[int]
Thetas = Sequence[float]

SYNTHETIC, URLS, QUERIES = "synthetic", "URL stand-in", "query stand-in"
BUDGET = 1 << 20
HOW = (
    "OLH. Supports are drawn as binomials, those of absent candidates as exact top order statistics, which equals "
    "simulating every person in distribution (with an ideal hash). Every run has people of its own; methods see the "
    "same people."
)
_SEGMENTS = {48: 3, 64: 4, 160: 5}


def _segments(epsilon: float, domain: Bits | Text, k: int, *, improved: bool) -> SegmentPairs | None:
    return SegmentPairs(epsilon, domain, k, _SEGMENTS[domain.bits], improved) if k <= 16 else None


def _channels(epsilon: float, domain: Bits | Text, k: int, *, improved: bool) -> MultipleChannel | None:
    channels = MultipleChannel(epsilon, domain, k).channels
    step = max(s for s in range(1, 33) if channels * -(-domain.bits // s) << s <= BUDGET)
    most = 16 if isinstance(domain, Text) else 32
    return MultipleChannel(epsilon, domain, k, step, improved) if k <= most else None


PAPER, OURS = "PEM", "PEM, default (ours)"
IMPROVED: dict[str, Method] = {
    PAPER: lambda eps, domain, k, people: PEM(eps, domain, k, BUDGET, keep=k, fit=False, last=1),
    OURS: lambda eps, domain, k, people: PEM(eps, domain, k),
    "PEM1": lambda eps, domain, k, people: hitters.pem1(eps, domain, k),
    "SPM": lambda eps, domain, k, people: _segments(eps, domain, k, improved=True),
    "HASH": lambda eps, domain, k, people: _channels(eps, domain, k, improved=True),
    "PrivTrie": lambda eps, domain, k, people: PrivTrie(eps, domain, k, people, improved=False),
    "PrivTrie, no threshold": lambda eps, domain, k, people: PrivTrie(eps, domain, k, people, improved=True),
}
"""What Figures 4.2 and 4.3 compare. PEM is the thesis's: k prefixes kept, equal groups, the last round's ranks."""
ORIGINAL: dict[str, Method] = {
    "SPM, original": lambda eps, domain, k, people: _segments(eps, domain, k, improved=False),
    "HASH, original": lambda eps, domain, k, people: _channels(eps, domain, k, improved=False),
}
RIVALS = tuple(name for name in IMPROVED if name not in (PAPER, OURS))
LETTERED = "PEM, letters known (ours)"
FAINT = (OURS, LETTERED, "PrivTrie, no threshold", *ORIGINAL)  # additions, which are drawn dashed


def some(methods: Iterable[str]) -> dict[str, Method]:
    """Some of the methods."""
    return {name: (IMPROVED | ORIGINAL)[name] for name in methods}


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch = setting.pick, setting.watch
        self.runs, self.real_runs = pick(10, 2), pick(10, 2)
        self.few, self.text_runs = pick(5, 2), pick(3, 2)  # where rivals take long, and on text, where everything does
        self.urls, self.strings = pick(27_000, 1_000), pick(None, 1_000)  # how many different strings there are at most
        self.methods = pick(tuple(IMPROVED), (PAPER, OURS, "PrivTrie, no threshold"))  # what is run on text
        full = {SYNTHETIC: 1_000_000, URLS: 1_200_000, QUERIES: 500_000, "text": 1_000_000}
        self.people = pick(full, dict.fromkeys(full, 200_000))
        self.epsilons = pick((0.5, 1.0, 1.5, 2.0, 3.0, 4.0), (1.0, 2.0))
        self.text_epsilons = pick((1.0, 2.0, 3.0, 4.0), (4.0,))
        self.tops, self.text_tops = pick((8, 16, 24, 32, 48, 64), (8,)), pick((8, 16, 32, 64), (8,))
        self.steps = pick((1, 2, 4, 6, 8, 10, 12, 15, 20), (1, 2, 10))
        self.step_epsilons = pick((0.6, 0.9, 1.0, 1.2, 1.5, 2.0), (0.9, 1.0))
        self.split_epsilons = pick((0.6, 0.9, 1.2, 1.5, 2.0, 3.0, 4.0), (1.2, 4.0))
        self.thetas = pick((0.01, 0.015, 0.02, 0.023, 0.03, 0.04), (0.023,))
        vars(self).update(setting.changes)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Different values, as codes of the domain, and how many people hold each, the most frequent first."""

    domain: Bits | Text
    codes: NDArray[Any]
    counts: Ints

    @classmethod
    def of(cls, domain: Bits | Text, codes: NDArray[Any], counts: Ints) -> Crowd:
        """From different codes in any order; those that nobody holds are left out."""
        order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        return cls(domain, codes[order], counts[order])

    @cached_property
    def people(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    def top(self, k: int) -> dict[bytes, int]:
        """The k most frequent values, as codes, and how many hold them."""
        return {code.tobytes(): int(count) for code, count in zip(self.codes[:k], self.counts[:k], strict=True)}

    def above(self, frequency: float) -> list[bytes]:
        """The values with at least this frequency, as codes."""
        return list(self.top(int((self.counts >= frequency * self.people).sum())))


@dataclass(frozen=True, eq=False)
class Source:
    """Strings cut to so many bytes, and the shares that they are drawn with."""

    domain: Text
    codes: NDArray[np.uint8]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, strings: Strings, max_bytes: int, most: int | None = None) -> Source:
        """The `most` most frequent strings; those that are equal once cut are one."""
        chosen, domain = np.argsort(-strings.held, kind="stable")[:most], Text(max_bytes)
        shown = domain.encode([strings.values[i] for i in chosen.tolist()])
        codes, places = np.unique(shown, axis=0, return_inverse=True)
        totals = np.bincount(places.ravel(), strings.held[chosen])
        return cls(domain, codes, totals / totals.sum())

    def crowd(self, people: int, seed: int) -> Crowd:
        """So many people, drawn independently of each other."""
        return Crowd.of(self.domain, self.codes, np.random.default_rng(seed).multinomial(people, self.shares))


def random_strings(people: int, seed: int, bits: int = 64) -> Crowd:
    """The synthetic data of section 4.4.1: random strings with exponential frequencies, scale 0.05."""
    codes, counts = np.unique(exponential_bits(people, bits, seed)[0], return_counts=True)
    return Crowd.of(Bits(bits), codes, counts)


def search(study: Study, crowd: Crowd, seed: Seed) -> HeavyHitters:
    """A whole search; where it has several rounds, each asks people that were not asked before."""
    if isinstance(study, HitterSearch):
        return study.read(DrawnCollection.of_codes(study.survey, crowd.codes, crowd.counts, seed))
    rng, run = np.random.default_rng(seed), StudyRun(study)
    waiting = rng.permutation(np.repeat(np.arange(len(crowd.codes)), crowd.counts))
    while run.round is not None:
        people, waiting = np.split(waiting, [round(crowd.people * run.round.people)])
        present, counts = np.unique(people, return_counts=True)
        run.answer(DrawnCollection.of_codes(run.round.survey, crowd.codes[present], counts, rng))
    assert isinstance(run.result, HeavyHitters)
    return run.result


def keys(codes: NDArray[Any]) -> NDArray[Any]:
    """Codes as one comparable thing each; bytes are padded to one length, so that trailing zeros say nothing."""
    return codes if codes.ndim == 1 else np.ascontiguousarray(codes).view(f"S{codes.shape[1]}")[:, 0]


def found_codes(made: HeavyHitters) -> list[bytes]:
    """What was found, as codes: different strings that cannot be shown may look alike."""
    codes: Any = made.estimates.candidates
    return [code.tobytes() for code in codes]


def squared(error: float) -> str:
    """Var in words; there is none where nothing true was found."""
    return "nothing found" if np.isnan(error) else brief(error)


def measure(
    title: str, crowd_of: Crowds, points: Points, methods: Methods, runs: int, seed: Seed, watch: Watch, at: Thetas = ()
) -> dict[str, Sweep]:
    """F1, NCR and Var of every method at every point (x, eps, k); F1 `at` a threshold for each, if given."""
    crowds = lru_cache(maxsize=1)(crowd_of)

    def trial(place: int, run: int) -> Scores:
        crowd, (_, epsilon, k), scores = crowds(run), points[place], Scores(F1={}, NCR={}, Var={})
        truth = crowd.top(k)
        for number, (name, method) in enumerate(methods.items()):
            if (study := method(epsilon, crowd.domain, k, crowd.people)) is None:
                continue
            made = search(study, crowd, [*seed, run, place, number])
            found = dict(zip(found_codes(made), made.estimates.counts.tolist(), strict=True))
            scores["F1"][name] = f1(found, truth)
            if at:
                shown = made.estimates.frequencies if made.fitted is None else made.fitted
                kept = [code for code, frequency in zip(found, shown, strict=True) if frequency >= at[place]]
                scores["F1"][name] = f1(kept, crowd.above(at[place]))
            scores["NCR"][name] = ncr(found, list(truth))
            scores["Var"][name] = found_mse(found, truth)
        return scores

    return sweep.measure(title, watch, [x for x, *_ in points], runs, trial)
