"""People's devices on Spark, for trials larger than one machine: values in files become reports in files, in one step.

There is no table of reports in between, and none is returned. Noise is drawn anew whenever a task is repeated, so a
table that Spark computes again after losing a worker would hold a second report of some people, with other noise: two
reports reveal twice as much. Here a task's reports are written by the task that drew them, and the committer of
Hadoop's files lets one attempt of each task count.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.engines.counting import Watch, unwatched
from veil.engines.spark.collected import SparkCollection, parallel
from veil.engines.spark.pieces import Files, cut, found_files
from veil.engines.spark.session import finished
from veil.engines.spark.tasks import one_thread_per_core, runs_of
from veil.entropy import CHUNK_ROWS
from veil.errors import DomainError, EmptyError, EngineError, InputError, MismatchError
from veil.files.arrow_files import PARQUET, is_address, open_parquet_at
from veil.files.value_file import as_value_file
from veil.files.values import values_of, wanted_columns
from veil.results.base import Result
from veil.study import OneRound, Study, StudyRun, study_from_json
from veil.survey import Survey
from veil.version import VERSION
from veil.wire.frames import PAYLOAD, payload_metadata, to_payloads

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


_COMMITTER = "mapreduce.fileoutputcommitter.algorithm.version"
# Protocols and committers that let one attempt of each task count: Hadoop's own, and those made for object stores.
_ONCE = {
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
        "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    ),
    "spark.sql.parquet.output.committer.class": (
        "org.apache.parquet.hadoop.ParquetOutputCommitter",
        "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    ),
}
_LOCALS = "spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled"
_GROUP_BYTES = 8 << 20
_DONE = "_SUCCESS"  # Hadoop's mark of a whole output
_MOST = 1 << 64


def randomize(
    spark: SparkSession,
    study: Study,
    values: Sequence[str | Path],
    out: str | Path,
    watch: Watch = unwatched,
    *,
    column: str | None = None,
    survey: Survey | None = None,
    share: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1)),
    key: int = 0,
    pieces: int | None = None,
) -> int:
    """Turn every person's value in Parquet files into a report in a new folder of Parquet files. Returns how many.

    Runs on the devices, which are tasks of Spark here. `survey` is that of a later round; `share` are the ends of a
    part of all people, who are put in order by `key`: rounds with parts that do not overlap ask nobody twice.
    """
    asked = survey or study.survey
    _check_settings(spark)
    if not is_address(str(out)) and Path(out).exists():
        raise InputError(f"{out} is there already: expected a new folder")
    target = str(out) if is_address(str(out)) else _local_address(Path(out))
    names = found_files(values)
    if any(Path(name).suffix.lower() not in PARQUET for name in names):
        raise InputError("on Spark, people's values are read from Parquet files")
    columns = wanted_columns(as_value_file(names[0]), asked, column)
    rows = _rows_of(names, columns)
    part = _PeoplePart(key, share)
    people = part.count(sum(map(sum, rows)))
    if not people:
        raise EmptyError("there are no people in these files: expected at least one")
    made = cut(rows, 64, parallel(spark), pieces)
    arguments = {"files": tuple(names), "pieces": made, "rows": rows, "columns": tuple(columns), "part": part.packed}
    draw = partial(_draw, VERSION, study.to_bytes(), asked.to_bytes(), arguments)
    frame = spark.range(0, len(made), 1, len(made)).mapInArrow(draw, _schema(asked))
    writer = frame.write.mode("error").option("parquet.block.size", str(_GROUP_BYTES))
    writer = writer.option("parquet.enable.dictionary", "false").option(_COMMITTER, "1")
    with watch("randomizing", people) as advance:
        finished(spark, lambda: writer.parquet(target), advance, people)
    found = Files.of(asked, found_files([out])).people
    if found != people:
        (Path(out) / _DONE).unlink(missing_ok=True)  # so that nobody takes them for whole
        raise EngineError(f"{people:,} people have {found:,} reports in {out}: do not use them")
    return found


def _local_address(out: Path) -> str:
    """Return the address of a local folder. Hadoop takes its characters as they are: `as_uri` would escape spaces."""
    try:
        out.resolve().as_posix().encode()
    except UnicodeEncodeError:
        raise InputError(f"{out}: expected a name in UTF-8, because Spark takes no other") from None
    return f"file:///{out.resolve().as_posix().lstrip('/')}"  # without a scheme, Spark's default file system decides


def count_people(values: Sequence[str | Path]) -> int:
    """How many people there are in files of values."""
    return sum(map(sum, _rows_of(found_files(values))))


def walk(
    spark: SparkSession,
    run: StudyRun,
    values: Sequence[str | Path],
    folder: Path,
    key: int,
    watch: Watch = unwatched,
    *,
    column: str | None = None,
) -> Result:
    """The whole study on Spark: in every round a share of the people is randomized into files, and these are counted.

    Reports go into a folder that every worker can reach, one folder of files per round. A round whose reports are there
    already is read and not asked again, so that a run that goes on asks nobody twice, if `key` is the same.
    """
    study, asked = run.study, sum((before.people for before in run.answered), Fraction(0))
    while run.round is not None:
        survey, share = run.round.survey, (asked, asked + run.round.people)
        out = folder / f"reports-{run.finished:03d}"
        if not (out / _DONE).exists():
            _clear(out)
            randomize(spark, study, values, out, watch, column=column, survey=survey, share=share, key=key)
        collected = SparkCollection.files(spark, survey, [out], watch)
        if collected.people != _PeoplePart(key, share).count(count_people(values)):
            raise MismatchError(f"{out} holds reports of other people than {run.finished} rounds left to ask")
        if isinstance(study, OneRound) and not run.finished:
            found: Result = study.read(collected)  # by itself: tables are read by the tasks too
            return found
        run.answer(collected)
        asked = share[1]
    assert run.result is not None
    return run.result


def _clear(out: Path) -> None:
    """Take away what an interrupted job left: nothing of it was committed, and nobody has seen it."""
    if out.is_dir() and not any(out.glob("part-*")):
        shutil.rmtree(out)


def _check_settings(spark: SparkSession) -> None:
    """Refuse settings under which a person could get two reports, or a value could be seen in a log."""
    for name in (_COMMITTER, f"spark.hadoop.{_COMMITTER}"):
        if str(spark.conf.get(name, "1")) != "1":
            raise InputError(f"{name} must be 1: with 2, reports of a failed attempt may stay")
    for name, known in _ONCE.items():
        if str(spark.conf.get(name, known[0])) not in known:
            raise InputError(f"{name} must be {' or '.join(known)}, which let one attempt of each task count")
    if str(spark.conf.get(_LOCALS, "false")).lower() == "true":
        raise InputError(f"{_LOCALS} must be off: it writes people's values into logs")


def _schema(survey: Survey) -> StructType:
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    payload = StructField(PAYLOAD, BinaryType(), True, payload_metadata(survey))
    return StructType([payload, *(StructField(column.field.name, LongType()) for column in survey.public)])


def _rows_of(names: Sequence[str], columns: Sequence[str] = ()) -> tuple[tuple[int, ...], ...]:
    """How many people each row group of each file holds; refuses a file that lacks one of these columns."""
    import pyarrow as pa

    found = []
    for name in names:
        try:
            with open_parquet_at(name) as file:
                metadata, known = file.metadata, file.schema_arrow.names
        except (pa.ArrowException, OSError):
            raise InputError(f"{name} is not a complete Parquet file") from None
        lacking = [column for column in columns if column not in known]
        if lacking:
            raise InputError(f"{name} has no column {lacking[0]}")
        found.append(tuple(int(metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups)))
    return tuple(found)


class _PeoplePart:
    """A part of all people: those whose place in an order that a key decides lies between two shares."""

    def __init__(self, key: int, share: tuple[Fraction, Fraction]) -> None:
        first, last = share
        self._key, self._ends = key, (int(first * _MOST), int(last * _MOST))
        self.packed = (key, *self._ends)

    @classmethod
    def of(cls, packed: tuple[int, int, int]) -> _PeoplePart:
        key, first, last = packed
        return cls(key, (Fraction(first, _MOST), Fraction(last, _MOST)))

    def holds(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Which of the people from one place of the files to another belong to this part."""
        least, most = self._ends
        if (least, most) == (0, _MOST):
            return np.ones(stop - start, np.bool_)
        order = _mixed(np.arange(start, stop, dtype=np.uint64) + np.uint64(self._key % _MOST))
        inside = order >= np.uint64(least)
        return inside if most == _MOST else inside & (order < np.uint64(most))

    def count(self, people: int) -> int:
        """How many of so many people belong to this part."""
        return sum(int(self.holds(i, min(i + CHUNK_ROWS, people)).sum()) for i in range(0, people, CHUNK_ROWS))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits that look random, different ones for different numbers (splitmix64)."""
    z = numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


@lru_cache(maxsize=8)
def _parsed(study: bytes, task: bytes) -> tuple[Study, Survey]:
    return study_from_json(study), Survey.from_json(task)


def _draw(
    version: str, study: bytes, task: bytes, arguments: dict[str, Any], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs on a worker: reports of the people in this task's row groups, each drawn from fresh entropy."""
    import pyarrow as pa

    if version != VERSION:
        raise EngineError(f"a worker of the cluster has veil {VERSION}, and {version} was expected")
    one_thread_per_core()
    asked, survey = _parsed(study, task)
    part, rows = _PeoplePart.of(arguments["part"]), arguments["rows"]
    for number, first, last in runs_of(arguments, batches):
        start = sum(map(sum, rows[:number])) + sum(rows[number][:first])
        with open_parquet_at(arguments["files"][number]) as file:
            given = file.iter_batches(CHUNK_ROWS, row_groups=list(range(first, last)), columns=arguments["columns"])
            for batch in given:
                mine = part.holds(start, start + batch.num_rows)
                table = pa.Table.from_batches([batch]).select(arguments["columns"])
                yield from _reports(
                    asked, survey, table if mine.all() else table.filter(mine), start + np.flatnonzero(mine)
                )
                start += batch.num_rows


def _reports(study: Study, survey: Survey, table: pa.Table, places: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    """Reports of people who stand at these places of all files."""
    if table.num_rows:
        try:
            reports = survey.randomize(values_of(table, survey), public=study.encode_public(table))
        except DomainError as problem:
            row = None if problem.row is None else int(places[problem.row])
            raise DomainError(problem.expected, row, problem.count) from None
        yield to_payloads(reports, survey)
