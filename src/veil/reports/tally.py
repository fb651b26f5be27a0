"""The tally of one question: integer counts that add up exactly, in any order and any split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError, MismatchError
from veil.tools.numbers import is_int

_MOST = 2**63 - 1
_MOST_WEIGHT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Tally:
    """How many reports support each candidate. `candidates` None means every value of the domain, in order.

    `weight` and `square` are the sums of the reports' weights and of their squares; without weights both are `people`.
    `fakes` are reports that are nobody's: uniformly random ones that shufflers added, counted but not among `people`.

    >>> a = Tally("t", np.array([3, 1]), people=4, weight=4, square=4)
    >>> (a + a).counts.tolist(), (a + a).people
    ([6, 2], 8)
    """

    task: str
    counts: NDArray[np.int64]
    people: int
    weight: int
    square: int
    candidates: NDArray[Any] | None = None
    fakes: int = 0

    def with_fakes(self, fakes: int) -> Tally:
        """The same reports, so many more of which are nobody's.

        >>> Tally("t", np.array([3, 1]), people=4, weight=4, square=4).with_fakes(1).people
        3
        """
        check_fakes(fakes, self.people)
        if fakes and not self.people == self.weight == self.square:
            raise InputError("reports with fakes among them have no weights: nobody knows which are fakes")
        people = self.people - int(fakes)
        return replace(self, people=people, weight=people, square=people, fakes=self.fakes + int(fakes))

    @cached_property
    def key(self) -> str:
        """Names the task and the candidates: only tallies with the same key add up."""
        named = hashlib.sha256(self.task.encode())
        if self.candidates is not None:
            little = self.candidates.astype(self.candidates.dtype.newbyteorder("<"), copy=False)
            named.update(f"{little.dtype.str}{little.shape}".encode() + np.ascontiguousarray(little).tobytes())
        return named.hexdigest()

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if self.key != other.key or len(self.counts) != len(other.counts):
            raise MismatchError("tallies of different tasks or candidates cannot be added")
        weight = self.weight + other.weight
        fakes = self.fakes + other.fakes
        if max(abs(weight), self.people + other.people + fakes) > _MOST:
            raise InputError("a tally holds at most 2^63 - 1")
        counts = self.counts + other.counts
        if (((self.counts ^ counts) & (other.counts ^ counts)) < 0).any():  # both had the other sign: it wrapped around
            raise InputError("a tally holds at most 2^63 - 1")
        return Tally(
            self.task,
            counts,
            self.people + other.people,
            weight,
            self.square + other.square,
            self.candidates,
            fakes,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return (
            self.key == other.key
            and (self.people, self.weight, self.square) == (other.people, other.weight, other.square)
            and self.fakes == other.fakes
            and bool(np.array_equal(self.counts, other.counts))
        )

    __hash__ = None  # type: ignore[assignment]  # a tally holds an array

    def __repr__(self) -> str:
        fakes = f" and {self.fakes} fakes" if self.fakes else ""
        return f"Tally(of {self.people} reports{fakes}, {len(self.counts)} counts, task {self.task[:12]})"


def merge(tallies: Iterable[Any]) -> Any:
    """All tallies of one task, added up.

    >>> one = Tally("t", np.array([1]), people=1, weight=1, square=1)
    >>> merge([one, one, one]).people
    3
    """
    parts = list(tallies)
    if not parts:
        raise EmptyError("expected at least one tally to merge")
    return reduce(lambda a, b: a + b, parts)


def check_fakes(fakes: Any, rows: int) -> int:
    """A number of fakes among so many reports, at least one of which is a person's."""
    if not is_int(fakes) or fakes < 0:
        raise InputError("a number of fakes is an integer of at least 0")
    if fakes and fakes >= rows:
        raise InputError(f"{int(fakes):,} fakes are all there is of {rows:,} reports: expected somebody's beside them")
    return int(fakes)


def check_weights(weights: Any, rows: int) -> NDArray[np.int64] | None:
    """Integer weights, one per report, within 2^31 so that no sum can overflow."""
    if weights is None:
        return None
    try:
        array = np.asarray(weights)
    except ValueError:
        raise InputError("weights are integers on a declared scale, one per report") from None
    if array.dtype.kind not in "iu" or array.shape != (rows,):
        raise InputError("weights are integers on a declared scale, one per report")
    if len(array) and (int(array.max()) > _MOST_WEIGHT or int(array.min()) < -_MOST_WEIGHT):
        raise InputError("a weight lies within 2^31")
    return array.astype(np.int64)


def weight_sums(weights: NDArray[np.int64] | None, rows: int) -> tuple[int, int]:
    """The exact sums of the weights and of their squares."""
    if weights is None:
        return rows, rows
    squares = (weights * weights).astype(np.uint64)
    high, low = int((squares >> np.uint64(32)).sum()), int((squares & np.uint64(2**32 - 1)).sum())
    return int(weights.sum()), (high << 32) + low
