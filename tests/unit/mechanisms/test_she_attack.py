"""The attack on Laplace noise in doubles: low bits tell which coordinates are not held. It fails on SHE."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veil import SHE
from veil.entropy import SeededForExperiments
from veil.privacy import exp_below

SIZE, PEOPLE, EPSILON = 100, 2_000, 1.0


def float_rival(held: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """The textbook: 1 or 0, plus sign * scale * log(u) in doubles, u a multiple of 2^-53."""
    u = 1.0 - rng.random((len(held), SIZE))  # numpy's uniform doubles are multiples of 2^-53, below 1
    noise = 2 / EPSILON * rng.choice([-1.0, 1.0], u.shape) * np.log(u)
    return np.eye(SIZE)[held] + noise


def surely_not_held(histogram: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The attacker's rule, which never errs on the rival.

    1 + noise below 1/2 in size comes from noise above 1/2 in size, a multiple of 2^-53; the addition is then exact
    (Sterbenz), so the sum is a multiple of 2^-53 as well. A small coordinate with finer low bits is 0 + noise.
    """
    finer = histogram * 2.0**53 % 1 != 0
    return (np.abs(histogram) < 0.5) & finer


def test_low_bits_of_laplace_noise_in_doubles_exclude_values() -> None:
    held = np.arange(PEOPLE) % SIZE
    excluded = surely_not_held(float_rival(held, np.random.default_rng(1)))
    is_held = np.eye(SIZE, dtype=np.bool_)[held]
    assert not excluded[is_held].any()  # never a wrong verdict: the likelihood ratio of such a report is infinite
    assert 0.13 < excluded[~is_held].mean() < 0.17  # of the domain: the spec's 15 %
    assert (excluded.sum(axis=1) > 0).all()  # and every single person loses something


def test_the_attack_excludes_nothing_for_she() -> None:
    held = np.arange(PEOPLE) % SIZE
    oracle = SHE(EPSILON, SIZE)
    reports = oracle.randomize(held, SeededForExperiments(1))
    histogram = (reports.columns["histogram"].astype(np.float64) - oracle.reach) / oracle.grid
    assert not surely_not_held(histogram).any()


def test_each_bit_of_a_report_keeps_the_ratio() -> None:
    """Exactly, over all reports: every bit, and every pair of bits, under every two values."""
    for oracle in (SHE(EPSILON, 3, reach=2), SHE(EPSILON, 2, grid=3, reach=2)):
        channel = oracle.channel()
        assert all(min(chances) > 0 for chances in channel.values())
        bits = {
            report: np.unpackbits(np.frombuffer(report, np.uint8), bitorder="little").tolist() for report in channel
        }
        width = 8 * oracle.layout.size
        for first in range(width):
            for second in range(first, width):
                seen: dict[tuple[int, int], list[Fraction]] = {}
                for report, chances in channel.items():
                    at = (bits[report][first], bits[report][second])
                    sums = seen.setdefault(at, [Fraction(0)] * oracle.domain.size)
                    for value, chance in enumerate(chances):
                        sums[value] += chance
                for sums in seen.values():
                    assert max(sums) / min(sums) <= exp_below(EPSILON)
