"""Whether every stated error holds: coverage of intervals and bands, errors of tests, over every kind of result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import mean
from typing import Any

from veil.mechanisms import MECHANISMS, PureOracle
from veil_papers.common.claims import Says, span
from veil_papers.common.exhibits import Claim, Grid, Parts, Reproduction, Setting, exhibit
from veil_papers.coverage import distributions, frequencies, marginals, selection, sql
from veil_papers.coverage.cells import LEAST, LEVELS, Case, Cell, filled, grid, measure, pooled, worst
from veil_papers.coverage.exact import KINDS, Tested, frequency_cells, significance_of
from veil_papers.coverage.populations import NUMBERS, flat_names, seventy, transactions

SEED = 13
ALPHA = 0.05
CRITERIA = (
    "an interval of 90, 95 or 99 % holds where it covers at least 87, 93 or 98 %; bands of distributions as they are "
    "printed, and answers in SQL, 87, 92 or 97 %; items and sets 87, 92 or 96 %; bands that assume nothing their own "
    "level. What is drawn fails where it misses that by more than two standard errors over runs. Frequencies of 70 "
    "values and `significant` are sums over every support, without any chance. What fails is red. Rivals are shown and "
    "not judged"
)


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch, self.data = setting.pick, setting.watch, setting.data
        self.people: Sequence[int] = pick((100, 300, 3_000), (100,))
        self.epsilons: Sequence[float] = pick((0.5, 1.0, 2.0, 4.0, 8.0, 10.0), (1.0, 8.0))
        self.tested_people: Sequence[int] = pick((100, 300, 1_000, 20_000), (300,))
        self.tested_epsilons: Sequence[float] = pick((1.0, 2.0, 5.0, 7.0, 10.0), (1.0, 7.0))
        self.tested_values: Sequence[int] = (50, 1_000)
        self.reported: Sequence[tuple[int, float, int]] = pick(
            ((300, 5.0, 1_000), (300, 7.0, 1_000), (1_000, 7.0, 1_000), (20_000, 2.0, 50)), ((300, 7.0, 50),)
        )
        self.report_runs = pick(400, 5)
        self.forms_epsilons: Sequence[float] = pick((0.5, 1.0, 4.0, 10.0), (4.0,))
        self.forms_runs = pick(30, 3)
        self.top_epsilons: Sequence[float] = pick((1.0, 2.0, 4.0), (2.0,))
        self.top_runs = pick(60, 3)
        self.hitter_runs = pick(200, 1)
        self.sets: Sequence[str] = pick(("POS", "Kosarak", "Online"), ("Online",))
        self.set_runs = pick(12, 1)
        self.populations: Sequence[str] = pick(tuple(NUMBERS), ("Beta", "limits"))
        self.number_epsilons: Sequence[float] = pick((1.0, 2.0, 4.0), (2.0,))
        self.mean_runs = pick(150, 3)
        self.wave_people, self.wave_runs = pick(100_000, 20_000), pick(10, 1)
        self.tree_runs = pick(40, 2)
        self.joint_people: Sequence[int] = pick((2_000, 50_000, 1 << 18), (2_000,))
        self.joint_epsilons: Sequence[float] = pick((0.5, 1.0, 2.0, 4.0), (4.0,))
        self.joint_runs = pick(40, 2)
        self.sql_people: Sequence[int] = pick((2_000, 20_000), (2_000,))
        self.sql_epsilons: Sequence[float] = pick((1.0, 4.0), (4.0,))
        self.sql_designs: Sequence[str] = pick(tuple(sql.DESIGNS), ("HIO",))
        self.sql_runs = pick(40, 1)
        self.band_levels: Sequence[float] = pick(LEVELS, (0.95,))
        vars(self).update(setting.changes)


def reproduce(setting: Setting) -> Reproduction:
    """All tables, the first of which has every kind of result."""
    plan = Plan(setting)
    by_sum, needed = _frequencies(plan)
    tests = _tests(plan)
    reported = _measure(plan, "Significance on reports", selection.reported(plan.reported, plan.report_runs), 3)
    forms = _measure(plan, "Frequencies", frequencies.cases(plan.forms_epsilons, plan.forms_runs), 4)
    selected = _measure(plan, "What was selected", _selected(plan), 5)
    bands = _measure(plan, "Numbers", _numbers(plan), 6)
    drawn = marginals.cases(plan.joint_epsilons, plan.joint_people, plan.joint_runs)
    joint = _measure(plan, "Joint distributions", drawn, 7)
    asked = sql.cases(plan.sql_epsilons, plan.sql_people, plan.sql_designs, plan.sql_runs, plan.data)
    answers = _measure(plan, "SQL", asked, 8)
    every = [*by_sum, *reported, *forms, *selected, *bands, *joint, *answers]
    exhibits = (
        _every(every),
        _by_sum(by_sum, needed),
        _significance(tests, reported),
        _by_kind(forms, 4, "frequencies in every other form"),
        _by_kind(selected, 5, "what was selected"),
        _by_kind(bands, 6, "means and distributions of numbers"),
        _joint(joint),
        _sql(answers),
    )
    return Reproduction("Every stated error, measured", exhibits, {"Cells": f"{len(every):,}"})


def pure_oracles(epsilon: float, values: int) -> Iterator[PureOracle]:
    """Every oracle that `choose` may take and whose reports support values."""
    for kind in MECHANISMS.values():
        if issubclass(kind, PureOracle) and kind.unbiased:
            yield kind(epsilon, values)


def _frequencies(plan: Plan) -> tuple[list[Cell], list[Cell]]:
    """Cells by sums over every support, and those above 99 % although narrower intervals would do."""
    cells, wide = [], []
    with plan.watch("Frequencies, every support", len(plan.people) * len(plan.epsilons)) as advance:
        for n in plan.people:
            for epsilon in plan.epsilons:
                for oracle in pure_oracles(epsilon, 70):
                    for cell, narrow in frequency_cells(oracle, seventy(n, plan.data), LEVELS, tuple(KINDS)):
                        cells.append(cell)
                        wide += [] if narrow else [cell]
                advance(1)
    return cells, wide


def _tests(plan: Plan) -> list[Tested]:
    with plan.watch("significant, every support", len(plan.tested_people)) as advance:
        found = []
        for n in plan.tested_people:
            for epsilon in plan.tested_epsilons:
                for values in plan.tested_values:
                    found += [significance_of(oracle, n, ALPHA) for oracle in pure_oracles(epsilon, values)]
            advance(1)
    return found


def _selected(plan: Plan) -> Iterator[Case]:
    yield from selection.tops(plan.top_epsilons, plan.top_runs)
    yield from selection.hitters(flat_names(), 2.0, plan.hitter_runs)
    chosen = {label: data for label, data in transactions(plan.data).items() if label in plan.sets}
    yield from selection.mining(chosen, plan.number_epsilons, plan.set_runs)


def _numbers(plan: Plan) -> Iterator[Case]:
    populations = {label: NUMBERS[label](plan.data) for label in plan.populations}
    yield from distributions.means(populations, plan.number_epsilons, plan.mean_runs)
    yield from distributions.trees(
        populations, plan.number_epsilons, plan.wave_people, plan.tree_runs, plan.band_levels
    )
    yield from distributions.waves(
        populations, plan.number_epsilons, plan.wave_people, plan.wave_runs, plan.band_levels
    )


def _measure(plan: Plan, what: str, cases: Iterable[Case], part: int) -> list[Cell]:
    listed = list(cases)
    with plan.watch(what, sum(case.runs for case in listed)) as advance:
        return list(measure(listed, (SEED, part), advance))


# -- exhibits ----------------------------------------------------------------------------------------------------------


@exhibit
def _every(cells: Sequence[Cell]) -> Parts:
    """Table 1: every kind of result."""
    yield grid("Mean coverage over all cells, by kind", cells, _kind, _nominal, mean)
    yield grid("Lowest coverage of all cells, by kind", cells, _kind, _nominal)
    failing = [cell for cell in cells if cell.judged and cell.fails]
    told = "; ".join(map(str, failing[:8])) + (f" and {len(failing) - 8} more" if len(failing) > 8 else "")
    judged = sum(cell.judged for cell in cells)
    yield Says("No cell of any kind contradicts what is stated").given(
        f"{judged - len(failing):,} of {judged:,} cells agree" + (f"; not {told}" if told else ""), not failing
    )
    kinds = pooled(cell for cell in cells if cell.judged)
    short = [cell for cell in kinds if cell.fails]
    yield Says("All cells of a kind together, where chance is small, cover what they have to").given(
        f"lowest: {worst(kinds)}" + "".join(f"; fails: {cell}" for cell in short[:4]), not short
    )
    yield "Every cell is a kind of result, an oracle or method, a data set, n, eps and a level; rows show the lowest."


@exhibit
def _by_sum(cells: Sequence[Cell], wide: Sequence[Cell]) -> Parts:
    """Table 2: frequencies of 70 values, over every support that they can have."""
    by_kind = {name: [cell for cell in cells if cell.kind == kind] for name, kind in KINDS.items()}
    for name, found in by_kind.items():
        for level in LEVELS if name == "mid-p" else (0.95,):
            shown = [cell for cell in found if cell.nominal == level]
            yield grid(f"{KINDS[name]}, {level:.0%}", shown, _way_and_people, _epsilon)
    at_95 = {name: [cell for cell in found if cell.nominal == 0.95] for name, found in by_kind.items()}
    pairs = list(zip(at_95["mid-p"], at_95["normal"], strict=True))
    yield _ratios("Width of mid-p over normal, 95 %", pairs)
    for level, least in LEAST.items():
        found = [cell for name in ("mid-p", "exact") for cell in by_kind[name] if cell.nominal == level]
        yield Says(f"{level:.0%} intervals cover at least {least:.0%} in every cell").exactly(
            f"lowest: {worst(found)}", not any(cell.fails for cell in found)
        )
    lowest = min(by_kind["exact"], key=lambda cell: cell.coverage - cell.nominal)
    yield Says("Exact intervals cover at least their level in every cell").exactly(
        f"lowest: {lowest}", lowest.coverage >= lowest.nominal - 1e-9
    )
    above = [cell for cell in at_95["mid-p"] if cell.coverage > 0.99]
    without = [cell for cell in wide if cell in above]
    yield Says("95 % intervals cover more than 99 % only where no narrower interval of whole people would do").exactly(
        f"{len(above)} cells of {len(pairs)} cover more than 99 %; a narrower one would do in {len(without)}"
        + "".join(f"; {cell}" for cell in without[:3]),
        not without,
    )
    ratios = [(ours.width / normal.width, ours) for ours, normal in pairs if normal.coverage >= normal.nominal]
    most, where = max(ratios, key=lambda pair: pair[0])
    yield Says("95 % intervals are on average no wider than the normal ones where those cover").exactly(
        f"{len(ratios)} cells, {span(ratio for ratio, _ in ratios)} times as wide; widest: {where}", most <= 1.0
    )
    caught = min(at_95["normal"], key=lambda cell: cell.coverage)
    yield Says("The rival is caught: normal 95 % intervals cover less than 93 % somewhere").exactly(
        f"lowest: {caught}; below 93 % in {sum(cell.coverage < 0.93 for cell in at_95['normal'])} cells",
        caught.coverage < 0.93,
    )


@exhibit
def _significance(tests: Sequence[Tested], reported: Sequence[Cell]) -> Parts:
    """Table 3: significance, the chance that anything is called significant if nobody holds anything."""
    for name, number in (
        ("significant", lambda test: test.family),
        ("rival: normal threshold", lambda test: test.normal),
    ):
        yield _tested_grid(f"{name}, alpha = {ALPHA:g}", tests, number, judged=name == "significant")
    yield grid("On reports: how often nothing that nobody holds is significant", reported, _way_and_people, _epsilon)
    top = max(tests, key=lambda test: test.family)
    cells = f"{len(tests)} cells of n, eps, values and oracle"
    yield Says("Family-wise error at most alpha in every cell, for every oracle that `choose` may take").exactly(
        f"{cells}: at most {top.family:.4f} ({_place(top)})", top.family <= ALPHA + 1e-12
    )
    weaker = [test for test in tests if not test.powerful]
    yield Says("Power at least that of the exact binomial test in every cell").exactly(
        f"{cells}: a larger support is needed in {len(weaker)}" + "".join(f"; {_place(test)}" for test in weaker[:3]),
        not weaker,
    )
    rival = max(tests, key=lambda test: test.normal)
    yield Says("The rival is caught: the normal threshold has a family-wise error above 0.4 somewhere").exactly(
        f"up to {rival.normal:.2f} ({_place(rival)})", rival.normal > 0.4
    )
    yield from _claims(reported)


@exhibit
def _by_kind(cells: Sequence[Cell], number: int, what: str) -> Parts:
    """Table {number}: {what}."""
    yield from _grids(cells)
    yield from _claims(cells)


@exhibit
def _joint(cells: Sequence[Cell]) -> Parts:
    """Table 7: joint distributions, their conditionals and correlations."""
    yield from _grids(cells)
    yield from _claims(cells)
    rivals = [cell for cell in cells if not cell.judged]
    caught = min(rivals, key=lambda cell: cell.coverage)
    yield Says("The rival is caught: repaired tables with the noise of one view cover less than 90 % somewhere").given(
        f"lowest: {caught}", caught.coverage < 0.9
    )


@exhibit
def _sql(cells: Sequence[Cell]) -> Parts:
    """Table 8: answers in SQL."""
    yield from _grids(cells)
    yield from _claims(cells)
    yield (
        "Two tables of real reports: a census with a long tail of purchases, and order lines with postage. Three "
        "conditions on one and two private dimensions; groups are public regions and private states."
    )


def _grids(cells: Sequence[Cell]) -> Iterator[Grid]:
    """One for each kind: every way, data set and number of people, by eps, at 95 %."""
    for kind in dict.fromkeys(cell.kind for cell in cells):
        shown = [cell for cell in cells if cell.kind == kind and cell.nominal == 0.95]
        yield grid(f"{kind}, 95 %", shown, _place_of, _epsilon)


def _claims(cells: Sequence[Cell]) -> Iterator[Claim]:
    """One for each kind: every cell covers what it has to."""
    for kind in dict.fromkeys(cell.kind for cell in cells if cell.judged):
        found = [cell for cell in cells if cell.kind == kind]
        failing = [cell for cell in found if cell.fails]
        least = {cell.nominal: cell.least for cell in found}
        asked = ", ".join(f"{level:.0%} at least {of:.0%}" for level, of in sorted(least.items()))
        told = f"{len(found) - len(failing)} of {len(found)} cells; lowest: {worst(found)}"
        yield Says(f"{kind}: intervals of {asked} in every cell").given(told, not failing)


def _tested_grid(title: str, tests: Sequence[Tested], number: Any, *, judged: bool) -> Grid:
    found = {
        (f"{test.oracle}, {test.values:,} values, n = {test.n:,}", f"eps = {test.epsilon:g}"): float(number(test))
        for test in tests
    }
    fails = {at: judged and error > ALPHA for at, error in found.items()}
    return filled(title, "family-wise error", found, fails, low=0.2, high=0.0)


def _ratios(title: str, pairs: Sequence[tuple[Cell, Cell]]) -> Grid:
    found: dict[tuple[str, str], float] = {}
    for ours, rival in pairs:
        at = _way_and_people(ours), _epsilon(ours)
        found[at] = max(found.get(at, 0.0), ours.width / rival.width)
    return filled(title, "ratio", found, {}, 1.5, 0.5)


def _kind(cell: Cell) -> str:
    return cell.kind


def _nominal(cell: Cell) -> str:
    return f"{cell.nominal:.0%}"


def _epsilon(cell: Cell) -> str:
    return f"eps = {cell.epsilon:g}"


def _way_and_people(cell: Cell) -> str:
    return f"{cell.way}, n = {cell.n:,}"


def _place_of(cell: Cell) -> str:
    return f"{cell.way}, {cell.data}, n = {cell.n:,}"


def _place(test: Tested) -> str:
    return f"{test.oracle}, n = {test.n:,}, eps = {test.epsilon:g}, {test.values:,} values"
