"""Synthetic people: their marginals, seeds, and independent attributes for comparison."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import Record, simulate
from veil.marginals import AllMarginals, FourierMarginals
from veil.marginals.maxent import reconstruct
from veil.marginals.synthesis import synthesize
from veil.marginals.tables import marginal_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Places = tuple[int, ...]
Tables = dict[Places, Floats]
PEOPLE = 100_000


def held(sizes: tuple[int, ...], seed: int, people: int = 50_000) -> Codes:
    """People of three kinds, each of which prefers other values: every attribute tells about every other."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 3, people)
    columns = []
    for size in sizes:
        chances = random.dirichlet(np.full(size, 0.7), 3)
        columns.append((random.random((people, 1)) > chances.cumsum(axis=1)[kinds, :-1]).sum(axis=1))
    return np.stack(columns, axis=1)


def counted(codes: Codes, sizes: tuple[int, ...], places: Places) -> Floats:
    shape = tuple(sizes[place] for place in places)
    flat = np.ravel_multi_index(tuple(codes[:, place] for place in places), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape) / len(codes)


def off(codes: Codes, sizes: tuple[int, ...], tables: Tables) -> float:
    """The root mean square of all cells' differences, in standard deviations of as many people."""
    squares: list[Floats] = []
    for places, table in tables.items():
        variance = np.maximum(table * (1 - table), 1e-6) / len(codes)
        squares.append(((counted(codes, sizes, places) - table) ** 2 / variance).reshape(-1))
    return float(np.sqrt(np.concatenate(squares).mean()))


def independent(codes: Codes, seed: int) -> Codes:
    """The rival: every attribute shuffled by itself, so that only single attributes are right."""
    random = np.random.default_rng(seed)
    return np.stack([random.permutation(codes[:, place]) for place in range(codes.shape[1])], axis=1)


@pytest.mark.parametrize(
    ("sizes", "s", "most"),
    [
        ((2,) * 24, 2, 2.0),
        ((2,) * 22, 3, 2.0),  # 60 triples of all
        ((2, 3, 5, 2, 4, 3, 2, 6, 3, 2, 4, 3), 2, 2.0),
        ((2,) * 6, 2, 1.3),  # from the joint table
        ((3, 2, 4), 2, 1.4),
    ],
)
def test_people_follow_every_view(sizes: tuple[int, ...], s: int, most: float) -> None:
    people = held(sizes, seed=len(sizes))
    sets = list(combinations(range(len(sizes)), s))
    sets = sets if len(sets) < 300 else [sets[i] for i in np.random.default_rng(1).permutation(len(sets))[:60]]
    tables: Tables = {places: counted(people, sizes, places) for places in sets}

    def marginal(places: Places) -> Floats:
        return tables[places] if places in tables else reconstruct(sizes, tables.items()).table

    drawn = synthesize(sizes, marginal, list(tables), PEOPLE, np.random.default_rng(5))
    assert drawn.shape == (PEOPLE, len(sizes))
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert (drawn.max(axis=0) < np.array(sizes)).all()
    assert off(drawn, sizes, tables) < most
    assert off(independent(drawn, seed=6), sizes, tables) > 4 * most


def test_impossible_tables_are_followed_half_way() -> None:
    """Every attribute is unlike every other: views contradict each other."""
    sizes = (2,) * 24
    unlike = np.array([[0.1, 0.4], [0.4, 0.1]])
    tables: Tables = dict.fromkeys(combinations(range(24), 2), unlike)
    drawn = synthesize(sizes, tables.__getitem__, list(tables), 20_000, np.random.default_rng(1))
    assert 0.4 < drawn.mean() < 0.6  # single attributes do not suffer
    pairs = np.mean([counted(drawn, sizes, places)[0, 1] for places in tables])
    assert 0.24 < pairs < 0.3  # of 24 values at most 12 differ from the other 12: 0.26


def test_attributes_without_view_are_uniform() -> None:
    sizes = (2,) * 24
    table = np.array([[0.7, 0.0], [0.1, 0.2]])
    tables: Tables = {(0, 1): table}

    def marginal(places: Places) -> Floats:
        return tables[places]

    drawn = synthesize(sizes, marginal, [(0, 1)], PEOPLE, np.random.default_rng(2))
    assert np.abs(counted(drawn, sizes, (0, 1)) - table).max() < 0.005
    assert counted(drawn, sizes, (0, 1))[0, 1] == 0
    assert np.abs(drawn[:, 2:].mean(axis=0) - 0.5).max() < 0.01
    few = np.concatenate([synthesize(sizes, marginal, [(0, 1)], 3, np.random.default_rng(i)) for i in range(300)])
    assert few.shape == (900, 24)
    assert np.abs(counted(few, sizes, (0, 1)) - table).max() < 0.07


def test_the_same_seed_gives_the_same_people_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (2, 3) * 8
    people = held(sizes, seed=3)
    tables: Tables = {places: counted(people, sizes, places) for places in combinations(range(16), 2)}
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("VEIL_THREADS", threads)
        monkeypatch.setattr("veil.marginals.synthesis._WORTH_A_THREAD", 1)
        found.append(synthesize(sizes, tables.__getitem__, list(tables), 10_001, np.random.default_rng(4)))
    np.testing.assert_array_equal(found[0], found[1])


def test_joint_table_is_sampled_exactly() -> None:
    joint = np.random.default_rng(1).dirichlet(np.full(24, 0.3)).reshape(2, 3, 4)
    drawn = synthesize(
        (2, 3, 4), lambda places: marginal_of(joint, places), [(0, 1, 2)], PEOPLE, np.random.default_rng(2)
    )
    squares = PEOPLE * (counted(drawn, (2, 3, 4), (0, 1, 2)) - joint) ** 2 / joint
    assert squares.sum() < 50  # chi squared with 23 degrees of freedom: 0.1 %


SMALL = Record.of(a=2, b=3, c=2)


@pytest.mark.parametrize("study", [AllMarginals(2.0, SMALL, k=2), FourierMarginals(2.0, SMALL, k=2)])
def test_synthesis_without_the_full_table(study: Any) -> None:
    held = {"a": [0, 1] * 2_000, "b": [0, 1, 2, 0] * 1_000, "c": [0, 1] * 2_000}
    made = simulate(study, held, seed=1).synthesize(2_000, seed=1).to_pandas()
    assert (made["a"] == made["c"]).mean() > 0.9
    assert 0.3 < (made["b"] == 1).mean() + (made["b"] == 2).mean() < 0.7
