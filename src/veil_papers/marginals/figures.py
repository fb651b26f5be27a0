"""Figures 6.3 to 6.5: the noise that decides which views are asked, and the errors of all methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from veil import Categories, Record
from veil.marginals import CALM, noise_error
from veil_papers.common.claims import Says, by_point, each
from veil_papers.common.exhibits import Claim, Curve, Panel, Parts, brief, exhibit
from veil_papers.common.families import DRAWN
from veil_papers.common.sweep import Scores, Sweep, measure
from veil_papers.datasets import Records, Transactions
from veil_papers.marginals.parameters import sets_of
from veil_papers.marginals.runs import ADULT, KOSARAK, SEED, Case, M, Plan, binary_case, power, run_methods, sweep_case

BINARY = ((16, 8, 3), (16, 16, 3), (16, 32, 3), (18, 16, 6), (18, 32, 6), (18, 32, 8))
"""The settings of Figure 6.4: log2 of the people, m, k."""
READINGS = (0.4, 0.8, 1.2, 1.6, 2.0)
"""The eps at which both readings of CALM are compared."""
_THETA = 0.001
_X = "eps"
Cases = Mapping[str, tuple[Case, Sweep]]


@exhibit
def noise() -> Parts:
    """Figure 6.3: noise errors times k, n = 2^16, m = 8, k = 3."""
    n, m, k = 1 << 16, 8, 3
    epsilons = tuple(round(0.2 * i, 1) for i in range(1, 11))
    errors = {s: [k * noise_error(eps, 1 << s, s, m, n) for eps in epsilons] for s in range(2, 7)}
    curves = tuple(Curve(f"s = {s}", epsilons, tuple(values)) for s, values in errors.items())
    yield Panel("k NE by eps", _X, "k NE", curves)
    record = Record(tuple((f"a{i}", Categories.range(2)) for i in range(m)))
    chosen = {eps: sets_of(CALM(eps, record, k, users=n)) for eps in epsilons}
    sizes = {eps: set(map(len, sets)) for eps, sets in chosen.items()}
    small = [eps for eps in epsilons if eps <= 1.4]
    yield Says("With theta = 0.001 only s = 2 can be used for eps <= 1.4").exactly(
        f"k NE of s = 3: {by_point(small, errors[3][: len(small)], brief)}; CALM takes s = "
        f"{', '.join(str(max(sizes[eps])) for eps in small)}",
        all(error > _THETA for error in errors[3][: len(small)]) and all(sizes[eps] == {2} for eps in small),
    )
    last = {s: errors[s][-1] for s in (3, 4)}
    yield Says("At eps = 2 both s = 3 and s = 4 have k NE below theta: 0.00032 and 0.00076").exactly(
        each({f"s = {s}": error for s, error in last.items()}, ".5f"),
        abs(last[3] - 0.00032) < 1e-5 and abs(last[4] - 0.00076) < 1e-5,
    )
    yield Says("At eps = 2 CALM asks for 14 views of 4 attributes, which cover all triples").exactly(
        f"{len(chosen[2.0])} views of {max(sizes[2.0])} attributes", len(chosen[2.0]) == 14 and sizes[2.0] == {4}
    )


# -- Figure 6.4 --------------------------------------------------------------------------------------------------------


def binary_cases(sources: Mapping[str, Transactions], plan: Plan) -> Cases:
    """Every setting of Figure 6.4, on both data sets."""
    found = {}
    for number, (data, source) in enumerate(sources.items()):
        for place, setting in enumerate(BINARY):
            case = binary_case(data, source, plan, setting)
            found[case.label] = case, sweep_case(case, plan, 100 * number + place)
    return found


def both_readings(sources: Mapping[str, Transactions], plan: Plan) -> dict[str, Sweep]:
    """CALM read as in the thesis and by one graphical model: n = 2^18, m = 16, k = 3."""
    found = {}
    for number, (data, source) in enumerate(sources.items()):
        case = binary_case(data, source, plan, (18, 16, 3))

        def trial(at: int, run: int, case: Case = case, number: int = number) -> Scores:
            rng = np.random.default_rng([SEED, 900 + number, at, run])
            queries = case.queries(plan.queries, rng)
            made = run_methods(READINGS[at], case, rng, (M.CALM, M.GRAPHICAL))
            return {"SSE": {name: case.sse(answer, queries) for name, answer in made.items()}}

        found[data] = measure(f"Both readings: {data}", plan.watch, READINGS, plan.graphical_runs, trial)["SSE"]
    return found


def _panels(cases: Cases) -> Iterator[Panel]:
    for letter, (label, (_, sweep)) in zip("abcdefghijkl", cases.items(), strict=False):
        yield sweep.panel(f"({letter}) {label}", _X, "SSE", faint=M.OURS)


def _how(plan: Plan) -> str:
    return (
        f"{DRAWN} {plan.queries} random marginals, {plan.runs} runs ({plan.few} of methods that take long: more than "
        "4,000 questions or cells, EM, the graphical model); mean and standard deviation between runs. What FC, AM and "
        f"FT say is made non-negative by Norm-Sub, marginal by marginal. EM is asked for {plan.em_queries} of the "
        "marginals."
    )


@exhibit
def binary(cases: Cases, readings: dict[str, Sweep], plan: Plan) -> Parts:
    """Figure 6.4: errors on binary data."""
    yield from _panels(cases)
    yield _how(plan)
    yield (
        "AM and FT run where a question has at least eight people, FC and the graphical model up to 2^16 cells, "
        "and EM up to 2^16 cells for k below 6."
    )
    sweeps = {label: sweep for label, (_, sweep) in cases.items()}
    for label, (case, sweep) in cases.items():
        rivals = [name for name in M.RIVALS if name in sweep.runs]
        if rivals:
            yield Says(f"(goal) {label}: CALM is below {', '.join(rivals)} at every eps").not_above(
                sweep, M.CALM, rivals
            )
        for name, times in ((M.FT, 4), (M.AM, 10)):
            if case.m == 16 and name in sweep.runs:
                yield _times_below(f"(goal) {label}", sweep, name, times)
    ratios = {label: sweep.over(M.CALM, M.UNIFORM).max() for label, sweep in sweeps.items()}
    yield Says("(goal) CALM is below Uniform in every setting and at every eps").given(
        f"CALM over Uniform at most {each(ratios)}", max(ratios.values()) < 1
    )
    yield from _at_a_fifth(cases, plan)
    yield from _of_the_thesis(cases)
    if readings:
        yield from _readings(readings, plan)


def _times_below(begins: str, sweep: Sweep, name: str, times: float) -> Claim:
    says = f"{begins}: CALM is at least {times:g} times below {name} at every eps"
    return Says(says).times_above(sweep, name, M.CALM, times, ".1f")


def _at_a_fifth(cases: Cases, plan: Plan) -> Iterator[Claim]:
    """The one setting for which the thesis gives numbers."""
    case, sweep = next(pair for pair in cases.values() if pair[0].data == KOSARAK and (pair[0].m, pair[0].k) == (16, 3))
    if 0.2 not in sweep.x or plan.fewer > 1:
        return
    ours, theirs = sweep.at(M.CALM, 0.2), sweep.at(M.FT, 0.2)
    least = case.k * noise_error(0.2, 4, 2, case.m, case.people.people)
    yield Says("(goal) Kosarak, n = 2^16, m = 16, k = 3, eps = 0.2: CALM has an SSE of at most 0.06").given(
        f"{ours:.4f}", ours <= 0.06
    )
    yield Says("There CALM has 0.0055, 41 times below FT's 0.2266 (here: CALM within 1.5 times of that)").given(
        f"CALM {ours:.4f}, FT {theirs:.4f}, {theirs / ours:.1f} times. 0.0055 is not attainable: the thesis's own "
        f"noise term k NE of (6.4) is {least:.3f} there, with the smallest views, s = 2",
        ours <= 1.5 * 0.0055,
    )
    yield Says("There FT has 0.2266 (here: within a factor of 1.5)").given(
        f"{theirs:.4f}", 1 / 1.5 <= theirs / 0.2266 <= 1.5
    )


def _of_the_thesis(cases: Cases) -> Iterator[Claim]:
    """What section 6.3.2 says besides."""
    sweeps = {label: sweep for label, (_, sweep) in cases.items()}
    over = {label: sweep.over(M.FT, M.CALM) for label, sweep in sweeps.items() if M.FT in sweep.runs}
    most = np.concatenate(list(over.values()))
    yield Says(
        "For most settings FT is between one and two orders of magnitude above CALM (here: 10 to 100 times)"
    ).given(
        f"in {int(((most >= 10) & (most <= 100)).sum())} of {len(most)} cases; "
        + "; ".join(f"{label} {ratio.min():.1f} to {ratio.max():.1f}" for label, ratio in over.items()),
        ((most >= 10) & (most <= 100)).mean() > 0.5,
    )
    near = {
        label: min(sweep.over(name, M.UNIFORM)[0] for name in M.RIVALS if name in sweep.runs)
        for label, sweep in sweeps.items()
        if M.FT in sweep.runs
    }
    yield Says(
        "At the smallest eps all existing methods are close to Uniform, or worse (here: above half of it)"
    ).given(f"the best of FC, AM and FT over Uniform: {each(near)}", min(near.values()) > 0.5)
    em = {label: sweep.over(M.EM, M.UNIFORM) for label, sweep in sweeps.items() if M.EM in sweep.runs}
    worse = np.concatenate(list(em.values())) > 1
    yield Says("EM is often worse than Uniform (here: in more than half of the cases)").given(
        f"in {int(worse.sum())} of {len(worse)} cases", worse.mean() > 0.5
    )
    small = {label: sweep for label, (case, sweep) in cases.items() if case.m == 8}
    yield Says(
        "For m = 8, k = 3 errors are in the order of analysis: FT (93 Var0) below FC (256) below AM (448)"
    ).given(
        "; ".join(
            f"{label}: FC over FT {sweep.over(M.FC, M.FT).mean():.2f} (2.75 by analysis), AM over FC "
            f"{sweep.over(M.AM, M.FC).mean():.2f} (1.75)"
            for label, sweep in small.items()
        ),
        all((s.mean(M.FT) < s.mean(M.FC)).all() and (s.mean(M.FC) < s.mean(M.AM)).all() for s in small.values()),
    )
    pairs = {}
    for case, sweep in cases.values():
        if (case.m, case.k) == (8, 3):
            larger = next(s for c, s in cases.values() if c.data == case.data and (c.m, c.k) == (16, 3))
            pairs[case.data] = larger.mean(M.CALM) / sweep.mean(M.CALM)
    yield Says("With m = 16 CALM's error is similar to that with m = 8 (here: at most 4 times, k = 3)").given(
        "; ".join(f"{data} {ratio.min():.2f} to {ratio.max():.2f} times" for data, ratio in pairs.items()),
        all(ratio.max() <= 4 for ratio in pairs.values()),
    )


def _readings(readings: dict[str, Sweep], plan: Plan) -> Parts:
    """One model instead of patched marginals."""
    for letter, (data, sweep) in zip("mnopq", readings.items(), strict=False):
        yield sweep.panel(
            f"({letter}) {data}, n = {power((1 << 18) // plan.fewer)}, m = 16, k = 3", _X, "SSE", faint=M.OURS
        )
    for data, sweep in readings.items():
        ratio = sweep.over(M.GRAPHICAL, M.CALM)
        says = f"(goal) {data}, n = 2^18, m = 16, k = 3: the graphical reading has at most 0.6 of CALM's SSE"
        yield Says(f"{says}, mean over eps").given(
            f"{ratio.mean():.2f}: {by_point(sweep.x, ratio)}", ratio.mean() <= 0.6
        )
    yield f"Both readings have the same reports: {plan.graphical_runs} runs."


# -- Figure 6.5 --------------------------------------------------------------------------------------------------------


def other_cases(sources: Mapping[str, Records], plan: Plan) -> Cases:
    """Adult and US with at most 3 categories: the first 8 attributes and k = 3, all of them and k = 6."""
    found = {}
    for number, (data, source) in enumerate(sources.items()):
        for place, (bits, m, k) in enumerate(((16, 8, 3), (18, len(source.sizes), 6))):
            names = source.domain.names[:m]
            case = Case(data, source.only(names).resample((1 << bits) // plan.fewer, SEED), k)
            found[case.label] = case, sweep_case(case, plan, 300 + 100 * number + place)
    return found


@exhibit
def other(cases: Cases, plan: Plan) -> Parts:
    """Figure 6.5: errors on data that are not binary."""
    yield from _panels(cases)
    yield _how(plan)
    yield (
        "Attributes have at most 3 categories. BE is CALM after every attribute was written as bits; so is FT. BE runs "
        "for k = 3, as in the thesis. FT asks only for coefficients that touch at most k attributes: 1,789 where 8 "
        "attributes have 3 values each, and not the 14,893 of the thesis, so that it is better than there."
    )
    small = {label: pair for label, pair in cases.items() if pair[0].k == 3}
    for label, (case, sweep) in small.items():
        if case.data == ADULT:
            yield _times_below(f"(goal) {label}", sweep, M.AM, 3)
            yield _times_below(f"(goal) {label}, eps >= 1", sweep.only([x for x in sweep.x if x >= 1]), M.FC, 5)
    yield from _compared(cases, small)


def _compared(cases: Cases, small: Cases) -> Iterator[Claim]:
    """What section 6.3.3 says."""
    best = np.concatenate(
        [1 / s.over_best(M.CALM, [n for n in M.RIVALS if n in s.runs])[0] for _, s in cases.values() if M.AM in s.runs]
    )
    yield Says(
        "CALM is 1 to 2 orders of magnitude better than existing methods (here: the best of them, 10 to 100)"
    ).given(
        f"{best.min():.1f} to {best.max():.1f} times, 10 to 100 in {int(((best >= 10) & (best <= 100)).sum())} of "
        f"{len(best)} cases",
        ((best >= 10) & (best <= 100)).mean() > 0.5,
    )
    for label, (_, sweep) in small.items():
        says = f"{label}: FT is worse than FC and AM, as it writes attributes as bits"
        if M.FT in sweep.runs:
            ratios = {name: sweep.over(M.FT, name) for name in (M.FC, M.AM)}
            told = "; ".join(f"FT over {name} {r.min():.2f} to {r.max():.2f}" for name, r in ratios.items())
            yield Says(says).given(told, all(r.min() > 1 for r in ratios.values()))
        yield Says(f"{label}: CALM is better than BE at every eps").not_above(sweep, M.CALM, (M.BE,))
        uniform = sweep.over(M.CALM, M.UNIFORM)
        yield Says(f"(ours) {label}: CALM is below Uniform from eps = 0.6 on").given(
            by_point(sweep.x, uniform), all(r < 1 for x, r in zip(sweep.x, uniform, strict=True) if x >= 0.6)
        )
