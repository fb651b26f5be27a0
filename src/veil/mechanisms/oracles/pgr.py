"""PGR: projective geometry response (Feldman, Nelson, Nguyen and Talwar, ICML 2022).

`Geometry` is a projective space over a prime field: its number of points, the choice of prime and dimension, and the
decoding of all values by Fourier transforms. `veil.kernels.geometry` has the arithmetic of single points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import InputError, ParameterError, VeilError
from veil.mechanisms.oracle import PureOracle, histogram
from veil.privacy import WORD, Guarantee, exp_below, inside_threshold
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.results.laws import SupportNoise
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int

MOST_POINTS = 1 << 26
"""Points that the whole decode takes: about a gigabyte of memory."""
_MOST_PRIME = 2**31  # inner products of coordinates stay below 2^64
_MOST_MESSAGES = 2**53  # a number of a point is exact in every language
_LISTABLE = 1 << 24
_AS_GOOD = Fraction(21, 20)
_LEAST_ODDS = Fraction(6418, 10_000)  # (1 + u)^2 / 4u <= 1.05 from here to 1.558: see `best_geometry`
_EXACT_NORM = 2.0**42  # transforms below this norm are off by less than 2^-5: log2(K) 2^-53 of it, times a small factor
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


@dataclass(frozen=True)
class Geometry:
    """The projective space of dimension t - 1 over the field of q elements.

    >>> plane = Geometry(prime=3, dimension=3)
    >>> plane.points, plane.on_hyperplane, plane.on_both
    (13, 4, 1)
    """

    prime: int
    dimension: int

    def _count(self, dimension: int) -> int:
        return (self.prime**dimension - 1) // (self.prime - 1) if dimension > 0 else 0

    @cached_property
    def points(self) -> int:
        """K, the number of points: values at most, and messages."""
        return self._count(self.dimension)

    @cached_property
    def on_hyperplane(self) -> int:
        """c_set: points orthogonal to a given one."""
        return self._count(self.dimension - 1)

    @cached_property
    def on_both(self) -> int:
        """c_int: points orthogonal to two given ones."""
        return self._count(self.dimension - 2)

    @cached_property
    def on_three(self) -> int:
        """Points orthogonal to three given ones that are not on one line."""
        return self._count(self.dimension - 3)

    @cached_property
    def powers(self) -> NDArray[np.uint64]:
        """q^(t-1), ..., q, 1: what the coordinates of a point count for in its number."""
        return np.array([self.prime**k for k in range(self.dimension - 1, -1, -1)], dtype=np.uint64)

    def threshold(self, epsilon: float) -> int:
        """The coin for an orthogonal point, out of 2^64: rounded down, toward privacy."""
        return inside_threshold(epsilon, self.on_hyperplane, self.points - self.on_hyperplane)

    def variance(self, epsilon: float) -> Fraction:
        """n Var* of the estimator, exactly."""
        p = Fraction(self.threshold(epsilon), WORD)
        q = (self.on_hyperplane - p) / (self.points - 1)
        return q * (1 - q) / (p - q) ** 2


@lru_cache(maxsize=1024)
def best_geometry(epsilon: float, values: int, dimension: int | None = None) -> Geometry:
    """The fewest points with a variance within 5 % of 4 e^eps / (e^eps - 1)^2; where there are none, the best variance.

    For many points the variance is (1 + u)^2 / 4u times that optimum, u = (q - 1) / e^eps. Exact and deterministic.

    >>> best_geometry(1.0, 1_000_000)
    Geometry(prime=3, dimension=14)
    """
    odds = exp_below(epsilon)
    most = max(2, values.bit_length())  # 2^t - 1 points over the smallest field: no prime needs a larger dimension
    found = [g for t in ([dimension] if dimension else range(2, most + 1)) for g in _candidates(odds, values, t)]
    if values <= _LISTABLE:  # all values can be asked for at once: keep that possible
        found = [g for g in found if g.points <= MOST_POINTS] or found
    if not found:
        raise ParameterError("PGR takes fewer than 2^53 values, and a dimension that holds them")
    star = {g: g.variance(epsilon) for g in dict.fromkeys(found)}
    close = [g for g in star if star[g] <= _AS_GOOD * 4 * odds / (odds - 1) ** 2]
    return min(close, key=lambda g: (g.points, star[g])) if close else min(star, key=lambda g: (star[g], g.points))


def _candidates(odds: Fraction, values: int, dimension: int) -> Iterator[Geometry]:
    """Of one dimension: the smallest prime, the smallest that is close to optimal, and the two around e^eps + 1."""
    root, least, middle = _least_base(dimension, values), math.ceil(_LEAST_ODDS * odds) + 1, math.floor(odds) + 1
    starts = {root, max(root, least), max(root, middle + 1)}
    primes = {_next_prime(start) for start in starts if start < _MOST_PRIME}
    if root <= middle < _MOST_PRIME:
        primes.add(_previous_prime(middle))
    for prime in sorted(primes):
        made = Geometry(prime, dimension)
        if prime < _MOST_PRIME and values <= made.points < _MOST_MESSAGES:
            yield made


def _least_base(dimension: int, values: int) -> int:
    """The smallest q >= 2 whose space of this dimension has at least `values` points."""
    low, high = 2, _MOST_PRIME
    while low < high:
        half = (low + high) // 2
        low, high = (low, half) if Geometry(half, dimension).points >= values else (half + 1, high)
    return low


def is_prime(number: int) -> bool:
    """Whether a number below 2^64 is prime: Miller and Rabin, with bases that decide them all.

    >>> [n for n in range(20) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if number < 2 or any(number % base == 0 for base in bases):
        return number in bases
    twos = (number - 1 & 1 - number).bit_length() - 1
    return all(_passes(base, number, twos) for base in bases)


def _passes(base: int, number: int, twos: int) -> bool:
    power = pow(base, number - 1 >> twos, number)
    if power in (1, number - 1):
        return True
    return any((power := power * power % number) == number - 1 for _ in range(twos - 1))


def _next_prime(number: int) -> int:
    while not is_prime(number):
        number += 1
    return number


def _previous_prime(number: int) -> int:
    while not is_prime(number):
        number -= 1
    return number


def all_supports(messages: NDArray[np.int64], geometry: Geometry) -> NDArray[np.int64]:
    """For each point, the count (or weight) of the messages orthogonal to it, exactly, by Fourier transforms.

    The textbook way puts counts at all multiples of their points in an array of q^t cells, and T(v) = (n + FFT(v)) / q.
    Here the first axis is done by hand (`fold`), because points with a leading one need its frequency 1 alone: what is
    left has q^(t-1) cells and Hermitian symmetry. Points that begin with 0 are the same problem one dimension lower.

    >>> all_supports(np.array([5, 0, 0, 2]), Geometry(3, 2)).tolist()  # in the plane each point has one partner
    [2, 0, 0, 5]
    """
    norm = geometry.prime * float(np.linalg.norm(messages.astype(np.float64)))
    if norm <= _EXACT_NORM:
        return _transformed(messages, geometry)
    # Doubles would not be exact: transform the low bits and the rest apart, and add up as integers.
    bits = max(4, math.floor(math.log2(_EXACT_NORM / geometry.prime / math.sqrt(geometry.points))))
    low = messages & ((1 << bits) - 1)
    high = all_supports(messages >> bits, geometry)
    return (high << bits) + _transformed(low, geometry)


def _transformed(messages: NDArray[np.int64], geometry: Geometry) -> NDArray[np.int64]:
    from scipy.fft import hfftn

    from veil.kernels.geometry import fold, perpendicular
    from veil.kernels.parallel import thread_count

    q, t, powers = geometry.prime, geometry.dimension, geometry.powers
    supports = np.empty(len(messages), dtype=np.int64)
    start, always = 0, 0
    tables = _tables(q) if t > 2 else ()
    while t > 2:
        spectrum, folded = fold(messages, powers, *tables)
        shape = (q,) * (t - 1)
        waves = hfftn(spectrum.reshape(*shape[:-1], -1), s=shape, overwrite_x=True, workers=thread_count())
        size = q ** (t - 1)
        supports[start : start + size] = _rounded(waves.ravel(), int(messages.sum()), q) + always
        start, always = start + size, always + int(messages[0])  # (1, 0, ..., 0) is orthogonal to all that begin with 0
        messages, powers, t = folded, powers[1:], t - 1
    supports[start:] = messages[perpendicular(q)] + always
    return supports


def _rounded(waves: NDArray[np.float64], total: int, prime: int) -> NDArray[np.int64]:
    waves += total
    waves /= prime
    rounded = np.rint(waves)
    waves -= rounded
    if len(waves) and max(float(waves.max()), -float(waves.min())) >= 0.25:
        raise VeilError("the transform lost its precision: its counts are not within a quarter of integers")
    return rounded.astype(np.int64)


@lru_cache(maxsize=8)
def _tables(prime: int) -> tuple[NDArray[Any], ...]:
    """Multiplication by the smallest generator g, and the cosines and sines of g^0, g^-1, ..., twice round (`fold`)."""
    units = prime - 1
    factors = [f for f in range(2, units + 1) if units % f == 0 and is_prime(f)]
    generator = next(g for g in range(1, prime) if all(pow(g, units // f, prime) != 1 for f in factors))
    times = np.arange(prime, dtype=np.int64) * generator % prime
    inverse, logs = pow(generator, -1, prime), [1]
    for _ in range(2 * units):
        logs.append(logs[-1] * inverse % prime)
    angles = -2 * np.pi * np.array(logs, dtype=np.float64) / prime
    return times, np.cos(angles), np.sin(angles)
