"""A study in progress: the round to ask now, and the result at the end.

Everything that a study reads from a collection is written to a journal before it is used, and replayed after a restart.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError, MismatchError, ParameterError, VeilError, WireError
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.reports.tally import Tally
from veil.results.base import Result
from veil.study.collection import Codes, Collection, Questions, TallyCollection
from veil.study.continuations import Continuations
from veil.study.study import Round, Rounds, Study, promised
from veil.survey import Survey, SurveyTally
from veil.tools.filesystem import write_atomically
from veil.tools.json_documents import Json, canonical, parse_json
from veil.wire.tallies import decode_tally, encode_tally

Value = int | tuple[int, int] | str | Tally | SurveyTally | NDArray[np.int64]


class StudyRun:
    """A study under way. With a folder, what it took is on the disk before it counts, and a restart goes on from there.

    `round` is what to ask now, None once there is a `result`; `answered` are the rounds before. A restart in the middle
    of a reading goes on with what was taken before; it needs the same reports once more for the rest.

    >>> from veil import GRR
    >>> from veil.histogram import Histogram
    >>> run = StudyRun(Histogram(GRR(epsilon=2.0, domain=3)))
    >>> asked = run.round.survey
    >>> run.answer(asked.tally(asked.randomize([0, 1, 1])))
    >>> run.round is None, run.result.n
    (True, 3)
    """

    def __init__(self, study: Study, folder: str | os.PathLike[str] | Journal | None = None) -> None:
        self.study = study
        self._journal: Journal
        if folder is None:
            self._journal = MemoryJournal()
        else:
            self._journal = folder if isinstance(folder, Journal) else FolderJournal(Path(folder))
        self._begin()
        while self.round is not None and self._send(None):
            pass

    def _begin(self) -> None:
        self._rounds: Rounds | None = self.study.rounds()
        self._asked = Fraction(0)
        self.answered: list[Round] = []
        self.round: Round | None = None
        self.result: Result | None = None
        self._enter(next(self._rounds))

    @property
    def finished(self) -> int:
        """How many rounds have been answered."""
        return len(self.answered)

    def answer(self, collected: Collection | SurveyTally) -> None:
        """Runs at the collector: read what the current round collected; it moves on to the next, or to the result."""
        if self.round is None:
            raise InputError("this study is finished: there is no round to answer")
        survey = self.round.survey
        live = TallyCollection(survey, collected) if isinstance(collected, SurveyTally) else collected
        if not isinstance(live, Collection) or live.survey.task != survey.task:
            raise MismatchError("expected what was collected of the current round; this was made for another task")
        if not live.people:
            raise EmptyError("nobody answered this round: expected at least one report")
        self.study.check_fakes(live)
        current = self.finished
        if self._rounds is None:  # a reading that was broken off: replay up to here
            self._begin()
            while self.finished < current:
                self._send(None)
        fresh = self._journal.read(current, 0) is None
        try:
            self._send(live)
        except VeilError:
            if fresh:  # refused, not interrupted: the round may be answered with something else
                self._journal.forget(current)
            raise

    def _send(self, live: Collection | None) -> bool:
        """Let the study read the current round; False where that needs reports which are not at hand."""
        asked, rounds = self.round, self._rounds
        assert asked is not None
        assert rounds is not None
        try:
            collected = RecordedCollection(asked, self._journal, self.finished, live)
            self._rounds = None  # until it has come through: a study that was broken off is replayed
            following = rounds.send(collected)
        except MissingError:
            return False
        except StopIteration as end:
            self.answered.append(asked)
            self.round, self.result = None, promised(end.value, self.study.guarantee)
            return True
        self._rounds = rounds
        self.answered.append(asked)
        self._enter(following)
        return True

    def _enter(self, asked: Round) -> None:
        self._asked += asked.people
        if self._asked > 1:
            raise ParameterError("a study asks every person once: the shares of its rounds add up to more than 1")
        if not self.study.guarantee.covers(asked.survey.guarantee):
            raise ParameterError("a round of this study promises less than the study does")
        self.round = asked


class Journal(ABC):
    """Where what was taken is written down, by round and in order."""

    @abstractmethod
    def read(self, round_: int, index: int) -> bytes | None:
        """What was taken, or None where nothing was yet."""

    @abstractmethod
    def write(self, round_: int, index: int, data: bytes) -> None:
        """Durable before this returns."""

    @abstractmethod
    def forget(self, round_: int) -> None:
        """Nothing was taken in this round."""


class MemoryJournal(Journal):
    """A journal in memory."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], bytes] = {}

    def read(self, round_: int, index: int) -> bytes | None:
        return self._kept.get((round_, index))

    def write(self, round_: int, index: int, data: bytes) -> None:
        self._kept[round_, index] = data

    def forget(self, round_: int) -> None:
        self._kept = {key: data for key, data in self._kept.items() if key[0] != round_}


class FolderJournal(Journal):
    """One file per take: `round-000.take-000`, whole or not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _file(self, round_: int, index: int) -> Path:
        return self._folder / f"round-{round_:03d}.take-{index:03d}"

    def read(self, round_: int, index: int) -> bytes | None:
        file = self._file(round_, index)
        return file.read_bytes() if file.exists() else None

    def write(self, round_: int, index: int, data: bytes) -> None:
        write_atomically(self._file(round_, index), data)

    def forget(self, round_: int) -> None:
        index = 0
        while self._file(round_, index).exists():
            index += 1
        for i in reversed(range(index)):  # a crash leaves the first of them, and no holes
            self._file(round_, i).unlink()


class RecordedCollection(Collection):
    """What was collected in one round, with everything that a study takes from it written down first.

    Without anything `live`, what was recorded is replayed, and `MissingError` says where that ends.
    """

    def __init__(self, asked: Round, journal: Journal, round_: int, live: Collection | None) -> None:
        self.survey = asked.survey
        self._share, self._journal, self._round, self._live = asked.people, journal, round_, live
        self._taken = 0
        counted = self._take(f"people of {asked.survey.task}", _people_and_fakes)
        self._people, self._fakes = counted if isinstance(counted, tuple) else (counted, 0)
        if live is not None and live.people != self._people:
            raise MismatchError(
                f"this round was begun with {self._people:,} reports and now has {live.people:,}: expected the same"
            )
        self._fingerprint = self._take("fingerprint", lambda live: live.fingerprint)
        if live is not None and live.fingerprint != self._fingerprint:
            raise MismatchError("this round was begun with other reports, or with the same in another order")

    @property
    def people(self) -> int:
        return int(self._people)

    @property
    def fakes(self) -> int:
        return int(self._fakes)

    @property
    def fingerprint(self) -> str:
        return str(self._fingerprint)

    @property
    def population(self) -> int:
        return round(self.people / self._share)  # here and nowhere else

    def answered(self, question: int) -> int:
        return int(self._take(f"answered {question}", lambda live: live.answered(question)))

    def tally(self, questions: Questions | None = None, candidates: Mapping[int, Any] | None = None) -> SurveyTally:
        chosen = {i: self.survey.questions[i].encode_candidates(some) for i, some in (candidates or {}).items()}
        asked = None if questions is None else list(questions)
        call = f"tally {asked} {_digest(*(part for pair in sorted(chosen.items()) for part in pair))}"
        return self._take(call, lambda live: live.tally(questions, candidates))  # type: ignore[no-any-return]

    def support(self, questions: Questions, codes: Codes) -> Tally:
        call = f"support {list(questions)} {_digest(codes)}"
        return self._take(call, lambda live: live.support(questions, codes))  # type: ignore[no-any-return]

    def best(self, questions: Questions, continuations: Continuations, keep: int) -> Tally:
        more = continuations
        described = (more.prefixes, more.width, more.step, more.suffixes, int(more.text), keep)
        call = f"best {list(questions)} {_digest(*described)}"
        return self._take(call, lambda live: live.best(questions, more, keep))  # type: ignore[no-any-return]

    def joint(self, candidates: Mapping[int, Any]) -> NDArray[np.int64]:
        chosen = {i: self.survey.questions[i].encode_candidates(some) for i, some in candidates.items()}
        call = f"joint {_digest(*(part for pair in chosen.items() for part in pair))}"
        return self._take(call, lambda live: live.joint(candidates))  # type: ignore[no-any-return]

    def columns(self, question: int) -> Iterator[Columns]:
        if self._live is None:  # too much to write down: a restart goes through the reports again
            raise MissingError
        return self._live.columns(question)

    def reports(self) -> Iterator[Reports]:
        if self._live is None:
            raise MissingError
        return self._live.reports()

    def _take(self, call: str, take: Callable[[Collection], Value]) -> Any:
        index, self._taken = self._taken, self._taken + 1
        data = self._journal.read(self._round, index)
        if data is not None:
            return _decoded(self.survey, call, data)
        if self._live is None:
            raise MissingError
        value = take(self._live)
        self._journal.write(self._round, index, _encoded(call, value))
        return value


class MissingError(Exception):
    """What a study takes next was not recorded, and nothing is at hand to take it from."""


def _people_and_fakes(live: Collection) -> Value:
    """How many people answered; with fakes both numbers, so that records without them stay as they were."""
    return (live.people, live.fakes) if live.fakes else live.people


def _digest(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        described = f"{part.dtype.str}{part.shape}".encode() + part.tobytes() if isinstance(part, np.ndarray) else None
        found.update(repr(part).encode() + b"\0" if described is None else described)
    return found.hexdigest()[:32]


def _encoded(call: str, value: Value) -> bytes:
    header: Json = {"call": call}
    if isinstance(value, SurveyTally):
        header["kind"], body = "survey-tally", encode_tally(value)
    elif isinstance(value, Tally):
        codes = value.candidates
        assert codes is not None
        header |= {"kind": "tally", "task": value.task, "people": value.people}
        header |= {"fakes": value.fakes} if value.fakes else {}
        header["codes"] = [codes.dtype.str, *codes.shape]
        body = value.counts.astype("<i8").tobytes() + codes.tobytes()
    elif isinstance(value, np.ndarray):
        header |= {"kind": "array", "shape": list(value.shape)}
        body = value.astype("<i8").tobytes()
    elif isinstance(value, str):
        header["kind"], body = "text", value.encode()
    elif isinstance(value, tuple):
        header["kind"], body = "people-and-fakes", b"".join(part.to_bytes(16, "little") for part in value)
    else:
        header["kind"], body = "integer", int(value).to_bytes(16, "little", signed=True)
    head = canonical(header)
    whole = len(head).to_bytes(8, "little") + head + body
    return whole + hashlib.sha256(whole).digest()


def _decoded(survey: Survey, call: str, data: bytes) -> Value:
    whole, checksum = data[:-32], data[-32:]
    if len(whole) < 8 or hashlib.sha256(whole).digest() != checksum:
        raise WireError("what this run recorded is damaged: its checksum does not match")
    end = 8 + int.from_bytes(whole[:8], "little")
    header, body = parse_json(whole[8:end]), whole[end:]
    if header["call"] != call:
        raise MismatchError("this run was recorded by another study, or by another version of veil")
    if header["kind"] == "survey-tally":
        return decode_tally(survey, body)
    if header["kind"] == "text":
        return body.decode()
    if header["kind"] == "integer":
        return int.from_bytes(body, "little", signed=True)
    if header["kind"] == "people-and-fakes":
        return int.from_bytes(body[:16], "little"), int.from_bytes(body[16:], "little")
    if header["kind"] == "array":
        return np.frombuffer(body, dtype="<i8").astype(np.int64).reshape(header["shape"])
    kind, *shape = header["codes"]
    counts = np.frombuffer(body[: 8 * shape[0]], dtype="<i8").astype(np.int64)
    codes = np.frombuffer(body[8 * shape[0] :], dtype=kind).reshape(shape).copy()
    people = header["people"]
    return Tally(header["task"], counts, people, people, people, codes, header.get("fakes", 0))
