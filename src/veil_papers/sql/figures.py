"""Figures 7.3 to 7.7: the thesis's designs beside each other on one, two and three ordinal dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from veil_papers.common.claims import Says
from veil_papers.common.exhibits import Claim, Exhibit, Parts, exhibit
from veil_papers.common.sweep import Sweep
from veil_papers.sql.law import DRAWN, People
from veil_papers.sql.runs import M, Plan, by_epsilon, by_people, by_volume, census, sweep

_VOLUME, _EPSILON = 0.25, 2.0
_MNAE = "MNAE"
_CONFIGURATIONS: dict[str, tuple[int, ...]] = {"256 x 256": (256, 256), "1024 x 64": (1024, 64)}
Sweeps = dict[str, Sweep]


def _measured(plan: Plan, name: str, sizes: Sequence[int], people: int | None = None) -> People:
    measure = {"Adult": "hours", "CPS": "weight"}[name] if len(sizes) == 1 else None
    return People(census(plan, name, sizes, people=people), measure)


def one_dimension(plan: Plan) -> tuple[Sweeps, Sweep]:
    """Figures 7.3 and 7.4: one dimension of 1024 buckets, sums of the measure."""
    names, cps = (M.HIO, M.HI, M.MG), _measured(plan, "CPS", (1024,))
    adult = _measured(plan, "Adult", (1024,), min(plan.people, 48_842))
    sizes = {n: _measured(plan, "CPS", (1024,), n) for n in plan.sizes}
    found = {
        "Adult": sweep(by_volume(adult, _EPSILON, plan.volumes), names, plan, "Figure 7.3a", 1),
        "CPS": sweep(by_volume(cps, _EPSILON, plan.volumes), names, plan, "Figure 7.3b", 2),
        "people": sweep(by_people(sizes, _EPSILON, _VOLUME), names, plan, "Figure 7.3c", 3),
    }
    return found, sweep(by_epsilon(cps, plan.epsilons, _VOLUME), names, plan, "Figure 7.4", 4)


def two_dimensions(plan: Plan) -> tuple[dict[str, tuple[Sweep, Sweep]], Sweeps]:
    """Figures 7.5 and 7.6: by eps and by people, and by volume; counts."""
    by_both, by_size = {}, {}
    for place, (label, sizes) in enumerate(_CONFIGURATIONS.items()):
        people, names = _measured(plan, "CPS", sizes), [M.HIO, M.HI, M.MG]
        more = {n: _measured(plan, "CPS", sizes, n) for n in plan.sizes[:-1]}
        square = [M.QUAD] if sizes[0] == sizes[1] else []
        by_both[label] = (
            sweep(by_epsilon(people, plan.epsilons, _VOLUME), names, plan, f"Figure 7.5, {label}, eps", 10 + place),
            sweep(by_people(more, _EPSILON, _VOLUME), names, plan, f"Figure 7.5, {label}, people", 20 + place),
        )
        drawn = by_volume(people, _EPSILON, plan.volumes)
        by_size[label] = sweep(drawn, names + square, plan, f"Figure 7.6, {label}", 30 + place)
    return by_both, by_size


def three_dimensions(plan: Plan) -> Sweep:
    """Figure 7.7: counts over 256 x 256 x 64 cells by volume."""
    people = _measured(plan, "CPS", (256, 256, 64))
    return sweep(by_volume(people, _EPSILON, plan.volumes), (M.HIO, M.MG), plan, "Figure 7.7", 40)


# -- exhibits ----------------------------------------------------------------------------------------------------------


def _how(plan: Plan) -> str:
    return (
        f"{DRAWN} {plan.queries} random queries per point, {plan.runs} collections; mean over the queries, and "
        "standard deviation between collections. Fan-out 5 and OLH, as in the thesis; a group counts n / n_l times, "
        "and nobody is asked about the root."
    )


@exhibit
def figure_3(found: Sweeps, plan: Plan) -> Parts:
    """Figure 7.3: one ordinal dimension, by volume and by people."""
    titles = {"Adult": "(a) Adult, by volume", "CPS": "(b) tax units, by volume", "people": "(c) tax units, by people"}
    for name, one in found.items():
        yield one.panel(titles[name], "people" if name == "people" else "volume", _MNAE)
    yield _how(plan)
    cps = found["CPS"]
    yield _at_least("(goal) HI has at least 2 times HIO's error at every volume", cps, M.HI, M.HIO, 2.0)
    ratio = dict(zip(cps.x, cps.over(M.MG, M.HIO).tolist(), strict=True))
    for volume, says, low, high in (
        (0.01, "below 0.8 times", 0.0, 0.8),
        (0.1, "above 1.2 times", 1.2, math.inf),
        (0.8, "at least 2.7 times", 2.7, math.inf),
    ):
        yield Says(f"(goal) at volume {volume:g} MG has {says} HIO's error (m = 1024, eps = 2)").given(
            f"{ratio[volume]:.2f} times", low <= ratio[volume] <= high
        )
    worse = {name: one.mean(M.HIO).max() for name, one in found.items() if name != "people"}
    yield Says("More people, less error: on the tax units all designs err less than on Adult").given(
        f"HIO at most {worse['CPS']:.4f} and {worse['Adult']:.4f}", worse["CPS"] < worse["Adult"]
    )
    sizes = {"tax units": found["people"]}
    yield Says("The larger the data, the better the estimates").moves(sizes, None, rises=False)
    yield Says("At volume 0.25 HIO is the best for every number of people").not_above(
        found["people"], M.HIO, (M.HI, M.MG), axis="n"
    )


@exhibit
def figure_4(found: Sweep, plan: Plan) -> Parts:
    """Figure 7.4: one ordinal dimension, by eps."""
    yield found.panel("tax units, volume 0.25", "eps", _MNAE)
    yield _how(plan)
    yield Says("All designs benefit from a larger eps").moves({"tax units": found}, None, rises=False)
    yield Says("HIO is the best at every eps").not_above(found, M.HIO, (M.HI, M.MG))
    yield _at_least("HI has at least 2 times HIO's error at every eps", found, M.HI, M.HIO, 2.0)


@exhibit
def figure_5(found: Mapping[str, tuple[Sweep, Sweep]], plan: Plan) -> Parts:
    """Figure 7.5: two ordinal dimensions, by eps and by people."""
    for label, (epsilon, people) in found.items():
        yield epsilon.panel(f"{label}, by eps", "eps", _MNAE)
        yield people.panel(f"{label}, by people", "people", _MNAE)
    yield _how(plan)
    for label, (epsilon, people) in found.items():
        yield _at_least(f"{label}: MG is much worse than HIO at every eps (here: twice)", epsilon, M.MG, M.HIO, 2.0)
        yield _at_least(f"{label}: and for every number of people (here: twice)", people, M.MG, M.HIO, 2.0, "n")
        yield Says(f"{label}: more people, less error").moves({label: people}, M.HIO, rises=False)


@exhibit
def figure_6(found: Sweeps, plan: Plan) -> Parts:
    """Figure 7.6: two ordinal dimensions, by volume."""
    for label, one in found.items():
        yield one.panel(label, "volume", _MNAE)
    yield _how(plan)
    for label, one in found.items():
        small = one.only([x for x in one.x if x <= 0.01])
        yield Says(f"{label}: MG is better at volume 0.01").not_above(small, M.MG, (M.HIO,), axis="volume")
        large = one.only([x for x in one.x if x >= 0.1])
        yield Says(f"{label}: otherwise HIO is (here: from volume 0.1 on)").not_above(
            large, M.HIO, (M.MG,), axis="volume"
        )
        if M.QUAD in one.runs:
            yield _at_least(
                f"(goal) {label}: a QuadTree is worse than HIO from volume 0.1 on", large, M.QUAD, M.HIO, 1.0
            )
            yield (
                "The QuadTree of section 7.6: people are split over its 8 levels, and nodes halve both sides at once, "
                "so that the nodes of a box grow in number with its circumference. For small boxes, which have few "
                "nodes, it is better than HIO, which splits people over 24 combinations of levels."
            )


@exhibit
def figure_7(found: Sweep, plan: Plan) -> Parts:
    """Figure 7.7: three ordinal dimensions, by volume."""
    yield found.panel("256 x 256 x 64", "volume", _MNAE)
    yield _how(plan)
    large = found.only([x for x in found.x if x >= 0.5])
    yield _at_least("At volumes of 0.5 and more HIO is at least 3 times better", large, M.MG, M.HIO, 3.0)


def figures(plan: Plan) -> Iterator[Exhibit]:
    """All five."""
    first, second = one_dimension(plan)
    yield figure_3(first, plan)
    yield figure_4(second, plan)
    by_both, by_size = two_dimensions(plan)
    yield figure_5(by_both, plan)
    yield figure_6(by_size, plan)
    yield figure_7(three_dimensions(plan), plan)


def _at_least(says: str, one: Sweep, name: str, other: str, times: float, axis: str = "") -> Claim:
    return Says(says).times_above(one, name, other, times, axis=axis or "at")
