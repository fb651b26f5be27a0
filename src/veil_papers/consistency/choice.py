"""Figures 9 and 10 of the consistency paper: choosing a method on imagined people, and the most frequent values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from veil.post import Sets, select
from veil_papers.common.claims import Says, each, span
from veil_papers.common.exhibits import Claim, Parts, brief, exhibit
from veil_papers.common.sweep import Scores, Sweep, measure
from veil_papers.consistency.runs import AUTO, HOW, METHODS, PAPER, RIGHT, Ints, Plan, collection, pairs

_SOURCES = ("Norm-Sub", "PowerNS")
_TOP_RIGHT = ("Base", "Norm-Sub", "Base-Cut", "Norm-Cut", "Power", "PowerNS", AUTO)
_ONLY_ADD = ("Base", "Base-Pos", "Post-Pos")
_LABELS = {name: label for label, name in METHODS.items()}


@exhibit
def selection(held: Ints, sets: Sequence[Ints], true: Sweep, plan: Plan, seed: int) -> Parts:
    """Figure 9: choosing a method on imagined people."""
    # `true` are the errors on the same sets that only somebody who knows the people can measure
    yield (
        f"Emoji, the sets of Figure 8. {plan.imagined} estimates at each eps; for each, `veil.post.select` collects "
        f"{plan.imagined_runs} times from people imagined from it. Mean and standard deviation between estimates."
    )
    asked = Sets([places.tolist() for places in sets])
    chosen: dict[str, list[tuple[int, str]]] = {source: [] for source in _SOURCES}

    def trial(place: int, run: int) -> Scores:
        made, errors = collection(held, true.x[place], [seed, 9, place, run]), {}
        for source in _SOURCES:
            choice = select(made, asked, runs=plan.imagined_runs, seed=run, synthesize=METHODS[source])
            chosen[source].append((place, _LABELS[choice.best]))
            errors[source] = {name: choice.errors[METHODS[name]] for name in PAPER}
        return errors

    with plan.watch("Figure 9: selection", len(true.x) * plan.imagined) as advance:
        imagined = measure(true.x, plan.imagined, trial, advance)
    shown = {f"imagined from {source}": imagined[source] for source in _SOURCES}
    yield from pairs(shown, "", ("eps", "squared error on imagined people"), tuple(n for n in RIGHT if n != AUTO))
    over, told = {name: true.over_best(name, PAPER)[0] for name in PAPER}, {}
    for source, picks in chosen.items():
        regret, where = max((over[name][place], true.x[place]) for place, name in picks)
        mean, counts = np.mean([over[name][place] for place, name in picks]), Counter(name for _, name in picks)
        listed = ", ".join(f"{name} {times}" for name, times in counts.most_common())
        told[source] = (
            f"its true error is on average {mean:.2f} times the least, at worst {regret:.2f} (at eps = {where:g}); "
            f"chosen: {listed}"
        )
    regrets = [over[name][place] for place, name in chosen["Norm-Sub"]]
    best, near = sum(regret == 1 for regret in regrets), sum(regret < 1.25 for regret in regrets)
    yield Says(
        "On people imagined from Norm-Sub the optimal method is found quite accurately (here: the method chosen has at "
        "most 1.25 times the true error of the best, each time)"
    ).given(
        f"{best} of {len(regrets)} times the very best, {near} times at most 1.25 times; {told['Norm-Sub']}",
        near == len(regrets),
    )
    own = sum(name == "PowerNS" for _, name in chosen["PowerNS"])
    yield Says("On people imagined from PowerNS, PowerNS is selected (here: each time)").given(
        f"{own} of {len(regrets)} times; {told['PowerNS']}", own == len(regrets)
    )


@exhibit
def frequent_values(both: Mapping[str, Sweep], reliable: int, plan: Plan) -> Parts:
    """Figure 10: the most frequent values."""
    # values that are truly the most frequent; `reliable` are those that Base-Cut keeps, on Zipf
    yield from pairs(both, ", eps = 1", ("k", "mean squared error"), _TOP_RIGHT, spread=False)
    law = both["Zipf"]
    vary = [f"{part:.0%}" for part in (law.deviation("Base") / law.mean("Base"))[[0, -1]]]
    yield (
        f"{HOW} {plan.runs_at_one} runs, means; a single run of Base varies by {vary[0]} (k = {law.x[0]:g}) to "
        f"{vary[1]} (k = {law.x[-1]:g}) on Zipf. On the right Base instead of MLE-Apx, as in the paper."
    )
    for label, sweep in both.items():
        yield Says(
            f"Norm or Base is the best on the top k, {label} (here: at every k no other method but Base-Pos and "
            "Post-Pos, which leave frequent values alone, is better than Norm)"
        ).not_above(sweep, "Norm", [name for name in PAPER if name not in _ONLY_ADD], axis="k")
        worst = sweep.mean("Norm-Mul") / np.max([sweep.mean(name) for name in PAPER if name != "Norm-Mul"], axis=0)
        says = f"Norm-Mul is at least 10 times worse than any other method on the top k, {label} (here: at every k)"
        yield Says(says).given(f"it has {span(worst, brief)} times the error of the next worst", worst.min() >= 10)
        over, under = sweep.over("Norm-Sub", "Base"), sweep.over("Norm-Mul", "Norm-Sub")
        yield Says(f"Norm-Sub is worse than Base but better than Norm-Mul, {label} (here: at every k)").given(
            f"Norm-Sub over Base {span(over, brief)}; Norm-Mul over Norm-Sub {span(under, brief)}",
            over.min() > 1 and under.min() > 1,
        )
        grown = {name: sweep.mean(name)[-1] / sweep.mean(name)[0] for name in _TOP_RIGHT if name != AUTO}
        steady = ("Base", "Norm-Sub")
        yield Says(
            "The errors of Base and Norm-Sub are consistent over k (here: within a factor of 1.5), those of Base-Cut, "
            f"Norm-Cut, Power and PowerNS grow (here: by more), {label}"
        ).given(
            f"from k = {sweep.x[0]:g} to {sweep.x[-1]:g} by: {each(grown)}",
            all(1 / 1.5 < of < 1.5 if name in steady else of > 1.5 for name, of in grown.items()),
        )
        yield _cuts(label, sweep.only([k for k in sweep.x if k > 10]))
    yield Says(
        "At eps = 1 around 10 values can be reliably estimated (here: on Zipf, Base-Cut keeps 8 to 12 values in at "
        "least 95 % of the runs)"
    ).given(f"{reliable} values", 8 <= reliable <= 12)
    ours = {label: [sweep.over(AUTO, name) for name in ("Norm", "PowerNS")] for label, sweep in both.items()}
    says = "(ours) The learned prior with Norm-Sub is the wrong choice for the top k"
    yield Says(f"{says} (here: a larger error than Norm at every k)").given(
        "; ".join(f"{of}: over Norm {span(a, brief)}, over PowerNS {span(b, brief)}" for of, (a, b) in ours.items()),
        min(norm.min() for norm, _ in ours.values()) > 1,
    )


def _cuts(label: str, large: Sweep) -> Claim:
    over = ", ".join(f"{n} {span(large.over(n, 'Base-Cut'), brief)}" for n in ("Norm-Cut", "Power", "PowerNS"))
    similar = large.over("PowerNS", "Power")
    lost = [f"Norm-Cut at {x:g}" for _, x in large.surely_above("Norm-Cut", ("Base-Cut",))]
    lost += [f"{name} at {x:g}" for name, x in large.surely_above("Base-Cut", ("Power", "PowerNS"))]
    return Says(
        "For k > 10 Norm-Cut is better than Base-Cut, Power and PowerNS are similar (here: within 25 %) and worse than "
        f"Base-Cut, {label}"
    ).given(
        f"over Base-Cut: {over}; PowerNS over Power {span(similar, brief)}; the other way: {', '.join(lost) or 'none'}",
        not lost and np.abs(np.log(similar)).max() < np.log(1.25),
    )
