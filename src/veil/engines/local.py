"""Collections of reports on this machine: in memory or in files, gone through a chunk at a time.

`ReportStream` counts and searches for all of them. Sums of integers do not depend on the order or the split, so that
every engine gives the same numbers.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.engines.counting import (
    Advance,
    Ranges,
    TopCandidates,
    Watch,
    answers,
    count_answers,
    count_jointly,
    count_support,
    count_up,
    unwatched,
)
from veil.errors import EmptyError, InputError
from veil.files.reports import REPORT_ID, ReportsFile
from veil.mechanisms import LinearHashing
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.reports.tally import Tally, check_fakes
from veil.study.collection import Codes, Collection, Questions
from veil.study.continuations import Continuations
from veil.survey import Survey, SurveyTally, check_waves
from veil.tools.messages import name_file_in_errors

_FEW_QUESTIONS = 256


class ReportStream(Collection):
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
        counts = count_answers(self.survey, self.chunks(), questions)
        return dict(zip(questions, counts.tolist(), strict=True))

    def tally(
        self,
        questions: Questions | None = None,
        candidates: Mapping[int, Any] | None = None,
        weights: str | None = None,
    ) -> SurveyTally:
        """The integers to keep. With `weights`, the name of a public column, each report counts as often as it says."""
        codes = self.survey.encode_candidates(candidates, questions)
        with self._watch("counting", self.expected) as advance:
            total = self._count_up(codes, questions, weights, advance)
        if total is None:
            raise EmptyError("there are no reports: expected at least one")
        total = replace(total, wave=self.wave, seeded=self.seeded)
        return total.with_fakes(self._checked_fakes(total.people)) if self.fakes else total

    def _count_up(
        self, codes: Mapping[int, Codes | None], questions: Questions | None, weights: str | None, advance: Advance
    ) -> SurveyTally | None:
        return count_up(self.survey, _advancing(self.chunks(), advance), codes, questions, weights)

    def columns(self, question: int) -> Iterator[Columns]:
        self._only_people()
        return self._answers((question,))

    def _answers(self, questions: Questions) -> Iterator[Columns]:
        return answers(self.survey, self.chunks(), questions)

    def support(self, questions: Questions, codes: Codes) -> Tally:
        return self._counted(questions, codes, self._support(questions, codes))

    def _support(self, questions: Questions, codes: Codes) -> NDArray[np.int64]:
        return count_support(self.survey, self.chunks(), questions, codes)

    def _counted(self, questions: Questions, codes: Codes, counts: NDArray[np.int64]) -> Tally:
        people = sum(self.answered(i) for i in questions)
        return Tally(self.oracle(questions).digest, counts, people, people, people, codes, self.fakes)

    def best(self, questions: Questions, continuations: Continuations, keep: int) -> Tally:
        self._only_people()
        best, oracle, people = TopCandidates(keep), self.oracle(questions), sum(self.answered(i) for i in questions)
        with self._watch("searching", people) as advance:
            whole = continuations.suffixes is None
            if isinstance(oracle, LinearHashing) and whole and oracle.suffix <= continuations.step:
                self._transform(oracle, questions, continuations.narrowed(oracle.suffix), best)
                advance(people)
            else:
                self._search(questions, continuations, best, advance)
        return self._counted(questions, *best.taken())

    def _search(
        self, questions: Questions, continuations: Continuations, best: TopCandidates, advance: Advance
    ) -> None:
        """Offer every candidate with its support, in the order of the candidates."""
        for block in continuations.blocks():
            best.offer(block, self._support(questions, block))
        advance(sum(self.answered(i) for i in questions))

    def _transform(
        self, oracle: LinearHashing, questions: Questions, continuations: Continuations, best: TopCandidates
    ) -> None:
        """One transform per prefix: all its continuations at once."""
        sure = [continuations.join(some.prefixes, some.suffixes()) for some in continuations.alike if some.ways == 1]
        if sure:  # prefixes that go on in one way need no transform
            codes = np.concatenate(sure)
            best.offer(codes, self._support(questions, codes))
        others = [some for some in continuations.alike if some.ways > 1]
        if not others:
            return
        prefixes = np.concatenate([some.prefixes for some in others])
        decoded = self._cosets(oracle, questions, prefixes)
        for some in others:
            possible = None if some.state is None else some.suffixes()  # None: all of them, and places are suffixes
            for i, counts in zip(range(len(some.prefixes)), decoded, strict=False):

                def codes_at(
                    places: Codes, own: Codes = some.prefixes[i : i + 1], of: Codes | None = possible
                ) -> Codes:
                    return continuations.join(own, places.astype(np.uint64) if of is None else of[places])

                best.offer_at(counts if possible is None else counts[possible], codes_at)

    def _cosets(self, oracle: LinearHashing, questions: Questions, prefixes: Codes) -> Iterator[NDArray[np.int64]]:
        """For each prefix, the support of everything behind it."""
        return oracle.cosets(lambda: self._answers(questions), prefixes)

    def joint(self, candidates: Mapping[int, Any]) -> NDArray[np.int64]:
        self._only_people()
        total = self._count_jointly(self.survey.encode_joint(candidates))
        if total is None:
            raise EmptyError("there are no reports: expected at least one")
        return total

    def _count_jointly(self, codes: Mapping[int, Codes]) -> NDArray[np.int64] | None:
        return count_jointly(self.survey, self.chunks(), codes)

    def where(self, **ranges: tuple[int, int]) -> ReportStream:
        """The reports of people whose public columns lie within these ranges, both ends included.

        Numbers are those of the reports: 12.34 of a column with scale 2 is 1234.

        >>> from veil import GRR, Public
        >>> survey = Survey(GRR(epsilon=1.0, domain=3), [Public("age")])
        >>> everybody = MemoryCollection(survey, survey.randomize([0, 1, 2], public={"age": [17, 18, 40]}))
        >>> everybody.where(age=(18, 30)).people
        1
        """
        self._only_people()
        return FilteredReports(self, Ranges.of(self.survey, ranges))


class FilteredReports(ReportStream):
    """Some of the reports of another collection: those whose public columns lie within ranges."""

    def __init__(self, whole: ReportStream, ranges: Ranges) -> None:
        super().__init__(whole.survey, whole._watch)
        self._whole, self._ranges = whole, ranges

    def chunks(self) -> Iterator[Reports]:
        return map(self._ranges.kept, self._whole.chunks())

    @property
    def wave(self) -> int:
        return self._whole.wave

    @property
    def seeded(self) -> bool:
        return self._whole.seeded

    @property
    def fingerprint(self) -> str:
        return within(self._whole.fingerprint, self._ranges)

    def where(self, **ranges: tuple[int, int]) -> ReportStream:
        return FilteredReports(self._whole, self._ranges.joined(Ranges.of(self.survey, ranges)))


def within(fingerprint: str, ranges: Ranges) -> str:
    """Names the reports of a collection that lie within ranges."""
    return hashlib.sha256(f"{fingerprint} {ranges}".encode()).hexdigest()


class MemoryCollection(ReportStream):
    """Reports at hand; `fakes` says how many of them are nobody's.

    >>> from veil import OLH
    >>> survey = Survey(OLH(epsilon=1.0, domain=8))
    >>> MemoryCollection(survey, survey.randomize([1, 2, 3])).people
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


class FileCollection(ReportStream):
    """Files of reports: Arrow as devices' reports were written to, or Parquet as a collector exported them.

    A file says itself how many of its reports are fakes; those of several files add up. Files with ids of reports are
    for Spark, which counts each id once.
    """

    def __init__(self, survey: Survey, files: Sequence[str | Path], watch: Watch = unwatched) -> None:
        super().__init__(survey, watch)
        self._files = list(files)

    def _opened(self) -> Iterator[ReportsFile]:
        waves = set[int]()
        for name in self._files:
            with name_file_in_errors(name), ReportsFile(name, self.survey, fakes=True) as file:
                if file.has_ids:
                    raise InputError(
                        f"{name} has ids of reports, which may stand twice: count it with --engine spark-local, or"
                        f" leave the column {REPORT_ID} out"
                    )
                waves.add(file.wave)
                check_waves(waves)
                yield file

    def chunks(self) -> Iterator[Reports]:
        for file in self._opened():
            with name_file_in_errors(file.path):
                yield from file.read()

    @cached_property
    def fakes(self) -> int:
        return sum(file.fakes for file in self._opened())

    @cached_property
    def wave(self) -> int:
        return next((file.wave for file in self._opened()), 1)

    @cached_property
    def seeded(self) -> bool:
        return any(file.seeded for file in self._opened())

    @cached_property
    def expected(self) -> int:
        return sum(sum(file.rows) for file in self._opened())


def _advancing(chunks: Iterable[Reports], advance: Advance) -> Iterator[Reports]:
    """The same chunks; whoever watches is told of each once it has been worked on."""
    for chunk in chunks:
        yield chunk
        advance(len(chunk))
