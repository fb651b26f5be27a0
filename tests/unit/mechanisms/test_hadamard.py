"""The fast transform and what hangs on it: exact, fast, chunk by chunk and over the wire."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from acceptance.hadamard import transform_over_fft

from veil import Bits, HadamardResponse, Survey
from veil.entropy import SeededForExperiments
from veil.errors import ParameterError, WireError
from veil.kernels.transforms import transform
from veil.survey import SurveyTally
from veil.wire.tallies import decode_tally, encode_tally


@pytest.mark.parametrize("levels", range(11))
def test_the_transform_equals_the_product_with_the_matrix(levels: int) -> None:
    size = 1 << levels
    rows = np.arange(size)
    matrix = 1 - 2 * (np.bitwise_count(rows[:, None] & rows[None, :]).astype(np.int64) & 1)
    values = np.random.default_rng(levels).integers(-(2**40), 2**40, size)
    found = values.copy()
    transform(found)
    assert np.array_equal(found, matrix @ values)


@pytest.mark.parametrize("levels", range(11, 21))
def test_the_transform_applied_twice_multiplies_by_the_size(levels: int) -> None:
    values = np.random.default_rng(levels).integers(-(2**40), 2**40, 1 << levels)
    found = values.copy()
    transform(found)
    assert int(found[0]) == int(values.sum())
    transform(found)
    assert np.array_equal(found, values << levels)


def test_the_transform_takes_at_most_twice_as_long_as_an_fft() -> None:
    assert transform_over_fft(repeats=5) < 2  # measured: 0.08


@pytest.mark.parametrize("size", [2, 3, 40, 300, 5000])
def test_supports_by_transform_and_by_parity_agree(size: int) -> None:
    oracle = HadamardResponse(0.7, size)
    columns = oracle.randomize(np.arange(2000) % size, SeededForExperiments(3)).columns
    every = np.arange(size, dtype=np.uint64)
    weights = np.arange(2000, dtype=np.int64) * 1_000_003 % (2**31) - 2**30
    matrix = oracle.incidence(columns, every).astype(np.int64)
    for given, expected in ((None, matrix.sum(axis=0)), (weights, weights @ matrix)):
        assert np.array_equal(oracle.support(columns, None, given), expected)
        assert np.array_equal(oracle.support(columns, every, given), expected)


def test_a_tally_of_the_whole_domain_is_the_signed_histogram_also_over_the_wire() -> None:
    oracle = HadamardResponse(1.0, 40)
    survey = Survey(oracle)
    tally = survey.tally(survey.randomize(np.arange(900) % 40, SeededForExperiments(4)))
    assert len(tally.parts[0].counts) == oracle.order == oracle.tally_size(None) == 64
    assert abs(tally.parts[0].counts).sum() <= 900
    again = decode_tally(survey, encode_tally(tally))
    assert again == tally
    assert np.array_equal(survey.estimate(again)[0].frequencies, survey.estimate(tally)[0].frequencies)
    part = tally.parts[0]
    cut = SurveyTally(tally.task, tally.people, (replace(part, counts=part.counts[:40]),))
    with pytest.raises(WireError, match="not those of"):
        decode_tally(survey, encode_tally(cut))


def test_domains_of_up_to_63_bits_are_accepted() -> None:
    oracle = HadamardResponse(3.0, Bits(63))
    held = 2**63 - 12_345
    reports = oracle.randomize([held] * 4000, SeededForExperiments(5))
    assert reports.layout.size == 8
    found = oracle.estimate(oracle.tally(reports, [held, 0, held ^ 1])).frequencies
    assert np.allclose(found, [1, 0, 0], atol=0.1)
    for domain in (Bits(64), Bits(100)):
        with pytest.raises(ParameterError):
            HadamardResponse(1.0, domain)
    assert [HadamardResponse(1.0, size).layout.size for size in (2, 128, 129, 2**15, 2**15 + 1)] == [1, 1, 2, 2, 4]
