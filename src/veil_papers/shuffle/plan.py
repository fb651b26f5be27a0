"""How much is run, and who stands for the thesis's people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil_papers.common.exhibits import Setting
from veil_papers.datasets import first_names, kosarak_clicks

Ints = NDArray[np.int64]

SEED = 16
DELTA = 1e-9
"""The thesis's delta, everywhere but in Table 9.1."""
CAP = 12.0
"""No local epsilon that the exact accountant chooses exceeds this; the thesis has no such limit."""


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch, self.data = setting.pick, setting.watch, setting.data
        tenths = tuple(i / 10 for i in range(1, 11))
        self.local_epsilons: Sequence[float] = pick(
            (0.1, 0.2, 0.3, 0.4, 0.49, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0), (0.4, 1.0, 4.0)
        )
        self.epsilons: Sequence[float] = pick(tenths, (0.3, 1.0))
        self.designed: Sequence[float] = pick((0.1, 0.3, 1.0), (0.1,))
        self.runs = pick(100, 5)
        self.table_runs = pick(20, 2)
        self.string_epsilons: Sequence[float] = pick((0.2, *tenths[3:]), (1.0,))
        self.string_runs = pick(20, 2)
        self.string_people = 500_000
        self.real_people, self.real_runs = pick(50_000, 10_000), pick(10, 1)
        vars(self).update(setting.changes)


@dataclass(frozen=True, eq=False)
class People:
    """How many people hold each value, and what they stand for, in words."""

    held: Ints
    told: str

    @property
    def count(self) -> int:
        """All people together."""
        return int(self.held.sum())


def cities(plan: Plan) -> People:
    """602,325 people with one of 915 values, as many as the thesis has of US cities."""
    names = first_names(plan.data)
    most = np.sort(names.held)[::-1][:915]
    held = np.random.default_rng(SEED).multinomial(602_325, most / most.sum())
    return People(held, f"the 915 most frequent names of {names.origin}, 602,325 people drawn from them")


def pages(plan: Plan) -> People:
    """990,002 people with one of 42,178 values, as many as the thesis has of pages of a news site."""
    clicks = kosarak_clicks(plan.data)
    shares = np.zeros(42_178)
    shares[: len(clicks.held)] = clicks.held / clicks.people
    held = np.random.default_rng(SEED).multinomial(990_002, shares)
    return People(held, f"clicks of {clicks.origin}, 990,002 people drawn from them, values that nobody holds added")
