"""Reports on this machine, gone through a chunk at a time: counting, searching and progress, written once.

Sums of integers do not depend on the order or on the split, so that every place where reports live gives the same.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.engines.searching import Best
from veil.engines.watching import Watch, unwatched
from veil.errors import EmptyError, InputError, MismatchError, WireError
from veil.files import count_fakes, count_rows, read_reports
from veil.mechanisms import LinearHashing
from veil.study.collected import Codes, Collected, Questions
from veil.study.continuations import Continuations
from veil.survey import Survey, SurveyTally
from veil.tally import Tally, check_fakes
from veil.wire.layout import Columns
from veil.wire.reports import Reports

__all__ = ["InFiles", "InMemory", "Streamed"]

_PIECE = 1 << 20
_FEW_QUESTIONS = 256


class Streamed(Collected):
    """Runs at the collector: reports that come a chunk at a time, as often as one likes.

    No more than a chunk, or a piece of one question's answers, is in memory at once. Where there are `fakes` among the
    reports, tallies and supports know of them; whatever goes through single reports is refused, because nobody knows
    which of them are people's.
    """

    def __init__(self, survey: Survey, watch: Watch = unwatched) -> None:
        self.survey = survey
        self._watch = watch
        self._answered: dict[int, int] = {}

    @abstractmethod
    def chunks(self) -> Iterator[Reports]:
        """All reports, from the first again."""

    def reports(self) -> Iterator[Reports]:
        self._only_people()
        return self.chunks()

    @property
    def expected(self) -> int | None:
        """How many reports there are, where that is known without going through them."""
        return None

    @cached_property
    def people(self) -> int:
        rows = sum(len(chunk) for chunk in self.chunks()) if self.expected is None else self.expected
        return rows - self._checked_fakes(rows)

    def _checked_fakes(self, rows: int) -> int:
        """The fakes among so many reports; refused where they cannot be taken off."""
        if not self.fakes:
            return 0
        asked = self.survey.questions
        if len(asked) != 1 or asked[0].mechanism.fake_support is None or self.survey.public:
            raise InputError(
                "fakes are taken off the reports of one question, asked by GRR or OLH, without public columns"
            )
        return check_fakes(self.fakes, rows)

    def _only_people(self) -> None:
        if self.fakes:
            raise InputError(
                f"{self.fakes:,} of these reports are fakes, and nobody knows which: only tallies are read"
            )

    @cached_property
    def fingerprint(self) -> str:
        """The digest of the first chunk: all of it would be one more pass."""
        first = next(self.chunks(), None)
        among = f"{self.fakes} fakes".encode() if self.fakes else b""
        return hashlib.sha256((b"" if first is None else first.to_bytes()) + among).hexdigest()

    def answered(self, question: int) -> int:
        if question not in self._answered:
            if len(self.survey.ask) <= _FEW_QUESTIONS:  # one pass for all: whoever asks for one asks for others too
                self._answered = self._count_answers(range(len(self.survey.ask)))
            else:
                self._answered |= self._count_answers([question])
        return self._answered[question] - self._checked_fakes(self._answered[question])

    def _count_answers(self, questions: Questions) -> dict[int, int]:
        counts = dict.fromkeys(questions, 0)
        for chunk in self.chunks():
            for i, (_, rows, _) in zip(questions, self.survey.parts(chunk, questions), strict=True):
                counts[i] += len(rows)
        return counts

    def tally(self, questions: Questions | None = None, candidates: Mapping[int, Any] | None = None) -> SurveyTally:
        total: SurveyTally | None = None
        with self._watch("counting", self.expected) as advance:
            for chunk in self.chunks():
                part = self.survey.tally(chunk, candidates, questions=questions)
                total = part if total is None else total + part
                advance(len(chunk))
        if total is None:
            raise EmptyError("there are no reports: expected at least one")
        return total.with_fakes(self._checked_fakes(total.people)) if self.fakes else total

    def columns(self, question: int) -> Iterator[Columns]:
        self._only_people()
        return self._answers(question)

    def _answers(self, question: int) -> Iterator[Columns]:
        waiting: list[Columns] = []
        have = 0
        for chunk in self.chunks():
            ((_, _, columns),) = self.survey.parts(chunk, [question])
            size = len(next(iter(columns.values())))
            if size:
                waiting.append(columns)
                have += size
            if have >= _PIECE:
                yield _joined(waiting)
                waiting, have = [], 0
        if waiting:
            yield _joined(waiting)

    def _columns(self, questions: Questions) -> Iterator[Columns]:
        for i in questions:
            yield from self._answers(i)

    def support(self, questions: Questions, codes: Codes) -> Tally:
        return self._counted(questions, codes, self._support(questions, codes))

    def _support(self, questions: Questions, codes: Codes) -> NDArray[np.int64]:
        oracle = self.oracle(questions)
        counts = np.zeros(len(codes), dtype=np.int64)
        for columns in self._columns(questions):
            counts += oracle.support(columns, codes, None)
        return counts

    def _counted(self, questions: Questions, codes: Codes, counts: NDArray[np.int64]) -> Tally:
        people = sum(self.answered(i) for i in questions)
        return Tally(self.oracle(questions).digest, counts, people, people, people, codes, self.fakes)

    def best(self, questions: Questions, continuations: Continuations, keep: int) -> Tally:
        self._only_people()
        best, oracle, people = Best(keep), self.oracle(questions), sum(self.answered(i) for i in questions)
        with self._watch("searching", people) as advance:
            whole = continuations.suffixes is None
            if isinstance(oracle, LinearHashing) and whole and oracle.suffix <= continuations.step:
                self._transform(oracle, questions, continuations.narrowed(oracle.suffix), best)
            else:
                for block in continuations.blocks():
                    best.offer(block, self._support(questions, block))
            advance(people)
        return self._counted(questions, *best.taken())

    def _transform(self, oracle: LinearHashing, questions: Questions, continuations: Continuations, best: Best) -> None:
        """One transform per prefix: all its continuations at once."""
        sure = [continuations.join(some.prefixes, some.suffixes()) for some in continuations.alike if some.ways == 1]
        if sure:  # prefixes that go on in one way need no transform
            codes = np.concatenate(sure)
            best.offer(codes, self._support(questions, codes))
        others = [some for some in continuations.alike if some.ways > 1]
        if not others:
            return
        prefixes = np.concatenate([some.prefixes for some in others])
        decoded = oracle.cosets(lambda: self._columns(questions), prefixes)
        for some in others:
            possible = None if some.state is None else some.suffixes()  # None: all of them, and places are suffixes
            for i, counts in zip(range(len(some.prefixes)), decoded, strict=False):

                def codes_at(
                    places: Codes, own: Codes = some.prefixes[i : i + 1], of: Codes | None = possible
                ) -> Codes:
                    return continuations.join(own, places.astype(np.uint64) if of is None else of[places])

                best.offer_at(counts if possible is None else counts[possible], codes_at)

    def joint(self, candidates: Mapping[int, Any]) -> NDArray[np.int64]:
        self._only_people()
        total: NDArray[np.int64] | None = None
        for chunk in self.chunks():
            part = self.survey.joint(chunk, candidates)
            total = part if total is None else total + part
        if total is None:
            raise EmptyError("there are no reports: expected at least one")
        return total


class InMemory(Streamed):
    """Reports at hand; `fakes` says how many of them are nobody's.

    >>> from veil import OLH
    >>> survey = Survey(OLH(epsilon=1.0, domain=8))
    >>> InMemory(survey, survey.randomize([1, 2, 3])).people
    3
    """

    def __init__(
        self, survey: Survey, reports: Reports | Sequence[Reports], watch: Watch = unwatched, *, fakes: int = 0
    ) -> None:
        super().__init__(survey, watch)
        if isinstance(reports, Iterator):
            raise InputError("reports are gone through again and again: expected a list of them")
        self._reports = [reports] if isinstance(reports, Reports) else list(reports)
        self._fakes = check_fakes(fakes, self.expected)

    @property
    def fakes(self) -> int:
        return self._fakes

    def chunks(self) -> Iterator[Reports]:
        return iter(self._reports)

    @property
    def expected(self) -> int:
        return sum(len(chunk) for chunk in self._reports)


class InFiles(Streamed):
    """Files of reports: Arrow as devices' reports were written to, or Parquet as a collector exported them.

    A file says itself how many of its reports are fakes; those of several files add up.
    """

    def __init__(self, survey: Survey, files: Sequence[Path], watch: Watch = unwatched) -> None:
        super().__init__(survey, watch)
        self._files = list(files)

    def chunks(self) -> Iterator[Reports]:
        for file in self._files:
            with _naming(file):
                yield from read_reports(file, self.survey, fakes=True)

    @cached_property
    def fakes(self) -> int:
        found = 0
        for file in self._files:
            with _naming(file):
                found += count_fakes(file)
        return found

    @cached_property
    def expected(self) -> int | None:
        rows = [count_rows(file) for file in self._files]
        return None if None in rows else sum(count or 0 for count in rows)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Say which file it was that is refused: several are read in a row."""
    try:
        yield
    except (WireError, MismatchError) as problem:
        raise problem if str(file) in str(problem) else type(problem)(f"{file}: {problem}") from None


def _joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
