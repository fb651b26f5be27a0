"""Tallies at the collector: kept up to the mark that analysts see, caught up from there, or rebuilt from all reports.

Sums of integers do not depend on the order or on the split: catching up and rebuilding give the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from veil.collector.store.base import Chunk, Store, StoredSurvey, StoredTally
from veil.entropy import CHUNK_ROWS
from veil.errors import InputError, StoreDamagedError
from veil.reports.columns import Reports
from veil.survey import Survey, SurveyTally
from veil.wire.tallies import decode_tally, encode_tally

_MOST_COUNTS = 1 << 16  # a larger tally would be written again and again for few reports: it is made when asked for
_CHUNK_BYTES = 8 << 20


def is_maintained(survey: Survey) -> bool:
    """Whether a tally is kept beside the reports: where the domains can be listed and the counts are not too many."""
    if len(survey.questions) > _MOST_COUNTS // 2:  # each has two counts or more
        return False
    counts = 0
    for question in survey.questions:
        counts += question.mechanism.tally_size(None) if question.mechanism.closed else _MOST_COUNTS + 1
        if counts > _MOST_COUNTS:
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
