"""The sweep of every experiment: a number of each method at each point of an axis, run by run, and how methods compare.

Means, ratios, gaps and their standard errors are defined here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil_papers.common.exhibits import Curve, Panel, Watch

Floats = NDArray[np.float64]
Scores = dict[str, dict[str, float]]  # what one trial gives: for each score, a number of every method
Trial = Callable[[int, int], Scores]


@dataclass(frozen=True, eq=False)
class Sweep:
    """By method, one array of runs for each point of the axis. A run without a number is NaN.

    `paired` says that run i of every method saw the same people or reports. Then methods are compared over the runs
    that both have, and what the runs share cancels out; otherwise runs count as independent. The standard error of
    mean(a) - w mean(b) is the deviation of a - w b between paired runs over the root of their number, or else the root
    of the sum of both squares; a ratio takes w = mean(a) / mean(b), a gap w = 1. One run has no standard error (NaN).

    >>> sweep = Sweep((1.0,), {"a": [np.array([1.0, 3.0])], "b": [np.array([4.0, 4.0])]})
    >>> [part.tolist() for part in sweep.ratio("a", "b")]
    [[0.5], [0.25]]
    """

    x: tuple[float, ...]
    runs: Mapping[str, Sequence[Floats]]
    paired: bool = True

    def mean(self, name: str) -> Floats:
        """The mean of the runs, at every point; NaN where no run has a number."""
        return np.array([_mean(_known(row)) for row in self.runs[name]])

    def at(self, name: str, x: float) -> float:
        """The mean of the runs at one of the points."""
        return float(self.mean(name)[self.x.index(x)])

    def each_at(self, x: float) -> dict[str, float]:
        """The mean of every method at one of the points."""
        return {name: self.at(name, x) for name in self.runs}

    def error(self, name: str) -> Floats:
        """The standard error of the mean, at every point."""
        return np.array([_error(_known(row)) for row in self.runs[name]])

    def deviation(self, name: str) -> Floats:
        """The standard deviation between runs, at every point."""
        return self.error(name) * np.sqrt([len(_known(row)) for row in self.runs[name]])

    def ratio(self, name: str, other: str) -> tuple[Floats, Floats]:
        """How many times the other's mean, at every point, and its standard error."""
        pairs = [(mine, theirs, _mean(mine) / _mean(theirs)) for mine, theirs in self._both(name, other)]
        errors = [self._apart(mine, theirs, ratio) / _mean(theirs) for mine, theirs, ratio in pairs]
        return np.array([ratio for *_, ratio in pairs]), np.array(errors)

    def over(self, name: str, other: str) -> Floats:
        """How many times the other's mean, at every point."""
        return self.ratio(name, other)[0]

    def gap(self, name: str, other: str) -> tuple[Floats, Floats]:
        """How much more than the other's mean, at every point, and its standard error."""
        pairs = list(self._both(name, other))
        gaps = [_mean(mine) - _mean(theirs) for mine, theirs in pairs]
        return np.array(gaps), np.array([self._apart(mine, theirs, 1.0) for mine, theirs in pairs])

    def best(self, names: Iterable[str]) -> list[str]:
        """The method with the least mean, at every point."""
        means = {name: self.mean(name) for name in names}
        return [min(means, key=lambda name: means[name][i]) for i in range(len(self.x))]

    def over_best(self, name: str, names: Iterable[str]) -> tuple[Floats, Floats]:
        """How many times the least mean of these methods, at every point, with its standard error."""
        pairs = [(i, self.ratio(name, rival)) for i, rival in enumerate(self.best(names))]
        return np.array([ratio[i] for i, (ratio, _) in pairs]), np.array([error[i] for i, (_, error) in pairs])

    def surely_above(self, name: str, others: Iterable[str], most: float = 1.0) -> list[tuple[str, float]]:
        """Whom the mean exceeds by more than so many times and two standard errors, and where."""
        return [
            (other, at)
            for other in others
            for at, ratio, error in zip(self.x, *self.ratio(name, other), strict=True)
            if ratio - 2 * known(error) > most
        ]

    def at_places(self, places: Mapping[float, int]) -> Sweep:
        """Some of the points, on another axis: for each of its points the place here."""
        runs = {name: [rows[i] for i in places.values()] for name, rows in self.runs.items()}
        return Sweep(tuple(float(x) for x in places), runs, self.paired)

    def only(self, points: Collection[float]) -> Sweep:
        """The same at those of the points that were measured."""
        return self.at_places({at: i for i, at in enumerate(self.x) if at in points})

    def curve(self, name: str, *, faint: bool = False, spread: bool = True, theory: Sweep | None = None) -> Curve:
        """One method, to be drawn where it has numbers, with the standard deviation between runs and theory beside."""
        means, deviation = self.mean(name), self.deviation(name)
        shown = np.flatnonzero(np.isfinite(means))
        bars = tuple(deviation[shown].tolist()) if spread and np.isfinite(deviation[shown]).any() else None
        beside = None if theory is None else tuple(theory.mean(name)[shown].tolist())
        return Curve(name, tuple(self.x[i] for i in shown), tuple(means[shown].tolist()), bars, beside, faint)

    def panel(
        self, title: str, x_label: str, y_label: str, names: Iterable[str] | None = None, *,
        faint: Collection[str] = (), y_log: bool = True, marks: tuple[float, ...] = (), spread: bool = True,
        theory: Sweep | None = None,
    ) -> Panel:  # fmt: skip
        """The curves of some methods that have any numbers; those in `faint` are drawn dashed."""
        chosen = self.runs if names is None else [name for name in names if name in self.runs]
        curves = (self.curve(name, faint=name in faint, spread=spread, theory=theory) for name in chosen)
        return Panel(title, x_label, y_label, tuple(curve for curve in curves if curve.x), y_log=y_log, marks=marks)

    def _both(self, name: str, other: str) -> Iterator[tuple[Floats, Floats]]:
        for mine, theirs in zip(self.runs[name], self.runs[other], strict=True):
            if self.paired:
                count = min(len(mine), len(theirs))
                found = np.isfinite(mine[:count]) & np.isfinite(theirs[:count])
                yield mine[:count][found], theirs[:count][found]
            else:
                yield _known(mine), _known(theirs)

    def _apart(self, mine: Floats, theirs: Floats, weight: float) -> float:
        """The standard error of mean(mine) - weight * mean(theirs)."""
        if self.paired:
            return _error(mine - weight * theirs)
        return float(np.hypot(_error(mine), weight * _error(theirs)))


def measure(
    title: str, watch: Watch, x: Sequence[float], runs: int | Sequence[int], trial: Trial, *, paired: bool = True
) -> dict[str, Sweep]:
    """Return a sweep for every score, with the same number of runs everywhere, or one number for each point.

    `trial(place, run)` seeds itself by both; methods may be left out of some trials. `watch` shows progress under the
    title.
    """
    at = [runs] * len(x) if isinstance(runs, int) else list(runs)
    found: dict[str, dict[str, list[list[float]]]] = {}
    with watch(title, sum(at)) as advance:
        for run in range(max(at)):
            for place in (i for i, most in enumerate(at) if run < most):
                for score, by_method in trial(place, run).items():
                    for name, number in by_method.items():
                        found.setdefault(score, {}).setdefault(name, [[] for _ in x])[place].append(number)
                advance(1)
    rows = {
        score: {name: [np.array(row, np.float64) for row in of] for name, of in by.items()}
        for score, by in found.items()
    }
    return {score: Sweep(tuple(float(point) for point in x), by, paired) for score, by in rows.items()}


def across(found: Mapping[str, Sweep], scores: Mapping[float, str], at: float) -> Sweep:
    """What several scores are at one point, as a sweep over another axis: by its points, the names of the scores."""
    chosen = [found[score] for score in scores.values()]
    runs = {name: [sweep.runs[name][sweep.x.index(at)] for sweep in chosen] for name in chosen[0].runs}
    return Sweep(tuple(float(point) for point in scores), runs, chosen[0].paired)


def known(error: float) -> float:
    """A standard error, 0 where there is none: a single run is taken at its word."""
    return 0.0 if np.isnan(error) else float(error)


def _known(row: Floats) -> Floats:
    return row[np.isfinite(row)]


def _mean(row: Floats) -> float:
    return float(row.mean()) if len(row) else float("nan")


def _error(row: Floats) -> float:
    return float(row.std(ddof=1) / np.sqrt(len(row))) if len(row) > 1 else float("nan")
