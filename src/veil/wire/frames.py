"""Single reports and batches as bytes that every language agrees on. The specification is docs/wire-format.md.

Decoding takes the task, checks every range and refuses leftovers; whatever is wrong, only a WireError or a
MismatchError comes out, and nothing is half-read. Never pickle.
"""

from __future__ import annotations

from veil.errors import EmptyError, MismatchError, WireError
from veil.survey import Survey
from veil.wire.reports import Reports

__all__ = ["ID_BYTES", "VERSION", "decode_batch", "decode_report", "encode_batch", "encode_report", "report_size"]

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
