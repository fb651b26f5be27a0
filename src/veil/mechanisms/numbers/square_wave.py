"""SquareWave: report a number close to the held one with a higher probability than any other (SIGMOD 2020, section 5).

On the device everything is an integer: the held cell of a grid, and a report on a grid that reaches further by the
width of the wave. `veil.numeric` describes how a distribution is reconstructed from the reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import InputError, MismatchError, ParameterError
from veil.mechanisms.numbers.moments import NumericMechanism
from veil.mechanisms.oracle import histogram
from veil.privacy import WORD, Guarantee, coin_threshold, exp_below, exp_near
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int

if TYPE_CHECKING:
    from veil.mechanisms.numbers.reconstruction import Smoothing, Stopping
    from veil.results.distribution import Distribution


_MOST_BUCKETS = 1 << 20
_MOST_RAMPED = 1 << 20


@dataclass(frozen=True, init=False)
class SquareWave(NumericMechanism):
    """With some probability report the held cell plus a uniform offset within the wave, else any cell at all.

    Guarantee: a cell within the wave is at most e^eps times as likely as one outside, exactly: the coin is rounded
    down. Every cell of the report's grid can come from every value, also from the ends of the domain.

    `buckets` is the resolution of the answer; the device's grid is the domain's own. A fine grid (an Interval has 2^20
    cells) is the paper's "randomize before bucketize"; Integers, or an Interval with as many cells as buckets, is its
    "bucketize before randomize". `b` is half of the wave's width as a fraction of the domain: by the mutual-information
    formula of section 5.3 unless given. `ratio`, of the wave's upper to its lower side, is 1 for the square wave; a
    trapezoid below 1 and the triangle at 0 are there to compare with. `half_width` and `ramp` say the same in cells.

    >>> from veil import Interval, simulate
    >>> wave = SquareWave(epsilon=1.0, domain=Interval(0, 100_000), buckets=256)
    >>> wave.guarantee.within(1.0), round(wave.b, 4), wave.layout.size
    (True, 0.2561, 4)
    >>> incomes = simulate(wave, np.linspace(20_000, 40_000, 50_000), seed=1)
    >>> bool(abs(incomes.mean() - 30_000) < 1_000)
    True
    """

    buckets: int
    half_width: int
    ramp: int
    name: ClassVar[str] = "SquareWave"

    def __init__(
        self,
        epsilon: float,
        domain: DomainLike,
        buckets: int | None = None,
        b: float | None = None,
        ratio: float = 1.0,
        *,
        half_width: int | None = None,
        ramp: int | None = None,
    ) -> None:
        super().__init__(epsilon, domain)
        most = min(self.cells, _MOST_BUCKETS)
        buckets = min(1024, self.cells) if buckets is None else buckets
        if not is_int(buckets) or not 1 <= buckets <= most:
            raise ParameterError(f"a histogram of this domain has between 1 and {most} buckets")
        half_width = self._half_width(b) if half_width is None else half_width
        if not is_int(half_width) or not 0 <= half_width <= self.cells:
            raise ParameterError("a wave reaches between 0 and all cells of the domain to either side")
        ramp = _ramp(2 * half_width + 1, ratio) if ramp is None else ramp
        if not is_int(ramp) or not 1 <= ramp <= half_width + 1:
            raise ParameterError("a wave's ramp has from 1 cell (the square) to its half width plus one (the triangle)")
        if ramp > 1 and self.cells > _MOST_RAMPED:
            raise ParameterError(f"a trapezoid takes at most {_MOST_RAMPED} cells: its sums lose too many digits")
        for name, value in (("buckets", buckets), ("half_width", half_width), ("ramp", ramp)):
            object.__setattr__(self, name, int(value))

    def _half_width(self, b: float | None) -> int:
        if b is None:
            return int(best_width(self.epsilon) * self.cells)
        if isinstance(b, bool) or not isinstance(b, (int, float, np.floating)) or not 0 <= b <= 1:
            raise ParameterError("b, half of the wave's width as a fraction of the domain, lies between 0 and 1")
        return int(float(b) * self.cells)

    def parameters(self) -> Json:
        return {"buckets": self.buckets, "half_width": self.half_width, "ramp": self.ramp}

    @property
    def b(self) -> float:
        """Half of the wave's width, as a fraction of the domain."""
        return self.half_width / self.cells

    @property
    def plateau(self) -> int:
        """The wave is the sum of two uniform offsets, below `plateau` and below `ramp`; this is the first's."""
        return 2 * self.half_width + 2 - self.ramp

    @property
    def outputs(self) -> int:
        """How many cells the report's grid has: a held cell's wave starts at its own index."""
        return self.cells + 2 * self.half_width

    # -- the promise -----------------------------------------------------------------------------------------------

    @cached_property
    def _near(self) -> int:
        # The wave's top is chance / plateau above a floor of (1 - chance) / outputs everywhere: their ratio is e^eps.
        odds = (exp_below(self.epsilon) - 1) * self.plateau
        return coin_threshold(odds / (odds + self.outputs))

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"near": self._near}

    @cached_property
    def chance(self) -> Fraction:
        """The probability that a report is drawn from the wave."""
        return Fraction(self._near, WORD)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(1 + self.chance * self.outputs / ((1 - self.chance) * self.plateau))

    # -- on the device ---------------------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("cell", self.outputs),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        near = source.coin(self._near, len(codes))
        rows = np.flatnonzero(near)
        cells = np.empty(len(codes), dtype=np.uint64)
        moved = codes[rows] + source.below(self.plateau, len(rows))
        if self.ramp > 1:
            moved += source.below(self.ramp, len(rows))
        cells[rows] = moved
        cells[~near] = source.below(self.outputs, len(codes) - len(rows))
        return {"cell": cells.astype(self.layout.fields[0].dtype)}

    # -- at the collector ------------------------------------------------------------------------------------------

    @cached_property
    def input_edges(self) -> NDArray[np.int64]:
        """The buckets' boundaries on the domain's grid: as equal as whole cells allow."""
        return np.arange(self.buckets + 1, dtype=np.int64) * self.cells // self.buckets

    @cached_property
    def output_edges(self) -> NDArray[np.int64]:
        """Boundaries of what reports are counted in: the same steps, carried on to the end of the report's grid."""
        full = -(-self.outputs * self.buckets // self.cells)
        edges = np.arange(full + 1, dtype=np.int64) * self.cells // self.buckets
        return np.append(edges[edges < self.outputs], self.outputs)

    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        return len(self.output_edges) - 1

    def own(self, tally: Tally) -> Tally:
        if int(super().own(tally).counts.sum()) != tally.weight:
            raise MismatchError("this tally's counts do not add up to its reports")
        return tally

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """How many reports fell into each bucket of the report's grid."""
        # Boundary j is floor(j G / d): the last one that is not above cell v is j = ceil((v + 1) d / G) - 1.
        cells = columns["cell"].astype(np.int64)
        places = ((cells + 1) * self.buckets - 1) // self.cells
        return histogram(places, self.tally_size(None), weights)

    def estimate(
        self,
        tally: Tally,
        *,
        population: int | None = None,
        scale: Fraction = Fraction(1),
        lineage: str = "",
        smoothing: Smoothing = True,
        stopping: Stopping | None = None,
        start: Any = None,
    ) -> Distribution:
        """Runs at the collector: the distribution by EM with smoothing (EMS), or as `smoothing` says.

        `smoothing` True is EMS, False plain EM, "auto" adds spikes where held-out reports speak for them; `stopping`
        is the paper's rule unless given; `start` is a histogram to begin with, uniform unless given.
        """
        from veil.mechanisms.numbers.reconstruction import reconstruct
        from veil.results.distribution import Distribution

        tally = self.own(tally)
        counts = self.people_counts(tally)
        masses, fit, model = reconstruct(self, counts, smoothing=smoothing, stopping=stopping, start=start)
        return Distribution(
            domain=self.domain,
            cells=self.input_edges,
            masses=masses,
            n=tally.people,
            population=tally.people if population is None else max(population, tally.people),
            effective=tally.weight**2 / tally.square,
            lineage=(lineage or self.signature, *(["auto"] if smoothing == "auto" else []), model.name),
            fit=fit,
        )

    def people_counts(self, tally: Tally) -> NDArray[np.float64]:
        """A tally's counts in people that the reports are worth.

        Weights are on a scale of their own; likelihoods, penalties and stopping rules are about people. Divided by
        their mean weight per squared weight, the counts add up to the people that the reports are worth.
        """
        if (tally.counts < 0).any():
            raise InputError("a distribution is reconstructed from reports whose weights are not negative")
        return np.asarray(tally.counts * (tally.weight / tally.square))


def best_width(epsilon: float) -> Fraction:
    """b of section 5.3, which maximises a bound on the information between value and report; 1/2 as eps goes to 0.

    >>> [round(float(best_width(eps)), 4) for eps in (0.5, 1, 2, 2.5)]
    [0.3582, 0.2561, 0.1293, 0.0911]
    """
    power, exact = exp_near(Fraction(epsilon)), Fraction(epsilon)
    return (exact * power - power + 1) / (2 * power * (power - 1 - exact))


def _ramp(width: int, ratio: float) -> int:
    """How many cells the second offset has, for an upper side of about ratio * width; both sides are odd."""
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float, np.floating)) or not 0 <= ratio <= 1:
        raise ParameterError("the ratio of a wave's upper to its lower side lies between 0 (triangle) and 1 (square)")
    return (width - int(ratio * width)) // 2 + 1 if ratio < 1 else 1
