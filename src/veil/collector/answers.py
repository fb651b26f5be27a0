"""Answers for analysts: what a question found, or all questions of a protocol together.

Refused where too few people reported. How an answer is written down is told in `forms`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from veil.collector.forms import FORMATS, Result, form_of
from veil.collector.store import Store, StoredSurvey
from veil.collector.tallying import catch_up, count_all, is_maintained
from veil.domain.times import is_time, parse_time
from veil.errors import InputError, ServiceError
from veil.mechanisms import FrequencyOracle
from veil.numeric.reading import Reading, protocol_of
from veil.protocol import Protocol
from veil.results.estimate import Estimate
from veil.survey import Question, Survey, SurveyTally

__all__ = ["ALL", "Query", "answer"]

ALL = "all"
"""In place of a question's number: all questions together, where a protocol reads them so."""
_MOST_CANDIDATES = 100_000
_MOST_VALUES = 65_536  # in an answer about a whole domain: a larger one is asked about by candidates
_MOST_COUNTS = 1 << 17  # a reconstruction goes through all of them, again and again


@dataclass(frozen=True)
class Query:
    """What an analyst asks for: a question of a survey, how to post-process, and in which form."""

    question: int | str
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
    """Runs at the collector: what one question, or all together, found over all reports so far; and its media type."""
    from veil.collector.catalogue import parsed

    found, reports = _result(store, stored, parsed(stored.document), query)
    people = found.n
    if query.post != "none":
        if not isinstance(found, Estimate):
            raise InputError("frequencies are post-processed, not distributions, means or differences: leave post out")
        found = found.post(query.post)
    form = form_of(found, query.level)
    if query.format != "json":
        return form.table(query.format), FORMATS[query.format]
    head = {"task": stored.task, "question": query.question, "kind": form.kind, "people": people, "reports": reports}
    asked = {"post": query.post} if isinstance(found, Estimate) else {}
    return json.dumps(head | asked | form.document(), allow_nan=False).encode(), FORMATS["json"]


def _result(store: Store, stored: StoredSurvey, survey: Survey, query: Query) -> tuple[Result, int]:
    """What was found, and how many reports there are in all."""
    protocol = protocol_of(survey) if query.question == ALL else None
    if protocol is not None:
        return _together(store, stored, survey, query, protocol)
    number = 0 if query.question == ALL and len(survey.questions) == 1 else query.question
    if number == ALL:
        message = "the questions of this survey are not read together"
        raise ServiceError(404, "unknown-question", message, expected="the number of one question")
    if not isinstance(number, int) or not 0 <= number < len(survey.questions):
        raise ServiceError(404, "unknown-question", "this survey has no such question")
    tally = _counted(store, stored, survey, number, query.candidates)
    if tally is None or tally.part(number).people < stored.minimum:
        raise _too_few(stored)
    return Reading().question(survey, tally, number), tally.people


def _together(
    store: Store, stored: StoredSurvey, survey: Survey, query: Query, protocol: Protocol
) -> tuple[Result, int]:
    if query.candidates is not None:
        raise InputError("all questions together take no candidates")
    if not all(_listable(question) for question in survey.questions):
        raise InputError(f"an answer has at most {_MOST_VALUES:,} buckets: export the reports instead")
    for question in survey.questions:
        _check_size(question)
    tally = catch_up(store, stored, survey) if is_maintained(survey) else count_all(store, stored, survey, None)
    if tally is None or tally.people < stored.minimum or not all(part.people for part in tally.parts):
        raise _too_few(stored)
    return Reading().together(protocol, tally), tally.people


def _counted(
    store: Store, stored: StoredSurvey, survey: Survey, number: int, candidates: Sequence[Any] | None
) -> SurveyTally | None:
    """The tally that an answer about one question is made from."""
    question = survey.question(number)
    if candidates is None:
        _check_size(question)
    if candidates is None and is_maintained(survey):
        return catch_up(store, stored, survey)
    chosen = {}
    if candidates is not None:
        values = question.view.values
        chosen[number] = [parse_time(one) for one in candidates] if is_time(values) else list(candidates)
        question.encode_candidates(chosen[number])  # refuses them before the reports are read
    return count_all(store, stored, survey, chosen, [number])


def _check_size(question: Question) -> None:
    """Refuse what would be too long an answer, and take too long to make."""
    if not _listable(question):
        raise ServiceError(
            422, "candidates-needed", "this domain is too large to list", expected="candidates to estimate"
        )
    if not isinstance(question.mechanism, FrequencyOracle) and question.mechanism.tally_size(None) > _MOST_COUNTS:
        raise InputError(f"an answer is made from at most {_MOST_COUNTS:,} counts: export the reports instead")


def _too_few(stored: StoredSurvey) -> ServiceError:
    message = "too few people have reported for an answer"
    return ServiceError(409, "too-few-reports", message, expected=f"at least {stored.minimum} reports")


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**64
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)  # half a character: JSON lets it pass
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _listable(question: Question) -> bool:
    asked = question.mechanism
    return bool(asked.closed) and (not isinstance(asked, FrequencyOracle) or asked.domain.size <= _MOST_VALUES)


def _posts() -> tuple[str, ...]:
    from veil.post import METHODS

    return ("none", *METHODS)
