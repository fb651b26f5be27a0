"""Surveys of HadamardResponse and SHE: signs kept and flipped; noise that is zero, runs on, and reaches the clamp."""

from __future__ import annotations

from veil import SHE, Bits, HadamardResponse, Survey

from .surveys import vectors
from .words import LAST, WORD, Json, threshold


def hadamard(size: int, epsilon: float) -> Json:
    survey = Survey(HadamardResponse(epsilon, size))
    keep = threshold(survey, "keep")
    return vectors(
        f"HadamardResponse of {size} values, eps {epsilon:g}",
        survey,
        [
            ("row 0, kept", size - 1, [0, keep - 1]),
            ("row 0, flipped: coin at its threshold", size - 1, [0, keep]),
            ("the last row, kept", size - 1, [LAST, 0]),
            ("the last row, flipped", size - 2, [LAST, LAST]),
            ("the first value has the sign +1 in every row", 0, [LAST, 0]),
            ("streamed (spare entropy)", size // 2, []),
        ],
    )


def hadamard_bits() -> Json:
    survey = Survey(HadamardResponse(0.1, Bits(63)))
    return vectors(
        "HadamardResponse of 63 bits: eight bytes",
        survey,
        [("all ones", 2**53 - 1, [LAST, 0]), ("streamed", 0xC0FFEE1234, [])],
    )


def she(size: int, epsilon: float, grid: int = 1, reach: int | None = None) -> Json:
    survey = Survey(SHE(epsilon, size, grid=grid, reach=reach))
    zero, further, half = threshold(survey, "zero"), threshold(survey, "further"), WORD // 2
    # coins for all coordinates; then signs, then runs, of those that are not zero
    short = [zero] * size + [half - 1, half] * (size // 2) + [half] * (size % 2) + [further] * size
    longest = [LAST] * size + [0, LAST] * (size // 2) + [0] * (size % 2)
    runs = [0] * (size * min(grid + survey.questions[0].mechanism.to_json()["reach"], 60))
    return vectors(
        f"SHE of {size} values, eps {epsilon:g}, {grid} steps a unit",
        survey,
        [
            ("all zero: coins just below the threshold", 0, [zero - 1] * size),
            ("none zero, one step each, down and up by turns", size - 1, short),
            ("runs of heads: to the clamp, or sixty steps", size // 2, longest + runs),
            ("the first, streamed", 0, []),
            ("the last, streamed (spare entropy)", size - 1, []),
        ],
    )


def hadamard_surveys() -> list[Json]:
    return [hadamard(2, 1.0), hadamard(100, 0.1), hadamard(128, 4.0), hadamard(1000, 1.0), hadamard_bits()]


def she_surveys() -> list[Json]:
    return [she(2, 4.0), she(5, 1.0), she(7, 1.0, grid=3, reach=4), she(4, 0.1), she(3, 2.0, grid=64)]
