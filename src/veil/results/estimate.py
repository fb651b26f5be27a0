"""What comes out for the analyst: unbiased frequencies with an honest error bar. Nothing is clipped here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain
from veil.errors import DomainError, ParameterError
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.noise import Noise
from veil.results.units import Column, Unit, make_table, value_unit
from veil.tools.arguments import is_int
from veil.tools.normal import critical, two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

__all__ = ["Estimate", "Row", "Total"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One value of an estimate, with its 95 % interval."""

    value: Any
    frequency: float
    count: float
    stderr: float
    low: float
    high: float
    selected_low: float = float("nan")
    selected_high: float = float("nan")


@dataclass(frozen=True)
class Total:
    """The frequency of a set of values."""

    frequency: float
    stderr: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the set's frequency."""
        reach = two_sided(level) * self.stderr
        return self.frequency - reach, self.frequency + reach


@dataclass(frozen=True, eq=False)
class Estimate(Result):
    """Unbiased frequencies of the candidates among all people of the survey.

    `n` people answered the question, out of `population`: where these differ (a share of the people was asked), the
    variance includes that of the sample. `scale` is the view's (padding-and-sampling). `effective` is n, or with
    weights W^2 / sum of squares. `mass` is what frequency 1 stands for: people, or the sum of the weights.
    """

    kind: ClassVar[str] = "frequencies"
    domain: Domain
    frequencies: Floats
    n: int
    noise: Noise
    population: int
    mass: float
    effective: float
    scale: float = 1.0
    candidates: NDArray[Any] | None = None
    lineage: tuple[str, ...] = field(default=())
    whole: bool = True
    """Whether no value of the domain was left out."""
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.frequencies)

    def __repr__(self) -> str:
        return f"Estimate({len(self)} values from {self.n} people, {' > '.join(self.lineage)})"

    @cached_property
    def values(self) -> list[Any]:
        """The candidates' labels, in the order of `frequencies`."""
        codes = np.arange(len(self), dtype=np.uint64) if self.candidates is None else self.candidates
        return self.domain.decode(codes)

    @property
    def shown(self) -> Floats:
        """What answers about single values are: the frequencies, but for a rule that bends answers."""
        return self.bend(self.frequencies)

    def bend(self, answers: Floats) -> Floats:
        """What a rule for answers (Post-Pos) makes of sums of frequencies; the same without such a rule."""
        return answers

    @property
    def counts(self) -> Floats:
        """Frequencies in people (or in units of weight)."""
        return self.shown * self.mass

    @property
    def adds_up(self) -> bool:
        """Whether the true frequencies add up to one: every person holds one value, and all values are here."""
        return self.whole and self.candidates is None and self.scale == 1.0

    @cached_property
    def variance(self) -> Floats:
        """Variance of each frequency: the oracle's noise (3.2), the view's sampling and the share's sampling."""
        return self.variance_at(self.frequencies)

    def variance_at(self, frequencies: Floats) -> Floats:
        """The variance that an estimate has where these are the true frequencies."""
        shares = np.clip(frequencies / self.scale, 0.0, 1.0)  # the variance's plug-in, not the estimate
        return np.asarray(self.scale**2 * (self.noise.variance(shares) / self.effective + self._sampling(shares)))

    def _sampling(self, shares: Any) -> Any:
        """Variance of a shown share through what was left to chance before the mechanism."""
        view = shares * (1 - 1 / self.scale) / self.effective
        held = np.minimum(shares * self.scale, 1.0)
        rest = max(self.population - self.n, 0) / max(self.population - 1, 1)
        return view + held * (1 - held) * rest / self.effective / self.scale**2

    @property
    def stderr(self) -> Floats:
        """Standard error of each frequency."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> Floats:
        """A confidence interval for each frequency: an array of (low, high)."""
        reach = two_sided(level) * self.stderr
        return np.stack([self.frequencies - reach, self.frequencies + reach], axis=1)

    def top(self, k: int) -> list[Row]:
        """The k values with the largest estimates, largest first; NaN for errors where no noise law is known."""
        if not is_int(k) or k < 1:
            raise ParameterError("top(k) needs an integer k of at least 1")
        return self._rows(np.argsort(-self.frequencies, kind="stable")[:k])

    def at(self, value: Any) -> Row:
        """One value, with its 95 % interval."""
        return self._rows(self._positions(self.domain.encode([value])))[0]

    def above(self, frequency: float) -> list[Row]:
        """The values estimated above a frequency, largest first."""
        order = np.argsort(-self.frequencies, kind="stable")
        return self._rows(order[self.shown[order] > frequency])

    def threshold(self, alpha: float = 0.05) -> float:
        """The significance threshold (3.13): an absent value exceeds it with probability alpha / candidates."""
        if not 0 < alpha < 1:
            raise ParameterError("alpha lies between 0 and 1")
        star = self.scale**2 * self.noise.variance(0.0) / self.effective
        return critical(alpha / len(self)) * float(np.sqrt(star))

    def significant(self, alpha: float = 0.05) -> list[Row]:
        """The values above the significance threshold, largest first.

        With probability 1 - alpha or more, none of them is a value that nobody holds.
        """
        return self.above(self.threshold(alpha))

    def total(self, subset: Any) -> Total:
        """The frequency of a set of values, with the exact variance of the sum.

        Behind padding-and-sampling it is the frequency with which items of the set are held, added up over them, and
        the variance is a bound: whether the same people hold them is not known.
        """
        return self._total(self.positions(subset))

    def answer(self, rows: NDArray[np.int64]) -> float:
        """The frequency of the values at these places, together."""
        return float(self.bend(self.frequencies[rows].sum()))

    def _total(self, rows: NDArray[np.int64]) -> Total:
        frequency = self.answer(rows)
        return Total(frequency, float(np.sqrt(self._total_variance(len(rows), frequency))))

    def _total_variance(self, values: int, frequency: float) -> float:
        """Variance of a sum over `values` values, where that is what they add up to."""
        share = min(max(frequency / self.scale, 0.0), 1.0)
        noise = self.noise.total_variance(values, share) / self.effective
        return self.scale**2 * float(noise + self._sampling(share))

    def positions(self, subset: Any) -> NDArray[np.int64]:
        """Where the different values of a set stand in `frequencies`."""
        return self._positions(np.unique(self.domain.encode(subset), axis=0))

    def post(self, name: str, **options: Any) -> Estimate:
        """What a post-processing method makes of it, by name: see `veil.post`, or `veil post`.

        >>> from veil import OLH, simulate
        >>> estimate = simulate(OLH(epsilon=1.0, domain=4), [0] * 700 + [1] * 300, seed=1)
        >>> estimate.post("norm-sub").lineage
        ('OLH(epsilon=1)', 'norm-sub')
        """
        from veil.post import method

        made: Estimate = method(name)(self, **options)
        return made

    # -- one row per value --------------------------------------------------------------------------------------------

    def columns(self, level: float = 0.95) -> dict[str, Column]:
        """value, frequency, count, stderr, low and high; NaN where no noise law is known."""
        errors, bounds = self._errors(level)
        share = Unit("share")
        return {
            "value": (self.values, value_unit(self.domain)),
            "frequency": (self.shown, share),
            "count": (self.counts, Unit("people")),
            "stderr": (errors, share),
            "low": (bounds[:, 0], share),
            "high": (bounds[:, 1], share),
        }

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """Every value in the order of `frequencies`; `significant` where it is above the threshold for 1 - level."""
        return make_table({**self.columns(level), "significant": (self._significant(level), Unit("flag"))})

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many values there are, the significance threshold, and how many are above it."""
        threshold = self._least(level)
        found = None if threshold is None else sum(map(bool, self._significant(level)))
        return {"values": len(self), "threshold": threshold, "significant": found}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"values": Unit("people"), "threshold": Unit("share"), "significant": Unit("people")}

    def remarks(self) -> list[str]:
        return [] if self.noise.known else ["No noise law is known: there are no intervals and no significance."]

    @property
    def _judged(self) -> Estimate:
        """What significance is decided by."""
        return self

    def _least(self, level: float) -> float | None:
        known = self.noise.known and len(self)
        return self._judged.threshold(round(1 - level, 12)) if known else None

    def _significant(self, level: float) -> list[bool | None]:
        threshold = self._least(level)
        return [None] * len(self) if threshold is None else (self._judged.shown > threshold).tolist()

    def _importance(self) -> NDArray[np.int64]:
        return np.argsort(-self.frequencies, kind="stable")

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows(np.arange(len(self))))

    def __getitem__(self, value: Any) -> Row:
        return self.at(value)

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The k largest values with 95 % intervals, beside the truth where it is known. Needs `veil[plot]`."""
        from veil.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)

    def of(self, values: Domain) -> Estimate:
        """The same estimate for the values of another domain only: its codes come first, what follows is left out."""
        if values == self.domain:
            return self
        kept = slice(0, values.size) if self.candidates is None else self.candidates < values.size
        candidates = None if self.candidates is None else self.candidates[kept]
        whole = self.whole and values.size == self.domain.size
        return replace(self, domain=values, frequencies=self.frequencies[kept], candidates=candidates, whole=whole)

    def _positions(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        if self.candidates is None:
            return codes.astype(np.int64)
        where = {code.tobytes(): i for i, code in enumerate(self.candidates)}
        found = [where.get(code.tobytes(), -1) for code in codes]
        if -1 in found:
            raise DomainError("a subset may name only values that were among the candidates")
        return np.array(found, dtype=np.int64)

    def _rows(self, order: NDArray[Any]) -> list[Row]:
        codes = order.astype(np.uint64) if self.candidates is None else self.candidates[order]
        shown, counts, (errors, bounds) = self.shown, self.counts, self._errors()
        return [
            Row(value, float(shown[i]), float(counts[i]), float(errors[i]), *map(float, bounds[i]))
            for i, value in zip(order, self.domain.decode(codes), strict=True)
        ]

    def _errors(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Standard errors and intervals for tables, which leave them open where no noise law is known."""
        if not self.noise.known:
            two_sided(level)  # refuses a bad level all the same
            return np.full(len(self), np.nan), np.full((len(self), 2), np.nan)
        return self.stderr, self.interval(level)
