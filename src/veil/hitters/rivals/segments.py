"""Rivals of PEM that search by segments of a value: SPM and HASH.

SPM, the segment pairs method (Fanti, Pihur and Erlingsson 2016; thesis 4.1.1), asks for pairs of segments. HASH, the
multiple channel method (Bassily and Smith 2015; thesis 4.1.2), asks for one segment in the channel of a public hash.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.result import HeavyHitters, SearchRound
from veil.hitters.search import TESTED, HitterSearch, after_test, as_held, check_k, codes_of
from veil.mechanisms import OLH, PureOracle
from veil.privacy import check_epsilon, split_epsilon
from veil.study import Collection
from veil.study.continuations import Continuations, start
from veil.survey import AllOf, OneOf, Question, Survey
from veil.tools.numbers import convert_int_fields, is_int
from veil.view import ChannelSegment, Segment

_BEGINNINGS = 1 << 16  # of values, that are joined with the next segment


@dataclass(frozen=True)
class SegmentPairs(HitterSearch):
    """Each person reports two segments of the value, drawn at random, and the whole value.

    Frequent segments first, k of each; then pairs of them, the best until more than k values have all their pairs among
    them; then the whole values are tested. Originally everybody answers all three, a third of eps each; `improved`
    gives a tenth of the people to the test, and the two segments half of eps each.

    >>> SegmentPairs(1.0, Bits(64), 16).pairs[:3]
    ((0, 1), (0, 2), (0, 3))
    """

    epsilon: float
    domain: Bits | Text
    k: int
    segments: int = 4
    improved: bool = True
    kind: ClassVar[str] = "segment-pairs"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_k(self.k, as_held(self.domain))
        if not is_int(self.segments) or self.segments < 2 or self.domain.bits % self.segments:
            raise ParameterError("a value is cut into two or more segments of equal length")
        if self.k >= 1 << self.step or self.step > 32:
            raise ParameterError("a segment has more than log2 k bits, and at most 32")

    @property
    def step(self) -> int:
        """Bits of a segment."""
        return self.domain.bits // self.segments

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of segments, in the order of the questions."""
        return tuple(itertools.combinations(range(self.segments), 2))

    @cached_property
    def survey(self) -> Survey:
        each = split_epsilon(self.epsilon, 2 if self.improved else 3)
        views = [Segment(self.domain, i * self.step, (i + 1) * self.step) for i in range(self.segments)]
        parts = [Question(OLH(each, view.domain), view) for view in views]
        pairs = [AllOf(parts[a], parts[b]) for a, b in self.pairs]
        view = Segment(self.domain, 0, self.domain.bits)
        if not self.improved:
            return Survey(AllOf(Question(OLH(each, view.domain), view), OneOf(*((1, pair) for pair in pairs))))
        whole = Question(OLH(self.epsilon, view.domain), view)
        return Survey(OneOf((len(pairs), whole), *((TESTED - 1, pair) for pair in pairs)))

    def answer(self, collected: Collection) -> HeavyHitters:
        history, kept = [], []
        for i in range(self.segments):
            asked = [1 + 2 * p + pair.index(i) for p, pair in enumerate(self.pairs) if i in pair]
            best = collected.best(asked, Continuations(start(), 0, self.step), self.k)
            estimate = collected.estimate(asked, best)
            least = float(estimate.frequencies.min())
            history.append(SearchRound(self.step, best.people, 1 << self.step, len(estimate), least))
            kept.append(codes_of(estimate))
        values = self._agreeing(collected, kept)
        codes = np.stack([self._joined([kept[i][c] for i, c in enumerate(value)]) for value in values])
        return after_test(collected, 0, codes, self.domain, self.k, tuple(history))

    def _agreeing(self, collected: Collection, kept: list[NDArray[Any]]) -> list[tuple[int, ...]]:
        """Places of segments whose pairs are all among the best; pairs are added until there are more than k values."""
        scores = {}
        for p, (a, b) in enumerate(self.pairs):
            first, second = 1 + 2 * p, 2 + 2 * p
            chosen = {i: self._values(i, codes) for i, codes in ((first, kept[a]), (second, kept[b]))}
            counts = collected.joint(chosen)
            people = max(int(counts[0, 0].sum()), 1)
            inverse = [_inverse(collected.oracle((i,))) for i in (first, second)]
            scores[a, b] = np.einsum("abst,s,t->ab", counts / people, *inverse)
        ranks = {pair: _ranks(score) for pair, score in scores.items()}
        return list(itertools.islice(self._by_worst_rank(ranks), self.k + 1))

    def _values(self, question: int, codes: NDArray[Any]) -> list[Any]:
        return self.survey.questions[question].view.domain.decode(codes)

    def _by_worst_rank(self, ranks: dict[tuple[int, int], NDArray[np.int64]]) -> Iterator[tuple[int, ...]]:
        """Values in the order in which they appear as every pair of segments takes in its next best."""
        # Segment after segment; a beginning's worst rank only grows, so that only the best beginnings go on.
        places = np.arange(len(ranks[0, 1]))[:, None]
        worst = np.zeros(len(places), dtype=np.int64)
        for new in range(1, self.segments):
            here = np.max([ranks[old, new][places[:, old]] for old in range(new)], axis=0)
            grown = np.maximum(worst[:, None], here)
            before, last = np.divmod(np.arange(grown.size), grown.shape[1])
            places, worst = np.column_stack([places[before], last]), grown.ravel()
            order = np.lexsort((*places.T[::-1], worst))[:_BEGINNINGS]
            places, worst = places[order], worst[order]
        return map(tuple, places.tolist())

    def _joined(self, parts: list[Any]) -> Any:
        codes = start()
        for i, part in enumerate(parts):
            grown = Continuations(codes, i * self.step, self.step)
            codes = grown.join(codes, np.array([part], dtype=np.uint64))
        return codes[0]


def _inverse(oracle: PureOracle) -> list[float]:
    """What a report adds to an unbiased estimate: without support, with support."""
    p, q = float(oracle.p), float(oracle.q)
    return [-q / (p - q), (1 - q) / (p - q)]


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    order = np.argsort(-scores, axis=None, kind="stable")
    ranks = np.empty(scores.size, dtype=np.int64)
    ranks[order] = np.arange(scores.size)
    return ranks.reshape(scores.shape)


@dataclass(frozen=True)
class MultipleChannel(HitterSearch):
    """A public hash puts each value in one of k^1.5 channels; each channel's value is read segment by segment.

    One person reports (channel, segment) for one segment, drawn at random, through OLH; the best segments of a channel
    make its candidate, and the candidates are tested. Originally everybody does both with half of eps; `improved` gives
    a tenth of the people to the test. Segments are as long as the cost of PEM allows.

    >>> MultipleChannel(1.0, Bits(64), 16).channels
    64
    """

    epsilon: float
    domain: Bits | Text
    k: int
    step: int = 11
    improved: bool = True
    kind: ClassVar[str] = "multiple-channel"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_k(self.k, as_held(self.domain))
        if not is_int(self.step) or not 1 <= self.step <= 32:
            raise ParameterError("a segment has between 1 and 32 bits")
        convert_int_fields(self, "k", "step")

    @property
    def channels(self) -> int:
        """How many channels there are: so many that frequent values hardly meet in one."""
        return int(max(2, math.ceil(self.k**1.5)))

    @cached_property
    def views(self) -> tuple[ChannelSegment, ...]:
        """One view a segment; the last may be shorter."""
        firsts = range(0, self.domain.bits, self.step)
        ends = [min(first + self.step, self.domain.bits) for first in firsts]
        return tuple(ChannelSegment(self.domain, self.channels, a, b) for a, b in zip(firsts, ends, strict=True))

    @cached_property
    def survey(self) -> Survey:
        each = self.epsilon if self.improved else split_epsilon(self.epsilon, 2)
        parts = [Question(OLH(each, view.domain), view) for view in self.views]
        view = Segment(self.domain, 0, self.domain.bits)
        whole = Question(OLH(each, view.domain), view)
        if self.improved:
            return Survey(OneOf((len(parts), whole), *((TESTED - 1, part) for part in parts)))
        return Survey(AllOf(whole, OneOf(*((1, part) for part in parts))))

    def answer(self, collected: Collection) -> HeavyHitters:
        history = []
        codes = [start() for _ in range(self.channels)]
        for i, view in enumerate(self.views):
            width, asked = view.stop - view.start, (i + 1,)
            least = math.inf
            for channel in range(self.channels):
                inside = Continuations(np.array([channel], dtype=np.uint64), view.domain.bits - width, width)
                best = collected.best(asked, inside, 1)
                estimate = collected.estimate(asked, best)
                least = min(least, float(estimate.frequencies[0]))
                found = codes_of(estimate) & np.uint64((1 << width) - 1)
                codes[channel] = Continuations(codes[channel], view.start, width).join(codes[channel], found)
            tried = self.channels << width
            history.append(SearchRound(view.stop, best.people, tried, self.channels, least))
        every = np.unique(np.concatenate(codes), axis=0)
        return after_test(collected, 0, every, self.domain, self.k, tuple(history))
