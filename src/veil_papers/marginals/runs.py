"""Who is asked, by which methods, and how far answers are off: the sum of squared errors over random marginals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil import Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError
from veil.marginals import (
    CALM,
    AllMarginals,
    BinaryCALM,
    FourierMarginals,
    FullContingency,
    SplitEM,
    Uniform,
    variance_factor,
)
from veil.post import norm_sub
from veil_papers.common.exhibits import Setting
from veil_papers.common.families import collect_records
from veil_papers.common.sweep import Scores, Sweep, measure
from veil_papers.datasets import Records, Transactions, adult, kosarak_sets, pos_baskets, us_census

Floats = NDArray[np.float64]
Names = Sequence[str]
Generator = np.random.Generator
Answer = Callable[[Names], Floats]
"""What a method says about a marginal: one number per cell."""

SEED = 14
KOSARAK, POS, ADULT, US = "Kosarak", "POS", "Adult", "US"


class M:
    """The methods, by the names of the thesis and ours."""

    CALM, GRAPHICAL, PAIRS, BE = "CALM", "CALM, graphical (ours)", "CALM, all pairs (ours)", "BE"
    FC, AM, FT, EM, UNIFORM = "FC", "AM", "FT", "EM", "Uniform"
    PREVIEW, NO_NOISE, MAJORITY = "PreView", "NoNoise", "Majority"
    RIVALS = (FC, AM, FT)
    OURS = (GRAPHICAL, PAIRS)


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch = setting.pick, setting.watch
        tenths = tuple(round(0.2 * i, 1) for i in range(1, 11))
        self.epsilons = pick(tenths, (1.0, 2.0))
        self.runs, self.queries = pick(20, 1), pick(50, 4)
        self.few = pick(5, 1)  # runs where one takes seconds: AM and FT with thousands of questions, SplitEM
        self.em_queries = pick(5, 1)  # marginals read by EM, of which one takes a second
        self.graphical_runs = pick(5, 1)  # at a point of the comparison of both readings of CALM
        self.heat_runs, self.heat_queries = pick(5, 1), pick(50, 4)
        self.heat_epsilons = pick((0.2, 0.6, 1.0, 1.4, 2.0), (0.2, 2.0))
        self.k_runs, self.k_queries = pick(5, 1), pick(20, 2)
        self.k_epsilons = pick(tenths, (1.0, 2.0))  # of the first row of Figure 6.8
        self.splits, self.class_epsilons = pick(10, 1), pick(tenths, (2.0,))
        self.class_people: dict[str, tuple[int, ...]] = pick(
            {ADULT: (16, 18, 20), US: (16, 18, 20)}, {ADULT: (18,), US: (18,)}
        )  # log2 of them
        self.fewer = pick(1, 16)  # a quick run has this many times fewer people
        vars(self).update(setting.changes)


@dataclass(frozen=True, eq=False)
class Case:
    """People who are asked, and how many attributes the marginals have that are wanted of them."""

    data: str
    people: Records
    k: int
    known: dict[tuple[str, ...], Floats] = field(default_factory=dict)

    @property
    def m(self) -> int:
        """How many attributes a record has."""
        return len(self.people.sizes)

    @property
    def binary(self) -> bool:
        """Whether every attribute has two values."""
        return set(self.people.sizes) == {2}

    @property
    def label(self) -> str:
        """What it is, as in the captions of the thesis."""
        return f"{self.data}, n = {power(self.people.people)}, m = {self.m}, k = {self.k}"

    def queries(self, count: int, rng: Generator) -> list[tuple[str, ...]]:
        """Random sets of k attributes, different ones."""
        names = self.people.domain.names
        if math.comb(self.m, self.k) <= 10_000:
            every = list(combinations(names, self.k))
            return [every[i] for i in rng.permutation(len(every))[:count]]
        return [tuple(names[i] for i in sorted(rng.permutation(self.m)[: self.k])) for _ in range(count)]

    def truth(self, names: tuple[str, ...]) -> Floats:
        """The shares of the people in each cell."""
        if names not in self.known:
            (rows, counts), places = self.people.distinct, [self.people.domain.names.index(name) for name in names]
            shape = tuple(self.people.sizes[place] for place in places)
            cells = np.ravel_multi_index(tuple(rows[:, places].T), shape)
            self.known[names] = np.bincount(cells, counts, math.prod(shape)) / self.people.people
        return self.known[names]

    def sse(self, answer: Answer, queries: Iterable[tuple[str, ...]]) -> float:
        """The squared error added up over the cells of a marginal: the mean of these."""
        return float(np.mean([((answer(names) - self.truth(names)) ** 2).sum() for names in queries]))


def power(count: int) -> str:
    """A number of people as a power of two."""
    return f"2^{count.bit_length() - 1}" if count & (count - 1) == 0 else f"{count:,}"


def transactions(setting: Setting) -> dict[str, Transactions]:
    """The two binary data sets."""
    return {KOSARAK: kosarak_sets(setting.data), POS: pos_baskets(setting.data)}


def binary_case(data: str, source: Transactions, plan: Plan, case: tuple[int, int, int]) -> Case:
    """So many people resampled from transactions: (log2 of their number, m, k)."""
    bits, m, k = case
    return Case(data, source.records(m).resample((1 << bits) // plan.fewer, SEED), k)


def census(setting: Setting, most: int) -> dict[str, Records]:
    """The two data sets that are not binary, with at most so many categories."""
    return {ADULT: adult(setting.data, most=most), US: us_census(setting.data, most=most)}


# -- methods -----------------------------------------------------------------------------------------------------------


def answers(result: Any) -> Answer:
    """What a result says about marginals."""
    return lambda names: np.asarray(result.marginal(names).frequencies)


def proper(answer: Answer, case: Case) -> Answer:
    """The same without negative cells, marginal by marginal: what an analyst would do, and less error."""

    def made(names: Names) -> Floats:
        try:
            return np.asarray(norm_sub(answer(names), total=1.0))
        except InputError:  # of a few people per view, nobody may be asked for one: nothing is known of it
            return uniform(case, names)

    return made


def uniform(case: Case, names: Names) -> Floats:
    """All cells alike."""
    return np.asarray(Uniform.of(case.people.domain).marginal(names).frequencies)


def ask(study: Any, people: Records, rng: Generator, *ways: Mapping[str, Any]) -> list[Answer]:
    """What a study says after one simulated collection, once for each way of reading it."""
    tally = collect_records(study.survey, people, rng)
    return [answers(replace(study, **way).read(tally)) for way in ways or ({},)]


def ask_each(study: Any, people: Records, rng: Generator) -> Answer:
    """The same with reports made person by person, for studies that read reports themselves."""
    reports = study.survey.reports(people.codes.astype(np.uint64), SeededForExperiments(int(rng.integers(1 << 62))))
    return answers(study.read(MemoryCollection(study.survey, reports)))


@lru_cache(maxsize=256)
def study_of(kind: Callable[..., Any], epsilon: float, domain: Record, *more: Any, **named: Any) -> Any:
    """A study, built once: choosing views takes longer than asking for them."""
    return kind(epsilon, domain, *more, **named)


def run_methods(epsilon: float, case: Case, rng: Generator, chosen: Sequence[str]) -> dict[str, Answer]:
    """What the chosen methods answer, each after a collection of its own; both readings of CALM share one."""
    domain, found = case.people.domain, dict[str, Answer]()
    ways = {M.CALM: {}, M.GRAPHICAL: {"inference": "graphical"}}
    read = [name for name in ways if name in chosen]
    if read:
        study = study_of(CALM, epsilon, domain, case.k, users=case.people.people)
        asked = ask(study, case.people, rng, *(ways[name] for name in read))
        found.update(zip(read, asked, strict=True))
    rivals: dict[str, Callable[[], Any]] = {
        M.BE: lambda: study_of(BinaryCALM, epsilon, domain, case.k, users=case.people.people),
        M.FC: lambda: study_of(FullContingency, epsilon, domain),
        M.AM: lambda: study_of(AllMarginals, epsilon, domain, case.k),
        M.FT: lambda: study_of(FourierMarginals, epsilon, domain, case.k),
    }
    for name, make in rivals.items():
        if name in chosen:
            (found[name],) = ask(make(), case.people, rng)
            if name in M.RIVALS:
                found[name] = proper(found[name], case)
    if M.EM in chosen:
        found[M.EM] = ask_each(study_of(SplitEM, epsilon, domain, case.k), case.people, rng)
    if M.UNIFORM in chosen:
        found[M.UNIFORM] = partial(uniform, case)
    return found


def able(case: Case) -> dict[str, int]:
    """The methods that can run in a case, each with its number of questions, or of cells for FC.

    AM and FT run where a question has at least eight people to answer it, FC and the graphical model up to 2^16 cells,
    and EM up to 2^16 cells and for k below 6: above, a query took 20 minutes in the thesis.
    """
    cells = math.prod(case.people.sizes)
    coefficients = variance_factor("FT of sets of bits", case.people.sizes, case.k) - 1
    counts = {M.FC: cells, M.AM: math.comb(case.m, case.k), M.FT: coefficients}
    most = {M.FC: 1 << 16, M.AM: case.people.people // 8, M.FT: case.people.people // 8}
    found = {name: count for name, count in counts.items() if count <= most[name]}
    if cells <= 1 << 16:
        found |= {M.GRAPHICAL: 0} | ({M.EM: 0} if case.k < 6 else {})
    if case.k < 6 and not case.binary:
        found[M.BE] = 0
    return {M.CALM: 0, **found, M.UNIFORM: 0}


def sweep_case(case: Case, plan: Plan, place: int) -> Sweep:
    """The error of every method that can run, by eps; those that take long have fewer runs."""
    can = able(case)
    slow = [name for name, count in can.items() if count > 4_000 or name in (M.EM, M.GRAPHICAL)]

    def trial(at: int, run: int) -> Scores:
        rng = np.random.default_rng([SEED, place, at, run])
        chosen = [name for name in can if run < plan.few or name not in slow]
        queries = case.queries(plan.queries, rng)
        found = run_methods(plan.epsilons[at], case, rng, chosen)
        some = {M.EM: queries[: plan.em_queries]}
        return {"SSE": {name: case.sse(found[name], some.get(name, queries)) for name in can if name in found}}

    return measure(case.label, plan.watch, plan.epsilons, plan.runs, trial)["SSE"]
