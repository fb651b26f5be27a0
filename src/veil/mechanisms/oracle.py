"""Frequency oracles: mechanisms that estimate how many people hold each value.

Each report of a `PureOracle` supports a set of values (thesis 3.2), and four exact probabilities determine its
estimates. Most oracles are pure. `SignResponse` is the base of mechanisms that report one sign. The functions below are
shared by several oracles: randomized response over an index, histograms of reports, and counts of packed bits.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Source
from veil.errors import EmptyError, InputError, ParameterError
from veil.kernels.parallel import HashedReports
from veil.mechanisms.base import Mechanism
from veil.privacy import WORD, Guarantee, inside_threshold
from veil.reports.layout import Columns
from veil.reports.tally import Tally
from veil.results.estimate import Estimate
from veil.results.laws import FakeLaw, Noise, SupportNoise
from veil.tools.numbers import is_int, is_number
from veil.view import View


@dataclass(frozen=True, init=False)
class FrequencyOracle(Mechanism):
    """A mechanism that estimates the frequency of every value, or of given candidates."""

    disjoint: ClassVar[bool] = False
    """Whether a report supports one value at most (then padding-and-sampling amplifies)."""

    unbiased: ClassVar[bool] = True
    """Whether more people always make it better; `choose` takes no other oracle."""

    def seen_through(self, view: View) -> Guarantee:
        return view.outer(self.guarantee, disjoint=self.disjoint)

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """How the estimates scatter."""

    @abstractmethod
    def shares(self, tally: Tally) -> NDArray[np.float64]:
        """Runs at the collector: the frequencies that a tally with reports in it stands for."""

    @property
    def fake_pair(self) -> Fraction | None:
        """The probability that a uniformly random report supports two given values; None as `fake_support`."""
        return None

    def fakes(self, tally: Tally) -> FakeLaw | None:
        """The fakes of a tally, and what they support; None where it has none."""
        if not tally.fakes or self.fake_support is None or self.fake_pair is None:
            return None
        return FakeLaw(tally.fakes, self.fake_support, self.fake_pair)

    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        """How many integers a tally holds: one per candidate, unless the whole domain is kept in another form."""
        return self.domain.size if candidates is None else len(candidates)

    def spread(self, codes: NDArray[Any]) -> NDArray[np.uint64]:
        """64 well-mixed bits per value: splitmix64 of an index, 8 bytes of a salted SHA-256 of longer values."""
        from veil.kernels.hashing import splitmix64_each

        if codes.ndim == 1:
            return splitmix64_each(np.ascontiguousarray(codes, dtype=np.uint64))
        salt = bytes.fromhex(self.digest)
        digests = b"".join(hashlib.sha256(salt + row.tobytes()).digest()[:8] for row in codes)
        return np.frombuffer(digests, dtype="<u8").astype(np.uint64)

    @property
    def closed(self) -> bool:
        return self.domain.listable

    @property
    def decode_pairs(self) -> float:
        """(report, candidate) steps that counting the whole domain costs per report."""
        return float(self.domain.size)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Variance of an estimated frequency from n people; at frequency 0 it is the thesis's Var* over n^2."""
        _check_people(n)
        return self.noise.variance(frequency) / n

    def detection_floor(self, n: int, alpha: float = 0.05, candidates: int | None = None) -> float:
        """The significance threshold: a value this frequent is found half of the time, an absent one never.

        "Never" is with probability 1 - alpha over all candidates together; for pure oracles by the exact tail of the
        binomial that an absent value's support is.
        """
        _check_people(n)
        if not is_number(alpha) or not 0 < alpha < 1:
            raise ParameterError("alpha lies between 0 and 1")
        if candidates is not None and (not is_int(candidates) or candidates < 1):
            raise ParameterError("a number of candidates is at least 1")
        tail = alpha / min(candidates or self.domain.size, 10**300)  # as far as a double reaches
        noise = self.noise
        return (
            noise.floor(n, tail)
            if isinstance(noise, SupportNoise)
            else noise.upper(n, tail) * float(np.sqrt(self.variance(n)))
        )

    def encode_candidates(self, candidates: Any) -> NDArray[Any] | None:
        """Candidates as codes, each once; None stands for a whole domain that can be listed."""
        if candidates is None:
            if not self.domain.listable:
                raise InputError("this domain is too large to list: say which candidates to count")
            return None
        return self.check_candidates(self.domain.encode(candidates))

    def check_candidates(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Candidates are at least one, and each stands once."""
        if not len(codes):
            raise EmptyError("expected at least one candidate")
        if len(np.unique(codes, axis=0)) != len(codes):
            raise InputError("a candidate stands twice")
        return codes

    def estimate(
        self, tally: Tally, *, population: int | None = None, scale: Fraction = Fraction(1), lineage: str = ""
    ) -> Estimate:
        """Runs at the collector: frequencies with their noise, never clipped.

        `population` is the number of people that the reports are a random sample of; `scale` comes from the view.
        """
        tally = self.own(tally)
        people = tally.people if population is None else max(population, tally.people)
        fakes = self.fakes(tally)
        found = Estimate(
            domain=self.domain,
            frequencies=self.shares(tally) * float(scale),
            n=tally.people,
            noise=self.noise,
            population=people,
            mass=tally.weight * people / tally.people,
            effective=tally.weight**2 / tally.square,
            scale=float(scale),
            candidates=tally.candidates,
            lineage=(lineage or self.signature, *([] if fakes is None else [fakes.removed])),
            fakes=fakes,
        )
        return found if found.plain or not self.noise.known else replace(found, lineage=(*found.lineage, found.law))


@dataclass(frozen=True, init=False)
class PureOracle(FrequencyOracle):
    """A mechanism whose every report supports a set of values.

    A held value is supported with probability p, any other with probability q, and that is all the estimator needs:
    f = (support / n - q) / (p - q), unbiased (3.1). Where fakes are among the reports, what they support in expectation
    is taken off the support first.
    """

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The probability that a report supports the value that is held."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The probability that a report supports a given value that is not held."""

    @property
    def noise(self) -> SupportNoise:
        """p and q, and how often two values are supported at once; here as if independently."""
        return SupportNoise(self.p, self.q, hit=self.p * self.q, miss=self.q**2)

    @property
    def pair_misses(self) -> frozenset[Fraction]:
        """What may be the probability that a report supports two given values, neither of them held.

        One number for most oracles. Where it depends on the values, `noise.miss` is the mean.
        """
        return frozenset({self.noise.miss})

    @abstractmethod
    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """How many reports (or how much weight) support each candidate code; None means the whole domain in order."""

    @abstractmethod
    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        """Whether report i supports candidate j, as 0 and 1: for joint counts over few candidates."""

    def hashed(self, columns: Columns, candidates: NDArray[Any]) -> HashedReports | None:
        """The same as reports of a local hash, from which a device makes it; None where they are none."""
        return None

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        return self.support(columns, candidates, weights)

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        fakes = self.fakes(tally)
        counts = tally.counts if fakes is None else tally.counts - fakes.expected
        return np.asarray((counts / tally.weight - float(self.q)) / float(self.p - self.q))


def _check_people(n: int) -> None:
    if not is_int(n) or n < 1:
        raise ParameterError("a number of people is at least 1")


@dataclass(frozen=True, init=False)
class SignResponse(Mechanism):
    """A sign is kept with probability p = T / 2^64, rounded down, and flipped otherwise: p / (1 - p) <= e^eps."""

    @cached_property
    def _keep(self) -> int:
        return inside_threshold(self.epsilon, 1, 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"keep": self._keep}

    @cached_property
    def p(self) -> Fraction:
        """The probability that the sign is kept."""
        return Fraction(self._keep, WORD)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.p / (1 - self.p))


def stay_or_move(own: NDArray[np.uint64], stay: int, size: int, source: Source) -> NDArray[np.uint64]:
    """Runs on the device: each index of 0 .. size - 1 stays on a coin, or moves to one of the others; in place."""
    moved = np.flatnonzero(~source.coin(stay, len(own)))
    others = source.below(size - 1, len(moved))
    own[moved] = others + (others >= own[moved])  # skip its own
    return own


def histogram(places: NDArray[Any], size: int, weights: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Runs at the collector: how many reports (or how much weight) fell on each place below `size`, exactly."""
    if weights is None:
        return np.bincount(places, minlength=size)
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, places, weights)  # bincount would pass the weights through doubles
    return counts


def bit_support(
    bits: NDArray[np.uint8], size: int, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """How many rows (or how much weight) have each candidate's bit set."""
    from veil.kernels.counting import count_bits, count_bits_weighted
    from veil.kernels.parallel import sum_over_threads

    count = count_bits if weights is None else count_bits_weighted
    counts = sum_over_threads(count, (bits, weights), work=size)[:size]
    return counts if candidates is None else counts[candidates.astype(np.int64)]


def bit_supports(bits: NDArray[np.uint8], candidates: NDArray[Any]) -> NDArray[np.uint8]:
    """Each candidate's bit in each row."""
    byte, bit = (candidates >> np.uint64(3)).astype(np.int64), (candidates & np.uint64(7)).astype(np.uint8)
    return (bits[:, byte] >> bit) & np.uint8(1)
