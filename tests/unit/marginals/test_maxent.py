"""Tables of maximum entropy: against a generic optimiser, plain proportional fitting, and rivals."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError
from veil.marginals.maxent import maximal, reconstruct, reconstruct_many
from veil.marginals.tables import marginal_of

Floats = NDArray[np.float64]
Given = list[tuple[tuple[int, ...], Floats]]
ALIKE = np.array([[0.4, 0.1], [0.1, 0.4]])
CHAIN, PAIRS_OF_3 = [(0, 1), (1, 2)], [(0, 1), (0, 2), (1, 2)]


def joint(sizes: tuple[int, ...], seed: int, spread: float = 0.5) -> Floats:
    """Some table of these sizes; a small spread leaves most cells nearly empty."""
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(sizes)), spread)).reshape(sizes)


def marginals(table: Floats, sets: list[tuple[int, ...]]) -> Given:
    return [(one, marginal_of(table, one)) for one in sets]


def gap(table: Floats, given: Given) -> float:
    return max(float(np.abs(marginal_of(table, places) - wanted).max()) for places, wanted in given)


def entropy(table: Floats) -> float:
    held = table[table > 0]
    return float(-(held * np.log(held)).sum())


def indicators(sizes: tuple[int, ...], sets: list[tuple[int, ...]]) -> Floats:
    """One row for every cell of every constraint: which cells of the table it adds up."""
    cells = np.arange(int(np.prod(sizes)))
    values = np.unravel_index(cells, sizes)
    rows = []
    for one in sets:
        number = np.ravel_multi_index(tuple(values[p] for p in one), tuple(sizes[p] for p in one))
        rows += [(number == k).astype(float) for k in range(int(np.prod([sizes[p] for p in one])))]
    return np.array(rows)


def naive(sizes: tuple[int, ...], given: Given, sweeps: int) -> Floats:
    """Proportional fitting as in a textbook."""
    table = np.full(sizes, 1 / np.prod(sizes))
    for _ in range(sweeps):
        for places, wanted in given:
            others = tuple(axis for axis in range(len(sizes)) if axis not in places)
            found = table.sum(axis=others)
            ratio = np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
            table = table * np.expand_dims(ratio, others)
    return table


@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        ((2, 2, 2), PAIRS_OF_3),
        ((2, 2, 2), CHAIN),
        ((2, 3, 2), PAIRS_OF_3),
        ((3, 2, 4), [(0, 1), (2,)]),
        ((2, 2, 2, 2), list(combinations(range(4), 2))),
        ((2, 3, 2, 2), [(0, 1, 2), (1, 3), (2, 3)]),
    ],
)
def test_reconstruction_matches_a_generic_optimiser(sizes: tuple[int, ...], sets: list[tuple[int, ...]]) -> None:
    from scipy.optimize import minimize

    given = marginals(joint(sizes, seed=3, spread=2.0), sets)
    ours = reconstruct(sizes, given)
    rows, wanted = indicators(sizes, sets), np.concatenate([table.ravel() for _, table in given])
    kept: list[int] = []  # without the rows that follow from others, on which the optimiser would stumble
    for row in range(len(rows)):
        if np.linalg.matrix_rank(rows[[*kept, row]]) > len(kept):
            kept.append(row)
    cells = rows.shape[1]
    found: Any = minimize(
        lambda p: float((p * np.log(np.maximum(p, 1e-300))).sum()),
        np.full(cells, 1 / cells),
        jac=lambda p: np.log(np.maximum(p, 1e-300)) + 1,
        bounds=[(1e-12, 1)] * cells,
        constraints={"type": "eq", "fun": lambda p: rows[kept] @ p - wanted[kept], "jac": lambda _: rows[kept]},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert np.abs(found.x - ours.table.ravel()).max() < 2e-5
    assert ours.exact
    assert gap(ours.table, given) <= 1e-8
    # and exactly: the one table with these marginals whose logarithm is a sum over them
    logs = np.log(ours.table.ravel())
    assert np.abs(rows.T @ np.linalg.lstsq(rows.T, logs, rcond=None)[0] - logs).max() < 1e-6


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("sizes", "s", "spread"),
    [
        ((2,) * 8, 2, 0.3),
        ((2,) * 8, 2, 0.005),  # a few cells hold nearly everybody: fitting alone would take thousands of sweeps
        ((2,) * 6, 3, 0.02),
        ((3, 4, 2, 5, 3), 2, 0.5),
        ((3, 4, 2, 5, 3), 2, 0.003),
    ],
)
def test_has_all_given_marginals_where_a_table_has_them(
    sizes: tuple[int, ...], s: int, spread: float, seed: int
) -> None:
    truth = joint(sizes, seed, spread)
    given = marginals(truth, list(combinations(range(len(sizes)), s)))
    ours = reconstruct(sizes, given)
    assert gap(ours.table, given) <= 1e-8
    assert ours.gap == pytest.approx(gap(ours.table, given), abs=1e-14)
    assert ours.exact
    assert ours.table.min() >= 0
    assert ours.table.sum() == pytest.approx(1, abs=1e-12)
    assert entropy(ours.table) >= entropy(truth) - 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_sparse_people_and_empty_cells(seed: int) -> None:
    random = np.random.default_rng(seed)
    people = random.integers(0, 3, (12, 6)) * random.integers(0, 2, (12, 6))
    truth = np.zeros((3,) * 6)
    np.add.at(truth, tuple(people.T), 1 / 12)
    given = marginals(truth, list(combinations(range(6), 2)))
    assert any((table == 0).any() for _, table in given)
    ours = reconstruct(truth.shape, given)
    assert gap(ours.table, given) <= 1e-8
    for places, table in given:
        assert (marginal_of(ours.table, places)[table == 0] == 0).all()


def test_proportional_fitting_matches_a_plain_loop() -> None:
    """Larger tables are fitted by groups of constraints: in another order, to the same table."""
    for sizes in ((2,) * 8, (3, 2, 5, 4), (7, 2, 9), (2, 40), (40, 2)):
        sets = [*combinations(range(len(sizes)), min(2, len(sizes) - 1)), (0,)]
        given = marginals(joint(sizes, seed=5, spread=3.0), sets)
        np.testing.assert_allclose(reconstruct(sizes, given).table, naive(sizes, given, 300), atol=1e-9)


def test_rivals_do_not_have_the_marginals() -> None:
    sizes = (2,) * 5
    given = marginals(joint(sizes, seed=1), list(combinations(range(5), 2)))
    assert gap(reconstruct(sizes, given).table, given) <= 1e-8
    singles = [marginal_of(reconstruct(sizes, given).table, (place,)) for place in range(5)]
    independent = np.einsum("a,b,c,d,e->abcde", *singles)
    assert gap(independent, given) > 1e-3
    assert gap(naive(sizes, given, 1), given) > 1e-3


def test_a_rival_with_the_marginals_has_less_entropy() -> None:
    given = marginals(joint((2, 2, 2), seed=2), PAIRS_OF_3)
    best = reconstruct((2, 2, 2), given).table
    parity = 1 - 2 * (np.indices((2, 2, 2)).sum(axis=0) % 2)
    for size in (-0.3, -0.01, 0.01, 0.3):
        rival = best + size * best.min() * parity
        assert gap(rival, given) <= 1e-8
        assert entropy(rival) < entropy(best) - 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_where_no_table_has_the_marginals_squares_are_least(seed: int) -> None:
    """Pairs that agree on single attributes, all of them even, but that are not those of one table."""
    from scipy.optimize import nnls

    random, places, sets = np.random.default_rng(seed), 5, list(combinations(range(5), 2))
    given: Given = []
    for one in sets:
        turn = random.uniform(-0.24, 0.24)
        given.append((one, np.array([[0.25 + turn, 0.25 - turn], [0.25 - turn, 0.25 + turn]])))
    ours = reconstruct((2,) * places, given)
    rows, wanted = indicators((2,) * places, sets), np.concatenate([table.ravel() for _, table in given])
    heavy = 1e4 * np.ones(rows.shape[1])
    least = nnls(np.vstack([rows, heavy]), np.append(wanted, 1e4))[0]
    squares = ((rows @ least - wanted) ** 2).sum()
    assert squares > 1e-3
    assert not ours.exact
    assert ours.gap == pytest.approx(gap(ours.table, given), abs=1e-14)
    assert ((rows @ ours.table.ravel() - wanted) ** 2).sum() <= squares + 1e-5
    cycled = naive((2,) * places, given, 200)
    assert ((rows @ cycled.ravel() - wanted) ** 2).sum() > squares + 1e-3


def test_a_large_table_without_exact_answer_is_no_worse() -> None:
    """Thirteen attributes, of which three contradict each other: what three alone give, and no more."""
    opposed: Given = [((0, 1), ALIKE), ((1, 2), ALIKE), ((0, 2), ALIKE[::-1])]
    alone = reconstruct((2,) * 3, opposed)
    even = np.full((2, 2), 0.25)
    said = {one for one, _ in opposed}
    large = reconstruct((2,) * 13, opposed + [(one, even) for one in combinations(range(13), 2) if one not in said])
    assert not alone.exact
    assert alone.gap == pytest.approx(1 / 15, abs=1e-5)
    assert large.gap == pytest.approx(1 / 15, abs=1e-3)


def test_contradicting_zeros_give_a_table_and_a_gap() -> None:
    same, other = np.diag([0.5, 0.5]), np.diag([0.5, 0.5])[::-1]
    given: Given = [((0, 1), same), ((1, 2), same), ((0, 2), other)]
    ours = reconstruct((2, 2, 2), given)
    assert np.isfinite(ours.table).all()
    assert ours.table.min() >= 0
    assert ours.table.sum() == pytest.approx(1)
    assert ours.gap == pytest.approx(1 / 6, abs=1e-4)
    assert not ours.exact


def test_unconstrained_attributes_are_uniform_and_independent() -> None:
    np.testing.assert_array_equal(reconstruct((2, 5), []).table, np.full((2, 5), 0.1))
    assert reconstruct((2, 5), []).exact
    pair = joint((2, 3), seed=4)
    found = reconstruct((2, 4, 3), [((0, 2), pair)]).table
    np.testing.assert_allclose(found, np.repeat(pair[:, None, :] / 4, 4, axis=1), atol=1e-15)


def test_a_marginal_of_all_attributes_is_the_answer() -> None:
    whole = joint((2, 3, 4), seed=6)
    given = [((0, 1, 2), whole), *marginals(whole, PAIRS_OF_3)]
    found = reconstruct((2, 3, 4), given)
    np.testing.assert_allclose(found.table, whole, atol=1e-15)
    assert found.gap <= 1e-15


def test_maximal_drops_contained_sets() -> None:
    assert maximal([]) == ()
    assert maximal([(0,), (0, 1), (1, 2), (2,), (0, 1), ()]) == ((0, 1), (1, 2))
    assert maximal([(0,), (1,)]) == ((0,), (1,))


def test_reconstruct_many_matches_single_reconstructions(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [joint((2, 3, 2), seed, spread=0.2) for seed in range(40)]
    given = np.array([np.concatenate([t.ravel() for _, t in marginals(table, PAIRS_OF_3)]) for table in tables])
    given[7] = np.roll(given[7], 1)  # no longer consistent
    monkeypatch.setenv("VEIL_THREADS", "1")
    one_thread = reconstruct_many((2, 3, 2), PAIRS_OF_3, given)
    monkeypatch.setenv("VEIL_THREADS", "3")
    monkeypatch.setattr("veil.marginals.maxent._WORTH_A_THREAD", 1)
    many = reconstruct_many((2, 3, 2), PAIRS_OF_3, given)
    assert len(many) == 40
    assert many.exact.sum() == 39
    np.testing.assert_array_equal(many.tables, one_thread.tables)
    for number, table in enumerate(tables):
        if number != 7:
            single = reconstruct((2, 3, 2), marginals(table, PAIRS_OF_3))
            np.testing.assert_array_equal(many[number].table, single.table)
            assert many[number].steps == single.steps
    assert len(reconstruct_many((2, 2, 2), PAIRS_OF_3, np.zeros((0, 12)))) == 0


def test_large_tables_and_invalid_marginals_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"has 1,073,741,824 cells, more than 16,777,216: ask for fewer"):
        reconstruct((2,) * 30, [])
    with pytest.raises(InputError, match="increasing order"):
        reconstruct((2, 2), [((1, 0), ALIKE)])
    with pytest.raises(InputError, match="increasing order"):
        reconstruct((2, 2), [((0, 2), ALIKE)])
    with pytest.raises(InputError, match="2 attributes was given for 1 places"):
        reconstruct((2, 2), [((0,), ALIKE)])
    with pytest.raises(InputError, match="one row of 6 cells"):
        reconstruct((2, 3), [((0, 1), ALIKE)])
    with pytest.raises(InputError, match="no negative cells"):
        reconstruct((2, 2), [((0, 1), np.array([[-0.1, 0.6], [0.2, 0.3]]))])
    with pytest.raises(InputError, match="no negative cells"):
        reconstruct((2, 2), [((0, 1), np.array([[np.nan, 0.6], [0.2, 0.3]]))])
