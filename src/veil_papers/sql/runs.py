"""Who is asked, which queries are drawn, and how far the thesis's designs are off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil_papers.common.exhibits import Setting
from veil_papers.common.sweep import Sweep
from veil_papers.datasets import Census, Tabular, census_like
from veil_papers.sql.law import Box, Design, People, Taken, answers, cells_taken, height, levels_taken, quads_taken

Floats = NDArray[np.float64]
Generator = np.random.Generator

SEED = 15
SOURCES: dict[str, Census] = {"Adult": "adult", "CPS": "cps"}


class M:
    """The designs, by the names of the thesis and ours."""

    HIO, HI, MG, SC, QUAD = "HIO", "HI", "MG", "SC", "QuadTree"
    OURS, GRIDS, AUTO = "HIO, all levels (ours)", "HDG", "auto (ours)"


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch, self.data = setting.pick, setting.watch, setting.data
        self.people, self.queries, self.runs = pick(1_000_000, 50_000), pick(30, 8), pick(50, 5)
        self.volumes: Sequence[float] = pick((0.01, 0.05, 0.1, 0.25, 0.5, 0.8), (0.01, 0.1, 0.8))
        self.epsilons: Sequence[float] = pick((0.5, 1.0, 2.0, 3.0, 4.0, 5.0), (1.0, 2.0))
        self.sizes: Sequence[int] = pick((100_000, 200_000, 500_000, 1_000_000, 2_000_000), (20_000, 50_000))
        self.collections = pick(5, 1)  # of real reports
        self.read_runs, self.several_runs = pick(20, 2), pick(5, 1)
        self.several: Sequence[str] = pick(("CPS", "normal"), ("normal",))
        self.workload = pick(12, 3)  # queries of each number of dimensions that `auto` looks at
        self.sc_one_in = pick(3, 8)
        self.many_people = pick(1_000_000, 200_000)  # with 4+4 dimensions there are 9,999 groups to be filled
        self.selectivities: Sequence[float] = pick((0.05, 0.1, 0.2, 0.5, 0.8), (0.1, 0.5, 0.8))
        self.practice_epsilons: Sequence[float] = pick((2.0, 5.0), (2.0,))
        self.powers: Sequence[int] = pick((2, 3, 4, 5), (2, 4))
        self.table_epsilons: Sequence[float] = (0.5, 1.0, 2.0, 5.0)
        self.lines = pick(5_000_000, 200_000)
        vars(self).update(setting.changes)


def census(plan: Plan, name: str, ordinal: Sequence[int], categorical: int = 0, people: int | None = None) -> Tabular:
    """People of one of the censuses, resampled."""
    table = census_like(plan.data, source=SOURCES[name], ordinal=ordinal, categorical=categorical)
    return table.resample(people or plan.people, SEED)


def boxes(sizes: Sequence[int], volume: float, count: int, rng: Generator) -> list[Box]:
    """Random boxes of about this volume, with the same share of every dimension."""
    share = volume ** (1 / len(sizes))
    found: list[Box] = []
    for _ in range(count):
        widths = [max(round(size * share), 1) for size in sizes]
        starts = [int(rng.integers(size - width + 1)) for size, width in zip(sizes, widths, strict=True)]
        found.append(tuple((start, start + width) for start, width in zip(starts, widths, strict=True)))
    return found


# -- the thesis's designs, by their law --------------------------------------------------------------------------------

Way = tuple[Design, Callable[[Box, Sequence[int]], list[Taken]]]


def ways(epsilon: float, sizes: Sequence[int], names: Iterable[str]) -> dict[str, Way]:
    """How each of the designs asks people of a schema of ordinal dimensions, and what it takes for a box."""
    groups = math.prod(height(size) + 1 for size in sizes) - 1  # nobody is asked about the root of all
    known: dict[str, Way] = {
        M.HIO: (Design(M.HIO, epsilon, groups), levels_taken),
        M.HI: (Design(M.HI, epsilon / groups, 1), levels_taken),
        M.MG: (Design(M.MG, epsilon, 1), cells_taken),
        M.QUAD: (Design(M.QUAD, epsilon, height(sizes[0], 2)), quads_taken),
    }
    return {name: known[name] for name in names}


@dataclass(frozen=True, eq=False)
class Point:
    """One point of a figure: who is asked, with which eps, for boxes of which volume."""

    x: float
    people: People
    epsilon: float
    volume: float


def sweep(points: Sequence[Point], names: Sequence[str], plan: Plan, title: str, place: int) -> Sweep:
    """The mean normalised absolute error (7.5) of each design: over the queries, in each collection."""
    found: dict[str, list[Floats]] = {name: [] for name in names}
    with plan.watch(title, len(points)) as advance:
        for number, point in enumerate(points):
            rng = np.random.default_rng([SEED, place, number])
            asked = boxes(point.people.sizes, point.volume, plan.queries, rng)
            for name, (design, take) in ways(point.epsilon, point.people.sizes, names).items():
                errors = []
                for box in asked:
                    estimates = answers(design, point.people, take(box, point.people.sizes), plan.runs, rng)
                    errors.append(np.abs(estimates - point.people.truth(box)[1]) / point.people.total)
                found[name].append(np.mean(errors, axis=0))
            advance(1)
    return Sweep(tuple(point.x for point in points), found, paired=False)


def by_volume(people: People, epsilon: float, volumes: Sequence[float]) -> list[Point]:
    """Points by volume."""
    return [Point(volume, people, epsilon, volume) for volume in volumes]


def by_epsilon(people: People, epsilons: Sequence[float], volume: float) -> list[Point]:
    """Points by eps."""
    return [Point(epsilon, people, epsilon, volume) for epsilon in epsilons]


def by_people(people: Mapping[int, People], epsilon: float, volume: float) -> list[Point]:
    """Points by the number of people."""
    return [Point(float(n), some, epsilon, volume) for n, some in people.items()]
