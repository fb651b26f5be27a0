"""The choice of a design (`auto`): the smallest predicted errors for a schema, a number of people and a workload.

Only designs whose intervals follow from the exact distribution of the reports are chosen: HIO, HI, SC and MG. `Grids`
fills in the inside of its coarse cells by a model, and is used only by name.

Every design predicts the variance of a COUNT exactly, for people who are spread evenly over all cells
(`Design.variance`). Designs are compared by the root mean square over queries; a design that cannot answer one of them
is left out. The thesis compares orders of growth instead (Wang 2021, section 7.4.4), which do not tell where one design
becomes better than another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Record
from veil.errors import EmptyError, InputError, ParameterError
from veil.sql.designs.base import Design
from veil.sql.designs.conjunction import SC
from veil.sql.designs.grids import Grids
from veil.sql.designs.hio import HI, HIO
from veil.sql.designs.marginal import MG
from veil.sql.language.query import And, Box, InRanges, Query
from veil.sql.language.regions import disjoint_boxes, patterns
from veil.sql.table import Table
from veil.survey import EachOf, OneOf
from veil.tools.numbers import is_int

Workload = Mapping[str, Sequence[Sequence[Box]]]
"""Queries by what kind they are of; a query is the disjoint boxes that it selects."""

DESIGNS: dict[str, type[Design]] = {design.__name__: design for design in (HIO, HI, SC, MG, Grids)}
"""The designs by the names that schema files use."""

_EACH = 12  # queries of each kind
_NARROW, _WIDE = (0.01, 0.05), (0.25, 0.8)
_ALL_TOGETHER = 3  # up to so many dimensions, queries may be about all of them unless something else is said
_MOST_USERS = 10**12
_MOST_BUCKETS = 24  # groups of a query that are looked at


@dataclass(frozen=True)
class PredictedDesign:
    """A design, and the standard errors that are to be expected of it, as shares of all people."""

    name: str
    design: Design
    errors: Mapping[str, float]
    """The root mean square over the queries of each kind; infinite where one of them cannot be answered."""
    error: float
    """The same over all queries."""


def expected_counts(table: Table, users: int) -> NDArray[np.int64]:
    """How many people make each choice, to the nearest whole number; all of them, where there is no choice."""
    if not is_int(users) or not 0 <= users <= _MOST_USERS:
        raise ParameterError(f"how many people there are is a whole number from 0 to {_MOST_USERS:,}")
    ask = table.survey.ask
    if not isinstance(ask, (EachOf, OneOf)):
        return np.array([users], dtype=np.int64)
    parts = [share for share, _ in ask.branches] if isinstance(ask, OneOf) else [1] * len(ask)
    ends = np.cumsum([0, *parts]) / sum(parts) * users
    whole = np.rint(ends).astype(np.int64)
    return whole[1:] - whole[:-1]


def predicted_error(table: Table, boxes: Sequence[Box], users: int) -> float:
    """The standard error of a COUNT over disjoint boxes, as a share of all people; infinite where none can be given.

    >>> from veil import Integers
    >>> shop = Table(2.0, Record.of(age=Integers(0, 1023)))
    >>> round(predicted_error(shop, [(((0, 512),),)], 1_000_000), 5)
    0.00152
    """
    counts = expected_counts(table, users)
    try:
        variance = table.design.variance(table, boxes, counts)
    except (EmptyError, InputError):  # nobody would be asked about it, or reading it would take too long
        return math.inf
    return math.sqrt(variance) / users


def typical_queries(private: Record, most: int, seed: int = 7) -> dict[str, list[list[Box]]]:
    """Random queries over one, two, ... `most` of the dimensions: ranges, or one value where there is no order.

    Over one dimension there are narrow ranges (1 to 5 % of the values) and wide ones (25 to 80 %), over several wide
    ones. The same schema always gets the same queries.
    """
    sizes = [part.size for part in private.parts]
    ranged = [not isinstance(part, Categories) for part in private.parts]
    random = np.random.default_rng(seed)

    def drawn(places: Sequence[int], lengths: tuple[float, float]) -> list[Box]:
        sides: list[tuple[tuple[int, int], ...] | None] = [None] * len(sizes)
        for place in places:
            share = random.uniform(*lengths)
            length = min(max(round(share * sizes[place]), 1), sizes[place] - 1) if ranged[place] else 1
            start = int(random.integers(sizes[place] - length + 1))
            sides[place] = ((start, start + length),)
        return [tuple(sides)]

    def spread(many: int) -> list[tuple[int, ...]]:
        sets = list(combinations(range(len(sizes)), many))
        return [sets[i % len(sets)] for i in random.permutation(max(len(sets), _EACH))[:_EACH]]

    found = {"one, narrow": [drawn(places, _NARROW) for places in spread(1)]} if any(ranged) else {}
    found["one, wide" if any(ranged) else "one"] = [drawn(places, _WIDE) for places in spread(1)]
    for many in range(2, most + 1):
        found[{2: "two", 3: "three"}.get(many, str(many))] = [drawn(places, _WIDE) for places in spread(many)]
    return found


def default_queries(private: Record) -> dict[str, list[list[Box]]]:
    """Typical queries over one and two dimensions, and over all three where there are three.

    Two are what most conditions name; designs that leave out more at once are only of use if there are more than three.
    """
    many = len(private.parts)
    return typical_queries(private, many if many <= _ALL_TOGETHER else 2)


def asked_queries(texts: Sequence[str], table: Table) -> dict[str, list[list[Box]]]:
    """The workload of queries in SQL, each a kind of its own; of one with many groups, some of them.

    What is public holds for everybody here: with fewer people, errors are larger as usual.
    """
    from veil.sql.language.parsing import parse

    found = {}
    for text in texts:
        boxes = [some for some in boxes_of(parse(text, table), table) if some]
        found[text] = boxes or [[(None,) * len(table.private.parts)]]
    return found


def boxes_of(query: Query, table: Table) -> list[list[Box]]:
    """The boxes of each private group of a query, where all its public conditions hold; not of more than 24 groups."""
    split, sizes = patterns(query.where), [part.size for part in table.private.parts]
    where = split.where((1 << len(split.atoms)) - 1)
    keys = list(query.private_keys)
    groups = list(product(*(key.buckets for key in keys)))
    step = max(1, len(groups) // _MOST_BUCKETS)
    found = []
    for buckets in groups[::step]:
        inside = [InRanges(key.place, ((b.start, b.stop),)) for key, b in zip(keys, buckets, strict=True)]
        found.append(list(disjoint_boxes(And((where, *inside)), sizes)))
    return found


def known_designs(dimensions: int, users: int) -> dict[str, Design]:
    """Return the designs that plans compare, by name: HIO-2 and MG-1 ask about at most so many dimensions at once."""
    found: dict[str, Design] = {"HIO": HIO()}
    found |= {f"HIO-{most}": HIO(most=most) for most in (1, 2) if most < dimensions}
    found |= {"SC": SC(), "SC-sampled": SC(levels="sampled"), "MG": MG(), "HI": HI()}
    if dimensions > 1:
        found |= {"MG-1": MG(k=1), "Grids": Grids(people=users)}
    return found


def choose_design(
    private: Record,
    epsilon: float,
    users: int,
    workload: Workload | None = None,
    designs: Mapping[str, Design] | None = None,
) -> list[PredictedDesign]:
    """Return the designs with their predicted errors over a workload, the best first.

    Without a workload it is that of `default_queries`. Without `designs` these are the known ones whose intervals
    follow from the exact law, so `Grids` is not among them. A design that is impossible for the schema is left out.

    >>> from veil import Integers
    >>> people = Record.of(age=Integers(0, 1023))
    >>> [found.name for found in choose_design(people, 2.0, 1_000_000)[:2]]
    ['HIO', 'SC-sampled']
    """
    if workload is None:
        workload = default_queries(private)
    if not workload or not all(workload.values()):
        raise ParameterError("a workload has at least one query of each kind")
    if designs is None:
        known = known_designs(len(private.parts), users)
        designs = {name: design for name, design in known.items() if not design.assumption}
    found = []
    for name, design in designs.items():
        try:
            table = Table(epsilon, private, design=design)
            table.survey  # noqa: B018  # refuses a schema that is beyond the design
        except ParameterError:
            continue
        found.append(replace(predict(table, workload, users), name=name))
    if not found:
        raise ParameterError("none of the designs can ask about these dimensions: take fewer of them, or wider buckets")
    return sorted(found, key=lambda one: one.error)


def predict(table: Table, workload: Workload, users: int) -> PredictedDesign:
    """What to expect of a table's design over a workload."""
    squares = {
        kind: [predicted_error(table, boxes, users) ** 2 for boxes in queries] for kind, queries in workload.items()
    }
    every = [square for some in squares.values() for square in some]
    errors = {kind: math.sqrt(sum(some) / len(some)) for kind, some in squares.items()}
    return PredictedDesign(type(table.design).__name__, table.design, errors, math.sqrt(sum(every) / len(every)))


def most_together(design: Design, dimensions: int) -> int:
    """About how many dimensions at once a query may be that a design answers."""
    if isinstance(design, HIO):
        return design.most or dimensions
    if isinstance(design, MG):
        return max(map(len, design.views)) if design.views is not None else design.k or min(2, dimensions)
    return dimensions
