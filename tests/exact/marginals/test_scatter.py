"""Exact covariances of unbiased marginals: by enumeration of reports and assignments, and by dense matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from veil.errors import InputError
from veil.marginals.scatter import Scatter
from veil.marginals.tables import Views, averaged
from veil.mechanisms import GRR, OUE, SubsetSelection
from veil.mechanisms.oracle import PureOracle
from veil.results.laws import SupportNoise

Floats = NDArray[np.float64]
Oracle = type[GRR] | type[OUE]

SIZES = (2, 3, 2, 2)
SETS = ((0, 1), (1, 2), (0, 2), (0, 1, 2), (1, 3), (2, 3), (0, 3))


def people_at_random(count: int, seed: int) -> NDArray[np.int64]:
    random = np.random.default_rng(seed)
    return np.stack([random.integers(0, size, count) for size in SIZES], axis=1)


def exact_tables(views: Views, records: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The cell of each person in each view."""
    return [np.ravel_multi_index(tuple(records[:, list(one)].T), views.shape(one)) for one in views.sets]


def reports_of(oracle: PureOracle, cell: int, cells: int) -> list[tuple[float, Floats]]:
    """Every report there can be about a value, with its chance, as the cells that it supports."""
    if isinstance(oracle, GRR):
        return [(float(oracle.p if other == cell else oracle.q), np.eye(cells)[other]) for other in range(cells)]
    found = []
    for bits in product((0, 1), repeat=cells):
        of_one = [float(oracle.p if at == cell else oracle.q) for at in range(cells)]
        chance = float(np.prod([one if bit else 1 - one for one, bit in zip(of_one, bits, strict=True)]))
        found.append((chance, np.array(bits, dtype=np.float64)))
    return found


@pytest.mark.parametrize("kinds", [(GRR, GRR), (GRR, OUE), (OUE, OUE)])
def test_covariances_match_an_enumeration(kinds: tuple[Oracle, Oracle]) -> None:
    """Two attributes, three people: two are asked for both attributes and one for the first alone."""
    sizes, sets, people = (2, 2), ((0, 1), (0,)), np.array([2, 1])
    records = np.array([[0, 0], [1, 0], [1, 1]])
    views = Views(sizes, sets)
    oracles = [kind(1.0, int(cells)) for kind, cells in zip(kinds, views.cells, strict=True)]
    holds = exact_tables(views, records)
    true = np.concatenate([np.bincount(held, minlength=n) / 3 for held, n in zip(holds, views.cells, strict=True)])
    scatter = Scatter(sizes, sets, np.array([1.0, 3.0]), true, people, tuple(one.noise for one in oracles), 3)
    queries = [(0, 1), (0,)]
    maps = [(matrix_of(scatter, query), scatter.estimate(np.zeros(6), query)) for query in queries]
    first, second = [np.zeros(4), np.zeros(2)], [np.zeros((4, 4)), np.zeros((2, 2))]
    for order in permutations(range(3)):
        asked = [[order[0], order[1]], [order[2]]]
        rows = [
            reports_of(oracles[view], int(holds[view][person]), int(views.cells[view]))
            for view, group in enumerate(asked)
            for person in group
        ]
        for reports in product(*rows):
            chance = float(np.prod([one for one, _ in reports])) / 6
            supports = [reports[0][1] + reports[1][1], reports[2][1]]
            raw = np.concatenate(
                [
                    (support / count - float(oracle.q)) / float(oracle.p - oracle.q)
                    for support, count, oracle in zip(supports, people, oracles, strict=True)
                ]
            )
            for place, (matrix, constant) in enumerate(maps):
                found = matrix @ raw + constant
                first[place] += chance * found
                second[place] += chance * np.outer(found, found)
    for place, (query, truth) in enumerate(zip(queries, (true[:4], true[4:]), strict=True)):
        assert first[place] == pytest.approx(truth, abs=1e-12)
        assert scatter.covariance(query) == pytest.approx(second[place] - np.outer(truth, truth), abs=1e-12)
    # the rivals: as if everybody answered for every view, and as if people were drawn with replacement
    without = replace(scatter, population=10**12).covariance((0, 1))
    assert not np.allclose(without, scatter.covariance((0, 1)), rtol=0.01)


def made(seed: int = 1, population: int = 1_000) -> tuple[Scatter, Floats]:
    """Views of several sizes, people and oracles, and the joint table that the plausible tables come from."""
    random = np.random.default_rng(seed)
    views = Views(SIZES, SETS)
    joint = random.dirichlet(np.full(24, 0.5)).reshape(SIZES)
    tables = np.concatenate([joint.sum(axis=tuple(i for i in range(4) if i not in one)).reshape(-1) for one in SETS])
    kinds = (GRR, OUE, SubsetSelection, GRR, OUE, GRR, GRR)
    noises = tuple(kind(1.0 + i / 3, int(n)).noise for i, (kind, n) in enumerate(zip(kinds, views.cells, strict=True)))
    people = np.array([100, 120, 150, 200, 130, 140, 160])
    weights = random.uniform(0.5, 2.0, len(SETS))
    return Scatter(SIZES, SETS, weights, tables, people, noises, population), joint


def matrix_of(scatter: Scatter, places: Sequence[int]) -> Floats:
    """The linear map from all raw tables to a marginal, without its constant: column by column."""
    zero = scatter.estimate(np.zeros(scatter.views.total), places)
    return np.stack([scatter.estimate(unit, places) - zero for unit in np.eye(scatter.views.total)], axis=1)


def dense(scatter: Scatter, places: Sequence[int], joint: Floats) -> Floats:
    """The covariance by the definition: a full matrix for every view."""
    h, population = matrix_of(scatter, places), scatter.population
    drawn = population / (population - 1)
    found = np.zeros((len(h), len(h)))
    for number, noise in enumerate(scatter.noises):
        assert isinstance(noise, SupportNoise)
        start, stop = scatter.views.offsets[number : number + 2]
        f, part = scatter.tables[start:stop], h[:, start:stop]
        p, q = float(noise.p), float(noise.q)
        a, b, c, e = p * (1 - p), q * (1 - q), float(noise.hit) - p * q, float(noise.miss) - q * q
        m = e + (c - e) * (f[:, None] + f[None, :])
        np.fill_diagonal(m, b + (a - b) * f)
        every = m / (p - q) ** 2 + drawn * (np.diag(f) - np.outer(f, f))
        found += part @ every @ part.T / scatter.people[number]
    table = joint.sum(axis=tuple(i for i in range(4) if i not in places)).reshape(-1)
    return found - drawn / population * (np.diag(table) - np.outer(table, table))


QUERIES = [(0,), (3,), (0, 1), (1, 2), (0, 3), (0, 1, 2), (1, 3)]


@pytest.mark.parametrize("places", QUERIES)
def test_covariances_match_dense_matrices(places: tuple[int, ...]) -> None:
    scatter, joint = made()
    expected = dense(scatter, places, joint)
    assert scatter.covariance(places) == pytest.approx(expected, abs=1e-14)
    assert scatter.variance(places) == pytest.approx(np.diag(expected), abs=1e-14)


@pytest.mark.parametrize("places", QUERIES)
def test_estimates_match_averaged_tables(places: tuple[int, ...]) -> None:
    scatter, _ = made()
    raw = np.random.default_rng(2).normal(0.1, 0.3, scatter.views.total)
    tables = averaged(scatter.views, raw, scatter.weights)
    for number in scatter.views.containing(places):
        axes = [i for i, place in enumerate(SETS[number]) if place not in places]
        expected = scatter.views.table(tables, number).sum(axis=tuple(axes)).reshape(-1)
        assert scatter.estimate(raw, places) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("places", QUERIES)
def test_weights_of_a_person_add_up_to_one_person(places: tuple[int, ...]) -> None:
    """Were one person asked for every view without noise, the sum of their parts would be the cell that they hold."""
    scatter, _ = made()
    matrix = matrix_of(scatter, places)
    records = people_at_random(20, 3)
    shape = scatter.views.shape(places)
    for record, *cells in zip(records, *exact_tables(scatter.views, records), strict=True):
        parts = sum(matrix[:, scatter.views.offsets[number] + cell] for number, cell in enumerate(cells))
        expected = np.zeros(shape)
        expected[tuple(record[list(places)])] = 1.0
        assert parts == pytest.approx(expected.reshape(-1) - 1 / expected.size, abs=1e-12)


def test_variance_at_a_share_matches_tables_with_that_share() -> None:
    scatter, joint = made()
    places, cell, views = (0, 1), 4, scatter.views
    where = np.zeros((2, 3))
    where.flat[cell] = 1.0
    inside = np.broadcast_to(where[:, :, None, None], SIZES).astype(bool)
    for share, found in zip((0.0, 0.5, 1.0), scatter.parabola(places), strict=True):
        moved = np.where(inside, joint / joint[inside].sum() * share, joint / joint[~inside].sum() * (1 - share))
        tables = [moved.sum(axis=tuple(i for i in range(4) if i not in one)).reshape(-1) for one in SETS]
        at = replace(scatter, tables=np.concatenate(tables))
        assert found[cell] == pytest.approx(dense(at, places, moved)[cell, cell], abs=1e-14)
    assert views.total == len(scatter.tables)


def test_sums_over_several_tables() -> None:
    scatter, _ = made()
    scatter = replace(scatter, population=10**15)
    places, terms = (0, 1, 2, 3), [((0, 1), 1), ((1, 3), 1), ((1,), -1)]
    shape = scatter.views.shape(places)
    matrix = np.zeros((24, scatter.views.total))
    for subset, sign in terms:
        rows = np.arange(len(scatter.estimate(scatter.tables, subset))).reshape(
            [size if place in subset else 1 for place, size in zip(places, shape, strict=True)]
        )
        matrix += sign * matrix_of(scatter, subset)[np.broadcast_to(rows, shape).reshape(-1)]
    expected = np.zeros(24)
    for number, noise in enumerate(scatter.noises):
        assert isinstance(noise, SupportNoise)
        start, stop = scatter.views.offsets[number : number + 2]
        f, part = scatter.tables[start:stop], matrix[:, start:stop]
        p, q = float(noise.p), float(noise.q)
        a, b, c, e = p * (1 - p), q * (1 - q), float(noise.hit) - p * q, float(noise.miss) - q * q
        m = e + (c - e) * (f[:, None] + f[None, :])
        np.fill_diagonal(m, b + (a - b) * f)
        every = m / (p - q) ** 2 + np.diag(f) - np.outer(f, f)
        expected += np.einsum("vi,ij,vj->v", part, every, part) / scatter.people[number]
    assert scatter.bound_variance(places, terms) == pytest.approx(expected, rel=1e-9)


def test_one_table_of_many_cells() -> None:
    """One view of 2^16 cells that everybody answers: the oracle's own variance, less what the known total says."""
    cells, n = 1 << 16, 1 << 18
    noise = OUE(1.0, cells).noise
    table = np.full(cells, 1 / cells)
    places = tuple(range(16))
    scatter = Scatter((2,) * 16, (places,), np.ones(1), table, np.array([n]), (noise,), n)
    found = scatter.variance(places)
    assert found == pytest.approx(np.full(cells, noise.variance(1 / cells) / n), rel=1e-4)
    low, half, high = scatter.parabola(places)
    assert (high[0] - low[0]) / 2 == pytest.approx(half[0] - low[0], rel=1e-3)


def test_sets_outside_all_views_are_refused() -> None:
    scatter, _ = made()
    assert scatter.covered((0, 1, 2))
    assert not scatter.covered((1, 2, 3))
    assert scatter.subsets((1, 2, 3)) == [(1, 2), (1, 3), (2, 3)]
    with pytest.raises(InputError, match="no view has all"):
        scatter.variance((1, 2, 3))
    silent = replace(scatter, people=np.array([100, 120, 150, 0, 130, 140, 160]))
    assert not silent.covered((0, 1, 2))
    unknown = SupportNoise(Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 16))
    assert replace(scatter, noises=(unknown,) * 7).variance((0,)).min() > 0
