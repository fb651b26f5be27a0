"""Rappor over time, by enumeration of whole lives through the shipped client: the cohort, the memos, the promise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from veil import Client, Ledger, Rappor, Survey
from veil.checks import CheckError, worst_ratio
from veil.entropy import Enumerated, Source, outcomes
from veil.errors import MismatchError
from veil.wire.frames import decode_report

TINY = Rappor(1.0, 3, bits=2, hashes=1, cohorts=2)
Reports = tuple[tuple[int, int], ...]
"""Cohort and bits of every report of a life, in order."""


@contextmanager
def drawing_from(source: Source) -> Iterator[None]:
    """A device that draws from an enumerated source; the ids of its reports carry nothing, and are all zeros."""
    with (
        mock.patch("veil.device.client.System", return_value=source),
        mock.patch.object(Enumerated, "token", lambda self, size: bytes(size)),
    ):
        yield


def life(oracle: Rappor, values: Sequence[int], source: Source) -> Reports:
    """One person, one report per occasion, by the client that is shipped."""
    survey = Survey(oracle)
    client = Client(survey, Ledger(lifetime=100.0))
    with drawing_from(source):
        sent = [client.answer(value, occasion=f"{day}") for day, value in enumerate(values)]
    found = [decode_report(survey, report)[1].columns for report in sent]
    return tuple((int(columns["cohort"][0]), int(columns["bits"][0, 0])) for columns in found)


def without_memory(oracle: Rappor, values: Sequence[int], source: Source) -> Reports:
    """The rival: every new value draws a cohort of its own."""
    memos = {value: oracle.draw_permanent(np.array([value], np.uint64), source) for value in dict.fromkeys(values)}
    return tuple((int(memos[value]["cohort"][0]), int(memos[value]["bits"][0, 0])) for value in values)


@pytest.mark.parametrize("cohorts", [1, 2, 8])
def test_a_person_stays_in_one_cohort_whatever_they_hold(cohorts: int) -> None:
    oracle = Rappor(1.0, 3, bits=2, hashes=1, cohorts=cohorts)
    found = outcomes(lambda source: tuple(cohort for cohort, _ in life(oracle, [0, 1, 2], source)))
    assert found == {(cohort,) * 3: Fraction(1, cohorts) for cohort in range(cohorts)}
    changes = outcomes(lambda source: len({cohort for cohort, _ in without_memory(oracle, [0, 1], source)}) > 1)
    assert changes.get(True, 0) == 1 - Fraction(1, cohorts)  # 7 of 8 changes were seen at once


def test_a_value_that_comes_back_has_its_permanent_bits_and_a_new_value_fresh_ones() -> None:
    found = outcomes(lambda source: life(TINY, [0, 1, 0, 1], source))
    assert all(first == third and second == fourth for first, second, third, fourth in found)
    law = {(report[0], report[1]): chances for report, chances in TINY.channel().items()}
    # within the cohort the two memos are independent, each with the law of one report
    for value, place in ((0, 0), (1, 1)):
        alone: dict[tuple[int, int], Fraction] = {}
        for reports, chance in found.items():
            alone[reports[place]] = alone.get(reports[place], Fraction(0)) + chance
        assert alone == {report: chances[value] for report, chances in law.items()}
    for (first, second, *_), chance in found.items():
        assert chance == law[first][0] * law[second][1] * TINY.cohorts
    assert sum(found.values()) == 1


def test_the_ratio_over_k_values_is_the_k_th_power() -> None:
    """Two lives that change at the same times: one ratio for each value that differs, whatever the others are."""
    lives = list(itertools.permutations(range(3), 2))
    law = {held: outcomes(lambda source, held=held: life(TINY, held, source)) for held in lives}  # type: ignore[misc]
    bound = TINY.guarantee.ratio
    assert bound is not None
    reached = {1: Fraction(1), 2: Fraction(1)}
    for one, other in itertools.permutations(lives, 2):
        differing = sum(a != b for a, b in zip(one, other, strict=True))
        channel = {reports: [chance, law[other][reports]] for reports, chance in law[one].items()}
        reached[differing] = max(reached[differing], worst_ratio(channel))
    assert reached == {1: bound, 2: bound**2}
    ledger = Ledger(lifetime=2.0)
    client = Client(Survey(TINY), ledger)
    for day, value in enumerate((0, 1, 0, 1, 1)):
        client.answer(value, occasion=f"{day}")
    assert float(ledger.spent) == pytest.approx(2.0)  # and that is what was paid


def test_a_changed_value_cannot_be_seen_in_the_cohort() -> None:
    """With an instantaneous step, what is sent after a change could be sent without one. The rival's often cannot."""
    oracle = Rappor(1.0, 3, bits=2, hashes=1, cohorts=2, instant=(0.25, 0.75))

    def days(values: Sequence[int], source: Source, *, remember: bool) -> Reports:
        memos = {}
        person = oracle.draw_person(1, source) if remember else None
        for value in dict.fromkeys(values):
            memos[value] = oracle.draw_permanent(np.array([value], np.uint64), source, person)
        drawn = [oracle.draw_instant(memos[value], source) for value in values]
        return tuple((int(columns["cohort"][0]), int(columns["bits"][0, 0])) for columns in drawn)

    def same_and_changed(*, remember: bool) -> dict[Reports, list[Fraction]]:
        same = outcomes(lambda source: days((0, 0), source, remember=remember))
        changed = outcomes(lambda source: days((0, 1), source, remember=remember))
        return {reports: [same.get(reports, Fraction(0)), chance] for reports, chance in changed.items()}

    step = Fraction(oracle.thresholds["instant_one"], oracle.thresholds["instant_zero"])
    assert 1 < worst_ratio(same_and_changed(remember=True)) < step**oracle.bits
    rival = same_and_changed(remember=False)
    with pytest.raises(CheckError, match="impossible under some value"):
        worst_ratio(rival)
    assert sum(changed for same, changed in rival.values() if same == 0) == Fraction(1, 2)


def test_memos_of_the_same_people_keep_their_cohorts() -> None:
    oracle = Rappor(2.0, 100, cohorts=200)
    people = np.arange(100) % 100
    first = oracle.permanent(people)
    second = oracle.permanent(people[::-1], earlier=first)
    assert (first.columns["cohort"] == second.columns["cohort"]).all()
    assert not (first.columns["bits"] == second.columns["bits"]).all()
    assert (oracle.permanent(people).columns["cohort"] != first.columns["cohort"]).any()
    with pytest.raises(MismatchError, match="number of people"):
        oracle.permanent(people[:7], earlier=first)
    with pytest.raises(MismatchError, match="another task"):
        Rappor(2.0, 100, cohorts=100).permanent(people, earlier=first)
