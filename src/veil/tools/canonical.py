"""Tasks as canonical JSON (RFC 8785) and the digest that names them. No floats, no integers from 2^53 on."""

from __future__ import annotations

import hashlib
import re
from collections import UserDict
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, NoReturn, TypeVar, cast

from veil.errors import WireError
from veil.tools.bounded_json import load_json

__all__ = ["Json", "Kinds", "by_kind", "canonical", "digest", "kind_of", "number", "parse", "take"]

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


def parse(text: str | bytes) -> Json:
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
