"""Guarantees and designs with fake reports: an exhaustive search, certified guarantees, invalid parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from veil import GRR, OLH, OUE, simulate
from veil.accounting import (
    PeosDesign,
    Shuffler,
    against_server,
    against_server_and_users,
    amplify,
    blanket_of,
    bounds,
    delta_of,
    design_peos,
    designs_peos,
    variance_with_fakes,
)
from veil.accounting.blanket import fewest_fakes, rough_delta
from veil.accounting.fakes import fakes_of
from veil.engines import MemoryCollection
from veil.errors import ParameterError, VeilError, WireError
from veil.histogram import Histogram
from veil.study import study_from_json


@pytest.mark.parametrize(
    ("oracle", "users", "fakes", "epsilon", "within"),
    [
        (OLH(6.0, 1000, 100), 100_000, 20_000, 0.3, 0.03),
        (OLH(6.0, 1000, 100), 1, 20_000, 0.4, 0.03),
        (GRR(3.0, 10), 500, 100, 0.5, 0.05),
        (GRR(3.0, 10), 1, 1_000, 0.3, 0.03),
        (OLH(8.0, 1000, 1000), 1, 10_000, 1.5, 0.15),
    ],
)
def test_a_rough_delta_is_nearly_the_certified_one(
    oracle: GRR | OLH, users: int, fakes: int, epsilon: float, within: float
) -> None:
    exact = delta_of(blanket_of(oracle), users, math.exp(epsilon), fakes=fakes_of(oracle, fakes)).high
    hashed = isinstance(oracle, OLH)
    buckets = oracle.hash_range if isinstance(oracle, OLH) else oracle.domain.size
    rough = rough_delta(math.exp(oracle.epsilon), buckets, math.exp(epsilon), users, fakes, hashed=hashed)
    assert math.exp(rough) == pytest.approx(exact, rel=within)
    needed = fewest_fakes(math.exp(oracle.epsilon), buckets, epsilon, users, exact, hashed=hashed)
    assert needed == pytest.approx(fakes, rel=within)


def test_thesis_bound_matches_its_corollaries() -> None:
    n, fakes, delta = 100_000, 80_000, 1e-9
    for oracle, buckets in ((OLH(4.0, 1000, 16), 16), (GRR(4.0, 10), 10)):
        alone = math.sqrt(14 * math.log(2 / delta) * buckets / fakes)
        mean = (n - 1) / (math.exp(4) + buckets - 1) + fakes / buckets
        found = against_server_and_users(oracle, fakes, delta, "thesis")
        assert found.epsilon == pytest.approx(alone, rel=1e-8)
        server = against_server(oracle, n, fakes, delta, "thesis").epsilon
        assert server == pytest.approx(math.sqrt(14 * math.log(2 / delta) / mean), rel=1e-8)
        assert server == pytest.approx(bounds.responses(4.0, buckets, n, delta, fakes), rel=1e-8)


def test_guarantees_are_ordered() -> None:
    """Whoever sees more is promised less; fakes and people help; the blanket is below the thesis."""
    oracle = OLH(4.0, 100, 16)
    few, many = (against_server_and_users(oracle, fakes, 1e-9) for fakes in (5_000, 20_000))
    server = against_server(oracle, 20_000, 20_000, 1e-9)
    assert server.epsilon < many.epsilon < few.epsilon < 4
    assert against_server(oracle, 40_000, 20_000, 1e-9).epsilon < server.epsilon
    assert server.epsilon < amplify(oracle, 20_000, 1e-9).epsilon
    assert many.epsilon < against_server_and_users(oracle, 20_000, 1e-9, "thesis").epsilon / 2
    assert (many.users, many.fakes, many.bracket.spread < 0.01) == (1, 20_000, True)
    assert "1 report and 20,000 fake ones" in str(many)
    assert many.central.needs_shuffler
    assert against_server_and_users(oracle, 0, 1e-9).central == oracle.guarantee
    assert against_server(oracle, 20_000, 0, 1e-9) == amplify(oracle, 20_000, 1e-9)


def test_shuffler_document_names_fakes_only_where_present() -> None:
    assert Shuffler(10_000, 1e-6).to_json() == {"kind": "shuffler", "users": 10_000, "delta": "0.000001"}
    document = Shuffler(10_000, 1e-6, fakes=500).to_json()
    assert document["fakes"] == 500
    assert Shuffler.from_json(document) == Shuffler(10_000, 1e-6, 500)
    with pytest.raises(WireError, match="does not name them"):
        Shuffler.from_json(document | {"fakes": 0})
    with pytest.raises(VeilError):
        Shuffler.from_json(document | {"fakes": "500"})


def test_histogram_with_fakes() -> None:
    oracle = GRR(2.0, 4)
    study = Histogram(oracle, shuffler=Shuffler(200, 1e-6, fakes=300))
    assert study_from_json(study.to_bytes()) == study
    assert study.central == against_server(oracle, 200, 300, 1e-6)
    among = study.among_fakes
    assert among == against_server_and_users(oracle, 300, 1e-6)
    assert among is not None
    found = simulate(study, [0] * 200, seed=1)
    step = f"shuffled, among 300 fakes: {study.central.central}; if all others tell: {among.central}"
    assert found.lineage == ("GRR(epsilon=2)", "300 uniform fakes removed", step)
    assert not any("Fewer reports" in remark for remark in found.remarks())
    fewer = simulate(study, [0] * 100, seed=1)
    assert any("Fewer reports" in remark for remark in fewer.remarks())
    assert str(against_server(oracle, 100, 300, 1e-6).central) in fewer.lineage[2]
    alone = simulate(study, [0], seed=1)  # nobody else: all that is left are the fakes
    assert alone.lineage[2].count(str(among.central)) == 2
    # who reads reports without the fakes that were planned is told that less is promised
    bare = study.read(MemoryCollection(study.survey, study.survey.randomize([0] * 200)))
    assert any("0 fakes instead of 300" in remark for remark in bare.remarks())
    assert str(against_server(oracle, 200, 0, 1e-6).central) in bare.lineage[1]
    assert Histogram(oracle, shuffler=Shuffler(200, 1e-6)).among_fakes is None


GOALS: list[tuple[tuple[float, float, float], dict[str, Any]]] = [
    ((0.2, 0.5, 4.0), {"users": 2_000, "domain": 20, "delta": 1e-4}),
    ((0.1, 0.2, 2.0), {"users": 20_000, "domain": 5, "delta": 1e-6}),
    ((0.05, 2.0, 3.0), {"users": 3_000, "domain": 50, "delta": 1e-4}),
    ((0.5, 0.3, 5.0), {"users": 1_000, "domain": 100, "delta": 1e-5, "most_fakes": 900}),
]


def kept(design: PeosDesign, goal: tuple[float, float, float], points: int | None = None) -> bool:
    """Whether the accountant, asked afresh, certifies all three."""
    oracle, delta = design.oracle, design.delta
    blanket, fakes = blanket_of(oracle), fakes_of(oracle, design.fakes)

    def holds(epsilon: float, users: int) -> bool:
        if oracle.epsilon <= epsilon:
            return True
        if users + design.fakes == 1:
            return False
        return delta_of(blanket, users, math.exp(epsilon), points, fakes).high <= delta

    return holds(goal[1], 1) and holds(goal[0], design.users) and oracle.guarantee.within(goal[2])


@pytest.mark.parametrize(("goal", "more"), GOALS)
def test_promises_of_a_design_are_certified(goal: tuple[float, float, float], more: dict[str, Any]) -> None:
    for found in designs_peos(*goal, **more):
        assert kept(found, goal)
        assert found.server.epsilon <= goal[0]
        assert found.server_and_users.epsilon <= goal[1]
        assert found.local.within(goal[2])
        assert found.fakes <= more.get("most_fakes", 10 * more["users"])
        assert found.shuffler == Shuffler(more["users"], more["delta"], found.fakes)
        assert found.shuffler.central(found.oracle) == found.server
        assert f"{found.fakes:,} fake reports" in str(found)
    assert found.oracle.name in {"GRR", "OLH"}


@pytest.mark.parametrize(("goal", "more"), GOALS)
def test_design_matches_an_exhaustive_search(goal: tuple[float, float, float], more: dict[str, Any]) -> None:
    """Beside a grid over local epsilons, buckets and numbers of fakes, each held against the accountant."""
    found = design_peos(*goal, **more)
    n, size, delta = more["users"], more["domain"], more["delta"]
    most = more.get("most_fakes", 10 * n)
    best = math.inf
    locals_ = [goal[2] * 0.85**i for i in range(40) if goal[2] * 0.85**i >= min(goal)] + [*goal[:2]]
    kinds: list[Callable[[float], GRR | OLH]] = [lambda local: GRR(local, size)]
    kinds += [lambda local, g=g: OLH(local, size, g) for g in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)]  # type: ignore[misc]
    numbers = [0, *sorted({round(most * 0.8**i) for i in range(60) if most * 0.8**i >= 1})]
    for make, local in itertools.product(kinds, locals_):
        if local > goal[2]:
            continue
        oracle = make(local)
        worth = [many for many in numbers if variance_with_fakes(oracle, n, many, 1 / size) < best]
        low, high = 0, len(worth)  # the fewest that are enough
        while low < high:
            middle = (low + high) // 2
            made = PeosDesign(oracle, worth[middle], n, delta, None, None)  # type: ignore[arg-type]
            low, high = (low, middle) if kept(made, goal, 1 << 14) else (middle + 1, high)
        if low < len(worth):
            best = variance_with_fakes(oracle, n, worth[low], 1 / size)
    assert found.mean_variance <= 1.02 * best
    assert found.mean_variance >= 0.5 * best  # the grid is not so coarse that it shows nothing


def test_stronger_guarantees_cost_more() -> None:
    more: dict[str, Any] = {"users": 50_000, "domain": 100, "delta": 1e-9}
    by_users = [design_peos(0.5, eps, 4.0, **more) for eps in (0.25, 0.5, 1.0)]
    assert [one.mean_variance for one in by_users] == sorted((one.mean_variance for one in by_users), reverse=True)
    by_server = [design_peos(eps, 1.0, 4.0, **more).mean_variance for eps in (0.02, 0.05, 0.5)]
    assert by_server == sorted(by_server, reverse=True)
    by_local = [design_peos(0.5, 0.5, eps, **more).mean_variance for eps in (1.0, 2.0, 4.0)]
    assert by_local == sorted(by_local, reverse=True)
    thesis = design_peos(0.5, 0.5, 4.0, **more, bound="thesis")
    assert thesis.mean_variance > by_users[1].mean_variance
    assert thesis.fakes > 5 * by_users[1].fakes


def test_design_by_the_thesis_matches_the_closed_form() -> None:
    """Where the promise against the server decides: the thesis's best d', fakes adding to n (it prints a minus)."""
    n, delta, goal = 1_000_000, 1e-9, (0.1, 1.0, 8.0)
    found = design_peos(*goal, users=n, domain=10**6, delta=delta, bound="thesis", most_fakes=100_000)
    assert isinstance(found.oracle, OLH)
    scale = 14 * math.log(2 / delta) / goal[0] ** 2
    best = ((n - 1 + found.fakes) / scale + 2) / 3
    assert found.oracle.hash_range == pytest.approx(best, rel=0.1)
    assert found.server.epsilon == pytest.approx(goal[0], rel=1e-3)


def test_local_promises_need_no_fakes() -> None:
    found = design_peos(0.2, 2.0, 2.0, users=10_000, domain=20, delta=1e-6)
    assert found.fakes == 0
    assert found.server_and_users.central == found.local


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "other oracles": (lambda: Histogram(OUE(1.0, 4), shuffler=Shuffler(10, 0.1, 5)), "accounted for GRR and OLH"),
    "promises of others": (lambda: against_server(OUE(1.0, 4), 10, 5, 0.1), "accounted for GRR and OLH"),
    "half a fake": (lambda: Shuffler(10, 0.1, 0.5), "number of fake reports"),  # type: ignore[arg-type]
    "fewer than none": (lambda: against_server_and_users(GRR(1.0, 4), -1, 0.1), "number of fake reports"),
    "another bound": (lambda: against_server(GRR(1.0, 4), 10, 5, 0.1, "clones"), "blanket"),  # type: ignore[arg-type]
    "too few for the thesis": (lambda: against_server_and_users(GRR(1.0, 4), 5, 0.1, "thesis"), "at most 1"),
    "one order": (lambda: design_peos(4, 2, 1, users=1000, domain=4, delta=1e-6), "from small to large"),
    "far too many": (lambda: design_peos(0.1, 1e-3, 4, users=1000, domain=4, delta=1e-9), "would need at least"),
    "a bound of ours": (lambda: design_peos(0.1, 1, 4, users=9, domain=4, delta=0.1, bound="x"), "blanket"),  # type: ignore[arg-type]
    "a delta": (lambda: design_peos(0.1, 1, 4, users=9, domain=4, delta=0.5, bound="thesis"), "at most 1/4"),
    "many fakes": (lambda: design_peos(0.1, 1, 4, users=9, domain=4, delta=0.1, most_fakes=-1), "most fakes"),
    "nobody": (lambda: design_peos(0.1, 1, 4, users=0, domain=4, delta=0.1), "2 to 10"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_parameters_are_refused_with_a_reason(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(ParameterError, match=words):
        call()
