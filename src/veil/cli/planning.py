"""What `veil plan` decides: the domain behind its options, and the survey whose task it writes.

The comparison itself is `veil.plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veil.cli.pipeline import read_lines
from veil.domain import Categories
from veil.errors import InputError
from veil.mechanisms import MECHANISMS
from veil.plan import Choice, choose
from veil.survey import Survey

__all__ = ["Planned", "domain_of", "plan"]


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


def plan(
    domain: Categories, epsilon: float, people: int, limit: int | None = None, oracle: str | None = None
) -> Planned:
    """Compare the oracles and choose one; `oracle` overrides which one the survey asks by."""
    choice = choose(domain, epsilon, people, limit)
    if oracle is None:
        return Planned(choice, Survey(choice.oracle), named=False)
    named = {name.lower(): mechanism for name, mechanism in MECHANISMS.items()}.get(oracle.lower())
    if named is None:
        raise InputError(f"there is no oracle of that name; there are {', '.join(MECHANISMS)}")
    survey = Survey(named(epsilon, domain))
    if limit is not None and survey.layout.size > limit:
        raise InputError(f"a report of {named.name} takes {survey.layout.size} bytes, more than the {limit} allowed")
    return Planned(choice, survey, named=True)
