"""Surveys of sets through lists of candidates: sampled, padded, counted, and their sizes."""

from __future__ import annotations

from veil import BLH, GRR, OLH, AllOf, Items, OneOf, Question, Survey
from veil.itemsets import PSFO
from veil.view import CountContained, SampleContained, SampleItem, SetSize

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


def loaded() -> Json:
    """Behind a hash, with a load: the promise has a delta."""
    survey = PSFO(10, OLH, 2.0, ITEMS, delta=1e-3).survey
    cases: list[Case] = [
        ("an item", ["tea", "salt"], [1, 0]),
        ("a dummy", ["tea"], [9, 0]),
        ("an empty set", [], [0, 0]),
        ("streamed", ["rice", "soap", "milk"], []),
    ]
    return vectors("one item of a padded set, hashed with a load", survey, cases)


def loaded_together() -> Json:
    """Deltas add up over what is answered together; of what is one of several, the largest counts."""
    item, few = SampleItem(ITEMS, 6, load=3), SampleContained(ITEMS, CANDIDATES, length=12, load=11)
    hashed, halved = Question(OLH(2.0, item.domain, hash_range=7), item), Question(BLH(0.5, few.domain), few)
    plain = Question(OLH(1.0, few.domain), SampleContained(ITEMS, CANDIDATES, length=12))
    survey = Survey(OneOf((1, AllOf(hashed, halved, plain)), (2, hashed)))
    cases: list[Case] = [
        ("three answers", ["tea", "milk"], [0, 0]),
        ("one answer", ["soap"], [2, 1]),
        ("streamed", ["tea", "milk", "rice"], []),
    ]
    return vectors("loads in a tree", survey, cases)


def every_survey() -> list[Json]:
    return [sampled(), counted(), loaded(), loaded_together()]
