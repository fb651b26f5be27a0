"""Which views to ask for."""

from __future__ import annotations

from itertools import combinations


def choose_views(
    sizes: tuple[int, ...], k: int, epsilon: float, users: int, threshold: float
) -> tuple[tuple[int, ...], ...]:
    """The sets of attributes to ask for."""
    return tuple(combinations(range(len(sizes)), 2))
