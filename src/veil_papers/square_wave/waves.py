"""Figures 5 to 7 of the Square Wave paper: wave shapes, widths and numbers of buckets, all with EMS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import SquareWave
from veil.mechanisms.square_wave import best_width
from veil.metrics import wasserstein
from veil_papers.common.exhibits import Advance
from veil_papers.common.sweep import Errors
from veil_papers.square_wave.methods import Plan
from veil_papers.square_wave.people import People, wave_columns, wave_tally

__all__ = ["SHAPES", "formula", "granularities", "shapes", "widths"]

Floats = NDArray[np.float64]

SHAPES = {"square": 1.0, "0.8": 0.8, "0.6": 0.6, "0.4": 0.4, "0.2": 0.2, "triangle": 0.0}
"""By the ratio of the wave's upper to its lower side."""


def formula(epsilon: float) -> float:
    """The b of section 5.3."""
    return float(best_width(epsilon))


def shapes(people: People, epsilon: float, plan: Plan, seed: Sequence[int], advance: Advance) -> Errors:
    """Figure 5: the Wasserstein distance of each shape at each b."""
    found: dict[str, list[Floats]] = {}
    for place, (name, ratio) in enumerate(SHAPES.items()):
        found[name] = _over_widths(people, epsilon, ratio, plan, plan.wave_runs, [*seed, place], advance)
    return Errors(_points(epsilon, plan), found)


def widths(sets: Sequence[People], epsilon: float, plan: Plan, seed: Sequence[int], advance: Advance) -> Errors:
    """Figure 6: the Wasserstein distance of the square wave at each b, by data set."""
    found = {
        people.label: _over_widths(people, epsilon, 1.0, plan, plan.width_runs, [*seed, place], advance)
        for place, people in enumerate(sets)
    }
    return Errors(_points(epsilon, plan), found)


def granularities(people: People, plan: Plan, seed: Sequence[int], advance: Advance) -> Errors:
    """Figure 7: the Wasserstein distance with each number of buckets, from the same reports.

    All are held against one truth, in the largest number of buckets.
    """
    truth = people.numbers.histogram(max(plan.granularities))
    found: dict[str, list[Floats]] = {f"{buckets} buckets": [] for buckets in plan.granularities}
    for place, epsilon in enumerate(plan.epsilons):
        waves = [SquareWave(epsilon, people.domain, buckets) for buckets in plan.granularities]
        errors = np.empty((plan.wave_runs[people.label], len(waves)))
        for run in range(len(errors)):
            columns = wave_columns(waves[0], people, np.random.default_rng([*seed, place, run]))
            for i, wave in enumerate(waves):
                masses = wave.estimate(wave.tally_columns(columns, None)).masses
                errors[run, i] = wasserstein(masses, truth, length=1.0)
            advance(1)
        for name, column in zip(found, errors.T, strict=True):
            found[name].append(column)
    return Errors(plan.epsilons, found)


def _points(epsilon: float, plan: Plan) -> tuple[float, ...]:
    return tuple(sorted({*plan.widths, formula(epsilon)}))


def _over_widths(
    people: People,
    epsilon: float,
    ratio: float,
    plan: Plan,
    elsewhere: dict[str, int],
    seed: Sequence[int],
    advance: Advance,
) -> list[Floats]:
    """The distances at every b, run by run; `elsewhere` than at the formula's there are so many."""
    found = []
    for place, b in enumerate(_points(epsilon, plan)):
        wave = SquareWave(epsilon, people.domain, people.buckets, b, ratio)
        runs = (plan.formula_runs if b == formula(epsilon) else elsewhere)[people.label]
        errors = np.empty(runs)
        for run in range(runs):
            tally = wave_tally(wave, people, np.random.default_rng([*seed, place, run]))
            errors[run] = wasserstein(wave.estimate(tally).masses, people.truth, length=1.0)
        found.append(errors)
        advance(runs)
    return found
