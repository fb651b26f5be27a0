"""Delta of the blanket in microseconds, by a saddlepoint: for searches, whose ends the accountant certifies.

The accountant tilts the law of the sum and transforms it. Here the tilted law is taken for a normal one, which it is
almost; nothing is certified, and a delta of 1e-9 is right to a few parts in a hundred.
"""

from __future__ import annotations

import math

__all__ = ["fewest_fakes", "rough_delta"]

_MOST_STEPS = 60
_FAR = 1e18
"""More fakes than anybody would add."""
_CLOSE = 1e-9


def rough_delta(power: float, buckets: int, ratio: float, users: float, fakes: float, *, hashed: bool) -> float:
    """ln delta of GRR (or local hashing) with e^eps_l = `power`, n people, so many fakes and a ratio of e^eps.

    With `users` = 1 the one person hides among the fakes alone.

    >>> round(math.exp(rough_delta(math.exp(4), 16, math.exp(0.0777), 100_000, 50_000, hashed=True)) / 1e-9, 1)
    1.0
    """
    share, both = 1 / buckets, (1 / buckets**2 if hashed else 0.0)
    gamma = 1 / (1 + share * (power - 1))
    if ratio >= power:
        return -math.inf
    kinds = ((fakes + 1, 1.0),) if users == 1 else ((users, gamma), (fakes, 1.0))
    apart = share - both
    atoms = (
        (apart, power - ratio),
        (apart, 1 - ratio * power),
        (both, power * (1 - ratio)),
        (1 - 2 * share + both, 1 - ratio),
    )
    theta, level, spread = _tilted(kinds, atoms)
    weight = sum(count * drawn for count, drawn in kinds) / gamma
    return level + _positive_part(theta, spread) - math.log(weight)


def fewest_fakes(power: float, buckets: int, epsilon: float, users: float, delta: float, *, hashed: bool) -> float:
    """About how many fakes keep a promise of (epsilon, delta): towards the server, or with `users` = 1 all other users.

    >>> round(fewest_fakes(math.exp(4), 16, 0.0946, 1, 1e-9, hashed=True), -2)
    50000.0
    """
    from scipy.optimize import brentq

    ratio, aim = math.exp(epsilon), math.log(delta)
    if ratio >= power:
        return 0.0

    def over(place: float) -> float:
        return rough_delta(power, buckets, ratio, users, math.exp(place), hashed=hashed) - aim

    if users > 1 and rough_delta(power, buckets, ratio, users, 0.0, hashed=hashed) <= aim:
        return 0.0
    if over(0.0) <= 0:
        return 1.0
    if over(math.log(_FAR)) > 0:
        return math.inf
    return math.exp(brentq(over, 0.0, math.log(_FAR), xtol=1e-7))


Kinds = tuple[tuple[float, float], ...]
Atoms = tuple[tuple[float, float], ...]


def _tilted(kinds: Kinds, atoms: Atoms) -> tuple[float, float, float]:
    """The tilt at which the sum has mean 0, with its logarithm of the mean power, and its variance there."""
    top = atoms[0][1]
    low, high, theta = 0.0, math.inf, 0.0
    for _ in range(_MOST_STEPS):
        level, mean, spread = _cumulant(theta, kinds, atoms)
        if mean < 0:
            low = theta
        else:
            high = theta
        step = -mean / spread if spread > 0 else math.inf
        if abs(mean) <= _CLOSE * math.sqrt(spread):
            break
        moved = theta + step
        if not low < moved < high:
            moved = (low + high) / 2 if math.isfinite(high) else max(2 * low, 1 / top)
        theta = moved
    return theta, level, spread


def _cumulant(theta: float, kinds: Kinds, atoms: Atoms) -> tuple[float, float, float]:
    lift = theta * atoms[0][1]  # the largest power, taken out of all
    zeroth = first = second = 0.0
    for mass, value in atoms:
        weight = mass * math.exp(theta * value - lift)
        zeroth += weight
        first += weight * value
        second += weight * value * value
    none = math.exp(-lift) if lift < 700 else 0.0
    level = mean = spread = 0.0
    for count, drawn in kinds:
        total = (1 - drawn) * none + drawn * zeroth
        one = drawn * first / total
        level += count * (lift + math.log(total))
        mean += count * one
        spread += count * max(drawn * second / total - one * one, 0.0)
    return level, mean, spread


def _positive_part(theta: float, spread: float) -> float:
    """ln of E[S+ e^(-theta S)] for a normal S of mean 0: s (phi(0) - t Q(t) / phi(t) phi(0)), with t = theta s."""
    deviation = math.sqrt(max(spread, 1e-300))
    t = theta * deviation
    # t times Mills' ratio is below 1; far out, one less it is 1 / t^2 - 3 / t^4 + ...
    rest = 1 / t**2 - 3 / t**4 + 15 / t**6 if t > 30 else 1 - t * _mills(t)
    return math.log(deviation / math.sqrt(2 * math.pi)) + math.log(max(rest, 1e-300))


def _mills(t: float) -> float:
    return math.sqrt(math.pi / 2) * math.exp(t * t / 2) * math.erfc(t / math.sqrt(2))
