"""Single reports, batches and payload columns as bytes. The specification is docs/wire-format.md.

Decoding takes the task, checks every range and refuses trailing bytes. It raises WireError or MismatchError and nothing
else, and returns nothing partial. Pickle is never used.

A payload column holds reports in tables that have no unsigned integers, such as those of Spark: each `payload` has the
bytes of a report as they are sent. If `public.NAME` columns are beside it, they are the report's public ones, and the
payload ends before them. The task is in the metadata of the field, which Spark keeps in its files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, MismatchError, WireError
from veil.reports.columns import Reports
from veil.survey import Survey
from veil.tools.json_documents import load_json

if TYPE_CHECKING:
    import pyarrow as pa


VERSION = 1
ID_BYTES = 16
_TASK_BYTES = 32
_BATCH = b"VEILB" + bytes([VERSION])


def report_size(survey: Survey) -> int:
    """Bytes of one framed report: version, task id, report id, payload."""
    return 1 + _TASK_BYTES + ID_BYTES + survey.layout.size


def encode_report(survey: Survey, report: Reports, report_id: bytes) -> bytes:
    """Runs on the device: one report, framed for transport. The id is random, and stripped before any shuffling."""
    if report.task != survey.task or len(report) != 1 or len(report_id) != ID_BYTES:
        raise MismatchError("expected one report of this survey, and an id of 16 bytes")
    return bytes([VERSION]) + bytes.fromhex(survey.task) + report_id + report.to_bytes()


def decode_report(survey: Survey, data: bytes) -> tuple[bytes, Reports]:
    """Runs at the collector: the report id and the report, or an error that says what was expected."""
    if len(data) != report_size(survey):
        raise WireError(f"expected a report of {report_size(survey)} bytes, got {len(data)}")
    if data[0] != VERSION:
        raise WireError(f"expected wire version {VERSION}")
    start = 1 + _TASK_BYTES
    if data[1:start] != bytes.fromhex(survey.task):
        raise MismatchError("this report was made for another task")
    return data[start : start + ID_BYTES], _checked(survey, data[start + ID_BYTES :])


def encode_batch(reports: Reports) -> bytes:
    """Many reports without ids: magic, version, task id, number of reports, payloads."""
    if not len(reports):
        raise EmptyError("expected at least one report in a batch")
    return _BATCH + bytes.fromhex(reports.task) + len(reports).to_bytes(8, "little") + reports.to_bytes()


def decode_batch(survey: Survey, data: bytes) -> Reports:
    """Runs at the collector: the reports of a batch, checked one and all."""
    head = len(_BATCH) + _TASK_BYTES
    if data[: len(_BATCH)] != _BATCH:
        raise WireError(f"expected a veil batch of wire version {VERSION}")
    if len(data) < head + 8:
        raise WireError("a batch ends within its header")
    if data[len(_BATCH) : head] != bytes.fromhex(survey.task):
        raise MismatchError("this batch was made for another task")
    count = int.from_bytes(data[head : head + 8], "little")
    expected = head + 8 + count * survey.layout.size
    if not count or len(data) != expected:
        raise WireError(f"expected {count} reports in {expected} bytes, got {len(data)} bytes")
    return _checked(survey, data[head + 8 :])


def _checked(survey: Survey, payloads: bytes) -> Reports:
    reports = Reports.from_bytes(survey.task, survey.layout, payloads)
    survey.check(reports)
    return reports


PAYLOAD = "payload"
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def payload_metadata(survey: Survey) -> dict[str, str]:
    """What stands in the metadata of a payload's field: the task, and the version of the wire format."""
    return {"veil.task": survey.task, "veil.wire": str(VERSION)}


def task_of(schema: pa.Schema) -> str | None:
    """The task that the payload's field names, in Arrow's metadata or in Spark's; None where none is named."""
    if PAYLOAD not in schema.names:
        return None
    own = schema.field(PAYLOAD).metadata or {}
    found = {key.decode(): value.decode("utf-8", "replace") for key, value in own.items()}
    if "veil.task" not in found:
        found = _spark_metadata((schema.metadata or {}).get(_SPARK_SCHEMA))
    if "veil.task" in found and found.get("veil.wire") != str(VERSION):
        raise WireError(f"expected payloads of wire version {VERSION}")
    return found.get("veil.task")


def _spark_metadata(written: bytes | None) -> dict[str, Any]:
    try:
        fields = load_json(written or b"{}")["fields"]
        (metadata,) = (field["metadata"] for field in fields if field["name"] == PAYLOAD)
    except (ValueError, LookupError, TypeError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def check_payloads(names: Sequence[str], survey: Survey) -> None:
    """Refuse a table without payloads, or with some of the survey's public columns and not with others."""
    wanted = [column.field.name for column in survey.public]
    there = [name for name in wanted if name in names]
    if PAYLOAD not in names or (there and there != wanted):
        expected = ", ".join([PAYLOAD, *wanted])
        raise WireError(f"expected the columns {expected}")


def to_payloads(reports: Reports, survey: Survey) -> pa.RecordBatch:
    """Reports as a record batch of payloads, then one column per public column."""
    import pyarrow as pa

    if reports.task != survey.task:
        raise MismatchError("these reports were made for another task")
    layout, rows = survey.ask.layout, len(reports)
    packed = layout.pack({name: reports.columns[name] for name in layout.names})
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(layout.size)
    payloads = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(packed)])
    public = [column.field.name for column in survey.public]
    beside = [pa.array(reports.columns[name], pa.int64()) for name in public]
    return pa.RecordBatch.from_arrays([payloads, *beside], names=[PAYLOAD, *public])


def from_payloads(batch: pa.RecordBatch, survey: Survey) -> Reports:
    """Runs at the collector: a record batch of payloads as reports, strictly checked."""
    import pyarrow as pa

    check_payloads(batch.schema.names, survey)
    payloads = batch.column(PAYLOAD)
    if not (pa.types.is_binary(payloads.type) or pa.types.is_large_binary(payloads.type)):
        raise WireError(f"column {PAYLOAD!r} holds bytes")
    public = [column.field.name for column in survey.public if column.field.name in batch.schema.names]
    layout = survey.ask.layout if public else survey.layout
    columns: dict[str, NDArray[Any]] = dict(layout.unpack(_joined(payloads, layout.size)))
    for name in public:
        column = batch.column(name)
        if column.null_count or column.type != pa.int64():
            raise WireError(f"column {name!r} holds integers of 64 bits, and none is missing")
        columns[name] = column.to_numpy(zero_copy_only=False)
    reports = Reports(survey.task, survey.layout, columns)
    survey.check(reports)
    return reports


def _joined(payloads: Any, size: int) -> bytes:
    """All payloads, one after another; refuses one that is missing or of another length."""
    if payloads.null_count:
        raise WireError(f"column {PAYLOAD!r} has missing entries")
    if not len(payloads):
        return b""
    wide = np.int64 if str(payloads.type).startswith("large") else np.int32
    _, offsets, data = payloads.buffers()
    ends = np.frombuffer(offsets, wide)[payloads.offset : payloads.offset + len(payloads) + 1]
    if (np.diff(ends) != size).any():
        raise WireError(f"a payload of this task has {size} bytes: one has another length")
    return memoryview(data)[int(ends[0]) : int(ends[-1])] if size else b""  # type: ignore[return-value]  # bytes alike
