"""Fitted fan-outs: energies of ranges by enumeration, and known choices."""

import time

import numpy as np
import pytest

from veil import Record
from veil.errors import ParameterError
from veil.sql.designs.fanouts import combined_levels, fitted_fan_outs, range_energies
from veil.survey import Levels
from veil.tree import Tree


@pytest.mark.parametrize(("leaves", "branching"), [(1, 2), (2, 2), (7, 3), (8, 2), (10, 4), (12, 12)])
def test_energies_are_those_of_all_ranges(leaves, branching):
    tree = Tree(leaves, branching)
    found, ranges = np.zeros(tree.height + 1), 0
    for lo in range(leaves):
        for hi in range(lo + 1, leaves + 1):
            inside = (np.arange(leaves) >= lo) & (np.arange(leaves) < hi)
            ranges += 1
            coarser = np.zeros(leaves)
            for level in range(tree.height + 1):
                finer = np.zeros(leaves)
                for node in range(tree.sizes[level]):
                    start, stop = tree.span(level, node)
                    finer[start:stop] = inside[start:stop].mean()
                found[level] += ((finer - coarser) ** 2).mean()
                coarser = finer
    assert range_energies(tree) == pytest.approx(found / ranges, rel=1e-12)


def test_fitted_fan_outs_of_known_schemas():
    assert fitted_fan_outs((1024,), (True,), 2.0) == (4,)  # 4^5, where 5 would pad to 3125
    assert fitted_fan_outs((625, 625, 50, 2), (True, True, False, False), 2.0) == (5, 5, 50, 2)
    # more dimensions have more groups, so that flatter trees are better
    assert fitted_fan_outs((625,) * 4 + (2, 7, 16, 50), (True,) * 4 + (False,) * 4, 5.0) == (9, 9, 9, 9, 2, 7, 16, 50)
    assert fitted_fan_outs((64,) * 6, (True,) * 6, 1.0) == (8,) * 6


def test_fitted_fan_outs_of_small_and_odd_sizes():
    assert fitted_fan_outs((1, 2, 3), (True, True, False), 1.0) == (2, 2, 3)
    for size in range(1, 70):
        (fan_out,) = fitted_fan_outs((size,), (True,), 1.0)
        assert 2 <= fan_out <= max(2, size)
    with pytest.raises(ParameterError, match="one size"):
        fitted_fan_outs((3,), (), 1.0)


def test_fitting_eight_different_dimensions_is_fast():
    start = time.perf_counter()
    assert len(fitted_fan_outs((100, 82, 365, 1024, 20, 50, 600, 77), (True,) * 8, 1.5)) == 8
    assert time.perf_counter() - start < 2  # 0.05 s on a quiet machine


def test_fewer_dimensions_together_give_deeper_trees():
    sizes, ordinal = (625,) * 4 + (2, 7, 16, 50), (True,) * 4 + (False,) * 4
    assert fitted_fan_outs(sizes, ordinal, 5.0, most=2) == (5, 5, 5, 5, 2, 7, 16, 50)
    assert fitted_fan_outs(sizes, ordinal, 5.0, most=8) == fitted_fan_outs(sizes, ordinal, 5.0)


@pytest.mark.parametrize("most", [None, 1, 2, 3])
def test_combinations_of_levels_match_the_survey_rule(most):
    rule = Levels(Record.of(a=9, b=4, c=5), (("a", 3), ("b", 2), ("c", 5)))
    every = rule.levels(np.arange(len(rule)))
    wanted = every[(every > 0).sum(axis=1) <= (3 if most is None else most)]
    assert combined_levels((2, 2, 1), most).tolist() == wanted.tolist()


def test_combinations_of_two_of_many_dimensions():
    assert len(combined_levels((3,) * 30, 2)) == 90 + 435 * 9
