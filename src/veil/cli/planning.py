"""What `veil plan` decides: the domain behind its options, and the survey whose task it writes.

The comparison itself is `veil.plan`, for numbers `veil.numeric.planning`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veil.cli.pipeline import read_lines
from veil.domain import Categories, Integers, Interval, Numeric
from veil.domain.times import parse_time
from veil.errors import InputError
from veil.mechanisms import MECHANISMS, FrequencyOracle
from veil.planning.numbers import choose_numeric
from veil.planning.oracles import Choice, choose
from veil.survey import Survey

__all__ = ["Planned", "choose_numeric", "domain_of", "numeric_domain_of", "plan"]


@dataclass(frozen=True)
class Planned:
    """What there is to choose from, and the survey to write: the chosen oracle's, or the one asked for by name."""

    choice: Choice
    survey: Survey
    named: bool


def domain_of(size: int | None, labels: str | None, labels_file: Path | None) -> Categories:
    """The domain that exactly one of the three describes."""
    if size is not None:
        return Categories.range(size)
    if labels_file is not None:
        return Categories(read_lines(labels_file))
    names = [label.strip() for label in (labels or "").split(",")]
    if not all(names):
        raise InputError("a label is missing between two commas: expected --labels tea,coffee,water")
    return Categories(names)


def numeric_domain_of(low: str, high: str, *, integers: bool, buckets: int | None = None) -> Numeric:
    """The domain between two ends: numbers, integers, or dates and times in ISO 8601; its buckets are equal."""
    if integers:
        try:
            return Integers(int(low), int(high))
        except ValueError as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError("expected two integers: --numeric 18 99 --integers") from None
    ends: Any = (_end(low), _end(high))
    whole = Interval(*ends)
    if buckets is None or not 1 <= buckets <= whole.cells:
        return whole
    return replace(whole, cells=whole.cells // buckets * buckets)  # a day's bucket ends at midnight


def _end(text: str) -> float | dt.datetime:
    try:
        return float(text)
    except ValueError:
        found = parse_time(text)
    if found is None:
        raise InputError("expected two numbers or two times: --numeric 0 250000, or --numeric 2026-01-01 2027-01-01")
    return found


def plan(
    domain: Categories, epsilon: float, people: int, limit: int | None = None, oracle: str | None = None
) -> Planned:
    """Compare the oracles and choose one; `oracle` overrides which one the survey asks by."""
    choice = choose(domain, epsilon, people, limit)
    if oracle is None:
        return Planned(choice, Survey(choice.oracle), named=False)
    oracles = {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, FrequencyOracle)}
    named = {name.lower(): kind for name, kind in oracles.items()}.get(oracle.lower())
    if named is None:
        raise InputError(f"there is no oracle of that name; there are {', '.join(oracles)}")
    survey = Survey(named(epsilon, domain))
    if limit is not None and survey.layout.size > limit:
        raise InputError(f"a report of {named.name} takes {survey.layout.size} bytes, more than the {limit} allowed")
    return Planned(choice, survey, named=True)
