"""Tests with many cases: which of them run every day, and which only with `make acceptance`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def everyday(cases: Iterable[Any], *often: int) -> list[Any]:
    """All cases; `make test` runs those at these places, and `make acceptance` the others.

    >>> [bool(one.marks) for one in everyday("abc", 0, 2)]
    [False, True, False]
    """
    listed = list(cases)
    assert all(place < len(listed) for place in often)
    rarely = (pytest.mark.acceptance,)
    return [pytest.param(one, marks=() if place in often else rarely) for place, one in enumerate(listed)]
