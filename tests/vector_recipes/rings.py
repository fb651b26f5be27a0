"""Reports as integers of a ring and back, and a tally of reports with fakes among them."""

from __future__ import annotations

import numpy as np

from veil import GRR, OLH, Survey
from veil.entropy import Words
from veil.mechanisms import Mechanism
from veil.wire.ring import ring_of
from veil.wire.tallies import encode_tally

from .words import LAST, Json, pack, stream


def rings() -> Json:
    return {
        "surveys": [
            one("GRR of 3 values in 64 bits", GRR(1.0, 3), 64),
            one("GRR of 1000 values in 32 bits", GRR(1.0, 1000), 32),
            one("OLH with seeds of 4 bytes", OLH(1.0, 100, seed_bytes=4), 64),
            one("OLH with 1000 buckets", OLH(4.0, 100, hash_range=1000, seed_bytes=4), 64),
        ]
    }


def one(name: str, mechanism: Mechanism, bits: int) -> Json:
    survey = Survey(mechanism)
    ring, cells = ring_of(survey, bits), mechanism.layout.fields[-1].bound
    elements = [0, 1, 2 ** (bits - 1), 2**bits - 1, *(word >> (64 - bits) for word in stream(name, 4))]
    cases = []
    for cell, first in ((0, [0]), (cells // 2, [LAST]), (cells - 1, [LAST, 5])):
        report = {field.name: np.array([cell % field.bound], dtype=field.dtype) for field in mechanism.layout.fields}
        words = [*first, *stream(f"{name} {cell}", 4)]
        source = Words(pack(words))
        element = int(ring.encode(report, source)[0])
        cases.append(
            {
                "payload": mechanism.layout.pack(report).hex(),
                "entropy": pack(words[: source.used]).hex(),
                "element": str(element),
            }
        )
    reports = ring.reports(np.array(elements, dtype=np.uint64))
    tally = survey.tally(reports).with_fakes(3)
    width = mechanism.layout.size
    payloads = reports.to_bytes()
    return {
        "name": name,
        "task": survey.to_json(),
        "task_id": survey.task,
        "bits": bits,
        "cases": cases,
        "elements": [
            {"element": str(element), "payload": payloads[i * width : (i + 1) * width].hex()}
            for i, element in enumerate(elements)
        ],
        "fakes": 3,
        "tally": encode_tally(tally).hex(),
    }
