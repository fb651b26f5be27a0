"""Which reports count, by their public columns: ranges of integers, both ends included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veil.errors import InputError
from veil.reports.columns import Reports
from veil.survey import Survey
from veil.tools.numbers import is_int

__all__ = ["Ranges"]


@dataclass(frozen=True)
class Ranges:
    """Columns of reports with the least and the largest number that each may hold; several hold together."""

    bounds: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, survey: Survey, ranges: Mapping[str, tuple[int, int]]) -> Ranges:
        """Ranges of a survey's public columns, by their names."""
        known = {public.name: public.field.name for public in survey.public}
        if not ranges or not set(ranges) <= set(known):
            named = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"reports are told apart by public columns of their survey: {named}")
        bounds = []
        for name, ends in ranges.items():
            if not isinstance(ends, (tuple, list)) or len(ends) != 2 or not all(is_int(end) for end in ends):
                raise InputError(f"a range of column {name} is two integers, the least and the largest")
            bounds.append((known[name], int(ends[0]), int(ends[1])))
        return cls(tuple(sorted(bounds)))

    def joined(self, others: Ranges) -> Ranges:
        """Both at once."""
        return Ranges(tuple(sorted({*self.bounds, *others.bounds})))

    def kept(self, reports: Reports) -> Reports:
        """The reports that lie within all ranges."""
        inside = np.ones(len(reports), np.bool_)
        for name, least, most in self.bounds:
            column = reports.columns[name]
            inside &= (column >= least) & (column <= most)
        return reports if inside.all() else reports[inside]
