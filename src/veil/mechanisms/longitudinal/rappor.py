"""Rappor: Bloom filters in cohorts, with a permanent and an optional instantaneous randomization (thesis 3.1.2).

Hash j of cohort c is the local hash (`veil.kernels.hashing`) under the seed splitmix64(splitmix64(c) ^ j), with the
filter's bits as its buckets. The filters are public: devices and collector compute the same ones.

The collector estimates frequencies from sums of filters by regression: LASSO selects candidates, least squares
estimates them, as RAPPOR does (Erlingsson et al. 2014, section 4) and the thesis ran it (3.5.2). This needs
scikit-learn: `pip install veil-ldp[rappor]`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.mechanisms.longitudinal.base import Longitudinal
from veil.mechanisms.oracle import FrequencyOracle, bit_support
from veil.privacy import WORD, Guarantee, coin_threshold, decimal_text, exp_below, log_above, root_below
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.results.laws import UnknownNoise
from veil.tools.json_documents import Json, number
from veil.tools.messages import missing_extra
from veil.tools.numbers import is_int

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

U64 = NDArray[np.uint64]
Floats = NDArray[np.float64]
_MOST_COUNTS = 1 << 24
_MOST_HASHES = 64


@dataclass(frozen=True, init=False)
class Rappor(Longitudinal, FrequencyOracle):
    """A Bloom filter of the value, by the hashes of the person's cohort, with every bit flipped with probability f / 2.

    The flipped filter is permanent: kept by the device (`permanent`) and sent again for the same value, as it is or,
    with `instant=(p, q)`, through fresh coins: 1 with probability q where the kept bit is 1, with p where it is 0.

    Guarantee: of a lifetime of reports about one value. The cohort is drawn once per person and does not depend on the
    value; within a cohort two values' filters differ in at most 2 h bits for h hashes (in fewer where positions
    coincide), each with a ratio of (1 - f/2) / (f/2): its power 2 h is at most e^eps exactly, with f/2 = T / 2^64
    rounded up. What is done to the kept bits afterwards cannot raise it. Over k different values it is the k-th power.

    Estimates come from a regression (needs `veil-ldp[rappor]`): small values become zero, and no noise law is known.

    >>> oracle = Rappor.with_f(0.5, domain=1000)
    >>> round(oracle.epsilon, 2), oracle.layout.size
    (4.39, 17)
    """

    bits: int
    hashes: int
    cohorts: int
    instant: tuple[float, float] | None
    name: ClassVar[str] = "Rappor"

    def __init__(
        self,
        epsilon: float,
        domain: DomainLike,
        bits: int = 128,
        hashes: int = 2,
        cohorts: int = 8,
        instant: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(epsilon, domain)
        if not all(is_int(part) and part >= 1 for part in (bits, hashes, cohorts)):
            raise ParameterError("bits, hashes and cohorts are integers of at least 1")
        if hashes > _MOST_HASHES or bits < 2 * hashes or cohorts * (bits + 1) > _MOST_COUNTS:
            raise ParameterError("a filter has at most 64 hashes, two bits per hash, and cohorts * (bits + 1) <= 2^24")
        object.__setattr__(self, "bits", int(bits))
        object.__setattr__(self, "hashes", int(hashes))
        object.__setattr__(self, "cohorts", int(cohorts))
        object.__setattr__(self, "instant", None if instant is None else _pair(instant))

    @classmethod
    def with_f(
        cls,
        f: float,
        domain: DomainLike,
        bits: int = 128,
        hashes: int = 2,
        cohorts: int = 8,
        instant: tuple[float, float] | None = None,
    ) -> Rappor:
        """The same by the share f of bits that are replaced by fair coins: eps = 2 h ln((1 - f/2) / (f/2)), rounded up.

        >>> [round(Rappor.with_f(f, 10, hashes=1).guarantee.ratio) for f in (0.5, 0.25)]
        [9, 49]
        """
        share = _probability(f, "f")
        if not is_int(hashes) or not 1 <= hashes <= _MOST_HASHES:
            raise ParameterError("a filter has between 1 and 64 hashes")
        epsilon = log_above(((2 - share) / share) ** (2 * hashes))
        return cls(epsilon, domain, bits, hashes, cohorts, instant)

    def parameters(self) -> Json:
        pair = None if self.instant is None else [decimal_text(chance) for chance in self.instant]
        return {"bits": self.bits, "hashes": self.hashes, "cohorts": self.cohorts, "instant": pair}

    @classmethod
    def read_parameters(cls, document: Json) -> dict[str, Any]:
        pair = document.get("instant")
        if pair is None:
            return document
        if not isinstance(pair, list) or len(pair) != 2:
            raise WireError("Rappor's instantaneous step is null or two decimal strings")
        return {**document, "instant": (number(pair[0]), number(pair[1]))}

    # -- what it promises ------------------------------------------------------------------------------------------

    @cached_property
    def _flip(self) -> int:
        """A bit's chance to be flipped, f / 2, out of 2^64: rounded up, so that the ratio's power 2 h stays below."""
        return coin_threshold(1 / (root_below(exp_below(self.epsilon), 2 * self.hashes) + 1), up=True)

    @property
    def f(self) -> Fraction:
        """The share of bits that are replaced by fair coins."""
        return Fraction(2 * self._flip, WORD)

    @cached_property
    def thresholds(self) -> Mapping[str, int]:
        if self.instant is None:
            return {"flip": self._flip}
        zero, one = (coin_threshold(_decimal(chance)) for chance in self.instant)
        return {"flip": self._flip, "instant_zero": zero, "instant_one": one}

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(Fraction(WORD - self._flip, self._flip) ** (2 * self.hashes), scope="lifetime")

    @property
    def noise(self) -> UnknownNoise:
        return UnknownNoise(self.name)

    # -- on the device ---------------------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("cohort", self.cohorts), Field.packed("bits", self.bits)))

    @property
    def memo_layout(self) -> Layout:
        return self.layout

    @cached_property
    def person_layout(self) -> Layout:
        return Layout(self.layout.fields[:1])

    def draw_person(self, people: int, source: Source) -> dict[str, NDArray[Any]]:
        return {"cohort": source.below(self.cohorts, people).astype(self.layout.fields[0].dtype)}

    def draw_permanent(
        self, codes: NDArray[Any], source: Source, person: Columns | None = None
    ) -> dict[str, NDArray[Any]]:
        cohorts = (person or self.draw_person(len(codes), source))["cohort"]
        flips = source.coin_bits(self._flip, len(codes), self.bits)
        bloom = filters(positions(cohorts, self.spread(codes), self.bits, self.hashes), self.bits)
        return {"cohort": cohorts, "bits": bloom ^ flips}

    def draw_instant(self, memo: Columns, source: Source) -> dict[str, NDArray[Any]]:
        kept = memo["bits"]
        if self.instant is not None:
            zero = source.coin_bits(self.thresholds["instant_zero"], len(kept), self.bits)
            one = source.coin_bits(self.thresholds["instant_one"], len(kept), self.bits)
            kept = (kept & one) | (~kept & zero)
        return {"cohort": memo["cohort"], "bits": kept}

    # -- at the collector ------------------------------------------------------------------------------------------

    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        """People and set bits of every cohort, whatever the candidates: these matter when estimating."""
        return self.cohorts * (self.bits + 1)

    @property
    def decode_pairs(self) -> float:
        return float(self.bits)

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """For each cohort how many people (or how much weight) it has, then how many of them report each bit."""
        counts = np.zeros((self.cohorts, self.bits + 1), dtype=np.int64)
        order = np.argsort(columns["cohort"], kind="stable")
        ends = np.searchsorted(columns["cohort"][order], np.arange(self.cohorts + 1))
        for cohort in range(self.cohorts):
            rows = order[ends[cohort] : ends[cohort + 1]]
            if len(rows):
                mine = None if weights is None else weights[rows]
                counts[cohort, 0] = len(rows) if mine is None else mine.sum()
                counts[cohort, 1:] = bit_support(columns["bits"][rows], self.bits, None, mine)
        return counts.reshape(-1)

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        codes = np.arange(self.domain.size, dtype=np.uint64) if tally.candidates is None else tally.candidates
        counts = tally.counts.reshape(self.cohorts, self.bits + 1) * (1 if tally.weight > 0 else -1)
        asked = np.flatnonzero(counts[:, 0] > 0)
        if not len(asked):
            return np.zeros(len(codes))
        people = counts[asked, :1]
        reported = counts[asked, 1:] / people
        clear, gap = self._reporting()
        # A rate's own plug-in variance, kept away from zero: a bit that nobody reported is not certain either.
        effective = people * (abs(tally.weight) / tally.square)
        plausible = np.clip(reported, clear / 2, 1 - clear / 2)
        spread = np.sqrt(plausible * (1 - plausible) / effective) / gap
        matrix = design_matrix(asked, self.spread(codes), self.bits, self.hashes)
        return regress(matrix, ((reported - clear) / gap).ravel(), spread.ravel())

    def _reporting(self) -> tuple[float, float]:
        """The probability that a bit is reported where the filter has none, and what a bit of the filter adds to it."""
        flip = Fraction(self._flip, WORD)
        if self.instant is None:
            return float(flip), float(1 - 2 * flip)
        zero, one = (Fraction(self.thresholds[name], WORD) for name in ("instant_zero", "instant_one"))
        return float(zero + flip * (one - zero)), float((1 - 2 * flip) * (one - zero))


def _pair(instant: Any) -> tuple[float, float]:
    if not isinstance(instant, (tuple, list)) or len(instant) != 2:
        raise ParameterError("instant is a pair (p, q): the chances of a 1 where the kept bit is 0, and where it is 1")
    zero, one = (float(_probability(chance, "a chance")) for chance in instant)
    if coin_threshold(_decimal(zero)) >= coin_threshold(_decimal(one)):  # as they will stand in a task
        raise ParameterError("instant=(p, q) needs p below q: a kept 1 is reported as 1 more often than a kept 0")
    return zero, one


def _probability(value: Any, what: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not 0 < value < 1:
        raise ParameterError(f"{what} lies between 0 and 1")
    return value if isinstance(value, Fraction) else _decimal(value)


def _decimal(value: float) -> Fraction:
    """The decimal that a number prints as: what stands in a task."""
    return Fraction(decimal_text(value))


def positions(cohorts: NDArray[Any], spread_values: U64, bits: int, hashes: int) -> U64:
    """The bit that each hash gives value i in cohort i: one row per value, one column per hash. They may coincide.

    >>> positions(np.array([0, 1]), np.array([7, 7], dtype=np.uint64), bits=128, hashes=2).shape
    (2, 2)
    """
    from veil.kernels.hashing import bucket_of, splitmix64_each

    # Spread twice: one round only would give hash j the seed that is also the spread value of code j.
    own = splitmix64_each(np.ascontiguousarray(cohorts, dtype=np.uint64))
    return np.stack(
        [bucket_of(splitmix64_each(own ^ np.uint64(j)), spread_values, bits) for j in range(hashes)], axis=1
    )


def filters(places: U64, bits: int) -> NDArray[np.uint8]:
    """The packed filters, lowest bit first, of rows of positions."""
    packed = np.zeros((len(places), -(-bits // 8)), dtype=np.uint8)
    rows = np.arange(len(places))
    for place in places.T:  # one position per row at a time, so that no two writes meet
        packed[rows, place >> np.uint64(3)] |= np.uint8(1) << (place & np.uint64(7)).astype(np.uint8)
    return packed


def design_matrix(cohorts: NDArray[np.int64], spread_values: U64, bits: int, hashes: int) -> csc_matrix:
    """Which bits (rows: those of the first cohort, then of the next) each candidate (column) sets. Sparse, 0 and 1."""
    from scipy.sparse import csc_matrix

    count = len(spread_values)
    blocks = [positions(np.full(count, c), spread_values, bits, hashes) for c in cohorts]
    starts = bits * np.arange(len(cohorts), dtype=np.int64)
    rows = np.stack([block.astype(np.int64) + start for block, start in zip(blocks, starts, strict=True)], axis=1)
    columns = np.repeat(np.arange(count), rows[0].size)
    matrix = csc_matrix((np.ones(rows.size), (rows.ravel(), columns)), shape=(bits * len(cohorts), count))
    matrix.data[:] = 1.0  # hashes that coincide set their bit once
    return matrix


def regress(matrix: csc_matrix, rates: Floats, spread: Floats) -> Floats:
    """The frequency of each candidate (column), zero where it is not selected.

    `rates` are the estimated shares of people whose filter has each bit (row) set, `spread` their standard deviations.
    A constant stands beside the candidates for everybody who holds none of those selected: their filters, over many
    values, lift all bits alike, and would otherwise be counted as people who hold a candidate.
    """
    selected = _select(matrix, rates, spread)
    frequencies = np.zeros(matrix.shape[1])
    if len(selected):
        chosen = np.column_stack([matrix[:, selected].toarray(), np.ones(len(rates))])
        fitted, *_ = np.linalg.lstsq(chosen / spread[:, None], rates / spread, rcond=None)
        frequencies[selected] = fitted[:-1]
    return frequencies


def _select(matrix: csc_matrix, rates: Floats, spread: Floats) -> NDArray[np.int64]:
    """Candidates that LASSO leaves above zero.

    The penalty is the universal one: a candidate that nobody holds correlates with the noise alone, with standard
    deviation sigma sqrt(bits it sets), and of m such the largest is about sigma sqrt(bits 2 ln m). Below that, none.
    """
    lasso, not_converged = _lasso()
    rows, count = matrix.shape
    sigma = math.sqrt(float(np.mean(spread**2)))
    set_bits = matrix.nnz / count
    penalty = sigma * math.sqrt(2 * math.log(max(count, 2)) * set_bits) / rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", not_converged)  # to the last digit: hardly anybody's selection hangs on it
        fitted = lasso(alpha=penalty, positive=True, max_iter=2_000).fit(matrix, rates)
    return np.flatnonzero(np.asarray(fitted.coef_) > 0)


def _lasso() -> tuple[Any, type[Warning]]:
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso
    except ImportError:
        raise missing_extra("decoding RAPPOR's reports needs scikit-learn", "rappor") from None
    return Lasso, ConvergenceWarning
