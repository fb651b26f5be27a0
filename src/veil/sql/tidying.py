"""Groups that fit together: no count below 0, and all of them together as many as there are.

Unbiased counts of small groups are often below 0. Where a query groups by private dimensions, the counts of one public
group's rows are made non-negative with an unchanged sum by Norm-Sub (Wang et al., NDSS 2020). Counts are then nearer to
the truth on the whole, and small ones are no longer unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from veil.post.consistency import norm_sub
from veil.sql.moments import Totals
from veil.sql.query import PublicKey, Query

__all__ = ["tidied"]


def tidied(query: Query, found: Mapping[tuple[Any, ...], Totals | None], place: int) -> dict[tuple[Any, ...], Totals]:
    """The rows of an answer with counts, which are the sum at `place`, that are not below 0 and add up as they did.

    The rows of a public group that has one which is not known are left out: nothing is known of their sum.
    """
    together: dict[tuple[Any, ...], dict[tuple[Any, ...], Totals | None]] = {}
    for row, totals in found.items():
        public = tuple(label for key, label in zip(query.keys, row, strict=True) if isinstance(key, PublicKey))
        together.setdefault(public, {})[row] = totals
    fitted: dict[tuple[Any, ...], Totals] = {}
    for rows in together.values():
        known = {row: totals for row, totals in rows.items() if totals is not None}
        if len(known) == len(rows) > 1:
            fitted |= _fitted(known, place)
    return fitted


def _fitted(rows: Mapping[tuple[Any, ...], Totals], place: int) -> dict[tuple[Any, ...], Totals]:
    """The rows of one public group, with counts by Norm-Sub."""
    counts = np.array([totals.values[place] for totals in rows.values()], np.float64)
    made = {}
    for (row, totals), count in zip(rows.items(), norm_sub(counts, max(float(counts.sum()), 0.0)), strict=True):
        values = totals.values.copy()
        values[place] = Decimal(float(count)) if values.dtype == object else count
        made[row] = replace(totals, values=values)
    return made
