"""What an analyst asks of a histogram: every value, the most frequent ones, or sets of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError
from veil.results.estimate import Estimate
from veil.tools.numbers import is_int

__all__ = ["EveryValue", "MostFrequent", "Query", "Sets", "as_query", "squared_errors"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Query(ABC):
    """Numbers asked of a histogram, each the frequency of a value or of a set."""

    kind: str

    @abstractmethod
    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        """The places whose frequencies are added up, one list an answer; `truth` says what is frequent."""


@dataclass(frozen=True)
class EveryValue(Query):
    """The frequency of each value of the domain."""

    kind = "single"

    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        return list(np.arange(len(estimate))[:, None])


@dataclass(frozen=True)
class MostFrequent(Query):
    """The frequencies of the k values that are truly the most frequent."""

    k: int = 10
    kind = "frequent"

    def __post_init__(self) -> None:
        if not is_int(self.k) or self.k < 1:
            raise ParameterError("the most frequent values are an integer number of at least 1")

    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        return list(np.argsort(-truth, kind="stable")[: self.k, None])


@dataclass(frozen=True, eq=False)
class Sets(Query):
    """The total frequency of each of these sets of values."""

    sets: Sequence[Any] = field(repr=False)
    kind = "sets"

    def __post_init__(self) -> None:
        if not isinstance(self.sets, Sequence) or not self.sets or not all(_is_set(values) for values in self.sets):
            raise InputError("a query has at least one set, and a set at least one value")

    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        return [estimate.positions(values) for values in self.sets]


def squared_errors(made: Estimate, groups: list[Ints], truth: Floats) -> Floats:
    """Squared error of what an estimate answers about each group of places."""
    flat = np.concatenate(groups)
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])[:-1]])
    answers, known = np.add.reduceat(made.frequencies[flat], starts), np.add.reduceat(truth[flat], starts)
    return np.asarray((made.bend(answers) - known) ** 2)


def as_query(query: Any) -> Query:
    """A Query as it is, or by its name ("single", "frequent"), or a list of sets of values."""
    if isinstance(query, Query):
        return query
    if isinstance(query, str):
        if query in ("single", "frequent"):
            return EveryValue() if query == "single" else MostFrequent()
        raise InputError("a query is 'single', 'frequent', or a list of sets of values")
    try:
        sets = list(query)
    except TypeError:
        raise InputError("a query is 'single', 'frequent', or a list of sets of values") from None
    return Sets(sets)


def _is_set(values: Any) -> bool:
    return not isinstance(values, (str, bytes)) and hasattr(values, "__len__") and len(values) > 0
