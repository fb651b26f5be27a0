"""Bytes that every language agrees on: single reports, batches and tallies. The specification is docs/wire-format.md.

Decoding takes the task, checks every range and refuses leftovers; whatever is wrong, only a WireError or a
MismatchError comes out, and nothing is half-read. Never pickle.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.canonical import Json, canonical
from veil.errors import EmptyError, MismatchError, WireError
from veil.report import Reports
from veil.survey import Survey, SurveyTally
from veil.tally import Tally

__all__ = [
    "ID_BYTES",
    "VERSION",
    "decode_batch",
    "decode_report",
    "decode_tally",
    "encode_batch",
    "encode_report",
    "encode_tally",
    "report_size",
]

VERSION = 1
ID_BYTES = 16
_TASK_BYTES = 32
_BATCH = b"VEILB" + bytes([VERSION])
_TALLY = b"VEILT" + bytes([VERSION])
_CODE_TYPES = ("<u8", "|u1")


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
    survey.parts(reports)  # refuses what the tree cannot have produced
    return reports


def encode_tally(tally: SurveyTally) -> bytes:
    """A tally as bytes: magic, version, header (canonical JSON) with its length, integers, SHA-256 of all before."""
    parts = [_part_header(part) for part in tally.parts]
    header = canonical({"task": tally.task, "people": str(tally.people), "parts": parts})
    body = b"".join(_part_arrays(part) for part in tally.parts)
    whole = _TALLY + len(header).to_bytes(8, "little") + header + body
    return whole + hashlib.sha256(whole).digest()


def decode_tally(survey: Survey, data: bytes) -> SurveyTally:
    """Read a tally back; refuses one that is damaged, or of another task."""
    if data[: len(_TALLY)] != _TALLY:
        raise WireError(f"expected a veil tally of wire version {VERSION}")
    whole, checksum = data[:-32], data[-32:]
    if len(whole) < len(_TALLY) + 8 or hashlib.sha256(whole).digest() != checksum:
        raise WireError("this tally is damaged: its checksum does not match")
    start = len(_TALLY) + 8
    length = int.from_bytes(whole[len(_TALLY) : start], "little")
    try:
        header = json.loads(whole[start : start + length])
        if header["task"] != survey.task:
            raise MismatchError("this tally was made for another task")
        parts, rest = [], whole[start + length :]
        for described, question in zip(header["parts"], survey.questions, strict=True):
            part, rest = _read_part(described, question.mechanism.digest, rest)
            parts.append(part)
        people = int(header["people"])
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, MismatchError):
            raise
        raise WireError("this tally's header is not one that veil writes") from None
    if rest or people < max((part.people for part in parts), default=0):
        raise WireError("this tally has bytes or people left over")
    return SurveyTally(survey.task, people, tuple(parts))


def _part_header(part: Tally) -> Json:
    codes = part.candidates
    return {
        "task": part.task,
        "counts": len(part.counts),
        "people": str(part.people),
        "weight": str(part.weight),
        "square": str(part.square),
        "candidates": None if codes is None else [_code_type(codes), *codes.shape],
    }


def _part_arrays(part: Tally) -> bytes:
    codes = b"" if part.candidates is None else part.candidates.astype(_code_type(part.candidates)).tobytes()
    return part.counts.astype("<i8").tobytes() + codes


def _code_type(codes: NDArray[Any]) -> str:
    return "|u1" if codes.ndim == 2 else "<u8"


def _read_part(described: Json, task: str, data: bytes) -> tuple[Tally, bytes]:
    if described["task"] != task:
        raise MismatchError("this tally was made for another task")
    counts, data = _read_array(data, "<i8", (int(described["counts"]),))
    codes: NDArray[Any] | None = None
    if described["candidates"] is not None:
        kind, *shape = described["candidates"]
        if kind not in _CODE_TYPES or len(shape) != _CODE_TYPES.index(kind) + 1 or shape[0] != len(counts):
            raise WireError("this tally's candidates are not ones that veil writes")
        codes, data = _read_array(data, kind, tuple(int(side) for side in shape))
    people, weight, square = (int(described[key]) for key in ("people", "weight", "square"))
    if people < 0 or square < 0:
        raise WireError("a tally counts at least zero people")
    return Tally(task, counts, people, weight, square, codes), data


def _read_array(data: bytes, kind: str, shape: tuple[int, ...]) -> tuple[NDArray[Any], bytes]:
    size = int(np.prod(shape, dtype=object)) * np.dtype(kind).itemsize
    if min(shape) < 0 or size > len(data):
        raise WireError("a tally ends within its integers")
    native = np.dtype(kind).newbyteorder("=")
    return np.frombuffer(data[:size], dtype=kind).astype(native).reshape(shape), data[size:]
