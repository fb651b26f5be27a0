"""Claims as predicates over a sweep: each gives the paper's sentence with what was measured and its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veil_papers.common.exhibits import Claim, brief
from veil_papers.common.sweep import Sweep, known

Shown = str | Callable[[float], str]  # how a number is shown: a format, or a function
Sweeps = Mapping[str, Sweep]
PM = "\N{PLUS-MINUS SIGN}"


def with_error(value: float, error: float) -> str:
    """A ratio with its standard error, where there is one.

    >>> with_error(0.5, 0.0123), with_error(0.5, 0.00123), with_error(0.5, float("nan"))
    ('0.50 \N{PLUS-MINUS SIGN} 0.01', '0.500 \N{PLUS-MINUS SIGN} 0.001', '0.50')
    """
    digits = 3 if error < 0.005 else 2
    return f"{value:.2f}" if np.isnan(error) else f"{value:.{digits}f} {PM} {error:.{digits}f}"


def show(value: float, shown: Shown = ".2f") -> str:
    """A number in words."""
    return shown(value) if callable(shown) else f"{value:{shown}}"


def each(values: Mapping[str, float], shown: Shown = ".2f") -> str:
    """Numbers with their names.

    >>> each({"a": 1.0, "b": 0.256})
    'a 1.00, b 0.26'
    """
    return ", ".join(f"{name} {show(value, shown)}" for name, value in values.items())


def by_point(x: Iterable[float], values: Iterable[float], shown: Shown = ".2f", axis: str = "eps") -> str:
    """Numbers with the points that they were measured at.

    >>> by_point((1.0, 2.0), (0.5, 0.25))
    '0.50 (eps = 1), 0.25 (eps = 2)'
    """
    return ", ".join(f"{show(value, shown)} ({axis} = {at:.4g})" for at, value in zip(x, values, strict=True))


def span(values: Iterable[float], shown: Shown = ".2f") -> str:
    """The least and the largest."""
    found = [float(value) for value in values]
    return f"{show(min(found), shown)} to {show(max(found), shown)}"


@dataclass(frozen=True)
class Says:
    """A sentence of the paper, or of ours, to be held against what was measured: each predicate gives a Claim.

    >>> Says("PGR stays within 1.10 of OUE").given("at most 1.04", 1.04 <= 1.10)
    Claim(says='PGR stays within 1.10 of OUE', measured='at most 1.04', holds=True, exact=False)
    """

    sentence: str

    def given(self, measured: str, holds: bool | np.bool_) -> Claim:
        """It holds or not, for reasons that no predicate below has a name for."""
        return Claim(self.sentence, measured, bool(holds))

    def exactly(self, measured: str, holds: bool | np.bool_) -> Claim:
        """The same without any chance."""
        return Claim(self.sentence, measured, bool(holds), exact=True)

    def ratio_within(
        self, sweeps: Sweeps, pair: tuple[str, str], low: float, high: float, shown: Shown = ".2f", more: str = ""
    ) -> Claim:
        """A method's mean over another's lies between two bounds, at every point of every sweep."""
        found = {label: sweep.over(*pair) for label, sweep in sweeps.items()}
        told = "; ".join(f"{label} {span(ratio, shown)}" for label, ratio in found.items())
        right = all(low <= ratio.min() and ratio.max() <= high for ratio in found.values())
        return self.given(f"{pair[0]} over {pair[1]}: {told}{more}", right)

    def not_above(self, sweep: Sweep, name: str, others: Iterable[str], most: float = 1.0, axis: str = "eps") -> Claim:
        """A method has at most so many times the mean of each other, at every point, up to two standard errors."""
        rivals = [other for other in others if other != name]
        alone, best = len(rivals) == 1, sweep.best(rivals)
        told = ", ".join(
            f"{with_error(ratio, error)} ({axis} = {at:.3g}{'' if alone else ', ' + rival})"
            for at, ratio, error, rival in zip(sweep.x, *sweep.over_best(name, rivals), best, strict=True)
        )
        against = rivals[0] if alone else "the best other"
        return self.given(f"{name} over {against}: {told}", not sweep.surely_above(name, rivals, most))

    def times_above(
        self, sweep: Sweep, name: str, other: str, times: float, shown: Shown = ".2f", axis: str = "eps"
    ) -> Claim:
        """Claim that a method has at least `times` the mean of another at every point, up to two standard errors."""
        ratio, error = sweep.ratio(name, other)
        right = all(r + 2 * known(e) >= times for r, e in zip(ratio, error, strict=True))
        return self.given(f"{name} over {other}: {by_point(sweep.x, ratio, shown, axis)}", right)

    def same(self, sweep: Sweep, name: str, other: str, room: float, axis: str = "eps") -> Claim:
        """Claim that two methods have the same mean at every point, within three standard errors and `room`."""
        gap, error = (np.nan_to_num(part) for part in sweep.gap(name, other))
        told = (
            f"{each(sweep.each_at(x), '.3f')} (gap {g:+.3f} {PM} {e:.3f})"
            for x, g, e in zip(sweep.x, gap, error, strict=True)
        )
        points = ", ".join(f"{x:g}" for x in sweep.x)
        return self.given(f"{axis} = {points}: {'; '.join(told)}", (abs(gap) <= 3 * error + room).all())

    def not_below(self, sweeps: Iterable[Sweep], name: str, rivals: Iterable[str]) -> Claim:
        """No rival has a larger mean than the method at any point, by two standard errors."""
        gaps = [
            (gap, 2 * known(error), f"{rival} at {at:g} ({gap:+.3f} {PM} {error:.3f})")
            for sweep in sweeps
            for rival in rivals
            if rival in sweep.runs
            for at, gap, error in zip(sweep.x, *sweep.gap(rival, name), strict=True)
            if np.isfinite(gap)
        ]
        lost = ", ".join(told for gap, room, told in gaps if gap > room)
        return self.given(f"better: {lost}" if lost else f"rivals are ahead by at most {max(gaps)[0]:+.3f}", not lost)

    def mostly(self, sets: Sweeps, name: str, names: Sequence[str]) -> Claim:
        """A method has the least mean in more than half of the cases, a case being a set and a point."""
        best = Counter(winner for sweep in sets.values() for winner in sweep.best(names))
        worst, where = max((ratio, label) for label, sweep in sets.items() for ratio in sweep.over_best(name, names)[0])
        told = ", ".join(f"{winner} in {count}" for winner, count in best.most_common())
        return Says(f"{self.sentence} (here: in more than half of the {best.total()} cases)").given(
            f"lowest are {told}; {name} has at most {worst:.2f} times the lowest ({where})",
            2 * best[name] > best.total(),
        )

    def moves(self, sweeps: Sweeps, name: str | None, *, rises: bool, shown: Shown = brief) -> Claim:
        """From the first point to the last the mean of a method, or of all, rises or falls; one point shows nothing."""
        told, right = [], True
        for label, sweep in sweeps.items():
            for of in sweep.runs if name is None else (name,):
                first, last = sweep.mean(of)[0], sweep.mean(of)[-1]
                told.append(f"{of if name is None else label} {show(first, shown)} to {show(last, shown)}")
                right = right and bool((last > first if rises else last < first) or len(sweep.x) == 1)
        return self.given("; ".join(told), right)

    def reaches(self, sweep: Sweep, name: str, x: float, least: float, more: str = "") -> Claim:
        """The mean at a point is at least so much."""
        mean, place = sweep.at(name, x), sweep.x.index(x)
        error, runs = sweep.error(name)[place], len(sweep.runs[name][place])
        off = "one run" if np.isnan(error) else f"{PM} {error:.3f}, standard error of {runs} runs"
        return self.given(f"{mean:.3f} ({off}){more}", mean >= least)
