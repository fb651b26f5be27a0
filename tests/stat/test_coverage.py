"""Every stated error holds, in a few cells of `veil reproduce coverage`; and the rivals are caught there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veil import GRR, OLH, OUE, Integers, Interval, Record, SubsetSelection, simulate
from veil.engines.local import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.mechanisms import PureOracle
from veil.sql import Answer, Design, Grids, Table, choose_design
from veil_papers.coverage import pure_oracles
from veil_papers.coverage.cells import LEVELS, Case, Seen, measure
from veil_papers.coverage.exact import Supports, frequency_cells, significance_of, support_law
from veil_papers.coverage.frequencies import processed, sampled, totals, weighted
from veil_papers.coverage.populations import NUMBERS, Population, seventy
from veil_papers.coverage.selection import reported, tops

FEW = 100
HELD = seventy(FEW)


@pytest.mark.parametrize(
    "oracle", [GRR(8.0, 70), OUE(8.0, 70), OLH(10.0, 70), SubsetSelection(4.0, 70), GRR(1.0, 70)], ids=str
)
def test_intervals_of_few_people_cover(oracle: PureOracle) -> None:
    for cell, narrow in frequency_cells(oracle, HELD, LEVELS, ("mid-p", "exact")):
        assert not cell.fails, cell
        assert cell.kind == "frequencies, mid-p" or cell.coverage >= cell.nominal - 1e-9, cell
        assert narrow, cell


@pytest.mark.parametrize("oracle", [OUE(8.0, 70), OLH(10.0, 70)], ids=str)
def test_the_normal_interval_is_caught(oracle: PureOracle) -> None:
    for cell, _ in frequency_cells(oracle, HELD, (0.95,), ("normal",)):
        assert cell.fails
        assert cell.coverage < 0.93


def test_intervals_are_no_wider_than_normal_ones_that_cover() -> None:
    cells = {
        cell.kind: cell
        for cell, _ in frequency_cells(GRR(1.0, 70), {"Zipf": HELD["Zipf"]}, (0.95,), ("mid-p", "normal"))
    }
    normal = cells["rival: frequencies, normal"]
    assert normal.coverage >= 0.95
    assert cells["frequencies, mid-p"].width <= normal.width


@pytest.mark.parametrize(("n", "epsilon", "values"), [(300, 7.0, 1_000), (1_000, 5.0, 50), (20_000, 2.0, 1_000)])
def test_significant_is_the_exact_binomial_test_and_the_normal_one_is_caught(
    n: int, epsilon: float, values: int
) -> None:
    rivals = []
    for oracle in pure_oracles(epsilon, values):
        found = significance_of(oracle, n)
        assert found.family <= 0.05, found
        assert found.powerful, found
        rivals.append(found.normal)
    assert max(rivals) > 0.07


def test_reports_call_nothing_significant_that_nobody_holds() -> None:
    cases = [case for case in reported([(300, 7.0, 1_000)], runs=20) if case.way.startswith(("GRR", "Subset"))]
    assert len(cases) == 2
    for cell in measure(cases, (1,), lambda steps: None):
        assert not cell.fails, cell


@pytest.mark.parametrize("oracle", [GRR(4.0, 70), OLH(1.0, 70)], ids=str)
def test_frequencies_in_other_forms(oracle: PureOracle) -> None:
    held = seventy(3_000)["Zipf"]
    runs = {
        "totals": lambda rng: totals(oracle, held, rng),
        "sampled": lambda rng: sampled(oracle, held, rng),
        "weighted": lambda rng: weighted(oracle, held, rng),
        "norm-sub": lambda rng: processed(oracle, held, "norm-sub", rng),
    }
    cases = [Case(way, "Zipf", 3_000, oracle.epsilon, run, runs=10) for way, run in runs.items()]
    for cell in measure(cases, (2,), lambda steps: None):
        assert not cell.fails, cell


def test_selected_intervals_hold_and_those_that_forget_the_choice_are_caught() -> None:
    cells = list(measure(tops((1.0,), runs=10), (3,), lambda steps: None))
    assert not [cell for cell in cells if cell.judged and cell.fails]
    assert [cell for cell in cells if not cell.judged and cell.coverage + 2 * cell.error < 0.5]


def test_a_support_of_few_people_by_enumeration() -> None:
    """Three people of whom one holds the value: every pattern of reports, one by one."""
    p, q = 0.7, 0.2
    law = np.zeros(4)
    for mine in (0, 1):
        for first in (0, 1):
            for second in (0, 1):
                chance = (p if mine else 1 - p) * (q if first else 1 - q) * (q if second else 1 - q)
                law[mine + first + second] += chance
    assert np.allclose(support_law(3, 1, p, q), law)


def test_coverage_by_sums_is_that_of_collections() -> None:
    """The same cell from reports that were sent: the sum over supports leaves nothing out."""
    oracle, held = GRR(4.0, 70), HELD["Zipf"]
    found = Supports(oracle, FEW)
    holders, values = np.unique(held, return_counts=True)
    expected = float(found.coverage(found.bounds(0.95, "mid-p"), holders) @ values / len(held))
    people, truth = np.repeat(np.arange(70), held), held / FEW

    def run(rng: np.random.Generator) -> list[Seen]:
        low, high = simulate(oracle, people, seed=int(rng.integers(1 << 32))).interval().T
        return [Seen("frequencies", 0.95, truth, low, high)]

    (cell,) = measure([Case("GRR", "Zipf", FEW, 4.0, run, runs=60)], (4,), lambda steps: None)
    assert abs(cell.coverage - expected) < 4 * cell.error


def test_few_runs_that_agree_do_not_fail_a_level_that_holds() -> None:
    def run(rng: np.random.Generator) -> list[Seen]:
        return [Seen("a kind", 0.95, np.arange(9) == 0, np.zeros(9), np.zeros(9))]  # 8 of 9, each time

    few, many = (
        next(iter(measure([Case("way", "data", 1, 1.0, run, runs)], (5,), lambda steps: None))) for runs in (3, 40)
    )
    assert few.coverage == pytest.approx(8 / 9)
    assert not few.fails
    assert many.fails


@pytest.mark.parametrize("name", NUMBERS)
def test_populations_know_their_truth(name: str) -> None:
    people: Population = NUMBERS[name](None).spread(5_000)
    each, rounds = np.repeat(people.values, people.held), np.array(people.rounds)
    assert people.people == len(each) == 5_000
    assert np.allclose(people.cdf(rounds), [(each <= x).mean() for x in rounds])
    assert np.allclose(people.below(rounds), [(each < x).mean() for x in rounds])
    assert people.mean == pytest.approx(each.mean())
    for q in (0.1, 0.5, 0.9):
        assert people.quantile(q) == np.sort(each)[int(np.ceil(q * 5_000)) - 1]


def test_the_design_that_auto_chooses_covers_an_empty_box_of_skewed_columns_and_grids_do_not() -> None:
    # limits of credit cards: most are low, and nobody of 30 to 45 has one below 100,000
    people, rng = 200_000, np.random.default_rng(15)
    private = Record.of(lim=Interval(0, 1e6, cells=100), age=Integers(21, 79))
    limit = np.clip(rng.lognormal(11.4, 0.8, people), 20_000, 500_000)
    age = np.clip(21 + rng.gamma(4, 4, people), 21, 79).astype(np.int64)
    moved = (limit < 100_000) & (age >= 30) & (age <= 45)
    age[moved] = np.where(rng.random(people) < 0.6, rng.integers(21, 30, people), rng.integers(46, 80, people))[moved]

    def errors(design: Design, seed: int) -> np.ndarray:
        """Return estimate / standard error of the count, whose true value is 0, in 10 collections."""
        table, found = Table(2.0, private, design=design), []
        asked = replace(table, query="SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 30 AND 45 AND lim < 100000")
        for run in range(10):
            reports = table.survey.randomize({"lim": limit, "age": age}, SeededForExperiments(seed + run))
            answer = asked.read(MemoryCollection(table.survey, [reports]))
            assert isinstance(answer, Answer)
            found.append(answer.value() / answer.stderr())
        return np.array(found)

    chosen = choose_design(private, 2.0, people)[0].design
    assert not isinstance(chosen, Grids)
    exact = errors(chosen, 100)
    assert (np.abs(exact) < 1.96).sum() >= 8
    assert abs(exact.mean()) < 3 / np.sqrt(10)
    assert errors(Grids(people=people), 200).min() > 3.5  # the rival: no interval of 99.9 % holds the truth
