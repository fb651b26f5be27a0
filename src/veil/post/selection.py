"""The choice of a post-processing method: by the paper's guideline, or by simulation of the collection.

`select` draws people from the estimate, collects from them again, and compares the errors of methods on a
`FrequencyQuery`: every value, the most frequent ones, or sets of values.

`redraw` draws only the counts of support, never people, so a run costs as much as the number of values. For oracles
whose reports support values independently (OUE, SUE, THE, and hashing with an ideal hash) and for GRR the counts have
exactly the distribution that people would give; for the others they are normal with the exact covariances of the
oracle.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import FitWarning, InputError, ParameterError
from veil.post.consistency import norm_sub
from veil.post.processed import ProcessedEstimate
from veil.results.estimate import Estimate
from veil.results.laws import AdditiveNoise, FakeLaw, Noise, SupportNoise
from veil.tools.numbers import is_int, proportional

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PAPER_METHODS = (
    "base", "base-pos", "post-pos", "base-cut", "norm", "norm-mul", "norm-cut", "norm-sub", "mle-apx", "power",
    "power-ns",
)  # fmt: skip
"""Base and the ten methods of the consistency paper, in its order."""
_GUIDELINE = {"single": "base-cut", "frequent": "norm", "sets": "power-ns"}


def recommend(query: Any) -> str:
    """Return the guideline of the consistency paper (section V.F) for "single", "frequent", "sets" or a FrequencyQuery.

    `post("auto")` differs from it, because the learned prior came later: see docs/post-processing.md for numbers.

    >>> recommend("single"), recommend("frequent"), recommend("sets")
    ('base-cut', 'norm', 'power-ns')
    """
    kind = query if isinstance(query, str) else as_query(query).kind
    if kind not in _GUIDELINE:
        raise InputError(f"a kind of query is {', '.join(_GUIDELINE)}")
    return _GUIDELINE[kind]


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
    if not isinstance(estimate, Estimate) or isinstance(estimate, ProcessedEstimate) or not estimate.adds_up:
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


@dataclass(frozen=True, eq=False)
class Selection:
    """Mean squared errors of the methods on imagined people, the least first."""

    best: str
    errors: dict[str, float]
    runs: int


def quietly(estimate: Estimate, name: str) -> Estimate:
    """The estimate after a method, in comparisons: a prior that cannot fit shows in its error, and warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        made: Estimate = estimate.post(name)
    return made


class FrequencyQuery(ABC):
    """Numbers asked of a histogram, each the frequency of a value or of a set."""

    kind: str

    @abstractmethod
    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        """The places whose frequencies are added up, one list an answer; `truth` says what is frequent."""


@dataclass(frozen=True)
class EveryValue(FrequencyQuery):
    """The frequency of each value of the domain."""

    kind = "single"

    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        return list(np.arange(len(estimate))[:, None])


@dataclass(frozen=True)
class MostFrequent(FrequencyQuery):
    """The frequencies of the k values that are truly the most frequent."""

    k: int = 10
    kind = "frequent"

    def __post_init__(self) -> None:
        if not is_int(self.k) or self.k < 1:
            raise ParameterError("the most frequent values are an integer number of at least 1")

    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        return list(np.argsort(-truth, kind="stable")[: self.k, None])


@dataclass(frozen=True, eq=False)
class Sets(FrequencyQuery):
    """The total frequency of each of these sets of values."""

    sets: Sequence[Any] = field(repr=False)
    kind = "sets"

    def __post_init__(self) -> None:
        if not isinstance(self.sets, Sequence) or not self.sets or not all(_is_set(values) for values in self.sets):
            raise InputError("a query has at least one set, and a set at least one value")

    def groups(self, estimate: Estimate, truth: Floats) -> list[Ints]:
        return [estimate.positions(values) for values in self.sets]


def as_query(query: Any) -> FrequencyQuery:
    """Return a FrequencyQuery, given as such, by its name ("single", "frequent"), or as a list of sets of values."""
    if isinstance(query, FrequencyQuery):
        return query
    if isinstance(query, str):
        if query in ("single", "frequent"):
            return EveryValue() if query == "single" else MostFrequent()
        raise InputError("a query is 'single', 'frequent', or a list of sets of values")
    try:
        sets = list(query)
    except TypeError:
        raise InputError("a query is 'single', 'frequent', or a list of sets of values") from None
    return Sets(sets)


def _is_set(values: Any) -> bool:
    return not isinstance(values, (str, bytes)) and hasattr(values, "__len__") and len(values) > 0


def squared_errors(made: Estimate, groups: list[Ints], truth: Floats) -> Floats:
    """Squared error of what an estimate answers about each group of places."""
    flat = np.concatenate(groups)
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])[:-1]])
    answers, known = np.add.reduceat(made.frequencies[flat], starts), np.add.reduceat(truth[flat], starts)
    return np.asarray((made.bend(answers) - known) ** 2)


def redraw(noise: Noise, held: Ints, random: np.random.Generator, fakes: FakeLaw | None = None) -> Floats:
    """Estimated frequencies from people who hold each value in these numbers, with fakes among their reports or none.

    >>> from veil import OUE
    >>> redraw(OUE(1.0, 3).noise, np.array([900, 100, 0]), np.random.default_rng(0)).shape
    (3,)
    """
    n = int(held.sum())
    if isinstance(noise, AdditiveNoise):
        return held / n + random.normal(0.0, np.sqrt(float(noise.per_value) / n), len(held))
    if not isinstance(noise, SupportNoise):
        raise InputError("imagined people need an oracle whose noise has a law")
    p, q = float(noise.p), float(noise.q)
    counts = redraw_counts(noise, held, random)
    if fakes is not None:
        counts = counts + _fake_counts(fakes, len(held), random) - fakes.expected
    return np.asarray((counts / n - q) / (p - q))


def redraw_counts(noise: SupportNoise, held: Ints, random: np.random.Generator) -> NDArray[np.float64]:
    """How many reports support each value."""
    n, p, q = int(held.sum()), float(noise.p), float(noise.q)
    if noise.hit == 0 and noise.miss == 0:  # one value at most: kept with p - q, else any with q each, or none
        kept = random.binomial(held, p - q)
        chances = np.append(np.full(len(held), q), max(1 - p - (len(held) - 1) * q, 0.0))
        others = random.multinomial(n - int(kept.sum()), chances / chances.sum())
        return np.asarray(kept + others[:-1], float)
    if noise.alone:
        return np.asarray(random.binomial(held, p) + random.binomial(n - held, q), float)
    shares = held / n
    return np.asarray(n * (shares * p + (1 - shares) * q) + np.sqrt(n) * _correlated(noise, shares, random))


def _fake_counts(fakes: FakeLaw, values: int, random: np.random.Generator) -> Ints:
    """How many fakes support each value: one value each where no two are supported at once, else independently."""
    u = float(fakes.support)
    if fakes.pair == 0:
        return np.asarray(random.multinomial(fakes.count, [*[u] * values, max(1 - values * u, 0.0)])[:-1])
    return np.asarray(random.binomial(fakes.count, u, values))


def _correlated(noise: SupportNoise, shares: Floats, random: np.random.Generator) -> Floats:
    """Normal draws with the covariance of one person's supports: a diagonal, plus ones and shares crossed (rank two).

    Two values are supported together with `hit` by a person who holds one of them and with `miss` by any other, so
    their covariance is m + (f_u + f_v) (h - m), with h = hit - p q and m = miss - q^2.
    """
    p, q = noise.p, noise.q
    m, h = float(noise.miss - q**2), float(noise.hit - p * q)
    diagonal = shares * float(p * (1 - p)) + (1 - shares) * float(q * (1 - q)) - m - 2 * shares * (h - m)
    root = np.sqrt(np.maximum(diagonal, 0.0))
    basis, corner = np.linalg.qr(np.stack([np.ones_like(shares), shares], axis=1) / np.maximum(root, 1e-12)[:, None])
    stretch, turn = np.linalg.eigh(corner @ np.array([[m, h - m], [h - m, 0.0]]) @ corner.T)
    axes = basis @ turn
    drawn = random.normal(0.0, 1.0, len(shares))
    along = (np.sqrt(np.maximum(1.0 + stretch, 0.0)) - 1.0) * (axes.T @ drawn)
    return np.asarray(root * (drawn + axes @ along))
