"""Groups that fit together: no count below 0, and all of them together as many as there are.

Unbiased counts of small groups are often below 0. Where a query groups by private dimensions, the counts of one public
group's rows are made non-negative with an unchanged sum by Norm-Sub (Wang et al., NDSS 2020). Counts are then nearer to
the truth on the whole, and small ones are no longer unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from veil.post.consistency import norm_sub
from veil.sql.moments import Totals
from veil.sql.query import PublicKey, Query

__all__ = ["tidied"]


def tidied(query: Query, found: Mapping[tuple[Any, ...], Totals | None], place: int) -> dict[tuple[Any, ...], float]:
    """The counts of an answer's rows, which are the sum at `place`: none below 0, with the sum that they had.

    The rows of a public group that has one which is not known are left out: nothing is known of their sum.
    """
    together: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in found:
        public = tuple(label for key, label in zip(query.keys, row, strict=True) if isinstance(key, PublicKey))
        together.setdefault(public, []).append(row)
    counts: dict[tuple[Any, ...], float] = {}
    for rows in together.values():
        known = [totals.values[place] for row in rows if (totals := found[row]) is not None]
        if len(known) == len(rows) > 1:
            fitted = norm_sub(np.array(known), max(float(np.sum(known)), 0.0))
            counts |= zip(rows, fitted.tolist(), strict=True)
    return counts
