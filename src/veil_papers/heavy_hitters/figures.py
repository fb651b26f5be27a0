"""Figures 4.2 and 4.3 of the thesis: PEM and its rivals by eps and by k, on random strings and on text."""

from __future__ import annotations

from collections.abc import Callable

from veil_papers.common.exhibits import Claim, Exhibit, Panel, Watch
from veil_papers.heavy_hitters.plan import QUERIES, SYNTHETIC, URLS, Plan
from veil_papers.heavy_hitters.searching import (
    HOW,
    IMPROVED,
    OURS,
    PAPER,
    Crowd,
    Source,
    Sweep,
    measure,
    random_strings,
    some,
)

__all__ = ["NOTE", "Measured", "by_epsilon", "by_top", "measure_epsilons", "measure_tops"]

Measured = dict[str, dict[str, Sweep]]
"""For each data set F1, NCR and Var."""

NOTE = (
    "PEM is the thesis's (k prefixes kept, equal groups, 2^20 queries); ours keeps 2k (4k for text), asks twice "
    "as many in the last group and fits the trie of bits. PEM1, SPM and HASH are the improved versions of section "
    "4.4.1: OLH, people split, segments as long as 2^20 queries allow. On 160 bits SPM gets segments of 32 bits, "
    "which no collector could count; that helps SPM. PrivTrie asks each person once (the thesis's asks several "
    "times, which costs more than eps when a value is replaced); without threshold it asks a level's whole share "
    "and keeps the k best."
)
_SPM_MOST = 16
_RIVALS = ("PEM1", "SPM", "HASH", "PrivTrie", "PrivTrie, no threshold")


def _crowds(sources: dict[str, Source], plan: Plan) -> dict[str, Callable[[int], Crowd]]:
    def strings(run: int) -> Crowd:
        return random_strings(plan.people[SYNTHETIC], run)

    def text(name: str) -> Callable[[int], Crowd]:
        return lambda run: sources[name].crowd(plan.people[name], run)

    return {SYNTHETIC: strings, **{name: text(name) for name in sources}}


def measure_epsilons(sources: dict[str, Source], plan: Plan, seed: int, watch: Watch) -> Measured:
    """Everything at k = 16 by eps."""
    found = {}
    for place, (name, crowd_of) in enumerate(_crowds(sources, plan).items()):
        drawn = name == SYNTHETIC
        epsilons, runs = (plan.epsilons, plan.runs) if drawn else (plan.text_epsilons, plan.text_runs)
        methods = IMPROVED if drawn else some(plan.methods)
        points = [(epsilon, epsilon, 16) for epsilon in epsilons]
        with watch(f"Figure 4.2: {name}", runs * len(points)) as advance:
            found[name] = measure(crowd_of, points, methods, runs, [seed, 2, place], advance)
    return found


def measure_tops(sources: dict[str, Source], plan: Plan, seed: int, watch: Watch) -> Measured:
    """Everything at eps = 2 by k."""
    found = {}
    for place, (name, crowd_of) in enumerate(_crowds(sources, plan).items()):
        drawn = name == SYNTHETIC
        tops, runs = (plan.tops, plan.few) if drawn else (plan.text_tops, plan.text_runs)
        methods = IMPROVED if drawn else some(plan.methods)
        points = [(float(k), 2.0, k) for k in tops]

        def skip(method: str, k: int, drawn: bool = drawn) -> bool:
            """What takes minutes a run: pairs of many segments, and k^1.5 channels of long text."""
            return k > _SPM_MOST and (method == "SPM" or (method == "HASH" and (k > 32 or not drawn)))

        with watch(f"Figure 4.3: {name}", runs * len(points)) as advance:
            found[name] = measure(crowd_of, points, methods, runs, [seed, 3, place], advance, skip)
    return found


def _panels(found: Measured, x_label: str, title: str) -> tuple[Panel, ...]:
    panels = []
    for letters, (name, scores) in zip(("ab", "cd", "ef"), found.items(), strict=True):
        for letter, score in zip(letters, ("F1", "NCR"), strict=True):
            curves = tuple(scores[score].curve(method) for method in scores[score].values)
            panels.append(Panel(f"({letter}) {name}, {title}", x_label, score, curves, y_log=False))
    return tuple(panels)


def by_epsilon(found: Measured, plan: Plan, goals: tuple[Claim, ...]) -> Exhibit:
    """Figure 4.2, and what was asked for beyond it."""
    claims = [_best(found, name, "eps") for name in found]
    urls, most = found[URLS]["F1"], max(plan.text_epsilons)
    here = ", ".join(f"{name} {urls.at(name, most):.2f}" for name in urls.values)
    claims.append(
        Claim(
            f"URL data at eps = {most:g}: PEM reaches F1 = 0.9 (here: at least 0.8)",
            here,
            urls.at(PAPER, most) >= 0.8,
        )
    )
    claims.append(
        Claim(
            f"URL data at eps = {most:g}: the others find only two of 16 (here: F1 at most 0.2), PrivTrie none",
            here,
            all(urls.at(name, most) <= 0.2 for name in _RIVALS[:-1] if name in urls.values),
        )
    )
    claims.append(
        Claim(
            f"(ours) The default finds more on text at eps = {most:g} than the thesis's PEM",
            f"F1 {urls.at(OURS, most):.2f} against {urls.at(PAPER, most):.2f} (160 bits), "
            f"{found[QUERIES]['F1'].at(OURS, most):.2f} against {found[QUERIES]['F1'].at(PAPER, most):.2f} (48 bits)",
            all(found[name]["F1"].at(OURS, most) > found[name]["F1"].at(PAPER, most) for name in (URLS, QUERIES)),
        )
    )
    notes = (HOW, NOTE, f"{plan.runs} runs on random strings, {plan.text_runs} on text; bars are standard deviations.")
    panels = _panels(found, "eps", "k = 16")
    return Exhibit("figure-4.2", "Figure 4.2: by eps, k = 16", panels, (*claims, *goals), notes)


def by_top(found: Measured, plan: Plan) -> Exhibit:
    """Figure 4.3."""
    synthetic = found[SYNTHETIC]["F1"]
    within = [k for k in synthetic.x if k <= 32]
    falling = {name: (scores["F1"].mean(PAPER)[0], scores["F1"].mean(PAPER)[-1]) for name, scores in found.items()}
    claims = (
        *(_best(found, name, "k") for name in found),
        Claim(
            "On random strings PEM has almost full utility up to k = 30 (here: F1 at least 0.9 up to k = 32)",
            ", ".join(f"{synthetic.at(PAPER, k):.2f} (k = {k:g})" for k in synthetic.x),
            min(synthetic.at(PAPER, k) for k in within) >= 0.9,
        ),
        Claim(
            "Utility decreases with k (here: PEM's F1 is smaller at the largest k than at the smallest)",
            ", ".join(f"{name} {first:.2f} to {last:.2f}" for name, (first, last) in falling.items()),
            all(last < first or len(found[name]["F1"].x) == 1 for name, (first, last) in falling.items()),
        ),
    )
    notes = (
        HOW,
        NOTE,
        f"SPM up to k = {_SPM_MOST}, HASH up to 32 (16 on text), for their cost. {plan.few} runs, on text "
        f"{plan.text_runs}.",
    )
    return Exhibit("figure-4.3", "Figure 4.3: by k, eps = 2", _panels(found, "k", "eps = 2"), claims, notes)


def _best(found: Measured, name: str, axis: str) -> Claim:
    scores = found[name]["F1"]
    lost = [
        f"{rival} at {axis} = {x:g} ({gap:+.2f} \N{PLUS-MINUS SIGN} {error:.2f})"
        for rival in _RIVALS
        if rival in scores.values
        for x, gap, error in zip(scores.x, *scores.behind(PAPER, rival), strict=True)
        if gap > 2 * error
    ]
    return Claim(
        f"PEM performs best at every {axis}, {name} (here: no rival is better by two standard errors)",
        f"better: {', '.join(lost)}" if lost else "no rival is better",
        not lost,
    )
