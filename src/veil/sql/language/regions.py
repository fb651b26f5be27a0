"""Regions of private cells: ranges of codes, the algebra of conditions, and the boxes that a condition selects.

A box has one side per dimension. A condition becomes disjoint boxes. Its public parts are separated first (`patterns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from veil.errors import InputError
from veil.sql.language.query import FALSE, TRUE, And, Box, Condition, InRanges, Or, PublicCondition, Runs

LARGEST = 4096
"""Boxes that a condition may need; beyond it the query is refused."""

_TRIED = 4  # with so many dimensions or fewer, every order of them is tried
_EFFORT = 300_000  # comparisons that are decided along one order of dimensions: about two seconds


def union(*parts: Runs) -> Runs:
    """The codes that lie in any of the parts.

    >>> union(((0, 3), (7, 9)), ((3, 5),))
    ((0, 5), (7, 9))
    """
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(run for part in parts for run in part if run[0] < run[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return tuple(merged)


def complement(runs: Runs, size: int) -> Runs:
    """The codes below `size` that do not lie in the runs.

    >>> complement(((0, 3), (7, 9)), 10)
    ((3, 7), (9, 10))
    """
    ends = [0, *(end for run in runs for end in run), size]
    return tuple((start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True) if start < stop)


def intersect(one: Runs, other: Runs) -> Runs:
    """The codes that lie in both.

    >>> intersect(((0, 5), (7, 9)), ((3, 8),))
    ((3, 5), (7, 8))
    """
    return union(tuple((max(a, c), min(b, d)) for a, b in one for c, d in other))


def both(parts: Iterable[Condition]) -> Condition:
    """All parts at once, made simple: true parts left out, one condition per dimension.

    >>> both([InRanges(0, ((0, 5),)), TRUE, InRanges(0, ((3, 9),))])
    InRanges(place=0, runs=((3, 5),))
    """
    return _joined(parts, And, FALSE)


def either(parts: Iterable[Condition]) -> Condition:
    """At least one of the parts, made simple: false parts left out, one condition per dimension."""
    return _joined(parts, Or, TRUE)


def _joined(parts: Iterable[Condition], kind: type[And] | type[Or], settles: Condition) -> Condition:
    """Both or Either of parts, of which `settles` decides alone."""
    held: dict[Condition, None] = {}  # in order, each once
    sides: dict[int, Runs] = {}
    for part in _flat(parts, kind):
        if isinstance(part, InRanges):
            seen = sides.get(part.place)
            joined = part.runs if seen is None else (intersect if kind is And else union)(seen, part.runs)
            sides[part.place] = joined
        else:
            held.setdefault(part)
    conditions: list[Condition] = [InRanges(place, runs) if runs else FALSE for place, runs in sides.items()]
    conditions = [part for part in (*conditions, *held) if part not in (FALSE, TRUE) or part == settles]
    if settles in conditions:
        return settles
    return conditions[0] if len(conditions) == 1 else kind(tuple(conditions))


def _flat(parts: Iterable[Condition], kind: type[And] | type[Or]) -> Iterator[Condition]:
    for part in parts:
        if isinstance(part, kind):
            yield from _flat(part.parts, kind)
        else:
            yield part


def simplified(condition: Condition, sizes: Sequence[int]) -> Condition:
    """The condition made simple: sides that hold all codes of their dimension, or none, are true or false.

    >>> simplified(Or((InRanges(0, ((0, 5),)), InRanges(0, ((5, 9),)), PublicCondition("a"))), (9,)) == TRUE
    True
    """
    if isinstance(condition, PublicCondition):
        return condition
    if isinstance(condition, InRanges):
        runs = intersect(condition.runs, ((0, sizes[condition.place]),))
        return (
            FALSE if not runs else TRUE if runs == ((0, sizes[condition.place]),) else InRanges(condition.place, runs)
        )
    joined = _rejoined(condition, (simplified(part, sizes) for part in condition.parts))
    if isinstance(joined, (And, Or)) and any(isinstance(part, InRanges) for part in joined.parts):
        # sides that were joined can hold all codes
        sides = (simplified(part, sizes) if isinstance(part, InRanges) else part for part in joined.parts)
        return _rejoined(joined, sides)
    return simplified(joined, sizes) if isinstance(joined, InRanges) else joined


def _rejoined(condition: And | Or, parts: Iterable[Condition]) -> Condition:
    return (both if isinstance(condition, And) else either)(parts)


@dataclass(frozen=True)
class Patterns:
    """A condition apart from its public parts: `atoms` are these as SQL, each once."""

    condition: Condition
    atoms: tuple[str, ...]

    def where(self, bits: int) -> Condition:
        """What is left for the private dimensions, where atom i holds if bit i is set, and does not if it is not."""
        return _settled(self.condition, {sql: bool(bits >> i & 1) for i, sql in enumerate(self.atoms)})


def patterns(condition: Condition) -> Patterns:
    """The public parts of a condition, and what is left of it for each pattern of them.

    >>> found = patterns(Or((PublicCondition('"os" = 1'), InRanges(0, ((3, 5),)))))
    >>> found.atoms, found.where(1) == TRUE, found.where(0)
    (('"os" = 1',), True, InRanges(place=0, runs=((3, 5),)))
    """
    return Patterns(
        condition, tuple(dict.fromkeys(leaf.sql for leaf in _leaves(condition) if isinstance(leaf, PublicCondition)))
    )


def _leaves(condition: Condition) -> Iterator[InRanges | PublicCondition]:
    if isinstance(condition, (And, Or)):
        for part in condition.parts:
            yield from _leaves(part)
    else:
        yield condition


def _settled(condition: Condition, truth: dict[str, bool]) -> Condition:
    if isinstance(condition, PublicCondition):
        return TRUE if truth[condition.sql] else FALSE
    if isinstance(condition, InRanges):
        return condition
    return _rejoined(condition, (_settled(part, truth) for part in condition.parts))


def disjoint_boxes(condition: Condition, sizes: Sequence[int]) -> tuple[Box, ...]:
    """Boxes that do not overlap and together hold exactly the cells that the condition selects.

    The condition is decided dimension by dimension, codes that leave the same open going together; of the orders of
    dimensions the one with the fewest boxes is kept. Raises InputError above `LARGEST` boxes.

    >>> disjoint_boxes(Or((InRanges(0, ((0, 5),)), InRanges(1, ((2, 3),)))), (10, 4))
    ((((0, 5),), None), (((5, 10),), ((2, 3),)))
    """
    simple = simplified(condition, sizes)
    leaves = list(_leaves(simple))
    if any(isinstance(leaf, PublicCondition) for leaf in leaves):
        raise InputError("expected a condition on private dimensions alone: take public parts out by `patterns`")
    places = sorted({leaf.place for leaf in leaves if isinstance(leaf, InRanges)})
    best: tuple[Box, ...] | None = None
    spent = 0
    for order in permutations(places) if len(places) <= _TRIED else (places, places[::-1]):
        splitting = _Splitting(tuple(order), tuple(sizes))
        try:
            found = _merged(splitting.boxes(simple, 0), sizes)
            best = found if best is None or _runs(found) < _runs(best) else best
        except _TooMany:
            pass
        spent += splitting.effort
        if (best is not None and len(best) <= 1) or spent > (_EFFORT if best is None else _EFFORT // 20):
            break
    if best is None:
        raise InputError(
            f"the condition needs more than {LARGEST:,} boxes of private cells, or too long to find them: "
            "ask for fewer dimensions or ranges at once"
        )
    return best


class _TooMany(InputError):  # noqa: N818  # another order may do
    """An order of dimensions needs too many boxes, or too long to find them."""


class _Splitting:
    """Boxes of a condition, decided along one order of its dimensions. What was found for a rest is remembered."""

    def __init__(self, order: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.order, self.sizes = order, sizes
        self.known: dict[tuple[Condition, int], tuple[Box, ...]] = {}
        self.effort = 0

    def boxes(self, condition: Condition, depth: int) -> tuple[Box, ...]:
        if condition == FALSE:
            return ()
        if condition == TRUE:
            return ((None,) * len(self.sizes),)
        if (condition, depth) not in self.known:
            self.known[condition, depth] = self._split(condition, depth)
        return self.known[condition, depth]

    def _split(self, condition: Condition, depth: int) -> tuple[Box, ...]:
        place, size = self.order[depth], self.sizes[self.order[depth]]
        leaves = [leaf for leaf in _leaves(condition) if isinstance(leaf, InRanges)]
        sides = dict.fromkeys(leaf.runs for leaf in leaves if leaf.place == place)
        edges = sorted({0, size, *(end for runs in sides for run in runs for end in run)})
        alike: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
        for start, stop in pairwise(edges):
            inside = tuple(any(a <= start and stop <= b for a, b in runs) for runs in sides)
            alike.setdefault(inside, []).append((start, stop))
        self.effort += len(leaves) * len(alike)
        if self.effort > _EFFORT:
            raise _TooMany
        grouped: dict[tuple[Box, ...], list[Runs]] = {}
        for inside, runs in alike.items():
            rest = _decided(condition, place, dict(zip(sides, inside, strict=True)))
            grouped.setdefault(self.boxes(rest, depth + 1), []).append(tuple(runs))
        found: list[Box] = []
        for boxes, parts in grouped.items():
            side = _side(union(*parts), size)
            found += (_with_side(box, place, side) for box in boxes)
            if len(found) > LARGEST:
                raise _TooMany
        return tuple(found)


def _decided(condition: Condition, place: int, inside: dict[Runs, bool]) -> Condition:
    """The condition where it is known for each side of one dimension whether the code lies inside."""
    if isinstance(condition, InRanges):
        return condition if condition.place != place else TRUE if inside[condition.runs] else FALSE
    if isinstance(condition, PublicCondition):
        return condition
    return _rejoined(condition, (_decided(part, place, inside) for part in condition.parts))


def _side(runs: Runs, size: int) -> Runs | None:
    return None if runs == ((0, size),) else runs


def _with_side(box: Box, place: int, side: Runs | None) -> Box:
    return (*box[:place], side, *box[place + 1 :])


def _merged(boxes: tuple[Box, ...], sizes: Sequence[int]) -> tuple[Box, ...]:
    """The boxes with any two that differ in one side alone made one, until there are none."""
    while True:
        before = len(boxes)
        for place, size in enumerate(sizes):
            alike: dict[Box, list[Box]] = {}
            for box in boxes:
                alike.setdefault(_with_side(box, place, None), []).append(box)
            boxes = tuple(
                same[0]
                if len(same) == 1
                else _with_side(rest, place, _side(union(*(box[place] or () for box in same)), size))
                for rest, same in alike.items()
            )
        if len(boxes) == before:
            return boxes


def _runs(boxes: tuple[Box, ...]) -> tuple[int, int]:
    return len(boxes), sum(len(side) for box in boxes for side in box if side is not None)
