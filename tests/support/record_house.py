"""Record the documents, reports and OpenAPI description of `tests/fixtures/house`, which tests compare with the code.

    python -m tests.support.record_house                all of them
    python -m tests.support.record_house documents      the documents
    python -m tests.support.record_house reports        digests of seeded reports and of tallies; two report files
    python -m tests.support.record_house openapi        the OpenAPI description: its structure and its texts

docs/decisions/0042-guards.md says when they may be recorded again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from tests.support.documents import (
    BYTE_DAMAGES,
    FAMILIES,
    FILE,
    TEXT_DAMAGES,
    bytes_of,
    kinds_in,
    nested_parts,
    read_back,
    read_damaged,
    registered,
    sha256,
)
from tests.support.openapi import STRUCTURE, TEXTS, openapi_parts

from veil.errors import VeilError

Json = dict[str, Any]
_MAX_DEPTH = {"study": 3, "task": 5, "result": 2}
"""How deep documents are damaged; their parts are damaged as documents of their own families."""


def example_line(family: str, name: str, made: Any) -> Json:
    """Return the line of an example: its document, the digest of its bytes, and its task id where it has one."""
    line: Json = {"family": family, "name": name}
    if FAMILIES[family].context:
        made, line["context"] = made
    line["document"], data = bytes_of(line, made)
    line["sha256"] = sha256(data)
    identity = FAMILIES[family].identity
    if identity is not None:
        line["id"] = identity(made)
    return line


def kinds_of(lines: list[Json]) -> dict[str, set[str]]:
    """Return the kinds that the documents of these lines hold, by group."""
    found: dict[str, set[str]] = {group: set() for group in registered()}
    for line in lines:
        if not FAMILIES[line["family"]].binary:
            for group, kind in kinds_in(line["family"], line["document"]):
                found[group].add(kind)
    return found


def document_lines() -> list[Json]:
    """Make every example, and damage a copy of each kind in many ways; fails where a kind has no example."""
    from tests.support.document_examples import BUILT, REFUSED
    from tests.support.result_examples import results as make_results

    results = make_results()
    examples = {**BUILT, "result": results, "result file": {"frequencies": results["frequencies"]}}
    lines = [example_line(family, name, made) for family, named in examples.items() for name, made in named.items()]
    kinds = {**kinds_of(lines), "family": set(examples)}
    for group, wanted in {**registered(), "family": set(FAMILIES)}.items():
        if missing := wanted - kinds[group]:
            raise SystemExit(f"{group}: kinds without an example in document_examples.py: {sorted(missing)}")
    seen: set[tuple[str, ...]] = set()
    seen_parts: set[tuple[str, str]] = set()
    for line in lines:
        if bytes_of(line, read_back(line, line["document"]))[0] != line["document"]:
            raise SystemExit(f"{line['family']}, {line['name']}: what is read is not written as it was")
        kind = _kind(line)
        chosen = [
            [list(path), value]
            for family, name, path, value in REFUSED
            if (family, name) == (line["family"], line["name"])
        ]
        read = [edit for edit in chosen if _refusal(line, edit) is None]
        if read:
            raise SystemExit(f"{line['family']}, {line['name']}: expected refusals of {read}")
        edits = chosen if kind in seen else [*chosen, *_edits(line)]
        seen.add(kind)
        for group, name, path, part in () if FAMILIES[line["family"]].binary else nested_parts(line["document"]):
            if (group, name) not in seen_parts:
                seen_parts.add((group, name))
                edits += [edit for edit in _part_edits(part, list(path), len(path) + 2) if edit not in edits]
        refused = [[error, *edit] for edit in edits if (error := _refusal(line, edit)) is not None]
        if refused:
            line["refused"] = refused
    return lines


def _kind(line: Json) -> tuple[str, ...]:
    """Return the kind of a document; one of each kind is damaged."""
    document, family = line["document"], line["family"]
    if FAMILIES[family].binary:
        return family, line["name"]
    part = {"study": "study", "task": "ask"}.get(family)
    described = document if part is None else document[part]
    return family, str(described.get("kind")), str(described.get("variant"))


def _refusal(line: Json, edit: list[Any]) -> str | None:
    """Return the class of the error that reading a damaged copy raises; None where it is read."""
    try:
        read_damaged(line, line["document"], *edit)
    except VeilError as problem:
        return type(problem).__name__
    except (KeyError, TypeError, ValueError, AttributeError):  # this reader leaves such checks to its caller
        return None
    return None


def _edits(line: Json) -> Iterator[list[Any]]:
    """Yield damages of a document: [name] or [path], where the part is left out, or [path, value]."""
    family = FAMILIES[line["family"]]
    if family.binary or family.from_text is not None:
        yield from ([name] for name in (BYTE_DAMAGES if family.binary else TEXT_DAMAGES))
    if not family.binary:
        yield from _part_edits(line["document"], [], _MAX_DEPTH.get(line["family"], 3))


def _part_edits(part: Any, path: list[Any], depth: int) -> Iterator[list[Any]]:
    if path:
        yield [path]
        yield from ([path, value] for value in _others(part))
    if len(path) == depth or (path[:1] == ["task"] and len(path) > 1):
        return
    if isinstance(part, dict):
        yield [[*path, "unknown"], 1]
        for name, one in part.items():
            yield from _part_edits(one, [*path, name], depth)
    elif isinstance(part, list) and part:
        yield from _part_edits(part[0], [*path, 0], depth)


def _others(part: Any) -> list[Any]:
    """Return values of other types than this part, and values that are out of range or written otherwise."""
    if isinstance(part, bool):
        return [None, "true", 1]
    if isinstance(part, int):
        return [None, str(part), True, -1, 2**53]
    if isinstance(part, float):
        return [str(part), []]
    if isinstance(part, str):
        return [None, 1, "", *([f"{part}0", f"-{part}", "NaN"] if part[:1].isdigit() else ["unknown"])]
    if isinstance(part, list):
        return [None, {}, "", [], [None]]
    return [None, [], "", {}] if isinstance(part, dict) else ["", -1]


def main(names: list[str]) -> None:
    """Record what is named; everything without a name."""
    if unknown := set(names) - {"documents", "reports", "openapi"}:
        raise SystemExit(f"expected documents, reports or openapi, got {', '.join(sorted(unknown))}")
    if not names or "documents" in names:
        lines = document_lines()
        FILE.write_text("".join(json.dumps(line, allow_nan=False) + "\n" for line in lines), encoding="utf-8")
        print(f"{len(lines)} documents, {sum(len(line.get('refused', ())) for line in lines)} damaged copies")
    if not names or "reports" in names:
        from tests.support.document_examples import TASKS
        from tests.support.recorded_reports import DIGESTS, digests_of, write_report_files

        DIGESTS.write_text(json.dumps({name: digests_of(name, made) for name, made in TASKS.items()}, indent=1) + "\n")
        write_report_files()
        print(DIGESTS.name)
    if not names or "openapi" in names:
        for path, part in zip((STRUCTURE, TEXTS), openapi_parts(), strict=True):
            path.write_text(json.dumps(part, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
