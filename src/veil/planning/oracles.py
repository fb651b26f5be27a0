"""Which oracle to take: what each one would cost and reach, before anybody is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from veil.domain import Domain, DomainLike, as_domain
from veil.errors import InputError, ParameterError
from veil.mechanisms import MECHANISMS, FrequencyOracle
from veil.privacy import check_epsilon
from veil.tools.arguments import is_int

__all__ = ["Choice", "Option", "choose", "options"]

_AS_GOOD = 1.05
"""Variances within 5 % are as good as equal; the shorter report, then the cheaper decoding, decides."""


@dataclass(frozen=True)
class Option:
    """One oracle for a domain and an epsilon. Errors are for a value that nobody holds, as a fraction of the people."""

    oracle: FrequencyOracle
    report_bytes: int
    stderr: float
    detection_floor: float
    decode_pairs: float
    """(report, candidate) steps that the collector needs a report."""

    @property
    def name(self) -> str:
        return self.oracle.name

    @property
    def comparable(self) -> bool:
        """Whether its error is known; where no law is, the errors above are NaN."""
        return self.oracle.noise.known


@dataclass(frozen=True)
class Choice:
    """The oracle to take, why in one sentence, and what else there was."""

    oracle: FrequencyOracle
    why: str
    options: tuple[Option, ...]


def options(domain: DomainLike, epsilon: float, users: int | None = None) -> tuple[Option, ...]:
    """Every registered oracle that can serve the domain, the most accurate first.

    >>> [option.name for option in options(1024, 1.0)][0]
    'SubsetSelection'
    """
    held = as_domain(domain)
    people = _check_users(users)
    check_epsilon(epsilon)
    oracles = [
        _build(mechanism, held, epsilon) for mechanism in MECHANISMS.values() if issubclass(mechanism, FrequencyOracle)
    ]
    found = [_option(oracle, people) for oracle in oracles if oracle is not None]
    return tuple(sorted(found, key=lambda option: (not option.comparable, option.stderr)))


def choose(domain: DomainLike, epsilon: float, users: int | None = None, max_report_bytes: int | None = None) -> Choice:
    """The oracle with the smallest variance; among those within 5 %, the shortest report, then the cheapest decoding.

    >>> choose(4, 1.0).oracle.name, choose(100_000, 1.0).oracle.name
    ('GRR', 'PGR')
    """
    every = options(domain, epsilon, users)
    if not every:
        raise ParameterError("no oracle can serve this domain: it needs at least two values, one index each")
    if max_report_bytes is not None and (not is_int(max_report_bytes) or max_report_bytes < 1):
        raise ParameterError("a report takes an integer number of bytes, at least one")
    known = [option for option in every if option.comparable and option.oracle.unbiased]
    fitting = [option for option in known if max_report_bytes is None or option.report_bytes <= max_report_bytes]
    if not fitting:
        raise InputError(f"no oracle's report fits into {_bytes(max_report_bytes or 0)}")
    best = fitting[0]
    close = [option for option in fitting if option.stderr**2 <= _AS_GOOD * best.stderr**2]
    order = list(MECHANISMS)  # what costs and reaches the same is taken in the order of the registry: GRR is simplest
    taken = min(close, key=lambda o: (o.report_bytes, o.decode_pairs, round(o.stderr, 12), order.index(o.name)))
    return Choice(taken.oracle, _why(taken, close, fitting, max_report_bytes), every)


def _option(oracle: FrequencyOracle, people: int) -> Option:
    known = oracle.noise.known
    return Option(
        oracle=oracle,
        report_bytes=oracle.layout.size,
        stderr=math.sqrt(oracle.variance(people)) if known else math.nan,
        detection_floor=oracle.detection_floor(people) if known else math.nan,
        decode_pairs=oracle.decode_pairs,
    )


def _why(taken: Option, close: list[Option], fitting: list[Option], limit: int | None) -> str:
    size = _bytes(taken.report_bytes)
    fits = "" if limit is None else f" that fits into {_bytes(limit)}"
    if len(close) == 1:
        others = [option for option in fitting if option is not taken]
        rest = f", {others[0].stderr / taken.stderr:.2f} times better than {others[0].name}" if others else ""
        return f"{taken.name} has the smallest error{fits}{rest}, in reports of {size}."
    *most, last = (option.name for option in close if option is not taken)
    rivals = f"{', '.join(most)} and {last}" if most else last
    return (
        f"{taken.name} is within 5 % of the smallest variance{fits}, like {rivals}, with the cheapest report: {size}."
    )


def _bytes(count: int) -> str:
    return f"{count} byte{'s' if count != 1 else ''}"


def _build(mechanism: type[FrequencyOracle], domain: Domain, epsilon: float) -> FrequencyOracle | None:
    """The oracle, or None where the domain is beyond it."""
    try:
        return mechanism(epsilon, domain)
    except ParameterError:
        return None


def _check_users(users: int | None) -> int:
    if users is None:
        return 1_000_000
    if not is_int(users) or users < 1:
        raise ParameterError("a number of people is at least 1")
    return users
