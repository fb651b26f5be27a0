"""Entropy for vectors: words that look random and depend on a name alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from veil import (
    Survey,
)

Json = dict[str, Any]
WORD = 2**64
LAST = WORD - 1


def stream(name: str, words: int) -> list[int]:
    """Words that look random and depend on the name alone."""
    data = b"".join(hashlib.sha256(f"veil vectors:{name}:{i}".encode()).digest() for i in range(-(-words // 4)))
    return [int.from_bytes(data[8 * i : 8 * i + 8], "little") for i in range(words)]


def pack(words: Iterable[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def limit(bound: int) -> int:
    """The smallest word that `below` rejects."""
    return WORD // bound * bound


def threshold(survey: Survey, name: str) -> int:
    return survey.questions[0].mechanism.thresholds[name]
