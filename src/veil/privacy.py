"""Exact privacy: bounds on e^eps as fractions, coin thresholds rounded toward privacy, and guarantees.

Textbook probabilities such as e^eps / (e^eps + d - 1), computed in doubles, exceed the declared eps by rounding in
half of all settings. Here e^eps is a rational lower bound, a probability is an integer out of 2^64, and a guarantee is
the exact ratio of two such integers. Budgets are in `veil.device`, sources of randomness in `veil.entropy`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

from veil.errors import ParameterError, WireError

__all__ = [
    "MAX_EPSILON",
    "WEAK_EPSILON",
    "WORD",
    "Guarantee",
    "check_epsilon",
    "coin_threshold",
    "decimal_text",
    "exp_below",
    "exp_near",
    "fraction_text",
    "inside_threshold",
    "largest_epsilon",
    "ln_above",
    "log_above",
    "odds",
    "read_fraction",
    "root_below",
    "split_epsilon",
    "weakness",
]

WORD = 2**64
"""A coin is an integer threshold out of this many."""

WEAK_EPSILON = 3.0
"""Above this eps per report, planning, publishing and devices warn."""

MAX_EPSILON = 10.0
"""Above this eps per report, a collector publishes a survey only where that is asked for."""

_DIGITS = 60
_PLACES = 70  # of a logarithm: an e^epsilon of 60 digits, rounded down, is below epsilon by more than its last place
_FRACTION = re.compile(r"(0|[1-9][0-9]*)/[1-9][0-9]*")
_LARGEST_EPSILON = 40.0  # e^40 is about 2^57.7: beyond it a threshold out of 2^64 has no resolution left
_SMALLEST_EPSILON = 1e-6  # below it the coins of a large domain could no longer tell held from not held


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float, or refuse one that promises nothing or cannot be represented.

    >>> check_epsilon(1)
    1.0
    """
    try:
        value = float(epsilon)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"epsilon must be a number, not {type(epsilon).__name__}") from None
    if isinstance(epsilon, bool) or not math.isfinite(value) or not _SMALLEST_EPSILON <= value <= _LARGEST_EPSILON:
        limits = f"between {_SMALLEST_EPSILON:g} and {_LARGEST_EPSILON:g}"
        raise ParameterError(f"epsilon lies above 0, {limits}; got {value!r}")
    return value


def decimal_text(value: float) -> str:
    """The shortest decimal that reads back as `value`: how numbers are written into a task.

    >>> decimal_text(1.0), decimal_text(0.1)
    ('1', '0.1')
    """
    text = format(Decimal(repr(float(value))), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def fraction_text(value: Fraction) -> str:
    """A fraction as "p/q", however many digits it has.

    >>> fraction_text(Fraction(3, 4)), fraction_text(Fraction(2))
    ('3/4', '2/1')
    """
    # Python's own text of an integer ends at 4,300 digits; a Decimal's does not.
    return "/".join(format(Decimal(part), "f") for part in value.as_integer_ratio())


def read_fraction(text: Any) -> Fraction:
    """The same backwards; refuses any text that `fraction_text` does not write.

    >>> read_fraction("3/4")
    Fraction(3, 4)
    """
    if isinstance(text, str) and _FRACTION.fullmatch(text):
        value = Fraction(*(int(Decimal(part)) for part in text.split("/")))
        if fraction_text(value) == text:
            return value
    raise WireError('a fraction is written as "p/q" in lowest terms')


@lru_cache(maxsize=1024)
def exp_below(epsilon: float) -> Fraction:
    """A fraction just below e^epsilon, to 60 digits.

    The declared epsilon is taken at its smaller reading, of the double and of the decimal it prints as, so that the
    promise holds for whoever reads either.

    >>> float(exp_below(1.0)) == math.e
    True
    """
    value = check_epsilon(epsilon)
    exact = min(Fraction(value), Fraction(Decimal(repr(value))))
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    power = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return Fraction(context.next_minus(context.exp(power)))  # Decimal.exp rounds half-even: step once below


def ln_above(ratio: Fraction) -> Decimal:
    """ln(ratio), rounded up at the 70th place: finer than `exp_below`, so that a ratio within it costs at most epsilon.

    >>> ln_above(Fraction(1)), ln_above(exp_below(0.3)) < Decimal("0.3")
    (Decimal('0'), True)
    """
    if ratio == 1:
        return Decimal(0)
    context = Context(prec=_PLACES + 20, rounding=ROUND_CEILING)
    above = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return context.quantize(context.next_plus(context.ln(above)), Decimal(1).scaleb(-_PLACES))


def log_above(ratio: Fraction) -> float:
    """The smallest double that is not below ln(ratio).

    >>> log_above(Fraction(1)), log_above(exp_below(0.3)) <= 0.3
    (0.0, True)
    """
    upper = ln_above(ratio)
    nearest = float(upper)
    return nearest if Fraction(nearest) >= Fraction(upper) else math.nextafter(nearest, math.inf)


def odds(ratio: Fraction, delta: Fraction = Fraction(0)) -> tuple[str, str]:
    """Return a promise for people, rounded up: the likelihood ratio, and the certainty that equal odds rise to.

    With a delta, the certainty is the probability of a right guess over all reports, (ratio + delta) / (ratio + 1).

    >>> odds(exp_below(1.0)), odds(exp_below(10.0))
    (('2.72', 'at most 73.2 %'), ('22,027', 'almost 100 %'))
    """
    scale = 100 if ratio < 10 else 10 if ratio < 100 else 1
    permille = math.ceil(1000 * (ratio + delta) / (ratio + 1))
    sure = "almost 100 %" if permille == 1000 else f"at most {_decimal(permille, 10)} %"
    return _decimal(math.ceil(ratio * scale), scale), sure


def _decimal(scaled: int, scale: int) -> str:
    whole, rest = divmod(scaled, scale)
    part = f"{rest:0{len(str(scale)) - 1}}".rstrip("0") if rest else ""
    return f"{whole:,}.{part}" if part else f"{whole:,}"


def exp_near(power: Fraction) -> Fraction:
    """e^power to 60 digits, below or above: for probabilities whose exact ratio is checked afterwards.

    >>> float(exp_near(Fraction(-1)))
    0.36787944117144233
    """
    context = Context(prec=_DIGITS)
    return Fraction(context.exp(context.divide(Decimal(power.numerator), Decimal(power.denominator))))


def root_below(value: Fraction, degree: int) -> Fraction:
    """A fraction just below the root of a value of at least 1, to 2^-192.

    >>> float(root_below(Fraction(2), 2) ** 2)
    2.0
    """
    scale = 1 << 192
    target = value.numerator * scale**degree // value.denominator
    low, high = scale, scale * (int(value) + 1)
    while high - low > 1:  # the largest integer whose power stays within the target
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= target else (low, middle)
    return Fraction(low, scale)


def split_epsilon(epsilon: float, parts: int) -> float:
    """The largest epsilon that each of `parts` mechanisms may have, so that all together keep the given one exactly.

    Plain division exceeds it in a third of all settings, by rounding.

    >>> exp_below(split_epsilon(1.0, 3)) ** 3 <= exp_below(1.0)
    True
    """
    return largest_epsilon(check_epsilon(epsilon) / parts, lambda ratio: ratio**parts <= exp_below(epsilon))


def largest_epsilon(start: float, allowed: Callable[[Fraction], bool]) -> float:
    """The first double at or below `start` whose ratio is allowed."""
    found = check_epsilon(start)
    while not allowed(exp_below(found)):
        found = math.nextafter(found, 0.0)
    return found


def coin_threshold(probability: Fraction, *, up: bool = False) -> int:
    """The integer T with T / 2^64 next below `probability`, or next above it.

    >>> coin_threshold(Fraction(1, 2)) == 2**63
    True
    """
    scaled = probability * WORD
    return math.ceil(scaled) if up else math.floor(scaled)


def inside_threshold(epsilon: float, inside: int, outside: int) -> int:
    """The coin of a two-level mechanism, out of 2^64: whether a uniform outcome inside is reported, or one outside.

    Rounded down, toward privacy: p / inside over (1 - p) / outside is at most e^epsilon exactly.

    >>> inside_threshold(1.0, 1, 1) / WORD
    0.7310585786300049
    """
    odds = exp_below(epsilon) * inside
    return coin_threshold(odds / (odds + outside))


Neighbours = Literal["replace", "remove"]
Scope = Literal["report", "lifetime"]


@dataclass(frozen=True)
class Guarantee:
    """What a report promises: for any two values and any report, the probabilities differ by at most `ratio`.

    With a `delta`, that holds for any two values up to a probability of delta: P(S | v) <= ratio P(S | v') + delta for
    every set S of reports. `ratio` is exact; None means that the report alone promises nothing (it then needs a
    shuffler).

    >>> Guarantee(Fraction(3)).epsilon
    1.0986122886681098
    >>> print(Guarantee(exp_below(1.0)))
    eps = 1, exactly
    >>> print(Guarantee(exp_below(2.0), delta=Fraction(2, 7121)))
    eps = 2, delta = 2.9e-4
    """

    ratio: Fraction | None
    delta: Fraction = Fraction(0)
    neighbours: Neighbours = "replace"
    scope: Scope = "report"
    needs_shuffler: bool = False

    def __post_init__(self) -> None:
        if self.ratio is not None and self.ratio < 1:
            raise ParameterError("a likelihood ratio is at least 1")
        if not 0 <= self.delta < 1:
            raise ParameterError("delta must be at least 0 and below 1")

    @property
    def epsilon(self) -> float:
        """ln(ratio), rounded up; infinite where the report alone promises nothing."""
        return math.inf if self.ratio is None else log_above(self.ratio)

    def within(self, epsilon: float) -> bool:
        """Whether the exact ratio keeps the promise of `epsilon`."""
        return self.ratio is not None and self.ratio <= exp_below(epsilon)

    def __str__(self) -> str:
        """In plain words; epsilon to six digits, delta to two and rounded up."""
        if self.ratio is None:
            return "nothing on its own: it needs a shuffler"
        up = Context(prec=2, rounding=ROUND_CEILING)
        delta = up.divide(Decimal(self.delta.numerator), Decimal(self.delta.denominator))
        words = [f"eps = {self.epsilon:.6g}", f"delta = {delta:e}" if delta else "exactly"]
        if self.neighbours == "remove":
            words.append("for adding or removing a person")
        if self.scope == "lifetime":
            words.append("over all reports of one value")
        return ", ".join(words)

    def to_json(self) -> dict[str, Any]:
        """For results and documents; fractions as "p/q".

        >>> Guarantee(Fraction(3, 2)).to_json()["ratio"]
        '3/2'
        """
        return {
            "ratio": None if self.ratio is None else fraction_text(self.ratio),
            "delta": fraction_text(self.delta),
            "neighbours": self.neighbours,
            "scope": self.scope,
            "needs_shuffler": self.needs_shuffler,
        }

    @classmethod
    def from_json(cls, document: Any) -> Guarantee:
        """The same backwards, strictly."""
        if not isinstance(document, dict) or set(document) != set(cls.__dataclass_fields__):
            raise WireError(f"expected a guarantee with the keys {', '.join(cls.__dataclass_fields__)}")
        ratio, neighbours, scope = document["ratio"], document["neighbours"], document["scope"]
        if neighbours not in get_args(Neighbours) or scope not in get_args(Scope):
            raise WireError("a guarantee's neighbours are replace or remove, its scope is report or lifetime")
        if not isinstance(document["needs_shuffler"], bool):
            raise WireError("whether a guarantee needs a shuffler is true or false")
        return cls(
            None if ratio is None else read_fraction(ratio),
            read_fraction(document["delta"]),
            neighbours,
            scope,
            document["needs_shuffler"],
        )

    @staticmethod
    def of(epsilon: float) -> Guarantee:
        """The promise of an epsilon: whatever is asked with it keeps this.

        >>> Guarantee.of(1.0).epsilon
        1.0
        """
        return Guarantee(exp_below(epsilon))

    def covers(self, other: Guarantee) -> bool:
        """Whether whoever is promised this is promised the other at least."""
        if (self.neighbours, self.scope) != (other.neighbours, other.scope):
            return False
        if self.ratio is None or other.ratio is None:
            return self.ratio is None
        return other.ratio <= self.ratio and other.delta <= self.delta

    @staticmethod
    def largest(parts: Iterable[Guarantee]) -> Guarantee:
        """Of one answer, to a question or in a round chosen independently of the value: the weakest of the promises."""
        return _combine(list(parts), product=False)

    @staticmethod
    def together(parts: Iterable[Guarantee]) -> Guarantee:
        """Of several answers by one person, side by side or in several rounds: ratios multiply, deltas add."""
        return _combine(list(parts), product=True)


def weakness(guarantee: Guarantee) -> str | None:
    """Return a warning where a report promises little, or None.

    >>> weakness(Guarantee.of(3.0)) is None
    True
    >>> print(weakness(Guarantee.of(5.0)))
    eps = 5 per report is weak: a report can make its sender's answer 149 times as likely as another
    """
    if guarantee.ratio is None:
        return "a report promises nothing on its own: it needs a shuffler"
    if guarantee.epsilon <= WEAK_EPSILON:
        return None
    little = "weak" if guarantee.epsilon <= MAX_EPSILON else "hardly any protection"
    times, _ = odds(guarantee.ratio)
    per, reports = ("report", "a report") if guarantee.scope == "report" else ("value", "all reports of a value")
    return (
        f"eps = {guarantee.epsilon:.6g} per {per} is {little}: {reports} can make its sender's answer {times} times as"
        " likely as another"
    )


def _combine(parts: list[Guarantee], *, product: bool) -> Guarantee:
    if not parts:
        raise ParameterError("expected at least one guarantee to combine")
    first = parts[0]
    if any((g.neighbours, g.scope) != (first.neighbours, first.scope) for g in parts):
        raise ParameterError("guarantees of different kinds (neighbours or scope) cannot be combined")
    ratios = [g.ratio for g in parts if g.ratio is not None]
    whole: Fraction | None = None
    if len(ratios) == len(parts):
        whole = math.prod(ratios, start=Fraction(1)) if product else max(ratios)
    deltas = [g.delta for g in parts]
    return replace(
        first,
        ratio=whole,
        delta=sum(deltas, start=Fraction(0)) if product else max(deltas),
        needs_shuffler=any(g.needs_shuffler for g in parts),
    )
