"""Figures 4.2 to 4.6 of the thesis, PEM, its rivals and its variants; and what was asked of PEM beyond them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from veil import simulate
from veil.domain import Bits, Text
from veil.hitters import PEM
from veil.metrics import f1
from veil_papers.common import sweep
from veil_papers.common.claims import Says, by_point, each
from veil_papers.common.exhibits import Claim, Panel, Parts, exhibit
from veil_papers.common.sweep import Scores, Sweep, known
from veil_papers.heavy_hitters import searching as hh
from veil_papers.heavy_hitters.searching import FAINT, HOW, OURS, PAPER, RIVALS, SYNTHETIC, Crowd, Method, Plan, Source

Measured = dict[str, dict[str, Sweep]]  # for each data set F1, NCR and Var

_NOTE = (
    "PEM is the thesis's (k prefixes kept, equal groups, 2^20 queries); ours keeps 2k (4k for text), asks twice "
    "as many in the last group and fits the trie of bits. PEM1, SPM and HASH are the improved versions of section "
    "4.4.1: OLH, people split, segments as long as 2^20 queries allow. On 160 bits SPM gets segments of 32 bits, "
    "which no collector could count; that helps SPM. PrivTrie asks each person once (the thesis's asks several "
    "times, which costs more than eps when a value is replaced); without threshold it asks a level's whole share "
    "and keeps the k best."
)
_ASKED = {"names": 0.85, "words": 0.83}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def measure_by(axis: str, sources: dict[str, Source], plan: Plan, seed: int) -> Measured:
    """Everything at k = 16 by "eps", or at eps = 2 by "k"."""
    crowds: dict[str, hh.Crowds] = {SYNTHETIC: partial(hh.random_strings, plan.people[SYNTHETIC])}
    crowds |= {name: partial(source.crowd, plan.people[name]) for name, source in sources.items()}
    found, of_k = {}, axis == "k"
    figure, drawn, on_text = (3, plan.tops, plan.text_tops) if of_k else (2, plan.epsilons, plan.text_epsilons)
    for place, (name, crowd_of) in enumerate(crowds.items()):
        text = name != SYNTHETIC
        points = [(float(x), 2.0 if of_k else x, int(x) if of_k else 16) for x in (on_text if text else drawn)]
        methods, runs = hh.some(plan.methods if text else hh.IMPROVED), plan.few if of_k else plan.runs
        what, runs = f"Figure 4.{figure}: {name}", plan.text_runs if text else runs
        found[name] = hh.measure(what, crowd_of, points, methods, runs, [seed, figure, place], plan.watch)
    return found


def _panels(found: Measured, x_label: str, title: str) -> tuple[Panel, ...]:
    return tuple(
        scores[score].panel(f"({letter}) {name}, {title}", x_label, score, faint=FAINT, y_log=False)
        for letters, (name, scores) in zip(("ab", "cd", "ef"), found.items(), strict=True)
        for letter, score in zip(letters, ("F1", "NCR"), strict=True)
    )


def _best(found: Measured, axis: str) -> Iterator[Claim]:
    for name, scores in found.items():
        says = f"PEM performs best at every {axis}, {name} (here: no rival is better by two standard errors)"
        yield Says(says).not_below([scores["F1"]], PAPER, RIVALS)


@exhibit
def by_epsilon(found: Measured, plan: Plan) -> Parts:
    """Figure 4.2: by eps, k = 16."""
    yield from _panels(found, "eps", "k = 16")
    yield from (HOW, _NOTE)
    yield f"{plan.runs} runs on random strings, {plan.text_runs} on text; bars are standard deviations."
    most = max(plan.text_epsilons)
    yield from _best(found, "eps")
    urls, queries = (found[name]["F1"].each_at(most) for name in (hh.URLS, hh.QUERIES))
    says = f"URL data at eps = {most:g}: PEM reaches F1 = 0.9 (here: at least 0.8)"
    yield Says(says).given(each(urls), urls[PAPER] >= 0.8)
    says = f"URL data at eps = {most:g}: the others find only two of 16 (here: F1 at most 0.2), PrivTrie none"
    yield Says(says).given(each(urls), all(urls[name] <= 0.2 for name in RIVALS[:-1] if name in urls))
    yield Says(f"(ours) The default finds more on text at eps = {most:g} than the thesis's PEM").given(
        f"F1 {urls[OURS]:.2f} against {urls[PAPER]:.2f} (160 bits), {queries[OURS]:.2f} against {queries[PAPER]:.2f} "
        "(48 bits)",
        urls[OURS] > urls[PAPER] and queries[OURS] > queries[PAPER],
    )
    scores = found[SYNTHETIC]["F1"]
    yield Says("(goal) The thesis's PEM at eps = 2: F1 at least 0.93").reaches(scores, PAPER, 2.0, 0.93)
    yield Says("(goal) Our default at eps = 2: F1 at least 0.96").reaches(scores, OURS, 2.0, 0.96)
    for name in (PAPER, OURS):
        says = f"(goal) {name}: never below improved PEM1, SPM, HASH and PrivTrie (here: by two standard errors)"
        yield Says(says).not_below([scores], name, RIVALS)
        ahead = {rival: scores.at(name, 1.0) - scores.at(rival, 1.0) for rival in ("HASH", "PEM1", "SPM")}
        right = ahead["HASH"] >= 0.05 and min(ahead["PEM1"], ahead["SPM"]) >= 0.25
        says = f"(goal) {name} at eps = 1: 0.05 above HASH, 0.25 above PEM1 and SPM"
        yield Says(says).given(each(ahead, "+.2f"), right)


@exhibit
def by_top(found: Measured, plan: Plan) -> Parts:
    """Figure 4.3: by k, eps = 2."""
    yield from _panels(found, "k", "eps = 2")
    yield from (HOW, _NOTE)
    yield f"SPM up to k = 16, HASH up to 32 (16 on text), for their cost. {plan.few} runs, on text {plan.text_runs}."
    yield from _best(found, "k")
    small = found[SYNTHETIC]["F1"].only([k for k in found[SYNTHETIC]["F1"].x if k <= 32])
    says = "On random strings PEM has almost full utility up to k = 30 (here: F1 at least 0.9 up to k = 32)"
    yield Says(says).given(by_point(small.x, small.mean(PAPER), axis="k"), small.mean(PAPER).min() >= 0.9)
    says = "Utility decreases with k (here: PEM's F1 is smaller at the largest k than at the smallest)"
    yield Says(says).moves({name: scores["F1"] for name, scores in found.items()}, PAPER, rises=False, shown=".2f")


@exhibit
def text(sources: dict[str, Source], plan: Plan, seed: int) -> Parts:
    """Text: names and words (ours), F1 by eps."""
    yield f"{HOW} {plan.runs} runs, k = 16."
    yield "Letters known: candidates have English letters alone, with up to 2^22 queries; reports are the same."
    people, points = plan.people["text"], [(e, e, 16) for e in sorted({*plan.text_epsilons, 3.0})]
    for place, (name, source) in enumerate(sources.items()):
        letters = _LETTERS + (_LETTERS.upper() if name == "names" else "")
        methods = hh.some((PAPER, OURS)) | {hh.LETTERED: _lettered(letters)}
        crowd_of, what = partial(source.crowd, people), f"Text: {name}"
        found = hh.measure(what, crowd_of, points, methods, plan.runs, [seed, 6, place], plan.watch)["F1"]
        yield found.panel(f"({'ab'[place]}) {name}, 48 bits", "eps", "F1", faint=FAINT, y_log=False)
        says = f"(goal) {name.capitalize()} of 48 bits, {people:,} people, eps = 3: F1 at least {_ASKED[name]}"
        others = f"; thesis's PEM {found.at(PAPER, 3.0):.2f}, letters known {found.at(hh.LETTERED, 3.0):.2f}"
        yield Says(f"{says} (here: our default)").reaches(found, OURS, 3.0, _ASKED[name], others)


def _lettered(letters: str) -> Method:
    return lambda eps, domain, k, people: PEM(eps, domain, k, 1 << 22, alphabet=letters)


@exhibit
def real_reports(plan: Plan, seed: int) -> Parts:
    """Real reports: the same searches beside drawn supports."""
    yield f"PEM with 2^13 queries; {plan.real_runs} runs. `simulate` randomizes, sends, decodes and counts."
    epsilons, people = (2.0, 4.0), 50_000

    def trial(place: int, run: int) -> Scores:
        crowd, pem = hh.random_strings(people, run, bits=32), PEM(epsilons[place], Bits(32), 8, 1 << 13)
        real = simulate(pem, np.repeat(crowd.codes, crowd.counts), seed=run)
        made = {"drawn": hh.search(pem, crowd, [seed, 7, place, run]), "reports": real}
        return {"F1": {name: f1(hh.found_codes(of), crowd.top(8)) for name, of in made.items()}}

    found = sweep.measure("Real reports", plan.watch, epsilons, plan.real_runs, trial)["F1"]
    says = "Drawn supports are as good as real reports, and no better (here: F1 within three standard errors)"
    yield Says(says).same(found, "reports", "drawn", 1e-9)
    yield found.panel(f"{people:,} people, 32 bits, k = 8", "eps", "F1", y_log=False)


_THETA, _SCALE = 0.023, 0.05
_CHOSEN = (PAPER, OURS, "PEM1", "SPM", "HASH")
_SPLIT = ("HASH", "HASH, original", "SPM", "SPM, original")


def _crowds(plan: Plan) -> Callable[[int], Crowd]:
    return partial(hh.random_strings, plan.people[SYNTHETIC])


@exhibit
def thresholds(plan: Plan, seed: int) -> Parts:
    """Figure 4.4: values above a threshold."""
    yield f"{HOW} {plan.few} runs; SPM up to k = 16."
    yield "k is how many values of the law lie above theta; of its k values a method returns those estimated above it."

    def above(points: list[tuple[float, float, float]], place: int) -> Sweep:
        # k is how many values of the exponential law are as frequent as theta
        counts = [1 + int(math.log((1 - math.exp(-_SCALE)) / theta) / _SCALE) for *_, theta in points]
        asked = [(x, epsilon, k) for (x, epsilon, _), k in zip(points, counts, strict=True)]
        thetas, draws = [theta for *_, theta in points], [seed, 4, place]
        found = hh.measure("Figure 4.4", _crowds(plan), asked, hh.some(_CHOSEN), plan.few, draws, plan.watch, thetas)
        return found["F1"]

    by_eps = above([(e, e, _THETA) for e in plan.epsilons], 0)
    by_theta = [above([(theta, e, theta) for theta in plan.thetas], 1 + i) for i, e in enumerate((1.0, 2.0))]
    yield by_eps.panel(f"(a) theta = {_THETA}", "eps", "F1", faint=FAINT, y_log=False)
    for letter, epsilon, found in zip("bc", (1, 2), by_theta, strict=True):
        yield found.panel(f"({letter}) eps = {epsilon}", "theta", "F1", faint=FAINT, y_log=False)
    rivals, at_two = ("PEM1", "SPM", "HASH"), by_eps.each_at(2.0)
    says = "PEM performs better than the others with a threshold (here: no rival is better by two standard errors)"
    yield Says(says).not_below((by_eps, *by_theta), PAPER, rivals)
    says = "At eps = 2 and theta = 0.023 PEM is much better (here: by 0.1 in F1)"
    yield Says(says).given(each(at_two), at_two[PAPER] > 0.1 + max(at_two[name] for name in rivals))


def _stepped(step: int) -> Method:
    def method(epsilon: float, domain: Bits | Text, k: int, people: int) -> PEM:
        groups = -(-(domain.bits - (k - 1).bit_length()) // step)
        return PEM(epsilon, domain, k, hh.BUDGET, keep=k, groups=groups, fit=False, last=1)

    return method


def _shared(last: int) -> Method:
    return lambda epsilon, domain, k, people: PEM(epsilon, domain, k, hh.BUDGET, keep=k, fit=False, last=last)


_SHARES = {f"last group {n} times": _shared(n) for n in (1, 2, 3)}


def measure_splits(plan: Plan, seed: int) -> dict[str, Sweep]:
    """HASH and SPM as they were and with people split, at k = 16."""
    points, methods = [(e, e, 16) for e in plan.split_epsilons], hh.some((*_SPLIT, PAPER, "PEM1"))
    return hh.measure("Figures 4.5 and 4.6", _crowds(plan), points, methods, plan.few, [seed, 5, 0], plan.watch)


def measure_steps(plan: Plan, seed: int) -> dict[str, Sweep]:
    """PEM with steps of so many bits, and with other shares for the last group."""
    points, steps = [(e, e, 16) for e in plan.step_epsilons], {f"step {step}": _stepped(step) for step in plan.steps}
    return hh.measure("Figure 4.5: steps", _crowds(plan), points, steps | _SHARES, plan.runs, [seed, 5, 1], plan.watch)


@exhibit
def design(splits: Sweep, steps: Sweep, plan: Plan) -> Parts:
    """Figure 4.5: design choices."""
    names = [f"step {step}" for step in plan.steps]
    yield splits.panel("(a) splitting people or the budget", "eps", "F1", _SPLIT, faint=FAINT, y_log=False)
    yield steps.panel("(b) bits of a step", "eps", "F1", names, y_log=False)
    yield steps.panel("(c) shares of the groups", "eps", "F1", _SHARES, y_log=False)
    yield f"{HOW} k = 16. (a) {plan.few} runs, (b) and (c) {plan.runs}."
    yield "PEM assumes nothing about the distribution; an assumption would change the last group's share: panel (c)."
    split, stepped = splits.each_at(1.2), steps.each_at(0.9)
    says = "At eps = 1.2 the original HASH has F1 below 0.2, with people split nearly 0.8 (here: 0.65 to 0.9)"
    yield Says(says).given(each(split), split["HASH, original"] < 0.2 and 0.65 <= split["HASH"] <= 0.9)
    yield Says("Splitting people is better than splitting the budget, HASH and SPM (here: at no eps worse)").given(
        "; ".join(f"{name} {by_point(splits.x, splits.mean(name))}" for name in _SPLIT),
        all((splits.mean(name) >= splits.mean(f"{name}, original")).all() for name in ("HASH", "SPM")),
    )
    yield Says("At eps = 0.9 steps of 2 bits have F1 = 0.4, steps of 10 bits 0.8 (here: within 0.1)").given(
        f"{stepped['step 2']:.2f}, {stepped['step 10']:.2f}",
        abs(stepped["step 2"] - 0.4) <= 0.1 and abs(stepped["step 10"] - 0.8) <= 0.1,
    )
    # F1 rises from step to step, up to two standard errors, and clearly from the shortest to the longest.
    at = steps.only((1.0,))
    gaps = [[known(part[0]) for part in at.gap(longer, shorter)] for shorter, longer in pairwise(names)]
    whole, error = (known(part[0]) for part in at.gap(names[-1], names[0]))
    yield Says("(goal) F1 rises with the step length at eps = 1 (here: no step falls by two standard errors)").given(
        each({name.removeprefix("step "): at.at(name, 1.0) for name in names}),
        all(gap >= -2 * off for gap, off in gaps) and whole > 4 * error,
    )
    apart = max(abs(steps.mean(a) - steps.mean(b)).max() for a in _SHARES for b in _SHARES)
    says = "Other assumptions about the distribution hardly matter (here: shares of the last group, F1 within 0.1)"
    yield Says(says).given(f"by at most {apart:.2f}", apart <= 0.1)


@exhibit
def errors(splits: Sweep, found: dict[str, dict[str, Sweep]]) -> Parts:
    """Figure 4.6: squared error of the estimates."""
    # of the counts of values that were found
    methods, most = (PAPER, "PEM1", "HASH, original", "SPM, original"), splits.x[-1]
    yield splits.panel("(a) as in the thesis: HASH and SPM split eps", "eps", "Var", methods, faint=FAINT)
    yield found[SYNTHETIC]["Var"].panel("(b) people split", "eps", "Var", _CHOSEN, faint=FAINT)
    yield f"{HOW} k = 16. Counts of people; no point where a method found nothing."
    yield "Only values found count, so that where few are found they were found for being large."
    var = {name: splits.at(name, most) for name in methods}
    shown, here = each(var, hh.squared), f"at eps = {most:g}"
    says = f"HASH, with eps/2 for its test, has a smaller variance than SPM, with eps/3 (here: {here})"
    yield Says(says).given(shown, var["HASH, original"] < var["SPM, original"])
    says = f"PEM1, whose last group is smaller, has a higher variance than PEM (here: {here})"
    yield Says(says).given(shown, var["PEM1"] > var[PAPER])
    says = f"PEM's last group alone estimates about as well as HASH (here: within a factor of 3 {here})"
    yield Says(says).given(shown, 1 / 3 <= var[PAPER] / var["HASH, original"] <= 3)
