"""Errors of several methods at the points of an axis, run by run, and how they compare: in numbers and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil_papers.common.exhibits import Claim, Curve

__all__ = ["Errors", "known", "mostly", "not_above", "with_error"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Errors:
    """By method, one array a point of the axis: the errors of its runs. Methods may have different numbers of runs.

    >>> errors = Errors((1.0,), {"a": [np.array([1.0, 3.0])], "b": [np.array([4.0, 4.0])]})
    >>> [part.tolist() for part in errors.ratio("a", "b")]
    [[0.5], [0.25]]
    """

    x: tuple[float, ...]
    runs: dict[str, list[Floats]]

    @classmethod
    def of(cls, x: Sequence[float], found: Sequence[dict[str, Floats]]) -> Errors:
        """From what was measured at each point."""
        return cls(tuple(float(at) for at in x), {name: [at[name] for at in found] for name in found[0]})

    def mean(self, name: str) -> Floats:
        """The mean of the runs, at every point."""
        return np.array([errors.mean() for errors in self.runs[name]])

    def deviation(self, name: str) -> Floats:
        """The standard deviation between runs; nothing is known of a single one."""
        return np.array([errors.std(ddof=1) if len(errors) > 1 else np.nan for errors in self.runs[name]])

    def standard_error(self, name: str) -> Floats:
        """Of the mean."""
        return self.deviation(name) / np.sqrt([len(errors) for errors in self.runs[name]])

    def ratio(self, name: str, other: str) -> tuple[Floats, Floats]:
        """How many times the other's mean, at every point, and its standard error as if the runs were independent.

        They are, but for methods that read the same reports, whose ratios are known better than this.
        """
        ours, theirs = self.mean(name), self.mean(other)
        parts = [self.standard_error(of) / mean for of, mean in ((name, ours), (other, theirs))]
        return ours / theirs, ours / theirs * np.hypot(*parts)

    def best(self, names: Sequence[str]) -> list[str]:
        """The method with the least mean, at every point."""
        return [min(names, key=lambda name: self.mean(name)[i]) for i in range(len(self.x))]

    def over_best(self, name: str, names: Sequence[str]) -> tuple[Floats, Floats]:
        """How many times the least mean of these methods, at every point, with its standard error."""
        pairs = [self.ratio(name, rival) for rival in self.best(names)]
        return tuple(np.array([pair[part][i] for i, pair in enumerate(pairs)]) for part in (0, 1))  # type: ignore[return-value]

    def surely_above(self, name: str, names: Sequence[str], most: float = 1.0) -> list[float]:
        """Where the mean is more than so many times that of one of these, by more than two standard errors."""
        found = set()
        for other in names:
            ratio, error = self.ratio(name, other)
            found |= {at for at, r, e in zip(self.x, ratio, error, strict=True) if r - 2 * known(e) > most}
        return sorted(found)

    def only(self, x: float) -> Errors:
        """The same at one of the points."""
        place = self.x.index(x)
        return Errors((x,), {name: [runs[place]] for name, runs in self.runs.items()})

    def curve(self, name: str, *, faint: bool = False) -> Curve:
        """One method, to be drawn, with the standard deviation between runs."""
        several = all(len(errors) > 1 for errors in self.runs[name])
        bars = tuple(self.deviation(name).tolist()) if several else None
        return Curve(name, self.x, tuple(self.mean(name).tolist()), bars, faint=faint)


def with_error(value: float, error: float) -> str:
    """A ratio with its standard error, where there is one.

    >>> with_error(0.5, 0.0123), with_error(0.5, 0.00123), with_error(0.5, float("nan"))
    ('0.50 \N{PLUS-MINUS SIGN} 0.01', '0.500 \N{PLUS-MINUS SIGN} 0.001', '0.50')
    """
    digits = 3 if error < 0.005 else 2
    return f"{value:.2f}" if np.isnan(error) else f"{value:.{digits}f} \N{PLUS-MINUS SIGN} {error:.{digits}f}"


def known(error: float) -> float:
    """A standard error, 0 where there is none: a single run is taken at its word."""
    return 0.0 if np.isnan(error) else error


def not_above(
    errors: Errors, name: str, others: Sequence[str], says: str, *, most: float = 1.0, axis: str = "eps"
) -> Claim:
    """A method is at most so many times as far off as each of the others, at every point."""
    ratio, error = errors.over_best(name, others)
    best = errors.best(others)
    against = f" {others[0]}" if len(others) == 1 else " the best other"
    told = ", ".join(
        f"{with_error(r, e)} ({axis} = {at:.3g}{'' if len(others) == 1 else ', ' + rival})"
        for at, r, e, rival in zip(errors.x, ratio, error, best, strict=True)
    )
    return Claim(says, f"{name} over{against}: {told}", not errors.surely_above(name, others, most))


def mostly(sets: dict[str, Errors], labels: Sequence[str], name: str, says: str, names: Sequence[str]) -> Claim:
    """A method has the least mean in more than half of the cases, a case being a set and a point."""
    best = Counter(winner for label in labels for winner in sets[label].best(names))
    worst = max((ratio, label) for label in labels for ratio in sets[label].over_best(name, names)[0])
    told = ", ".join(f"{winner} in {count}" for winner, count in best.most_common())
    return Claim(
        f"{says} (here: in more than half of the {best.total()} cases)",
        f"lowest are {told}; {name} has at most {worst[0]:.2f} times the lowest ({worst[1]})",
        2 * best[name] > best.total(),
    )
