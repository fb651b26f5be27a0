"""Bytes that every language agrees on: layouts, single reports, batches and tallies, and reports as Arrow.

    layout, reports     what a report is made of, and many of them by column: below the mechanisms
    frames, tallies     single reports and batches, and tallies, as bytes: above the survey
    arrow               reports as record batches of Arrow

Names are loaded when first used, because the first two stand below what the others need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veil.wire.frames import (
        ID_BYTES,
        VERSION,
        decode_batch,
        decode_report,
        encode_batch,
        encode_report,
        report_size,
    )
    from veil.wire.tallies import decode_tally, encode_tally

__all__ = [
    "ID_BYTES",
    "VERSION",
    "decode_batch",
    "decode_report",
    "decode_tally",
    "encode_batch",
    "encode_report",
    "encode_tally",
    "report_size",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'veil.wire' has no attribute {name!r}")
    home = "veil.wire.tallies" if name.endswith("_tally") else "veil.wire.frames"
    return getattr(importlib.import_module(home), name)
