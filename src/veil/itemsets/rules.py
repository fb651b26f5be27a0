"""Association rules from frequent itemsets: people with these items also hold those.

Confidence is f(X u Y) / f(X), at most 1. Lift is confidence over f(Y), at most 1 / f(X) and 1 / f(Y). Their intervals
combine those of the three frequencies on the scale of logarithms (MOVER: Zou and Donner, Statistics in Medicine 2008).
Single items and larger sets are estimated from different people, so that their distances add up as squares. Two
frequencies of one round are not independent; their distances are added, which bounds any correlation. The results are
clipped to the possible range, because estimates of frequencies are unbiased and their quotient may exceed 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

from veil.errors import ParameterError
from veil.tools.json_documents import Json


class CountedSet(Protocol):
    """A set of items with its frequency and an interval."""

    @property
    def items(self) -> tuple[Any, ...]: ...
    @property
    def frequency(self) -> float: ...
    @property
    def stderr(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@dataclass(frozen=True)
class AssociationRule:
    """Who holds all of `given` also holds all of `then`, with errors and intervals of both measures."""

    given: tuple[Any, ...]
    then: tuple[Any, ...]
    frequency: float
    confidence: float
    confidence_stderr: float
    confidence_interval: tuple[float, float]
    lift: float
    lift_stderr: float
    lift_interval: tuple[float, float]

    def to_json(self) -> Json:
        """The rule as it stands among the facts of a result; items as text."""
        measures = ("confidence", self.confidence, self.confidence_stderr, *self.confidence_interval)
        lifts = ("lift", self.lift, self.lift_stderr, *self.lift_interval)
        document: Json = {"given": list(map(str, self.given)), "then": list(map(str, self.then))}
        document["frequency"] = self.frequency
        for name, value, stderr, low, high in (measures, lifts):
            document |= {name: value, f"{name}_stderr": stderr, f"{name}_low": low, f"{name}_high": high}
        return document


def find_rules(chosen: Sequence[CountedSet], known: Sequence[CountedSet], confidence: float) -> list[AssociationRule]:
    """Rules within the chosen sets of at least this confidence, highest first.

    A rule needs both its sides and the whole among the known sets, which are those clearly above 0. Its intervals have
    the level of theirs.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 <= confidence < math.inf:
        raise ParameterError("a confidence is a number of at least 0")
    by_items = {frozenset(row.items): row for row in known}
    rules = []
    for row in chosen:
        whole = by_items.get(frozenset(row.items))
        if whole is None or len(whole.items) < 2:
            continue
        for size in range(1, len(whole.items)):
            for given in combinations(whole.items, size):
                then = tuple(item for item in whole.items if item not in given)
                left, right = by_items.get(frozenset(given)), by_items.get(frozenset(then))
                if left is not None and right is not None and whole.frequency >= confidence * left.frequency:
                    rules.append(_rule(whole, left, right))
    return sorted(rules, key=lambda rule: -rule.confidence)


def _rule(whole: CountedSet, left: CountedSet, right: CountedSet) -> AssociationRule:
    sure, lifted = _Quotient(whole, (left,)), _Quotient(whole, (left, right))
    most = 1 / min(1.0, max(left.frequency, right.frequency))
    ends = 1 / min(1.0, max(left.low, right.low)) if max(left.low, right.low) > 0 else math.inf
    confidence, lift = min(sure.value, 1.0), min(lifted.value, most)
    return AssociationRule(
        left.items,
        right.items,
        whole.frequency,
        confidence,
        confidence * sure.relative_error,
        sure.interval(1.0),
        lift,
        lift * lifted.relative_error,
        lifted.interval(ends),
    )


@dataclass(frozen=True)
class _Quotient:
    """The frequency of one set over the product of those of others."""

    whole: CountedSet
    parts: tuple[CountedSet, ...]

    @property
    def value(self) -> float:
        return self.whole.frequency / math.prod(part.frequency for part in self.parts)

    @property
    def relative_error(self) -> float:
        """The relative standard error, by the delta method."""
        return self._combined([row.stderr / row.frequency for row in (self.whole, *self.parts)])

    def interval(self, most: float) -> tuple[float, float]:
        """Between 0 and the largest value that it can have."""
        low = self._combined([_below(self.whole), *map(_above, self.parts)])
        high = self._combined([_above(self.whole), *map(_below, self.parts)])
        return min(self.value * math.exp(-low), most), min(self.value * _exp(high), most)

    def _combined(self, distances: Sequence[float]) -> float:
        """Distances that add up: as they are within a round, as squares between the two rounds."""
        rows = (self.whole, *self.parts)
        singles = sum(far for row, far in zip(rows, distances, strict=True) if len(row.items) == 1)
        larger = sum(far for row, far in zip(rows, distances, strict=True) if len(row.items) > 1)
        return math.hypot(singles, larger)


def _below(row: CountedSet) -> float:
    """How far the interval reaches down, on the scale of logarithms."""
    return max(0.0, math.log(row.frequency / row.low)) if row.low > 0 else math.inf


def _above(row: CountedSet) -> float:
    return max(0.0, math.log(row.high / row.frequency))


def _exp(distance: float) -> float:
    return math.exp(distance) if distance < 700 else math.inf
