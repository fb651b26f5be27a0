"""Answers for analysts: what a study found in the reports of its survey, in the form that was asked for.

Refused where there are too few reports, and where an answer would be too long. Not here: how a result is written down
(`veil.results`), and who computes it when (`readings`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from veil.collector.catalogue import parsed_study, read_by
from veil.collector.in_store import InStore, InterruptedReadingError, StoreJournal, at_once
from veil.collector.readings import Reading
from veil.collector.rounds import Studies
from veil.collector.store import Store, StoredSurvey
from veil.collector.tallying import is_maintained
from veil.errors import EmptyError, InputError, MismatchError, ServiceError, WireError
from veil.results.base import Result
from veil.results.render.files import FORMATS, document, table_bytes
from veil.sql.answer import Answer
from veil.sql.table import Table
from veil.study import OneRound, Study, StudyRun, study_from_json
from veil.tools.json_documents import digest
from veil.tools.limits import Limits, limited

__all__ = ["FORMS", "Query", "prepare", "without", "written"]

FORMS = {"json": "json", "csv": "csv", "arrow": "arrows"}
"""What an answer can be asked for as, and what `veil.results.render.files` calls it: Arrow is a stream here."""
_MOST_CANDIDATES = 100_000
_MOST_ROWS = 131_072
_MOST_SETTINGS = 32


@dataclass(frozen=True)
class Query:
    """What an analyst asks for: parameters of the reading as NAME=VALUE, the level of intervals, and the form.

    `candidates` are the values to count, where the study takes them; `study` is another study of the same task, or the
    bare task itself, to read the reports with in place of the published one. `all` is for what a search found and is
    not significant: it is hidden otherwise.
    """

    level: float = 0.95
    format: str = "json"
    set: tuple[str, ...] = ()
    candidates: tuple[Any, ...] | None = None
    study: Any = None
    all: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.format, str) or self.format not in FORMS:
            raise InputError(f"the format is one of {', '.join(FORMS)}")
        if not (isinstance(self.level, float) and math.isfinite(self.level) and 0 < self.level < 1):
            raise InputError("the level of an interval lies between 0 and 1")
        if not isinstance(self.all, bool):
            raise InputError("all is true or false")
        if len(self.set) > _MOST_SETTINGS or not all(isinstance(one, str) and "=" in one for one in self.set):
            raise InputError("a parameter of the reading is set as NAME=VALUE")
        if self.candidates is not None and not 1 <= len(self.candidates) <= _MOST_CANDIDATES:
            raise InputError(f"expected 1 to {_MOST_CANDIDATES:,} candidates")
        if not all(_is_scalar(candidate) for candidate in self.candidates or ()):
            raise InputError("a candidate is text or a number")

    @property
    def parameters(self) -> str:
        """For the audit log: what was asked, without any value."""
        asked: dict[str, Any] = {"set": list(self.set), "level": self.level, "format": self.format}
        asked |= {"all": True} if self.all else {}
        if self.candidates is not None:
            asked["candidates"] = len(self.candidates)
        return json.dumps(asked | ({} if self.study is None else {"study": study_from_json(self.study).kind}))

    def applied(self, published: Study) -> Study:
        """The study to read with; refuses one of another task, and parameters that it does not have."""
        study = published if self.study is None else study_from_json(self.study)
        if study.survey.task != published.survey.task:
            raise MismatchError("expected a study of the same task: this one asks people something else")
        if self.set:
            study = study.changed(**dict(one.split("=", 1) for one in self.set))
        return study if self.candidates is None else study.with_candidates(self.candidates)


def prepare(
    store: Store,
    studies: Studies,
    stored: StoredSurvey,
    query: Query,
    check: Callable[[], object] = at_once,
    limits: Limits | None = None,
) -> Reading:
    """What has to be read for an answer, from the reports so far; refuses what can be refused before that.

    `limits` bound the reading itself: None where an operator reads in a process of their own.
    """
    with store.steady() as epoch:
        reading = _prepared(store, studies, stored, query, check, limits)

    def read() -> Result:
        with store.steady(epoch):
            return reading.read()

    # what is kept of another server's reports must not answer for this one's
    return replace(reading, study=f"{reading.study} {epoch}", read=read)


def _prepared(
    store: Store,
    studies: Studies,
    stored: StoredSurvey,
    query: Query,
    check: Callable[[], object],
    limits: Limits | None,
) -> Reading:
    run = store.study_of(stored.task) if query.study is None else None
    if run is not None:
        if query.set or query.candidates is not None:
            raise InputError("a study of several rounds was read as it was published: leave set and candidates out")
        takes = StoreJournal(store, run.id)
        return Reading(
            stored.task, run.id, 0, False, lambda: _checked(studies.result(run), stored), lambda: takes.missing
        )
    survey = read_by(stored)
    published = parsed_study(stored.study or stored.document)
    study = query.applied(published)
    if not isinstance(study, OneRound):  # its first round may ask just what was published
        raise InputError("expected a study of one round")
    journal: StoreJournal | None = None

    def note(reports: int) -> None:
        if journal is not None and reports:
            journal.note_missing(0, reports)

    collected = InStore(store, stored, survey, check=check, note=note)
    if collected.people < stored.minimum:
        raise _too_few(stored)
    # what is kept as a tally is read at once; a reading of the published study is written down as it goes
    kept = is_maintained(survey) and not isinstance(study, Table)  # a query goes through the reports themselves
    if not kept and study == published:
        journal = StoreJournal(store, stored.task, collected.mark)
        note(collected.missing)

    def missing() -> int:
        if journal is not None:
            return journal.missing
        return collected.missing if kept else max(collected.missing, store.missing(stored.key))

    def read() -> Result:
        try:
            with nullcontext() if limits is None else limited(limits):
                return _checked(
                    study.read(collected) if journal is None else _recorded(study, journal, collected), stored
                )
        except EmptyError:
            raise _too_few(stored) from None
        except InterruptedReadingError as problem:
            raise problem.cause from None
        except ServiceError as problem:
            if problem.code == "candidates-needed" and "candidates" not in study.parameters():
                raise InputError(f"{problem}: export the reports instead") from None
            raise

    return Reading(stored.task, digest(study.to_json()), collected.mark, not kept, read, missing)


def without(missing: int) -> list[str]:
    """Return the remark on an answer that lacks damaged reports, or none."""
    if not missing:
        return []
    are = "report is" if missing == 1 else "reports are"
    return [f"{missing:,} {are} damaged in the collector's database and not counted here."]


def written(stored: StoredSurvey, query: Query, found: Result, missing: int = 0) -> tuple[bytes, str]:
    """An answer as bytes, and its media type. In JSON a remark says how many damaged reports it lacks."""
    form, hide = FORMS[query.format], None if query.all else "all=true"
    if form == "json":
        answer = document(found, query.level, hide=hide)
        if missing:  # an answer of several parts has no remarks of its own otherwise
            answer["remarks"] = [*answer.get("remarks", []), *without(missing)]
        body = json.dumps({"task": stored.task, **answer}, allow_nan=False).encode()
    else:
        body = table_bytes(found, form, query.level, hide=hide, guard_formulas=True)
    return body, FORMATS[form]


def _recorded(study: OneRound[Any], journal: StoreJournal, collected: InStore) -> Result:
    """A reading that goes on where one before it was broken off."""
    try:
        run = StudyRun(study, journal)
    except (MismatchError, WireError):  # another version of veil wrote it down, or another reading of this task
        journal.forget(0)
        run = StudyRun(study, journal)
    if run.round is not None:
        run.answer(collected)
    assert run.result is not None
    return run.result


def _checked(found: Result, stored: StoredSurvey) -> Result:
    parts = [part for _, part in found.parts()]
    if any(part.n < stored.minimum for part in parts):
        raise _too_few(stored)
    if sum(len(part) for part in parts) > _MOST_ROWS:
        raise InputError(f"an answer has at most {_MOST_ROWS:,} rows: export the reports instead")
    return found.withheld(stored.minimum) if isinstance(found, Answer) else found


def _too_few(stored: StoredSurvey) -> ServiceError:
    message = f"too few reports for an answer: expected at least {stored.minimum:,}"
    if stored.minimum % stored.step:
        message += f", counted in steps of {stored.step:,}"
    return ServiceError(409, "too-few-reports", message, expected=f"at least {stored.minimum} reports")


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**64
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)  # half a character: JSON lets it pass
    return value is None or (isinstance(value, float) and math.isfinite(value))
