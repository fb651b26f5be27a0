"""Which method to use: the paper's guideline, or the one that does best on people imagined from the estimate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veil.errors import FitWarning, InputError, ParameterError
from veil.post.consistency import norm_sub
from veil.post.processed import Processed
from veil.post.queries import as_query, squared_errors
from veil.post.redrawing import redraw
from veil.results.estimate import Estimate
from veil.tools.numbers import is_int, proportional

__all__ = ["PAPER_METHODS", "Selection", "quietly", "recommend", "select"]

PAPER_METHODS = (
    "base", "base-pos", "post-pos", "base-cut", "norm", "norm-mul", "norm-cut", "norm-sub", "mle-apx", "power",
    "power-ns",
)  # fmt: skip
"""Base and the ten methods of the consistency paper, in its order."""

_GUIDELINE = {"single": "base-cut", "frequent": "norm", "sets": "power-ns"}


def recommend(query: Any) -> str:
    """The guideline of the consistency paper (section V.F), by query: "single", "frequent", "sets", or a Query.

    `post("auto")` differs from it, because the learned prior came later: see docs/post-processing.md for numbers.

    >>> recommend("single"), recommend("frequent"), recommend("sets")
    ('base-cut', 'norm', 'power-ns')
    """
    kind = query if isinstance(query, str) else as_query(query).kind
    if kind not in _GUIDELINE:
        raise InputError(f"a kind of query is {', '.join(_GUIDELINE)}")
    return _GUIDELINE[kind]


@dataclass(frozen=True, eq=False)
class Selection:
    """Mean squared errors of the methods on imagined people, the least first."""

    best: str
    errors: dict[str, float]
    runs: int


def select(
    estimate: Estimate,
    queries: Any,
    methods: Sequence[str] = PAPER_METHODS,
    *,
    runs: int = 30,
    seed: int = 0,
    synthesize: str = "norm-sub",
) -> Selection:
    """Runs at the collector: the method with the least error for these queries, on people imagined from the estimate.

    Section V.D of the consistency paper: the histogram after `synthesize` is taken for the truth, the collection is
    simulated many times (counts, not people), and every method answers the queries. Synthesize with Norm-Sub:
    a histogram from PowerNS is so close to a power law that PowerNS then selects itself.

    >>> from veil import OLH, simulate
    >>> estimate = simulate(OLH(epsilon=1.0, domain=32), [0] * 6000 + [1] * 3000 + [2] * 1000, seed=1)
    >>> chosen = select(estimate, [range(16), range(16, 32)], methods=("base", "norm-sub"), runs=10)
    >>> chosen.best
    'norm-sub'
    """
    from veil.post import METHODS, method

    if not is_int(runs) or runs < 1 or not is_int(seed) or seed < 0:
        raise ParameterError("runs are an integer of at least 1, and a seed is one of at least 0")
    if not isinstance(estimate, Estimate) or isinstance(estimate, Processed) or not estimate.adds_up:
        raise InputError("a method is selected on an unprocessed estimate of a whole histogram")
    if isinstance(methods, str) or not methods or not all(isinstance(m, str) and m in METHODS for m in methods):
        raise ParameterError(f"methods to select from are {', '.join(METHODS)}")
    query = as_query(queries)
    held = proportional(norm_sub(method(synthesize)(estimate).frequencies, 1.0), max(1, round(estimate.effective)))
    truth = held / held.sum()
    groups = query.groups(estimate, truth)
    random = np.random.default_rng(seed)
    errors = dict.fromkeys(methods, 0.0)
    for _ in range(runs):
        again = replace(estimate, frequencies=redraw(estimate.noise, held, random, estimate.fakes))
        for name in methods:
            errors[name] += float(np.mean(squared_errors(quietly(again, name), groups, truth))) / runs
    ranked = dict(sorted(errors.items(), key=lambda item: item[1]))
    return Selection(next(iter(ranked)), ranked, runs)


def quietly(estimate: Estimate, name: str) -> Estimate:
    """The estimate after a method, in comparisons: a prior that cannot fit shows in its error, and warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        made: Estimate = estimate.post(name)
    return made
