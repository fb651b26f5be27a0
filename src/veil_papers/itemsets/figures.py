"""Figures 5.3, 5.4 and 5.6 to 5.8 of the thesis, from what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veil_papers.common.exhibits import Claim, Curve, Exhibit, Panel, brief
from veil_papers.heavy_hitters.searching import Sweep, squared
from veil_papers.itemsets.runs import HOW, MINERS, Plan

__all__ = ["Both", "Mined", "itemsets", "more_items", "more_itemsets", "singletons"]

Mined = dict[str, Sweep]
"""NCR and Var."""
_FIRST, _SECOND, *_, _FIFTH, _SIXTH = MINERS
_SMALL = "SVSM, sizes by the threshold"


@dataclass(frozen=True)
class Both:
    """A data set's numbers by eps at k = 64, and by k at eps = 2."""

    name: str
    by_epsilon: Mined
    by_top: Mined


def _panels(both: Both, scores: tuple[str, ...], letters: str) -> tuple[Panel, ...]:
    made, names = [], iter(letters)
    for score in scores:
        for found, axis, fixed in ((both.by_epsilon, "eps", "k = 64"), (both.by_top, "k", "eps = 2")):
            curves = tuple(_curve(found[score], name) for name in found[score].values)
            shown = tuple(curve for curve in curves if curve.x)
            made.append(Panel(f"({next(names)}) {both.name}, {fixed}", axis, score, shown, y_log=score == "Var"))
    return tuple(made)


def _curve(sweep: Sweep, name: str) -> Curve:
    """Protocols' names have commas: only an addition of ours is drawn faint."""
    curve = sweep.curve(name)
    return Curve(name, curve.x, curve.y, curve.spread, faint=name == _SMALL)


def _listed(sweep: Sweep, at: float, digits: int = 3) -> str:
    return ", ".join(f"{name} {sweep.at(name, at):.{digits}f}" for name in sweep.values)


def _errors(sweep: Sweep, at: float) -> str:
    return ", ".join(f"{name} {squared(sweep.at(name, at))}" for name in sweep.values)


def singletons(pos: Both, goals: tuple[Claim, ...], plan: Plan) -> Exhibit:
    """Figure 5.3."""
    ncr, var = pos.by_epsilon["NCR"], pos.by_epsilon["Var"]
    claims = [
        _rises(pos, "NCR", "NCR increases with eps", 1),
        _rises(pos, "Var", "Var decreases with eps", -1),
        Claim(
            "OLH in place of BLH and SUE finds more, and hardly changes Var (here: by a factor below 3)",
            f"NCR {ncr.at(_FIRST, 2.0):.3f}, {ncr.at(_SECOND, 2.0):.3f}; Var {brief(var.at(_FIRST, 2.0))}, "
            f"{brief(var.at(_SECOND, 2.0))}",
            ncr.at(_SECOND, 2.0) > ncr.at(_FIRST, 2.0) and 1 / 3 < var.at(_SECOND, 2.0) / var.at(_FIRST, 2.0) < 3,
        ),
        Claim(
            "Adap in the second phase almost doubles NCR and reduces Var by two magnitudes (here: by 1.5 and by 100)",
            f"NCR by {ncr.at('(OLH,1)(Adap,2k)', 2.0) / ncr.at('(OLH,1)(OLH,2k)', 2.0):.2f}, "
            f"Var by {var.at('(OLH,1)(OLH,2k)', 2.0) / var.at('(OLH,1)(Adap,2k)', 2.0):,.0f}",
            ncr.at("(OLH,1)(Adap,2k)", 2.0) >= 1.5 * ncr.at("(OLH,1)(OLH,2k)", 2.0)
            and var.at("(OLH,1)(OLH,2k)", 2.0) >= 100 * var.at("(OLH,1)(Adap,2k)", 2.0),
        ),
    ]
    notes = (
        HOW,
        f"{plan.runs} runs at eps = 1 and 2 with k = 64, elsewhere {plan.few}; every run has people of its own.",
    )
    panels = _panels(pos, ("NCR", "Var"), "abcd")
    return Exhibit("figure-5.3", "Figure 5.3: frequent items, POS", panels, (*claims, *goals), notes)


def _rises(both: Both, score: str, says: str, sign: int) -> Claim:
    """From the first eps to the last, every protocol."""
    sweep = both.by_epsilon[score]
    ends = {name: (sweep.mean(name)[0], sweep.mean(name)[-1]) for name in sweep.values}
    lost = [name for name, (first, last) in ends.items() if sign * (last - first) <= 0]
    return Claim(
        f"{says} (here: from eps = {sweep.x[0]:g} to {sweep.x[-1]:g}, every protocol)",
        "; ".join(f"{name} {squared(first)} to {squared(last)}" for name, (first, last) in ends.items()),
        not lost or len(sweep.x) == 1,
    )


def itemsets(pos: Both, found: dict[int, tuple[float, float]], goals: tuple[Claim, ...], plan: Plan) -> Exhibit:
    """Figure 5.4."""
    ncr, var = pos.by_epsilon["NCR"], pos.by_epsilon["Var"]
    claims = (
        Claim(
            "On LDPMiner SVSM's NCR is around 0.2 (here: 0.1 to 0.35 at eps = 2, k = 64)",
            _listed(ncr, 2.0),
            0.1 <= ncr.at("LDPMiner", 2.0) <= 0.35,
        ),
        Claim(
            "On LDPMiner the error is two magnitudes greater (here: 100 times, sizes as in the thesis)",
            _errors(var, 2.0),
            var.at("LDPMiner", 2.0) >= 100 * var.at(_SMALL, 2.0),
        ),
        Claim(
            "SVSM finds about 70 sets, on LDPMiner around 10 (here: 60 to 100, and at most 25, at the largest k)",
            "; ".join(f"k = {k}: {ours:.0f} and {rival:.0f}" for k, (ours, rival) in found.items()),
            60 <= found[max(found)][0] <= 100 and found[max(found)][1] <= 25,
        ),
    )
    notes = (HOW, f"{plan.runs} runs at eps = 1 and 2 with k = 64, elsewhere {plan.few}.")
    panels = _panels(pos, ("NCR", "Var"), "abcd")
    return Exhibit("figure-5.4", "Figure 5.4: frequent itemsets, POS", panels, (*claims, *goals), notes)


def more_items(others: list[Both], score: str, figure: str, plan: Plan) -> Exhibit:
    """Figures 5.6 (NCR) and 5.7 (Var)."""
    panels = tuple(
        panel
        for letters, both in zip(("ab", "cd", "ef"), others, strict=True)
        for panel in _panels(both, (score,), letters)
    )
    claims = tuple(_svim_best(both, score) for both in others)
    what = "finding" if score == "NCR" else "estimating"
    notes = (HOW, f"{plan.few} runs. Online has only 25,900 invoices: too few for k = 64 items.")
    return Exhibit(f"figure-{figure}", f"Figure {figure}: {what} items, more data", panels, claims, notes)


def _svim_best(both: Both, score: str) -> Claim:
    sweep = both.by_epsilon[score]
    ours, rivals = sweep.at(_SIXTH, 2.0), [sweep.at(name, 2.0) for name in (_FIRST, _SECOND)]
    known = [rival for rival in rivals if np.isfinite(rival)]  # a rival that finds nothing has no error
    better = ours > max(known) if score == "NCR" else all(ours < rival for rival in known)
    shown = _listed(sweep, 2.0) if score == "NCR" else _errors(sweep, 2.0)
    return Claim(f"SVIM is better than LDPMiner, {both.name} (here: {score} at eps = 2, k = 64)", shown, better)


def more_itemsets(others: list[Both], plan: Plan) -> Exhibit:
    """Figure 5.8."""
    panels = tuple(
        panel for letters, both in zip(("ab", "cd"), others, strict=True) for panel in _panels(both, ("NCR",), letters)
    )
    claims = tuple(
        Claim(
            f"SVSM is better on SVIM than on LDPMiner, {both.name} (here: NCR at eps = 2, k = 64)",
            _listed(both.by_epsilon["NCR"], 2.0),
            both.by_epsilon["NCR"].at(_SMALL, 2.0) > both.by_epsilon["NCR"].at("LDPMiner", 2.0),
        )
        for both in others
    )
    notes = (HOW, f"{plan.few} runs.")
    return Exhibit("figure-5.8", "Figure 5.8: frequent itemsets, more data", panels, claims, notes)
