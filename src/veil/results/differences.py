"""The difference between any two results of the same question, by their kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from veil.errors import InputError
from veil.results.answers import Answers
from veil.results.base import Result
from veil.results.change import Change, FrequencyChange, MeanChange, check_same
from veil.results.distribution import Distribution
from veil.results.distribution_change import DistributionChange
from veil.results.estimate import Estimate
from veil.results.mean import Mean, MeanAndVariance

__all__ = ["difference"]


def difference(after: Result, before: Result) -> Result:
    """What `after.difference(before)` returns: a change, or one for each question that both sides answered."""
    if isinstance(after, Answers) and isinstance(before, Answers):
        return _by_question(after, before)
    if isinstance(after, MeanAndVariance) and isinstance(before, MeanAndVariance):
        return _together({0: difference(after.mean, before.mean), 1: difference(after.variance, before.variance)})
    if isinstance(after, Estimate) and isinstance(before, Estimate):
        return FrequencyChange.of(after, before)
    if isinstance(after, Mean) and isinstance(before, Mean):
        check_same(after.domain == before.domain, "two means of the same range")
        return MeanChange(after, before)
    if isinstance(after, Distribution) and isinstance(before, Distribution):
        check_same(after.domain == before.domain, "two distributions over the same range, in the same cells")
        return DistributionChange(after, before)
    raise InputError(
        "differences are taken between two results of one kind: frequencies, means, distributions, or answers to the"
        f" same questions; not between {after.kind} and {before.kind}"
    )


def _by_question(after: Answers, before: Answers) -> Answers:
    mine, others = (dict(zip(side.questions, side.results, strict=True)) for side in (after, before))
    shared = [number for number in mine if number in others]
    check_same(bool(shared), "answers to the same questions")
    return _together({number: difference(mine[number], others[number]) for number in shared})


def _together(changes: Mapping[int, Result]) -> Answers:
    """One family: what one question calls changed allows for the tests of all."""
    tested = sum(change.tested for change in changes.values() if isinstance(change, Change))
    parts = [replace(change, tested=tested) if isinstance(change, Change) else change for change in changes.values()]
    return Answers(tuple(parts), tuple(changes), n=max(part.n for part in parts))
