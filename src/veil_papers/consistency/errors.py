"""Figures 4 to 10 of the consistency paper: errors on values and sets, people saved, and which method to choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from veil.mechanisms import OLH
from veil.post import Sets, select
from veil_papers.common.claims import PM, Says, each, span
from veil_papers.common.exhibits import Claim, Parts, brief, exhibit
from veil_papers.common.sweep import Scores, Sweep, measure
from veil_papers.consistency import runs
from veil_papers.consistency.runs import AUTO, HOW, LEFT, METHODS, PAPER, RIGHT, Ints, Plan, pairs
from veil_papers.datasets import Emoji

Both = Mapping[str, Sweep]  # on Zipf and on emoji

_POINTS = (0.5, 1.0, 2.0, 4.0)
_EXPECTED = {
    ("Norm-Sub", "Base"): ((0.09, 0.14, 0.21, 0.36), 2),
    ("MLE-Apx", "Norm-Sub"): ((1.003, 1.005, 1.010, 1.051), 3),
    ("PowerNS", "Base"): ((0.054, 0.085, 0.134, 0.243), 3),
}
"""Ratios on Zipf at those eps as they were measured before this code was written, and their digits."""
_SIMILAR = ("Norm-Sub", "MLE-Apx", "Power", "PowerNS", "Base-Cut")
_NORMED = ("Norm", "Norm-Mul", "Norm-Sub", "MLE-Apx", "Norm-Cut", "PowerNS")
_NOT_NORMED = ("Base", "Base-Pos", "Post-Pos", "Base-Cut", "Power")
_RHO = ("size of the sets (% of the values)", "mean squared error")


def _ours(both: Both, more: str = "") -> Claim:
    """Never far from the best of the paper's methods, whichever that is."""
    found = {label: sweep.over_best(AUTO, PAPER)[0] for label, sweep in both.items()}
    told = "; ".join(f"{label} {span(ratio)} times" for label, ratio in found.items())
    says = "(ours) The learned prior with Norm-Sub has at most 1.25 times the error of the best of the ten"
    return Says(says).given(told + more, max(ratio.max() for ratio in found.values()) < 1.25)


@exhibit
def full_domain(both: Both, skewed: float, plan: Plan) -> Parts:
    """Figure 4: squared error over the full domain."""
    # `skewed` is Base over Norm-Sub on emoji of which one has all uses
    yield from pairs(both, "", ("eps", "mean squared error"))
    yield f"{HOW} {plan.runs} runs, mean and standard deviation; all methods see the same collections."
    law, small = both["Zipf"], {label: s.only([e for e in s.x if e <= 1]) for label, s in both.items()}
    says = "Base performs very close to Norm (here: within 2 %, at every eps and on both data sets)"
    yield Says(says).ratio_within(both, ("Norm", "Base"), 0.98, 1.02, ".4f")
    half = ", the larger the larger eps: clipping helps values that are lost in the noise"
    for label, sweep in both.items():
        says = f"Base-Pos has about half the error of Base, {label} (here: 0.45 to 0.6)"
        yield Says(says).ratio_within({label: sweep}, ("Base-Pos", "Base"), 0.45, 0.6, more=half)
    last = f" for eps <= 1, {law.over('Base', 'Norm-Sub')[-1]:.1f} at eps = {law.x[-1]:g}"
    skew = f" for eps <= 1; if one of the paper's 1,573 emoji had all uses, it would be {skewed:.0f} at eps = 1"
    for label, factor, more in (("Zipf", 10, last), ("emoji", 100, skew)):
        says = f"Norm-Sub reduces the error of Base by about a factor of {factor}, {label}"
        says = f"{says} (here: {factor // 2} to {2 * factor} for eps <= 1)"
        yield Says(says).ratio_within({label: small[label]}, ("Base", "Norm-Sub"), factor / 2, 2 * factor, ".1f", more)
    falls = {name: law.mean(name)[0] / law.mean(name)[-1] for name in PAPER}
    slowest = min(fall for name, fall in falls.items() if name != "Norm-Mul")
    says = "The error of Norm-Mul decreases much slower than others' (here: Zipf, by less than half the factor)"
    yield Says(says).given(
        f"from eps = {law.x[0]:g} to {law.x[-1]:g} by a factor of {brief(falls['Norm-Mul'])}; the others by "
        f"{brief(slowest)} or more, Base by {brief(falls['Base'])}",
        falls["Norm-Mul"] < slowest / 2,
    )
    says = "Norm-Sub and MLE-Apx perform almost exactly the same (here: within 10 %)"
    yield Says(says).ratio_within(both, ("MLE-Apx", "Norm-Sub"), 0.9, 1.1, ".3f")
    worst = {label: max(s.over_best(name, _SIMILAR)[0].max() for name in _SIMILAR) for label, s in both.items()}
    says = "Norm-Sub, MLE-Apx, Power, PowerNS and Base-Cut perform very similarly (here: within a factor of 2)"
    yield Says(says).given(f"the worst over the best, at most: {each(worst)}", max(worst.values()) < 2)
    for label, sweep in both.items():
        yield Says(f"PowerNS is the best of the ten, {label} (here: at every eps)").not_above(sweep, "PowerNS", PAPER)
    for (name, other), (known, digits) in _EXPECTED.items():
        here = law.only(_POINTS)
        wanted = np.array([known[_POINTS.index(x)] for x in here.x])
        ratio, error = here.ratio(name, other)
        off = np.maximum(np.abs(ratio - wanted) - 0.5 * 10.0**-digits, 0.0) / error  # earlier numbers were rounded
        at, listed = (", ".join(f"{number:g}" for number in of) for of in (here.x, wanted))
        says = f"(known) {name} over {other} on Zipf at eps = {at}: {listed}"
        yield Says(f"{says} (here: within three standard errors and rounding)").given(
            ", ".join(f"{r:.4f} {PM} {e:.4f}" for r, e in zip(ratio, error, strict=True)), off.max() < 3
        )
    yield _ours(both)


@exhibit
def people_saved(plan: Plan, seed: int) -> Parts:
    """Figure 5: how many people without post-processing are as good."""
    # n' people without post-processing are as good as n with it
    yield f"{HOW} {plan.runs} runs."
    yield "From n' people Base has the error that the method had from n, by the analytical variance (section V.C)."

    def trial(place: int, run: int) -> Scores:
        people = plan.people[place]
        return runs.score(runs.zipf(people), 1.0, {}, [seed, 5, people, run])

    errors = measure("Figure 5: people saved", plan.watch, plan.people, plan.runs, trial)["full"]
    one = OLH(1.0, 1024).noise.variance(1 / 1024)  # of one person, on average over all values: linear in the frequency
    millions = tuple(people / 1e6 for people in plan.people)
    like = Sweep(millions, {name: list((one / errors.mean(name) / 1e6)[:, None]) for name in errors.runs})
    axes = ("people n (millions)", "as good as n' people without (millions)")
    yield from (replace(panel, y_log=False) for panel in pairs({"Zipf": like}, ", eps = 1", axes))
    n, at = np.array(like.x), like.x.index(1.0)
    slopes, worse = np.concatenate([like.mean(name) / n for name in ("Base", "Norm")]), like.mean("Norm-Mul") / n
    saved, auto = (1 - n / like.mean(name) for name in ("PowerNS", AUTO))
    says = "Base and Norm are straight lines with slope 1 (here: n' within 5 % of n)"
    yield Says(says).given(f"n' over n {span(slopes, '.3f')}", np.abs(slopes - 1).max() < 0.05)
    yield Says("Norm-Mul grows even slower than Base (here: n' over n is below 1 and falls with n)").given(
        f"n' over n from {worse[0]:.2f} at {n[0]:g} million people to {worse[-1]:.2f} at {n[-1]:g} million",
        worse[0] < 1 and (np.diff(worse) < 0).all(),
    )
    yield Says("PowerNS saves around 90 % of the people (here: 85 % to 95 % at n = 1e6)").given(
        f"{saved[at]:.1%} at n = 1e6, {span(saved, '.1%')} over all n; auto {auto[at]:.1%}", 0.85 < saved[at] < 0.95
    )
    order = dict(sorted(((name, like.at(name, 1.0)) for name in PAPER), key=lambda of: -of[1]))
    best = np.max([like.mean(name) for name in PAPER], axis=0)
    says = "PowerNS gives the best performance of the ten (here: the largest n' at every n)"
    yield Says(says).given(f"n' in millions at n = 1e6: {each(order, brief)}", (like.mean("PowerNS") == best).all())


@exhibit
def large_sets(both: Both, kept: Mapping[str, float], plan: Plan) -> Parts:
    """Figure 6: random sets, rho = 10 to 90."""
    # `kept` is what Base-Cut's frequencies add up to on either data set
    yield from pairs(both, ", eps = 1", _RHO)
    yield f"{HOW} {plan.runs_at_one} runs of {plan.sets} random sets each, drawn anew in every run."
    for label, sweep in both.items():
        at = sweep.only((90.0,))
        gains = {name: at.over(name, "PowerNS")[0] for name in _NOT_NORMED}
        says = "At rho = 90 PowerNS is at least 100 times better than any method that does not normalise"
        yield Says(f"{says}, {label}").given(
            f"{each(gains, brief)} times its error; adding up by itself saves a factor of 10, by analysis (Base over "
            f"Norm: {at.over('Base', 'Norm')[0]:.1f}); the ratio of Base has a standard error of "
            f"{at.ratio('Base', 'PowerNS')[1][0]:.1f}",
            min(gains.values()) >= 100,
        )
        low = [rho for rho in sweep.x if rho < 50]
        apart = {n: [sweep.at(n, 100 - rho) / sweep.at(n, rho) for rho in low] for n in (*_NORMED, "Base")}
        worst, name = max((float(np.abs(np.log(apart[name])).max()), name) for name in _NORMED)
        says = f"The errors of methods that normalise are symmetric about rho = 50, {label}"
        yield Says(f"{says} (here: within 25 %, as the sets are random)").given(
            f"errors at rho and 100 - rho differ by a factor of at most {np.exp(worst):.2f} ({name}); Base has "
            f"{apart['Base'][0]:.1f} times the error at {100 - low[0]:g} that it has at {low[0]:g}",
            worst < np.log(1.25),
        )
        post, cut = sweep.over("Post-Pos", "Base"), sweep.over("Base-Cut", "Base")
        worst_at = {max(PAPER, key=lambda name: sweep.at(name, x)) for x in sweep.x}
        says = f"Base-Pos is the worst, Post-Pos slightly and Base-Cut better than Base, {label} (here: at every rho)"
        yield Says(says).given(
            f"the worst is {' or '.join(sorted(worst_at))}; Post-Pos over Base {span(post)}; Base-Cut over Base "
            f"{span(cut)}: what it keeps adds up to {kept[label]:.2f} only",
            worst_at == {"Base-Pos"} and post.max() <= 1 and cut.max() < 1,
        )
    yield from _best_on_sets(both)
    yield _ours(both)


def _best_on_sets(both: Both) -> Iterator[Claim]:
    for label, sweep in both.items():
        says = f"PowerNS is the best of the ten on random sets, {label} (here: at every rho)"
        yield Says(says).not_above(sweep, "PowerNS", PAPER, axis="rho")


@exhibit
def small_sets(both: Both, plan: Plan) -> Parts:
    """Figure 7: random sets, rho = 1 to 10."""
    yield from pairs(both, ", eps = 1", _RHO)
    yield f"As Figure 6, from the same collections; {plan.sets} random sets per run."
    for label, sweep in both.items():
        falls = [name for name in PAPER if (np.diff(sweep.mean(name)) < 0).any()]
        growth = [sweep.mean(name)[-1] / sweep.mean(name)[0] for name in PAPER]
        yield Says(f"The errors of all methods increase with rho from 1 to 10, {label} (here: at every step)").given(
            f"by factors of {span(growth)}; not at every step: {', '.join(falls) or 'none'}", not falls
        )
        large = sweep.only([rho for rho in sweep.x if rho >= 2])
        says = f"Norm-Cut is better than Base-Cut for rho >= 2, {label}"
        yield Says(says).not_above(large, "Norm-Cut", ("Base-Cut",), axis="rho")
    yield from _best_on_sets(both)
    yield _ours(both)


@exhibit
def fixed_sets(fixed: Sweep, emoji: Emoji, plan: Plan) -> Parts:
    """Figure 8: fixed sets of emoji."""
    yield from pairs({"emoji": fixed}, ", fixed sets", ("eps", "mean squared error"))
    sizes = np.array([len(places) for places in emoji.sets])
    noise = np.sqrt(sizes * emoji.people * OLH(1.0, len(emoji.held)).noise.variance(0.0))
    seen = int((np.array([emoji.held[places].sum() for places in emoji.sets]) > noise).sum())
    yield f"{HOW} {plan.runs} runs. {seen} sets hold more people than the noise of Base at eps = 1."
    alone = int((sizes == 1).sum())
    yield f"{len(sizes)} sets of {np.mean(sizes):.1f} emoji on average (the paper: 68 of 10.4), {alone} of one emoji."
    yield Says("Post-Pos works best of the methods on the left (here: at every eps)").not_above(fixed, "Post-Pos", LEFT)
    below = fixed.only([epsilon for epsilon in fixed.x if epsilon < 3])
    says = "Norm-Cut performs even better than Post-Pos for eps < 3 (here: at every such eps)"
    yield Says(says).not_above(below, "Norm-Cut", ("Post-Pos",))
    says = "Norm-Cut is the best of the ten for eps < 3 (here: at every such eps)"
    yield Says(says).not_above(below, "Norm-Cut", PAPER)
    others = "; ".join(f"{name} {span(fixed.over_best(name, PAPER)[0])}" for name in ("Norm-Sub", "PowerNS"))
    yield _ours({"emoji": fixed}, f"; so do others that leave something to rare values: {others}")


_SOURCES = ("Norm-Sub", "PowerNS")
_TOP_RIGHT = ("Base", "Norm-Sub", "Base-Cut", "Norm-Cut", "Power", "PowerNS", AUTO)
_ONLY_ADD = ("Base", "Base-Pos", "Post-Pos")
_LABELS = {name: label for label, name in METHODS.items()}


@exhibit
def selection(held: Ints, sets: Sequence[Ints], true: Sweep, plan: Plan, seed: int) -> Parts:
    """Figure 9: choosing a method on imagined people."""
    # `true` are the errors on the same sets that only somebody who knows the people can measure
    yield f"Emoji, the sets of Figure 8. {plan.imagined} estimates at each eps; mean and deviation between them."
    yield f"For each, `veil.post.select` collects {plan.imagined_runs} times from people imagined from it."
    asked = Sets([places.tolist() for places in sets])
    chosen: dict[str, list[tuple[int, str]]] = {source: [] for source in _SOURCES}

    def trial(place: int, run: int) -> Scores:
        made, errors = runs.collection(held, true.x[place], [seed, 9, place, run]), {}
        for source in _SOURCES:
            choice = select(made, asked, runs=plan.imagined_runs, seed=run, synthesize=METHODS[source])
            chosen[source].append((place, _LABELS[choice.best]))
            errors[source] = {name: choice.errors[METHODS[name]] for name in PAPER}
        return errors

    imagined = measure("Figure 9: selection", plan.watch, true.x, plan.imagined, trial)
    shown = {f"imagined from {source}": imagined[source] for source in _SOURCES}
    yield from pairs(shown, "", ("eps", "squared error on imagined people"), tuple(n for n in RIGHT if n != AUTO))
    over, told = {name: true.over_best(name, PAPER)[0] for name in PAPER}, {}
    for source, picks in chosen.items():
        regret, where = max((over[name][place], true.x[place]) for place, name in picks)
        mean, counts = np.mean([over[name][place] for place, name in picks]), Counter(name for _, name in picks)
        listed = ", ".join(f"{name} {times}" for name, times in counts.most_common())
        told[source] = (
            f"true error {mean:.2f} times the least, at worst {regret:.2f} (eps = {where:g}); chosen: {listed}"
        )
    regrets = [over[name][place] for place, name in chosen["Norm-Sub"]]
    best, near = sum(regret == 1 for regret in regrets), sum(regret < 1.25 for regret in regrets)
    says = "Imagined from Norm-Sub: the optimal method is found quite accurately (here: within 1.25 of its error)"
    yield Says(says).given(
        f"{best} of {len(regrets)} times the very best, {near} times at most 1.25 times; {told['Norm-Sub']}",
        near == len(regrets),
    )
    own = sum(name == "PowerNS" for _, name in chosen["PowerNS"])
    says = "On people imagined from PowerNS, PowerNS is selected (here: each time)"
    yield Says(says).given(f"{own} of {len(regrets)} times; {told['PowerNS']}", own == len(regrets))


@exhibit
def frequent_values(both: Mapping[str, Sweep], reliable: int, plan: Plan) -> Parts:
    """Figure 10: the most frequent values."""
    # values that are truly the most frequent; `reliable` are those that Base-Cut keeps, on Zipf
    yield from pairs(both, ", eps = 1", ("k", "mean squared error"), _TOP_RIGHT, spread=False)
    law = both["Zipf"]
    vary = [f"{part:.0%}" for part in (law.deviation("Base") / law.mean("Base"))[[0, -1]]]
    yield f"{HOW} {plan.runs_at_one} runs, means. On the right Base instead of MLE-Apx, as in the paper."
    yield f"On Zipf a run of Base varies by {vary[0]} (k = {law.x[0]:g}) to {vary[1]} (k = {law.x[-1]:g})."
    for label, sweep in both.items():
        says = f"Norm or Base is the best on the top k, {label} (here: no method but Base-Pos and Post-Pos beats Norm)"
        yield Says(says).not_above(sweep, "Norm", [name for name in PAPER if name not in _ONLY_ADD], axis="k")
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
        says = (
            f"Errors of Base and Norm-Sub are consistent over k (here: within 1.5), those of the others grow, {label}"
        )
        yield Says(says).given(
            f"from k = {sweep.x[0]:g} to {sweep.x[-1]:g} by: {each(grown)}",
            all(1 / 1.5 < of < 1.5 if name in steady else of > 1.5 for name, of in grown.items()),
        )
        yield _cuts(label, sweep.only([k for k in sweep.x if k > 10]))
    says = "At eps = 1 around 10 values can be reliably estimated (here: Base-Cut keeps 8 to 12 in 95 % of runs, Zipf)"
    yield Says(says).given(f"{reliable} values", 8 <= reliable <= 12)
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
    says = f"For k > 10 Norm-Cut beats Base-Cut, and that Power and PowerNS, which are similar (within 25 %), {label}"
    return Says(says).given(
        f"over Base-Cut: {over}; PowerNS over Power {span(similar, brief)}; the other way: {', '.join(lost) or 'none'}",
        not lost and np.abs(np.log(similar)).max() < np.log(1.25),
    )
