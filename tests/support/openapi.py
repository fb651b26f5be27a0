"""The OpenAPI description of the collector in two parts: its structure, and the texts that people read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veil.collector.http.openapi import document

_HOUSE = Path(__file__).parents[1] / "fixtures" / "house"
STRUCTURE = _HOUSE / "openapi.json"
TEXTS = _HOUSE / "openapi_texts.json"
_TEXT_KEYS = ("description", "summary", "title")


def openapi_parts() -> tuple[Any, dict[str, str]]:
    """Return the description without texts and without the version of veil, and its texts by JSON pointer."""
    texts: dict[str, str] = {}
    structure = _stripped(document(), "", texts)
    structure["info"].pop("version")
    return structure, texts


def _stripped(part: Any, pointer: str, texts: dict[str, str]) -> Any:
    """Return a copy without the texts, which are added to `texts` by their JSON pointers."""
    if isinstance(part, list):
        return [_stripped(one, f"{pointer}/{i}", texts) for i, one in enumerate(part)]
    if not isinstance(part, dict):
        return part
    kept = {}
    for name, one in part.items():
        where = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if name in _TEXT_KEYS and isinstance(one, str):  # not a property of that name, which is an object
            texts[where] = one
        else:
            kept[name] = _stripped(one, where, texts)
    return kept
