"""Figures 6.7 to 6.9: what sizes and numbers of views do, and what happens where they were chosen for another k."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veil import OUE
from veil.marginals import CALM, Marginals, covering_design
from veil.view import Project
from veil_papers.common.claims import Says, by_point, each
from veil_papers.common.exhibits import Claim, Grid, Parts, brief, exhibit
from veil_papers.common.families import DRAWN
from veil_papers.common.sweep import Sweep
from veil_papers.datasets import Records, Transactions
from veil_papers.marginals.runs import SEED, Answer, Case, Plan, answers, ask, binary_case, power, study_of

Floats = NDArray[np.float64]
Sets = tuple[tuple[str, ...], ...]

_NUMBERS = (1, 2, 4, 8, 16, 32)  # of views, in the heat maps
_AT = 0.6
_FIXED = 16  # views where eps varies
FOUR = (0.5, 1.0, 1.5, 2.0)


def spread_sets(names: Sequence[str], s: int, t: int, seed: int) -> Sets:
    """t different sets of s attributes, at random, each taken where attributes and pairs were taken least so far.

    >>> spread_sets("abcd", 2, 2, seed=0)
    (('b', 'c'), ('a', 'd'))
    """
    rng = np.random.default_rng(seed)
    every = np.array(list(combinations(range(len(names)), s)))
    inside = np.zeros((len(every), len(names)))
    inside[np.arange(len(every))[:, None], every] = 1
    together, taken = np.zeros((len(names), len(names))), list[int]()
    for _ in range(min(t, len(every))):
        uses = np.einsum("ij,jk,ik->i", inside, together, inside) + len(names) * (inside @ np.diag(together))
        uses[taken] = np.inf
        chosen = int(rng.permutation(np.flatnonzero(uses == uses.min()))[0])
        taken.append(chosen)
        together += np.outer(inside[chosen], inside[chosen])
    return tuple(tuple(names[place] for place in every[i]) for i in taken)


def error_of(case: Case, epsilon: float, sets: Sets, plan: Plan, seed: Sequence[int]) -> float:
    """The error of CALM with given views, the mean over some runs."""
    found = []
    study = study_of(CALM, epsilon, case.people.domain, case.k, sets=sets)
    for run in range(plan.heat_runs):
        rng = np.random.default_rng([*seed, run])
        queries = case.queries(plan.heat_queries, rng)
        (read,) = ask(study, case.people, rng)
        found.append(case.sse(read, queries))
    return float(np.mean(found))


@dataclass(frozen=True)
class Heat:
    """Errors by the size of views and something else, and what Algorithm 2 chooses in each column, with its error."""

    label: str
    sizes: tuple[int, ...]
    columns: tuple[float, ...]
    errors: Floats
    chosen: tuple[float, ...] = ()
    by_number: bool = False

    def grid(self) -> Grid:
        """The heat map, in thousandths; what Algorithm 2 chooses stands in the last row."""
        rows = [*(str(s) for s in self.sizes), *(["Algorithm 2"] if self.chosen else [])]
        numbers = 1000 * np.vstack([self.errors, *([self.chosen] if self.chosen else [])])
        columns, axis = tuple(f"{x:g}" for x in self.columns), "s, by t" if self.by_number else "s, by eps"
        none = tuple(tuple(False for _ in columns) for _ in rows)
        listed = tuple(tuple(float(x) for x in row) for row in numbers)
        low, high = float(np.median(numbers)) * 2, float(numbers.min())
        return Grid(self.label, "SSE in thousandths", tuple(rows), columns, listed, none, low, high, axis)


def heats(sources: Mapping[str, Transactions], plan: Plan) -> list[Heat]:
    """The six heat maps: s against t, and s against eps for two m."""
    found = []
    for number, (data, source) in enumerate(sources.items()):
        small, large = (binary_case(data, source, plan, (16, m, 3)) for m in (8, 16))
        with plan.watch(f"Figure 6.7: {data}", None) as advance:
            found.append(_by_number(small, plan, 700 + 10 * number))
            advance(1)
            for case, sizes in ((small, tuple(range(1, 9))), (large, (1, 2, 3, 4, 6, 8))):
                found.append(_by_epsilon(case, sizes, plan, 701 + 10 * number))
                advance(1)
    return found


def _by_number(case: Case, plan: Plan, place: int) -> Heat:
    names, sizes = case.people.domain.names, tuple(range(1, case.m + 1))
    errors = np.empty((len(sizes), len(_NUMBERS)))
    for i, s in enumerate(sizes):
        for j, t in enumerate(_NUMBERS):
            full = math.comb(case.m, s)
            if j and full <= _NUMBERS[j - 1]:  # no more different sets than before
                errors[i, j] = errors[i, j - 1]
            else:
                errors[i, j] = error_of(case, _AT, spread_sets(names, s, t, SEED), plan, [SEED, place, i, j])
    return Heat(f"{case.label}, eps = {_AT:g}", sizes, tuple(map(float, _NUMBERS)), errors, by_number=True)


def _by_epsilon(case: Case, sizes: tuple[int, ...], plan: Plan, place: int) -> Heat:
    names, epsilons = case.people.domain.names, plan.heat_epsilons
    sets = {s: spread_sets(names, s, _FIXED, SEED) for s in sizes}
    errors = np.array(
        [
            [error_of(case, eps, sets[s], plan, [SEED, place, case.m, s, j]) for j, eps in enumerate(epsilons)]
            for s in sizes
        ]
    )
    chosen = []
    for j, eps in enumerate(epsilons):
        study = study_of(CALM, eps, case.people.domain, case.k, users=case.people.people)
        chosen.append(error_of(case, eps, sets_of(study), plan, [SEED, place, case.m, 0, j]))
    return Heat(f"{case.label}, t = {_FIXED}", sizes, epsilons, errors, tuple(chosen))


@exhibit
def heat_maps(found: list[Heat], plan: Plan) -> Parts:
    """Figure 6.7: sizes and numbers of views."""
    for letter, heat in zip("abcdef", found, strict=True):
        grid = heat.grid()
        yield Grid(f"({letter}) {grid.title}", *list(vars(grid).values())[1:])
    yield (
        f"{DRAWN} {plan.heat_runs} runs, {plan.heat_queries} random marginals. Views are random sets, spread over "
        "attributes and pairs as evenly as can be; where fewer than t different ones exist, all of them are asked."
    )
    for heat in found:
        yield from _counted(heat) if heat.by_number else _sized(heat)


def _counted(heat: Heat) -> Iterator[Claim]:
    middle = heat.errors[1:-1]
    falls = {f"s = {s}": row[0] / row[-1] for s, row in zip(heat.sizes[1:-1], middle, strict=True)}
    yield Says(f"{heat.label}: with s other than 1 and m, more views have less error (here: 32 than 1)").given(
        f"from t = 1 to 32 by a factor of {each(falls, '.1f')}", all(fall > 1 for fall in falls.values())
    )


def _sized(heat: Heat) -> Iterator[Claim]:
    best = [heat.sizes[i] for i in heat.errors.argmin(axis=0)]
    yield Says(f"{heat.label}: smaller views are better at small eps, larger ones at large eps").given(
        f"best s: {by_point(heat.columns, best, 'd')}", best[0] < best[-1] or len(best) == 1
    )
    over = np.array(heat.chosen) / heat.errors.min(axis=0)
    yield Says(f"{heat.label}: Algorithm 2 comes close to the best size (here: at most 1.5 times its error)").given(
        f"{by_point(heat.columns, over)}", over.max() <= 1.5
    )


# -- Figures 6.8 and 6.9 -----------------------------------------------------------------------------------------------

OPTIMISED = (3, 6, 8)
_ALL = tuple(range(2, 17))
_ASKED = tuple(range(2, 11))
PAIRS, TRIPLES = "PreView, pairs", "PreView, triples"
_VIEW = 8  # attributes of a view of PreView


class ByK:
    """Errors of marginals of k attributes where views were chosen for k': each choice of views is asked once."""

    def __init__(self, case: Case, plan: Plan) -> None:
        self.case, self.plan = case, plan
        self.chosen: dict[tuple[float, int], Sets] = {}
        self.errors: dict[tuple[float, Sets], dict[int, Floats]] = {}
        self.central: dict[tuple[float, str], dict[int, Floats]] = {}

    def sets(self, epsilon: float, optimised: int) -> Sets:
        """The views that Algorithm 2 chooses for k'."""
        if (epsilon, optimised) not in self.chosen:
            people = self.case.people
            study = study_of(CALM, epsilon, people.domain, optimised, users=people.people)
            self.chosen[epsilon, optimised] = sets_of(study)
        return self.chosen[epsilon, optimised]

    def run(self) -> ByK:
        """Ask everything that the figures show."""
        plan, everywhere = self.plan, dict.fromkeys(self.plan.k_epsilons, OPTIMISED)
        todo: dict[tuple[float, Sets], None] = {}
        for eps, wanted in (everywhere | dict.fromkeys(FOUR, _ALL)).items():
            for optimised in wanted:
                todo[eps, self.sets(eps, optimised)] = None
        with plan.watch("Figures 6.8 and 6.9", len(todo)) as advance:
            for eps, sets in todo:
                study = study_of(CALM, eps, self.case.people.domain, 3, sets=sets)
                wanted = _ASKED if eps in FOUR else OPTIMISED
                asked = partial(_asked, study, self.case)
                self.errors[eps, sets] = self._runs(eps, wanted, asked)
                advance(1)
        for eps in plan.k_epsilons:
            for name, covered in ((PAIRS, 2), (TRIPLES, 3)):
                self.central[eps, name] = self._runs(eps, OPTIMISED, partial(_curated, eps, self.case, covered))
        return self

    def _runs(
        self, epsilon: float, wanted: Sequence[int], asked: Callable[[np.random.Generator], Answer]
    ) -> dict[int, Floats]:
        found: dict[int, list[float]] = {k: [] for k in wanted}
        for run in range(self.plan.k_runs):
            rng = np.random.default_rng([SEED, 800, round(1000 * epsilon), run])
            queries = {k: Case(self.case.data, self.case.people, k, self.case.known) for k in wanted}
            drawn = {k: case.queries(self.plan.k_queries, rng) for k, case in queries.items()}
            answer = asked(rng)
            for k, case in queries.items():
                found[k].append(case.sse(answer, drawn[k]))
        return {k: np.array(runs) for k, runs in found.items()}

    def of(self, epsilon: float, optimised: int, k: int) -> Floats:
        """The runs at a point."""
        return self.errors[epsilon, self.sets(epsilon, optimised)][k]

    def by_epsilon(self, k: int) -> Sweep:
        """The first row of Figure 6.8."""
        at = self.plan.k_epsilons
        runs = {name_of(o): [self.of(eps, o, k) for eps in at] for o in OPTIMISED}
        runs |= {name: [self.central[eps, name][k] for eps in at] for name in (PAIRS, TRIPLES)}
        return Sweep(at, runs)

    def by_optimised(self, k: int) -> Sweep:
        """The second row of Figure 6.8."""
        return Sweep(tuple(map(float, _ALL)), {f"eps = {eps:g}": [self.of(eps, o, k) for o in _ALL] for eps in FOUR})

    def by_k(self) -> Sweep:
        """Figure 6.9."""
        runs = {}
        for eps in FOUR:
            runs[f"eps = {eps:g}, k' = 3"] = [self.of(eps, 3, k) for k in _ASKED]
            runs[f"eps = {eps:g}, k' = k"] = [self.of(eps, k, k) for k in _ASKED]
        return Sweep(tuple(map(float, _ASKED)), runs)

    def size(self, epsilon: float, optimised: int) -> tuple[int, int]:
        """How many views there are, and how many attributes the largest has."""
        sets = self.sets(epsilon, optimised)
        return len(sets), max(map(len, sets))


def preview(epsilon: float, people: Records, covered: int, rng: np.random.Generator) -> Marginals:
    """Return what a trusted curator finds with views that cover all sets of `covered` attributes.

    PreView (Qardaji, Yang and Li, SIGMOD 2014) is the centralised yardstick of Figure 6.8. It is not local, so it lives
    here and not in veil. The curator has all records, releases the tables of t views of 8 attributes that cover all
    pairs or all triples, each cell with Laplace noise of scale t / eps (everybody is in one cell of every view), and
    reads them as CALM reads its own: consistency, then maximum entropy.
    """
    names, n = people.domain.names, people.people
    sets = [tuple(names[place] for place in block) for block in covering_design(len(names), covered, _VIEW)]
    tables = [people.table(one).reshape(-1) + rng.laplace(0.0, len(sets) / epsilon, 1 << _VIEW) for one in sets]
    return Marginals(
        record=people.domain,
        n=n,
        population=n,
        lineage=("PreView",),
        sets=tuple(sets),
        raw=np.concatenate(tables) / n,
        people=np.full(len(sets), n, dtype=np.int64),
        noises=(OUE(1.0, 1 << _VIEW).noise,),  # any law: all views have as much noise, so that weights do not matter
    )


def _asked(study: CALM, case: Case, rng: np.random.Generator) -> Answer:
    return ask(study, case.people, rng)[0]


def _curated(epsilon: float, case: Case, covered: int, rng: np.random.Generator) -> Answer:
    return answers(preview(epsilon, case.people, covered, rng))


def sets_of(study: CALM) -> Sets:
    """The views that a study asks for, by the names of attributes."""
    views = (study.family.question(number).view for number in range(len(study.family)))
    return tuple(view.attributes for view in views if isinstance(view, Project))


def name_of(optimised: int) -> str:
    """Views that were chosen for k'."""
    return f"k' = {optimised}"


@exhibit
def other_k(found: ByK, plan: Plan) -> Parts:
    """Figure 6.8: views chosen for k', marginals of k attributes, and a trusted curator."""
    rows = {k: found.by_epsilon(k) for k in OPTIMISED}
    second = {k: found.by_optimised(k) for k in OPTIMISED}
    for letter, (k, sweep) in zip("abc", rows.items(), strict=True):
        yield sweep.panel(f"({letter}) k = {k}", "eps", "SSE", faint=(PAIRS, TRIPLES))
    for letter, (k, sweep) in zip("def", second.items(), strict=True):
        yield sweep.panel(f"({letter}) k = {k}", "k'", "SSE")
    yield (
        f"Kosarak, n = {power(found.case.people.people)}, m = 16. {DRAWN} {plan.k_runs} runs, {plan.k_queries} random "
        "marginals; where k' leads to the same views they are asked once. PreView is not local: a trusted curator adds "
        "Laplace noise to views of 8 attributes, which cover all pairs or all triples. Its error is of the order 1 / n "
        "where CALM's is 1 / sqrt(n), so that squared errors are thousands of times apart with so many people. "
        "Where views are pairs, all 120 are asked; the 65 that the thesis names belong to n = 2^16."
    )
    yield from _rows(rows, found)
    yield from _against_the_curator(rows)
    yield from _second(second, found)


def _rows(rows: Mapping[int, Sweep], found: ByK) -> Iterator[Claim]:
    spread = np.array([[rows[3].mean(name_of(o)) for o in OPTIMISED]])[0]
    apart = spread.max(axis=0) / spread.min(axis=0)
    yield Says("k = 3: all k' perform similarly (here: within a factor of 2)").given(
        by_point(rows[3].x, apart), apart.max() <= 2
    )
    for k, points in ((6, (1.2, 1.4)), (8, (1.6, 1.8))):
        at = [x for x in points if x in rows[k].x]
        if at:
            ratio = rows[k].only(at).over(name_of(3), name_of(k))
            sizes = ", ".join(f"s = {found.size(x, 3)[1]} and {found.size(x, k)[1]}" for x in at)
            yield Says(
                f"k = {k}: choosing for k' = 3 is worse than for k' = {k} at eps = {at[0]:g} to {at[-1]:g}"
            ).given(f"{by_point(at, ratio)}; {sizes}", ratio.min() > 1)
    over = {f"k = {k}": rows[k].over_best(name_of(k), map(name_of, OPTIMISED))[0].max() for k in OPTIMISED}
    yield Says("In general the best result is with k' = k (here: at most 1.5 times the best)").given(
        f"at most {each(over)}", max(over.values()) <= 1.5
    )


def _against_the_curator(rows: Mapping[int, Sweep]) -> Iterator[Claim]:
    times = {f"k = {k}": s.over_best(name_of(k), (PAIRS, TRIPLES))[0] for k, s in rows.items()}
    every = np.concatenate(list(times.values()))
    yield Says(
        "PreView is one to two magnitudes better than CALM (here: at least 10 times in more than half of the cases)"
    ).given(
        "; ".join(f"{label}: {of.min():.1f} to {of.max():.0f} times" for label, of in times.items()),
        (every >= 10).mean() > 0.5,
    )


def _second(second: Mapping[int, Sweep], found: ByK) -> Iterator[Claim]:
    for eps in (0.5, 1.0):
        sizes = {found.size(eps, o) for o in _ALL}
        yield Says(f"eps = {eps:g}: the same parameters are chosen for every k'").exactly(
            "; ".join(f"{t} views of {s}" for t, s in sorted(sizes)), len(sizes) == 1
        )
    at = second[6].mean("eps = 1.5")
    by = dict(zip(_ALL, at, strict=True))
    yield Says("eps = 1.5, k = 6: choosing for k' >= 8 is not the best").given(
        each({name_of(o): error for o, error in by.items()}, brief), min(by[o] for o in _ALL if o >= 8) > min(at)
    )
    largest = {o: found.size(1.5, o)[1] for o in _ALL}
    yield Says("eps = 1.5: s = 3 for k' from 3 to 7, and 2 for k' from 8 to 10").exactly(
        each({name_of(o): float(s) for o, s in largest.items() if 3 <= o <= 10}, ".0f"),
        all(largest[o] == 3 for o in range(3, 8)) and all(largest[o] == 2 for o in range(8, 11)),
    )
    eight = dict(zip(_ALL, second[8].mean("eps = 1.5"), strict=True))
    yield Says("eps = 1.5, k = 8: choosing for k' <= 3 is worse than for k' = 8").given(
        f"k' = 2: {brief(eight[2])}, 3: {brief(eight[3])}, 8: {brief(eight[8])}", min(eight[2], eight[3]) > eight[8]
    )


@exhibit
def by_size(found: ByK, plan: Plan) -> Parts:
    """Figure 6.9: errors by the number of attributes of a marginal."""
    sweep = found.by_k()
    yield sweep.panel("Kosarak, m = 16", "k", "SSE", faint=tuple(name for name in sweep.runs if "k' = 3" in name))
    n = power(found.case.people.people)
    yield f"n = {n}, the collections of Figure 6.8: {plan.k_runs} runs, {plan.k_queries} random marginals."
    ratios = {f"eps = {eps:g}": sweep.over(f"eps = {eps:g}, k' = 3", f"eps = {eps:g}, k' = k") for eps in FOUR}
    every = np.concatenate(list(ratios.values()))
    yield Says("In most cases k' = 3 and k' = k give similar errors (here: within a factor of 1.25)").given(
        f"in {int((np.abs(np.log(every)) <= np.log(1.25)).sum())} of {len(every)} cases",
        (np.abs(np.log(every)) <= np.log(1.25)).mean() > 0.5,
    )
    large = {k: ratio for k, ratio in zip(_ASKED, ratios["eps = 1.5"], strict=True) if k > 7}
    yield Says(
        "eps = 1.5: above k = 7 the difference is significant (here: k' = 3 has more than 1.25 times the error)"
    ).given(by_point(map(float, large), large.values(), axis="k"), min(large.values()) > 1.25)
