"""HASH: the multiple channel method (Bassily and Smith 2015; thesis 4.1.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.result import HeavyHitters, SearchRound
from veil.hitters.search import TESTED, HitterSearch, after_test, as_held, check_k, codes_of
from veil.mechanisms import OLH
from veil.privacy import check_epsilon, split_epsilon
from veil.study import Collected
from veil.study.continuations import Continuations, start
from veil.survey import AllOf, OneOf, Question, Survey
from veil.tools.numbers import convert_int_fields, is_int
from veil.view import ChannelSegment, Segment

__all__ = ["MultipleChannel"]


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

    def answer(self, collected: Collected) -> HeavyHitters:
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
