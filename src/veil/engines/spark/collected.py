"""The reports of one survey on Apache Spark: counted by its tasks, added up exactly at the driver.

Two ways in. `files`: each task reads its row groups of Parquet by itself, and no report passes through the JVM; this is
the fast one. `frame`: a table of Spark's with a column of payloads, for reports that live in tables, or that share ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veil.engines.local import InFiles, Streamed
from veil.engines.ranges import Ranges
from veil.engines.searching import Best
from veil.engines.spark import tasks
from veil.engines.spark.jobs import finished, raised
from veil.engines.spark.pieces import Files, found_files
from veil.engines.spark.tasks import COUNTED, SEEN, Arguments, pack
from veil.engines.watching import Advance, Watch, unwatched
from veil.errors import EngineError, InputError, MismatchError
from veil.files.groups import REPORT_ID
from veil.mechanisms import LinearHashing
from veil.study.collected import Codes, Questions
from veil.study.continuations import Continuations
from veil.survey import Survey, SurveyTally
from veil.tally import merge
from veil.version import VERSION
from veil.wire.layout import Columns
from veil.wire.payloads import PAYLOAD, check_payloads, from_payloads
from veil.wire.reports import Reports
from veil.wire.tallies import decode_tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkCollected", "parallel"]

_BLOCK, _LEAST_BLOCK = 1 << 16, 1 << 10
_BLOCK_WORK = 1 << 24  # counts of one block, from all tasks together
_SPECTRA_BYTES = 256 << 20
_STREAM_ROWS = 1 << 16


class _Seen(NamedTuple):
    """What a pass over all reports saw."""

    rows: int
    check: int


class SparkCollected(Streamed):
    """Runs at the driver: the reports of one survey, counted on Spark.

    `SparkCollected.files(spark, survey, paths)` reads files by themselves; `SparkCollected.frame(spark, survey, frame)`
    takes a table of Spark's. All that a study takes is equal to what it takes on one machine, to the last bit. Every
    pass must see the same reports as the first: rows and a checksum are compared, and nothing counts where they differ.
    """

    def __init__(
        self,
        spark: SparkSession,
        survey: Survey,
        frame: Callable[[], DataFrame],
        arguments: Arguments,
        *,
        pieces: int,
        rows: int | None = None,
        local: Streamed | None = None,
        ranges: Ranges | None = None,
        watch: Watch = unwatched,
    ) -> None:
        super().__init__(survey, watch)
        self._spark, self._frame, self._arguments, self._pieces = spark, frame, arguments, pieces
        self._rows, self._local, self._ranges = rows, local, ranges
        self._seen: _Seen | None = None
        self._task = survey.to_bytes()

    # -- ways in ---------------------------------------------------------------------------------------------------

    @classmethod
    def files(
        cls,
        spark: SparkSession,
        survey: Survey,
        paths: Sequence[str | Path],
        watch: Watch = unwatched,
        *,
        pieces: int | None = None,
    ) -> SparkCollected:
        """Files of reports, or folders of them, that every worker can open; `pieces` is the number of tasks.

        Where files have a column `report_id`, reports with the same id count once.
        """
        names = found_files(paths)
        files = Files.of(survey, names)
        cut = files.cut(parallel(spark), pieces)
        arguments: Arguments = {"files": files.names, "pieces": cut}
        local = InFiles(survey, [Path(name) for name in names], watch)

        def frame() -> DataFrame:
            return spark.range(0, len(cut), 1, len(cut))

        if not files.ids:
            return cls(spark, survey, frame, arguments, pieces=len(cut), rows=files.people, local=local, watch=watch)
        if files.fakes:
            raise InputError("reports with fakes among them have no ids: expected files of one kind")
        schema = f"{REPORT_ID} binary, {_payload_schema(survey)}"
        emit = partial(tasks.emit, VERSION, survey.to_bytes(), arguments)
        return cls.frame(spark, survey, frame().mapInArrow(emit, schema), watch, unique=REPORT_ID)

    @classmethod
    def frame(
        cls,
        spark: SparkSession,
        survey: Survey,
        frame: DataFrame,
        watch: Watch = unwatched,
        *,
        unique: str | None = None,
    ) -> SparkCollected:
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
            least = frame.groupBy(of.col(f"`{unique}`")).agg(of.min(of.struct(*columns)).alias("kept"))
            chosen = least.select("kept.*")
        arguments: Arguments = {"names": tuple(names)}
        return cls(spark, survey, lambda: chosen, arguments, pieces=parallel(spark), watch=watch)

    def where(self, **ranges: tuple[int, int]) -> SparkCollected:
        self._only_people()
        within = Ranges.of(self.survey, ranges)
        if self._ranges is not None:
            within = Ranges((*self._ranges.bounds, *within.bounds))
        local = None if self._local is None else self._local.where(**ranges)
        return SparkCollected(
            self._spark,
            self.survey,
            self._frame,
            {**self._arguments, "ranges": within.bounds},
            pieces=self._pieces,
            rows=self._rows,
            local=local,
            ranges=within,
            watch=self._watch,
        )

    # -- jobs ------------------------------------------------------------------------------------------------------

    def parts(
        self,
        part: str,
        arguments: Arguments,
        advance: Advance = lambda steps: None,
        keep: int | None = None,
        many: int = 1,
    ) -> Iterator[tuple[int, bytes]]:
        """Run a function, "module:function", over all reports, each task over its share; yields blocks and bytes.

        Of `many` blocks, those with the same number are added up as integers on the workers, and with `keep` only the
        largest of each come back.
        """
        kept = {} if keep is None else {"keep": keep}
        run = partial(tasks.run, VERSION, part, self._task, {**self._arguments, **arguments, **kept})
        counted = self._frame().mapInArrow(run, COUNTED)
        if many > 1:
            counted = counted.groupBy("block").applyInArrow(tasks.add_blocks, COUNTED)
        rows = finished(self._spark, counted.collect, advance, self._rows or 0)
        for row in rows:
            if row.error is not None:
                raise raised(row.error)
        seen = [row for row in rows if row.block == SEEN]
        self._compare(_Seen(sum(row.rows for row in seen), sum(row.check for row in seen) % 2**64))
        return ((row.block, bytes(row.data)) for row in rows if row.block != SEEN)

    def _compare(self, seen: _Seen) -> None:
        """Refuse a pass that saw other reports than were announced, or than the pass before."""
        if self._rows is not None and seen.rows != self._rows:
            raise EngineError(
                f"the files hold {self._rows:,} reports and the tasks saw {seen.rows:,}: nothing was counted"
            )
        if self._seen is not None and seen != self._seen:
            raise EngineError("the reports changed between two passes over them: nothing was counted")
        self._seen = seen

    def _own(self, part: str, arguments: Arguments, advance: Advance = lambda steps: None) -> list[bytes]:
        return [data for _, data in self.parts(f"{tasks.__name__}:{part}", arguments, advance)]

    def _added(self, part: str, arguments: Arguments) -> NDArray[np.int64] | None:
        found = [np.frombuffer(data, "<i8") for data in self._own(part, arguments)]
        return np.sum(found, axis=0, dtype=np.int64) if found else None

    # -- what a study takes ----------------------------------------------------------------------------------------

    @property
    def fakes(self) -> int:
        return 0 if self._local is None else self._local.fakes

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
        if self._local is not None:
            return self._local.fingerprint
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
        partial_ = [decode_tally(self.survey, data) for data in self._own("tally", arguments, advance)]
        return merge(partial_) if partial_ else None

    def _answers(self, questions: Questions) -> Iterator[Columns]:
        return super()._answers(questions) if self._local is None else self._local._answers(questions)

    def _support(self, questions: Questions, codes: Codes) -> NDArray[np.int64]:
        arguments: Arguments = {"questions": tuple(questions), "codes": pack(codes), "many": len(codes)}
        blocks = dict(self._searched(arguments, None))
        if not blocks:
            return np.zeros(len(codes), dtype=np.int64)
        return np.concatenate([np.frombuffer(blocks[number], "<i8") for number in sorted(blocks)])

    def _searched(
        self, arguments: Arguments, keep: int | None, advance: Advance = lambda steps: None
    ) -> Iterator[tuple[int, bytes]]:
        """The support of all candidates by blocks, in order; with `keep`, only the largest of each block."""
        size = max(_LEAST_BLOCK, min(_BLOCK, _BLOCK_WORK // self._pieces))
        arguments["size"] = size
        many = -(-arguments["many"] // size)
        found = self.parts(f"{tasks.__name__}:search", arguments, advance, keep, many)
        if many > 1:
            yield from sorted(found)
            return
        alone = [np.frombuffer(data, "<i8") for _, data in found]
        if alone:
            yield 0, tasks.best_of(np.sum(alone, axis=0, dtype=np.int64), keep)

    def _search(self, questions: Questions, continuations: Continuations, best: Best, advance: Advance) -> None:
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
            places, counts = np.frombuffer(blocks[number], "<i8").reshape(2, -1)
            best.offer(candidates[places], counts)

    def _cosets(self, oracle: LinearHashing, questions: Questions, prefixes: Codes) -> Iterator[NDArray[np.int64]]:
        people = sum(self.answered(i) for i in questions)
        at_once = max(1, _SPECTRA_BYTES // (16 * oracle.spectrum_size * self._pieces))
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
        if self._local is not None:
            yield from self._local.chunks()
            return
        for batch in _streamed(self._spark, self._frame(), self._arguments["names"]):
            reports = from_payloads(batch, self.survey)
            yield reports if self._ranges is None else self._ranges.kept(reports)


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
    rows = finished(spark, lambda: frame.toLocalIterator(prefetchPartitions=False))
    for row in rows:
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
