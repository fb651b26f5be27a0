"""Imagined collections: the counts that are drawn have the law that people's reports have, by enumeration."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.significance import ALPHA

from veil import GRR, OLH, OUE, SHE, Rappor
from veil.errors import InputError
from veil.post.selection import redraw, redraw_counts
from veil.reports.columns import Reports

RUNS = 20_000


def exact_law(oracle: Any, held: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """The probability of every vector of supports, one person after another."""
    every = np.arange(oracle.domain.size, dtype=np.uint64)
    by_holder: list[Counter[tuple[int, ...]]] = [Counter() for _ in held]
    for report, chances in oracle.channel().items():
        columns = Reports.from_bytes(oracle.digest, oracle.layout, report).columns
        supports = tuple(int(x) for x in oracle.incidence(columns, every)[0])
        for holder, chance in enumerate(chances):
            by_holder[holder][supports] += chance  # type: ignore[assignment]
    law: dict[tuple[int, ...], Fraction] = {(0,) * len(held): Fraction(1)}
    for holder, people in enumerate(held):
        for _ in range(people):
            grown: dict[tuple[int, ...], Fraction] = {}
            for counts, chance in law.items():
                for supports, more in by_holder[holder].items():
                    key = tuple(a + b for a, b in zip(counts, supports, strict=True))
                    grown[key] = grown.get(key, Fraction(0)) + chance * Fraction(more)
            law = grown
    return law


def p_value(drawn: list[tuple[int, ...]], law: dict[tuple[int, ...], Fraction]) -> float:
    """Of a chi-square test; what is expected fewer than ten times is put together."""
    seen, runs = Counter(drawn), len(drawn)
    if not set(seen) <= set(law):
        return 0.0
    pairs = [(seen[key], runs * float(chance)) for key, chance in law.items()]
    often = [pair for pair in pairs if pair[1] >= 10]
    rest = [pair for pair in pairs if pair[1] < 10]
    if rest:
        often.append((sum(pair[0] for pair in rest), sum(pair[1] for pair in rest)))
    observed, expected = np.array(often).T
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(often) - 1))


def as_keys(counts: Any) -> list[tuple[int, ...]]:
    return [tuple(int(x) for x in row) for row in counts]


@pytest.mark.parametrize(
    ("oracle", "held"), [(GRR(1.0, 3), (3, 1, 0)), (GRR(0.5, 4), (2, 1, 1, 0)), (OUE(1.0, 3), (2, 1, 0))], ids=repr
)
def test_counts_have_the_law_of_people(oracle: Any, held: tuple[int, ...]) -> None:
    law = exact_law(oracle, held)
    assert sum(law.values()) == 1
    random = np.random.default_rng(1)
    drawn = as_keys(redraw_counts(oracle.noise, np.array(held), random) for _ in range(RUNS))
    assert p_value(drawn, law) > ALPHA
    other = as_keys(redraw_counts(oracle.noise, np.roll(held, 1), random) for _ in range(RUNS // 4))
    assert p_value(other, law) < ALPHA  # other people


def test_independent_counts_do_not_have_the_law_of_grr() -> None:
    """The rival: a binomial a value, as if a report could support several."""
    oracle, held = GRR(1.0, 3), np.array([3, 1, 0])
    random = np.random.default_rng(2)
    p, q = float(oracle.p), float(oracle.q)
    drawn = as_keys(random.binomial(held, p) + random.binomial(4 - held, q) for _ in range(2_000))
    assert p_value(drawn, exact_law(oracle, (3, 1, 0))) < ALPHA


@pytest.mark.parametrize(
    ("oracle", "held"), [(GRR(1.0, 3), (3, 1, 0)), (GRR(2.0, 4), (2, 0, 1, 0)), (OUE(1.0, 3), (2, 1, 0))], ids=repr
)
def test_the_law_has_the_variance_of_totals(oracle: Any, held: tuple[int, ...]) -> None:
    """Means and (co)variances of the enumerated law are those of the noise model, exactly."""
    law, n, gap = exact_law(oracle, held), sum(held), oracle.p - oracle.q
    for size in range(1, len(held) + 1):
        for chosen in combinations(range(len(held)), size):
            totals = [(sum(counts[v] for v in chosen), chance) for counts, chance in law.items()]
            mean = sum((total * chance for total, chance in totals), Fraction(0))
            square = sum((total * total * chance for total, chance in totals), Fraction(0))
            inside = sum(held[v] for v in chosen)
            assert (mean / n - size * oracle.q) / gap == Fraction(inside, n)
            exact = (square - mean**2) / (n * gap) ** 2
            assert oracle.noise.total_variance(size, inside / n) / n == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


def test_oracles_without_a_noise_law_are_refused() -> None:
    random = np.random.default_rng(0)
    with pytest.raises(InputError, match="law"):
        redraw(Rappor(4.0, 8).noise, np.array([5, 5]), random)
    for oracle in (OLH(1.0, 4), SHE(1.0, 4)):
        first, second = (redraw(oracle.noise, np.array([5, 5, 0, 0]), np.random.default_rng(3)) for _ in range(2))
        assert np.array_equal(first, second)
