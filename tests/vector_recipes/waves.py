"""Surveys of SquareWave: squares, a trapezoid and a triangle; both ends, the largest offsets, times, all widths."""

from __future__ import annotations

import datetime as dt
from typing import Any

from veil import Integers, Interval, Question, SquareWave, Survey
from veil.domain import Numeric
from veil.view import SquaredDistance

from .surveys import vectors
from .words import LAST, Json, limit, threshold


def wave(name: str, domain: Numeric, epsilon: float, low: Any, middle: Any, high: Any, **shape: Any) -> Json:
    mechanism = SquareWave(epsilon, domain, **shape)
    survey = Survey(mechanism)
    near = threshold(survey, "near")
    plateau, ramp, outputs = mechanism.plateau, mechanism.ramp, mechanism.outputs
    second = [ramp - 1] if ramp > 1 else []
    return vectors(
        f"SquareWave of {name}, eps {epsilon:g}, {outputs} cells in a report, ramp {ramp}",
        survey,
        [
            (
                "the low end, no offset: the first cell of the report's grid",
                low,
                [near - 1, 0, *([0] if second else [])],
            ),
            ("the low end, the largest offsets", low, [near - 1, plateau - 1, *second]),
            ("the high end, the largest offsets: the last cell", high, [0, plateau - 1, *second]),
            ("the low end, anywhere: coin at its threshold, the last cell", low, [near, outputs - 1]),
            ("the high end, anywhere, the first cell", high, [LAST, 0]),
            ("drawn again, within the wave", middle, [near - 1, *_again(plateau), *(_again(ramp) if second else [])]),
            ("drawn again, anywhere", middle, [near, *_again(outputs)]),
            (
                "the largest words that are taken",
                middle,
                [0, limit(plateau) - 1, *([limit(ramp) - 1] if second else [])],
            ),
            ("streamed", middle, []),
            ("streamed again (spare entropy)", middle, []),
        ],
    )


def _again(bound: int) -> list[int]:
    """Words that `below` rejects, where there are any, and one that it takes."""
    return [limit(bound), LAST, 5] if bound & (bound - 1) else [LAST]


def squared() -> Json:
    """Middles of cells that lie halfway between two doubles: the order of operations shows."""
    view = SquaredDistance(Interval(1e15, 1e15 + 100, cells=800), centre=1e15 + 1, cells=1000)
    survey = Survey(Question(SquareWave(1.0, view.domain), view))
    values = [1e15, 1e15 + 1, 1e15 + 29, 1e15 + 56, 1e15 + 100]
    return vectors(
        "SquareWave of squared distances",
        survey,
        [(f"{value:.0f}, no offset", value, [0, 0]) for value in values],
    )


def time(text: str) -> Json:
    """A time as it stands in a vector."""
    return {"time": text}


def every_survey() -> list[Json]:
    century = Interval(dt.date(1926, 1, 1), dt.date(2026, 1, 1))
    # microseconds beyond 2^53 and cells finer than a double: half of all milliseconds divided by 1000 would differ
    far = Interval(dt.date(9000, 1, 1), dt.date(9000, 1, 2), cells=1 << 32)
    return [
        wave("the integers 0 to 100", Integers(0, 100), 1.0, 0, 37, 100),
        wave("the integers 18 to 99, a triangle", Integers(18, 99), 2.0, 18, 44, 99, ratio=0.0),
        wave("six integers, no wider than a cell", Integers(-2, 3), 0.5, -2, 0, 3, b=0.0),
        wave("six integers, as wide as it gets", Integers(-2, 3), 0.1, -2, 0, 3, b=1.0),
        wave("the days of a leap year", Integers(1, 366), 1.0, 1, 60, 366),
        wave("an interval", Interval(-1.5, 2.25), 1.0, -1.5, 0.1, 2.25, buckets=256),
        wave("an interval, a trapezoid", Interval(0, 100_000), 2.5, 0.0, 31_415.92, 100_000.0, ratio=0.4),
        wave("2^32 cells", Interval(0, 1, 1 << 32), 4.0, 0.0, 0.625, 1.0),
        wave(
            "times",
            century,
            1.0,
            time("1926-01-01T00:00:00Z"),
            time("1969-07-20T20:17:40.123Z"),
            time("2026-01-01T00:00:00Z"),
        ),
        wave(
            "times far away",
            far,
            1.0,
            time("9000-01-01T00:00:00Z"),
            time("9000-01-01T00:00:05.982Z"),
            time("9000-01-02T00:00:00Z"),
        ),
        squared(),
    ]
