"""What a person grants: the caps of a ledger, how they are written in it, and how they may change.

A cap is set when the ledger is created. Opening the ledger may lower it, for good; to raise it is a step of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from veil.errors import BudgetError, ParameterError
from veil.privacy import decimal_text, fraction_text, read_fraction

__all__ = ["Asked", "Caps", "read_asked"]

Asked = dict[str, Any]
"""The caps that a caller states, by name; those not stated are left out."""

_NONE = "-"


@dataclass(frozen=True)
class Caps:
    """Epsilon for a lifetime, per day (UTC) and for all answers to one survey, and delta for a lifetime.

    `change` is how they came into force (created, lowered or raised), and `day` is the device's day then.
    """

    lifetime: Decimal
    per_day: Decimal | None = None
    per_survey: Decimal | None = None
    delta: Fraction = Fraction(0)
    change: str = "created"
    day: date = date.min

    @classmethod
    def created(cls, asked: Asked, day: date) -> Caps:
        """Return the caps of a new ledger."""
        if "lifetime" not in asked:
            raise ParameterError("lifetime: expected the eps that a new ledger grants for a lifetime, as 2.0")
        return cls(**asked, day=day)

    @classmethod
    def from_text(cls, text: str) -> Caps:
        """Read a line of the ledger. Raises ValueError or ArithmeticError where it cannot be read."""
        change, day, lifetime, per_day, per_survey, delta = text.split(":")
        daily, each = (None if cap == _NONE else Decimal(cap) for cap in (per_day, per_survey))
        return cls(Decimal(lifetime), daily, each, read_fraction(delta), change, date.fromisoformat(day))

    def text(self) -> str:
        """Return the caps as they stand in the ledger.

        >>> Caps.from_text("raised:2026-11-19:2:-:0.5:0/1").text()
        'raised:2026-11-19:2:-:0.5:0/1'
        """
        caps = (_NONE if cap is None else f"{cap:f}" for cap in (self.per_day, self.per_survey))
        return ":".join((self.change, self.day.isoformat(), f"{self.lifetime:f}", *caps, fraction_text(self.delta)))

    def opened(self, asked: Asked, day: date) -> Caps:
        """Return the caps after a ledger was opened with others: the smaller of each. Refuses larger ones.

        A cap per survey lifts the rule that a name's later survey may cost no more than the first answer under it, so
        to state one where there is none counts as a raise.
        """
        larger = [name for name, cap in asked.items() if cap > self._cap(name)]
        if larger:
            raise BudgetError(
                f"{'; '.join(self._expected(name, 'at most', cap) for name, cap in asked.items() if name in larger)}."
                " To raise a cap is a step of its own: veil ledger raise, or Ledger.raise_caps()"
            )
        smaller = {name: cap for name, cap in asked.items() if cap < self._cap(name)}
        return replace(self, **smaller, change="lowered", day=day) if smaller else self

    def raised(self, asked: Asked, day: date) -> Caps:
        """Return the caps after a person has raised some of them. Refuses one that is not larger than before."""
        if not asked:
            raise ParameterError("expected at least one cap to raise: lifetime, per_day, per_survey or delta")
        for name, cap in asked.items():
            if not cap > self._cap(name):
                raise ParameterError(self._expected(name, "more than", cap))
        return replace(self, **asked, change="raised", day=day)

    def _cap(self, name: str) -> Any:
        """Return a cap to compare with. See `opened` for a missing cap per survey."""
        cap = getattr(self, name)
        return cap if cap is not None else Decimal(0 if name == "per_survey" else "Infinity")

    def _expected(self, name: str, relation: str, got: Any) -> str:
        own = getattr(self, name)
        if own is None:
            return f"{name}: expected none, as in this ledger, got {_shown(got)}"
        return f"{name}: expected {relation} {_shown(own)}, the cap that this ledger keeps, got {_shown(got)}"


def read_asked(lifetime: float | None, per_day: float | None, per_survey: float | None, delta: float | None) -> Asked:
    """Return the caps that are stated, checked and exact."""
    epsilons = {"lifetime": lifetime, "per_day": per_day, "per_survey": per_survey}
    asked: Asked = {name: _read_epsilon(name, cap) for name, cap in epsilons.items() if cap is not None}
    if delta is not None:
        if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
            raise ParameterError("delta: expected a number of at least 0 and below 1")
        asked["delta"] = Fraction(decimal_text(delta))
    return asked


def _read_epsilon(name: str, epsilon: Any) -> Decimal:
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < math.inf:
        raise ParameterError(f"{name}: expected a budget that is a finite epsilon above 0")
    return Decimal(decimal_text(float(epsilon)))


def _shown(cap: Decimal | Fraction) -> str:
    return f"{float(cap):g}" if isinstance(cap, Fraction) else f"{cap:f}"
