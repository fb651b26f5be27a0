"""PreView, the centralised yardstick of Figure 6.8 (Qardaji, Yang and Li, SIGMOD 2014): a trusted curator adds noise.

It is not local, so it lives with the figure and not in veil. The curator has all records, releases the tables of t
views of 8 attributes that cover all pairs or all triples, each cell with Laplace noise of scale t / eps (everybody is
in one cell of every view), and reads them as CALM reads its own: consistency, then maximum entropy.
"""

from __future__ import annotations

import numpy as np

from veil import OUE
from veil.marginals import Marginals, covering_design
from veil_papers.datasets import Records

_SIZE = 8


def preview(epsilon: float, people: Records, covered: int, rng: np.random.Generator) -> Marginals:
    """What a trusted curator finds with views that cover all sets of `covered` attributes."""
    names, n = people.domain.names, people.people
    sets = [tuple(names[place] for place in block) for block in covering_design(len(names), covered, _SIZE)]
    tables = [people.table(one).reshape(-1) + rng.laplace(0.0, len(sets) / epsilon, 1 << _SIZE) for one in sets]
    return Marginals(
        record=people.domain,
        n=n,
        population=n,
        lineage=("PreView",),
        sets=tuple(sets),
        raw=np.concatenate(tables) / n,
        people=np.full(len(sets), n, dtype=np.int64),
        noises=(OUE(1.0, 1 << _SIZE).noise,),  # any law: all views have as much noise, so that weights do not matter
    )
