"""What mechanisms for numbers share: their domain is a range of numbers, whose codes are cells of a grid in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from veil.domain import DomainLike, Integers, Numeric
from veil.errors import ParameterError
from veil.mechanisms.base import Mechanism
from veil.tools.numbers import is_int

__all__ = ["NumericMechanism"]


@dataclass(frozen=True, init=False)
class NumericMechanism(Mechanism):
    """A mechanism that asks for a number. Its domain is an Interval or Integers; an int d stands for 0 .. d - 1."""

    domain: Numeric
    name: ClassVar[str]

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        held: Any = Integers(0, domain - 1) if is_int(domain) and 1 <= domain <= 2**32 else domain
        super().__init__(epsilon, held)
        if not isinstance(self.domain, Numeric):
            raise ParameterError(f"{self.name} asks for a number: its domain is an Interval or Integers")
        if self.domain.size > 2**32:
            raise ParameterError(f"{self.name} takes a grid of at most 2^32 cells")

    @property
    def cells(self) -> int:
        """How many cells the device's grid has."""
        return self.domain.size
