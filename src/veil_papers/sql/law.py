"""Answers of the thesis's designs drawn from their law: the fewest disjoint nodes, each group scaled to all people.

Everybody answers through OLH. Given a report, each node that its sender does not hold is supported independently with
probability q (ideal hash), the held one with probability p. So of c nodes of a level and n people, of whom a hold one
of these nodes, the supports add up to Bin(a, p) + Bin(c n - a, q): one pair of binomials for each level and each
value of the measure, whatever the number of nodes. Who answers for which level is drawn as well. Sums are those of
(7.6), with one draw for each value of the measure. This equals simulating every report in distribution, and so millions
of people take milliseconds; `asking` makes real reports and reads them by `veil.sql`.

Simulation only: numpy's generator protects nobody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from veil import OLH
from veil_papers.datasets import Tabular

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Generator = np.random.Generator
Box = tuple[tuple[int, int] | None, ...]
"""A range [start, stop) of codes for each dimension, None for all of them."""

FAN_OUT = 5

DRAWN = (
    "Answers are drawn from their law: who answers for which level, and two binomials for the supports of all nodes "
    "that a query takes from it, which equals simulating every report in distribution (OLH with an ideal hash)."
)


Marks = tuple[NDArray[np.bool_] | None, ...]


@dataclass(frozen=True)
class Taken:
    """What a query takes from one group: how many nodes, and which codes lie in them.

    Nodes are marked by one array per dimension (None: all codes), or by one array over all dimensions.
    """

    nodes: int
    marks: Marks | NDArray[np.bool_]


@dataclass(frozen=True)
class Design:
    """How people are asked: the eps of one report, and over how many groups people are split (1: all answer all)."""

    name: str
    epsilon: float
    groups: int

    @property
    def oracle(self) -> OLH:
        """The oracle of every level; its p and q depend on eps alone."""
        return OLH(self.epsilon, 2)


def height(size: int, fan_out: int = FAN_OUT) -> int:
    """The height of a tree over so many codes, padded to a power of the fan-out.

    >>> height(625), height(1024)
    (4, 5)
    """
    levels = 0
    while fan_out**levels < size:
        levels += 1
    return levels


def pieces(lo: int, hi: int, size: int, fan_out: int = FAN_OUT) -> dict[int, list[tuple[int, int]]]:
    """The fewest disjoint nodes that make up [lo, hi), as runs of codes by their level; level 0 is the whole.

    >>> pieces(1, 7, 8, 2)
    {3: [(1, 2), (6, 7)], 2: [(2, 6)]}
    """
    levels = height(size, fan_out)
    hi = fan_out**levels if hi == size else hi  # what is padded holds nobody
    found: dict[int, list[tuple[int, int]]] = {}
    for level in range(levels, 0, -1):
        width = fan_out ** (levels - level)
        up = width * fan_out
        inner = (-(-lo // up) * up, hi // up * up)
        if inner[0] >= inner[1]:
            sides = [(lo, hi)]
            inner = (hi, hi)
        else:
            sides = [(lo, inner[0]), (inner[1], hi)]
        taken = [side for side in sides if side[0] < side[1]]
        if taken:
            found[level] = taken
        lo, hi = inner
        if lo >= hi:
            return found
    found[0] = [(lo, hi)]
    return found


def levels_taken(box: Box, sizes: Sequence[int]) -> list[Taken]:
    """What HI and HIO take from every combination of levels."""
    each: list[list[tuple[int, NDArray[np.bool_] | None]]] = []
    for side, size in zip(box, sizes, strict=True):
        if side is None:
            each.append([(1, None)])
            continue
        of: list[tuple[int, NDArray[np.bool_] | None]] = []
        for level, runs in pieces(*side, size).items():
            width = FAN_OUT ** (height(size) - level)
            of.append((sum(stop - start for start, stop in runs) // width, _marked(size, runs)))
        each.append(of)
    return [Taken(math.prod(nodes for nodes, _ in parts), tuple(mark for _, mark in parts)) for parts in product(*each)]


def cells_taken(box: Box, sizes: Sequence[int]) -> list[Taken]:
    """What MG takes: every cell of the box, of the marginal over the dimensions in the predicate."""
    marks = tuple(None if side is None else _marked(size, [side]) for side, size in zip(box, sizes, strict=True))
    return [Taken(math.prod(int(mark.sum()) for mark in marks if mark is not None), marks)]


def quads_taken(box: Box, sizes: Sequence[int]) -> list[Taken]:
    """What a QuadTree over a square takes, by level: nodes are squares, which halve both sides at once."""
    (a, b), (c, d) = (side if side is not None else (0, size) for side, size in zip(box, sizes, strict=True))
    found: dict[int, tuple[int, NDArray[np.bool_]]] = {}

    def visit(x: int, y: int, width: int) -> None:
        if x >= b or x + width <= a or y >= d or y + width <= c:
            return
        if a <= x and x + width <= b and c <= y and y + width <= d:
            nodes, marks = found.get(width, (0, np.zeros(sizes, np.bool_)))
            marks[x : x + width, y : y + width] = True
            found[width] = nodes + 1, marks
            return
        for dx, dy in product((0, width // 2), repeat=2):
            visit(x + dx, y + dy, width // 2)

    visit(0, 0, sizes[0])
    return [Taken(nodes, marks) for nodes, marks in found.values()]


def _marked(size: int, runs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    marks = np.zeros(size, np.bool_)
    for start, stop in runs:
        marks[start:stop] = True
    return marks


# -- people ------------------------------------------------------------------------------------------------------------


class People:
    """People who are asked, by what they hold, with a measure; `weights` are its different values."""

    def __init__(self, table: Tabular, measure: str | None = None) -> None:
        self.sizes, self.n = table.private.sizes, table.people
        self.codes = table.private.codes
        column = np.ones(self.n, np.int64) if measure is None else table.public[measure]
        self.weights, self.of = np.unique(column, return_inverse=True)
        self.each = np.bincount(self.of, minlength=len(self.weights))
        self.total = float(np.abs(self.weights) @ self.each)

    def truth(self, box: Box) -> tuple[int, float]:
        """How many people are in the box, and the sum of their measure."""
        held = self.held(cells_taken(box, self.sizes)[0])
        return int(held.sum()), float(self.weights @ held)

    def held(self, taken: Taken) -> Ints:
        """How many people of each measure hold one of these nodes."""
        if isinstance(taken.marks, tuple):
            found = np.ones(self.n, np.bool_)
            for column, marks in zip(self.codes.T, taken.marks, strict=True):
                if marks is not None:
                    found &= marks[column]
        else:
            found = taken.marks[tuple(self.codes.T)]
        return np.bincount(self.of[found], minlength=len(self.weights))


def answers(design: Design, people: People, taken: Sequence[Taken], runs: int, rng: Generator) -> Floats:
    """What the design answers for the sum of the measure over a box, in so many collections."""
    oracle = design.oracle
    p, q = float(oracle.p), float(oracle.q)
    nodes = np.array([one.nodes for one in taken])
    inside = np.stack([people.held(one) for one in taken], axis=1)  # by measure and level
    if design.groups == 1:
        own = np.broadcast_to(inside, (runs, *inside.shape))
        there = np.broadcast_to(people.each[:, None], own.shape)
        scale = np.ones((runs, len(taken)))
    else:
        own, there = _split(inside, people.each, design.groups, runs, rng)
        scale = people.n / np.maximum(there.sum(axis=1), 1)
    supports = rng.binomial(own, p) + rng.binomial(there * nodes - own, q)
    unbiased = (supports - q * there * nodes) / (p - q)
    return np.asarray(np.einsum("rwl,w,rl->r", unbiased, people.weights.astype(np.float64), scale))


def _split(inside: Ints, each: Ints, groups: int, runs: int, rng: Generator) -> tuple[Ints, Ints]:
    """People split over all levels: of those asked for each level that is taken, who holds one of its nodes, and all.

    Everybody holds a node of one level at most, as nodes are disjoint: those of each level, and all others, are split.
    """
    used = inside.shape[1]
    parts = np.concatenate([inside, (each - inside.sum(axis=1))[:, None]], axis=1)
    chances = np.append(np.full(used, 1 / groups), max(1 - used / groups, 0.0))
    asked = rng.multinomial(np.broadcast_to(parts, (runs, *parts.shape)), chances / chances.sum())
    there = asked.sum(axis=2)[:, :, :used]
    own = asked[:, :, np.arange(used), np.arange(used)]
    return own, there
