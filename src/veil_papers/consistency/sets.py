"""Figures 6 to 8 of the consistency paper: errors on sets of values, drawn at random or fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veil.datasets import Emoji
from veil.mechanisms import OLH
from veil.post import PAPER_METHODS
from veil_papers.common.exhibits import Claim, Exhibit, brief
from veil_papers.consistency.runs import HOW, LABELS, LEFT, Plan, Sweep, pair

__all__ = ["fixed_sets", "large_sets", "small_sets"]

_NORMED = ("norm", "norm-mul", "norm-sub", "mle-apx", "norm-cut", "power-ns")
_NOT_NORMED = ("base", "base-pos", "post-pos", "base-cut", "power")
_AXES = ("size of the sets (% of the values)", "mean squared error")


def large_sets(law: Sweep, emoji: Sweep, kept: tuple[float, float], plan: Plan) -> Exhibit:
    """Figure 6: rho from 10 to 90. `kept` is what Base-Cut's frequencies add up to on either data set."""
    panels = (*pair(law, "ab", "Zipf, eps = 1", _AXES), *pair(emoji, "cd", "emoji, eps = 1", _AXES))
    notes = (f"{HOW} {plan.runs_at_one} runs of {plan.sets} random sets each, drawn anew in every run.",)
    both = (("Zipf", law), ("emoji", emoji))
    claims = (
        *(_at_ninety(label, sweep) for label, sweep in both),
        *(_symmetric(label, sweep) for label, sweep in both),
        *(_best(label, sweep) for label, sweep in both),
        *(_orders(label, sweep, part) for (label, sweep), part in zip(both, kept, strict=True)),
        _ours(both),
    )
    return Exhibit("figure-6", "Figure 6: random sets, rho = 10 to 90", panels, claims, notes)


def small_sets(law: Sweep, emoji: Sweep, plan: Plan) -> Exhibit:
    """Figure 7: rho from 1 to 10."""
    panels = (*pair(law, "ab", "Zipf, eps = 1", _AXES), *pair(emoji, "cd", "emoji, eps = 1", _AXES))
    notes = (f"As Figure 6, from the same collections; {plan.sets} random sets a run.",)
    both = (("Zipf", law), ("emoji", emoji))
    claims = (
        *(_growing(label, sweep) for label, sweep in both),
        *(_cuts(label, sweep) for label, sweep in both),
        *(_best(label, sweep) for label, sweep in both),
        _ours(both),
    )
    return Exhibit("figure-7", "Figure 7: random sets, rho = 1 to 10", panels, claims, notes)


def fixed_sets(fixed: Sweep, emoji: Emoji, plan: Plan) -> Exhibit:
    """Figure 8: the emoji's own categories."""
    sizes = np.array([len(places) for places in emoji.sets])
    noise = np.sqrt(sizes * emoji.people * OLH(1.0, len(emoji.held)).noise.variance(0.0))
    seen = int((np.array([emoji.held[places].sum() for places in emoji.sets]) > noise).sum())
    frequent = f"{seen} of the {len(sizes)} sets hold more people than the noise of Base at eps = 1"
    panels = pair(fixed, "ab", "emoji, fixed sets", ("eps", "mean squared error"))
    notes = (
        f"{HOW} {plan.runs} runs. {len(sizes)} sets of {np.mean(sizes):.1f} emoji on average (the paper: 68 of 10.4), "
        f"{int((sizes == 1).sum())} of them of a single one.",
    )
    left = fixed.best(LEFT)
    early = [i for i, epsilon in enumerate(fixed.x) if epsilon < 3]
    below = fixed.only(early)
    best, cut = fixed.best(), fixed.over_best("norm-cut")
    ours = fixed.over_best("auto")
    claims = (
        Claim(
            "Post-Pos works best of the methods on the left (here: at every eps)",
            _by_point(fixed, left) + f"; Post-Pos over the best of them {_span(fixed.over_best('post-pos', LEFT))}; "
            f"{frequent}",
            not fixed.beaten("post-pos", LEFT),
        ),
        Claim(
            "Norm-Cut performs even better than Post-Pos for eps < 3 (here: at every such eps)",
            f"Norm-Cut over Post-Pos {_span(below.ratio('norm-cut', 'post-pos'))}",
            not below.beaten("norm-cut", ["post-pos"]),
        ),
        Claim(
            "Norm-Cut is the best of the ten for eps < 3 (here: at every such eps)",
            f"{_by_point(fixed, best)}; Norm-Cut over the best {_span(cut[early])} for eps < 3, {_span(cut)} in all",
            not below.beaten("norm-cut", PAPER_METHODS),
        ),
        Claim(
            "(ours) The learned prior with Norm-Sub has at most 1.25 times the error of the best of the ten",
            f"{_span(ours)} times; so do others that leave something to rare values, Norm-Sub "
            f"{_span(fixed.over_best('norm-sub'))}, PowerNS {_span(fixed.over_best('power-ns'))} times",
            bool(ours.max() < 1.25),
        ),
    )
    return Exhibit("figure-8", "Figure 8: fixed sets of emoji", panels, claims, notes)


def _span(values: Sequence[float] | np.ndarray) -> str:
    low, high = float(min(values)), float(max(values))
    return f"{low:.2f} to {high:.2f}" if high < 100 else f"{brief(low)} to {brief(high)}"


def _by_point(sweep: Sweep, best: Sequence[str]) -> str:
    """Where each method is the best."""
    won = {name: [f"{x:g}" for x, b in zip(sweep.x, best, strict=True) if b == name] for name in dict.fromkeys(best)}
    return "the best: " + ", ".join(f"{LABELS[name]} at {' '.join(points)}" for name, points in won.items())


def _at_ninety(label: str, sweep: Sweep) -> Claim:
    at = sweep.x.index(90.0)
    gains = {name: float(sweep.ratio(name, "power-ns")[at]) for name in _NOT_NORMED}
    norm = float(sweep.ratio("base", "norm")[at])
    return Claim(
        f"At rho = 90 PowerNS is at least 100 times better than any method that does not normalise, {label}",
        ", ".join(f"{LABELS[name]} {brief(gain)}" for name, gain in gains.items()) + " times its error; "
        f"adding up by itself saves a factor of 10, by analysis (Base over Norm: {norm:.1f}); "
        f"the ratio of Base has a standard error of {float(sweep.ratio_error('base', 'power-ns')[at]):.1f}",
        min(gains.values()) >= 100,
    )


def _symmetric(label: str, sweep: Sweep) -> Claim:
    places = [(i, sweep.x.index(100 - at)) for i, at in enumerate(sweep.x) if at < 50]
    ratios = {
        name: max(abs(float(np.log(sweep.mean(name)[j] / sweep.mean(name)[i]))) for i, j in places) for name in _NORMED
    }
    worst = max(ratios, key=lambda name: ratios[name])
    plain = float(sweep.mean("base")[places[0][1]] / sweep.mean("base")[places[0][0]])
    return Claim(
        f"The errors of methods that normalise are symmetric about rho = 50, {label} (here: within 25 %, as the sets "
        "are random)",
        f"errors at rho and 100 - rho differ by a factor of at most {np.exp(ratios[worst]):.2f} ({LABELS[worst]}); "
        f"Base has {plain:.1f} times the error at {sweep.x[places[0][1]]:g} that it has at {sweep.x[places[0][0]]:g}",
        bool(ratios[worst] < np.log(1.25)),
    )


def _best(label: str, sweep: Sweep) -> Claim:
    others = [name for name in PAPER_METHODS if name != "power-ns"]
    ratios = 1 / sweep.over_best("power-ns", others)
    lost = sweep.beaten("power-ns", others)
    return Claim(
        f"PowerNS is the best of the ten on random sets, {label} (here: at every rho)",
        f"the best of the others has {_span(ratios)} times its error"
        + (f"; better: {', '.join(lost)}" if lost else ""),
        not lost,
    )


def _orders(label: str, sweep: Sweep, kept: float) -> Claim:
    post, cut = sweep.ratio("post-pos", "base"), sweep.ratio("base-cut", "base")
    worst = [max(PAPER_METHODS, key=lambda name: sweep.mean(name)[i]) for i in range(len(sweep.x))]
    return Claim(
        f"Base-Pos is worse than other methods, Post-Pos slightly better than Base, and Base-Cut better than Base, "
        f"{label} (here: at every rho; slightly is at most as bad)",
        f"the worst is {' or '.join(LABELS[name] for name in dict.fromkeys(worst))}; Post-Pos over Base {_span(post)}; "
        f"Base-Cut over Base {_span(cut)}: what it keeps adds up to {kept:.2f} only",
        bool(set(worst) == {"base-pos"} and post.max() <= 1 and cut.max() < 1),
    )


def _growing(label: str, sweep: Sweep) -> Claim:
    falls = [LABELS[name] for name in PAPER_METHODS if (np.diff(sweep.mean(name)) < 0).any()]
    growth = {name: float(sweep.mean(name)[-1] / sweep.mean(name)[0]) for name in PAPER_METHODS}
    return Claim(
        f"The errors of all methods increase with rho from 1 to 10, {label} (here: at every step)",
        f"from rho = {sweep.x[0]:g} to {sweep.x[-1]:g} by factors of {_span(list(growth.values()))}"
        + (f"; not at every step: {', '.join(falls)}" if falls else ""),
        not falls,
    )


def _cuts(label: str, sweep: Sweep) -> Claim:
    ratio = sweep.ratio("norm-cut", "base-cut")
    beyond = [i for i, at in enumerate(sweep.x) if at >= 2]
    return Claim(
        f"Norm-Cut is better than Base-Cut for rho >= 2, {label}",
        f"Norm-Cut over Base-Cut {_span(ratio[beyond])} for rho >= 2, {ratio[0]:.2f} at rho = {sweep.x[0]:g}",
        not sweep.only(beyond).beaten("norm-cut", ["base-cut"]),
    )


def _ours(both: Sequence[tuple[str, Sweep]]) -> Claim:
    ratios = {label: sweep.over_best("auto") for label, sweep in both}
    return Claim(
        "(ours) The learned prior with Norm-Sub has at most 1.25 times the error of the best of the ten",
        "; ".join(f"{label} {_span(ratio)} times" for label, ratio in ratios.items()),
        max(float(ratio.max()) for ratio in ratios.values()) < 1.25,
    )
