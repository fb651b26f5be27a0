"""What arguments are: integers and numbers, Python's or numpy's."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np

__all__ = ["is_int", "is_number", "own_ints"]


def is_int(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer, Python's or numpy's; True and False are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a finite number, Python's or numpy's; True and False are not."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no double holds
        return False


def own_ints(instance: Any, *names: str) -> None:
    """Store numpy's integers as Python's in a frozen dataclass: only those can be written into a task."""
    for name in names:
        object.__setattr__(instance, name, int(getattr(instance, name)))
