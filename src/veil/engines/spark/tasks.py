"""A task of Spark: it goes through its share of the reports and returns integers as bytes.

Workers find these functions by their names, and get text, bytes and integers only. First a task compares versions:
another veil may count otherwise. An error in the data is an error in every attempt, so it comes back as a row and is
raised at the driver; Spark repeats a task that fails otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veil.engines.counting import Ranges, TopCandidates, answers, count_answers, count_jointly, count_support, count_up
from veil.errors import EngineError, VeilError, WireError
from veil.files.reports import REPORT_ID, ReportsFile
from veil.mechanisms import LinearHashing
from veil.reports.columns import Reports
from veil.study.continuations import Continuations
from veil.survey import Survey
from veil.version import VERSION
from veil.wire.frames import from_payloads, to_payloads
from veil.wire.tallies import encode_tally

Arguments = dict[str, Any]
"""Text, bytes, integers, and tuples and mappings of those."""
Packed = tuple[str, tuple[int, ...], bytes]
Part = Callable[[Survey, Arguments, Iterable[Reports]], Iterator[tuple[int, bytes]]]
"""Goes through reports, and yields numbered blocks of bytes."""

COUNTED = "block long, data binary, rows long, check long, keep long, version string, error string"
"""The rows that a task gives back, in the words of Spark; `keep` is how many of a block's counts matter, or -1."""
MISSING = "missing"
"""The column that says whether a report's id is missing, where reports with the same id count once."""
SEEN = -1
"""The block that says how many reports a task saw, and their checksum."""
OTHER_VERSION = "other version"

_CHUNK_ROWS, _CHUNK_BYTES = 1 << 19, 8 << 20
_HELD_ROWS, _HELD_BYTES = 1 << 23, 64 << 20
_AT_ONCE = 1 << 20  # candidates that are counted in one pass


def pack(array: NDArray[Any]) -> Packed:
    """An array as text, integers and bytes."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return little.dtype.str, little.shape, little.tobytes()


def unpack(packed: Packed) -> NDArray[Any]:
    """The array again."""
    kind, shape, data = packed
    return np.frombuffer(data, np.dtype(kind)).reshape(shape)


# -- a task ------------------------------------------------------------------------------------------------------------


def run(
    version: str, part: str, task: bytes, arguments: Arguments, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs on a worker: one part of the reports through the function that `part` names, as "module:function"."""
    if version != VERSION:
        yield _row(SEEN, error=f"{OTHER_VERSION}\n{VERSION}")
        return
    one_thread_per_core()
    try:
        survey = parsed(task)
        seen = ChecksummedChunks(_reports(survey, arguments, batches))
        ranges = Ranges(tuple(arguments["ranges"])) if "ranges" in arguments else None
        chunks = seen if ranges is None else map(ranges.kept, seen)
        for block, data in named(part)(survey, arguments, chunks):
            yield _row(block, data, keep=arguments.get("keep", -1))
        for _ in seen:  # a part may stop early, and everything is checked
            pass
        yield _row(SEEN, rows=seen.rows, check=seen.check)
    except VeilError as problem:
        yield _row(SEEN, error=f"{type(problem).__name__}\n{problem}")


def named(part: str) -> Part:
    """The function of a name, as "module:function"."""
    module, _, name = part.partition(":")
    found: Part = getattr(import_module(module), name)
    return found


def one_thread_per_core() -> None:
    """Use as many threads as the task has cores; beside it run others."""
    from pyspark import TaskContext

    context = TaskContext.get()
    os.environ.setdefault("VEIL_THREADS", str(1 if context is None else max(1, context.cpus())))


@lru_cache(maxsize=8)
def parsed(task: bytes) -> Survey:
    """The survey of a task; a worker serves many tasks of Spark for one."""
    return Survey.from_json(task)


def emit(
    version: str, task: bytes, arguments: Arguments, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs on a worker: the reports of this task's pieces of files as ids and payloads, for a table of Spark's."""
    if version != VERSION:
        raise EngineError(f"a worker of the cluster has veil {VERSION}, and {version} was expected")
    survey = parsed(task)
    for number, first, last in runs_of(arguments, batches):
        with ReportsFile(arguments["files"][number], survey) as file:
            for batch in file.batches(range(first, last)):
                ids = batch.column(REPORT_ID)
                if ids.null_count:
                    raise WireError(f"{file.path}: column {REPORT_ID!r} has missing entries")
                made = to_payloads(file.reports(batch), survey)
                columns = [ids.cast(pa.binary()), *made.columns]
                yield pa.RecordBatch.from_arrays(columns, names=[REPORT_ID, *made.schema.names])


class ChecksummedChunks:
    """Chunks that go by, counted and summed up: what one pass saw, every other must see."""

    def __init__(self, chunks: Iterator[Reports]) -> None:
        self._chunks = chunks
        self.rows = self.check = 0

    def __iter__(self) -> Iterator[Reports]:
        for chunk in self._chunks:
            self.rows += len(chunk)
            self.check = (self.check + _checksum(chunk)) % 2**64
            yield chunk


def _checksum(chunk: Reports) -> int:
    """A sum over reports, the same in any order: of every column, of long ones of their first eight bytes."""
    total = 0
    for place, column in enumerate(chunk.columns.values()):
        numbers = column if column.ndim == 1 else column[:, :8]
        total += (2 * place + 1) * int(numbers.sum(dtype=np.uint64))
    return total


def _reports(survey: Survey, arguments: Arguments, batches: Iterator[pa.RecordBatch]) -> Iterator[Reports]:
    """The reports of this task: of its pieces of files, or of the payloads that Spark hands over."""
    if "files" not in arguments:
        for batch in batches:
            if batch.num_rows:
                yield from_payloads(_named(batch, arguments["names"]), survey)
        return
    rows = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // max(1, survey.layout.size)))
    for number, first, last in runs_of(arguments, batches):
        name = arguments["files"][number]
        try:
            with ReportsFile(name, survey, fakes=True) as file:
                yield from file.read(range(first, last), rows)
        except VeilError as problem:
            raise problem if name in str(problem) else type(problem)(f"{name}: {problem}") from None


def _named(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """A batch of a table's rows with the names of their columns; refused where one has no id."""
    named = batch.rename_columns(list(names))
    if MISSING not in names:
        return named
    if any(named.column(MISSING).to_pylist()):
        raise WireError("a report has no id: expected one for each")
    return named.select([name for name in names if name != MISSING])


def runs_of(arguments: Arguments, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, int]]:
    """The runs of groups that are this task's: the number of a file, its first group, and the one behind the last."""
    for batch in batches:
        for piece in batch.column(0).to_pylist():
            yield from arguments["pieces"][piece]


def _row(
    block: int, data: bytes = b"", *, rows: int = 0, check: int = 0, keep: int = -1, error: str | None = None
) -> pa.RecordBatch:
    signed = check - 2**64 if check >= 2**63 else check
    columns = [
        pa.array([block], pa.int64()),
        pa.array([data], pa.binary()),
        pa.array([rows], pa.int64()),
        pa.array([signed], pa.int64()),
        pa.array([keep], pa.int64()),
        pa.array([VERSION], pa.string()),
        pa.array([error], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["block", "data", "rows", "check", "keep", "version", "error"])


# -- parts -------------------------------------------------------------------------------------------------------------


def people(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """How many people there are, and how many of them answered each of some questions."""
    questions, kept = arguments["questions"], ChecksummedChunks(iter(chunks))
    answered = count_answers(survey, kept, questions) if questions else np.zeros(0, np.int64)
    for _ in kept:
        pass
    yield 0, np.array([kept.rows, *answered], "<i8").tobytes()


def tally(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """One partial tally, as `encode_tally` writes it."""
    codes = {i: None if packed is None else unpack(packed) for i, packed in arguments["codes"].items()}
    found = count_up(survey, chunks, codes, arguments["questions"], arguments["weights"])
    if found is not None:
        yield 0, encode_tally(found)


def joint(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """Joint support counts."""
    found = count_jointly(survey, chunks, {i: unpack(packed) for i, packed in arguments["codes"].items()})
    if found is not None:
        yield 0, found.astype("<i8").tobytes()


def search(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """The support of each block of candidates. Of very many, reports are held and gone through block by block."""
    questions, size, many = arguments["questions"], arguments["size"], arguments["many"]
    if many <= _AT_ONCE:
        counts = count_support(survey, chunks, questions, _joined(blocks_of(arguments)))
        for number, start in enumerate(range(0, many, size)):
            yield number, counts[start : start + size].astype("<i8").tobytes()
        return
    oracle = survey.questions[questions[0]].pure
    for columns in answers(survey, chunks, questions, _HELD_ROWS, _HELD_BYTES):
        for number, block in enumerate(blocks_of(arguments)):
            yield number, oracle.support(columns, block, None).astype("<i8").tobytes()


def spectra(survey: Survey, arguments: Arguments, chunks: Iterable[Reports]) -> Iterator[tuple[int, bytes]]:
    """For each prefix a block: the spectrum that the support of everything behind it is decoded from."""
    oracle, prefixes = survey.questions[arguments["questions"][0]].pure, unpack(arguments["prefixes"])
    assert isinstance(oracle, LinearHashing)
    found, _ = oracle.spectra(answers(survey, chunks, arguments["questions"]), prefixes)
    for number, spectrum in enumerate(found):
        yield number, spectrum.tobytes()


def blocks_of(arguments: Mapping[str, Any]) -> Iterator[NDArray[Any]]:
    """The candidates of a search, a block at a time and in their order: listed ones, or continuations of prefixes."""
    size = arguments["size"]
    if "codes" in arguments:
        codes = unpack(arguments["codes"])
        yield from (codes[start : start + size] for start in range(0, len(codes), size))
        return
    suffixes = arguments["suffixes"]
    continued = Continuations(
        unpack(arguments["prefixes"]),
        arguments["width"],
        arguments["step"],
        None if suffixes is None else unpack(suffixes),
        arguments["text"],
    )
    yield from _cut(continued.blocks(size), size)


def _cut(blocks: Iterator[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """The same candidates in blocks of exactly `size`, but for the last: so a block's number tells its place."""
    waiting: list[NDArray[Any]] = []
    have = 0
    for block in blocks:
        waiting.append(block)
        have += len(block)
        while have >= size:
            whole = _joined(waiting)
            yield whole[:size]
            waiting, have = [whole[size:]], have - size
    if have:
        yield _joined(waiting)


def _joined(blocks: Iterable[NDArray[Any]]) -> NDArray[Any]:
    found = list(blocks)
    return found[0] if len(found) == 1 else np.concatenate(found)


# -- adding blocks up, on a worker or at the driver --------------------------------------------------------------------


def add_blocks(table: pa.Table) -> pa.Table:
    """Runs on a worker: the rows of one block, which several tasks counted, as one row."""
    errors = [error for error in table.column("error").to_pylist() if error is not None]
    block, keep, version = (table.column(name)[0].as_py() for name in ("block", "keep", "version"))
    if version != VERSION:
        errors.append(f"{OTHER_VERSION}\n{VERSION}")
    if errors:
        made = _row(SEEN, error=errors[0])
    elif block == SEEN:
        rows = sum(table.column("rows").to_pylist())
        made = _row(SEEN, rows=rows, check=sum(table.column("check").to_pylist()) % 2**64)
    else:
        counts = sum(np.frombuffer(data.as_buffer(), "<i8") for data in table.column("data"))
        made = _row(block, best_of(np.asarray(counts), None if keep < 0 else keep))
    return pa.Table.from_batches([made])


def best_of(counts: NDArray[np.int64], keep: int | None) -> bytes:
    """The counts of a block as bytes; with `keep`, the places and counts of the largest, ties in their order."""
    if keep is None:
        return counts.astype("<i8").tobytes()
    best = TopCandidates(keep)
    best.offer_at(counts, lambda places: places)
    places, kept = best.taken()
    return places.astype("<i8").tobytes() + kept.astype("<i8").tobytes()
