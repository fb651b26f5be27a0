"""Studies that find the k most frequent items: LDPMiner, SVIM and combinations (thesis 5.3.1 and 5.4.2).

One half of the people selects the candidates, the other half estimates their frequencies. Where the padding length is
the 90th percentile of the set sizes, a fifth of a half reports its set sizes first. Each person answers once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from veil.domain import Items
from veil.errors import ParameterError
from veil.itemsets.missed import update_interval
from veil.itemsets.result import FrequentItems, MiningRound
from veil.itemsets.sampling import PSFO, SIZES, Adap, Oracle, SizeRule, as_items, read_sizes
from veil.mechanisms import BLH, OLH, SUE, PureOracle
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.privacy import Guarantee, check_epsilon
from veil.results.estimate import Estimate
from veil.study import Collection, Round, Rounds, Study
from veil.study.parameters import read as read_parameter
from veil.survey import Question, Survey
from veil.tools.json_documents import Json, take
from veil.tools.numbers import is_int
from veil.view import CountContained, ItemSets, SetSize, View

Asking = Generator[Round, Collection, Any]
Length = int | Literal["percentile", "candidates"]

_SIZE_SHARE = Fraction(1, 5)


@dataclass(frozen=True)
class Phase:
    """An oracle, and the length that sets are padded to: a number, the 90th percentile, or the number of candidates."""

    oracle: Oracle
    length: Length
    kind: ClassVar[str] = "phase"

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, type) or not issubclass(self.oracle, (PureOracle, Adap)):
            raise ParameterError("a phase goes through the class of a pure oracle, or Adap")
        if self.length not in ("percentile", "candidates") and not (is_int(self.length) and self.length >= 1):
            raise ParameterError('a padding length is at least 1, or "percentile", or "candidates"')

    def to_json(self) -> Json:
        """The phase as it stands in a study file."""
        return {"kind": self.kind, "oracle": self.oracle.__name__, "length": self.length}

    @classmethod
    def from_json(cls, document: Json) -> Phase:
        """Read a phase back."""
        oracle, length = take(document, cls.kind, "oracle", "length")
        return cls(read_parameter(Oracle, oracle, "a phase's oracle"), length)


class Phases(NamedTuple):
    """How candidates are found and how frequent they are; and whether for what padding to L misses, estimates are
    multiplied by u'(L) (5.5).
    """

    prune: Phase
    estimate: Phase
    corrected: bool


class TopItemsStudy(Study):
    """The k most frequent items: find 2k candidates with one half of the people, estimate them with the other.

    What all miners share: two phases, and how sizes of sets are read. A universe of at most 2k items is not pruned, and
    everybody is in the second half. Guarantee: each person answers one round, with all of eps.
    """

    k: int
    epsilon: float
    domain: Items
    sizes: SizeRule

    @property
    @abstractmethod
    def phases(self) -> Phases:
        """How candidates are found and estimated."""

    def _check(self) -> None:
        prune, estimate, corrected = self.phases
        if not is_int(self.k) or self.k < 1:
            raise ParameterError("k, the number of items looked for, is an integer of at least 1")
        if not isinstance(prune, Phase) or not isinstance(estimate, Phase):
            raise ParameterError("items are mined in two phases: expected a Phase for each")
        if prune.length == "candidates":
            raise ParameterError("items are mined in two phases, and before the first there are no candidates")
        if corrected and estimate.length != "percentile":
            raise ParameterError("what padding misses is known where the length is the percentile of sizes")
        if self.sizes not in SIZES:
            raise ParameterError(f"sizes are read by one of {', '.join(SIZES)}")
        object.__setattr__(self, "k", int(self.k))
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "domain", as_items(self.domain))
        if self.domain.universe.size < 2 or not self.domain.universe.listable:
            raise ParameterError("items are mined in a universe of at least 2 and at most 2^24 of them")
        longest = min(2 * self.k, self.domain.universe.size)
        for phase in (prune, estimate):  # what some length has no place for is refused now, not halfway
            length = phase.length if is_int(phase.length) else longest
            _ = PSFO(length, phase.oracle, self.epsilon, self.domain).mechanism

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.epsilon)

    def rounds(self) -> Rounds:
        found: FrequentItems = yield from self.mine(Fraction(1))
        return found

    def mine(self, people: Fraction) -> Asking:
        """The rounds, asking this share of all people; returns FrequentItems."""
        history: list[MiningRound] = []
        candidates: ItemSets | None = None
        universe = self.domain.universe
        if universe.size > 2 * self.k:
            people = people / 2
            found = yield from self.ask(self.phases.prune, None, people, "prune", history)
            best = np.sort(np.argsort(-found.frequencies, kind="stable")[: 2 * self.k])
            candidates = tuple((int(code),) for code in best)
        found = yield from self.ask(self.phases.estimate, candidates, people, "estimate", history)
        if candidates is not None:
            codes = np.array(candidates, dtype=np.uint64)[:, 0]
            found = replace(found, domain=universe, candidates=codes, whole=False)
        return FrequentItems(min(self.k, universe.size), found, tuple(history))

    def ask(
        self, phase: Phase, candidates: ItemSets | None, people: Fraction, name: str, history: list[MiningRound]
    ) -> Asking:
        """One phase with a share of all people: sizes first, where they are needed. Returns an Estimate."""
        length, update, doubt = phase.length, 1.0, (1.0, 1.0)
        known = self.domain.universe.size if candidates is None else len(candidates)
        if length == "candidates":
            length = known
        elif length == "percentile":
            reported: Estimate = yield from self._ask_sizes(candidates, people * _SIZE_SHARE, name, history)
            sizes = read_sizes(reported, self.sizes)
            length, people = sizes.length, people * (1 - _SIZE_SHARE)
            update = sizes.update(length) if self.phases.corrected and phase == self.phases.estimate else 1.0
            doubt = update_interval(reported, length)
        asked = PSFO(int(length), phase.oracle, self.epsilon, self.domain, candidates)
        collected = yield Round(asked.survey, people)
        found = asked.read(collected)
        step = MiningRound(name, collected.people, asked.mechanism.signature, known, int(length), update, *doubt)
        history.append(step)
        return updated(found, update)

    def _ask_sizes(
        self, candidates: ItemSets | None, people: Fraction, name: str, history: list[MiningRound]
    ) -> Asking:
        known = self.domain.universe.size if candidates is None else len(candidates)
        view: View
        if candidates is None:
            view = SetSize(self.domain, min(2 * self.k, known))
        else:
            view = CountContained(self.domain, candidates, known)
        mechanism = direct_or_hashed(self.epsilon, view.domain)
        survey = Survey(Question(mechanism, view))
        collected = yield Round(survey, people)
        history.append(MiningRound(f"sizes to {name}", collected.people, mechanism.signature, known))
        return collected.estimate((0,), collected.tally().part(0))


def updated(estimate: Estimate, factor: float) -> Estimate:
    """Estimates times a factor, errors with them."""
    if factor == 1.0:
        return estimate
    lineage = (*estimate.lineage, f"update by {factor:.3f}")
    return replace(estimate, frequencies=estimate.frequencies * factor, scale=estimate.scale * factor, lineage=lineage)


@dataclass(frozen=True)
class ItemMining(TopItemsStudy):
    """Two phases of one's own choice: `prune` finds 2k candidates, `estimate` says how frequent they are.

    `corrected` multiplies estimates by u'(L), for what padding to L misses (5.5). `sizes` says how L and u' are read:
    see `read_sizes`. Guarantee: each person answers one round, with all of eps.
    """

    k: int
    epsilon: float
    domain: Items
    _: KW_ONLY
    prune: Phase
    estimate: Phase
    corrected: bool = False
    sizes: SizeRule = "falling"
    kind: ClassVar[str] = "item-mining"

    def __post_init__(self) -> None:
        self._check()

    @property
    def phases(self) -> Phases:
        return Phases(self.prune, self.estimate, self.corrected)


@dataclass(frozen=True)
class SVIM(TopItemsStudy):
    """Set-value item mining (thesis 5.3.1): the k most frequent items of people's sets.

    50 % of the people say which 2k items to look at (one of their items each, through Adap), 10 % how many of those
    they hold, and 40 % which: one, padded to the 90th percentile L, through Adap; the estimates are multiplied by
    u'(L). `sizes="threshold"` reads the sizes as the thesis does.

    Guarantee: each person answers once, with all of eps.

    >>> from veil import simulate
    >>> sets = [[0, 1]] * 9_000 + [[1, 2, 3]] * 9_000 + [[]] * 2_000
    >>> found = simulate(SVIM(2, epsilon=3.0, domain=50), sets, seed=1)
    >>> found.items[0], round(found.rows[0].frequency, 1)
    (1, 0.9)
    """

    k: int
    epsilon: float
    domain: Items
    _: KW_ONLY
    sizes: SizeRule = "falling"
    kind: ClassVar[str] = "svim"

    def __post_init__(self) -> None:
        self._check()

    @property
    def phases(self) -> Phases:
        return Phases(Phase(Adap, 1), Phase(Adap, "percentile"), corrected=True)


@dataclass(frozen=True)
class LDPMiner(TopItemsStudy):
    """LDPMiner (Qin et al., CCS 2016) as the thesis compares with it (5.4.2): people are split, not the budget.

    10 % of the people say how many items they hold, 40 % one of them, padded to the 90th percentile, and 50 % one of
    the 2k candidates, padded to 2k. Originally through BLH and SUE; improved, both times through OLH.

    Guarantee: each person answers once, with all of eps.
    """

    k: int
    epsilon: float
    domain: Items
    _: KW_ONLY
    improved: bool = True
    sizes: SizeRule = "falling"
    kind: ClassVar[str] = "ldpminer"

    def __post_init__(self) -> None:
        self._check()

    @property
    def phases(self) -> Phases:
        first, second = (OLH, OLH) if self.improved else (BLH, SUE)
        return Phases(Phase(first, "percentile"), Phase(second, "candidates"), corrected=False)


FIGURE_5_3: dict[str, dict[str, Any]] = {
    "(BLH,L)(SUE,2k)": {"prune": Phase(BLH, "percentile"), "estimate": Phase(SUE, "candidates")},
    "(OLH,L)(OLH,2k)": {"prune": Phase(OLH, "percentile"), "estimate": Phase(OLH, "candidates")},
    "(OLH,1)(OLH,2k)": {"prune": Phase(OLH, 1), "estimate": Phase(OLH, "candidates")},
    "(OLH,1)(Adap,2k)": {"prune": Phase(OLH, 1), "estimate": Phase(Adap, "candidates")},
    "(OLH,1)(Adap,L)": {"prune": Phase(OLH, 1), "estimate": Phase(Adap, "percentile")},
    "(OLH,1)(Adap,L)(c)": {"prune": Phase(OLH, 1), "estimate": Phase(Adap, "percentile"), "corrected": True},
}
"""The six methods of Figure 5.3, as parameters of ItemMining: from LDPMiner to SVIM, one change at a time."""
