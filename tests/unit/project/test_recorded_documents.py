"""Every kind of document is read and written as recorded; damaged copies are refused with the recorded errors.

`python -m tests.support.record_house` records them; docs/decisions/0042-guards.md says when that is allowed.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.document_examples import BUILT
from tests.support.documents import FAMILIES, bytes_of, read_back, read_damaged, read_lines, registered, sha256
from tests.support.openapi import STRUCTURE, TEXTS, openapi_parts
from tests.support.record_house import example_line, kinds_of

from veil.errors import VeilError

Json = dict[str, Any]
LINES = read_lines()


def named(lines: list[Json]) -> Any:
    return pytest.mark.parametrize("line", [pytest.param(one, id=f"{one['family']}: {one['name']}") for one in lines])


@named(LINES)
def test_a_document_is_written_as_it_was_read(line: Json) -> None:
    made = read_back(line, line["document"])
    document, data = bytes_of(line, made)
    assert document == line["document"]
    assert sha256(data) == line["sha256"]
    identity = FAMILIES[line["family"]].identity
    assert (None if identity is None else identity(made)) == line.get("id")


@named([line for line in LINES if line["family"] in BUILT])
def test_an_example_is_written_as_recorded(line: Json) -> None:
    made = example_line(line["family"], line["name"], BUILT[line["family"]][line["name"]])
    assert made == {name: part for name, part in line.items() if name != "refused"}


@named([line for line in LINES if "refused" in line])
def test_a_damaged_document_is_refused(line: Json) -> None:
    for error, *edit in line["refused"]:
        with pytest.raises(VeilError) as refusal:
            read_damaged(line, line["document"], *edit)
        assert type(refusal.value).__name__ == error, edit


def test_every_kind_is_recorded() -> None:
    recorded = kinds_of(LINES)
    missing = {group: sorted(kinds - recorded[group]) for group, kinds in registered().items()}
    assert {group: kinds for group, kinds in missing.items() if kinds} == {}
    assert {line["family"] for line in LINES} == set(FAMILIES)
    for family, examples in BUILT.items():
        assert {line["name"] for line in LINES if line["family"] == family} == set(examples)


def test_the_openapi_description_has_the_recorded_structure() -> None:
    assert openapi_parts()[0] == json.loads(STRUCTURE.read_text(encoding="utf-8"))


def test_the_openapi_description_has_the_recorded_texts() -> None:
    assert openapi_parts()[1] == json.loads(TEXTS.read_text(encoding="utf-8"))
