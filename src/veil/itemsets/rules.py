"""Association rules from mined itemsets: who holds these items also holds those.

Confidence is f(X u Y) / f(X), lift is that over f(Y). Their errors follow from the errors of the three frequencies by
the delta method: relative variances add up. Single items and larger sets are estimated by different people, so that
their errors are independent. Two frequencies out of the same round are not; there the relative standard errors
themselves are added, which no correlation exceeds. Intervals are normal, of the logarithm, so that they stay above 0.
They cover noise, sampling and the doubt about the factors by which padding is corrected, not that items may be held by
people of smaller or larger sets than others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

from veil.errors import ParameterError
from veil.tools.canonical import Json
from veil.tools.normal import two_sided

__all__ = ["Counted", "Rule", "find_rules"]

_CLEAR = 3.0  # standard errors above 0, below which a quotient's error has no first-order law


class Counted(Protocol):
    """A set of items with its frequency."""

    @property
    def items(self) -> tuple[Any, ...]: ...
    @property
    def frequency(self) -> float: ...
    @property
    def stderr(self) -> float: ...


@dataclass(frozen=True)
class Rule:
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


def find_rules(chosen: Sequence[Counted], mined: Sequence[Counted], confidence: float, level: float) -> list[Rule]:
    """Rules within the chosen sets of at least this confidence, highest first.

    A rule needs estimates of both its sides and of the whole, all of them three standard errors above 0.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 <= confidence < math.inf:
        raise ParameterError("a confidence is a number of at least 0")
    reach = two_sided(level)
    known = {frozenset(row.items): row for row in mined if row.frequency > _CLEAR * row.stderr}
    rules = []
    for row in chosen:
        whole = known.get(frozenset(row.items))
        if whole is None or len(whole.items) < 2:
            continue
        for size in range(1, len(whole.items)):
            for given in combinations(whole.items, size):
                then = tuple(item for item in whole.items if item not in given)
                left, right = known.get(frozenset(given)), known.get(frozenset(then))
                if left is not None and right is not None and whole.frequency >= confidence * left.frequency:
                    rules.append(_rule(whole, left, right, reach))
    return sorted(rules, key=lambda rule: -rule.confidence)


def _rule(whole: Counted, left: Counted, right: Counted, reach: float) -> Rule:
    confidence = whole.frequency / left.frequency
    lift = confidence / right.frequency
    sure, lifted = _relative_error(whole, left), _relative_error(whole, left, right)
    return Rule(
        left.items,
        right.items,
        whole.frequency,
        confidence,
        confidence * sure,
        _interval(confidence, sure, reach),
        lift,
        lift * lifted,
        _interval(lift, lifted, reach),
    )


def _relative_error(*parts: Counted) -> float:
    """The relative standard error of a quotient or product: within a round added up, between rounds as squares."""
    singles = sum(row.stderr / row.frequency for row in parts if len(row.items) == 1)
    larger = sum(row.stderr / row.frequency for row in parts if len(row.items) > 1)
    return math.hypot(singles, larger)


def _interval(value: float, relative: float, reach: float) -> tuple[float, float]:
    return value * math.exp(-reach * relative), value * math.exp(reach * relative)
