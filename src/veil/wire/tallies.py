"""Tallies as bytes, with a checksum. The specification is docs/wire-format.md.

Decoding takes the task, and refuses a tally that is damaged, of another task, or not written by `encode_tally`.
"""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import MismatchError, VeilError, WireError
from veil.mechanisms import FrequencyOracle, Mechanism
from veil.reports.tally import Tally
from veil.survey import MOST_WAVES, Survey, SurveyTally
from veil.tools.json_documents import Json, canonical, parse_json
from veil.tools.numbers import is_int
from veil.wire.frames import VERSION

_TALLY = b"VEILT" + bytes([VERSION])
_MOST = 2**63 - 1
_DIGITS = 40  # sums of squares of weights stay far below 10^39


def encode_tally(tally: SurveyTally) -> bytes:
    """A tally as bytes: magic, version, header (canonical JSON) with its length, integers, SHA-256 of all before."""
    header = _tally_header(tally)
    body = b"".join(_part_arrays(part) for part in tally.parts)
    whole = _TALLY + len(header).to_bytes(8, "little") + header + body
    return whole + hashlib.sha256(whole).digest()


def decode_tally(survey: Survey, data: bytes) -> SurveyTally:
    """Read a tally back; refuses one that is damaged, of another task, or not written by `encode_tally`."""
    head, rest = _opened(data)
    header = parse_json(head)
    try:
        survey = survey.first  # which names the tallies of all waves
        if header["task"] != survey.task:
            raise MismatchError("this tally was made for another task")
        questions = _read_questions(header["questions"], len(survey.questions)) if "questions" in header else None
        numbers = range(len(survey.questions)) if questions is None else questions
        if len(header["parts"]) != len(numbers):
            raise WireError("this tally does not have one part for each counted question")
        parts = []
        for described, number in zip(header["parts"], numbers, strict=True):
            part, rest = _read_part(described, survey.questions[number].mechanism, rest)
            parts.append(part)
        wave, seeded = _read_wave(header), _read_seeded(header)
        tally = SurveyTally(survey.task, _count(header["people"]), tuple(parts), questions, wave, seeded)
    except (LookupError, TypeError, ValueError) as problem:
        if isinstance(problem, VeilError):
            raise
        raise WireError("this tally's header is not one that veil writes") from None
    if rest or tally.people < max(part.people for part in parts):
        raise WireError("this tally has bytes or people left over")
    if tally.fakes and (len(survey.ask) > 1 or tally.people != parts[0].people):
        raise WireError("a tally with fakes in it is of a survey of one question")
    if _tally_header(tally) != head:
        raise WireError("this tally's header is not one that veil writes")
    return tally


def describe_tally(data: bytes) -> Json:
    """What a tally says about itself, without a task to check it against: its task, people and questions."""
    header = parse_json(_opened(data)[0])
    try:
        numbers = header.get("questions", range(len(header["parts"])))
        parts = [
            {"question": int(number), "counts": int(part["counts"]), "reports": int(part["people"])}
            for number, part in zip(numbers, header["parts"], strict=True)
        ]
        fakes = sum(int(part.get("fakes", 0)) for part in header["parts"])
        described = {"task": str(header["task"]), "reports": int(header["people"]), "questions": parts}
        again = {"wave": _read_wave(header)} if "wave" in header else {}
        seeded = {"seeded": True} if _read_seeded(header) else {}
        return {**described, **again, **({"fakes": fakes} if fakes else {}), **seeded}
    except (LookupError, TypeError, ValueError, AttributeError):
        raise WireError("this tally's header is not one that veil writes") from None


def is_tally(data: bytes) -> bool:
    """Whether bytes begin like a tally, of any version."""
    return data.startswith(_TALLY[:-1])


def _opened(data: bytes) -> tuple[bytes, bytes]:
    """The header and the integers of a whole tally."""
    if data[: len(_TALLY)] != _TALLY:
        raise WireError(f"expected a veil tally of wire version {VERSION}")
    whole, checksum = data[:-32], data[-32:]
    if len(whole) < len(_TALLY) + 8 or hashlib.sha256(whole).digest() != checksum:
        raise WireError("this tally is damaged: its checksum does not match")
    start = len(_TALLY) + 8
    end = start + int.from_bytes(whole[len(_TALLY) : start], "little")
    return whole[start:end], whole[end:]


def _tally_header(tally: SurveyTally) -> bytes:
    parts = [_part_header(part) for part in tally.parts]
    counted = {} if tally.questions is None else {"questions": list(tally.questions)}
    again = {"wave": tally.wave} if tally.wave > 1 else {}
    seeded = {"seeded": True} if tally.seeded else {}
    return canonical({"task": tally.task, "people": str(tally.people), "parts": parts, **counted, **again, **seeded})


def _read_wave(header: Json) -> int:
    wave = header.get("wave", 1)
    if not is_int(wave) or not 1 <= wave <= MOST_WAVES:
        raise WireError(f"a tally mentions its wave from the second to number {MOST_WAVES:,}")
    return int(wave)


def _read_seeded(header: Json) -> bool:
    seeded = header.get("seeded", False)
    if "seeded" in header and seeded is not True:
        raise WireError("seeded: expected true, or no such member")
    return bool(seeded)


def _read_questions(listed: Any, many: int) -> tuple[int, ...]:
    """The numbers of the counted questions: some of the survey's, increasing. All of them are not listed."""
    if not isinstance(listed, list) or not 0 < len(listed) < many or not all(type(number) is int for number in listed):
        raise WireError("a tally lists the questions that it counts, unless it counts them all")
    if listed[0] < 0 or listed[-1] >= many or any(a >= b for a, b in pairwise(listed)):
        raise WireError("a tally lists the questions that it counts in increasing order")
    return tuple(listed)


def _part_header(part: Tally) -> Json:
    codes = part.candidates
    return {
        "task": part.task,
        "counts": len(part.counts),
        "people": str(part.people),
        "weight": str(part.weight),
        "square": str(part.square),
        "candidates": None if codes is None else [_code_type(codes), *codes.shape],
        **({"fakes": str(part.fakes)} if part.fakes else {}),
    }


def _part_arrays(part: Tally) -> bytes:
    codes = b"" if part.candidates is None else part.candidates.astype(_code_type(part.candidates)).tobytes()
    return part.counts.astype("<i8").tobytes() + codes


def _code_type(codes: NDArray[Any]) -> str:
    return "|u1" if codes.ndim == 2 else "<u8"


def _read_part(described: Json, mechanism: Mechanism, data: bytes) -> tuple[Tally, bytes]:
    if described["task"] != mechanism.digest:
        raise MismatchError("this tally was made for another task")
    domain, codes = mechanism.domain, None
    listed = described["candidates"]
    if listed is None and not mechanism.closed:
        raise WireError("this tally has no candidates, and its domain is too large to list")
    counts, data = _read_array(data, "<i8", (int(described["counts"]),))
    if listed is not None:
        if not isinstance(mechanism, FrequencyOracle):
            raise WireError("this tally has candidates, and its mechanism takes none")
        many, width = listed[1], domain.code_bytes
        if listed != (["|u1", many, width] if width else ["<u8", many]) or type(many) is not int or many < 1:
            raise WireError("this tally's candidates are not ones that veil writes")
        codes, data = _read_array(data, listed[0], tuple(listed[1:]))
        _check_candidates(codes, domain.size)
    if len(counts) != mechanism.tally_size(codes):
        raise WireError("this tally's counts are not those of its domain or its candidates")
    people, weight, square = (_count(described[key]) for key in ("people", "weight", "square"))
    if not 0 <= people <= _MOST or abs(weight) > _MOST or weight**2 > people * square:  # no weights add up to that
        raise WireError("a tally counts between zero and 2^63 - 1 people")
    fakes = _count(described.get("fakes", "0"))
    if not 0 <= fakes <= _MOST - people or (fakes and not people == weight == square):
        raise WireError("a tally with fakes in it has no weights, and counts at most 2^63 - 1 reports")
    return Tally(mechanism.digest, counts, people, weight, square, codes, fakes), data


def _check_candidates(codes: NDArray[Any], size: int) -> None:
    """Refuse candidates that stand twice, or lie outside of a domain of `size` values."""
    if codes.ndim == 2:
        outside = size % 256 ** codes.shape[1] and (codes[:, 0] >= (size >> 8 * (codes.shape[1] - 1))).any()
    else:
        outside = int(codes.max()) >= size
    if outside or len(np.unique(codes, axis=0)) != len(codes):
        raise WireError("this tally's candidates are not different values of its domain")


def _count(text: Any) -> int:
    """An integer as it stands in a tally's header: decimal text, because it may be above 2^53."""
    if not isinstance(text, str) or len(text) > _DIGITS:
        raise WireError("this tally's header is not one that veil writes")
    return int(text)


def _read_array(data: bytes, kind: str, shape: tuple[int, ...]) -> tuple[NDArray[Any], bytes]:
    size = math.prod(shape) * np.dtype(kind).itemsize
    if min(shape) < 0 or size > len(data):
        raise WireError("a tally ends within its integers")
    native = np.dtype(kind).newbyteorder("=")
    return np.frombuffer(data[:size], dtype=kind).astype(native).reshape(shape), data[size:]
