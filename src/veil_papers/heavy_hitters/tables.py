"""Tables 4.1 to 4.3 of the thesis: how frequent a value must be to be found, and what fewer groups find."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from veil.engines import DrawnCollection
from veil.entropy import Words
from veil.hitters import PEM, Continuations, cut, sensitivity_threshold
from veil.view import prefix
from veil_papers.common.claims import Says
from veil_papers.common.exhibits import Curve, Exhibit, Panel, Parts, exhibit
from veil_papers.common.sweep import Scores, Sweep, measure
from veil_papers.heavy_hitters.searching import HOW, Crowd, Plan, Source, found_codes, keys, search

_GROUPS = (1, 2, 3, 4)
_AT = tuple(float(groups) for groups in _GROUPS)
_K, _FIRST = 1024, 10
_EPSILONS = (1.0, 2.0)
_TOP = 16
# Table 4.1 for n = 1,000,000, by (eps, m); the other n differ by the factor sqrt(n) alone.
_PRINTED = {
    (1.0, 32): (0.011960, 0.013674, 0.014388, 0.015396),
    (1.0, 48): (0.014937, 0.016314, 0.016738, 0.017751),
    (1.0, 64): (0.017426, 0.018599, 0.019218, 0.019845),
    (1.0, 128): (0.025056, 0.025844, 0.026164, 0.026683),
    (2.0, 32): (0.005302, 0.006063, 0.006376, 0.006825),
    (2.0, 48): (0.006623, 0.007235, 0.007424, 0.007865),
    (2.0, 64): (0.007728, 0.008248, 0.008527, 0.008800),
    (2.0, 128): (0.011111, 0.011463, 0.011599, 0.011835),
}
_PRINTED_FOUND = {  # Table 4.2, then Table 4.3: URL data at eps = 1 and 2, query data at eps = 1 and 2
    "4.2": ((6.4, 4.7, 4.1, 4.0), (14.3, 12.8, 11.4, 8.5), (4.2, 4.1, 4.0, 3.6), (8.5, 7.8, 6.9, 7.2)),
    "4.3": ((6.4, 6.8, 8.2, 8.4), (14.3, 13.9, 13.4, 13.3), (4.2, 4.6, 5.0, 5.2), (8.5, 8.1, 9.0, 9.4)),
}


def threshold(epsilon: float, bits: int, groups: int, people: int = 1_000_000) -> float:
    """Psi with so many groups: n/g people tell about d candidates; one of the absent ones comes out by chance."""
    sigma = math.sqrt(4 * math.exp(epsilon)) / (math.exp(epsilon) - 1)
    candidates = 2**bits if groups == 1 else (_K << (bits - _FIRST) // groups) - _K
    return sensitivity_threshold(sigma, float(candidates), people // groups)


@exhibit
def thresholds() -> Parts:
    """Table 4.1: how frequent a value must be."""
    yield "Lines are the printed numbers: of Phi^-1(T/d) and other roundings of the step."
    yield "sigma Phi^-1(1 - T/d) / sqrt(n/g), T = 1, d = k 2^floor((m - 10) / g) - k, k = 1,024."
    ours = {row: tuple(threshold(*row, groups) for groups in _GROUPS) for row in _PRINTED}
    for letter, epsilon in zip("ab", _EPSILONS, strict=True):
        curves = [Curve(f"m = {m}", _AT, psi, None, _PRINTED[e, m]) for (e, m), psi in ours.items() if e == epsilon]
        title, what = f"({letter}) eps = {epsilon:g}, 1,000,000 people", "Psi (over the printed number)"
        yield Panel(title, "groups g", what, tuple(curves), y_log=False)
    rising = all((np.diff(psi) > 0).all() for psi in ours.values())
    worst = np.abs(np.array(list(ours.values())) / np.array(list(_PRINTED.values())) - 1).max(axis=0)
    off = ", ".join(f"{100 * most:.2f} % (g = {g})" for g, most in zip(_GROUPS, worst, strict=True))
    says = "Table 4.1: the sensitivity threshold, n = 1,000,000 (here: within 1 % for g = 1, 3 and 4)"
    yield Says(says).exactly(f"off by at most {off}", worst[[0, 2, 3]].max() < 0.01)
    says, shown = "When g increases, the threshold increases", "in every row" if rising else "not in every row"
    yield Says(says).exactly(shown, rising)


def few_groups(sources: dict[str, Source], plan: Plan, seed: int) -> tuple[Exhibit, Exhibit]:
    """Tables 4.2 and 4.3: how many of the 16 most frequent values of 32 bits come out, by the number of groups."""
    crowds = lru_cache(maxsize=len(sources))(lambda name, run: sources[name].crowd(plan.people[name], run))

    def trial(place: int, run: int) -> Scores:
        counted: Scores = {"4.2": {}, "4.3": {}}
        for number, name in enumerate(sources):
            crowd = crowds(name, run)
            for epsilon in _EPSILONS:
                pem = PEM(epsilon, crowd.domain, _TOP, keep=_TOP, groups=_GROUPS[place], fit=False, last=1)
                draws, label = [seed, 42, number, run, place], f"{name}, eps = {epsilon:g}"
                plain = len(set(crowd.top(_TOP)) & set(found_codes(search(pem, crowd, draws))))
                counted["4.2"][label] = plain
                counted["4.3"][label] = plain if _GROUPS[place] == 1 else _last_round(pem, crowd, [*draws, 1])
        return counted

    found = measure("Tables 4.2 and 4.3", plan.watch, _GROUPS, plan.runs, trial)
    return _plain(found["4.2"], plan), _helped(found["4.2"], found["4.3"], plan)


@exhibit
def _plain(found: Sweep, plan: Plan) -> Parts:
    """Table 4.2: values found by the number of groups, 32 bits."""
    yield from _panels("4.2", found, plan)
    noise = {name: 2 * np.hypot(found.error(name)[0], found.error(name).max()) for name in found.runs}
    most = all(found.mean(name)[0] >= found.mean(name).max() - room for name, room in noise.items())
    yield Says("g = 1 finds most values (here: no g finds more by two standard errors)").given(_listed(found), most)


@exhibit
def _helped(plain: Sweep, found: Sweep, plan: Plan) -> Parts:
    """Table 4.3: the same, with the true prefixes in the last round."""
    yield from _panels("4.3", found, plan)
    more = min(found.mean(name)[-1] - plain.mean(name)[-1] for name in found.runs) > 0
    yield Says("With the true prefixes in the last round, g = 4 finds more than without").given(_listed(found), more)
    at_one = [found.mean(name) for name in found.runs if name.endswith("eps = 1")]
    says = "At eps = 1 g = 3 or 4 then finds more than g = 1, whose other frequent values interfere"
    yield Says(says).given(_listed(found), all(max(means[2:]) > means[0] for means in at_one))


def _listed(found: Sweep) -> str:
    return "; ".join(f"{name}: {', '.join(f'{y:.1f}' for y in found.mean(name))}" for name in found.runs)


def _last_round(pem: PEM, crowd: Crowd, seed: list[int]) -> int:
    """What the last round finds behind the true prefixes of the most frequent values."""
    bits, before = pem.lengths[-1], pem.lengths[-2]
    values = prefix(pem.domain, bits).apply(crowd.codes[:_TOP], Words(b""))
    known = Continuations(np.unique(cut(values, bits, before), axis=0), before, bits - before, None, text=True)
    drawn = DrawnCollection.of_codes(pem.survey, crowd.codes, crowd.counts, seed)
    best = drawn.best((len(pem.lengths) - 1,), known, _TOP).candidates
    assert best is not None
    return len(set(keys(values).tolist()) & set(keys(best).tolist()))


def _panels(table: str, found: Sweep, plan: Plan) -> Parts:
    axes = ("groups g", "of 16 values, found")
    printed = tuple(Curve(name, _AT, of) for name, of in zip(found.runs, _PRINTED_FOUND[table], strict=True))
    yield found.panel("(a) measured", *axes, y_log=False)
    yield Panel("(b) printed, the thesis's data", *axes, printed, y_log=False)
    yield f"{HOW} {plan.runs} runs, k = 16, k prefixes kept; 2^32 candidates at g = 1."
