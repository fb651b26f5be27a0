"""Strict, vectorised decoding of posted reports: frames end to end, or an Arrow stream.

Whatever is wrong, only a `WireError` or a `MismatchError` comes out, and nothing of the request is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import MismatchError, WireError
from veil.reports.columns import Reports
from veil.survey import Survey
from veil.wire.arrow import arrow_schema, from_arrow
from veil.wire.frames import ID_BYTES, VERSION, report_size

_ID_COLUMN = "report_id"


@dataclass(frozen=True)
class DecodedReports:
    """Report ids and payloads of several requests, in the order of the ids, and the error of each request or None.

    Ids are random, so their order shows nothing of the order of arrival. Reports with the same id keep theirs:
    the first that came stands first.
    """

    ids: bytes
    payloads: bytes
    count: int
    problems: list[WireError | MismatchError | None]


def count_frames(survey: Survey, size: int) -> int:
    """How many framed reports so many bytes are."""
    each = report_size(survey)
    if not size or size % each:
        raise WireError(f"expected one or more reports of {each} bytes each, got {size} bytes")
    return size // each


def decode_requests(survey: Survey, bodies: Sequence[bytes]) -> DecodedReports:
    """Runs at the collector: the reports of all requests that are right as a whole."""
    problems: list[WireError | MismatchError | None] = [None] * len(bodies)
    _check(survey, bodies, 0, problems)
    right = b"".join(body for body, problem in zip(bodies, problems, strict=True) if problem is None)
    frames = np.frombuffer(right, dtype=_frame(survey.layout.size))
    halves = frames["id"].copy().view(">u8").reshape(-1, 2)
    frames = frames[np.lexsort((halves[:, 1], halves[:, 0]))]
    return DecodedReports(frames["id"].tobytes(), frames["payload"].tobytes(), len(frames), problems)


def _check(
    survey: Survey, bodies: Sequence[bytes], start: int, problems: list[WireError | MismatchError | None]
) -> None:
    """Find the requests that are wrong, by halves: nearly always there is none, and all are checked in one go."""
    try:
        _check_frames(survey, b"".join(bodies))
    except (WireError, MismatchError) as problem:
        if len(bodies) == 1:
            problems[start] = problem
            return
        middle = len(bodies) // 2
        _check(survey, bodies[:middle], start, problems)
        _check(survey, bodies[middle:], start + middle, problems)


def _check_frames(survey: Survey, data: bytes) -> None:
    count_frames(survey, len(data))
    frames = np.frombuffer(data, dtype=_frame(survey.layout.size))
    if (frames["version"] != VERSION).any():
        raise WireError(f"expected wire version {VERSION}")
    if (frames["task"] != np.frombuffer(bytes.fromhex(survey.task), np.uint8)).any():
        raise MismatchError("a report was made for another task")
    survey.check(Reports.from_bytes(survey.task, survey.layout, frames["payload"].tobytes()))


@lru_cache(maxsize=64)
def _frame(payload: int) -> np.dtype[Any]:
    fields = [("version", "u1"), ("task", "u1", (32,)), ("id", "u1", (ID_BYTES,)), ("payload", "u1", (payload,))]
    return np.dtype(fields)


def frames_of_arrow(survey: Survey, data: bytes, most: int) -> bytes:
    """Runs at the collector: the framed reports behind an Arrow IPC stream of at most so many rows."""
    import pyarrow as pa

    parts: list[bytes] = []
    rows = 0
    try:
        _check_messages(survey, data)
        with pa.ipc.open_stream(data) as stream:
            for batch in stream:
                rows += batch.num_rows
                if rows > most:
                    raise WireError(f"expected at most {most} reports in a request")
                batch.validate(full=True)
                if batch.num_rows:
                    parts.append(_frames_of_batch(survey, batch))
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, OverflowError):
        raise WireError("expected a whole Arrow IPC stream") from None
    if not parts:
        raise WireError("expected at least one report")
    return b"".join(parts)


def _frames_of_batch(survey: Survey, batch: Any) -> bytes:
    ids = batch.column(_ID_COLUMN)
    if ids.null_count:
        raise WireError(f"column {_ID_COLUMN!r} has missing entries")
    reports = from_arrow(batch.drop_columns([_ID_COLUMN]), survey)
    frames = np.zeros(len(reports), dtype=_frame(survey.layout.size))
    frames["version"] = VERSION
    frames["task"] = np.frombuffer(bytes.fromhex(survey.task), np.uint8)
    frames["id"] = _bytes_of(ids, ID_BYTES)
    frames["payload"] = np.frombuffer(reports.to_bytes(), np.uint8).reshape(len(reports), -1)
    return frames.tobytes()


def _bytes_of(array: Any, width: int) -> NDArray[np.uint8]:
    start = array.offset * width
    whole = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    return whole[start : start + len(array) * width].reshape(-1, width)


def _check_messages(survey: Survey, data: bytes) -> None:
    """Compressed buffers could unfold to far more than was sent. Arrow has no option to refuse them, so look ahead.

    Only what the columns of a survey need may come: its schema, then record batches. Dictionaries are read as soon as
    a stream is, compressed or not, so they are refused by their kind.
    """
    import pyarrow as pa

    for i, message in enumerate(pa.ipc.MessageReader.open_stream(data)):
        if message.type != ("record batch" if i else "schema"):
            raise WireError("expected an Arrow stream of one schema and record batches")
        if i == 0:
            _check_schema(survey, pa.ipc.read_schema(message))
        elif _is_compressed(message.metadata.to_pybytes()):
            raise WireError("expected an Arrow stream without compression")


def _check_schema(survey: Survey, schema: Any) -> None:
    import pyarrow as pa

    if schema.names.count(_ID_COLUMN) != 1 or schema.field(_ID_COLUMN).type != pa.binary(ID_BYTES):
        raise WireError(f"expected one column {_ID_COLUMN!r} of fixed-size binary, {ID_BYTES} bytes")
    if (schema.metadata or {}).get(b"veil.task") != survey.task.encode():
        raise MismatchError("these reports were made for another task")
    plain, expected = schema.remove(schema.get_field_index(_ID_COLUMN)), arrow_schema(survey)
    if plain.names != expected.names or plain.types != expected.types:
        raise WireError(f"expected the columns {', '.join(expected.names)} and {_ID_COLUMN}")


def _is_compressed(metadata: bytes) -> bool:
    """Whether a message's flatbuffer (Message.header as RecordBatch) has the table `compression`."""
    header = _member(metadata, int.from_bytes(metadata[:4], "little"), 2)
    if header is None:
        return False
    batch = header + int.from_bytes(metadata[header : header + 4], "little")
    return _member(metadata, batch, 3) is not None


def _member(buffer: bytes, table: int, index: int) -> int | None:
    """Where the index-th member of a flatbuffer's table stands; None if it is left out."""
    vtable = table - int.from_bytes(buffer[table : table + 4], "little", signed=True)
    place = vtable + 4 + 2 * index
    if place + 2 > vtable + int.from_bytes(buffer[vtable : vtable + 2], "little"):
        return None
    offset = int.from_bytes(buffer[place : place + 2], "little")
    return table + offset if offset else None
