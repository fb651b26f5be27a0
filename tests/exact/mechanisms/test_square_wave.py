"""The wave by exact enumeration: its ratio, its matrix, its range; and the operator against the dense matrix."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from veil import Integers, Interval, SquareWave
from veil.checks import worst_ratio
from veil.entropy import SeededForExperiments
from veil.mechanisms.numbers.reconstruction import Model, Stopping, Wave, neighbour_share, reconstruct, run
from veil.privacy import WORD, exp_below

SHAPES = [1.0, 0.6, 0.4, 0.0]


def exact_matrix(mechanism: SquareWave) -> list[list[Fraction]]:
    """P[report][held cell], from the code that ships."""
    matrix = [[Fraction(0)] * mechanism.cells for _ in range(mechanism.outputs)]
    for report, chances in mechanism.channel().items():
        matrix[int.from_bytes(report, "little")] = chances
    return matrix


def bucketed(mechanism: SquareWave) -> np.ndarray:
    """M[j, i] over buckets of reports and of people, people spread evenly over a bucket's cells: the dense matrix."""
    matrix = np.array([[float(chance) for chance in row] for row in exact_matrix(mechanism)])
    rows = np.add.reduceat(matrix, mechanism.output_edges[:-1], axis=0)
    held = mechanism.input_edges
    return np.add.reduceat(rows, held[:-1], axis=1) / np.diff(held)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("cells", [2, 3, 10, 33])
def test_the_ratio_is_reached_and_never_exceeded(epsilon: float, cells: int) -> None:
    mechanism = SquareWave(epsilon, cells)
    worst = worst_ratio(mechanism.channel())
    assert worst == mechanism.guarantee.ratio <= exp_below(epsilon)
    assert float(worst) > 0.999_999 * float(exp_below(epsilon))


@pytest.mark.parametrize("ratio", SHAPES)
@pytest.mark.parametrize("b", [0.0, 0.1, 0.4, 1.0])
def test_every_shape_keeps_the_promise(ratio: float, b: float) -> None:
    mechanism = SquareWave(1.0, 12, b=b, ratio=ratio)
    assert worst_ratio(mechanism.channel()) <= mechanism.guarantee.ratio <= exp_below(1.0)


def test_a_threshold_rounded_up_would_break_the_promise() -> None:
    mechanism = SquareWave(1.0, 10)
    chance = Fraction(mechanism.thresholds["near"] + 1, WORD)
    assert 1 + chance * mechanism.outputs / ((1 - chance) * mechanism.plateau) > exp_below(1.0)


@pytest.mark.parametrize("ratio", SHAPES)
def test_the_probabilities_have_the_declared_shape(ratio: float) -> None:
    mechanism = SquareWave(1.0, 16, b=0.25, ratio=ratio)
    column = [row[5] for row in exact_matrix(mechanism)]
    floor = min(column)
    above = [float((chance - floor) / (max(column) - floor)) for chance in column]
    assert sum(column) == 1
    assert [value > 0 for value in above] == [5 <= cell < 14 for cell in range(mechanism.outputs)]
    top = sum(value > 0.999 for value in above)
    assert top == {1.0: 9, 0.6: 5, 0.4: 3, 0.0: 1}[ratio]
    wave = above[5:14]
    assert wave == wave[::-1]
    steps = np.diff(wave[: (9 - top) // 2 + 1])
    assert np.allclose(steps, steps[0] if len(steps) else 0)


def test_every_report_is_possible_for_every_value() -> None:
    """Every report is possible under every value, the ends of the interval included."""
    for domain in (Interval(0.0, 1.0, cells=9), Integers(18, 26)):
        mechanism = SquareWave(3.0, domain)
        matrix = exact_matrix(mechanism)
        assert len(matrix) == mechanism.outputs == 9 + 2 * mechanism.half_width
        assert all(chance > 0 for row in matrix for chance in row)


@pytest.mark.parametrize("b", [0.1, 0.25])
@pytest.mark.parametrize("ratio", SHAPES)
def test_the_wave_satisfies_lemma_1_of_the_paper(b: float, ratio: float) -> None:
    """The Wasserstein distance between the reports of two values is their distance times the wave's total lift."""
    mechanism = SquareWave(1.0, 20, b=b, ratio=ratio)
    matrix = exact_matrix(mechanism)
    floor = (1 - mechanism.chance) / mechanism.outputs
    for one, other in ((0, 1), (3, 11), (0, 19)):
        cumulative, distance = Fraction(0), Fraction(0)
        for row in matrix:
            cumulative += row[one] - row[other]
            distance += abs(cumulative)
        assert distance == (other - one) * (1 - floor * mechanism.outputs)


# -- the operator ------------------------------------------------------------------------------------------------------

CASES = [
    (60, 60, 0.2, 1.0),
    (60, 7, 0.2, 1.0),
    (64, 8, 0.31, 1.0),
    (61, 10, 0.13, 0.5),
    (40, 40, 0.25, 0.0),
    (9, 1, 0.3, 1.0),
]


@pytest.mark.parametrize(("cells", "buckets", "b", "ratio"), CASES)
def test_cumulative_sums_are_products_with_the_dense_matrix(cells: int, buckets: int, b: float, ratio: float) -> None:
    mechanism = SquareWave(1.0, cells, buckets, b=b, ratio=ratio)
    dense, wave = bucketed(mechanism), Wave.of(mechanism)
    rng = np.random.default_rng(cells)
    x, r = rng.dirichlet(np.ones(buckets)), rng.random(len(dense))
    assert np.abs(wave.reports(x) - dense @ x).max() < 1e-13
    assert np.abs(wave.people(r) - dense.T @ r).max() < 1e-13
    assert abs(dense.sum(axis=0) - 1).max() < 1e-13


@pytest.mark.parametrize("smoothing", [True, False, 0.25])
@pytest.mark.parametrize(("cells", "buckets", "b", "ratio"), CASES)
def test_ems_is_that_of_the_dense_matrix(
    cells: int, buckets: int, b: float, ratio: float, smoothing: bool | float
) -> None:
    mechanism = SquareWave(1.0, cells, buckets, b=b, ratio=ratio)
    dense = bucketed(mechanism)
    counts = np.random.default_rng(buckets).integers(0, 1000, len(dense))
    share = {True: neighbour_share(buckets), False: 0.0}.get(smoothing, smoothing)
    for steps in (1, 10, 100):
        found, fit, _ = reconstruct(mechanism, counts, smoothing=smoothing, stopping=Stopping(most=steps))
        assert fit.iterations == steps
        assert np.abs(found - dense_em(dense, counts, steps, share)).max() < 1e-9
    found, _, _ = reconstruct(mechanism, counts, smoothing=smoothing, stopping=Stopping(most=10))
    assert buckets == 1 or np.abs(found - dense_em(np.roll(dense, 1, axis=0), counts, 10, share)).max() > 1e-4


def dense_em(matrix: np.ndarray, counts: np.ndarray, steps: int, share: float) -> np.ndarray:
    """Algorithm 1 of the paper, as printed, with the smoothing step after the M-step."""
    x = np.full(matrix.shape[1], 1 / matrix.shape[1])
    for _ in range(steps):
        x = x * (matrix.T @ (counts / (matrix @ x)))
        x = x / x.sum()
        padded = np.pad(x, 1, mode="symmetric")
        x = (1 - 2 * share) * x + share * (padded[:-2] + padded[2:])
    return x


def test_from_256_buckets_on_neighbours_get_what_the_paper_gives_them() -> None:
    assert neighbour_share(256) == neighbour_share(4096) == 0.25  # (1, 2, 1) / 4
    mechanism = SquareWave(1.0, Interval(0, 1), buckets=256)
    counts = mechanism.tally(mechanism.randomize(np.linspace(0.2, 0.9, 5000), SeededForExperiments(3))).counts
    by_default, by_paper = (reconstruct(mechanism, counts, smoothing=how)[0] for how in (True, 0.25))
    assert np.array_equal(by_default, by_paper)


def test_a_fine_grid_is_as_exact() -> None:
    """With 2^20 cells the sums are large numbers, and 1,024 buckets still come out as the dense matrix."""
    mechanism = SquareWave(1.0, Interval(0, 1), buckets=1024)
    wave, rng = Wave.of(mechanism), np.random.default_rng(0)
    held, seen = mechanism.input_edges, mechanism.output_edges
    x = rng.dirichlet(np.ones(1024))
    # the overlap of reports v = u + k, 0 <= k < plateau, cell by cell, for some columns of the matrix
    for i in (0, 1, 511, 1023):
        cells = np.arange(held[i], held[i + 1])[:, None]
        inside = np.clip(np.minimum(seen[1:], cells + mechanism.plateau) - np.maximum(seen[:-1], cells), 0, None).mean(
            axis=0
        )
        column = wave.floor * np.diff(seen) + wave.lift * inside
        unit = np.zeros(1024)
        unit[i] = 1.0
        assert np.abs(wave.reports(unit) - column).max() < 1e-12
        r = rng.random(len(column))
        assert abs(wave.people(r)[i] - column @ r) < 1e-9
    assert abs(wave.reports(x).sum() - 1) < 1e-12


# -- EM ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_em_increases_the_likelihood_at_every_step(ratio: float) -> None:
    mechanism = SquareWave(1.5, 200, 25, ratio=ratio)
    wave = Wave.of(mechanism)
    counts = mechanism.tally(mechanism.randomize(np.arange(4000) % 70, SeededForExperiments(1))).counts
    x = np.full(25, 1 / 25)
    before = wave.log_likelihood(x, counts)
    for _ in range(200):
        x, _ = run(wave, counts, Model(share=0.0), x, Stopping(most=1))
        after = wave.log_likelihood(x, counts)
        assert after >= before - 1e-9 * abs(before)
        before = after


def test_em_reaches_the_maximum() -> None:
    """At the maximum no bucket's gradient exceeds one, and it is one where there is mass."""
    mechanism = SquareWave(2.0, 12)
    wave = Wave.of(mechanism)
    counts = mechanism.tally(mechanism.randomize([3] * 3000 + [8] * 5000, SeededForExperiments(2))).counts
    found, fit, _ = reconstruct(mechanism, counts, smoothing=False, stopping=Stopping(change=1e-12, most=1_000_000))
    gradient = wave.people(counts / wave.reports(found)) / counts.sum()
    assert fit.converged
    assert gradient.max() < 1 + 1e-6
    assert np.abs(gradient[found > 1e-6] - 1).max() < 1e-6
