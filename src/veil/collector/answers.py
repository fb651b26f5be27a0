"""Answers for analysts: frequencies with intervals, as JSON, CSV or Arrow. Refused where too few people reported."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veil.collector.store import Store, StoredSurvey
from veil.collector.tallying import catch_up, count_all, is_maintained
from veil.errors import EmptyError, InputError, ServiceError
from veil.mechanisms import FrequencyOracle
from veil.result import Estimate
from veil.survey import Survey

__all__ = ["FORMATS", "Query", "answer"]

FORMATS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
_MOST_CANDIDATES = 100_000
_MOST_VALUES = 65_536  # in an answer about a whole domain: a larger one is asked about by candidates


@dataclass(frozen=True)
class Query:
    """What an analyst asks for: a question of a survey, how to post-process, and in which form."""

    question: int
    post: str = "none"
    level: float = 0.95
    format: str = "json"
    candidates: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.format, str) or self.format not in FORMATS:
            raise InputError(f"the format is one of {', '.join(FORMATS)}")
        if not (isinstance(self.level, float) and math.isfinite(self.level) and 0 < self.level < 1):
            raise InputError("the level of an interval lies between 0 and 1")
        if not isinstance(self.post, str) or self.post not in _posts():
            raise InputError(f"there is no post-processing of that name; there are {', '.join(_posts())}")
        if self.candidates is not None and not 1 <= len(self.candidates) <= _MOST_CANDIDATES:
            raise InputError(f"expected 1 to {_MOST_CANDIDATES:,} candidates")
        if not all(_is_scalar(candidate) for candidate in self.candidates or ()):
            raise InputError("a candidate is text or a number")

    @property
    def parameters(self) -> str:
        """For the audit log: what was asked, without any value."""
        asked = {"question": self.question, "post": self.post, "level": self.level, "format": self.format}
        return json.dumps(asked | ({} if self.candidates is None else {"candidates": len(self.candidates)}))


def answer(store: Store, stored: StoredSurvey, query: Query) -> tuple[bytes, str]:
    """Runs at the collector: the estimate of one question over all reports so far, and its media type."""
    from veil.collector.catalogue import parsed

    survey = parsed(stored.document)
    if not 0 <= query.question < len(survey.questions):
        raise ServiceError(404, "unknown-question", "this survey has no such question")
    base = _estimate(store, stored, survey, query)
    found = base if query.post == "none" else base.post(query.post)
    rows = _rows(found, base, query.level)
    if query.format != "json":
        return _table(rows, query.format), FORMATS[query.format]
    document = {
        "task": stored.task,
        "question": query.question,
        "people": base.n,
        "reports": base.population,
        "level": query.level,
        "post": query.post,
        "lineage": list(found.lineage),
        "values": [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)],
    }
    return json.dumps(document, allow_nan=False).encode(), FORMATS["json"]


def _estimate(store: Store, stored: StoredSurvey, survey: Survey, query: Query) -> Estimate:
    question = survey.question(query.question)
    others = [q for q in survey.questions if q is not question]
    if query.candidates is None and not _listable(question):
        raise ServiceError(
            422, "candidates-needed", "this domain is too large to list", expected="candidates to estimate"
        )
    if query.candidates is not None or not is_maintained(survey):
        # the other questions are counted too, for one value each where their domain cannot be listed
        chosen = {i: _any_value(q) for i, q in enumerate(survey.questions) if q in others and not _listable(q)}
        if query.candidates is not None:
            question.encode_candidates(list(query.candidates))  # refuses them before the reports are read
            chosen[query.question] = list(query.candidates)
        tally = count_all(store, stored, survey, chosen)
    else:
        tally = catch_up(store, stored, survey)
    people = 0 if tally is None else tally.parts[query.question].people
    if tally is None or people < stored.minimum:
        message = "too few people have reported for an answer"
        raise ServiceError(409, "too-few-reports", message, expected=f"at least {stored.minimum} reports")
    return survey.estimate_question(tally, query.question)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**64
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)  # half a character: JSON lets it pass
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _listable(question: Any) -> bool:
    asked = question.mechanism
    return bool(asked.closed) and (not isinstance(asked, FrequencyOracle) or asked.domain.size <= _MOST_VALUES)


def _posts() -> tuple[str, ...]:
    from veil.post import METHODS

    return ("none", *METHODS)


def _any_value(question: Any) -> list[Any]:
    domain = question.view.values
    zero = np.zeros((1, domain.code_bytes), np.uint8) if domain.code_bytes else np.zeros(1, np.uint64)
    return [*domain.decode(zero)]


def _rows(found: Estimate, base: Estimate, level: float) -> dict[str, list[Any]]:
    frequencies = np.asarray(found.frequencies, dtype=float)
    columns: dict[str, list[Any]] = {
        "value": [_plain(value) for value in found.values],
        "frequency": frequencies.tolist(),
        "count": (frequencies * base.mass).tolist(),
        "low": [None] * len(frequencies),
        "high": [None] * len(frequencies),
    }
    if base.noise.known:
        bounds = np.asarray(found.interval(level), dtype=float)
        for name, side in (("low", bounds[:, 0]), ("high", bounds[:, 1])):
            columns[name] = [number if math.isfinite(number) else None for number in side.tolist()]
    return columns


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _table(rows: dict[str, list[Any]], kind: str) -> bytes:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    try:
        values = pa.array(rows["value"])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # labels of several types, or above 64 bits
        values = pa.array([str(value) for value in rows["value"]])
    numbers = {name: pa.array(column, pa.float64()) for name, column in rows.items() if name != "value"}
    table = pa.table({"value": values, **numbers})
    if not len(table):
        raise EmptyError("there is nothing to estimate")
    sink = io.BytesIO()
    if kind == "csv":
        pacsv.write_csv(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()
