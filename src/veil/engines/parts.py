"""What is counted over some of the reports: one piece of code for a whole collection and for each task of a cluster.

Every function goes once through chunks of reports and gives integers that add up, so that no split of the chunks shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.study.collection import Codes, Questions
from veil.survey import Survey, SurveyTally

__all__ = ["answers", "count_answers", "count_jointly", "count_support", "count_up", "weights_of"]

Chunks = Iterable[Reports]
Counts = NDArray[np.int64]

_PIECE_ROWS, _PIECE_BYTES = 1 << 20, 32 << 20


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
