"""Tables 4.1 to 4.3 of the thesis: how frequent a value must be to be found, and what fewer groups find."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from veil.entropy import Words
from veil.hitters import PEM, sensitivity_threshold
from veil.hitters.continuations import Continuations, cut
from veil.view import prefix
from veil_papers.common.exhibits import Advance, Claim, Curve, Exhibit, Panel, Watch
from veil_papers.heavy_hitters.plan import Plan
from veil_papers.heavy_hitters.searching import HOW, Crowd, Source, found_codes, keys, search, supports

__all__ = ["few_groups", "thresholds"]

_GROUPS = (1, 2, 3, 4)
_K, _FIRST = 1024, 10
_EPSILONS = (1.0, 2.0)
_TOP = 16
_NO_DRAWS = Words(b"")
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


def thresholds() -> Exhibit:
    """Table 4.1."""
    panels, off = [], np.zeros((len(_PRINTED), len(_GROUPS)))
    for letter, epsilon in zip("ab", _EPSILONS, strict=True):
        curves = []
        for row, ((eps, bits), printed) in enumerate(_PRINTED.items()):
            if eps == epsilon:
                ours = tuple(threshold(epsilon, bits, groups) for groups in _GROUPS)
                off[row] = np.abs(np.array(ours) / printed - 1)
                curves.append(Curve(f"m = {bits}", tuple(map(float, _GROUPS)), ours, None, printed))
        title = f"({letter}) eps = {epsilon:g}, 1,000,000 people"
        panels.append(Panel(title, "groups g", "Psi (over the printed number)", tuple(curves), y_log=False))
    rising = all((np.diff([threshold(e, m, g) for g in _GROUPS]) > 0).all() for e, m in _PRINTED)
    worst = off.max(axis=0)
    claims = (
        Claim(
            "Table 4.1: the sensitivity threshold, n = 1,000,000 (here: within 1 % for g = 1, 3 and 4)",
            f"off by at most {', '.join(f'{100 * w:.2f} % (g = {g})' for g, w in zip(_GROUPS, worst, strict=True))}",
            bool(worst[[0, 2, 3]].max() < 0.01),
            exact=True,
        ),
        Claim(
            "When g increases, the threshold increases",
            "in every row" if rising else "not in every row",
            rising,
            exact=True,
        ),
    )
    notes = (
        "Lines are the printed numbers. sigma Phi^-1(1 - T/d) / sqrt(n/g), T = 1, d = k 2^floor((m - 10) / g) - k, "
        "k = 1,024; printed are Phi^-1(T/d) and other roundings of the step.",
    )
    return Exhibit("table-4.1", "Table 4.1: how frequent a value must be", tuple(panels), claims, notes)


def few_groups(sources: dict[str, Source], plan: Plan, seed: int, watch: Watch) -> tuple[Exhibit, Exhibit]:
    """Tables 4.2 and 4.3: values of 32 bits."""
    found: dict[tuple[str, str, float], Any] = {}
    with watch("Tables 4.2 and 4.3", plan.runs * len(sources) * len(_EPSILONS)) as advance:
        for place, (name, source) in enumerate(sources.items()):
            crowds = [source.crowd(plan.people[name], run) for run in range(plan.runs)]
            for epsilon in _EPSILONS:
                both = _found(crowds, epsilon, [seed, 42, place], advance)
                found["4.2", name, epsilon], found["4.3", name, epsilon] = both
    first, second = (_exhibit(table, found, list(sources), plan) for table in ("4.2", "4.3"))
    return first, second


def _found(crowds: list[Crowd], epsilon: float, seed: list[int], advance: Advance) -> tuple[Any, Any]:
    """How many of the 16 most frequent values come out, by g and run: as it is, and with true prefixes at the end."""
    plain, helped = np.zeros((2, len(_GROUPS), len(crowds)))
    for run, crowd in enumerate(crowds):
        truth = set(crowd.top(_TOP))
        for place, groups in enumerate(_GROUPS):
            pem = PEM(epsilon, crowd.domain, _TOP, keep=_TOP, groups=groups, fit=False, last=1)
            made = search(pem, crowd, [*seed, run, place])
            plain[place, run] = len(truth & set(found_codes(made)))
            helped[place, run] = plain[place, run] if groups == 1 else _last_round(pem, crowd, [*seed, run, place, 1])
        advance(1)
    return plain, helped


def _last_round(pem: PEM, crowd: Crowd, seed: list[int]) -> int:
    """What the last round finds behind the true prefixes of the most frequent values."""
    bits, before = pem.lengths[-1], pem.lengths[-2]
    values = prefix(pem.domain, bits).apply(crowd.codes[:_TOP], _NO_DRAWS)
    known = np.unique(cut(values, bits, before), axis=0)
    asked = (len(pem.lengths) - 1,)
    best = supports(pem, crowd, seed).best(asked, Continuations(known, before, bits - before, None, padded=True), _TOP)
    return len(set(keys(values).tolist()) & set(keys(best.codes).tolist()))


def _exhibit(table: str, found: dict[tuple[str, str, float], Any], names: list[str], plan: Plan) -> Exhibit:
    at = tuple(float(g) for g in _GROUPS)
    curves, printed = [], iter(_PRINTED_FOUND[table])
    for name in names:
        for epsilon in _EPSILONS:
            runs = found[table, name, epsilon]
            spread = tuple(runs.std(axis=1).tolist())
            curves.append(Curve(f"{name}, eps = {epsilon:g}", at, tuple(runs.mean(axis=1).tolist()), spread))
    panels = [Panel("(a) measured", "groups g", "of 16 values, found", tuple(curves), y_log=False)]
    rows = (Curve(c.name, at, next(printed)) for c in curves)
    panels.append(Panel("(b) printed, the thesis's data", "groups g", "of 16 values, found", tuple(rows), y_log=False))
    listed = "; ".join(f"{c.name}: {', '.join(f'{y:.1f}' for y in c.y)}" for c in curves)
    claims: tuple[Claim, ...]
    if table == "4.2":
        noise = [2 * np.hypot(c.spread[0], max(c.spread)) / math.sqrt(plan.runs) for c in curves if c.spread]
        best = all(c.y[0] >= max(c.y) - n for c, n in zip(curves, noise, strict=True))
        claims = (Claim("g = 1 finds most values (here: no g finds more by two standard errors)", listed, best),)
        title = "Table 4.2: values found by the number of groups, 32 bits"
    else:
        before = [found["4.2", name, epsilon] for name in names for epsilon in _EPSILONS]
        gains = [c.y[-1] - runs[-1].mean() for c, runs in zip(curves, before, strict=True)]
        claims = (
            Claim("With the true prefixes in the last round, g = 4 finds more than without", listed, min(gains) > 0),
            Claim(
                "At eps = 1 g = 3 or 4 then finds more than g = 1, whose other frequent values interfere",
                listed,
                all(max(c.y[2:]) > c.y[0] for c in curves if c.name.endswith("eps = 1")),
            ),
        )
        title = "Table 4.3: the same, with the true prefixes in the last round"
    notes = (f"{HOW} {plan.runs} runs, k = 16, k prefixes kept; 2^32 candidates at g = 1.",)
    return Exhibit(f"table-{table}", title, tuple(panels), claims, notes)
