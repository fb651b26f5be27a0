"""Surveys of HaarResponse: both sides of a pair, a value without a partner, two values alone, levels of a tree."""

from __future__ import annotations

from veil import HaarResponse, Integers, OneOf, Question, Survey
from veil.view import Ancestor

from .surveys import vectors
from .words import LAST, Json, threshold


def haar(size: int, epsilon: float) -> Json:
    survey = Survey(HaarResponse(epsilon, size))
    keep = threshold(survey, "keep")
    return vectors(
        f"HaarResponse of {size} values, eps {epsilon:g}",
        survey,
        [
            ("row 0, left, kept", 0, [0, keep - 1]),
            ("row 0, right, kept", 1, [0, keep - 1]),
            ("row 0, right, flipped: coin at its threshold", 1, [0, keep]),
            ("the last row, the last value, kept", size - 1, [LAST, 0]),
            ("the last row, the last but one, flipped", size - 2, [LAST, LAST]),
            ("streamed (spare entropy)", size // 2, []),
        ],
    )


def levels() -> Json:
    """A Haar hierarchy over eleven values: four levels, the columns of the coarse ones narrower."""
    ages = Integers(18, 28)
    views = [Ancestor(ages, 2, level) for level in range(1, 5)]
    survey = Survey(OneOf(*((1, Question(HaarResponse(1.0, view.domain), view)) for view in views)))
    return vectors(
        "HaarResponse of four levels over eleven values",
        survey,
        [
            ("level 1", 27, [0, 0, 0]),
            ("level 2", 27, [1, LAST, 0]),
            ("level 3", 22, [2, LAST, LAST]),
            ("level 4", 19, [3, LAST, 0]),
            ("streamed", 28, []),
        ],
    )


def every_survey() -> list[Json]:
    return [haar(2, 1.0), haar(7, 0.1), haar(256, 4.0), haar(1000, 1.0), levels()]
