"""Counting over chunks of reports: one pass that gives integers which add up, for a whole collection or one task.

Also what such passes share: progress, ranges of public columns, and the best of many candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.study.collection import Codes, Questions
from veil.survey import Survey, SurveyTally
from veil.tools.numbers import is_int

Advance = Callable[[int], object]
Watch = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Makes a progress bar: what is going on, and of how many people if that is known."""
Counts = NDArray[np.int64]
Chunks = Iterable[Reports]
_PIECE_ROWS, _PIECE_BYTES = 1 << 20, 32 << 20


@contextmanager
def unwatched(what: str, total: int | None = None) -> Iterator[Advance]:
    """Progress that nobody watches."""
    yield lambda steps: None


@dataclass(frozen=True)
class Ranges:
    """Columns of reports with the least and the largest number that each may hold; several hold together."""

    bounds: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, survey: Survey, ranges: Mapping[str, tuple[int, int]]) -> Ranges:
        """Ranges of a survey's public columns, by their names."""
        known = {public.name: public.field.name for public in survey.public}
        if not ranges or not set(ranges) <= set(known):
            named = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"reports are told apart by public columns of their survey: {named}")
        bounds = []
        for name, ends in ranges.items():
            if not isinstance(ends, (tuple, list)) or len(ends) != 2 or not all(is_int(end) for end in ends):
                raise InputError(f"a range of column {name} is two integers, the least and the largest")
            bounds.append((known[name], int(ends[0]), int(ends[1])))
        return cls(tuple(sorted(bounds)))

    def joined(self, others: Ranges) -> Ranges:
        """Both at once."""
        return Ranges(tuple(sorted({*self.bounds, *others.bounds})))

    def kept(self, reports: Reports) -> Reports:
        """The reports that lie within all ranges."""
        inside = np.ones(len(reports), np.bool_)
        for name, least, most in self.bounds:
            column = reports.columns[name]
            inside &= (column >= least) & (column <= most)
        return reports if inside.all() else reports[inside]


class TopCandidates:
    """The `keep` candidates with the largest counts of all that were offered; ties go to those offered first."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self._codes: list[Codes] = []
        self._counts: list[Counts] = []
        self._waiting = 0
        self._floor: int | None = None

    def offer(self, codes: Codes, counts: Counts) -> None:
        """Take what may be among the best."""
        self.offer_at(counts, lambda places: codes[places])

    def offer_at(self, counts: Counts, codes_at: Callable[[NDArray[np.int64]], Codes]) -> None:
        """The same where codes are made only for the places that may be among the best."""
        if self._floor is not None:
            places = np.flatnonzero(counts > self._floor)
        elif len(counts) > self.keep:
            least = np.partition(counts, len(counts) - self.keep)[len(counts) - self.keep]
            places = np.flatnonzero(counts >= least)
        else:
            places = np.arange(len(counts))
        if not len(places):
            return
        self._codes.append(codes_at(places))
        self._counts.append(counts[places])
        self._waiting += len(places)
        if self._waiting > 2 * self.keep:
            self._sort()

    def _sort(self) -> None:
        codes, counts = np.concatenate(self._codes), np.concatenate(self._counts)
        order = np.argsort(-counts, kind="stable")[: self.keep]
        self._codes, self._counts, self._waiting = [codes[order]], [counts[order]], len(order)
        if len(order) == self.keep:
            self._floor = int(counts[order[-1]])

    def taken(self) -> tuple[Codes, Counts]:
        """The best so far, the largest first."""
        self._sort()
        return self._codes[0], self._counts[0]


def count_answers(survey: Survey, chunks: Chunks, questions: Questions) -> Counts:
    """How many people answered each question."""
    counts = np.zeros(len(questions), dtype=np.int64)
    for chunk in chunks:
        counts += [len(rows) for _, rows, _ in survey.parts(chunk, questions)]
    return counts


def count_up(
    survey: Survey,
    chunks: Chunks,
    codes: Mapping[int, Codes | None],
    questions: Questions | None = None,
    weights: str | None = None,
) -> SurveyTally | None:
    """One tally per question, of encoded candidates; None where there is no chunk. `weights` is a public column."""
    total: SurveyTally | None = None
    for chunk in chunks:
        part = survey.tally_coded(chunk, codes, weights_of(survey, chunk, weights), questions)
        total = part if total is None else total + part
    return total


def weights_of(survey: Survey, chunk: Reports, column: str | None) -> Counts | None:
    """The integers of a public column, by its name; None where none is named."""
    if column is None:
        return None
    known = [public.name for public in survey.public]
    if column not in known:
        named = f"it has {', '.join(known)}" if known else "it has none"
        raise InputError(f"this survey has no public column {column!r} to weigh by: {named}")
    return np.asarray(chunk.columns[survey.public[known.index(column)].field.name])


def answers(
    survey: Survey, chunks: Chunks, questions: Questions, most_rows: int = 0, most_bytes: int = 0
) -> Iterator[Columns]:
    """The answers to questions that share a mechanism, a piece of about so many rows or bytes at a time."""
    most_rows, most_bytes = most_rows or _PIECE_ROWS, most_bytes or _PIECE_BYTES
    waiting: list[Columns] = []
    rows = size = 0
    for chunk in chunks:
        for _, mine, columns in survey.parts(chunk, questions):
            if len(mine):
                waiting.append(columns)
                rows += len(mine)
                size += sum(column.nbytes for column in columns.values())
        if rows >= most_rows or size >= most_bytes:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def count_support(survey: Survey, chunks: Chunks, questions: Questions, codes: Codes) -> Counts:
    """How many answers to questions that share a mechanism support each code."""
    oracle = survey.questions[questions[0]].pure
    counts = np.zeros(len(codes), dtype=np.int64)
    for columns in answers(survey, chunks, questions):
        counts += oracle.support(columns, codes, None)
    return counts


def count_jointly(survey: Survey, chunks: Chunks, codes: Mapping[int, Codes]) -> Counts | None:
    """The joint support of questions that the same people answered (`Survey.joint`); None where there is no chunk."""
    total: Any = None
    for chunk in chunks:
        part = survey.joint_coded(chunk, codes)
        total = part if total is None else total + part
    return None if total is None else np.asarray(total)
