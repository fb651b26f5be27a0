"""SS, the sequential shuffle: reports in layers of encryption pass from shuffler to shuffler, and then to the server.

As long as one shuffler keeps its order secret, nobody knows the sender of a report. Every shuffler can poison the
result with fakes that are not uniform, and nothing here detects it. Thesis 9.5.1; docs/sequential-shuffle.md.

    Sequential, route_of, keys_in_plan      the protocol, and the route and keys of a plan
    Key, Route, wrap, wrap_many, peel, peel_many, reports_in, message_bytes    onions, with
                                            `LAYER_BYTES` and `REPORT_BYTES`
    mix, open_batch, permutation, fakes_of, draw_fakes, BatchError    the step of one shuffler
    SpotChecks, SpotCheckError, detection, submissions_of, without_checks    spot checks by the server
"""

from veil.shuffle.sequential.mixing import BatchError, draw_fakes, fakes_of, mix, open_batch, permutation
from veil.shuffle.sequential.onion import (
    LAYER_BYTES,
    REPORT_BYTES,
    Key,
    Route,
    message_bytes,
    peel,
    peel_many,
    reports_in,
    wrap,
    wrap_many,
)
from veil.shuffle.sequential.protocol import Sequential, keys_in_plan, route_of
from veil.shuffle.sequential.spot_checks import SpotCheckError, SpotChecks, detection, submissions_of, without_checks

__all__ = [
    "LAYER_BYTES",
    "REPORT_BYTES",
    "BatchError",
    "Key",
    "Route",
    "Sequential",
    "SpotCheckError",
    "SpotChecks",
    "detection",
    "draw_fakes",
    "fakes_of",
    "keys_in_plan",
    "message_bytes",
    "mix",
    "open_batch",
    "peel",
    "peel_many",
    "permutation",
    "reports_in",
    "route_of",
    "submissions_of",
    "without_checks",
    "wrap",
    "wrap_many",
]
