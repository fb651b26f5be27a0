"""Read and write every family of documents, and the recorded documents of `tests/fixtures/house/documents.jsonl`.

`FAMILIES` is the only place here that names the code's entry points. `python -m tests.support.record_house` records the
documents; `tests/unit/project/test_recorded_documents.py` compares them with the code.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import veil.comparison
import veil.hitters
import veil.itemsets
import veil.marginals
import veil.numeric
import veil.post
import veil.sql
from veil import MECHANISMS, STUDIES, Guarantee, Public, Survey, study_from_json
from veil.accounting import Shuffler
from veil.device.client import RoundPart
from veil.domain import DOMAINS, labels_from_json
from veil.mechanisms import mechanism_from_json
from veil.mechanisms.longitudinal.base import Memo
from veil.results import Bands, Result, load, save
from veil.results.laws import Noise
from veil.shuffle.peos import PublicKey, SecretKey
from veil.shuffle.plan import CollectionPlan
from veil.shuffle.sequential import Key, SpotChecks
from veil.shuffle.submissions import Submission
from veil.sql import Design, PublicColumn
from veil.survey import Rule
from veil.tools.json_documents import canonical
from veil.view import VIEWS, view_from_json
from veil.wire import decode_batch, decode_report, decode_tally, encode_batch, encode_report, encode_tally

FILE = Path(__file__).parents[1] / "fixtures" / "house" / "documents.jsonl"
Json = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """A family of documents of one form: `read` and `write` take a document, or bytes where `binary`.

    With `context`, both also take the document that the bytes belong to: a task, or a mechanism.
    """

    read: Callable[..., Any]
    write: Callable[..., Any]
    binary: bool = False
    context: bool = False
    ordered: bool = False
    """True if the order of keys is part of the bytes; else they are canonical JSON."""
    identity: Callable[[Any], str] | None = None
    """The task id of what was read."""
    from_text: Callable[[str], Any] | None = None
    """Read text instead of a parsed document."""


def _by_method(kind: Any, **more: Any) -> Family:
    return Family(kind.from_json, lambda made: made.to_json(), **more)


def _bytes_by_method(kind: Any) -> Family:
    return Family(kind.from_bytes, lambda made: made.to_bytes(), binary=True)


def _memo(data: bytes, mechanism: Json) -> Any:
    made: Any = mechanism_from_json(mechanism)
    return Memo.from_bytes(made.digest, made.memo_layout, data)


def _by_file(data: bytes, read: Callable[[Path], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "document"
        path.write_bytes(data)
        return read(path)


def _load_text(text: str) -> Any:
    return _by_file(f'{{"kind": "veil-result", "version": 1, "result": {text}}}'.encode(), load)


def _saved(result: Result) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(result, Path(folder) / "saved")
        return (Path(folder) / "saved").read_bytes()


FAMILIES: dict[str, Family] = {
    "domain": Family(labels_from_json, lambda made: made.to_json()),
    "view": Family(view_from_json, lambda made: made.to_json()),
    "mechanism": Family(mechanism_from_json, lambda made: made.to_json()),
    "public": _by_method(Public),
    "guarantee": _by_method(Guarantee),
    "shuffler": _by_method(Shuffler),
    "task": Family(
        Survey.from_json,
        lambda made: json.loads(made.to_bytes()),
        identity=lambda made: made.task,
        from_text=Survey.from_json,
    ),
    "study": Family(
        study_from_json,
        lambda made: json.loads(made.to_bytes()),
        identity=lambda made: made.survey.task,
        from_text=study_from_json,
    ),
    "result": Family(
        Result.from_json,
        lambda made: made.to_json(),
        ordered=True,
        from_text=_load_text,
    ),
    "result file": Family(lambda data: _by_file(data, load), _saved, binary=True),
    "report": Family(
        lambda data, task: decode_report(Survey.from_json(task), data),
        lambda made, task: encode_report(Survey.from_json(task), made[1], made[0]),
        binary=True,
        context=True,
    ),
    "batch": Family(
        lambda data, task: decode_batch(Survey.from_json(task), data),
        lambda made, task: encode_batch(made),
        binary=True,
        context=True,
    ),
    "tally": Family(
        lambda data, task: decode_tally(Survey.from_json(task), data),
        lambda made, task: encode_tally(made),
        binary=True,
        context=True,
    ),
    "memo": Family(_memo, lambda made, mechanism: made.to_bytes(), binary=True, context=True),
    "plan of parties": _by_method(CollectionPlan),
    "round of a study": _by_method(RoundPart),
    "DGK public key": _by_method(PublicKey),
    "DGK secret key": _by_method(SecretKey),
    "onion key": Family(lambda data: _by_file(data, Key.read), lambda made: made.to_bytes(), binary=True),
    "submission": _bytes_by_method(Submission),
    "spot checks": _bytes_by_method(SpotChecks),
}


def registered() -> dict[str, set[str]]:
    """Return the kinds that the code can write, by group: from its registries and from the subclasses of its bases."""
    return {
        "domain": {*DOMAINS, "tuples"},
        "view": set(VIEWS),
        "mechanism": set(MECHANISMS),
        "study": set(STUDIES),
        "post method": set(veil.post.METHODS),
        "ask": {"question", "one-of", "all-of", "each-of"},
        "rule": _kinds(Rule),
        "design": _kinds(Design),
        "column": _kinds(PublicColumn),
        "result": _kinds(Result),
        "noise": _kinds(Noise),
        "bands": _kinds(Bands),
    }


def _kinds(base: type[Any]) -> set[str]:
    """Return the kinds (with variants, where there are any) of the concrete public subclasses that the package has."""
    found = set()
    for kind in base.__subclasses__():
        found |= _kinds(kind)
        own = ("kind" in vars(kind) or "variant" in vars(kind)) and not kind.__name__.startswith("_")
        if own and not inspect.isabstract(kind) and kind.__module__.startswith("veil."):
            found.add("/".join(filter(None, (kind.kind, getattr(kind, "variant", "")))))
    return found


def kinds_in(family: str, document: Any) -> Iterator[tuple[str, str]]:
    """Yield (group, kind) of everything in a document that has a kind, in the groups of `registered`."""
    if family == "result" and isinstance(document, dict):
        yield "result", "/".join(filter(None, (document["kind"], document.get("variant", ""))))
    elif family in ("domain", "view", "mechanism"):
        yield family, document["kind"]
    elif family == "study":
        yield "study", document["study"]["kind"]
        if isinstance(document["study"].get("post"), str):
            yield "post method", document["study"]["post"]
    yield from ((group, kind) for group, kind, _, _ in nested_parts(document))


_GROUPS = {name: name for name in ("ask", "rule", "design", "noise", "bands")} | {"noises": "noise", "public": "column"}
"""The groups of parts of documents, by the key that holds one part or a list of them."""


def nested_parts(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, str, tuple[Any, ...], Any]]:
    """Yield (group, kind, path, part) of every part inside a document that has a kind."""
    if isinstance(document, dict):
        entries: Iterable[tuple[Any, Any]] = document.items()
    else:
        entries = enumerate(document) if isinstance(document, list) else ()
    for key, part in entries:
        group = _GROUPS.get(next((name for name in reversed((*path, key)) if isinstance(name, str)), ""))
        if group and isinstance(part, dict) and "kind" in part:
            yield group, part["kind"], (*path, key), part
        yield from nested_parts(part, (*path, key))


# -- the recorded documents --------------------------------------------------------------------------------------------


def read_lines() -> list[Json]:
    """Return the recorded lines: documents, and what is refused."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def read_back(line: Json, document: Any) -> Any:
    """Return what the code reads from a document of this line's family."""
    family = FAMILIES[line["family"]]
    data = bytes.fromhex(document) if family.binary else copy.deepcopy(document)
    return family.read(data, line["context"]) if family.context else family.read(data)


def read_damaged(line: Json, document: Any, path: Any, *value: Any) -> Any:
    """Read a damaged copy: `path` is the name of a damage of the text or bytes, or leads to a part with a new value."""
    family = FAMILIES[line["family"]]
    if not isinstance(path, str):
        return read_back(line, apply_edit(document, path, *value))
    if family.binary:
        return read_back(line, BYTE_DAMAGES[path](bytes.fromhex(document)).hex())
    assert family.from_text is not None
    return family.from_text(TEXT_DAMAGES[path](json.dumps(document).encode()).decode())


def bytes_of(line: Json, made: Any) -> tuple[Any, bytes]:
    """Return the document (hex where it is binary) and the bytes that the code writes."""
    family = FAMILIES[line["family"]]
    written = family.write(made, line["context"]) if family.context else family.write(made)
    if family.binary:
        return written.hex(), written
    data = json.dumps(written, allow_nan=False).encode() if family.ordered else canonical(written)
    return json.loads(data), data


def sha256(data: bytes) -> str:
    """Return the digest of a document's bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


BYTE_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte short": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "half": lambda data: data[: len(data) // 2],
    "first byte changed": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "last byte changed": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
}
TEXT_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte short": lambda data: data[:-1],
    "twice": lambda data: data + data,
    "a key twice": lambda data: data[:-1] + b',"kind":"again"}',
    "a float": lambda data: data[:-1] + b',"more":1.5}',
    "NaN": lambda data: data[:-1] + b',"more":NaN}',
    "in a list": lambda data: b"[" + data + b"]",
}
"""Changes of a document's text or bytes."""


def apply_edit(document: Any, path: list[Any], *value: Any) -> Any:
    """Return the document with the part at `path` replaced by `value`, or without it."""
    made = copy.deepcopy(document)
    if not path:
        return value[0]
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    if value:
        holder[path[-1]] = value[0]
    else:
        del holder[path[-1]]
    return made
