"""JSON documents: parsing within limits, the canonical form, and tables of kinds.

`load_json` parses untrusted JSON in bounded memory: it checks size, depth and number of values first. A parser makes
about 70 bytes of objects out of three bytes of `[],`, so brackets, commas and colons outside of strings are counted a
block at a time before anything is parsed.

Tasks are stored as canonical JSON (RFC 8785) without floats and without integers from 2^53 on; the SHA-256 of it is
their identity. `Kinds` is the table of the classes of a family, each imported when it is first needed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import UserDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from veil.errors import WireError


@dataclass(frozen=True)
class JsonLimits:
    """The largest document that is parsed: bytes, nested lists and objects, and values and keys together."""

    bytes: int
    depth: int
    nodes: int


DOCUMENT = JsonLimits(bytes=1 << 26, depth=64, nodes=1 << 21)
"""For tasks, study files, plans, and what a collector or a party sends: a million labels fit, in 150 MB of objects."""

RESULT = JsonLimits(bytes=1 << 30, depth=64, nodes=1 << 24)
"""For saved results, which list estimates of millions of cells."""

_BLOCK = 1 << 18  # bytes that are looked at in one step, at least 2: the memory of the check


def load_json(data: str | bytes, limits: JsonLimits = DOCUMENT, **hooks: Any) -> Any:
    """Parse UTF-8 JSON within limits. Raises a WireError above a limit, another ValueError where it is not JSON.

    `hooks` go to `json.loads`.

    >>> load_json(b'{"labels": ["tea", "coffee"]}')
    {'labels': ['tea', 'coffee']}
    """
    raw = data.encode() if isinstance(data, str) else data
    opened = raw.count(b"[") + raw.count(b"{")  # with those inside of strings: no fewer than there are
    if opened > limits.depth or len(raw) > min(limits.bytes, limits.nodes):
        _check(raw, opened, limits)
    return json.loads(data if isinstance(data, str) else raw.decode(), **hooks)


def _check(data: bytes, opened: int, limits: JsonLimits) -> None:
    if len(data) > limits.bytes:
        raise WireError(f"expected JSON of at most {limits.bytes:,} bytes, got {len(data):,}")
    if opened <= limits.depth and 1 + opened + data.count(b",") + data.count(b":") <= limits.nodes:
        return
    inside, depth, nodes, begin = False, 0, 1, 0
    while begin < len(data):
        plain = data[begin : begin + _BLOCK].replace(b"\\\\", b"  ")
        begin += len(plain)
        if plain.endswith(b"\\") and begin < len(data):  # an escape is not cut in two
            plain, begin = plain[:-1], begin - 1
        signs = np.frombuffer(plain.replace(b'\\"', b"  "), dtype=np.uint8)
        within = np.logical_xor.accumulate(np.concatenate([[inside], signs == ord('"')]))
        inside = bool(within[-1])
        outside = signs[~within[1:]]
        levels = depth + np.cumsum(_STEPS[outside], dtype=np.int64)
        depth = int(levels[-1]) if len(levels) else depth
        nodes += int(np.count_nonzero(_PARTS[outside]))
        if levels.max(initial=0) > limits.depth:
            raise WireError(f"expected JSON nested at most {limits.depth} deep, got more")
        if nodes > limits.nodes:
            raise WireError(f"expected JSON of at most {limits.nodes:,} values and keys, got more")


def _table(signs: bytes, value: int) -> NDArray[np.int8]:
    table = np.zeros(256, dtype=np.int8)
    table[list(signs)] = value
    return table


_STEPS = _table(b"[{", 1) + _table(b"]}", -1)
_PARTS = _table(b"[{,:", 1)


Json = dict[str, Any]
Made = TypeVar("Made")

_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?")


def canonical(document: Json) -> bytes:
    """The one byte string that stands for a document.

    >>> canonical({"b": [1, "x"], "a": "1.5"})
    b'{"a":"1.5","b":[1,"x"]}'
    """
    import rfc8785

    try:
        return rfc8785.dumps(document)
    except (ValueError, RecursionError):  # its errors are ValueErrors, and may quote the document
        raise WireError("a document is made of Unicode strings, integers below 2^53, lists and objects") from None


def digest(document: Json) -> str:
    """SHA-256 of the canonical form, in hex: the identity of whatever the document describes."""
    return hashlib.sha256(canonical(document)).hexdigest()


def parse_json(text: str | bytes) -> Json:
    """Read a document strictly: an object, no floats, no repeated keys, no NaN, no integer from 2^53 on."""
    try:
        document = load_json(
            text, object_pairs_hook=_unique, parse_float=_no_float, parse_constant=_no_float, parse_int=_small
        )
    except ValueError as problem:
        reason = str(problem) if isinstance(problem, WireError) else "not valid JSON"
        raise WireError(f"a study or a task must be a JSON document: {reason}") from None
    if not isinstance(document, dict):
        raise WireError("a study or a task must be a JSON object")
    return document


def take(document: Any, kind: str, *keys: str) -> list[Any]:
    """The values of exactly these keys; refuses a document with fewer, more or others.

    >>> take({"kind": "bits", "size": 8}, "bits", "size")
    [8]
    """
    if not isinstance(document, Mapping) or document.get("kind") != kind or set(document) != {"kind", *keys}:
        raise WireError(f"expected an object of kind {kind!r} with the keys {', '.join(keys) or 'none'}")
    return [document[key] for key in keys]


def by_kind(document: Any, makers: Mapping[str, Callable[[Json], Made]], what: str) -> Made:
    """What the maker of the document's kind makes of it; refuses a kind that is not listed.

    >>> by_kind({"kind": "bits", "bits": 8}, {"bits": lambda document: document["bits"]}, "a domain")
    8
    """
    return makers[kind_of(document, makers, what)](document)


def kind_of(document: Any, known: Collection[str], what: str) -> str:
    """Return the kind of a document; raise WireError unless it is one of the known kinds.

    >>> kind_of({"kind": "bits", "size": 8}, ["bits", "text"], "a domain")
    'bits'
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in known:
        raise WireError(f"expected {what}: one of {', '.join(known)}")
    return kind


class Kinds(UserDict[str, type[Made]]):
    """The classes of one family, by kind. Each is imported when it is first asked for.

    `places` names the class of each kind as "module:Class"; a kind of one's own is added as in a dict, with its class.

    >>> kinds = Kinds[Any]({"mean": "veil.results.mean:Mean"})
    >>> "mean" in kinds, kinds["mean"].__name__
    (True, 'Mean')
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        super().__init__()
        self.places = places
        self.data: dict[str, Any] = dict(places)

    def __getitem__(self, kind: str) -> type[Made]:
        entry = self.data[kind]
        if isinstance(entry, str):
            module, name = entry.split(":")
            entry = self.data[kind] = getattr(import_module(module), name)
        return cast("type[Made]", entry)


def number(text: Any) -> float:
    """The double that a decimal string stands for.

    >>> number("0.5")
    0.5
    """
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise WireError("a number that is not an integer is written as a decimal string")
    return float(text)


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise WireError("a key stands twice")
    return document


def _no_float(text: str) -> NoReturn:
    raise WireError("numbers are integers or decimal strings")


def _small(text: str) -> int:
    if len(text) > 17 or abs(int(text)) >= 2**53:
        raise WireError("integers from 2^53 on are written as strings")
    return int(text)
