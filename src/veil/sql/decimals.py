"""Arithmetic with a hundred digits, so that differences of large numbers stay right.

What is made of a query's sums may cancel nearly all of them: the variance of amounts near a billion that differ by a
hundred is 1e-15 of its parts, and its standard error comes from 1e-30 of them. Doubles have 16 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["NAN", "Decimals", "decimals", "in_decimals", "integers"]

P = ParamSpec("P")
T = TypeVar("T")
Decimals = NDArray[Any]
"""An array of decimals."""
NAN = Decimal("NaN")
_CONTEXT = Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])  # nothing raises: NaN is what is not known
_decimal = np.frompyfunc(Decimal, 1, 1)
_WORD = 64


def in_decimals(function: Callable[P, T]) -> Callable[P, T]:
    """A decorator: decimals have a hundred digits inside, and 0 / 0 is NaN."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with localcontext(_CONTEXT):
            return function(*args, **kwargs)

    return wrapped


def decimals(numbers: ArrayLike | Sequence[Decimal]) -> Decimals:
    """Integers or doubles as decimals, exactly; decimals as they are."""
    array = np.asarray(numbers)
    return np.asarray(_decimal(array.astype(object)), object)


def integers(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Python's integers from words along the last axis, the lowest first, in two's complement.

    >>> integers(np.array([[5, 1], [2**64 - 1, 2**64 - 1]], np.uint64)).tolist()
    [18446744073709551621, -1]
    """
    count, parts = words.shape[-1], words.astype(object)
    whole = sum((parts[..., i] << (_WORD * i) for i in range(1, count)), start=parts[..., 0])
    return np.asarray(whole - ((parts[..., -1] >> (_WORD - 1)) << (_WORD * count)), object)
