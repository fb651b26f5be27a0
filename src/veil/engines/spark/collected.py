"""The reports of one survey on Apache Spark: counted by its tasks, added up exactly at the driver.

Two ways in. `files`: each task reads its row groups of Parquet by itself, and no report passes through the JVM; this is
the fast one. `frame`: a table of Spark's with a column of payloads, for reports that live in tables, or that share ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veil.engines.counting import Advance, Ranges, TopCandidates, Watch, unwatched
from veil.engines.local import FileCollection, ReportStream, within
from veil.engines.spark import tasks
from veil.engines.spark.pieces import Files, Piece, found_files
from veil.engines.spark.session import finished, raised, told, watched
from veil.engines.spark.tasks import COUNTED, SEEN, Arguments, ChecksummedChunks, pack
from veil.errors import EngineError, InputError, MismatchError
from veil.files.reports import REPORT_ID
from veil.mechanisms import LinearHashing
from veil.reports.columns import Reports
from veil.study.collection import Codes, Questions
from veil.study.continuations import Continuations
from veil.survey import Survey, SurveyTally
from veil.version import VERSION
from veil.wire.frames import PAYLOAD, check_payloads, from_payloads
from veil.wire.tallies import decode_tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_BLOCK, _LEAST_BLOCK = 1 << 16, 1 << 10
_BLOCK_WORK = 1 << 24  # counts of one block, from all tasks together
_SPECTRA_BYTES = _RESULT_BYTES = 256 << 20  # that all tasks together give back to the driver
_STREAM_ROWS = 1 << 16


def _unwatched(steps: int) -> None:
    """Progress that nobody watches."""


class _Checksum(NamedTuple):
    """What a pass over all reports saw."""

    rows: int
    check: int


@dataclass(frozen=True)
class _Files:
    """Where tasks find reports: files, cut into pieces."""

    spark: Any
    files: Files
    pieces: tuple[Piece, ...]

    @property
    def arguments(self) -> Arguments:
        return {"files": self.files.names, "pieces": self.pieces}

    @property
    def tasks(self) -> int:
        return len(self.pieces)

    def frame(self) -> DataFrame:
        """One row per piece, each in a partition of its own."""
        found: DataFrame = self.spark.range(0, self.tasks, 1, self.tasks)
        return found

    def coarser(self, most: int) -> _Files:
        """The same in at most so many tasks."""
        return self if self.tasks <= most else _Files(self.spark, self.files, self.files.cut(1, most))


@dataclass(frozen=True)
class _Table:
    """Where tasks find reports: the rows of a table, with these columns in this order."""

    rows: Any
    names: tuple[str, ...]
    tasks: int

    @property
    def arguments(self) -> Arguments:
        return {"names": self.names}

    def frame(self) -> DataFrame:
        """The table."""
        found: DataFrame = self.rows
        return found

    def coarser(self, most: int) -> _Table:
        """The same in at most so many tasks."""
        return _Table(self.rows.coalesce(most), self.names, min(most, self.tasks))


class SparkCollection(ReportStream):
    """Runs at the driver: the reports of one survey, counted on Spark.

    `SparkCollection.files(spark, survey, paths)` reads files directly; `SparkCollection.frame(spark, survey, frame)`
    takes a table of Spark's. All that a study takes is equal to what it takes on one machine, to the last bit. Every
    pass must see the same reports as the first: rows and a checksum are compared, and nothing counts where they differ.
    """

    def __init__(
        self,
        spark: SparkSession,
        survey: Survey,
        source: _Files | _Table,
        *,
        ranges: Ranges | None = None,
        watch: Watch = unwatched,
    ) -> None:
        super().__init__(survey, watch)
        self._spark, self._source, self._ranges = spark, source, ranges
        self._files = source.files if isinstance(source, _Files) else None
        self._rows = None if self._files is None else self._files.people
        self._seen: _Checksum | None = None
        self._task = survey.to_bytes()

    # -- ways in ---------------------------------------------------------------------------------------------------

    @classmethod
    def files(
        cls,
        spark: SparkSession,
        survey: Survey,
        paths: Sequence[str | Path] | Files,
        watch: Watch = unwatched,
        *,
        pieces: int | None = None,
    ) -> SparkCollection:
        """Files of reports, or folders of them, that every worker can open; `pieces` is the number of tasks.

        Where files have a column `report_id`, reports with the same id count once.
        """
        files = paths if isinstance(paths, Files) else Files.of(survey, found_files(paths))
        source = _Files(spark, files, files.cut(parallel(spark), pieces))
        if not files.ids:
            return cls(spark, survey, source, watch=watch)
        if files.fakes:
            raise InputError("reports with fakes among them have no ids: expected files of one kind")
        schema = f"{REPORT_ID} binary, {_payload_schema(survey)}"
        emit = partial(tasks.emit, VERSION, survey.to_bytes(), source.arguments)
        return cls.frame(spark, survey, source.frame().mapInArrow(emit, schema), watch, unique=REPORT_ID)

    @classmethod
    def frame(
        cls,
        spark: SparkSession,
        survey: Survey,
        frame: DataFrame,
        watch: Watch = unwatched,
        *,
        unique: str | None = None,
    ) -> SparkCollection:
        """A table with a column `payload` of bytes, and the survey's public columns beside it as `public.NAME`.

        Without those, a payload holds them too, as it travels. `unique` names a column of ids: of reports with the same
        id the smallest payload counts, whatever order they come in.
        """
        from pyspark.sql import functions as of

        check_payloads(frame.columns, survey)
        said = frame.schema[PAYLOAD].metadata.get("veil.task")
        if said is not None and said != survey.task:
            raise MismatchError("these reports were made for another task")
        if unique is not None and unique not in frame.columns:
            raise InputError(f"there is no column {unique} of ids in this table")
        names = [PAYLOAD, *(c.field.name for c in survey.public if c.field.name in frame.columns)]
        # names without dots, which Spark would take for fields of a struct
        columns = [of.col(f"`{name}`").alias(f"c{i}") for i, name in enumerate(names)]
        if unique is None:
            chosen = frame.select(*columns)
        else:
            own = of.col(f"`{unique}`")
            least = frame.groupBy(own).agg(of.min(of.struct(*columns)).alias("kept"))
            chosen, names = least.select("kept.*", own.isNull().alias("missing")), [*names, tasks.MISSING]
        return cls(spark, survey, _Table(chosen, tuple(names), parallel(spark)), watch=watch)

    def where(self, **ranges: tuple[int, int]) -> SparkCollection:
        self._only_people()
        within_ = Ranges.of(self.survey, ranges)
        joined = within_ if self._ranges is None else self._ranges.joined(within_)
        return SparkCollection(self._spark, self.survey, self._source, ranges=joined, watch=self._watch)

    # -- jobs ------------------------------------------------------------------------------------------------------

    def parts(
        self,
        part: str,
        arguments: Arguments,
        advance: Advance = _unwatched,
        keep: int | None = None,
        many: int = 1,
        most: int | None = None,
    ) -> Iterator[tuple[int, bytes]]:
        """Run a function, "module:function", over all reports, each task over its share; yields blocks and bytes.

        Of `many` blocks, those with the same number are added up as integers on the workers, and with `keep` only the
        largest of each come back. `most` tasks run, where what they give back would be too much for the driver.
        """
        source = self._source if most is None else self._source.coarser(most)
        own: Arguments = {} if keep is None else {"keep": keep}
        if self._ranges is not None:
            own["ranges"] = self._ranges.bounds
        run = partial(tasks.run, VERSION, part, self._task, {**source.arguments, **arguments, **own})
        counted = source.frame().mapInArrow(run, COUNTED)
        if many > 1:
            counted = counted.groupBy("block").applyInArrow(tasks.add_blocks, COUNTED)
        rows = finished(self._spark, counted.collect, advance, self._rows or 0)
        for row in rows:
            if row.error is not None:
                raise raised(row.error)
        seen = [row for row in rows if row.block == SEEN]
        self._compare(_Checksum(sum(row.rows for row in seen), sum(row.check for row in seen) % 2**64))
        return ((row.block, bytes(row.data)) for row in rows if row.block != SEEN)

    def _compare(self, seen: _Checksum) -> None:
        """Refuse a pass that saw other reports than were announced, or than the pass before."""
        if self._rows is not None and seen.rows != self._rows:
            raise EngineError(
                f"the files hold {self._rows:,} reports and the tasks saw {seen.rows:,}: nothing was counted"
            )
        if self._seen is not None and seen != self._seen:
            raise EngineError("the reports changed between two passes over them: nothing was counted")
        self._seen = seen

    def _own(self, part: str, arguments: Arguments, advance: Advance = _unwatched, size: int = 1) -> Iterator[bytes]:
        """What our own tasks give back, of about so many bytes each."""
        most = max(parallel(self._spark), _RESULT_BYTES // size)
        return (data for _, data in self.parts(f"{tasks.__name__}:{part}", arguments, advance, most=most))

    def _added(self, part: str, arguments: Arguments) -> NDArray[np.int64] | None:
        found = [np.frombuffer(data, "<i8") for data in self._own(part, arguments)]
        return np.sum(found, axis=0, dtype=np.int64) if found else None

    # -- what a study takes ----------------------------------------------------------------------------------------

    @property
    def fakes(self) -> int:
        return 0 if self._files is None else self._files.fakes

    @property
    def wave(self) -> int:
        return 1 if self._files is None else self._files.wave

    @property
    def seeded(self) -> bool:
        return self._files is not None and self._files.seeded

    @property
    def expected(self) -> int | None:
        return self._rows if self._ranges is None else None

    @cached_property
    def people(self) -> int:
        rows = self.expected
        if rows is None:
            found = self._added("people", {"questions": ()})
            rows = 0 if found is None else int(found[0])
        return rows - self._checked_fakes(rows)

    @cached_property
    def fingerprint(self) -> str:
        """Of files that of the local engine, so that a run may go on here or there; of a table rows and checksum."""
        if self._files is not None:
            whole = FileCollection(self.survey, self._files.names).fingerprint
            return whole if self._ranges is None else within(whole, self._ranges)
        if self._seen is None:
            _ = self.people
        return hashlib.sha256(f"{self._seen} {self._ranges}".encode()).hexdigest()

    def _count_answers(self, questions: Questions) -> dict[int, int]:
        counts = self._added("people", {"questions": tuple(questions)})
        found = [0] * len(questions) if counts is None else counts[1:].tolist()
        return dict(zip(questions, found, strict=True))

    def _count_up(
        self, codes: Mapping[int, Codes | None], questions: Questions | None, weights: str | None, advance: Advance
    ) -> SurveyTally | None:
        arguments: Arguments = {
            "codes": {i: None if some is None else pack(some) for i, some in codes.items()},
            "questions": None if questions is None else tuple(questions),
            "weights": weights,
        }
        numbers = range(len(self.survey.ask)) if questions is None else questions
        size = 8 * sum(self.survey.questions[i].mechanism.tally_size(codes.get(i)) for i in numbers)
        total: SurveyTally | None = None
        for data in self._own("tally", arguments, advance, max(1, size)):
            part = decode_tally(self.survey, data)
            total = part if total is None else total + part
        return total

    def _support(self, questions: Questions, codes: Codes) -> NDArray[np.int64]:
        if not len(codes):
            return np.zeros(0, dtype=np.int64)
        arguments: Arguments = {"questions": tuple(questions), "codes": pack(codes), "many": len(codes)}
        blocks = dict(self._searched(arguments, None))
        if not blocks:  # nobody answered
            return np.zeros(len(codes), dtype=np.int64)
        return np.concatenate([np.frombuffer(blocks[number], "<i8") for number in sorted(blocks)])

    def _searched(
        self, arguments: Arguments, keep: int | None, advance: Advance = _unwatched
    ) -> Iterator[tuple[int, bytes]]:
        """The support of all candidates by blocks, in order; with `keep`, only the largest of each block."""
        size = max(_LEAST_BLOCK, min(_BLOCK, _BLOCK_WORK // self._source.tasks))
        arguments["size"] = size
        many = -(-arguments["many"] // size)
        found = self.parts(f"{tasks.__name__}:search", arguments, advance, keep, many)
        if many > 1:
            yield from sorted(found)
            return
        alone = [np.frombuffer(data, "<i8") for _, data in found]
        if alone:
            yield 0, tasks.best_of(np.sum(alone, axis=0, dtype=np.int64), keep)

    def _search(
        self, questions: Questions, continuations: Continuations, best: TopCandidates, advance: Advance
    ) -> None:
        suffixes = continuations.suffixes
        arguments: Arguments = {
            "questions": tuple(questions),
            "many": continuations.size,
            "prefixes": pack(continuations.prefixes),
            "width": continuations.width,
            "step": continuations.step,
            "suffixes": None if suffixes is None else pack(suffixes),
            "text": continuations.text,
        }
        blocks = dict(self._searched(arguments, best.keep, advance))
        for number, candidates in enumerate(tasks.blocks_of(arguments)):
            if number in blocks:
                places, counts = np.frombuffer(blocks[number], "<i8").reshape(2, -1)
                best.offer(candidates[places], counts)
            else:  # nobody answered
                best.offer(candidates, np.zeros(len(candidates), np.int64))

    def _cosets(self, oracle: LinearHashing, questions: Questions, prefixes: Codes) -> Iterator[NDArray[np.int64]]:
        people = sum(self.answered(i) for i in questions)
        at_once = max(1, _SPECTRA_BYTES // (16 * oracle.spectrum_size * self._source.tasks))
        for first in range(0, len(prefixes), at_once):
            some = prefixes[first : first + at_once]
            found = np.zeros((len(some), oracle.spectrum_size), np.complex128)
            arguments: Arguments = {"questions": tuple(questions), "prefixes": pack(some)}
            for number, data in self.parts(f"{tasks.__name__}:spectra", arguments):
                found[number] += np.frombuffer(data, np.complex128)
            yield from (oracle.transformed(spectrum, people) for spectrum in found)

    def _count_jointly(self, codes: Mapping[int, Codes]) -> NDArray[np.int64] | None:
        found = self._added("joint", {"codes": {i: pack(some) for i, some in codes.items()}})
        shape = tuple(len(some) for some in codes.values())
        return None if found is None else found.reshape(shape + (2,) * len(shape))

    def chunks(self) -> Iterator[Reports]:
        """Reports at the driver, one after the other: for what no sum of integers tells."""
        whole = ChecksummedChunks(self._streamed())
        for chunk in whole:
            yield chunk if self._ranges is None else self._ranges.kept(chunk)
        self._compare(_Checksum(whole.rows, whole.check))

    def _streamed(self) -> Iterator[Reports]:
        if self._files is not None:
            yield from FileCollection(self.survey, self._files.names).chunks()
            return
        names = [name for name in self._source.arguments["names"] if name != tasks.MISSING]
        for batch in _streamed(self._spark, self._source.frame(), names):
            yield from_payloads(batch, self.survey)


def parallel(spark: SparkSession) -> int:
    """How many tasks run at once."""
    if hasattr(spark, "_jsparkSession"):
        return max(1, int(spark.sparkContext.defaultParallelism))
    return int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or 8)


def _payload_schema(survey: Survey) -> str:
    public = (f"`{column.field.name}` long" for column in survey.public)
    return ", ".join([f"{PAYLOAD} binary", *public])


def _streamed(spark: SparkSession, frame: DataFrame, names: Sequence[str]) -> Iterator[Any]:
    """The rows of a table at the driver, some at a time: a partition of Spark's in memory, and no more."""
    import pyarrow as pa

    waiting: list[Any] = []
    with watched(spark) as gave_up, told(gave_up):
        for row in frame.toLocalIterator(prefetchPartitions=False):
            waiting.append(row)
            if len(waiting) == _STREAM_ROWS:
                yield _batch(pa, names, waiting)
                waiting = []
    if waiting:
        yield _batch(pa, names, waiting)


def _batch(pa: Any, names: Sequence[str], rows: Sequence[Any]) -> Any:
    types = [pa.binary() if name == PAYLOAD else pa.int64() for name in names]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    return pa.RecordBatch.from_arrays(columns, names=list(names))
