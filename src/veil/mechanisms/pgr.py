"""PGR: projective geometry response (Feldman, Nelson, Nguyen and Talwar, ICML 2022)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import InputError, ParameterError
from veil.mechanisms.oracle import PureOracle
from veil.mechanisms.projective import MOST_POINTS, Geometry, all_supports, best_geometry, is_prime
from veil.mechanisms.shared import histogram
from veil.privacy import WORD, Guarantee
from veil.results.noise import SupportNoise
from veil.tally import Tally
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int
from veil.wire.layout import Columns, Field, Layout

__all__ = ["PGR"]

_TRANSFORM_STEPS = 64  # the transform costs about as much as this many inner products per point


@dataclass(frozen=True, init=False)
class PGR(PureOracle):
    """Values and messages are points of a projective space; report one that is likely to be orthogonal to the value's.

    Guarantee: with probability s = T / 2^64, rounded down, a uniform one of the c_set points orthogonal to the value's,
    else a uniform one of the other K - c_set: the ratio is s (K - c_set) / ((1 - s) c_set) <= e^eps exactly.

    The accuracy of OLH in reports of log2(d) bits, and all values are decoded by one Fourier transform. `prime` q and
    `dimension` t are chosen for few points K = (q^t - 1) / (q - 1) at a variance within 5 % of the optimum, where there
    are such. A tally of the whole domain counts messages; the transform waits for the estimate.

    >>> oracle = PGR(epsilon=1.0, domain=1_000_000)
    >>> oracle.prime, oracle.dimension, oracle.layout.size
    (3, 14, 4)
    """

    prime: int
    dimension: int
    name: ClassVar[str] = "PGR"

    def __init__(
        self, epsilon: float, domain: DomainLike, prime: int | None = None, dimension: int | None = None
    ) -> None:
        super().__init__(epsilon, domain)
        if self.domain.code_bytes or self.domain.size >= 2**53:
            raise ParameterError("PGR takes fewer than 2^53 values, each with an index (text: through a Segment)")
        if dimension is not None and (not is_int(dimension) or not 2 <= dimension <= 53):
            raise ParameterError("a dimension is an integer between 2 and 53")
        dimension = None if dimension is None else int(dimension)
        if prime is None:
            chosen = best_geometry(self.epsilon, self.domain.size, dimension)
        else:
            chosen = _given(prime, dimension, self.domain.size)
        object.__setattr__(self, "prime", chosen.prime)
        object.__setattr__(self, "dimension", chosen.dimension)

    def parameters(self) -> Json:
        return {"prime": self.prime, "dimension": self.dimension}

    @cached_property
    def geometry(self) -> Geometry:
        """The space: how many points it has, and how many are orthogonal."""
        return Geometry(self.prime, self.dimension)

    @cached_property
    def _orthogonal(self) -> int:
        return self.geometry.threshold(self.epsilon)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"orthogonal": self._orthogonal}

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self._orthogonal, WORD)

    @cached_property
    def q(self) -> Fraction:
        # s c_int / c_set + (1 - s) (c_set - c_int) / (K - c_set), in short, because c_set - 1 = q c_int
        return (self.geometry.on_hyperplane - self.p) / (self.geometry.points - 1)

    @cached_property
    def noise(self) -> SupportNoise:
        """`miss` is the mean over all pairs of values: a given pair has one of the two `pair_misses`."""
        inside, others = self.geometry.on_hyperplane, self.geometry.points - 1
        hit = self.p * (inside - 1) / others
        both = self.p * (inside - 1) * (inside - 2) + (1 - self.p) * inside * (inside - 1)
        return SupportNoise(self.p, self.q, hit, both / (others * (others - 1)))

    @cached_property
    def pair_misses(self) -> frozenset[Fraction]:
        # Orthogonal to two values is orthogonal to their whole line: the held one may lie on it, and counts as a hit.
        g, rest = self.geometry, self.geometry.points - self.geometry.on_hyperplane
        apart = self.p * g.on_three / g.on_hyperplane + (1 - self.p) * (g.on_both - g.on_three) / rest
        return frozenset({apart, self.noise.hit})

    @cached_property
    def guarantee(self) -> Guarantee:
        inside = self.geometry.on_hyperplane
        return Guarantee(self.p * (self.geometry.points - inside) / ((1 - self.p) * inside))

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("point", self.geometry.points),))

    @property
    def decode_pairs(self) -> float:
        return 1.0  # counted like a GRR report; the transform comes once per estimate, however many reports there are

    # -- on the device ---------------------------------------------------------------------------------------------

    def point_of(self, codes: NDArray[Any]) -> NDArray[np.uint64]:
        """The number of the point that stands for each code: all different, without the codes' order."""
        from veil.kernels.geometry import scramble

        return scramble(np.ascontiguousarray(codes, dtype=np.uint64), math.isqrt(self.geometry.points))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        from veil.kernels.geometry import respond

        inside = self.geometry.on_hyperplane
        orthogonal = source.coin(self._orthogonal, len(codes))
        bounds = np.where(orthogonal, np.uint64(inside), np.uint64(self.geometry.points - inside))
        draws = source.below(bounds, len(codes))
        points = respond(self.point_of(codes), orthogonal, draws, self.prime, self.geometry.powers)
        return {"point": points.astype(self.layout.fields[0].dtype)}

    # -- at the collector ------------------------------------------------------------------------------------------

    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        return self.geometry.points if candidates is None else len(candidates)

    def encode_candidates(self, candidates: Any) -> NDArray[Any] | None:
        codes = super().encode_candidates(candidates)
        if codes is None and self.geometry.points > MOST_POINTS:
            raise InputError("too many points to decode all values: say which candidates to count")
        return codes

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Runs at the collector: for the whole domain how often each message came, for candidates their supports."""
        return self._messages(columns, weights) if candidates is None else self.support(columns, candidates, weights)

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        whole = tally.candidates is None
        return super().shares(replace(tally, counts=self._decoded(tally.counts, None)) if whole else tally)

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        from veil.kernels.geometry import count_orthogonal, count_orthogonal_weighted

        people = len(columns["point"])
        if candidates is None or self._worth_a_transform(people * len(candidates)):
            return self._decoded(self._messages(columns, weights), candidates)
        x, y = self._coordinates(columns, candidates)
        inverse, limit = self._divides
        if weights is None:
            return count_orthogonal(x, y, inverse, limit)
        return count_orthogonal_weighted(x, weights, y, inverse, limit)

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        from veil.kernels.geometry import orthogonal_matrix

        x, y = self._coordinates(columns, candidates)
        inverse, limit = self._divides
        return orthogonal_matrix(x, y, inverse, limit)

    def _messages(self, columns: Columns, weights: NDArray[np.int64] | None) -> NDArray[np.int64]:
        return histogram(columns["point"].astype(np.int64), self.geometry.points, weights)

    def _decoded(self, messages: NDArray[np.int64], candidates: NDArray[Any] | None) -> NDArray[np.int64]:
        codes = np.arange(self.domain.size, dtype=np.uint64) if candidates is None else candidates
        return all_supports(messages, self.geometry)[self.point_of(codes)]

    def _worth_a_transform(self, pairs: int) -> bool:
        return _TRANSFORM_STEPS * self.geometry.points < pairs and self.geometry.points <= MOST_POINTS

    def _coordinates(self, columns: Columns, candidates: NDArray[Any]) -> list[NDArray[Any]]:
        from veil.kernels.geometry import coordinates

        both = [columns["point"].astype(np.uint64), self.point_of(candidates)]
        made: list[NDArray[Any]] = []
        for points in both:
            made.append(np.empty((self.dimension, len(points)), self._number))
            coordinates(points, self.prime, self.geometry.powers, made[-1])
        return made

    @property
    def _number(self) -> type[np.uint32 | np.uint64]:
        """A type that holds inner products before they are reduced."""
        return np.uint32 if self.dimension * (self.prime - 1) ** 2 < 2**32 else np.uint64

    @property
    def _divides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """q divides x if and only if x times the first, in this type, is at most the second; arrays keep the type."""
        word = 2 ** (8 * self._number(0).itemsize)
        inverse, limit = (word // 2, 0) if self.prime == 2 else (pow(self.prime, -1, word), (word - 1) // self.prime)
        return np.array([inverse], self._number), np.array([limit], self._number)


def _given(prime: int, dimension: int | None, values: int) -> Geometry:
    """The space that was asked for, if there is one and the values fit."""
    if not is_int(prime) or not 2 <= prime < 2**31 or not is_prime(int(prime)):
        raise ParameterError("PGR works over a prime below 2^31")
    least = next(t for t in range(2, 55) if Geometry(int(prime), t).points >= values)
    made = Geometry(int(prime), least if dimension is None else int(dimension))
    if not values <= made.points < 2**53:
        raise ParameterError("a space has at least as many points as there are values, and fewer than 2^53")
    return made
