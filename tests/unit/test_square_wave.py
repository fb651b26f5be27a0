"""Square Wave and its reconstruction: parameters, stopping, spikes, bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from veil import Categories, Integers, Interval, SquareWave, Survey, simulate
from veil.entropy import Seeded
from veil.errors import DomainError, EmptyError, InputError, MismatchError, ParameterError
from veil.mechanisms import mechanism_from_json
from veil.mechanisms.square_wave import best_width
from veil.numeric.reconstruction import Stopping, reconstruct
from veil.numeric.spikes import choose_penalty
from veil.numeric.waves import Wave

UNIT = Interval(0, 1)


def test_b_is_the_papers() -> None:
    printed = {0.5: 0.3582, 1.0: 0.2561, 2.0: 0.1293, 2.5: 0.0911}
    assert {eps: round(float(best_width(eps)), 4) for eps in printed} == printed
    assert float(best_width(1e-6)) == pytest.approx(0.5, abs=1e-6)
    for eps, b in printed.items():
        assert SquareWave(eps, UNIT).b == pytest.approx(b, abs=5e-5)
        # it maximises the bound on mutual information, and its neighbours do not
        bound = [information(eps, width) for width in (b - 0.001, float(best_width(eps)), b + 0.001)]
        assert max(bound) == bound[1]


def information(eps: float, b: float) -> float:
    top = 2 * b * math.exp(eps)
    return math.log((2 * b + 1) / (top + 1)) + top * eps / (top + 1)


def test_both_orders_of_randomizing_and_bucketizing() -> None:
    first = SquareWave(1.0, UNIT, buckets=64)  # randomize before bucketize
    assert (first.cells, first.tally_size(None)) == (1 << 20, 64 + math.ceil(2 * first.b * 64 - 1e-4))
    second = SquareWave(1.0, Interval(0, 1, cells=64), buckets=64)  # bucketize before randomize
    assert (second.half_width, second.tally_size(None)) == (int(0.2561 * 64), 64 + 2 * int(0.2561 * 64))
    ages = SquareWave(1.0, Integers(18, 99))
    assert (ages.buckets, ages.tally_size(None)) == (82, 82 + 2 * int(float(best_width(1.0)) * 82))
    values = np.random.default_rng(0).beta(5, 2, 50_000)
    results = [simulate(wave, values, seed=1) for wave in (first, second)]
    assert [round(found.mean(), 2) for found in results] == [0.71, 0.71]


def test_json_brings_every_shape_back() -> None:
    for wave in (SquareWave(1.0, UNIT), SquareWave(0.5, Integers(0, 99), 10, b=0.2, ratio=0.4), SquareWave(2, 9)):
        assert mechanism_from_json(wave.to_json()) == wave
        assert Survey.from_json(Survey(wave).to_bytes()) == Survey(wave)
    assert SquareWave(1.0, UNIT, b=0.25) == SquareWave(1.0, UNIT, half_width=1 << 18) != SquareWave(1.0, UNIT)


@pytest.mark.parametrize(
    "parameters",
    [
        {"buckets": 0},
        {"buckets": 2.5},
        {"buckets": 1 << 21},
        {"b": -0.1},
        {"b": 1.5},
        {"b": float("nan")},
        {"ratio": 2},
        {"ratio": -1},
        {"half_width": -1},
        {"half_width": 1 << 21},
        {"ramp": 0},
        {"half_width": 4, "ramp": 6},
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        SquareWave(1.0, UNIT, **parameters)


def test_bad_input_is_refused() -> None:
    wave = SquareWave(1.0, Interval(10, 20))
    for values in ([9.99], [20.01], [float("nan")], [float("inf")], [None], ["12"]):
        with pytest.raises(DomainError):
            wave.randomize(values)
    with pytest.raises(EmptyError):
        wave.randomize([])
    with pytest.raises(ParameterError, match="Interval or Integers"):
        SquareWave(1.0, Categories(["a", "b"]))
    reports = wave.randomize([11.0, 12.0], Seeded(1))
    with pytest.raises(EmptyError):
        wave.estimate(wave.tally(reports[:0]))
    with pytest.raises(EmptyError):
        wave.estimate(wave.tally(reports, weights=[1, -1]))
    with pytest.raises(InputError, match="not negative"):
        wave.estimate(wave.tally(reports, weights=[5, -1]))
    with pytest.raises(InputError, match="no candidates"):
        wave.tally(reports, candidates=[11.0])
    with pytest.raises(MismatchError):
        SquareWave(1.1, Interval(10, 20)).estimate(wave.tally(reports))


def test_one_bucket_and_the_ends_of_the_interval_work() -> None:
    lone = simulate(SquareWave(1.0, Interval(0, 8), buckets=1), [0.0, 8.0, 3.0], seed=1)
    assert (lone.masses.tolist(), lone.mean(), lone.quantile(0.25)) == ([1.0], 4.0, 2.0)
    ends = simulate(SquareWave(6.0, Interval(0, 1), buckets=8), [0.0] * 9000 + [1.0] * 9000, seed=1)
    assert ends.masses[0] > 0.3
    assert ends.masses[-1] > 0.3
    assert simulate(SquareWave(1.0, Interval(0, 1), buckets=64), [0.5], seed=1).proper  # one person


def test_weights_count_like_people() -> None:
    wave = SquareWave(2.0, UNIT, buckets=16)
    reports = wave.randomize(np.linspace(0, 1, 2000), Seeded(4))
    doubled = wave.estimate(wave.tally(reports, weights=np.full(2000, 2)), stopping=Stopping(most=50))
    plain = wave.estimate(wave.tally(reports), stopping=Stopping(most=50))
    assert np.abs(doubled.masses - plain.masses).max() < 1e-12
    assert doubled.effective == 2000


# -- stopping ----------------------------------------------------------------------------------------------------------


def beta_counts(wave: SquareWave, people: int = 100_000) -> Any:
    values = np.random.default_rng(1).beta(5, 2, people)
    return wave.tally(wave.randomize(values, Seeded(2))).counts


def test_the_papers_rule_stops_when_the_likelihood_is_calm() -> None:
    wave = SquareWave(1.0, UNIT, buckets=64)
    _, fit, how = reconstruct(wave, beta_counts(wave))
    assert (how, fit.converged) == ("EMS", True)
    steps = np.abs(np.diff(fit.log_likelihood[:-1])) / 10
    assert (steps[-2:] < 1e-3).all()
    assert not any((steps[i : i + 2] < 1e-3).all() for i in range(len(steps) - 2))
    assert len(fit.log_likelihood) == fit.iterations // 10 + 2


def test_the_other_rule_does_not_depend_on_the_number_of_people() -> None:
    wave = SquareWave(1.0, UNIT, buckets=64)
    counts = beta_counts(wave)
    few = reconstruct(wave, counts, stopping=Stopping.steady())
    many = reconstruct(wave, counts * 1000, stopping=Stopping.steady())
    assert few[1].iterations == many[1].iterations
    assert np.abs(few[0] - many[0]).max() < 1e-12
    assert reconstruct(wave, counts)[1].iterations != reconstruct(wave, counts * 1000)[1].iterations


def test_a_reconstruction_that_runs_out_of_steps_says_so() -> None:
    wave = SquareWave(1.0, UNIT, buckets=64)
    _, fit, _ = reconstruct(wave, beta_counts(wave), stopping=Stopping(change=1e-12, most=15))
    assert (fit.converged, fit.iterations) == (False, 15)
    for bad in ({"tau": -1}, {"change": float("nan")}, {"most": 0}):
        with pytest.raises(ParameterError):
            Stopping(**bad)


def test_it_begins_where_it_is_told() -> None:
    wave = SquareWave(1.0, UNIT, buckets=8)
    counts = beta_counts(wave)
    begun, _, _ = reconstruct(wave, counts, start=[1, 2, 3, 4, 5, 6, 7, 8], stopping=Stopping(most=1))
    assert np.abs(begun - reconstruct(wave, counts, stopping=Stopping(most=1))[0]).max() > 1e-3
    ended = [reconstruct(wave, counts, start=s, stopping=Stopping.steady(1e-12))[0] for s in (None, range(1, 9))]
    assert np.abs(ended[0] - ended[1]).max() < 1e-8
    for start in ([1, 2], [0] * 8, [float("nan")] * 8):
        with pytest.raises(InputError):
            reconstruct(wave, counts, start=start)
    with pytest.raises(ParameterError):
        reconstruct(wave, counts, smoothing="much")  # type: ignore[arg-type]  # the point


# -- spikes ------------------------------------------------------------------------------------------------------------


def spiky(people: int) -> np.ndarray:
    """Half of the people smooth, half on eight round numbers."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.beta(2, 3, people // 2), rng.integers(1, 9, people // 2) / 10])


def test_spikes_are_found_where_there_are_some_and_only_there() -> None:
    wave = SquareWave(4.0, UNIT, buckets=256)
    start = np.full(256, 1 / 256)
    rule = Stopping.paper(4.0, smoothing=True)
    values = spiky(200_000)
    counts = wave.tally(wave.randomize(values, Seeded(5))).counts
    assert choose_penalty(Wave.of(wave), counts, start, rule) is not None
    assert choose_penalty(Wave.of(wave), beta_counts(wave, 200_000), start, rule) is None
    truth = np.cumsum(np.histogram(values, 256, (0, 1))[0] / len(values))
    found = [reconstruct(wave, counts, smoothing=smoothing)[0] for smoothing in (True, "auto")]
    errors = [np.abs(np.cumsum(masses) - truth).mean() for masses in found]
    assert errors[1] < 0.7 * errors[0]


def test_auto_is_a_function_of_the_reports() -> None:
    wave = SquareWave(4.0, UNIT, buckets=64)
    counts = wave.tally(wave.randomize(spiky(50_000), Seeded(6))).counts
    one, other = (reconstruct(wave, counts, smoothing="auto") for _ in range(2))
    assert np.array_equal(one[0], other[0])
    assert one[2].startswith("EMS with spikes")
    assert abs(one[0].sum() - 1) < 1e-9
