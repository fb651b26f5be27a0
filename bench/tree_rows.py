"""Rows about trees: the exact projection against OSQP on the same quadratic program, and ADMM against the projection.

Both sides go through several inputs in a turn, so that no processor learns one by heart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from acceptance.post_cells import one_blas_thread
from numpy.typing import NDArray

from bench.timing import Contestant, NotRunError, Row, Setting, local
from veil.tree import Levels, Tree, admm, project

Floats = NDArray[np.float64]

LEAVES, BRANCHING = 1_024, 4
INPUTS, NOISE = 8, 0.01
ACCURACY = 1e-9
"""How far OSQP's values may be from ours; at most, after `TOLERANCE`."""
TOLERANCE = 1e-10
TURNS = 40


def tree_rows(setting: Setting) -> Iterator[Row]:
    """Every row, in so many turns at most."""
    turns = min(setting.repeats, TURNS)
    tree = Tree(LEAVES, BRANCHING)
    inputs = [_noisy(tree, seed) for seed in range(INPUTS)]
    ours = local(lambda: [project(tree, values) for values in inputs], INPUTS)
    what = f"projection onto a tree of {LEAVES:,} leaves, b = {BRANCHING} (best of {turns})"
    rivals: tuple[tuple[str, float | None, Callable[[], Contestant]], ...] = (
        (f"OSQP to {TOLERANCE:g}, set-up included", 15, lambda: _osqp(tree, inputs, whole=True)),
        (f"OSQP to {TOLERANCE:g}, set up before", None, lambda: _osqp(tree, inputs, whole=False)),
        ("OSQP as above, rho = 1, set-up included", None, lambda: _osqp(tree, inputs, whole=True, rho=1.0)),
        ("ADMM on the tree", None, lambda: local(lambda: [admm(tree, values) for values in inputs], INPUTS)),
    )
    with one_blas_thread():
        for against, required, rival in rivals:
            yield Row(what, against, required, ours, rival, turns)


def _noisy(tree: Tree, seed: int) -> Levels:
    random = np.random.default_rng(seed)
    held = tree.sums(random.dirichlet(np.full(tree.leaves, 0.3)))
    return [level + random.normal(0, NOISE, len(level)) for level in held]


def _osqp(tree: Tree, inputs: list[Levels], *, whole: bool, rho: float = 0.1) -> Contestant:
    """All nodes are variables; rows say that a node is its children's sum, that the root is 1, and x >= 0.

    Bounds on inner nodes say nothing new, but OSQP needs fewer iterations with them. 0.1 is its own rho.
    """
    try:
        import osqp
        from scipy import sparse
    except ImportError:
        raise NotRunError("osqp is not installed") from None
    inner, nodes = tree.nodes - tree.leaves, tree.nodes
    family = np.concatenate(
        [
            (tree.offsets[level] + node, tree.offsets[level + 1] + child)
            for level in range(tree.height)
            for node in range(tree.sizes[level])
            for child in tree.children(level, node)
        ]
    ).reshape(-1, 2)
    sums = sparse.csc_matrix((np.ones(len(family)), (family[:, 0], family[:, 1])), shape=(inner, nodes))
    sums -= sparse.eye(inner, nodes, format="csc")
    rows = sparse.vstack([sums, sparse.eye(nodes)], format="csc")
    low, high = np.zeros(inner + nodes), np.zeros(inner + nodes)
    low[inner] = high[inner] = 1.0
    high[inner + 1 :] = np.inf
    squares = sparse.eye(nodes, format="csc")

    def ready(values: Levels) -> osqp.OSQP:
        solver = osqp.OSQP()
        options = {"eps_abs": TOLERANCE, "eps_rel": TOLERANCE, "max_iter": 100_000, "rho": rho, "verbose": False}
        solver.setup(squares, -np.concatenate(values), rows, low, high, **options)
        return solver

    solvers = [ready(values) for values in inputs]
    for solver, values in zip(solvers, inputs, strict=True):
        if np.abs(solver.solve().x - np.concatenate(project(tree, values))).max() > ACCURACY:
            raise AssertionError("OSQP finds something else")
    if whole:
        return local(lambda: [ready(values).solve() for values in inputs], len(inputs))
    cold = np.zeros(nodes), np.zeros(inner + nodes)

    def solve() -> None:
        for solver in solvers:
            solver.warm_start(*cold)
            solver.solve()

    return local(solve, len(inputs))
