"""Studies of several rounds: publishing, asking round by round, reading, and going on after a restart at any moment.

Each round is a survey of its own. Every step (close a round, read it, open the next) is recorded before it is done and
can be repeated, so any process can go on with a study. Reports and what the study took from them are in the store; this
module only remembers surveys for a moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

from veil.collector.store.base import Store, StoredRound, StoredStudy, StoredSurvey
from veil.collector.surveys.catalogue import (
    Catalogue,
    both_named,
    check_allowed,
    draft_of,
    is_digest,
    parsed_study,
    read_by,
    whole_number,
)
from veil.collector.surveys.collection import (
    InterruptedReadingError,
    StoreCollection,
    StoreJournal,
    at_once,
    catch_up,
    is_maintained,
)
from veil.device.client import RoundPart
from veil.errors import InputError, ServiceError
from veil.results.base import Result
from veil.study import OneRound, Study, StudyRun
from veil.tools.json_documents import Json, digest

_REMEMBERED_SECONDS = 1.0
_MOST_REMEMBERED = 1_000
_MOST = 2**40


class RunningStudies:
    """The studies of a collector. Its methods block: call them from a thread, except `recall`."""

    def __init__(self, store: Store, catalogue: Catalogue, clock: Callable[[], float] = time.time) -> None:
        self._store, self._catalogue, self._clock = store, catalogue, clock
        self._remembered: dict[str, tuple[float, StoredSurvey, RoundPart]] = {}

    def publish(
        self, study: Study, options: Json, *, precision: int, minimum: int, bare: bool = False
    ) -> tuple[StoredSurvey, bool]:
        """Keep a study with the survey of its first round as a draft; and whether it is new.

        A `bare` task says what is asked and not how it is read: a study that is there already stays.
        """
        survey, options = study.survey, dict(options)
        check_allowed(study.guarantee, options, precision=precision)
        people, seconds = options.pop("people", None), options.pop("round_seconds", None)
        if isinstance(study, OneRound):
            if people is not None or seconds is not None:
                raise InputError("this study has one round, which is closed as a survey is: leave its rules out")
            file = None if bare else study.to_bytes()
            draft = draft_of(survey, options, precision=precision, minimum=minimum, study=file)
            return self._catalogue.create(draft)
        if study.asks_again:
            raise InputError(
                f"a study of kind {study.kind} asks the same task in several rounds, and a collector takes the reports"
                " of a task once: run it in a folder with veil next"
            )
        if options.get("name") is not None:
            raise InputError("a name is for a survey of one round: leave it out")
        if options.get("closes") is not None:
            raise InputError("rounds are closed one after another, not at a time: leave closes out")
        wanted = StoredStudy(
            digest(study.to_json()),
            study.to_bytes(),
            None if people is None else whole_number(people, "people", _MOST),
            None if seconds is None else whole_number(seconds, "round_seconds", _MOST),
        )
        draft = draft_of(survey, options, precision=precision, minimum=minimum)
        # the round first: a crash in between leaves a draft that the same request finds again
        if not self._store.add_round(wanted.id, 0, next(study.rounds()).people, draft):
            raise ServiceError(409, "survey-exists", "the task of this study's first round was published before")
        made = self._store.create_study(wanted)
        stored, _ = self._catalogue.create(draft)
        found = self.look_up(wanted.id)
        if (found.people, found.seconds) != (wanted.people, wanted.seconds):
            raise ServiceError(409, "survey-exists", "this study is there already, with other rules for its rounds")
        return stored, made

    def look_up(self, id_: str) -> StoredStudy:
        """A study as it is now; refuses an unknown one."""
        found = self._store.find_study(id_) if is_digest(id_) else None
        if found is None:
            raise ServiceError(404, "unknown-study", "there is no study of several rounds with this id")
        return found

    def beginning(self, text: str) -> str | None:
        """The id of the one study that begins like this, or of the one with a round whose task id does."""
        every = [study.id for study in self._store.studies()]
        by_task = [id_ for id_ in every if any(one.task.startswith(text) for one in self._store.rounds(id_))]
        found = [id_ for id_ in every if id_.startswith(text)] or by_task
        if found and self._catalogue.waves(text):
            raise both_named(text)
        return found[0] if len(found) == 1 else None

    def first_task(self, id_: str) -> str | None:
        """The task of a study's first round: a token for that survey is one for the study."""
        found = self._store.rounds(id_) if is_digest(id_) else []
        return found[0].task if found else None

    def recall(self, id_: str) -> tuple[StoredSurvey, RoundPart] | None:
        """What `current` said a moment ago; does not block."""
        found = self._remembered.get(id_)
        return found[1:] if found is not None and time.monotonic() < found[0] else None

    def current(self, id_: str) -> tuple[StoredSurvey, RoundPart]:
        """The survey of the round that is asked now, and the part of all people that it is for."""
        found = self.look_up(id_)
        if found.finished:
            raise ServiceError(410, "study-finished", "this study is finished: it asks nobody any more")
        rounds = self._store.rounds(id_)
        stored = self._catalogue.look_up(rounds[-1].task)
        if stored.state == "closed":
            raise ServiceError(409, "no-open-round", "no round of this study is open now: ask again later")
        before = sum((one.share for one in rounds[:-1]), start=Fraction(0))
        part = RoundPart(id_, rounds[-1].number, stored.task, before, before + rounds[-1].share)
        if stored.state == "open":
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[id_] = (time.monotonic() + _REMEMBERED_SECONDS, stored, part)
        return stored, part

    def describe(self, id_: str) -> Json:
        """A study for an analyst: where it stands, round by round."""
        found = self.look_up(id_)
        described: list[Json] = []
        before = Fraction(0)
        for one in self._store.rounds(id_):
            stored = self._catalogue.look_up(one.task)
            phase = stored.phase(int(self._clock()))
            row = {"round": one.number, "task": one.task, "state": phase, "reports": stored.mark}
            # which people it is for, where every device draws a number between 0 and 1 once
            described.append({**row, "from": float(before), "to": float(before + one.share)})
            before += one.share
        last = described[-1]
        state = "draft" if last["state"] == "draft" else "reading" if found.wanted > last["round"] else "asking"
        return {
            "study": id_,
            "kind": parsed_study(found.document).kind,
            "state": "finished" if found.finished else state,
            "people": found.people,
            "round_seconds": found.seconds,
            "rounds": described,
        }

    def result(self, stored: StoredStudy) -> Result:
        """What a finished study found, from what it took: no report is read again."""
        found = self._run(stored).result if stored.finished else None
        if found is None:
            rounds = self._store.rounds(stored.id)
            message = f"this study has no result yet: round {rounds[-1].number} is not finished"
            raise ServiceError(409, "study-not-finished", message, expected="an answer after its last round")
        for one in self._store.rounds(stored.id):
            _check_minimum(self._catalogue.look_up(one.task))
        return found

    def purge(self, stored: StoredSurvey, begin: Callable[[], object] = at_once) -> int:
        """Forget the reports of a closed survey, once nothing needs them any more; how many there were.

        `begin` is called when nothing speaks against it, before anything is erased.
        """
        with self._store.steady():
            return self._purged(self._store.survey(stored.key), begin)

    def _purged(self, stored: StoredSurvey, begin: Callable[[], object]) -> int:
        study, survey = self._store.study_of(stored.task), read_by(stored)
        if stored.state != "closed":
            raise InputError("only a closed survey's reports can be forgotten")
        if study is not None and not study.finished:
            raise InputError("this survey is a round of a study that is not finished: its reports are still needed")
        if is_maintained(survey) and not stored.is_purged:
            catch_up(self._store, stored, survey)
        begin()
        return self._store.purge(stored.key)

    def request_next(self, id_: str, number: int | None = None) -> None:
        """Write down that the current round is to be closed and read. With its number, again is fine."""
        found, rounds = self.look_up(id_), self._store.rounds(id_)
        current = rounds[-1]
        if number is not None and (number < current.number or (found.finished and number == current.number)):
            return
        if found.finished or (number is not None and number > current.number):
            expected = None if found.finished else f"round {current.number}"
            raise ServiceError(409, "wrong-state", "this study has no such round to close", expected=expected)
        stored = self._catalogue.look_up(current.task)
        if stored.state == "draft":
            raise ServiceError(409, "wrong-state", "this study's first round is a draft", expected="an open round")
        _check_minimum(stored)  # also of one that was closed by hand, which gets no more: its study has no answer
        self._store.want_rounds(id_, current.number + 1)

    def waiting(self) -> Iterator[str]:
        """Studies with something to do: a round that was to be closed before a restart, or whose rule holds now."""
        now = int(self._clock())
        for id_, _ in self._store.under_way():
            study, current = self.look_up(id_), self._store.rounds(id_)[-1]
            if study.wanted <= current.number and self._is_due(study, current, now):
                self._store.want_rounds(study.id, current.number + 1)
                yield study.id
            elif study.wanted > current.number:
                yield study.id

    def _is_due(self, study: StoredStudy, current: StoredRound, now: int) -> bool:
        stored = self._catalogue.look_up(current.task)
        if stored.phase(now) != "open":
            return False
        if current.opened is None:
            self._store.note_opened(study.id, current.number, now)
        if stored.reports < stored.minimum:
            return False
        enough = study.people is not None and stored.reports >= math.ceil(study.people * current.share)
        opened = now if current.opened is None else current.opened
        return enough or (study.seconds is not None and now >= opened + study.seconds)

    def advance(self, id_: str, check: Callable[[], object] = at_once) -> int:
        """Close, read and open as many rounds as are wanted; how many were read. `check` may break it off."""
        try:
            with self._store.steady():
                return self._advance(self.look_up(id_), check)
        except InterruptedReadingError as problem:
            raise problem.cause from None

    def _advance(self, found: StoredStudy, check: Callable[[], object]) -> int:
        run, read = self._run(found), 0
        while run.round is not None:
            task = run.round.survey.task
            if run.finished:  # the first was made when the study was published
                first = self._catalogue.look_up(self._store.rounds(found.id)[0].task)
                asked = replace(first, task=task, document=run.round.survey.to_bytes(), state="open", opens=None)
                if not self._store.add_round(found.id, run.finished, run.round.people, asked):
                    message = f"the task of round {run.finished} was published before: a collector takes a task once"
                    raise ServiceError(409, "survey-exists", message)
            if found.wanted <= run.finished:
                return read
            stored = self._catalogue.close(task)
            self._remembered.pop(found.id, None)
            note = partial(StoreJournal(self._store, found.id).note_missing, run.finished)
            run.answer(StoreCollection(self._store, stored, run.round.survey, check=check, limited=False, note=note))
            read += 1
        self._store.finish_study(found.id)
        return read

    def _run(self, stored: StoredStudy) -> StudyRun:
        return StudyRun(parsed_study(stored.document), StoreJournal(self._store, stored.id))


def _check_minimum(stored: StoredSurvey) -> None:
    """Refuse a round that fewer people answered than the survey's minimum."""
    if stored.mark < stored.minimum:
        message = "too few reports in a round of this study"
        raise ServiceError(409, "too-few-reports", message, expected=f"at least {stored.minimum} reports")
