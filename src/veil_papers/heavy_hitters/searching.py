"""Searches for heavy hitters on simulated people: who they are, which methods search, and how well each did.

Supports are drawn, as `veil.hitters.drawn` explains. People are kept as the different values and how many hold each, so
that a run costs no more than its distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.campaign import Campaign
from veil.datasets import Strings, exponential_bits
from veil.domain import Bits, Text
from veil.entropy import Words
from veil.hitters import PEM, HeavyHitters, HitterSearch, MultipleChannel, PrivTrie, SegmentPairs, pem1
from veil.hitters.drawn import Drawn, split_people
from veil.metrics import f1, found_mse, ncr
from veil.survey import Survey, SurveyTally
from veil.tally import Tally
from veil_papers.common.exhibits import Advance, Curve, brief

__all__ = [
    "BUDGET",
    "HOW",
    "IMPROVED",
    "ORIGINAL",
    "OURS",
    "PAPER",
    "Crowd",
    "Method",
    "Source",
    "Sweep",
    "found_codes",
    "keys",
    "measure",
    "random_strings",
    "search",
    "some",
    "squared",
    "supports",
]

Floats = NDArray[np.float64]
Method = Callable[[float, Bits | Text, int, int], HitterSearch | Campaign]
"""What searches: from eps, the domain, k and the number of people."""

BUDGET = 1 << 20
HOW = (
    "OLH. Supports are drawn as binomials, those of absent candidates as exact top order statistics, which equals "
    "simulating every person in distribution (with an ideal hash). Every run has people of its own; methods see the "
    "same people."
)
_SEGMENTS = {48: 3, 64: 4, 160: 5}


# -- people ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Crowd:
    """Different values, as codes of the domain, and how many people hold each, the most frequent first."""

    domain: Bits | Text
    codes: NDArray[Any]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, domain: Bits | Text, codes: NDArray[Any], counts: NDArray[np.int64]) -> Crowd:
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
    shares: Floats

    @classmethod
    def of(cls, strings: Strings, max_bytes: int, most: int | None = None) -> Source:
        """The `most` most frequent strings; those that are equal once cut are one."""
        chosen = np.argsort(-strings.held, kind="stable")[:most]
        domain = Text(max_bytes)
        codes, places = np.unique(
            domain.encode([strings.values[i] for i in chosen.tolist()]), axis=0, return_inverse=True
        )
        totals = np.bincount(places.ravel(), strings.held[chosen])
        return cls(domain, codes, totals / totals.sum())

    def crowd(self, people: int, seed: int) -> Crowd:
        """So many people, drawn independently of each other."""
        return Crowd.of(self.domain, self.codes, np.random.default_rng(seed).multinomial(people, self.shares))


def random_strings(people: int, seed: int, bits: int = 64) -> Crowd:
    """The synthetic data of section 4.4.1: random strings with exponential frequencies, scale 0.05."""
    codes, counts = np.unique(exponential_bits(people, bits, seed)[0], return_counts=True)
    return Crowd.of(Bits(bits), codes, counts)


# -- methods --------------------------------------------------------------------------------------------------------


def _pem(epsilon: float, domain: Bits | Text, k: int, people: int) -> PEM:
    return PEM(epsilon, domain, k, BUDGET, keep=k, fit=False, last=1)


def _default(epsilon: float, domain: Bits | Text, k: int, people: int) -> PEM:
    return PEM(epsilon, domain, k)


def _pem1(epsilon: float, domain: Bits | Text, k: int, people: int) -> HitterSearch:
    return pem1(epsilon, domain, k)


def _segments(improved: bool) -> Method:
    def method(epsilon: float, domain: Bits | Text, k: int, people: int) -> SegmentPairs:
        return SegmentPairs(epsilon, domain, k, _SEGMENTS[domain.bits], improved)

    return method


def _channels(improved: bool) -> Method:
    def method(epsilon: float, domain: Bits | Text, k: int, people: int) -> MultipleChannel:
        channels = MultipleChannel(epsilon, domain, k).channels
        step = max(s for s in range(1, 33) if channels * -(-domain.bits // s) << s <= BUDGET)
        return MultipleChannel(epsilon, domain, k, step, improved)

    return method


def _trie(improved: bool) -> Method:
    def method(epsilon: float, domain: Bits | Text, k: int, people: int) -> PrivTrie:
        return PrivTrie(epsilon, domain, k, people, improved)

    return method


PAPER, OURS = "PEM", "PEM, default (ours)"
IMPROVED: dict[str, Method] = {
    PAPER: _pem,
    OURS: _default,
    "PEM1": _pem1,
    "SPM": _segments(improved=True),
    "HASH": _channels(improved=True),
    "PrivTrie": _trie(improved=False),
    "PrivTrie, no threshold": _trie(improved=True),
}
"""What Figures 4.2 and 4.3 compare. PEM is the thesis's: k prefixes kept, equal groups, the last round's ranks."""
ORIGINAL: dict[str, Method] = {
    "SPM, original": _segments(improved=False),
    "HASH, original": _channels(improved=False),
}


def some(methods: Iterable[str]) -> dict[str, Method]:
    """Some of the methods."""
    every = IMPROVED | ORIGINAL
    return {name: every[name] for name in methods}


# -- searching ------------------------------------------------------------------------------------------------------


class _DrawnCrowd(Drawn):
    """`Drawn` from values with their numbers, in place of one value a person."""

    def __init__(self, survey: Survey, crowd: Crowd, seed: Sequence[int]) -> None:
        self.survey = survey
        self._rng = np.random.default_rng(seed)
        self._held, self._population = crowd.codes, crowd.people
        self._answers = list(split_people(survey.ask, crowd.counts, self._rng))
        self._shown = {}
        self._seen = {}

    def _distinct(self, question: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The same, with rows of bytes sorted as strings: many times faster."""
        if question not in self._shown:
            shown = self.survey.question(question).view.apply(self._held, Words(b""))
            _, firsts, places = np.unique(keys(shown), return_index=True, return_inverse=True)
            self._shown[question] = shown[firsts], places
        return self._shown[question]

    def support(self, questions: Sequence[int], codes: NDArray[Any]) -> NDArray[np.int64]:
        """The same, by bisection."""
        total, wanted = np.zeros(len(codes), dtype=np.int64), keys(codes)
        for question in questions:
            held, holders = self._holders(question)
            known = keys(held)
            places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            total += self._drawn(question, codes, np.where(known[places] == wanted, holders[places], 0))
        return total


def supports(protocol: HitterSearch, crowd: Crowd, seed: Sequence[int]) -> Drawn:
    """What a search on this crowd reads."""
    return _DrawnCrowd(protocol.survey, crowd, seed)


def search(protocol: HitterSearch | Campaign, crowd: Crowd, seed: Sequence[int]) -> HeavyHitters:
    """A whole search."""
    if isinstance(protocol, HitterSearch):
        return protocol.search(supports(protocol, crowd, seed))
    return _campaign(protocol, crowd, np.random.default_rng(seed))


def _campaign(campaign: Campaign, crowd: Crowd, rng: np.random.Generator) -> HeavyHitters:
    """Rounds of one pure question each: fresh people, and supports of the round's candidates drawn."""
    waiting = rng.permutation(np.repeat(np.arange(len(crowd.codes)), crowd.counts))
    rounds = campaign.rounds()
    asked, survey, tally = next(rounds), None, None
    while True:
        if asked.survey is not survey:  # batches of one level have their candidates in common
            survey, question = asked.survey, asked.survey.question(0)
            codes: Any = question.encode_candidates(asked.candidates[0])
            places = _places(question.view.apply(crowd.codes, Words(b"")), codes)
        people, waiting = np.split(waiting, [round(crowd.people * asked.people)])
        held = places[people]
        holders = np.bincount(held[held >= 0], minlength=len(codes))
        p, q = float(question.pure.p), float(question.pure.q)
        counts = rng.binomial(holders, p) + rng.binomial(len(people) - holders, q)
        part = Tally(question.pure.digest, counts, len(people), len(people), len(people), codes)
        tally = SurveyTally(survey.task, len(people), (part,))
        try:
            asked = rounds.send(tally)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _places(shown: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.int64]:
    """Where each shown value is among the codes, -1 where it is not."""
    where = {code.tobytes(): i for i, code in enumerate(codes)}
    return np.array([where.get(code.tobytes(), -1) for code in shown], dtype=np.int64)


def keys(codes: NDArray[Any]) -> NDArray[Any]:
    """Codes as one comparable thing each; bytes are padded to one length, so that trailing zeros say nothing."""
    return codes if codes.ndim == 1 else np.ascontiguousarray(codes).view(f"S{codes.shape[1]}")[:, 0]


# -- how well -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sweep:
    """A number of every method at every point of an axis, run by run (points in rows)."""

    x: tuple[float, ...]
    values: dict[str, Floats]

    def at(self, name: str, x: float) -> float:
        """The mean of the runs at a point."""
        return float(self.mean(name)[self.x.index(x)])

    def mean(self, name: str) -> Floats:
        """The mean of the runs, at every point; NaN where no run has a number."""
        found = self.values[name]
        known = np.isfinite(found)
        runs = np.where(known.any(axis=1), known.sum(axis=1), np.nan)
        return np.asarray(np.where(known, found, 0.0).sum(axis=1) / runs)

    def behind(self, name: str, other: str) -> tuple[Floats, Floats]:
        """How much less a method has than another at every point, and the standard error of that: paired runs."""
        gaps = [row[np.isfinite(row)] for row in self.values[other] - self.values[name]]
        errors = [row.std(ddof=1) / np.sqrt(len(row)) if len(row) > 1 else np.inf for row in gaps]
        return np.array([row.mean() if len(row) else np.nan for row in gaps]), np.array(errors)

    def curve(self, name: str) -> Curve:
        """One method, to be drawn, with the standard deviation between runs."""
        means = self.mean(name)
        shown = np.flatnonzero(np.isfinite(means))
        spread = tuple(float(np.nanstd(self.values[name][i])) for i in shown)
        x, y = tuple(self.x[i] for i in shown), tuple(float(means[i]) for i in shown)
        return Curve(name, x, y, spread, faint="," in name)


def squared(error: float) -> str:
    """Var in words; there is none where nothing true was found."""
    return "nothing found" if np.isnan(error) else brief(error)


def found_codes(made: HeavyHitters) -> list[bytes]:
    """What was found, as codes: different strings that cannot be shown may look alike."""
    codes: Any = made.estimates.candidates
    return [code.tobytes() for code in codes]


def measure(
    crowd_of: Callable[[int], Crowd],
    points: Sequence[tuple[float, float, int]],
    methods: Mapping[str, Method],
    runs: int,
    seed: Sequence[int],
    advance: Advance,
    skip: Callable[[str, int], bool] = lambda name, k: False,
) -> dict[str, Sweep]:
    """F1, NCR and Var of every method at every point (x, eps, k); `skip` leaves a method out at some k."""
    shape = (len(points), runs)
    found = {score: {name: np.full(shape, np.nan) for name in methods} for score in ("F1", "NCR", "Var")}
    for run in range(runs):
        crowd = crowd_of(run)
        for place, (_, epsilon, k) in enumerate(points):
            truth = crowd.top(k)
            for number, (name, method) in enumerate(methods.items()):
                if skip(name, k):
                    continue
                made = search(method(epsilon, crowd.domain, k, crowd.people), crowd, [*seed, run, place, number])
                estimates = dict(zip(found_codes(made), made.estimates.counts.tolist(), strict=True))
                found["F1"][name][place, run] = f1(estimates, truth)
                found["NCR"][name][place, run] = ncr(estimates, list(truth))
                found["Var"][name][place, run] = found_mse(estimates, truth)
            advance(1)
    x = tuple(point[0] for point in points)
    return {score: Sweep(x, values) for score, values in found.items()}
