"""Tails of sums of binomials and of the hypergeometric distribution.

With n reports, a share f of which are of people who hold the value, support is Bin(n f, p) + Bin(n (1 - f), q).
Uniform fakes among the reports add Bin(fakes, u), which is a third binomial unless u is q.
Where the sum scatters little, its tail is added up exactly over the few values that it takes. Elsewhere it is Lugannani
and Rice's saddlepoint formula (1980) with Daniels' continuity correction (1987, his second). The saddlepoint of two
binomials solves a quadratic equation, so a tail costs a few logarithms for any number of people; that of three is
found by Newton's method. `shares_at` finds the shares at which a tail takes given values.
`tests/exact/kernels/test_tails.py` compares both with convolutions of fractions.

Hypergeometric tails give Fisher's exact test of many pairs of binomial counts at once (`fisher_p_values`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

Floats = NDArray[np.float64]

_SCATTER = 100.0  # variance up to which tails are added up exactly; beyond, a saddlepoint is right to 0.05 %
_REACH = 9.0  # standard deviations, and as many steps more, beyond which nothing is left to add
_NEAR = 1e-3  # of the mean, in standard deviations: there the limit of the saddlepoint formula is taken
_TURNS = 80
_ALIKE = 1e-6  # reports: fakes that shift the mean by less than this are like people who do not hold the value


@compiled()
def upper_tail(at: float, people: float, held: float, p: float, q: float, fakes: float = 0.0, u: float = 0.5) -> float:
    """P(support >= at), for a whole number `at`, where `held` of the people hold the value."""
    if at <= 0.0:
        return 1.0
    if at > people + fakes:
        return 0.0
    if fakes * abs(u - q) <= _ALIKE:
        people, fakes = people + fakes, 0.0
    if held * p * (1.0 - p) + (people - held) * q * (1.0 - q) + fakes * u * (1.0 - u) <= _SCATTER:
        below = math.floor(held)
        rest = held - below
        tail = _added_up(at, people, below, p, q, fakes, u)
        if rest == 0.0:
            return tail
        return (1.0 - rest) * tail + rest * _added_up(at, people, below + 1.0, p, q, fakes, u)
    if fakes > 0.0:
        return _saddlepoint_of_three(at - 0.5, held, people - held, fakes, p, q, u)
    return _saddlepoint(at - 0.5, held, people - held, p, q)


@compiled()
def _added_up(at: float, people: float, held: float, p: float, q: float, fakes: float, u: float) -> float:
    """The sum over what each binomial may be."""
    first, chances = _binomial(held, p)
    start, others = _binomial(people - held, q)
    if fakes > 0.0:
        least, added = _binomial(fakes, u)
        start, others = start + least, np.convolve(others, added)
    tail, reached, place = 0.0, 0.0, len(chances) - 1
    for j in range(len(others)):  # the more supports come from the others, the fewer are needed from holders
        needed = at - (start + j) - first
        while place >= 0 and place >= needed:
            reached += chances[place]
            place -= 1
        tail += others[j] * reached
    return min(tail, 1.0)


@compiled()
def _binomial(count: float, chance: float) -> tuple[float, Floats]:
    """The least number that may come out, and the probabilities from there on; what is left out is below 1e-15."""
    spread = math.sqrt(count * chance * (1.0 - chance))
    reach = math.ceil(_REACH * (spread + 1.0))
    mode = min(math.floor((count + 1.0) * chance), count)
    low, high = max(mode - reach, 0.0), min(mode + reach, count)
    found = np.empty(int(high - low) + 1)
    log_odds = math.log(chance) - math.log1p(-chance)
    level = math.lgamma(count + 1.0) - math.lgamma(low + 1.0) - math.lgamma(count - low + 1.0)
    level += low * math.log(chance) + (count - low) * math.log1p(-chance)
    for i in range(len(found)):
        found[i] = math.exp(level)
        level += log_odds + math.log((count - low - i) / (low + i + 1.0)) if low + i < count else 0.0
    return low, found / found.sum()


@compiled()
def _saddlepoint(x: float, a: float, b: float, p: float, q: float) -> float:
    """Lugannani and Rice's tail of Bin(a, p) + Bin(b, q) beyond x."""
    if x <= 0.0:
        return 1.0
    if x >= a + b:
        return 0.0
    # K'(t) = x for z = e^t, with odds P and Q: (a + b - x) P Q z^2 + (a P + b Q - x (P + Q)) z - x = 0
    odds_p, odds_q = p / (1.0 - p), q / (1.0 - q)
    square, linear = (a + b - x) * odds_p * odds_q, a * odds_p + b * odds_q - x * (odds_p + odds_q)
    root = math.sqrt(linear * linear + 4.0 * square * x)
    z = 2.0 * x / (linear + root) if linear > 0.0 else (root - linear) / (2.0 * square)
    t = math.log(z)
    up, uq = p * z / (1.0 - p + p * z), q * z / (1.0 - q + q * z)
    spread = a * up * (1.0 - up) + b * uq * (1.0 - uq)
    cumulant = a * math.log1p(p * (z - 1.0)) + b * math.log1p(q * (z - 1.0))
    third = a * up * (1.0 - up) * (1.0 - 2.0 * up) + b * uq * (1.0 - uq) * (1.0 - 2.0 * uq)
    return _lugannani_rice(x, t, cumulant, spread, third)


@compiled()
def _saddlepoint_of_three(x: float, a: float, b: float, c: float, p: float, q: float, u: float) -> float:
    """The same of Bin(a, p) + Bin(b, q) + Bin(c, u)."""
    if x <= 0.0:
        return 1.0
    if x >= a + b + c:
        return 0.0
    # between the saddlepoints of one binomial with the smallest and with the largest of the three chances
    odds = math.log(x) - math.log(a + b + c - x)
    least, most = min(p, q, u), max(p, q, u)
    low, high = odds - math.log(most) + math.log1p(-most), odds - math.log(least) + math.log1p(-least)
    t = min(max(0.0, low), high)
    up = uq = uu = spread = 0.0
    for _ in range(_TURNS):
        z = math.exp(t)
        up, uq, uu = p * z / (1.0 - p + p * z), q * z / (1.0 - q + q * z), u * z / (1.0 - u + u * z)
        gap = a * up + b * uq + c * uu - x
        spread = a * up * (1.0 - up) + b * uq * (1.0 - uq) + c * uu * (1.0 - uu)
        if abs(gap) <= 1e-12 * x or high - low < 1e-15:
            break
        if gap < 0.0:
            low = t
        else:
            high = t
        t -= gap / spread
        if not low < t < high:
            t = 0.5 * (low + high)
    rise = math.expm1(t)
    cumulant = a * math.log1p(p * rise) + b * math.log1p(q * rise) + c * math.log1p(u * rise)
    third = a * up * (1.0 - up) * (1.0 - 2.0 * up) + b * uq * (1.0 - uq) * (1.0 - 2.0 * uq)
    third += c * uu * (1.0 - uu) * (1.0 - 2.0 * uu)
    return _lugannani_rice(x, t, cumulant, spread, third)


@compiled()
def _lugannani_rice(x: float, t: float, cumulant: float, spread: float, third: float) -> float:
    """The tail beyond x by the saddlepoint t, and by the cumulant function there with its derivatives."""
    w = math.copysign(math.sqrt(max(2.0 * (t * x - cumulant), 0.0)), t)
    if abs(w) < _NEAR:
        correction = -third / (6.0 * spread**1.5)
    else:
        correction = 1.0 / (2.0 * math.sinh(0.5 * t) * math.sqrt(spread)) - 1.0 / w
    tail = 0.5 * math.erfc(w / math.sqrt(2.0)) + math.exp(-0.5 * w * w) / math.sqrt(2.0 * math.pi) * correction
    return min(max(tail, 0.0), 1.0)


@compiled()
def shares_at(
    supports: Floats,
    people: float,
    p: float,
    q: float,
    fakes: float,
    u: float,
    fixed: float,
    part: float,
    target: float,
) -> Floats:
    """For each support, the share of holders at which its upper tail is `target`; 0 or 1 where none has that tail.

    The tail is P(support > at) + part P(support = at): `part` is 1/2 for a mid-p. It grows with the share. `fixed` is 1
    where the people who were asked are all that the share is about, and 0 where they are a drop of an ocean. Between,
    p and q come closer to each other, by that factor, so that mean and variance are those of a sample.
    """
    found = np.empty(len(supports))
    guess = 0.5
    width = 2.0 / math.sqrt(people) / (p - q) * math.sqrt(1.0 + fakes / people)
    reports = (people, p, q, fakes, u, fixed)
    for i in range(len(supports)):
        at = supports[i]
        low, high = 0.0, 1.0
        below = _gap(at, reports, low, part, target)
        above = _gap(at, reports, high, part, target)
        if below >= 0.0 or above <= 0.0:
            found[i] = 0.0 if below >= 0.0 else 1.0
            continue
        for end in (guess - width, guess + width):  # supports come in order: the last share is close
            if low < end < high:
                gap = _gap(at, reports, end, part, target)
                if gap < 0.0:
                    low, below = end, gap
                else:
                    high, above = end, gap
        for turn in range(_TURNS):
            if high - low < 1e-14 + 1e-10 * high or high - low < 1e-4 / people:
                break
            share = -below / (above - below) if turn % 3 != 2 else 0.5  # by turns, so that neither end stays behind
            middle = low + (high - low) * min(max(share, 0.01), 0.99)
            gap = _gap(at, reports, middle, part, target)
            if gap < 0.0:
                low, below = middle, gap
            else:
                high, above = middle, gap
        found[i] = guess = 0.5 * (low + high)
    return found


@compiled()
def _gap(
    at: float, reports: tuple[float, float, float, float, float, float], share: float, part: float, target: float
) -> float:
    """The log odds of the tail at this share, less those of the target."""
    people, p, q, fakes, u, fixed = reports
    lower = q + share * (p - q) * (1.0 - fixed)
    upper = lower + fixed * (p - q)
    tail = upper_tail(at, people, share * people, upper, lower, fakes, u)
    if part < 1.0:
        tail = part * tail + (1.0 - part) * upper_tail(at + 1.0, people, share * people, upper, lower, fakes, u)
    return _log_odds(tail) - _log_odds(target)


@compiled()
def _log_odds(chance: float) -> float:
    chance = min(max(chance, 1e-300), 1.0 - 1e-16)
    return math.log(chance) - math.log1p(-chance)


I64 = np.int64
F64 = np.float64
_NEGLIGIBLE = 1e-12  # of a tail: what is left out beyond
_SMOOTH = 128.0  # standard deviations: from here on a sum is an integral to nine digits
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@compiled()
def _log_term(x: float, both: float, trials: float, rest: float) -> float:
    """ln of choose(trials, x) choose(rest, both - x), but for what does not depend on x."""
    return -(
        math.lgamma(x + 1.0)
        + math.lgamma(trials - x + 1.0)
        + math.lgamma(both - x + 1.0)
        + math.lgamma(rest - both + x + 1.0)
    )


@compiled()
def _log_chance(k: float, both: float, trials: float, rest: float) -> float:
    """ln P(X = k)."""
    of = math.lgamma(trials + 1.0) + math.lgamma(rest + 1.0) + math.lgamma(both + 1.0)
    every = math.lgamma(trials + rest + 1.0) - math.lgamma(trials + rest - both + 1.0)
    return _log_term(k, both, trials, rest) + of - every


@compiled()
def _tail_sum(k: int, other: int, trials: int, rest: int) -> float:
    """P(X >= k) / P(X = k), term by term."""
    term, total, x, y = 1.0, 1.0, k, other
    while x < trials and y > 0:
        term *= (trials - x) / (x + 1.0) * y / (rest - y + 1.0)
        x += 1
        y -= 1
        total += term
        if term < _NEGLIGIBLE * total:  # beyond the mean the terms fall ever faster
            break
    return total


@compiled()
def _tail_integral(k: float, other: float, trials: float, rest: float, mean: float, spread: float) -> float:
    """The same by Gauss and Legendre, with Euler and Maclaurin's first correction for a sum's steps."""
    both = k + other
    away = (k - mean) / spread
    reach = (math.sqrt(away * away + 60.0) - away) * spread  # there a normal tail has fallen to e^-30
    reach = min(reach, trials - k, other) + 0.5
    first, total = _log_term(k, both, trials, rest), 0.0
    for i in range(len(_NODES)):
        x = k - 0.5 + (reach + 0.5) * (_NODES[i] + 1.0) / 2.0
        if x < min(trials, both):
            total += _WEIGHTS[i] * math.exp(_log_term(x, both, trials, rest) - first)
    slope = 1.0 - math.exp(_log_term(k - 1.0, both, trials, rest) - first)
    return total * (reach + 0.5) / 2.0 + slope / 24.0


@compiled()
def _upper_tail(k: int, trials: int, other: int, rest: int) -> float:
    """P(X >= k) given X + Y = k + other, for X of `trials` and Y of `rest` coins of the same kind."""
    both, every = float(k + other), float(trials + rest)
    mean = both * trials / every
    variance = mean * (1.0 - both / every) * rest / max(every - 1.0, 1.0)
    chance = math.exp(_log_chance(k, both, trials, rest))
    if variance > _SMOOTH**2 and k > 0:
        return min(chance * _tail_integral(k, other, trials, rest, mean, math.sqrt(variance)), 1.0)
    return min(chance * _tail_sum(k, other, trials, rest), 1.0)


@compiled()
def fisher_p_values(first: NDArray[I64], people: int, second: NDArray[I64], others: int) -> NDArray[F64]:
    """Twice the smaller tail of each pair of counts, out of `people` and `others`, given their sum; at most 1."""
    found = np.empty(len(first), F64)
    for i in range(len(first)):
        a, b = first[i], second[i]
        larger = a * others >= b * people
        tail = _upper_tail(a, people, b, others) if larger else _upper_tail(b, others, a, people)
        found[i] = min(2.0 * tail, 1.0)
    return found
