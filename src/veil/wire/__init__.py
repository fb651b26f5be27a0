"""Bytes that every language agrees on. The specification is docs/wire-format.md.

frames    single reports and batches, and reports as a column of payloads
tallies   tallies, with a checksum
arrow     reports as record batches of Arrow
ring      reports as integers of a ring, for shuffling
"""

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
