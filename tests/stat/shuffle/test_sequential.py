"""Poisoning of a sequential shuffle: skewed fakes of one shuffler move the result and pass every check."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from tests.significance import mean_fits

from veil import GRR
from veil.entropy import Batch, SeededForExperiments
from veil.shuffle.sequential import Key, Route, SpotChecks, draw_fakes, fakes_of, mix, open_batch, reports_in, wrap_many
from veil.shuffle.sequential.onion import U64

DOMAIN, TARGET, PEOPLE, FAKES, CHECKS = 8, 5, 1500, 450, 20
ORACLE = GRR(2.0, DOMAIN)
TRUTH = np.repeat(np.arange(DOMAIN), [300, 300, 250, 250, 200, 50, 100, 50])
KEYS = [Key.new() for _ in range(4)]
ROUTE = Route(b"march", tuple(key.public for key in KEYS[:3]), KEYS[3].public)


def ring(answers: U64, source: SeededForExperiments) -> U64:
    """Any of the integers below 2^64 that stand for an answer (there are 2^61 for each)."""
    return (answers << np.uint64(61)) | source.below(1 << 61, len(answers))


def people(source: SeededForExperiments) -> U64:
    stay = source.coin(int(float(ORACLE.p) * 2**64), PEOPLE)
    others = (TRUTH.astype(np.uint64) + np.uint64(1) + source.below(DOMAIN - 1, PEOPLE)) % np.uint64(DOMAIN)
    return ring(np.where(stay, TRUTH.astype(np.uint64), others), source)


def collected(skewed: int | None) -> float:
    """The estimate of the target's frequency after a whole shuffle, by equation 9.5 of the thesis."""
    source = SeededForExperiments(11)
    checks = SpotChecks.draw(CHECKS, source)
    messages = np.concatenate([wrap_many(ROUTE, people(source)), checks.messages(ROUTE)])
    for place in range(3):
        count = fakes_of(FAKES, 3, place)
        fakes = draw_fakes(ROUTE, place, count, source)
        if place == skewed:
            fakes = wrap_many(ROUTE, ring(np.full(count, TARGET, dtype=np.uint64), source), first=place + 1)
        messages = mix(ROUTE, place, KEYS[place], messages, fakes, Batch(), sender="the one before")
    out = reports_in(open_batch(ROUTE, 3, KEYS[3], messages, sender="the last", expected=PEOPLE + CHECKS + FAKES))
    answers = checks.remove(out) >> np.uint64(61)
    p, q = float(ORACLE.p), float(ORACLE.q)
    among_all = ((answers == TARGET).mean() - q) / (p - q)
    return float((PEOPLE + FAKES) / PEOPLE * among_all - FAKES / PEOPLE / DOMAIN)


def standard_error() -> float:
    """Of the target's estimate: people who hold it, people who do not, and fakes."""
    p, q, share = float(ORACLE.p), float(ORACLE.q), float((TRUTH == TARGET).mean())
    variance = PEOPLE * (share * p * (1 - p) + (1 - share) * q * (1 - q)) + FAKES / DOMAIN * (1 - 1 / DOMAIN)
    return sqrt(variance) / PEOPLE / (p - q)


def test_honest_shufflers_keep_the_estimate_unbiased() -> None:
    assert mean_fits(collected(None), float((TRUTH == TARGET).mean()), standard_error())


@pytest.mark.parametrize("skewed", [0, 2])
def test_skewed_shuffler_shifts_the_estimate_by_its_fakes(skewed: int) -> None:
    truth, found = float((TRUTH == TARGET).mean()), collected(skewed)
    p, q = float(ORACLE.p), float(ORACLE.q)
    moved = fakes_of(FAKES, 3, skewed) * (1 - 1 / DOMAIN) / PEOPLE / (p - q)
    assert not mean_fits(found, truth, standard_error())
    assert mean_fits(found, truth + moved, standard_error())
