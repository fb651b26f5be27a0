"""The base class of rules of many questions, and the limits of all of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import ParameterError
from veil.tools.json_documents import Json
from veil.view import View

MOST_QUESTIONS = 1 << 20
U64 = NDArray[np.uint64]


class Rule(ABC):
    """Many questions about one record, numbered from 0. Its first field is what they look at, `held`."""

    kind: str
    held: Record

    @abstractmethod
    def __len__(self) -> int:
        """How many questions there are."""

    @abstractmethod
    def view(self, index: int) -> View:
        """What the i-th question looks at."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The different sizes of what the questions show, increasing."""
        return tuple(np.unique(self.sizes_of(np.arange(len(self)))).tolist())

    @abstractmethod
    def shown(self, choice: NDArray[np.int64], codes: U64) -> U64:
        """Runs on the device: for each row of codes of the record, what its chosen question's view shows."""

    @abstractmethod
    def sizes_of(self, choice: NDArray[np.int64]) -> U64:
        """The sizes of what these questions show."""

    @abstractmethod
    def to_json(self) -> Json:
        """The rule as it stands in a task; the record stands there once, in the survey."""


def as_record(held: Any) -> Record:
    """A record as it is; refuses anything else."""
    if not isinstance(held, Record):
        raise ParameterError("a family asks about attributes of a Record")
    return held


def check_count(questions: int) -> None:
    """Refuse more questions than a family may have."""
    if questions > MOST_QUESTIONS:
        raise ParameterError(f"a family has at most {MOST_QUESTIONS:,} questions")


def check_cells(sizes: Iterable[int]) -> None:
    """Refuse a question that shows attributes of these sizes as one index, where that is too large."""
    if math.prod(sizes) >= 2**53:
        raise ParameterError("a question of this family would show 2^53 cells or more")
