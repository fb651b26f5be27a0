"""Spot checks: their probability of detection, and their indistinguishability from people's reports."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from tests.significance import ALPHA, frequency_fits

from veil.entropy import Batch, SeededForExperiments
from veil.errors import ParameterError, WireError
from veil.shuffle.sequential import (
    Key,
    Route,
    SpotCheckError,
    SpotChecks,
    detection,
    draw_fakes,
    mix,
    open_batch,
    permutation,
    reports_in,
    wrap_many,
)
from veil.shuffle.sequential.onion import U64, Bytes

MIXER, SERVER = Key.new(), Key.new()
ROUTE = Route(b"march", (MIXER.public,), SERVER.public)


@pytest.mark.parametrize(("checks", "replaced", "messages"), [(0, 2, 5), (1, 1, 4), (2, 3, 7), (3, 2, 6), (4, 4, 6)])
def test_detection_matches_an_enumeration_of_choices(checks: int, replaced: int, messages: int) -> None:
    choices = list(combinations(range(messages), replaced))
    hits = sum(any(place < checks for place in choice) for choice in choices)
    assert detection(checks, replaced, messages) == Fraction(hits, len(choices))


def test_detection_is_never_below_the_simple_formula() -> None:
    for checks in (1, 5, 40):
        for replaced in (0, 1, 10, 60, 99):
            simple = 1 - (1 - Fraction(replaced, 100)) ** checks
            assert detection(checks, replaced, 100) >= simple
    assert detection(10, 91, 100) == 1  # not all of so many can miss them
    assert detection(10, 0, 100) == 0


@pytest.mark.parametrize(
    "arguments", [(-1, 0, 5), (6, 0, 5), (0, 6, 5), (1.0, 0, 5), (True, 0, 5)], ids=lambda found: str(found)
)
def test_invalid_numbers_are_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ParameterError):
        detection(*arguments)


def shuffled(people: U64, checks: SpotChecks, replaced: int, seed: int) -> U64:
    """What the server reads when the shuffler puts reports of its own in the place of so many messages."""
    sent = np.concatenate([wrap_many(ROUTE, people), checks.messages(ROUTE)])
    out = mix(
        ROUTE, 0, MIXER, sent, draw_fakes(ROUTE, 0, 3, Batch()), SeededForExperiments(seed), sender="people"
    ).copy()
    chosen = permutation(SeededForExperiments(seed + 10_000), len(out))[:replaced]
    out[chosen] = wrap_many(ROUTE, np.full(replaced, 99, dtype=np.uint64), first=1)
    return reports_in(open_batch(ROUTE, 1, SERVER, out, sender="the mixer", expected=len(sent) + 3))


def test_an_honest_shuffle_passes_and_the_checks_are_gone() -> None:
    people, checks = SeededForExperiments(1).below(1 << 64, 30), SpotChecks.draw(5, SeededForExperiments(2))
    out = shuffled(people, checks, 0, seed=3)
    left = checks.remove(out)
    assert len(left) == 33
    assert not set(left.tolist()) & set(checks.reports)
    assert set(people.tolist()) <= set(left.tolist())


def test_a_shuffler_that_replaces_reports_is_found_and_told() -> None:
    people, checks = SeededForExperiments(1).below(1 << 64, 30), SpotChecks.draw(10, SeededForExperiments(2))
    with pytest.raises(SpotCheckError, match="of 10 spot checks did not come out") as caught:
        checks.remove(shuffled(people, checks, 30, seed=3))
    assert caught.value.missing == checks.missing(shuffled(people, checks, 30, seed=3)) > 0


def test_detection_rate_matches_the_probability() -> None:
    """The same attack on the reports themselves, often; a statement about as many checks more is rejected."""
    people, checks, replaced = 47, 10, 4
    found = 0
    for seed in range(2000):
        source = SeededForExperiments(seed)
        own = SpotChecks.draw(checks, source)
        sent = np.concatenate([source.below(1 << 64, people + 3), np.array(own.reports, dtype=np.uint64)])
        sent[permutation(source, len(sent))[:replaced]] = source.below(1 << 64, replaced)
        found += own.missing(sent) > 0
    assert frequency_fits(found, 2000, float(detection(checks, replaced, people + 3 + checks)))
    assert not frequency_fits(found, 2000, float(detection(2 * checks, replaced, people + 3 + 2 * checks)))


def test_one_report_per_check_is_removed() -> None:
    """Somebody's own report may be equal to a check's: theirs stays."""
    checks = SpotChecks((5, 9))
    assert checks.remove(np.array([9, 5, 1, 5, 9, 9], dtype=np.uint64)).tolist() == [1, 5, 9, 9]


def look_alike(some: Bytes, others: Bytes) -> bool:
    """Whether the bytes of two batches may come from the same distribution."""
    counts = np.array([np.bincount(batch.ravel(), minlength=256) for batch in (some, others)])
    return bool(stats.chi2_contingency(counts).pvalue > ALPHA)


def test_a_shuffler_cannot_tell_checks_from_people() -> None:
    people = wrap_many(ROUTE, np.full(300, 3 << 60, dtype=np.uint64))  # all of one opinion, even
    checks = SpotChecks.draw(300, SeededForExperiments(1)).messages(ROUTE)
    padded = checks.copy()
    padded[:, -8:] = 0  # the rival: accounts that are made in another way
    assert people.shape == checks.shape
    assert look_alike(people, checks)
    assert not look_alike(people, padded)
    opened = [open_batch(ROUTE, 0, MIXER, batch, sender="people") for batch in (people, checks)]
    assert look_alike(*opened)


def test_checks_are_uniform_and_all_different() -> None:
    drawn = SpotChecks.draw(2000, SeededForExperiments(4))
    assert len(set(drawn.reports)) == 2000
    assert stats.chisquare(list(Counter(report >> 60 for report in drawn.reports).values())).pvalue > ALPHA
    assert SpotChecks.draw(0, SeededForExperiments(4)).remove(np.array([1], dtype=np.uint64)).tolist() == [1]


def test_checks_round_trip_and_hide_their_reports() -> None:
    checks = SpotChecks.draw(3, SeededForExperiments(5))
    assert SpotChecks.from_bytes(checks.to_bytes()) == checks
    assert repr(checks) == "SpotChecks of 3 accounts"
    with pytest.raises(WireError, match="8 bytes each"):
        SpotChecks.from_bytes(bytes(9))


def test_invalid_checks_are_refused() -> None:
    for reports in [(5, 5), (-1,), (1 << 64,), (1.5,)]:
        with pytest.raises(ParameterError):
            SpotChecks(reports)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="0 spot checks or more"):
        SpotChecks.draw(-1, SeededForExperiments(1))
