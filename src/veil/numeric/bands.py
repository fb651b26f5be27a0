"""Bands of distributions: from simulated surveys, without assumptions, or from the levels of a tree.

`wave_bands` simulates surveys, and `veil.results.bands.smooth` says why it does not take percentiles of replicates.
`free_bands` chooses the windows of a wave's reports that bands without assumptions are computed from. `assumed_bands`
chooses between the two: it simulates surveys unless the reports contradict a smooth distribution. `level_bands` and
`difference_bands` take the unbiased estimates of a tree's levels, without simulation.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.entropy import check_seed
from veil.errors import InputError, ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.numbers.reconstruction import Model, Smoothing, Stopping, Wave, neighbour_share, reconstruct
from veil.numeric.roughness import Roughness, roughness
from veil.reports.tally import Tally
from veil.results.bands.base import Bands
from veil.results.bands.free import FreeBands
from veil.results.bands.levels import LevelBands, differences_law, support_law
from veil.results.bands.smooth import SmoothBands
from veil.results.distribution import Distribution
from veil.results.estimate import Estimate
from veil.results.laws import SupportNoise
from veil.results.mean import Coefficients
from veil.tools.limits import admit
from veil.tools.numbers import is_int
from veil.tree import Tree, consistent, from_differences, project

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST, MOST, SURVEYS = 10, 1_000, 50
"""How many surveys may be simulated, and how many are unless told otherwise."""

_BUCKETS, _IN_HALF_A_WAVE = (128, 256), 32
"""Simulated surveys are reconstructed in at most so many buckets: in the fewer, if so many of them lie in half a wave.

Finer ones have the same errors, and take longer."""
_DIGITS = 7
_SECONDS_EACH = 5e-3
_NEARBY = 8
"""The largest error within an eighth of half a wave's width counts: see docs/numeric.md."""


def wave_bands(
    mechanism: SquareWave,
    tally: Tally,
    found: Distribution,
    replicates: int = SURVEYS,
    seed: int = 0,
    *,
    stopping: Stopping | None = None,
    start: Any = None,
) -> SmoothBands:
    """The bands of what `mechanism.estimate(tally, ...)` found; `stopping` and `start` as they were given there.

    Made-up people are distributed as plain EM has it, before anything is smoothed away, and each of their reports is an
    independent draw: so the counts of all reports are multinomial. (Where exactly these people are asked, and no others
    like them, that is a little more scatter than there is.) A model that was chosen (`smoothing="auto"`) is chosen anew
    in every simulated survey. The error at a place is the largest one within an eighth of half the wave's width: the
    reports tell how rough people may be, but not where the roughness lies.

    >>> from veil import Interval
    >>> from veil.entropy import SeededForExperiments
    >>> wave = SquareWave(2.0, Interval(0, 1), buckets=32)
    >>> tally = wave.tally(wave.randomize(np.linspace(0.2, 0.8, 20_000), SeededForExperiments(1)))
    >>> found = wave.estimate(tally)
    >>> low, high = wave_bands(wave, tally, found, replicates=20).mean()
    >>> bool(low < found.mean() < high)
    True
    """
    from veil.kernels.parallel import in_order

    few, many = _BUCKETS
    surveys = _surveys(replicates)
    admit(f"drawing bands by {surveys:,} simulated collections", 0, surveys * _SECONDS_EACH, "fewer bands")
    coarse = coarse_wave(mechanism, few if mechanism.b * few >= _IN_HALF_A_WAVE else many)
    coarser = (coarse.buckets / mechanism.buckets) ** 2  # a step smooths over as large a part of the domain
    share = neighbour_share(mechanism.buckets) * coarser
    model = found_model(found)
    smoothing: Smoothing = "auto" if "auto" in found.lineage else replace(model, share=model.share * coarser)
    counts = mechanism.people_counts(mechanism.own(tally))
    pilot = reconstruct(mechanism, counts, smoothing=False)[0]
    asked = _regroup(pilot, mechanism.input_edges, coarse.input_edges)
    begun = None if start is None else _regroup(start, mechanism.input_edges, coarse.input_edges)
    law, people = Wave.of(coarse).reports(asked), max(1, round(float(counts.sum())))

    def once(own: np.random.SeedSequence) -> Floats:
        drawn = np.random.default_rng(own).multinomial(people, law / law.sum())
        return reconstruct(coarse, drawn, smoothing=smoothing, stopping=stopping, start=begun, share=share)[0]

    replicated = in_order(once, np.random.SeedSequence(check_seed(seed)).spawn(surveys))
    return SmoothBands(
        found.domain,
        found.cells,
        found.masses,
        coarse.input_edges,
        _errors(np.array(replicated), asked),
        max(mechanism.half_width // _NEARBY, mechanism.cells // mechanism.buckets),
    )


def _surveys(replicates: Any) -> int:
    if not is_int(replicates) or replicates < FEWEST:
        raise ParameterError(f"bands need at least {FEWEST} replicates")
    return int(replicates)


def _errors(found: Floats, asked: Floats) -> Floats:
    """Of the people below each boundary, the fraction found less the true one; with as many digits as matter."""
    errors = np.cumsum(found - asked, axis=1)
    return np.asarray(np.round(np.pad(errors, ((0, 0), (1, 0))), _DIGITS), dtype=np.float64)


def found_model(found: Distribution) -> Model:
    """By which model these reports were reconstructed."""
    if found.fit is None or found.fit.share is None:
        raise InputError("this distribution was not reconstructed from a wave's reports")
    return Model(found.fit.share, found.fit.penalty)


def coarse_wave(mechanism: SquareWave, most: int) -> SquareWave:
    """The same wave, counted in fewer buckets."""
    fewer = min(mechanism.buckets, most)
    return SquareWave(mechanism.epsilon, mechanism.domain, fewer, half_width=mechanism.half_width, ramp=mechanism.ramp)


def _regroup(masses: Floats, cells: Ints, others: Ints) -> Floats:
    """The masses of other buckets, with people spread evenly within these."""
    below = np.interp(others, cells, np.concatenate([[0.0], np.cumsum(masses)]))
    return np.asarray(np.diff(below) / below[-1])


_LEAVES = 256
_KEPT = 64


def free_bands(mechanism: SquareWave, tally: Tally, found: Distribution) -> FreeBands:
    """Bands that hold for any distribution: the widest that a wave's reports leave possible; see `FreeBands`.

    The grid of reports is halved again and again, down to 256 leaves; every window of that tree may be used, and the
    level is shared out among all of them. Narrow windows hold few reports, so that their shares vary little and tell
    details; wide ones keep the sum of many from drifting. Programmes take the windows that tell most: one is halved
    further where the waves of many people begin or end, by `found`, which guides this choice and nothing else.
    """
    people = mechanism.people_counts(mechanism.own(tally))
    edges = mechanism.output_edges
    leaves = min(_LEAVES, len(edges) - 1)
    places = np.arange(leaves + 1) * (len(edges) - 1) // leaves
    held = np.concatenate([[0.0], np.cumsum(found.normal)])
    starts, ends = (np.interp(edges[places] - far, found.cells, held) for far in (0, mechanism.plateau))
    windows = places[_windows(leaves, starts + ends)]
    total = np.concatenate([[0], np.cumsum(tally.counts)])
    return FreeBands(
        domain=found.domain,
        cells=found.cells,
        masses=found.masses,
        outputs=mechanism.outputs,
        plateau=mechanism.plateau,
        ramp=mechanism.ramp,
        chance=mechanism.chance,
        windows=edges[windows],
        counts=total[windows[:, 1]] - total[windows[:, 0]],
        tested=2 * leaves - 2,
        reports=tally.weight,
        worth=None if tally.weight == tally.square == tally.people else float(people.sum()),
    )


def _windows(leaves: int, telling: Floats) -> Ints:
    """The windows that come from halving those that tell most, until there are 64 that were not halved.

    A window goes from one leaf's boundary to another's. `telling` grows over the boundaries by what the leaves tell.

    >>> _windows(4, np.array([0.0, 1.0, 1.0, 1.0, 1.0])).tolist()
    [[0, 2], [2, 4], [0, 1], [1, 2], [2, 3], [3, 4]]
    """
    found: list[tuple[int, int]] = []
    waiting = [(0.0, 0, leaves)] if leaves > 1 else []
    while waiting and len(found) < 2 * (_KEPT - 1):
        _, first, end = heapq.heappop(waiting)
        middle = first + (1 << ((end - first - 1).bit_length() - 1))
        for half in ((first, middle), (middle, end)):
            found.append(half)
            if half[1] - half[0] > 1:
                heapq.heappush(waiting, (telling[half[0]] - telling[half[1]], *half))
    return np.array(found, dtype=np.int64).reshape(-1, 2)


Assume = Literal["smooth", "nothing"]

_STILL_SMOOTH = 1 / 16
"""A fit with less of EMS's share than this says nothing about smoothness."""
_TEST_BUCKETS = 256


def assumed_bands(
    mechanism: SquareWave,
    tally: Tally,
    found: Distribution,
    assume: Assume = "smooth",
    replicates: int = SURVEYS,
    seed: int = 0,
) -> Bands:
    """The bands to show for what `mechanism.estimate(tally, ...)` found; `replace(found, bands=...)` attaches them.

    With "smooth" they are drawn by simulated surveys (`wave_bands`), unless the reports contradict a smooth
    distribution; then, and with "nothing", they are the widest that the reports leave possible (`free_bands`).

    >>> from veil import Interval
    >>> from veil.entropy import SeededForExperiments
    >>> wave = SquareWave(4.0, Interval(0, 1), buckets=64)
    >>> people = np.random.default_rng(1).beta(5, 2, 50_000)
    >>> for values in (people, people.round(1)):
    ...     tally = wave.tally(wave.randomize(values, SeededForExperiments(1)))
    ...     assumed_bands(wave, tally, wave.estimate(tally), replicates=20).kind
    'smooth'
    'free'
    """
    if check_assumption(assume) == "nothing":
        return free_bands(mechanism, tally, found)
    doubt = smoothness_doubt(mechanism, tally, found)
    if doubt.rough():
        return replace(free_bands(mechanism, tally, found), because=_because(doubt))
    return wave_bands(mechanism, tally, found, replicates, seed)


def smoothness_doubt(mechanism: SquareWave, tally: Tally, found: Distribution) -> Roughness:
    """Test whether the reports contradict a smooth distribution: the one found, or EMS with a 16th of its share.

    A fit that hardly smooths, or has spikes, agrees with rough reports: what is asked is whether a smooth one would.
    """
    counts, model = mechanism.people_counts(mechanism.own(tally)), found_model(found)
    coarse = coarse_wave(mechanism, _TEST_BUCKETS)
    nested = np.isin(coarse.output_edges[:-1], mechanism.output_edges)
    if nested.all():  # reports are counted in fewer buckets, where their boundaries are among those of the tally
        counts = np.add.reduceat(counts, np.searchsorted(mechanism.output_edges, coarse.output_edges[:-1]))
    else:
        coarse = mechanism
    coarser = (coarse.buckets / mechanism.buckets) ** 2
    least = neighbour_share(mechanism.buckets) * _STILL_SMOOTH
    tested = Model(max(model.share, least) * coarser)
    masses = reconstruct(coarse, counts, smoothing=tested)[0]
    return roughness(coarse, counts, masses, tested)


def check_assumption(assume: Assume) -> Assume:
    """What bands rest on, if it is one of the two."""
    if assume not in ("smooth", "nothing"):
        raise ParameterError('bands assume "smooth" or "nothing"')
    return assume


def _because(doubt: Roughness) -> str:
    """What the reports say against a smooth distribution."""
    if doubt.step is None:
        return "The reports contradict a smooth distribution."
    return f"The reports contradict a smooth distribution: people seem to hold multiples of {doubt.step:,g}."


def level_variances(levels: Sequence[Estimate]) -> list[float]:
    """What least squares weighs levels by: the variance of a value that nobody holds, the same for all of a level."""
    return [float(level.variance_at(np.zeros(1))[0]) for level in levels]


def level_bands(found: Distribution, tree: Tree, levels: Sequence[Estimate]) -> LevelBands:
    """Intervals from all levels below the root by least squares, where the total is 1; whatever method was shown."""
    values = [np.ones(1), *(level.frequencies for level in levels)]
    variances = level_variances(levels)
    unbiased = consistent(tree, values, [np.inf, *variances], total=1.0)[-1]
    likely = project(tree, values, [1.0, *(min(variances) / variance for variance in variances)])[-1]
    laws = [support_law(level.noise) for level in levels if isinstance(level.noise, SupportNoise)]
    return _bands(found, tree, levels, unbiased, likely, np.array(variances), laws)


def difference_bands(found: Distribution, tree: Tree, levels: Sequence[Coefficients]) -> LevelBands:
    """Intervals from the differences of a binary tree's pairs."""
    unbiased = from_differences(tree, [level.differences for level in levels])
    likely = project(tree, tree.sums(unbiased))[-1]
    laws = [differences_law(level.moment) for level in levels]
    return _bands(found, tree, levels, unbiased, likely, np.empty(0), laws)


def _bands(
    found: Distribution,
    tree: Tree,
    levels: Sequence[Estimate | Coefficients],
    unbiased: Floats,
    likely: Floats,
    variances: Floats,
    laws: list[list[float]],
) -> LevelBands:
    effective = np.array([level.effective for level in levels], dtype=np.float64)
    return LevelBands(
        domain=found.domain,
        cells=found.cells,
        masses=found.masses,
        branching=tree.branching,
        unbiased=unbiased,
        likely=likely,
        variances=variances,
        laws=np.array(laws),
        effective=effective,
        # in people without weights too, so that all levels together are the whole where everybody was asked
        population=float(effective.sum()) * found.population / found.n,
    )
