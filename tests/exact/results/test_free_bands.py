"""Bands without assumptions: their programmes against all corners, against people at every cell, and against chance."""

from itertools import combinations

import numpy as np
import pytest

from veil import Integers, Interval, SquareWave
from veil.mechanisms.numbers.reconstruction import Wave
from veil.numeric import free_bands
from veil.reports.tally import Tally
from veil.results.bands.free import Programme, below, binomial_ends, hoeffding_ends


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
def test_the_probabilities_are_those_of_the_waves_matrix(ratio):
    wave = SquareWave(1.0, 40, buckets=40, ratio=ratio)
    chances = (wave.outputs, wave.plateau, wave.ramp, float(wave.chance))
    found = np.diff(below(wave.output_edges, np.arange(40), *chances), axis=0)
    operator = Wave.of(wave)
    expected = np.stack([operator.reports(one) for one in np.eye(40)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-14)


def _corners(chances, low, high):
    """Every vertex of {x >= 0, sum x = 1, low <= chances x <= high}: from all choices of what holds with equality."""
    size = chances.shape[1]
    rows = np.concatenate([np.eye(size), chances, chances])
    values = np.concatenate([np.zeros(size), low, high])
    found = []
    for chosen in combinations(range(len(rows)), size - 1):
        matrix = np.vstack([np.ones(size), rows[list(chosen)]])
        if abs(np.linalg.det(matrix)) < 1e-9:
            continue
        x = np.linalg.solve(matrix, np.concatenate([[1.0], values[list(chosen)]]))
        inside = chances @ x
        if x.min() > -1e-9 and (inside > low - 1e-9).all() and (inside < high + 1e-9).all():
            found.append(x)
    return np.array(found)


def test_programmes_find_the_best_corner():
    wave = SquareWave(2.0, 5, buckets=5)
    edges = wave.output_edges
    windows = np.array([[edges[0], edges[2]], [edges[2], edges[4]], [edges[4], edges[-1]], [edges[0], edges[4]]])
    chance = float(wave.chance)
    cumulated = {int(e): below(np.array([e]), np.arange(5), wave.outputs, wave.plateau, 1, chance)[0] for e in edges}
    chances = np.array([cumulated[int(b)] - cumulated[int(a)] for a, b in windows])
    middle = chances @ np.array([0.1, 0.4, 0.0, 0.2, 0.3])
    low, high = middle - 0.03, middle + 0.05
    corners = _corners(chances, low, high)
    programme = Programme(5, wave.outputs, wave.plateau, 1, chance, windows, low, high)
    for first, end in combinations(range(6), 2):
        shares = corners[:, first:end].sum(axis=1)
        assert programme.least_share(first, end) == pytest.approx(shares.min(), abs=5e-6)
        assert programme.most_share(first, end) == pytest.approx(shares.max(), abs=5e-6)
    means = corners @ np.arange(5)
    assert programme.mean() == pytest.approx((means.min(), means.max()), abs=2e-5)
    assert len(corners) > 10


class _EveryCell(Programme):
    """The same with a mass at every cell."""

    def atoms(self, *further):
        return np.arange(self.size)

    def bend(self, atoms):
        return 0.0


@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_bounds_over_few_cells_equal_bounds_over_all_cells(ratio):
    wave = SquareWave(1.5, 300, buckets=300, ratio=ratio)
    edges = wave.output_edges[np.arange(9) * (len(wave.output_edges) - 1) // 8]
    windows = np.stack([edges[:-1], edges[1:]], axis=1)
    chance, rng = float(wave.chance), np.random.default_rng(3)
    cumulated = below(edges, np.arange(300), wave.outputs, wave.plateau, wave.ramp, chance)
    middle = np.diff(cumulated, axis=0) @ rng.dirichlet(np.full(300, 0.02))
    given = (300, wave.outputs, wave.plateau, wave.ramp, chance, windows, middle - 0.004, middle + 0.003)
    few, every = Programme(*given), _EveryCell(*given)
    assert wave.ramp > 1 or len(few.atoms()) < 30
    for first, end in [(0, 7), (0, 150), (40, 41), (100, 260)]:
        ends = [(one.least_share(first, end), one.most_share(first, end)) for one in (few, every)]
        if wave.ramp == 1:  # not one cell's worth is given away
            assert ends[0] == pytest.approx(ends[1], abs=1e-5)
        assert ends[0][0] <= ends[1][0] + 1e-6
        assert ends[0][1] >= ends[1][1] - 1e-6
    assert few.mean()[0] <= every.mean()[0] + 1e-3
    for centre in (30.0, 150.0):
        assert few.about(centre)[0] <= every.about(centre)[0] + 0.1
        assert few.about(centre)[1] >= every.about(centre)[1] - 0.1


@pytest.mark.parametrize("chances", [np.full(40, 0.3), np.repeat([0.05, 0.9], 20), np.linspace(0, 0.2, 40)])
def test_the_interval_holds_for_people_who_differ(chances):
    law = np.ones(1)
    for chance in chances:  # the exact law of the count: one coin after the other
        law = np.convolve(law, [1 - chance, chance])
    counts = np.arange(41)
    low, high = binomial_ends(counts, 40, 0.05)
    mean = chances.mean()
    assert law[(mean < low) | (mean > high)].sum() <= 0.05
    low, high = hoeffding_ends(counts / 40, 40.0, 0.05)
    assert law[(mean < low) | (mean > high)].sum() <= 0.05


def test_the_normal_interval_fails_where_the_exact_one_holds():
    chances = np.full(40, 0.02)
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    share = np.arange(41) / 40
    reach = 1.96 * np.sqrt(share * (1 - share) / 40)
    assert law[np.abs(share - 0.02) > reach].sum() > 0.4
    low, high = binomial_ends(np.arange(41), 40, 0.05)
    assert law[(low > 0.02) | (high < 0.02)].sum() <= 0.05


def test_impossible_reports_give_the_trivial_bounds():
    wave = SquareWave(1.0, Interval(0, 1, cells=1 << 10), buckets=64)
    counts = np.zeros(wave.tally_size(None), dtype=np.int64)
    counts[0] = 100_000  # everybody at the first cell: waves are wider than that
    tally = wave.tally(wave.randomize([0.5]))
    all_first = Tally(tally.task, counts, 100_000, 100_000, 100_000)
    bands = free_bands(wave, all_first, wave.estimate(all_first))
    assert bands.cdf(0.5) == (0.0, 1.0)
    assert bands.mean_numbers() == pytest.approx((0.0, 1.0), abs=1e-9)


def test_bounds_of_the_whole_and_of_the_empty_range():
    wave = SquareWave(1.0, Integers(18, 99))
    tally = wave.tally(wave.randomize(np.arange(18, 100)))
    bands = free_bands(wave, tally, wave.estimate(tally))
    assert bands.cdf([17, 99, 1000])[0].tolist() == [0.0, 1.0, 1.0]
    assert bands.cdf([17, 99, 1000])[1].tolist() == [0.0, 1.0, 1.0]
    assert bands.range(18, 99) == (1.0, 1.0)
    assert bands.range(18.2, 18.8) == (0.0, 0.0)
    assert bands.quantile_numbers(0.0)[0] == 18.0
    assert bands.quantile_numbers(1.0)[1] == 99.0
