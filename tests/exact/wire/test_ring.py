"""Ring encodings: every integer is a report, elements reveal no more than reports, fakes look like reports."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from veil import GRR, OLH, OUE, AllOf, Bits, Public, Survey
from veil.entropy import SeededForExperiments, Source, Words, outcomes
from veil.errors import InputError, ParameterError, VeilError, WireError
from veil.mechanisms import BLH, Mechanism
from veil.wire.ring import Ring, ring_of

BITS = 8


class TinyOLH(OLH):
    """OLH with 8 seeds, so that a ring of 8 bits can be gone through."""

    @property
    def seeds(self) -> int:
        return 8


def small(mechanism: Mechanism) -> Ring:
    return Ring(mechanism.digest, mechanism.layout, BITS)


MECHANISMS = [GRR(1.0, 2), GRR(0.5, 5), GRR(2.0, 7), GRR(1.0, 256), TinyOLH(1.0, 6, 3, 4), TinyOLH(3.0, 4, 21, 4)]
EVERY = np.arange(1 << BITS, dtype=np.uint64)


def of_names(mechanism: Mechanism) -> str:
    return f"{type(mechanism).__name__}-{mechanism.layout.fields[-1].bound}"


def first_of_interval(ring: Ring, columns: Any) -> int:
    """The rival: no draw, always the first element that stands for the report."""
    starts, _ = ring._intervals(columns[ring.layout.names[-1]].astype(np.uint64))
    seed = int(columns["seed"][0]) << ring._width if "seed" in columns else 0
    return int(starts[0]) + seed


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=of_names)
def test_every_element_is_a_report_and_every_report_is_found_again(mechanism: Mechanism) -> None:
    ring = small(mechanism)
    columns = ring.decode(EVERY)
    mechanism.check(columns)
    assert len(ring.reports(EVERY)) == ring.modulus
    rows = np.stack([column.astype(np.int64) for column in columns.values()], axis=1)
    different, sizes = np.unique(rows, axis=0, return_counts=True)
    assert len(different) == np.prod([field.bound for field in mechanism.layout.fields])
    # shares of the interval's ring: the least is as it says, and no two differ by more than one element
    assert int(sizes.min()) == (1 << ring._width) // ring.cells
    assert sizes.max() - sizes.min() <= 1
    for row in different:
        report = {f.name: np.array([cell], dtype=f.dtype) for f, cell in zip(mechanism.layout.fields, row, strict=True)}
        found = outcomes(lambda source, report=report: int(ring.encode(report, source)[0]))
        preimage = np.flatnonzero((rows == row).all(axis=1)).tolist()
        assert found == dict.fromkeys(preimage, Fraction(1, len(preimage)))


@pytest.mark.parametrize("mechanism", MECHANISMS[:3] + MECHANISMS[4:], ids=of_names)
def test_element_keeps_the_guarantee_of_its_report(mechanism: Mechanism) -> None:
    """P(z | v) / P(z | v') of the shipped draw and encoding, over all elements and values: exactly the ratio."""
    ring, worst = small(mechanism), Fraction(0)
    chances = []
    for code in range(mechanism.domain.size):
        held = np.array([code], dtype=np.uint64)
        chances.append(outcomes(lambda s, held=held: int(ring.encode(mechanism.draw(held, s), s)[0])))
        assert set(chances[-1]) == set(EVERY.tolist())  # no element is impossible: nothing tells a fake
        assert sum(chances[-1].values()) == 1
    for one in chances:
        for other in chances:
            worst = max(worst, *(one[z] / other[z] for z in one))
    assert worst <= mechanism.guarantee.ratio
    if isinstance(mechanism, GRR):
        assert worst == mechanism.guarantee.ratio


def test_fixed_elements_distinguish_people_from_fakes() -> None:
    mechanism = GRR(1.0, 5)
    ring = small(mechanism)

    def first(source: Source) -> int:
        return first_of_interval(ring, mechanism.draw(np.array([3], dtype=np.uint64), source))

    def shipped(source: Source) -> int:
        return int(ring.encode(mechanism.draw(np.array([3], dtype=np.uint64), source), source)[0])

    fakes = outcomes(lambda source: int(ring.uniform(1, source)[0]))
    assert fakes == dict.fromkeys(range(256), Fraction(1, 256))
    distances = [
        sum(max(fakes[z] - found.get(z, Fraction(0)), Fraction(0)) for z in fakes)
        for found in (outcomes(first), outcomes(shipped))
    ]
    values = mechanism.p - Fraction(52, 256)  # what the reported value alone tells: 3 is 51 or 52 of 256 elements
    assert distances[0] == Fraction(251, 256)  # nearly every fake gives itself away
    assert abs(distances[1] - values) < Fraction(1, 100)


@pytest.mark.parametrize("size", [2, 3, 1000, 2**16, 2**31 + 11, 2**32])
@pytest.mark.parametrize("bits", [32, 64])
def test_intervals_are_exact_in_wide_rings(size: int, bits: int) -> None:
    if size > 2 ** (bits - 16):
        return
    ring = ring_of(GRR(1.0, size), bits)
    cells = sorted({0, 1, size // 2, size - 2, size - 1})
    starts, sizes = ring._intervals(np.array(cells, dtype=np.uint64))
    for cell, start, many in zip(cells, starts.tolist(), sizes.tolist(), strict=True):
        first, following = -(-cell * 2**bits // size), -(-(cell + 1) * 2**bits // size)
        assert (start, many) == (first, following - first)
        ends = np.array([start, start + many - 1], dtype=np.uint64)
        assert ring.decode(ends)["value"].tolist() == [cell, cell]
    drawn = ring.uniform(1000, SeededForExperiments(1))
    assert ring.decode(drawn)["value"].tolist() == [int(z) * size >> bits for z in drawn.tolist()]
    assert 1 - Fraction(int(sizes.min()) * size, 2**bits) < Fraction(1, 2**16)


def test_olh_in_64_bits_is_seed_and_bucket() -> None:
    oracle = OLH(2.0, 100, hash_range=1000, seed_bytes=4)
    ring, elements = ring_of(oracle), SeededForExperiments(2).words(1000)
    columns = ring.decode(elements)
    assert columns["seed"].tolist() == [z >> 32 for z in elements.tolist()]
    assert columns["bucket"].tolist() == [(z & (2**32 - 1)) * 1000 >> 32 for z in elements.tolist()]
    assert (columns["seed"].dtype, columns["bucket"].dtype) == (np.uint32, np.uint16)
    reports = oracle.randomize(np.arange(1000) % 100, SeededForExperiments(3))
    assert ring.reports(ring.encode(reports.columns, SeededForExperiments(4))).to_bytes() == reports.to_bytes()


def test_ring_of_a_survey_has_its_task() -> None:
    survey = Survey(GRR(1.0, 4))
    ring = ring_of(survey, 32)
    reports = ring.reports(ring.uniform(10, SeededForExperiments(0)))
    assert (reports.task, ring.bits, ring.modulus) == (survey.task, 32, 2**32)
    assert survey.tally(reports).people == 10
    assert len(ring.encode({"value": np.zeros(0, np.uint8)}, Words(b""))) == 0


@pytest.mark.parametrize(
    ("asked", "bits", "what"),
    [
        (GRR(1.0, 4), 16, "64 bits, or 32"),
        (GRR(1.0, 4), True, "64 bits, or 32"),
        (GRR(1.0, 2**16 + 1), 32, "2\\^16 values"),
        (OLH(1.0, 4), 64, "seed_bytes=4"),
        (OLH(1.0, 4, seed_bytes=4), 32, "64 bits"),
        (OLH(1.0, 4, 2**16 + 1, 4), 64, "2\\^16 buckets"),
        (OUE(1.0, 4), 64, "OUE has no ring: GRR and OLH"),
        (BLH(1.0, 4), 64, "BLH has no ring"),
        (Survey(AllOf(GRR(1.0, 4), GRR(1.0, 4))), 64, "one question"),
        (Survey(AllOf(GRR(1.0, 4))), 64, "one question"),
        (Survey(GRR(1.0, 4), public=[Public("age")]), 64, "one question"),
        ("GRR", 64, "a survey or a mechanism"),
    ],
)
def test_surveys_without_a_ring_are_refused(asked: Any, bits: Any, what: str) -> None:
    with pytest.raises(ParameterError, match=what):
        ring_of(asked, bits)


def test_invalid_elements_are_refused() -> None:
    ring = ring_of(GRR(1.0, 4), 32)
    for bad in ([2**32], [-1], [0.5], [[1]], ["x"]):
        with pytest.raises(InputError):
            ring.decode(bad)
    with pytest.raises(WireError):
        ring.encode({"value": np.array([4], np.uint8)}, SeededForExperiments(0))
    with pytest.raises(VeilError):
        ring.uniform(-1, SeededForExperiments(0))


def test_short_seeds_are_part_of_the_task() -> None:
    long, short = OLH(1.0, 100), OLH(1.0, 100, seed_bytes=4)
    assert long == OLH(1.0, 100, seed_bytes=8)
    assert "seed_bytes" not in long.to_json()
    assert short.to_json()["seed_bytes"] == 4
    assert OLH.from_json(short.to_json()) == short != long
    assert (short.layout.size, short.seeds, short.over(GRR(1.0, 100).domain)) == (5, 2**32, short)
    assert short.q == long.q
    text = OLH(1.0, Bits(100), seed_bytes=4)
    assert text.tally(text.randomize([5, 5]), candidates=[5]).people == 2
    for bad in (2, 16, 4.0, "4", True, None):
        with pytest.raises(ParameterError, match="8 bytes, or 4"):
            OLH(1.0, 100, seed_bytes=bad)  # type: ignore[arg-type]
