"""Surveys of sets through lists of candidates: sampled, padded, counted, and their sizes."""

from __future__ import annotations

from veil import GRR, OLH, Items, OneOf, Question, Survey
from veil.view import CountContained, SampleContained, SetSize

from .surveys import Case, vectors
from .words import LAST, Json

ITEMS = Items(["tea", "milk", "salt", "rice", "soap"])
CANDIDATES = ((1,), (0, 1), (4,), (0, 1, 3))


def sampled() -> Json:
    view = SampleContained(ITEMS, CANDIDATES, length=2)
    survey = Survey(Question(GRR(view.inner_epsilon(1.0, disjoint=True), view.domain), view))
    cases: list[Case] = [
        ("two candidates, the second drawn and kept", ["tea", "milk"], [1, 0]),
        ("one candidate, padded: a dummy is drawn", ["soap", "salt"], [1, 0]),
        ("none: dummies only", ["rice"], [1, 0]),
        ("an empty set", [], [0, 0]),
        ("four candidates, more than the length", ["soap", "rice", "milk", "tea"], [3, 0]),
        ("three candidates, the draw rejected once", ["rice", "milk", "tea"], [LAST, 2, 0]),
        ("streamed (spare entropy)", ["milk", "soap"], []),
    ]
    return vectors("one contained candidate of a padded list", survey, cases)


def counted() -> Json:
    """How many candidates, how many items, and a sampled candidate through OLH, in one tree."""
    count, size = CountContained(ITEMS, CANDIDATES, most=3), SetSize(ITEMS, most=2)
    sample = SampleContained(ITEMS, CANDIDATES, length=3)
    survey = Survey(
        OneOf(
            (1, Question(GRR(1.0, count.domain), count)),
            (1, Question(GRR(1.0, size.domain), size)),
            (2, Question(OLH(1.0, sample.domain), sample)),
        )
    )
    cases: list[Case] = [
        ("no candidate", ["salt"], [0, 0]),
        ("two candidates", ["milk", "tea"], [0, 0]),
        ("four candidates, shown as three", ["tea", "milk", "rice", "soap"], [0, 0]),
        ("one item", ["salt"], [1, 0]),
        ("four items, shown as two", ["tea", "milk", "rice", "soap"], [1, 0]),
        ("sampled and hashed", ["milk", "tea"], [2, 1]),
        ("streamed", ["tea", "milk", "soap"], []),
    ]
    return vectors("counts of candidates and sizes of sets", survey, cases)


def every_survey() -> list[Json]:
    return [sampled(), counted()]
