"""Closed-form bounds on the central epsilon of n shuffled reports at a delta, with their conditions.

The bounds of the thesis (Table 9.1, Theorems 9.2.1, 9.3.1 and 9.3.2, Corollaries 9.5.2 and 9.5.3) are for single
mechanisms and loose; the clones of 2021 are for any mechanism.
"""

from __future__ import annotations

import math

from veil.errors import ParameterError
from veil.privacy import check_epsilon
from veil.tools.numbers import is_int, is_number

_MOST_USERS, _LEAST_DELTA = 10**10, 1e-200


def check_users(users: int) -> int:
    """The number of people whose reports are shuffled together, or a refusal."""
    if not is_int(users) or not 2 <= users <= _MOST_USERS:
        raise ParameterError("a shuffle is of the reports of 2 to 10^10 people: expected an integer number of users")
    return int(users)


def check_delta(delta: float) -> float:
    """A delta, or a refusal."""
    if not is_number(delta) or not _LEAST_DELTA <= delta < 1:
        raise ParameterError(
            f"delta, the probability that a central promise may fail with, lies between {_LEAST_DELTA:g} and 1"
        )
    return float(delta)


def small_epsilon(epsilon: float, users: int, delta: float) -> float:
    """Erlingsson, Feldman, Mironov, Raghunathan, Talwar and Thakurta 2019, row 1 of Table 9.1; for any mechanism.

    >>> round(small_epsilon(0.4, 1_000_000, 1e-8), 4)
    0.0206
    """
    epsilon = check_epsilon(epsilon)
    if epsilon >= 0.5:
        raise ParameterError(f"this bound needs a local epsilon below 1/2; here it is {epsilon:.4g}")
    if check_users(users) < 1000 or check_delta(delta) >= 0.01:
        raise ParameterError("this bound needs at least 1,000 users and a delta below 1/100")
    return 12 * epsilon * math.sqrt(math.log(1 / delta) / users)


def binary(epsilon: float, users: int, delta: float) -> float:
    """Cheu, Smith, Ullman, Zeber and Zhilyaev 2019, row 2 of Table 9.1: randomized response of one bit.

    >>> round(binary(2.0, 1_000_000, 1e-8), 4)
    0.0729
    """
    power = math.exp(check_epsilon(epsilon))
    found = math.sqrt(32 * math.log(4 / check_delta(delta)) * (power + 1) / check_users(users))
    least = math.sqrt(192 * math.log(4 / delta) / users)
    if not least < found < 1:
        raise ParameterError(
            f"this bound needs a central epsilon between {least:.4g} and 1, and gives {found:.4g}: "
            + ("more users would help" if found >= 1 else "it holds for larger local epsilons")
        )
    return found


def binomial(mean: float, delta: float) -> float:
    """Theorem 9.2.1: the epsilon of a histogram with binomial noise of this mean on every count, at most 1.

    >>> round(binomial(10_000, 1e-9), 4)
    0.1732
    """
    if check_delta(delta) > 0.25:
        raise ParameterError("this bound needs a delta of at most 1/4")
    if not is_number(mean) or mean < 0:
        raise ParameterError("a mean of binomial noise is a number of at least 0")
    found = math.sqrt(14 * math.log(2 / delta) / mean) if mean > 0 else math.inf
    if found > 1:
        needed = 14 * math.log(2 / delta)
        raise ParameterError(
            f"this bound needs a central epsilon of at most 1, and gives {found:.4g}: there are {mean:.4g} random "
            f"reports for each value, and it takes {needed:.4g}; expected more users, or a smaller local epsilon"
        )
    return found


def responses(epsilon: float, values: int, users: int, delta: float, fakes: int = 0) -> float:
    """Balle, Bell, Gascon and Nissim 2019, row 3 of Table 9.1: GRR over so many values.

    With `fakes`, uniform reports that the shufflers add: Corollary 9.5.3, against the server.

    >>> round(responses(1.0, 100, 1_000_000, 1e-8), 4)
    0.165
    """
    share = 1 / (math.exp(check_epsilon(epsilon)) + _check_values(values) - 1)
    return binomial((check_users(users) - 1) * share + _check_fakes(fakes) / values, delta)


def hashing(epsilon: float, buckets: int, users: int, delta: float, fakes: int = 0) -> float:
    """Theorem 9.3.2: local hashing into so many buckets, SOLH; with `fakes`, Corollary 9.5.2 against the server.

    >>> round(hashing(1.0, 4, 1_000_000, 1e-8), 4)
    0.0391
    """
    return responses(epsilon, buckets, users, delta, fakes)


def unary(epsilon: float, users: int, delta: float) -> float:
    """Theorem 9.3.1: symmetric unary encoding, every bit flipped with probability 1 / (e^(eps/2) + 1).

    >>> round(unary(1.0, 1_000_000, 1e-8), 4)
    0.0542
    """
    share = 1 / (math.exp(check_epsilon(epsilon) / 2) + 1)
    return 2 * binomial((check_users(users) - 1) * share, check_delta(delta) / 2)


def clones(epsilon: float, users: int, delta: float) -> float:
    """Feldman, McMillan and Talwar 2021, Theorem 3.1: any mechanism, "hiding among the clones".

    >>> round(clones(4.0, 100_000, 1e-6), 5), round(clones(1.0, 1_000_000, 1e-8), 5)
    (0.5378, 0.02718)
    """
    power, tail = math.exp(check_epsilon(epsilon)), math.log(4 / check_delta(delta))
    most = check_users(users) / (16 * tail)
    if power > most:
        raise ParameterError(
            f"the bound by clones needs e^(local epsilon) of at most n / (16 ln(4 / delta)) = {most:.4g}; here it is "
            f"{power:.4g}: expected at least {math.ceil(16 * tail * power):,} users"
        )
    spread = 8 * math.sqrt(power * tail / users) + 8 * power / users
    return math.log1p(spread * (1 - 1 / power) / (1 + 1 / (power * (1 + spread))))


def _check_values(values: int) -> int:
    if not is_int(values) or values < 2:
        raise ParameterError("a number of values or buckets is an integer of at least 2")
    return int(values)


def _check_fakes(fakes: int) -> int:
    if not is_int(fakes) or fakes < 0:
        raise ParameterError("a number of fake reports is an integer of at least 0")
    return int(fakes)
