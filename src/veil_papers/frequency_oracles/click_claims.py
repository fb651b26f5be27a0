"""What the thesis says about Figures 3.3 to 3.5, held against the measured curves."""

from __future__ import annotations

from veil_papers.common.exhibits import Claim, Panel, brief

__all__ = ["about_errors", "about_positives", "about_sweep"]

_RAPPOR = ("RAP(8)", "RAP(16)")
_COMMON = ", OLH's threshold"


def about_errors(panel: Panel) -> tuple[Claim, ...]:
    """Figure 3.3."""
    olh = panel.curve("OLH")
    rivals = [curve for curve in panel.curves if curve.name != "OLH"]
    beyond = [epsilon for epsilon in olh.x if epsilon > 1]
    margins = [min(curve.at(epsilon) for curve in rivals) / olh.at(epsilon) for epsilon in beyond]
    first, last = (1.0, olh.x[-1])
    gains = {curve.name: curve.at(first) / curve.at(last) for curve in panel.curves}
    listed = ", ".join(f"{name} {brief(gain)}" for name, gain in gains.items())
    return (
        Claim(
            "For eps > 1 OLH is the best of the four",
            f"the next best has between {min(margins):.2f} and {max(margins):.1f} times its error, for eps "
            f"{beyond[0]:g} to {beyond[-1]:g}; at eps = {last:g}: "
            + ", ".join(f"{curve.name} {brief(curve.at(last))}" for curve in panel.curves),
            min(margins) > 1,
        ),
        Claim(
            "The error of OLH decreases fastest among the four",
            f"from eps = {first:g} to {last:g} errors fall by a factor of: {listed}",
            gains["OLH"] == max(gains.values()),
        ),
        _benefit(panel),
    )


def _benefit(panel: Panel) -> Claim:
    """Taken at its word from eps = 2 on: an error that falls by less than half as much again has not benefited."""
    points = panel.curve("OLH").x
    last, starts = points[-1], [start for start in (2.0, 3.5) if start in points] or [points[0]]
    falls = {
        start: {name: panel.curve(name).at(start) / panel.curve(name).at(last) for name in ("OLH", *_RAPPOR)}
        for start in starts
    }
    return Claim(
        "Because of collisions in its Bloom filters, Rappor does not benefit from larger eps",
        "; ".join(
            f"from eps = {start:g} to {last:g} errors fall by a factor of "
            + ", ".join(f"{fall:.1f} ({name})" for name, fall in falls[start].items())
            for start in starts
        ),
        all(falls[starts[0]][name] < 1.5 for name in _RAPPOR),
    )


def about_positives(right: Panel, found: Panel) -> tuple[Claim, ...]:
    """Figure 3.4; the thesis's numbers are for the whole stream, ours for a tenth of it, scaled.

    Verdicts on Rappor go by its own threshold; what the threshold of OLH gives is told beside.
    """
    olh, blh = right.curve("OLH").at(4.0), right.curve("BLH").at(4.0)
    own, other = _rappor_at(right, ""), _rappor_at(right, _COMMON)
    sizes, output = _rappor_at(found, ""), found.curve("OLH").at(4.0)
    best = max(*own.values(), *other.values())
    grows = all(list(right.curve(name).y) == sorted(right.curve(name).y) for name in ("OLH", "BLH"))
    return (
        Claim(
            "At eps = 4 OLH finds nearly 200 true positives, BLH only 36 (here: within a quarter)",
            f"{olh:.0f} against {blh:.0f}",
            150 <= olh <= 250 and 27 <= blh <= 45,
        ),
        Claim(
            "At eps = 4 Rappor finds 75 true positives (here: within a quarter)",
            f"{_both(own)}; with the threshold of OLH {_both(other)}",
            all(75 * 0.75 <= value <= 75 * 1.25 for value in own.values()),
        ),
        Claim(
            "At eps = 4 OLH finds more than twice Rappor's true positives",
            f"{olh:.0f} against at most {best:.0f}, whichever threshold and number of cohorts Rappor takes",
            olh > 2 * best,
        ),
        Claim(
            "The number of true positives increases with eps",
            ", ".join(f"{n} {right.curve(n).y[0]:.0f} to {right.curve(n).y[-1]:.0f}" for n in ("OLH", "BLH")),
            grows,
        ),
        Claim(
            "Rappor and OLH identify similar numbers of pages (here: up to a factor of 2), Rappor's more often false",
            f"OLH {output:.0f}, of which {output - olh:.0f} false; Rappor {_both(sizes)}, of which "
            + " and ".join(f"{sizes[name] - own[name]:.0f}" for name in _RAPPOR)
            + " false",
            all(0.5 < sizes[name] / output < 2 and sizes[name] - own[name] > output - olh for name in _RAPPOR),
        ),
        Claim(
            "The number of cohorts does not affect Rappor much (here: its true positives by less than a quarter)",
            f"{_both(own)}; with the threshold of OLH {_both(other)}",
            max(own.values()) < 1.25 * min(own.values()),
        ),
    )


def _rappor_at(panel: Panel, rule: str) -> dict[str, float]:
    return {name: panel.curve(name + rule).at(4.0) for name in _RAPPOR}


def _both(of: dict[str, float]) -> str:
    return " and ".join(f"{value:.0f} ({name})" for name, value in of.items())


def about_sweep(right: Panel, wrong: Panel) -> tuple[Claim, ...]:
    """Figure 3.5."""
    hits = {curve.name: curve.at(5000.0) for curve in right.curves}
    misses = {curve.name: curve.at(5000.0) for curve in wrong.curves}
    listed = ", ".join(f"{name} {hit:.0f}" for name, hit in hits.items())
    falsely = ", ".join(f"{name} {miss:.0f}" for name, miss in misses.items())
    olh = wrong.curve("OLH")
    beaten = [brief(t) for t in olh.x if any(curve.at(t) < olh.at(t) for curve in wrong.curves)]
    where = f"; fewer false ones by Rappor at {', '.join(beaten)} alone" if beaten else ""
    return (
        Claim(
            "At a threshold of 5,000 OLH has tens of false positives, BLH thousands",
            f"OLH {misses['OLH']:.1f}, BLH {brief(round(misses['BLH']))}",
            10 <= misses["OLH"] < 100 and misses["BLH"] >= 1_000,
        ),
        Claim(
            "At the same threshold OLH and BLH find about as many true positives (here: within a fifth)",
            f"at 5,000: {listed}",
            hits["BLH"] > 0.8 * hits["OLH"],
        ),
        Claim(
            "Rappor finds slightly fewer true positives (here: at most a fifth fewer)",
            f"at 5,000: {listed}",
            all(0.8 * hits["OLH"] < hits[name] < hits["OLH"] for name in _RAPPOR),
        ),
        Claim(
            "OLH produces the fewest false positives and the most true positives",
            f"at 5,000: false {falsely}; true {listed}{where}",
            misses["OLH"] == min(misses.values()) and hits["OLH"] == max(hits.values()),
        ),
    )
