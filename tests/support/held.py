"""People for any study: values that its domain holds, drawn at random and unevenly."""

from __future__ import annotations

from typing import Any

import numpy as np

from veil import Bits, Categories, Integers, Interval, Items, Record, Study, Text
from veil.domain import Domain
from veil.sql import Category, Measure, Table


def values_of(domain: Domain, people: int, rng: np.random.Generator) -> Any:
    """So many values of a domain, some of them often."""
    often = np.minimum(rng.geometric(0.3, people) - 1, 63)
    if isinstance(domain, Record):
        return {name: values_of(part, people, rng) for name, part in domain.attributes}
    if isinstance(domain, Items):
        size = domain.universe.size
        return [list({int(i) % size for i in rng.integers(0, size, k)}) for k in often % 4 + 1]
    if isinstance(domain, Text):
        return [("a", "b", "abc", "ca")[i % 4] for i in often]
    if isinstance(domain, Interval):
        return rng.beta(2, 5, people) * (domain.hi - domain.lo) + domain.lo
    if isinstance(domain, Integers):
        return domain.lo + often % domain.size
    if isinstance(domain, Categories) and domain.labels is not None:
        return [domain.labels[i % domain.size] for i in often]
    if isinstance(domain, Bits):
        return [int(i) % domain.size for i in often * 2654435761]
    return often % domain.size


def people_of(study: Study, people: int, seed: int = 0) -> Any:
    """So many people of a study: what they hold, with public columns where it has some."""
    rng = np.random.default_rng(seed)
    held = values_of(study.survey.domain, people, rng)
    if isinstance(study, Table):
        for column in study.public:
            if isinstance(column, Measure):
                held[column.name] = np.round(rng.lognormal(2, 1, people) - 5, 2)
            elif isinstance(column, Category):
                held[column.name] = [column.labels[i] for i in rng.integers(0, len(column.labels), people)]
            else:
                held[column.name] = np.datetime64("2026-01-01") + rng.integers(0, 60, people)
    return study.encode(held)
