"""Views of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Interval, Numeric
from veil.entropy import Source
from veil.errors import ParameterError
from veil.privacy import decimal_text
from veil.tools.json_documents import Json, number, take
from veil.tools.numbers import convert_int_fields
from veil.view.base import Codes1, View, held_domain

__all__ = ["SquaredDistance"]


@dataclass(frozen=True)
class SquaredDistance(View):
    """(value - centre)^2 of a number, on a grid of `cells` from 0 to the largest that a value can have.

    What every language repeats, in IEEE doubles and this order, for the held cell u:

        value    = lo + ((u + 0.5) / cells of the held domain) * (hi - lo)   of an Interval
                   (lo - 0.5) + (u + 0.5)                                    of Integers
        distance = value - centre
        square   = distance * distance
        reach    = the larger square of the first and the last cell
        shown    = min(floor((square / reach) * cells), cells - 1)

    Each operation is monotone, so no square exceeds the reach. The grid moves one by reach / (2 cells) at most.

    >>> from veil.entropy import Words
    >>> view = SquaredDistance(Integers(0, 10), centre=4.0, cells=36)
    >>> view.domain.hi, view.apply(np.array([0, 4, 10], dtype=np.uint64), Words(b"")).tolist()
    (36.0, [16, 0, 35])
    """

    held: Numeric
    centre: float
    cells: int = 1 << 20
    kind = "squared-distance"

    def __post_init__(self) -> None:
        if not isinstance(self.held, Numeric) or self.held.size > 1 << 32:
            raise ParameterError("a squared distance is one of an Interval or of Integers, of at most 2^32 cells")
        if isinstance(self.centre, bool) or not isinstance(self.centre, (int, float, np.integer, np.floating)):
            raise ParameterError("the centre is a number (of times: seconds since 1970)")
        object.__setattr__(self, "centre", float(self.centre) + 0.0)  # 0 and -0 are one centre, and one task
        if not math.isfinite(self.centre) or not 0 < self._reach < math.inf:
            raise ParameterError("the centre is finite, and so is the largest squared distance to it, which is not 0")
        _ = self.domain  # refuses a grid that an Interval cannot have
        convert_int_fields(self, "cells")

    @property
    def _reach(self) -> float:
        with np.errstate(over="ignore"):  # refused above, and not warned of
            return float(self._squares(np.array([0, self.held.size - 1])).max())

    @property
    def domain(self) -> Interval:
        return Interval(0.0, self._reach, self.cells)

    def _squares(self, codes: Any) -> NDArray[np.float64]:
        distances = self.held.edges(codes + 0.5) - self.centre
        return distances * distances

    def apply(self, codes: Any, source: Source) -> Codes1:
        return self.domain.encode(self._squares(codes))

    def to_json(self) -> Json:
        where = {"centre": decimal_text(self.centre), "cells": self.cells}
        return {"kind": "squared-distance", "held": self.held.to_json(), **where}

    @classmethod
    def from_json(cls, document: Json) -> SquaredDistance:
        held, centre, cells = take(document, "squared-distance", "held", "centre", "cells")
        return cls(held_domain(held, Integers, Interval), number(centre), cells)
