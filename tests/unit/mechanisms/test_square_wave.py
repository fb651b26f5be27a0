"""Square Wave and its reconstruction: parameters, stopping, spikes, bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from veil import Categories, Integers, Interval, Piecewise, SquareWave, Survey, Tally, simulate
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError, MismatchError, ParameterError
from veil.mechanisms import mechanism_from_json
from veil.mechanisms.numbers.reconstruction import Model, Stopping, Wave, choose_model, reconstruct
from veil.mechanisms.numbers.square_wave import best_width
from veil.numeric import wave_bands

UNIT = Interval(0, 1)


def test_the_best_width_is_that_of_the_paper() -> None:
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


def test_bucketizing_before_and_after_randomizing() -> None:
    first = SquareWave(1.0, UNIT, buckets=64)  # randomize before bucketize
    assert (first.cells, first.tally_size(None)) == (1 << 20, 64 + math.ceil(2 * first.b * 64 - 1e-4))
    second = SquareWave(1.0, Interval(0, 1, cells=64), buckets=64)  # bucketize before randomize
    assert (second.half_width, second.tally_size(None)) == (int(0.2561 * 64), 64 + 2 * int(0.2561 * 64))
    ages = SquareWave(1.0, Integers(18, 99))
    assert (ages.buckets, ages.tally_size(None)) == (82, 82 + 2 * int(float(best_width(1.0)) * 82))
    values = np.random.default_rng(0).beta(5, 2, 50_000)
    results = [simulate(wave, values, seed=1) for wave in (first, second)]
    assert [found.mean() for found in results] == pytest.approx([values.mean()] * 2, abs=0.01)


def test_every_shape_is_read_back_from_json() -> None:
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
        {"domain": Interval(0, 1, cells=1 << 21), "ratio": 0.5},
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        SquareWave(1.0, **{"domain": UNIT, **parameters})


def test_bad_input_is_refused() -> None:
    wave = SquareWave(1.0, Interval(10, 20))
    for values in ([9.99], [20.01], [float("nan")], [float("inf")], [None], ["12"]):
        with pytest.raises(DomainError):
            wave.randomize(values)
    with pytest.raises(EmptyError):
        wave.randomize([])
    with pytest.raises(ParameterError, match="Interval or Integers"):
        SquareWave(1.0, Categories(["a", "b"]))
    reports = wave.randomize([11.0, 12.0], SeededForExperiments(1))
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
    with pytest.raises(MismatchError, match=r"tally\(reports\)"):
        wave.estimate(reports)


def test_one_bucket_and_the_bounds_of_the_interval_are_accepted() -> None:
    lone = simulate(SquareWave(1.0, Interval(0, 8), buckets=1), [0.0, 8.0, 3.0], seed=1)
    assert (lone.masses.tolist(), lone.mean(), lone.quantile(0.25)) == ([1.0], 4.0, 2.0)
    ends = simulate(SquareWave(6.0, Interval(0, 1), buckets=8), [0.0] * 9000 + [1.0] * 9000, seed=1)
    assert ends.masses[0] > 0.3
    assert ends.masses[-1] > 0.3
    assert simulate(SquareWave(1.0, Interval(0, 1), buckets=64), [0.5], seed=1).proper  # one person


@pytest.mark.parametrize("smoothing", [True, False, "auto"])
def test_estimates_do_not_depend_on_the_scale_of_weights(smoothing: Any) -> None:
    """A thousand for everyone changes nothing: not the steps, not the spikes, not what bands are drawn from."""
    wave = SquareWave(2.0, UNIT, buckets=64)
    reports = wave.randomize(np.random.default_rng(0).beta(5, 2, 20_000), SeededForExperiments(4))
    tallies = [wave.tally(reports, weights=np.full(20_000, 1000)), wave.tally(reports)]
    weighted, plain = (wave.estimate(tally, smoothing=smoothing) for tally in tallies)
    assert np.abs(weighted.masses - plain.masses).max() < 1e-9
    assert weighted.lineage == plain.lineage
    assert weighted.effective == 20_000
    first, second = (wave_bands(wave, tally, plain, replicates=10) for tally in tallies)
    assert np.abs(first.errors - second.errors).max() < 1e-6


def test_an_impossible_tally_is_refused() -> None:
    wave = SquareWave(1.0, UNIT, buckets=8)
    made = wave.tally(wave.randomize([0.5] * 5, SeededForExperiments(1)))
    for counts in (made.counts * 0, made.counts + 1):
        with pytest.raises(MismatchError, match="add up"):
            wave.estimate(Tally(made.task, counts, 5, 5, 5))
    mean = Piecewise(1.0, UNIT)
    made = mean.tally(mean.randomize([0.5] * 5, SeededForExperiments(1)))
    for counts in ([2**62, 0, 0], [0, 2**62, 0], [0, 0, 2**40]):
        with pytest.raises(MismatchError, match="larger"):
            mean.estimate(Tally(made.task, np.array(counts), 5, 5, 5))


# -- stopping ----------------------------------------------------------------------------------------------------------


def beta_counts(wave: SquareWave, people: int = 100_000) -> Any:
    values = np.random.default_rng(1).beta(5, 2, people)
    return wave.tally(wave.randomize(values, SeededForExperiments(2))).counts


def test_the_stopping_rule_of_the_paper_watches_the_likelihood() -> None:
    wave = SquareWave(1.0, UNIT, buckets=64)
    _, fit, model = reconstruct(wave, beta_counts(wave))
    assert (model.name, fit.converged) == ("EMS(share 0.015625)", True)
    steps = np.abs(np.diff(fit.log_likelihood[:-1])) / 10
    assert (steps[-2:] < 1e-3).all()
    assert not any((steps[i : i + 2] < 1e-3).all() for i in range(len(steps) - 2))
    assert len(fit.log_likelihood) == fit.iterations // 10 + 2


def test_the_stopping_rule_of_the_histogram_does_not_depend_on_the_number_of_people() -> None:
    wave = SquareWave(1.0, UNIT, buckets=64)
    counts = beta_counts(wave)
    few = reconstruct(wave, counts, stopping=Stopping(change=1e-5))
    many = reconstruct(wave, counts * 1000, stopping=Stopping(change=1e-5))
    assert few[1].iterations == many[1].iterations
    assert np.abs(few[0] - many[0]).max() < 1e-12
    assert reconstruct(wave, counts)[1].iterations != reconstruct(wave, counts * 1000)[1].iterations


def test_a_reconstruction_without_convergence_warns() -> None:
    wave = SquareWave(1.0, UNIT, buckets=64)
    _, fit, _ = reconstruct(wave, beta_counts(wave), stopping=Stopping(change=1e-12, most=15))
    assert (fit.converged, fit.iterations) == (False, 15)
    for bad in ({"tau": -1}, {"change": float("nan")}, {"most": 0}, {"tau": "x"}, {"most": 2.5}, {"change": None}):
        with pytest.raises(ParameterError):
            Stopping(**bad)


def test_a_reconstruction_starts_from_the_given_histogram() -> None:
    wave = SquareWave(1.0, UNIT, buckets=8)
    counts = beta_counts(wave)
    begun, _, _ = reconstruct(wave, counts, start=[1, 2, 3, 4, 5, 6, 7, 8], stopping=Stopping(most=1))
    assert np.abs(begun - reconstruct(wave, counts, stopping=Stopping(most=1))[0]).max() > 1e-3
    ended = [
        reconstruct(wave, counts, start=s, stopping=Stopping(change=1e-13, most=10**6))[0] for s in (None, range(1, 9))
    ]
    assert np.abs(ended[0] - ended[1]).max() < 1e-8
    with pytest.raises(ParameterError):
        reconstruct(wave, counts, stopping="soon")  # type: ignore[arg-type]  # the point
    for start in ([1, 2], [0] * 8, [float("nan")] * 8, [1e308] * 8, "x"):
        with pytest.raises(InputError):
            reconstruct(wave, counts, start=start)
    with pytest.raises(ParameterError):
        reconstruct(wave, counts, smoothing="much")  # type: ignore[arg-type]  # the point
    for share in (0, -0.1, 0.3, float("nan")):
        with pytest.raises(ParameterError):
            reconstruct(wave, counts, smoothing=share)


# -- spikes ------------------------------------------------------------------------------------------------------------


def spiky(people: int) -> np.ndarray:
    """Half of the people smooth, half on eight round numbers."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.beta(2, 3, people // 2), rng.integers(1, 9, people // 2) / 10])


def test_spikes_are_found_only_in_spiky_data() -> None:
    wave = SquareWave(4.0, UNIT, buckets=256)
    start = np.full(256, 1 / 256)
    rule = Stopping.paper(4.0, smoothing=True)
    values = spiky(200_000)
    counts = wave.tally(wave.randomize(values, SeededForExperiments(5))).counts
    assert choose_model(Wave.of(wave), counts, 0.25, start, lambda _: rule).penalty is not None
    assert choose_model(Wave.of(wave), beta_counts(wave, 200_000), 0.25, start, lambda _: rule) == Model(0.25)
    truth = np.cumsum(np.histogram(values, 256, (0, 1))[0] / len(values))
    found = [reconstruct(wave, counts, smoothing=smoothing)[0] for smoothing in (True, "auto")]
    errors = [np.abs(np.cumsum(masses) - truth).mean() for masses in found]
    assert errors[1] < 0.7 * errors[0]


def test_automatic_smoothing_is_deterministic() -> None:
    wave = SquareWave(4.0, UNIT, buckets=64)
    counts = wave.tally(wave.randomize(spiky(50_000), SeededForExperiments(6))).counts
    one, other = (reconstruct(wave, counts, smoothing="auto") for _ in range(2))
    assert np.array_equal(one[0], other[0])
    assert one[2] != Model(0.25 / 16)  # it let go of what EMS smooths with 64 buckets
    assert abs(one[0].sum() - 1) < 1e-9


@pytest.mark.parametrize("buckets", [10, 40])
def test_few_buckets_are_hardly_smoothed(buckets: int) -> None:
    """Ages, grades: with the paper's share a step would smooth over a large part of the domain."""
    values = (np.random.default_rng(2).beta(2, 8, 100_000) * buckets).astype(int)
    truth = np.cumsum(np.bincount(values, minlength=buckets) / len(values))
    wave = SquareWave(1.0, buckets)
    tally = wave.tally(wave.randomize(values, SeededForExperiments(3)))
    errors = [np.abs(np.cumsum(wave.estimate(tally, smoothing=how).masses) - truth).mean() for how in (True, 0.25)]
    assert errors[0] < errors[1] / 4


def test_automatic_smoothing_decreases_with_the_number_of_people() -> None:
    rng = np.random.default_rng(4)
    humps = np.where(rng.random(400_000) < 0.5, rng.normal(0.3, 0.03, 400_000), rng.normal(0.75, 0.04, 400_000))
    values = np.clip(humps, 0, 1)
    wave = SquareWave(2.0, UNIT, buckets=256)
    counts = wave.tally(wave.randomize(values, SeededForExperiments(7))).counts
    found, _, model = reconstruct(wave, counts, smoothing="auto")
    truth = np.cumsum(np.histogram(values, 256, (0, 1))[0] / len(values))
    errors = [np.abs(np.cumsum(masses) - truth).mean() for masses in (found, reconstruct(wave, counts)[0])]
    assert model.name.startswith("EMS(share 0.0")
    assert errors[0] < 0.7 * errors[1]


def test_bands_choose_the_smoothing_in_every_simulated_survey() -> None:
    """Where the choice depends on the reports, taking it as given would leave that out of the errors."""
    wave = SquareWave(1.0, UNIT, buckets=64)
    values = np.clip(np.random.default_rng(8).normal(0.5, 0.05, 20_000), 0, 1)
    tally = wave.tally(wave.randomize(values, SeededForExperiments(6)))
    found = wave.estimate(tally, smoothing="auto")
    assert found.lineage[1] == "auto"
    given = replace(found, lineage=(found.lineage[0], found.lineage[-1]))
    repeated, taken = (wave_bands(wave, tally, one, replicates=20).errors for one in (found, given))
    same = (repeated == taken).all(axis=1)  # a seed draws the same reports: these surveys chose what was found
    assert 0 < same.sum() < 20
