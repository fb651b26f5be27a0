"""Figures 9 and 10 of the consistency paper: choosing a method on imagined people, and the most frequent values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veil.post import PAPER_METHODS, Sets, select
from veil_papers.common.exhibits import Claim, Exhibit, Watch, brief
from veil_papers.consistency.runs import HOW, LABELS, RIGHT, Plan, Sweep, collections, pair

__all__ = ["frequent_values", "selection"]

_SOURCES = ("norm-sub", "power-ns")
_TOP_RIGHT = ("base", "norm-sub", "base-cut", "norm-cut", "power", "power-ns", "auto")
_ONLY_ADD = ("base", "base-pos", "post-pos", "norm")


def selection(
    held: NDArray[np.int64], sets: Sequence[NDArray[np.int64]], true: Sweep, plan: Plan, seed: int, watch: Watch
) -> Exhibit:
    """Figure 9: `true` are the errors on the same sets that only somebody who knows the people can measure."""
    found: dict[str, list[dict[str, NDArray[np.float64]]]] = {source: [] for source in _SOURCES}
    chosen: dict[str, list[list[str]]] = {source: [] for source in _SOURCES}
    with watch("Figure 9: selection", len(true.x) * plan.imagined * len(_SOURCES)) as advance:
        for place, epsilon in enumerate(true.x):
            estimates = list(collections(held, epsilon, plan.imagined, [seed, 9, place]))
            for source in _SOURCES:
                made = []
                for run, estimate in enumerate(estimates):
                    asked = Sets([s.tolist() for s in sets])
                    made.append(select(estimate, asked, runs=plan.imagined_runs, seed=run, synthesize=source))
                    advance(1)
                found[source].append({m: np.array([choice.errors[m] for choice in made]) for m in PAPER_METHODS})
                chosen[source].append([choice.best for choice in made])
    axes, right = ("eps", "squared error on imagined people"), tuple(name for name in RIGHT if name != "auto")
    imagined = {source: Sweep.of(true.x, found[source]) for source in _SOURCES}
    panels = (
        *pair(imagined["norm-sub"], "ab", "imagined from Norm-Sub", axes, right=right),
        *pair(imagined["power-ns"], "cd", "imagined from PowerNS", axes, right=right),
    )
    notes = (
        f"Emoji, the sets of Figure 8. {plan.imagined} estimates an eps; for each, `veil.post.select` collects "
        f"{plan.imagined_runs} times from people imagined from it. Mean and standard deviation between estimates.",
    )
    title = "Figure 9: choosing a method on imagined people"
    return Exhibit("figure-9", title, panels, _about_choice(true, chosen), notes)


def _about_choice(true: Sweep, chosen: dict[str, list[list[str]]]) -> tuple[Claim, ...]:
    regrets = {
        source: np.array([[true.over_best(name)[i] for name in names] for i, names in enumerate(chosen[source])])
        for source in _SOURCES
    }
    counted = {source: [name for names in chosen[source] for name in names] for source in _SOURCES}
    listed = {
        source: ", ".join(f"{LABELS[n]} {names.count(n)}" for n in sorted(set(names), key=lambda n: -names.count(n)))
        for source, names in counted.items()
    }
    own = counted["power-ns"].count("power-ns")
    right = sum(name == best for names, best in zip(chosen["norm-sub"], true.best(), strict=True) for name in names)
    wrong = regrets["norm-sub"].max(axis=1)
    near = int((regrets["norm-sub"] < 1.25).sum())
    return (
        Claim(
            "On people imagined from Norm-Sub the optimal method is found quite accurately (here: the method chosen "
            "has at most 1.25 times the true error of the best, each time)",
            f"{right} of {len(counted['norm-sub'])} times the very best, {near} times at most 1.25 times; "
            f"its true error is on average {regrets['norm-sub'].mean():.2f} times the least, at worst "
            f"{wrong.max():.2f} (at eps = {true.x[int(wrong.argmax())]:g}); chosen: {listed['norm-sub']}",
            bool(wrong.max() < 1.25),
        ),
        Claim(
            "On people imagined from PowerNS, PowerNS is selected (here: each time)",
            f"{own} of {len(counted['power-ns'])} times; its true error there is on average "
            f"{regrets['power-ns'].mean():.2f} times the least, at worst {regrets['power-ns'].max():.2f}; chosen: "
            f"{listed['power-ns']}",
            own == len(counted["power-ns"]),
        ),
    )


def frequent_values(law: Sweep, emoji: Sweep, reliable: int, plan: Plan) -> Exhibit:
    """Figure 10: the k values that are truly the most frequent. `reliable` are those that Base-Cut keeps, on Zipf."""
    axes = ("k", "mean squared error")
    panels = (
        *pair(law, "ab", "Zipf, eps = 1", axes, right=_TOP_RIGHT, spread=False),
        *pair(emoji, "cd", "emoji, eps = 1", axes, right=_TOP_RIGHT, spread=False),
    )
    both = (("Zipf", law), ("emoji", emoji))
    claims = (
        *(_unbiased_best(label, sweep) for label, sweep in both),
        *(_norm_mul(label, sweep) for label, sweep in both),
        *(_norm_sub(label, sweep) for label, sweep in both),
        *(_growing(label, sweep) for label, sweep in both),
        *(_cuts(label, sweep) for label, sweep in both),
        Claim(
            "At eps = 1 around 10 values can be reliably estimated (here: on Zipf, Base-Cut keeps 8 to 12 values in at "
            "least 95 % of the runs)",
            f"{reliable} values",
            8 <= reliable <= 12,
        ),
        _ours(both),
    )
    vary = [f"{part:.0%}" for part in (law.values["base"].std(axis=1, ddof=1) / law.mean("base"))[[0, -1]]]
    notes = (
        f"{HOW} {plan.runs_at_one} runs, means; a single run of Base varies by {vary[0]} (k = {law.x[0]:g}) to "
        f"{vary[1]} (k = {law.x[-1]:g}) on Zipf. On the right Base instead of MLE-Apx, as in the paper.",
    )
    return Exhibit("figure-10", "Figure 10: the most frequent values", panels, claims, notes)


def _span(values: Sequence[float] | NDArray[np.float64]) -> str:
    return f"{brief(float(min(values)))} to {brief(float(max(values)))}"


def _unbiased_best(label: str, sweep: Sweep) -> Claim:
    """Base-Pos and Post-Pos leave frequent values as Base does, so they stand beside it."""
    rivals = [name for name in PAPER_METHODS if name not in _ONLY_ADD]
    norm = sweep.ratio("norm", "base")
    better = np.minimum(sweep.mean("base"), sweep.mean("norm"))
    ratios = np.array([sweep.mean(name) / better for name in rivals])
    lost = sweep.beaten("norm", rivals)
    return Claim(
        f"Norm or Base is the best on the top k, {label} (here: at every k no other method but Base-Pos and Post-Pos, "
        "which leave frequent values alone, is better than Norm)",
        f"the next best has {_span(ratios.min(axis=0))} times the error; Norm over Base "
        f"{norm.min():.3f} to {norm.max():.3f}" + (f"; better: {', '.join(lost)}" if lost else ""),
        not lost,
    )


def _norm_mul(label: str, sweep: Sweep) -> Claim:
    others = [name for name in PAPER_METHODS if name != "norm-mul"]
    worst = sweep.mean("norm-mul") / np.max([sweep.mean(name) for name in others], axis=0)
    return Claim(
        f"Norm-Mul is at least 10 times worse than any other method on the top k, {label} (here: at every k)",
        f"it has {_span(worst)} times the error of the next worst",
        bool(worst.min() >= 10),
    )


def _norm_sub(label: str, sweep: Sweep) -> Claim:
    over, under = sweep.ratio("norm-sub", "base"), sweep.ratio("norm-mul", "norm-sub")
    return Claim(
        f"Norm-Sub is worse than Base but better than Norm-Mul, {label} (here: at every k)",
        f"Norm-Sub over Base {_span(over)}; Norm-Mul over Norm-Sub {_span(under)}",
        bool(over.min() > 1 and under.min() > 1),
    )


def _growing(label: str, sweep: Sweep) -> Claim:
    grown = {name: float(sweep.mean(name)[-1] / sweep.mean(name)[0]) for name in _TOP_RIGHT if name != "auto"}
    last = f"k = {sweep.x[0]:g} to {sweep.x[-1]:g}"
    steady = [grown[name] for name in ("base", "norm-sub")]
    growing = [grown[name] for name in ("base-cut", "norm-cut", "power", "power-ns")]
    return Claim(
        f"The errors of Base and Norm-Sub are consistent over k (here: within a factor of 1.5), those of Base-Cut, "
        f"Norm-Cut, Power and PowerNS grow (here: by more), {label}",
        f"from {last} by: " + ", ".join(f"{LABELS[name]} {factor:.2f}" for name, factor in grown.items()),
        all(1 / 1.5 < factor < 1.5 for factor in steady) and min(growing) > 1.5,
    )


def _cuts(label: str, sweep: Sweep) -> Claim:
    beyond = [i for i, k in enumerate(sweep.x) if k > 10]
    cut, power = sweep.ratio("norm-cut", "base-cut")[beyond], sweep.ratio("power", "base-cut")[beyond]
    similar = sweep.ratio("power-ns", "power")[beyond]
    large = sweep.only(beyond)
    lost = large.beaten("norm-cut", ["base-cut"]) + large.beaten("base-cut", ["power", "power-ns"])
    return Claim(
        f"For k > 10 Norm-Cut is better than Base-Cut, Power and PowerNS are similar (here: within 25 %) and worse "
        f"than Base-Cut, {label}",
        f"over Base-Cut: Norm-Cut {_span(cut)}, Power {_span(power)}; PowerNS over Power {_span(similar)}"
        + (f"; the other way: {', '.join(lost)}" if lost else ""),
        bool(not lost and np.abs(np.log(similar)).max() < np.log(1.25)),
    )


def _ours(both: Sequence[tuple[str, Sweep]]) -> Claim:
    over = {label: sweep.ratio("auto", "norm") for label, sweep in both}
    power = {label: sweep.ratio("auto", "power-ns") for label, sweep in both}
    return Claim(
        "(ours) The learned prior with Norm-Sub is the wrong choice for the top k (here: a larger error than Norm at "
        "every k)",
        "; ".join(f"{label}: over Norm {_span(over[label])}, over PowerNS {_span(power[label])}" for label, _ in both),
        min(float(ratio.min()) for ratio in over.values()) > 1,
    )
