"""The reports of a survey in the collector's store: the tally that is kept of them, and the collection for a study.

A study reads the reports up to a mark, so its result does not depend on what arrives meanwhile. Kept tallies are sums
of integers: catching one up and rebuilding it from all reports give the same numbers. `StoreJournal` records what the
rounds of a study took.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from veil.collector.store.base import Chunk, Store, StoredSurvey, StoredTally
from veil.engines import ReportStream
from veil.entropy import CHUNK_ROWS
from veil.errors import EmptyError, InputError, LimitError, ServiceError, StoreDamagedError, StoreError
from veil.mechanisms import FrequencyOracle, LinearHashing
from veil.reports.columns import Reports
from veil.reports.tally import Tally
from veil.study.collection import Questions
from veil.study.continuations import Continuations
from veil.study.run import Journal
from veil.survey import Survey, SurveyTally
from veil.tools import limits
from veil.wire.tallies import decode_tally, encode_tally

_MOST_COUNTED = 16  # tallies of candidates that are kept for each survey: those that were asked for last
_MOST_VALUES = 65_536  # in an answer about a whole domain: a larger one is asked about by candidates
_CANDIDATE_BYTES, _PAIR_SECONDS = 100, 2e-9
_MOST_COUNTS = 1 << 17  # a reconstruction goes through all of them, again and again
_MOST_KEPT_COUNTS = 1 << 16  # a larger kept tally would be rewritten often for few reports: it is made on request
_CHUNK_BYTES = 8 << 20


def is_maintained(survey: Survey) -> bool:
    """Whether a tally is kept beside the reports: where the domains can be listed and the counts are not too many."""
    if len(survey.questions) > _MOST_KEPT_COUNTS // 2:  # each has two counts or more
        return False
    counts = 0
    for question in survey.questions:
        counts += question.mechanism.tally_size(None) if question.mechanism.closed else _MOST_KEPT_COUNTS + 1
        if counts > _MOST_KEPT_COUNTS:
            return False
    return True


def catch_up(store: Store, stored: StoredSurvey, survey: Survey) -> SurveyTally | None:
    """Runs at the collector: the tally of the reports up to the survey's mark, stored with it. None without any."""
    return caught_up(store, stored, survey)[0]


def caught_up(store: Store, stored: StoredSurvey, survey: Survey) -> tuple[SurveyTally | None, int]:
    """The same, with the sequence number up to which it counts."""
    with store.steady():  # reports of a server that was replaced must not come into the tally of the new one
        return _caught_up(store, stored, survey)


def _caught_up(store: Store, stored: StoredSurvey, survey: Survey) -> tuple[SurveyTally | None, int]:
    survey = survey.first  # whichever wave it is: the tally is that of a stored survey, which knows its wave
    end = store.survey(stored.key).mark
    while True:
        before = store.tally(stored.key)
        total = None if before is None else decode_tally(survey, before.encoded)
        mark = old = 0 if before is None else before.sequence
        for chunk in _chunks(store, stored, survey, mark, end):
            if chunk.payloads:
                total = _added(total, survey.tally(_reports(survey, chunk)))
            mark = chunk.last
        if total is None or mark == old or store.save_tally(stored.key, _stored(total, mark), old):
            return total, mark
        # another collector was quicker: its mark is ahead, go on from there


def rebuild(store: Store, stored: StoredSurvey, survey: Survey) -> tuple[SurveyTally | None, bool]:
    """Runs at the collector: the tally from all reports, put in place of the stored one; and whether that was right."""
    with store.steady():
        return _rebuilt(store, stored, survey)


def _rebuilt(store: Store, stored: StoredSurvey, survey: Survey) -> tuple[SurveyTally | None, bool]:
    survey = survey.first
    caught, mark = caught_up(store, stored, survey)
    total: SurveyTally | None = None
    rows = 0
    for reports in stored_reports(store, stored, survey, mark):
        total = _added(total, survey.tally(reports))
        rows += len(reports)
    if caught is None:
        return None, True
    if total is None:
        raise InputError("the reports of this survey were purged: its tally is all that is left of them")
    if rows < mark and rows != caught.people and not store.survey(stored.key).is_purged:
        raise StoreDamagedError(f"{mark - rows:,} reports are damaged or missing: the tally stays as it was")
    right = encode_tally(caught) == encode_tally(total)
    if not right and not store.save_tally(stored.key, _stored(total, mark), None, rows=rows):
        raise InputError("reports of this survey were purged while they were counted: its tally stays as it was")
    return total, right


def stored_reports(store: Store, stored: StoredSurvey, survey: Survey, until: int, after: int = 0) -> Iterator[Reports]:
    """Yield all reports beyond `after` and up to `until`, a chunk at a time, without those in damaged blocks."""
    for chunk in _chunks(store, stored, survey, after, until):
        if chunk.payloads:
            yield _reports(survey, chunk)


def _chunks(
    store: Store, stored: StoredSurvey, survey: Survey, after: int, until: int | None = None
) -> Iterator[Chunk]:
    rows = max(1, min(CHUNK_ROWS, _CHUNK_BYTES // survey.layout.size))
    while until is None or after < until:
        chunk = store.chunk(stored.key, after, rows, until)
        if chunk is None:
            return
        yield chunk
        after = chunk.last


def _reports(survey: Survey, chunk: Chunk) -> Reports:
    return Reports.from_bytes(survey.task, survey.layout, chunk.payloads)


def _added(total: SurveyTally | None, part: SurveyTally) -> SurveyTally:
    return part if total is None else total + part


def _stored(tally: SurveyTally, mark: int) -> StoredTally:
    return StoredTally(encode_tally(tally), mark)


class InterruptedReadingError(Exception):
    """The end of a reading before its result: the database failed, its time was over, or the collector stops.

    It is no `VeilError`, which would refuse the reading. What was taken stays recorded: the next reading goes on there.
    """

    def __init__(self, cause: StoreError | ServiceError | LimitError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def at_once() -> None:
    """Nothing stops a reading."""


class StoreCollection(ReportStream):
    """All reports of a survey up to a mark. Where a tally is kept, it is caught up first and is what `tally` returns.

    `check` is called before every chunk, and raises a ServiceError where the collector stops. A `limited` one refuses
    tallies that are too long for an answer before anything is counted. `missing` is how many reports are left out
    because they are damaged; `note` is called with that number before anything is made of the others.
    """

    def __init__(
        self,
        store: Store,
        stored: StoredSurvey,
        survey: Survey,
        *,
        check: Callable[[], object] = at_once,
        limited: bool = True,
        note: Callable[[int], object] | None = None,
    ) -> None:
        super().__init__(survey)
        self._store, self._stored, self._check, self._limited = store, stored, check, limited
        self._kept: SurveyTally | None = None
        self._note, self.missing = note, 0
        self.mark = self._reports = stored.mark
        if is_maintained(survey):
            self._kept, self.mark = caught_up(store, stored, survey)
            self._reports = 0 if self._kept is None else self._kept.people
            self._lack(self.mark - self._reports)  # numbers have no gaps

    @property
    def expected(self) -> int:
        return self._reports

    @property
    def fingerprint(self) -> str:  # reports up to a mark are the same ones for ever
        return f"up to {self.mark}"

    def answered(self, question: int) -> int:
        return super().answered(question) if self._kept is None else self._kept.part(question).people

    def tally(
        self,
        questions: Questions | None = None,
        candidates: Mapping[int, Any] | None = None,
        weights: str | None = None,
    ) -> SurveyTally:
        chosen = candidates or {}
        if self._limited:
            asked = range(len(self.survey.questions)) if questions is None else questions
            self._check_sizes([i for i in asked if i not in chosen])
        if self._kept is not None and not chosen and weights is None:
            return self._kept
        if chosen:
            each = [len(given) for given in chosen.values()]
            together = max(each) if "choice" in self.survey.ask.layout.names else sum(each)
            self._admit(sum(each), self.people * together)
        if chosen and weights is None:
            return self._counted_on(questions, chosen)
        return super().tally(questions, candidates, weights)

    def best(self, questions: Questions, continuations: Continuations, keep: int) -> Tally:
        if not isinstance(self.oracle(questions), LinearHashing):  # a transform compares nothing
            self._admit(continuations.size, continuations.size * sum(self.answered(i) for i in questions))
        return super().best(questions, continuations, keep)

    def _admit(self, candidates: int, pairs: int) -> None:
        """Refuse to compare more candidates with reports than the limits of a reading leave time for."""
        what = f"counting {candidates:,} candidates in {self.people:,} reports"
        limits.admit(what, candidates * _CANDIDATE_BYTES / 1e6, pairs * _PAIR_SECONDS, "fewer candidates")

    def _counted_on(self, questions: Questions | None, candidates: Mapping[int, Any]) -> SurveyTally:
        """The tally of some candidates: what was counted for them before, and the reports since then."""
        asked = self._asked(questions, candidates)
        try:
            before = self._store.counted(self._stored.key, asked)
        except StoreError as problem:
            raise InterruptedReadingError(problem) from None
        total, mark = None, 0
        if before is not None and before.sequence <= self.mark:
            total, mark = decode_tally(self.survey, before.encoded), before.sequence
        for chunk in self._beyond(mark):
            part = self.survey.tally(chunk, candidates, questions=questions)
            total = part if total is None else total + part
        if total is None:
            raise EmptyError("there are no reports: expected at least one")
        self._lack(self.mark - total.people)
        with suppress(StoreError):  # the answer is right all the same, and the next one counts again
            now = int(time.time())
            if mark < self.mark:
                kept = StoredTally(encode_tally(total), self.mark)
                self._store.save_counted(self._stored.key, asked, kept, now, _MOST_COUNTED)
            else:
                self._store.note_asked(self._stored.key, asked, now)
        return total

    def _asked(self, questions: Questions | None, candidates: Mapping[int, Any]) -> str:
        """A digest of what is to be counted."""
        whole = hashlib.sha256(repr(None if questions is None else list(questions)).encode())
        for i in sorted(candidates):
            codes = self.survey.questions[i].encode_candidates(candidates[i])
            if codes is not None:
                whole.update(f"{i} {codes.dtype} {codes.shape} ".encode() + codes.tobytes())
        return whole.hexdigest()

    def chunks(self) -> Iterator[Reports]:
        return self._beyond(0)

    def _beyond(self, mark: int) -> Iterator[Reports]:
        found = 0
        try:
            for reports in stored_reports(self._store, self._stored, self.survey, self.mark, mark):
                self._check()
                limits.check()
                found += len(reports)
                yield reports
        except (StoreError, ServiceError, LimitError) as problem:
            raise InterruptedReadingError(problem) from None
        if found < self.mark - mark:
            if self._store.survey(self._stored.key).is_purged:
                raise InputError("the reports of this survey were purged: only answers from its kept tally are left")
            self._lack(self.mark - mark - found)

    def _lack(self, reports: int) -> None:
        """Note that reports are left out because they are damaged."""
        if reports > self.missing:
            self.missing = reports
            if self._note is not None:
                self._note(reports)

    def _check_sizes(self, questions: Sequence[int]) -> None:
        """Refuse what would be too long an answer, and take too long to make."""
        counts = 0
        for asked in (self.survey.questions[i].mechanism for i in questions):
            if not asked.closed or (isinstance(asked, FrequencyOracle) and asked.domain.size > _MOST_VALUES):
                message = f"this domain is too large to list: an answer has at most {_MOST_VALUES:,} values"
                raise ServiceError(422, "candidates-needed", message, expected="candidates to estimate")
            counts += asked.tally_size(None)
            if counts > _MOST_COUNTS:
                message = f"an answer is made from at most {_MOST_COUNTS:,} counts: ask about one question (set"
                raise InputError(f"{message} question=0, say), or export the reports")


class StoreJournal(Journal):
    """The journal of a run in the store. `run` names the study, `mark` the reports that it reads.

    A study that reads more reports than before begins anew, and what it took from fewer is forgotten.
    """

    def __init__(self, store: Store, run: str, mark: int = 0) -> None:
        self._store, self._run, self._mark = store, run, mark

    def read(self, round_: int, index: int) -> bytes | None:
        try:
            return self._store.take(self._run, self._mark, round_, index)
        except StoreError as problem:
            raise InterruptedReadingError(problem) from None

    def write(self, round_: int, index: int, data: bytes) -> None:
        try:
            if self._mark and not index:
                self._store.forget_marks_before(self._run, self._mark)
            self._store.save_take(self._run, self._mark, round_, index, data)
        except StoreError as problem:
            raise InterruptedReadingError(problem) from None

    def note_missing(self, round_: int, reports: int) -> None:
        """Record how many reports are left out because they are damaged."""
        try:
            self._store.note_missing(self._run, self._mark, round_, reports)
        except StoreError as problem:
            raise InterruptedReadingError(problem) from None

    @property
    def missing(self) -> int:
        """How many reports the run was read without."""
        return self._store.missing_in(self._run, self._mark)

    def forget(self, round_: int) -> None:
        self._store.forget_takes(self._run, self._mark, round_)
