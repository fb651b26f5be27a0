"""Rivals of PEM that search by prefixes: PEM1, TreeHist and PrivTrie.

PEM1 (one bit per round) and TreeHist (one byte per round) are a `PrefixSearch` with other lengths. With `improved`
(thesis 4.4.1) the people are divided instead of everybody's budget: TreeHist reserves a tenth of them for a final test,
and the last group of PEM1 is its test. PrivTrie (Wang et al. 2018; thesis 4.2.4) is a study of several rounds that
extends a trie letter by letter. All use OLH and return the k best values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.result import HeavyHitters, SearchRound
from veil.hitters.search import PrefixSearch, as_held, check_k, in_values, nothing, tried_in
from veil.mechanisms import OLH
from veil.privacy import Guarantee, check_epsilon
from veil.reports.tally import merge
from veil.study import Round, Rounds, Study
from veil.study.continuations import Continuations, start
from veil.survey import Question, Survey
from veil.tools.numbers import convert_int_fields, is_int
from veil.view import prefix


def pem1(epsilon: float, domain: Bits | Text, k: int, *, improved: bool = True) -> PrefixSearch:
    """Bassily et al. 2017, as in thesis 4.2.3: each group reports one bit more, from ceil(log2 k) + 1 bits on.

    >>> pem1(1.0, Bits(8), 4).lengths
    (3, 4, 5, 6, 7, 8)
    """
    check_k(k, as_held(domain))
    first = min((int(k) - 1).bit_length() + 1, domain.bits)
    lengths = tuple(range(first, domain.bits + 1))
    return PrefixSearch(epsilon, domain, k, k, lengths, test=None if improved else "budget")


def tree_hist(epsilon: float, domain: Bits | Text, k: int, *, step: int = 8, improved: bool = True) -> PrefixSearch:
    """TreeHist (Bassily et al. 2017) with `step` bits per round: prefixes by one part, a final test by the other.

    >>> tree_hist(1.0, Bits(20), 4).lengths
    (8, 16, 20)
    """
    check_k(k, as_held(domain))
    if not is_int(step) or step < 1:
        raise ParameterError("a step has at least one bit")
    first = max(int(step), (int(k) - 1).bit_length() + 1)
    lengths = (*range(min(first, domain.bits), domain.bits, step), domain.bits)
    return PrefixSearch(epsilon, domain, k, k, lengths, test="people" if improved else "budget")


@dataclass(frozen=True)
class PrivTrie(Study):
    """Each level asks one batch of people after another, until k of its prefixes exceed 4n / (eps sqrt(asked)) people.

    Guarantee: a person answers once, about one level, through OLH: eps. In the paper a person answers about several
    disjoint prefixes with eps each; when the value is replaced two of these answers change, which costs up to 2 eps.
    Here each batch is drawn fresh. A level ends when k prefixes are above the threshold, or when its equal share of the
    people is used up; the k best of those above are kept, and if there are none the trie ends. A batch has
    max(n / 1000, 800 / eps^2) of the n `people`. At a small eps noise alone exceeds the threshold. `improved` has none:
    a level asks its whole share at once and keeps the k best. A `letter` has eight bits.

    >>> PrivTrie(1.0, Bits(64), 16, people=10**6).batches
    125
    """

    epsilon: float
    domain: Bits | Text
    k: int
    people: int
    improved: bool = False
    letter: int = 8
    kind: ClassVar[str] = "privtrie"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_k(self.k, as_held(self.domain))
        convert_int_fields(self, "k")
        if not is_int(self.letter) or not 1 <= self.letter <= 16 or self.domain.bits % self.letter:
            raise ParameterError("PrivTrie adds a letter of 1 to 16 bits at a time: values are whole letters")
        if not is_int(self.people) or self.people < 1 or self.batches < 1:
            raise ParameterError("there are too few people for one batch per level")

    @property
    def batch(self) -> int:
        """People in a batch."""
        return math.ceil(max(self.people / 1000, 800 / self.epsilon**2))

    @property
    def batches(self) -> int:
        """How many batches a level may ask."""
        return int(self.people // self.batch // (self.domain.bits // self.letter))

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.epsilon)

    @property
    def asks_again(self) -> bool:
        return not self.improved and self.batches > 1

    def rounds(self) -> Rounds:
        """One survey per level, asked again of fresh people as long as too few prefixes are above the threshold."""
        prefixes, history = start(), []
        most, size = (1, self.batch * self.batches) if self.improved else (self.batches, self.batch)
        share = Fraction(size, self.people)
        for length in range(self.letter, self.domain.bits + 1, self.letter):
            tried = Continuations(prefixes, length - self.letter, self.letter, text=isinstance(self.domain, Text))
            codes = np.concatenate(list(tried.blocks()))
            view = prefix(self.domain, length)
            survey = Survey(Question(OLH(self.epsilon, view.domain), view))
            tallies: list[Any] = []
            while True:
                collected = yield Round(survey, share)
                tallies.append(collected.tally(candidates={0: view.domain.decode(codes)}))
                found = collected.estimate((0,), merge(tallies).part(0))
                least = 4 / (self.epsilon * math.sqrt(found.n))
                above = int((found.frequencies > least).sum())
                if above >= self.k or len(tallies) == most:
                    break
            kept = min(self.k, len(codes)) if self.improved else min(self.k, above)
            best = np.argsort(-found.frequencies, kind="stable")[:kept]
            history.append(SearchRound(length, found.n, len(codes), kept, least))
            prefixes = codes[best]
            if not kept:
                break
        asked = sum(step.people for step in history)
        # each level may look at its prefixes after every batch: all looks that it could take are tests
        found = replace(found, tested=most * tried_in(history))
        if length < self.domain.bits or not kept:
            return HeavyHitters(nothing(found, self.domain), tuple(history), n=asked)
        return HeavyHitters(in_values(found, best, self.domain), tuple(history), n=asked)
