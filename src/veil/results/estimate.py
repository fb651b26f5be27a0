"""Estimates: unbiased frequencies of values with their errors. Nothing is clipped here."""

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
from veil.results.base import Result, Truth, with_picked
from veil.results.codec import SOMETIMES
from veil.results.laws import (
    FakeLaw,
    Inversion,
    Noise,
    SupportLaw,
    SupportNoise,
    check_inversion,
    heaviest_deviation,
    score_interval,
    weighted_interval,
)
from veil.results.units import Column, Unit, make_table, value_unit
from veil.tools.numbers import alpha_of, is_int, is_number, selected_level, two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One value of an estimate, with its 95 % interval.

    Where rows were picked out of many for being large, low and high hold for what was picked: 95 % of these intervals
    cover. `alone_low` and `alone_high` hold for this value if it was in mind before: they are narrower, and the same
    where nothing was picked.
    """

    value: Any
    frequency: float
    count: float
    stderr: float
    low: float
    high: float
    alone_low: float
    alone_high: float


@dataclass(frozen=True)
class Total:
    """The frequency of a set of so many `values` of an estimate."""

    frequency: float
    stderr: float
    estimate: Estimate
    values: int

    def interval(self, level: float = 0.95, kind: Inversion = "mid-p") -> tuple[float, float]:
        """A confidence interval for the set's frequency."""
        return self.estimate._total_interval(self.values, self.frequency, level, check_inversion(kind))


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
    tested: int | None = field(default=None, kw_only=True)
    """How many values were tested to find these: all that a search ever tried; as many as there are, unless given."""
    guarantee: Guarantee | None = field(default=None, kw_only=True)
    fakes: FakeLaw | None = field(default=None, kw_only=True, metadata=SOMETIMES)
    """Uniform reports that were among those of people: already removed from the frequencies, still in their error."""

    def __len__(self) -> int:
        return len(self.frequencies)

    def __repr__(self) -> str:
        return f"Estimate({len(self)} values from {self.n} reports, {' > '.join(self.lineage)})"

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
        scatter = self.noise.variance(shares) / self.effective + self._sampling(shares) + self.fake_variance()
        return np.asarray(self.scale**2 * scatter)

    def fake_variance(self, values: int = 1) -> float:
        """Variance of a shown share, or of a sum over so many values, through the fakes; 0 where there are none."""
        if self.fakes is None or not isinstance(self.noise, SupportNoise):
            return 0.0
        return self.fakes.variance(values) / (self.n * float(self.noise.p - self.noise.q)) ** 2

    def _sampling(self, shares: Any) -> Any:
        """Variance of a shown share through what was left to chance before the mechanism."""
        view = shares * (1 - 1 / self.scale) / self.effective
        held = np.minimum(shares * self.scale, 1.0)
        return view + held * (1 - held) * self._rest / self.effective / self.scale**2

    @property
    def stderr(self) -> Floats:
        """Standard error of each frequency."""
        return np.sqrt(self.variance)

    # -- intervals -----------------------------------------------------------------------------------------------------

    def interval(self, level: float = 0.95, kind: Inversion = "mid-p") -> Floats:
        """A confidence interval for each frequency: an array of (low, high), within 0 and 1.

        By inversion of the law of supports, see `veil.results.laws`: all frequencies for which what was received is not
        too surprising. `kind` is "mid-p", "exact" (never below its level) or "normal" (to compare with: so many
        standard errors to either side, also beyond 0 and 1).

        >>> from veil import GRR, simulate
        >>> few = simulate(GRR(epsilon=4.0, domain=3), [0] * 60 + [1] * 40, seed=1)
        >>> few.interval().round(2).tolist()
        [[0.57, 0.63], [0.38, 0.43], [0.0, 0.02]]
        """
        return self._intervals(self.frequencies, level, check_inversion(kind))

    def selected_interval(self, selected: int, level: float = 0.95) -> Floats:
        """Intervals for values that were selected, so many out of all that were tested, for being large.

        Benjamini and Yekutieli (2005): with intervals of level 1 - (1 - level) selected / tested, the expected share of
        those that do not cover is at most 1 - level among the selected ones, where the largest are selected.
        """
        return self._errors(np.arange(len(self)), selected_level(level, selected, self._tested))[1]

    @property
    def _tested(self) -> int:
        return len(self) if self.tested is None else self.tested

    def _intervals(self, frequencies: Floats, level: float, kind: Inversion) -> Floats:
        """Intervals around these of the frequencies."""
        if kind == "normal":
            reach = two_sided(level) * np.sqrt(self.variance_at(frequencies))
            low, high = frequencies - reach, frequencies + reach
        elif self._law is not None and self._weighted:
            law = self._law
            low, high = weighted_interval(frequencies, self.n, self.effective, law.p, law.q, self._rest, level)
        elif self._law is not None:
            low, high = self._law.shares(self._law.supports(frequencies), level, kind)
        else:
            parabola = [self.variance_at(np.full(len(frequencies), share)) for share in (0.0, 0.5, 1.0)]
            low, high = score_interval(frequencies, (parabola[0], parabola[1], parabola[2]), level)
        return np.stack([low, high], axis=1)

    @cached_property
    def _law(self) -> SupportLaw | None:
        """The law of a value's support; None where estimates are not made of supports."""
        if not isinstance(self.noise, SupportNoise):
            return None
        p, q = float(self.noise.p), float(self.noise.q)
        return self._law_of(q + (p - q) / self.scale, q)

    def _law_of(self, p: float, q: float, trials: int = 1, values: int = 1) -> SupportLaw:
        """The law of so many trials a report; a fake supports any of so many values in each."""
        count, u = (0, 0.0) if self.fakes is None else (self.fakes.count, float(self.fakes.support))
        return SupportLaw(trials * self.n, p, q, float(np.sqrt(1 - self._rest)), trials * count, min(values * u, 1.0))

    @property
    def _rest(self) -> float:
        """How much of a sample's own scatter there is: 0 where everybody was asked, 1 in a large population."""
        return max(self.population - self.n, 0) / max(self.population - 1, 1)

    @property
    def _weighted(self) -> bool:
        return self.effective != self.n

    @property
    def plain(self) -> bool:
        """Whether one report of each person who is spoken of counts once: then supports have an exact law."""
        return self.effective == self.n == self.population and self.scale == 1.0

    @property
    def law(self) -> str:
        """What intervals and significance are made of, in a few words; it stands in the lineage unless it is plain."""
        if not self.noise.known:
            return "unknown"
        if not isinstance(self.noise, SupportNoise):
            return "normal, with the variance of the noise"
        if self._weighted:
            return "weights: largest variance"
        if self.population > self.n:
            return "sample: matched binomials"
        return "binomial, exact" if self.scale == 1.0 else f"scale {self.scale:.4g}: binomial, exact"

    def top(self, k: int) -> list[Row]:
        """The k values with the largest estimates, largest first; NaN for errors where no noise law is known."""
        if not is_int(k) or k < 1:
            raise ParameterError("top(k) needs an integer k of at least 1")
        return self._rows(self._importance()[:k], selected=True)

    def at(self, value: Any) -> Row:
        """One value, with its 95 % interval."""
        return self._rows(self._positions(self.domain.encode([value])))[0]

    def above(self, frequency: float) -> list[Row]:
        """The values estimated above a frequency, largest first."""
        if not is_number(frequency):
            raise ParameterError("a frequency is a finite number")
        return self._rows(self._largest(np.flatnonzero(self.shown > frequency)), selected=True)

    def _largest(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """These rows, the largest estimate first."""
        return rows[np.argsort(-self.frequencies[rows], kind="stable")]

    def threshold(self, alpha: float = 0.05) -> float:
        """The significance threshold: an absent value exceeds it with probability alpha / tested at most.

        The support of a value that nobody holds is Bin(n, q), and this is its exact tail; the thesis (3.13) takes the
        normal one, which is too short far out. With fakes it is Bin(n, q) + Bin(n_r, u), and the tail exact again. With
        weights it is a bound that holds for all weights with their sums.
        """
        if not is_number(alpha) or not 0 < alpha < 1:
            raise ParameterError("alpha lies between 0 and 1")
        tail = alpha / max(self._tested, 1)
        if not isinstance(self.noise, SupportNoise):
            return self.noise.upper(self.n, tail) * float(np.sqrt(self.variance_at(np.zeros(1))[0]))
        if self._weighted:
            p, q = float(self.noise.p), float(self.noise.q)
            return heaviest_deviation(self.n, self.effective, q, tail) / (p - q) * self.scale
        return self.noise.floor(self.n, tail, self.fakes) * self.scale

    def significant(self, alpha: float = 0.05) -> list[Row]:
        """The values above the significance threshold, largest first.

        With probability 1 - alpha or more, none of them is a value that nobody holds: whatever the number of people and
        eps, over everything that was tested.
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
        return Total(frequency, float(np.sqrt(self._total_variance(len(rows), frequency))), self, len(rows))

    def _total_interval(self, values: int, frequency: float, level: float, kind: Inversion) -> tuple[float, float]:
        """An interval for what `values` values add up to, where that is what was found."""
        if not values:
            return 0.0, 0.0
        found, most = np.array([frequency]), 1.0 if self.scale == 1.0 else float(values)
        if kind == "normal":
            reach = two_sided(level) * float(np.sqrt(self._total_variance(values, frequency)))
            return frequency - reach, frequency + reach
        law = self._total_law(values)
        if law is not None:
            each = law.people // self.n  # the law speaks of a share of trials: so many per person
            low, high = law.shares(law.supports(found / each), level, kind)
            return float(low[0] * each), min(float(high[0] * each), 1.0)
        parabola = [np.array([self._total_variance(values, share * most) / most**2]) for share in (0.0, 0.5, 1.0)]
        low, high = score_interval(found / most, (parabola[0], parabola[1], parabola[2]), level)
        return float(low[0]) * most, float(high[0]) * most

    def _total_law(self, values: int) -> SupportLaw | None:
        """The law of the supports of several values added up, where it is known: that of two binomials again."""
        noise = self.noise
        if self._law is None or not isinstance(noise, SupportNoise) or self.scale != 1.0 or self._weighted:
            return None
        p, q = float(noise.p), float(noise.q)
        if noise.hit == 0 and noise.miss == 0:  # a report supports one value at most
            return self._law_of(min(p + (values - 1) * q, 1.0), values * q, values=values)
        independent = noise.alone and self.population == self.n
        return self._law_of(p, q, values) if independent else None

    def _total_variance(self, values: int, frequency: float) -> float:
        """Variance of a sum over `values` values, where that is what they add up to."""
        share = min(max(frequency / self.scale, 0.0), 1.0)
        noise = self.noise.total_variance(values, share) / self.effective + self.fake_variance(values)
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
        errors, bounds = self._errors(np.arange(len(self)), level)
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

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """The largest rows; where they are picked out of more, low and high hold for what was picked."""
        table = super().summary_table(level, rows, truth)
        if rows >= len(self) or not self.noise.known:
            return table
        order = self._importance()[:rows]
        surely = max(sum(map(bool, table["significant"].to_pylist())), 1)  # those that are left where others are hidden
        ends = self._errors(order, selected_level(level, surely, self._tested))[1]
        return with_picked(table, ends[:, 0], ends[:, 1])

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many values there are and were tested, the significance threshold, how many are above it, and the law."""
        threshold = self._least(level)
        found = None if threshold is None else sum(map(bool, self._significant(level)))
        more = {} if self.tested is None else {"tested": self.tested}
        more |= {} if self.fakes is None else {"fakes": self.fakes.count}
        return {"values": len(self), **more, "threshold": threshold, "significant": found, "law": self.law}

    def fact_units(self) -> Mapping[str, Unit]:
        counts = dict.fromkeys(("values", "tested", "fakes", "significant"), Unit("people"))
        return {**counts, "threshold": Unit("share"), "law": Unit("label")}

    def remarks(self) -> list[str]:
        fewer = [
            f"Fewer reports were shuffled together than were planned, so that less is promised: {step}."
            for step in self.lineage
            if step.startswith("shuffled, with")
        ]
        if not self.noise.known:
            return [*fewer, "No noise law is known: there are no intervals and no significance."]
        if self.scale == 1.0:
            return fewer
        return [
            *fewer,
            "Items of sets larger than the padding length are counted too low; intervals do not know by how much.",
        ]

    @property
    def _judged(self) -> Estimate:
        """What significance is decided by."""
        return self

    def _least(self, level: float) -> float | None:
        known = self.noise.known and len(self)
        return self._judged.threshold(alpha_of(level)) if known else None

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
        """The k largest values with 95 % intervals, beside the truth where it is known. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_rows

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

    def _rows(self, order: NDArray[Any], *, selected: bool = False) -> list[Row]:
        codes = order.astype(np.uint64) if self.candidates is None else self.candidates[order]
        shown, counts = self.shown[order], self.counts[order]
        errors, bounds = self._errors(order)
        wider = (
            self._errors(order, selected_level(0.95, len(order), self._tested))[1]
            if selected and len(order)
            else bounds
        )
        columns = np.column_stack([shown, counts, errors, wider, bounds]).tolist()
        return [Row(value, *cells) for value, cells in zip(self.domain.decode(codes), columns, strict=True)]

    def _errors(self, order: NDArray[Any], level: float = 0.95) -> tuple[Floats, Floats]:
        """Standard errors and intervals of some rows; open where no noise law is known."""
        if not self.noise.known:
            two_sided(level)  # refuses a bad level all the same
            return np.full(len(order), np.nan), np.full((len(order), 2), np.nan)
        frequencies = self.frequencies[order]
        return np.sqrt(self.variance_at(frequencies)), self._intervals(frequencies, level, "mid-p")
