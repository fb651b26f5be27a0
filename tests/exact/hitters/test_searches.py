"""Searches for heavy hitters by enumeration: the ratio of each protocol, and counts by the transform."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from veil import AllOf, Bits, LinearHashing, OneOf, Question, Survey, Text
from veil.checks import enumerable, worst_ratio
from veil.domain import Domain
from veil.entropy import SeededForExperiments, outcomes
from veil.hitters import PEM, MultipleChannel, PrivTrie, SegmentPairs, pem1, tree_hist
from veil.kernels.hashing import coefficients, linear_buckets
from veil.privacy import exp_below
from veil.study import StudyRun
from veil.survey import Ask

EPSILON = 0.8  # hash ranges stay at 3, and at 2 where eps is split: all functions can be enumerated
TWO = Bits(2)


def tabled(ask: Ask) -> Ask:
    """The same tree with every random seed enumerable: one of all functions in place of a hash."""
    if isinstance(ask, OneOf):
        return OneOf(*((share, tabled(branch)) for share, branch in ask.branches))
    if isinstance(ask, AllOf):
        return AllOf(*(tabled(part) for part in ask.asks))
    assert isinstance(ask, Question)
    return Question(enumerable(ask.mechanism), ask.view)


@functools.cache
def channel(name: str) -> dict[bytes, list[Fraction]]:
    """Each report's exact probability under each of the four values."""
    survey = Survey(tabled(SURVEYS[name].ask))
    matrix: dict[bytes, list[Fraction]] = {}
    for value in range(4):
        codes = survey.domain.encode([value])
        for report, chance in outcomes(lambda s, codes=codes: survey.reports(codes, s).to_bytes()).items():
            matrix.setdefault(report, [Fraction(0)] * 4)[value] = chance
    return matrix


def first_survey(study: PrivTrie) -> Survey:
    asked = StudyRun(study).round
    assert asked is not None
    return asked.survey


SURVEYS = {
    "PEM": PEM(EPSILON, TWO, 1, groups=2).survey,
    "PEM, last group doubled": PEM(EPSILON, TWO, 1, groups=2, last=2).survey,
    "PEM by PGR": PEM(EPSILON, TWO, 1, groups=2, oracle="PGR").survey,
    "PEM1": pem1(EPSILON, TWO, 1).survey,
    "PEM1, original": pem1(EPSILON, TWO, 1, improved=False).survey,
    "TreeHist": tree_hist(EPSILON, TWO, 1, step=1).survey,
    "TreeHist, original": tree_hist(EPSILON, TWO, 1, step=1, improved=False).survey,
    "SPM": SegmentPairs(EPSILON, TWO, 1, segments=2).survey,
    "SPM, original": SegmentPairs(EPSILON, TWO, 1, segments=2, improved=False).survey,
    "HASH": MultipleChannel(EPSILON, TWO, 1, step=1).survey,
    "HASH, original": MultipleChannel(EPSILON, TWO, 1, step=1, improved=False).survey,
    "PrivTrie": first_survey(PrivTrie(EPSILON, TWO, 1, people=10_000, letter=1)),
}


@pytest.mark.parametrize("name", SURVEYS)
def test_every_protocol_keeps_its_guarantee(name: str) -> None:
    survey = SURVEYS[name]
    worst = worst_ratio(channel(name))
    assert worst <= exp_below(EPSILON)
    assert worst == survey.guarantee.ratio
    assert worst > exp_below(0.7)  # the rival promise is not kept: nothing is wasted


@pytest.mark.parametrize("name", ["PEM", "PEM, last group doubled", "PEM1", "TreeHist", "SPM", "HASH"])
def test_group_is_independent_of_the_value(name: str) -> None:
    ask = SURVEYS[name].ask
    assert isinstance(ask, OneOf)
    shares = [share for share, _ in ask.branches]
    found = channel(name)
    for choice, share in enumerate(shares):
        mine = [chances for report, chances in found.items() if report[0] == choice]
        assert [sum(column) for column in zip(*mine, strict=True)] == [Fraction(share, sum(shares))] * 4


@pytest.mark.parametrize(("prime", "suffix"), [(2, 3), (3, 3), (5, 4), (7, 2)])
def test_a_linear_hash_is_pairwise_independent(prime: int, suffix: int) -> None:
    """Over all coefficients, every two suffixes fall together in exactly one case of q."""
    oracle = LinearHashing(1.0, Bits(suffix), hash_range=prime, suffix=suffix)
    digits = [[v // prime**k % prime for k in range(oracle.digits)] for v in range(oracle.cells)]
    table = np.array(digits) @ np.array(digits[: 1 << suffix]).T % prime
    for a in range(1 << suffix):
        for b in range(a):
            assert int((table[:, a] == table[:, b]).sum()) == oracle.cells // prime
    # and the code computes that table: the bucket less the bucket of the suffix 0, which is the prefix's alone
    seeds = SeededForExperiments(1).below(2**64, 200)
    rows = coefficients(seeds, oracle.cells).astype(np.int64)
    zero = np.zeros(len(seeds), dtype=np.uint64)
    own = linear_buckets(seeds, zero, zero, prime, oracle.cells).astype(np.int64)
    for value in range(1 << suffix):
        suffixes = np.full(len(seeds), value, dtype=np.uint64)
        moved = linear_buckets(seeds, zero, suffixes, prime, oracle.cells).astype(np.int64)
        assert np.array_equal((moved - own) % prime, table[rows, value])


DECODED: list[tuple[float, Domain, int, list[Any]]] = [
    (0.3, Bits(9), 6, list(range(300))),
    (1.0, Bits(9), 5, list(range(300))),
    (2.0, Bits(10), 10, list(range(300))),
    (3.0, Bits(10), 7, list(range(300))),
    (1.0, Bits(67), 6, [2**66 + i for i in range(100)]),
    (1.0, Bits(80), 6, [2**79 + i for i in range(100)]),
    (1.0, Text(3), 8, [f"{a}{b}" for a in "xyz" for b in "abcdefgh"]),
]


@pytest.mark.parametrize(("epsilon", "domain", "suffix", "values"), DECODED, ids=lambda part: str(part)[:12])
def test_transform_matches_pairwise_counts(epsilon: float, domain: Any, suffix: int, values: list[Any]) -> None:
    oracle = LinearHashing(epsilon, domain, suffix=suffix)
    columns = oracle.randomize(values, SeededForExperiments(3)).columns
    codes = oracle.domain.encode(values)
    pairs = oracle.incidence(columns, codes).sum(axis=0)
    assert np.array_equal(pairs, oracle.support(columns, codes, None))
    weights = np.arange(len(values), dtype=np.int64)
    assert np.array_equal(weights @ oracle.incidence(columns, codes), oracle.support(columns, codes, weights))
    prefixes, suffixes = oracle.split(codes)
    distinct, where = np.unique(prefixes, axis=0, return_inverse=True)
    pieces = [{name: column[::2] for name, column in columns.items()}, {n: c[1::2] for n, c in columns.items()}]
    decoded = np.array(list(oracle.cosets(lambda: pieces, distinct)))
    assert np.array_equal(decoded[where.ravel(), suffixes.astype(np.int64)], pairs)
