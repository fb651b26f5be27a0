"""People whose values are known, as a simulation walks with them: what they hold, and their public columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.reports.layout import Rows

__all__ = ["People"]


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """What people hold, as codes of a domain, and their public columns as they stand in a report."""

    codes: Any
    public: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Rows) -> People:
        return People(self.codes[rows], {name: column[rows] for name, column in self.public.items()})
