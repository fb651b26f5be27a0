"""Surveys that ask for a mean: starts of windows rounded up and down, both ends, a hybrid, and squared distances."""

from __future__ import annotations

from veil import Integers, Interval, OneOf, Piecewise, Question, StochasticRounding, Survey
from veil.domain import Numeric
from veil.view import SquaredDistance

from .surveys import vectors
from .words import LAST, Json, limit, threshold


def rounding(name: str, domain: Numeric, epsilon: float, low: float, middle: float, high: float) -> Json:
    survey = Survey(StochasticRounding(epsilon, domain))
    keep = threshold(survey, "keep")
    last = domain.size - 1
    held = int(domain.encode([middle])[0])
    return vectors(
        f"StochasticRounding of {name}, eps {epsilon:g}",
        survey,
        [
            ("the low end is never rounded up, kept", low, [0, keep - 1]),
            ("the low end, swapped: coin at its threshold", low, [0, keep]),
            ("the high end is always rounded up, kept", high, [last - 1, keep - 1]),
            ("the high end, swapped", high, [0, LAST]),
            ("between them, just rounded up", middle, [held - 1, 0]),
            ("between them, just not", middle, [held, 0]),
            ("drawn again", middle, [*_again(last), 0]),
            ("streamed (spare entropy)", middle, []),
        ],
    )


def piecewise(name: str, domain: Numeric, epsilon: float, low: float, middle: float, high: float, **steps: int) -> Json:
    mechanism = Piecewise(epsilon, domain, **steps)
    survey = Survey(mechanism)
    inside = threshold(survey, "inside")
    last, window, others = domain.size - 1, mechanism.window, mechanism.steps - mechanism.window
    start, rest = divmod(int(domain.encode([middle])[0]) * others, last)
    up = [rest - 1] if rest else [0]
    return vectors(
        f"Piecewise of {name}, eps {epsilon:g}, {mechanism.steps} steps",
        survey,
        [
            ("the low end, first step of the window", low, [0, inside - 1, 0]),
            ("the low end, last step of the window", low, [LAST - last, inside - 1, window - 1]),
            ("the low end, first step around it: coin at its threshold", low, [0, inside, 0]),
            ("the high end, last step of the window", high, [0, 0, window - 1]),
            ("the high end, last step before it", high, [0, LAST, others - 1]),
            ("between them, the start rounded up, inside", middle, [*up, 0, 0]),
            ("between them, the start not rounded up, inside", middle, [rest, 0, 0]),
            ("the last step below the window", middle, [rest, LAST, max(start, 1) - 1]),
            ("the first step above the window", middle, [rest, LAST, start]),
            ("drawn again, each draw", middle, [*_again(last), 0, *_again(window)]),
            ("streamed (spare entropy)", middle, []),
        ],
    )


def _again(bound: int) -> list[int]:
    """A word that `below` rejects, where there is one, and one that it takes."""
    return [limit(bound), 5] if bound & (bound - 1) else [5]


def hybrid() -> Json:
    """As HybridMean asks: Piecewise or StochasticRounding."""
    ages = Integers(18, 99)
    shares = (25_786, 39_750)
    survey = Survey(OneOf(*zip(shares, (Piecewise(1.0, ages), StochasticRounding(1.0, ages)), strict=True)))
    return vectors(
        "a hybrid of Piecewise and StochasticRounding, eps 1",
        survey,
        [
            ("the last share of Piecewise", 40, [shares[0] - 1, 0, 0, 77]),
            ("the first share of StochasticRounding", 40, [shares[0], 0, 0]),
            ("streamed", 99, []),
            ("streamed again (spare entropy)", 18, []),
        ],
    )


def squared(name: str, domain: Numeric, centre: float, values: list[float], cells: int = 1 << 20) -> Json:
    view = SquaredDistance(domain, centre, cells)
    survey = Survey(Question(Piecewise(4.0, view.domain, steps=1 << 24), view))
    cases = [
        (f"{value!r} from {centre!r}, the first step of its window", value, [LAST - cells, 0, 0]) for value in values
    ]
    return vectors(f"squared distances of {name}", survey, cases)


def rounding_surveys() -> list[Json]:
    return [
        rounding("the integers 0 to 100", Integers(0, 100), 1.0, 0, 37, 100),
        rounding("three integers", Integers(-1, 1), 0.1, -1, 0, 1),
        rounding("an interval", Interval(-1.5, 2.25), 4.0, -1.5, 0.1, 2.25),
    ]


def piecewise_surveys() -> list[Json]:
    return [
        piecewise("the integers 0 to 100", Integers(0, 100), 1.0, 0, 37, 100),
        piecewise("six integers", Integers(5, 10), 2.0, 5, 7, 10, steps=12),
        piecewise("an interval", Interval(-1.5, 2.25), 4.0, -1.5, 0.1, 2.25),
        piecewise("2^32 cells", Interval(0, 1, 1 << 32), 0.1, 0, 0.625, 1, steps=1 << 24),
        piecewise("the integers 0 to 100, a window of one", Integers(0, 100), 20.0, 0, 37, 100, steps=256),
        hybrid(),
        squared("the integers 0 to 9", Integers(0, 9), 4.3, [0, 4, 5, 9], cells=1000),
        squared("an interval", Interval(-1.1, 2.3, 1000), 0.1, [-1.1, 0.1, 0.7, 2.3]),
        squared(
            "an interval far from 0", Interval(1e9, 1e9 + 7), 1e9 + 1 / 3, [1e9, 1e9 + 0.4, 1e9 + 7], cells=1 << 32
        ),
    ]
