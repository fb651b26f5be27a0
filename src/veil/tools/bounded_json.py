"""JSON from strangers: parsed only after its size, depth and number of values were checked, in bounded memory.

A parser makes about 70 bytes of objects out of three bytes of `[],`. So brackets, commas and colons outside of strings
are counted first, a block at a time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import WireError

__all__ = ["DOCUMENT", "RESULT", "Limits", "load_json"]


@dataclass(frozen=True)
class Limits:
    """The largest document that is parsed: bytes, nested lists and objects, and values and keys together."""

    bytes: int
    depth: int
    nodes: int


DOCUMENT = Limits(bytes=1 << 26, depth=64, nodes=1 << 21)
"""For tasks, study files, plans, and what a collector or a party sends: a million labels fit, in 150 MB of objects."""

RESULT = Limits(bytes=1 << 30, depth=64, nodes=1 << 24)
"""For saved results, which list estimates of millions of cells."""

_BLOCK = 1 << 18  # bytes that are looked at in one step, at least 2: the memory of the check


def load_json(data: str | bytes, limits: Limits = DOCUMENT, **hooks: Any) -> Any:
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


def _check(data: bytes, opened: int, limits: Limits) -> None:
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
