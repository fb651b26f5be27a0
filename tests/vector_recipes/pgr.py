"""PGR: both kinds of points, draws again, vectors that have to be scaled to their point, reports of 1 to 8 bytes."""

from __future__ import annotations

from veil import PGR, Bits, Survey

from .surveys import vectors
from .words import LAST, Json, limit, threshold


def every_survey() -> list[Json]:
    return [
        pgr(3, 0.1),
        pgr(40, 1.0),
        pgr(57, 2.0),
        pgr(5000, 3.0),
        pgr(100_000, 0.2),
        pgr(1_000_000, 1.0),
        pgr(20, 6.0),
        given(),
        bits(),
    ]


def pgr(size: int, epsilon: float) -> Json:
    oracle = PGR(epsilon, size)
    survey, inside = Survey(oracle), threshold(Survey(oracle), "orthogonal")
    first, other = oracle.geometry.on_hyperplane, oracle.geometry.points - oracle.geometry.on_hyperplane
    return vectors(
        f"PGR of {size} values, eps {epsilon:g}: prime {oracle.prime}, dimension {oracle.dimension}",
        survey,
        [
            ("the first, orthogonal, coin just below its threshold", 0, [inside - 1]),
            ("the first, not orthogonal, coin at its threshold", 0, [inside]),
            ("the last, orthogonal (spare entropy)", size - 1, [0]),
            ("the last, not orthogonal", size - 1, [LAST]),
            ("the first orthogonal point", size // 2, [0, 0]),
            ("the last orthogonal point", size // 2, [0, first - 1]),
            ("the first that is not", size // 2, [LAST, 0]),
            ("the last that is not", size // 2, [LAST, other - 1]),
            ("the largest accepted word", 1, [0, limit(first) - 1]),
            ("drawn again", 2, [LAST, limit(other) % 2**64, LAST - 1, 77]),
            ("streamed", size // 3, []),
        ],
    )


def given() -> Json:
    survey = Survey(PGR(1.5, 900, prime=2, dimension=12))
    return vectors(
        "PGR of 900 values with the prime and the dimension given",
        survey,
        [(f"streamed {value}", value, []) for value in (0, 1, 500, 899)],
    )


def bits() -> Json:
    survey = Survey(PGR(4.0, Bits(40)))
    return vectors(
        "PGR of 40 bits: a report of 8 bytes",
        survey,
        [(f"streamed {value}", value, []) for value in (0, 1, 2**39 + 12345, 2**40 - 1)],
    )
