"""JSON from strangers: too large documents are refused before they are parsed, in little memory; real ones pass."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.cli.main import app
from veil.device.web import HttpResponse
from veil.errors import VeilError, WireError
from veil.files.value_file import ValueFile, read_lines
from veil.results import load
from veil.shuffle.plan import CollectionPlan
from veil.sql import read_schema
from veil.study import study_from_json
from veil.survey import Survey
from veil.tools import json_documents as bounded_json
from veil.tools.json_documents import DOCUMENT, RESULT, JsonLimits, load_json, parse_json

MEGABYTE = 1 << 20
ROOM = 30 * MEGABYTE
"""What a refusal may take beside the bytes themselves."""

TOO_LARGE = {
    "open brackets": (lambda: b"[" * 60_000_000, "nested at most 64 deep"),
    "open objects": (lambda: b'{"":' * 15_000_000, "nested at most 64 deep"),
    "empty lists": (lambda: b"[" + b"[]," * 20_000_000 + b"[]]", "values and keys"),
    "empty objects": (lambda: b"[" + b"{}," * 20_000_000 + b"{}]", "values and keys"),
    "numbers": (lambda: b"[" + b"0," * 30_000_000 + b"0]", "values and keys"),
    "strings": (lambda: b"[" + b'"ab",' * 12_000_000 + b'""]', "values and keys"),
    "one key again and again": (lambda: b"{" + b'"a":0,' * 10_000_000 + b'"a":0}', "values and keys"),
    "brackets after escapes": (
        lambda: b'["' + b'\\"' * 9_999_999 + b'\\\\",' + b"[" * 65,
        "nested at most 64 deep",
    ),
    "one long string": (lambda: b'"' + b"a" * DOCUMENT.bytes + b'"', "67,108,864 bytes"),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_large_documents_are_refused_in_little_memory(name: str) -> None:
    make, expected = TOO_LARGE[name]
    body = make()
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match=expected):
            parse_json(body)
        assert HttpResponse(200, {}, body).document == {}
        assert tracemalloc.get_traced_memory()[1] < ROOM
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": ' + b"9" * 1_000_000 + b"}",
        b'{"a": -' + b"9" * 1_000_000 + b"}",
        b'{"a": 0.' + b"9" * 1_000_000 + b"}",
        b'{"a": 1e' + b"9" * 1_000_000 + b"}",
        b'{"a": 1, "a": 2}',
        b'{"a": "' + b"\\u4e00" * 1_000_000,
        b'{"a": "' + b"\\" * 1_000_001,
        b"\\" * 1_000_001 + b"[" * 1000,
        b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"),
        b"]" * 1000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_other_hostile_documents_are_refused_with_one_error(body: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="must be a JSON document"):
            parse_json(body)
        assert tracemalloc.get_traced_memory()[1] < ROOM
    finally:
        tracemalloc.stop()


DEEP = b'{"kind": "veil-result", "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("ending", "read"),
    [
        (".json", lambda path: study_from_json(path.read_bytes())),
        (".json", lambda path: Survey.from_json(path.read_text())),
        (".json", load),
        (".json", CollectionPlan.read),
        (".json", read_schema),
        (".jsonl", lambda path: list(read_lines(ValueFile(path), ["a"], "line", {}))),
    ],
)
def test_every_reader_refuses_a_deep_file_with_an_error_of_its_own(
    ending: str, read: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = tmp_path / f"deep{ending}"
    path.write_bytes(DEEP)
    with pytest.raises(VeilError):
        read(path)


def test_inspect_refuses_a_deep_file(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    path = tmp_path / "deep.json"
    path.write_bytes(DEEP)
    done = CliRunner().invoke(app, ["inspect", str(path)])
    assert done.exit_code == 5
    assert "nested at most 64 deep" in done.output


# -- what is legitimate passes -----------------------------------------------------------------------------------------


def test_a_million_labels_are_within_the_limits() -> None:
    document = {"labels": [f'a [label], "{i}": \\' for i in range(1_000_000)]}
    assert load_json(json.dumps(document)) == document


def test_a_result_has_millions_of_cells() -> None:
    body = b"[" + b"0," * (1 << 22) + b"0]"
    assert len(load_json(body, RESULT)) == (1 << 22) + 1
    with pytest.raises(WireError):
        load_json(body, DOCUMENT)


def nodes(document: Any) -> int:
    """Lists, objects, keys and scalars; an empty list counts for two."""
    if isinstance(document, dict):
        return 1 + max(1, sum(1 + nodes(part) for part in document.values()))
    return 1 + max(1, sum(map(nodes, document))) if isinstance(document, list) else 1


def depth(document: Any) -> int:
    parts = document.values() if isinstance(document, dict) else document if isinstance(document, list) else None
    return 0 if parts is None else 1 + max(map(depth, parts), default=0)


TEXT = st.text(st.sampled_from('[]{},:"\\ab\n中😀'), max_size=8)
TREES = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)


@given(TREES, st.integers(2, 9), st.booleans())
def test_the_check_counts_what_the_parser_makes(document: Any, block: int, escaped: bool) -> None:
    document = [document]
    body = json.dumps(document, ensure_ascii=escaped).encode()
    many, deep = nodes(document), depth(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_json, "_BLOCK", block)
        assert load_json(body, JsonLimits(len(body), deep, many)) == document
        for bytes_, levels, parts in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
            with pytest.raises(WireError):
                load_json(body, JsonLimits(len(body) - bytes_, deep - levels, many - parts))
