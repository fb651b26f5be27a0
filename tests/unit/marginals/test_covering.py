"""Covering designs: complete, close to the smallest, and repeatable."""

from __future__ import annotations

from itertools import combinations

import pytest

from veil.errors import ParameterError
from veil.marginals.covering import COVERED_SETS, covering_design, flat_count, flats, geometry_of, schoenheim

SMALLEST = {
    (8, 3, 4): 14,
    (8, 2, 4): 6,
    (16, 2, 4): 20,
    (16, 2, 3): 43,
    (16, 3, 4): 140,
    (32, 3, 4): 1240,
    (9, 2, 3): 12,
    (13, 2, 4): 13,
    (21, 2, 5): 21,
    (7, 3, 4): 12,
    (32, 2, 8): 20,
}
"""The least that is known (La Jolla's table of covering designs): most are geometries."""
SEARCHED = {
    (10, 2, 4): 9,
    (12, 2, 4): 13,
    (10, 3, 4): 36,
    (16, 3, 5): 80,
    (16, 3, 6): 48,
    (24, 2, 5): 31,
    (32, 3, 8): 140,
}
"""What the search reaches: within a fifth of the least that is known."""


def missing(design: tuple[tuple[int, ...], ...], m: int, k: int) -> int:
    """How many sets of k attributes lie inside no set of a design: counted one by one."""
    held = {some for block in design for some in combinations(block, k)}
    return sum(some not in held for some in combinations(range(m), k))


@pytest.mark.parametrize(("sizes", "most"), [*SMALLEST.items(), *SEARCHED.items()])
def test_designs_cover_with_few_sets(sizes: tuple[int, int, int], most: int) -> None:
    m, k, s = sizes
    design = covering_design(m, k, s)
    assert missing(design, m, k) == 0
    assert schoenheim(m, k, s) <= len(design) <= most
    assert all(len(set(block)) == s and list(block) == sorted(block) for block in design)
    assert len(set(design)) == len(design)
    assert missing(design[1:], m, k) > 0  # the rival: no set is needless


@pytest.mark.parametrize("m", range(2, 9))
def test_every_small_design_covers(m: int) -> None:
    for s in range(1, m + 1):
        for k in range(1, s + 1):
            design = covering_design(m, k, s)
            assert missing(design, m, k) == 0
            assert len(design) >= schoenheim(m, k, s)
            if k == s or s == m:
                assert len(design) == (1 if s == m else schoenheim(m, k, s))


@pytest.mark.parametrize("sizes", [(40, 2, 5), (20, 4, 7), (200, 2, 6), (20, 5, 8)])
def test_large_designs_cover(sizes: tuple[int, int, int]) -> None:
    m, k, s = sizes
    design = covering_design(m, k, s)
    assert missing(design, m, k) == 0
    assert schoenheim(m, k, s) <= len(design)


def test_search_is_repeatable() -> None:
    first = covering_design(11, 2, 4)
    covering_design.cache_clear()
    assert covering_design(11, 2, 4) == first


def test_too_many_sets_are_refused() -> None:
    with pytest.raises(ParameterError, match=f"at most {COVERED_SETS:,}"):
        covering_design(32, 6, 8)
    for sizes in ((4, 3, 2), (4, 0, 2), (3, 2, 4), (4.0, 2, 3)):
        with pytest.raises(ParameterError, match="1 <= k <= s <= m"):
            covering_design(*sizes)


@pytest.mark.parametrize(
    ("m", "k", "s"), [(8, 3, 4), (16, 2, 4), (9, 2, 3), (25, 2, 5), (49, 2, 7), (64, 2, 8), (81, 2, 9), (7, 2, 3)]
)
def test_through_k_points_goes_one_flat(m: int, k: int, s: int) -> None:
    geometry = geometry_of(m, k, s)
    assert geometry is not None
    found = flats(*geometry)
    assert len(found) == flat_count(*geometry) == schoenheim(m, k, s)
    held = [some for block in found for some in combinations(block, k)]
    assert len(held) == len(set(held))


def test_planes_over_two_values_are_quadruples_with_xor_0() -> None:
    assert all(a ^ b ^ c ^ d == 0 for a, b, c, d in covering_design(16, 3, 4))
