"""What Calibrate's section IV says about Figures 4 to 9, held against the simulated collections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from veil.mechanisms import OUE
from veil_papers.calibrate.trials import (
    BEST,
    CALIBRATE,
    LEARNED,
    LIKELIHOOD,
    PROBABILITY,
    RAW,
    SWEPT,
    THEN_ZERO,
    ZERO,
    ZERO_WITH_OUE,
    Collections,
    Noise,
)
from veil_papers.common.exhibits import Claim, brief

__all__ = ["PRINTED", "about_budgets", "about_errors", "about_noise", "about_sweep"]

PRINTED = {"Kosarak": {1.0: 0.16, 5.0: 0.97}, "Retail": {1.0: 0.024, 5.0: 0.65}}
"""The relative improvements upon OUE-Zero that the paper prints, by eps."""

_PEOPLE, _PAGES, _PRINTED_VARIANCE = 8_019_015, 41_270, 5_434
_CLOSE = 0.05


def about_noise(kosarak: Collections) -> tuple[Claim, ...]:
    """Figure 4."""
    shown = (kosarak.plan.grid[0], SWEPT)
    noises = {epsilon: [trial.noise for trial in kosarak.trials[epsilon]] for epsilon in shown}
    runs, values = kosarak.plan.runs, len(kosarak.counts.held) * kosarak.plan.runs
    moments, near = [], True
    for epsilon, found in noises.items():
        variance = kosarak.variance(epsilon)
        mean, ratio = (float(np.mean([getattr(noise, part) for noise in found])) for part in ("mean", "variance"))
        ratio /= variance
        off = (mean / np.sqrt(variance / values), (ratio - 1) / np.sqrt(2 / values))
        near = near and max(map(abs, off)) < 3
        moments.append(
            f"eps = {epsilon:g}: mean {mean:.2f} ({off[0]:+.1f} standard errors), variance {ratio:.4f} of the "
            f"predicted {brief(variance)} ({off[1]:+.1f})"
        )
    return (
        Claim(
            "The noise has mean 0 and the variance n q (1 - q) / (p - q)^2 (here: within three standard errors)",
            "; ".join(moments),
            near,
        ),
        _normal(noises, runs),
        _printed_variance(noises[shown[0]][0], shown[0]),
    )


def _normal(noises: dict[float, list[Noise]], runs: int) -> Claim:
    from scipy.stats import binom

    most = int(binom.ppf(0.99, runs, 0.05))
    refused = {epsilon: sum(noise.p_value < 0.05 for noise in found) for epsilon, found in noises.items()}
    rivals = {epsilon: sum(noise.rival < 0.05 for noise in found) for epsilon, found in noises.items()}
    listed = " and ".join(
        f"{refused[e]} at eps = {e:g} ({rivals[e]} against a normal with a fifth more variance)" for e in noises
    )
    return Claim(
        f"The noise is normal (here: a Kolmogorov-Smirnov test at 5 % rejects it in at most {most} of {runs} "
        "collections, as chance would)",
        f"rejected in {listed}",
        max(refused.values()) <= most,
    )


def _printed_variance(noise: Noise, epsilon: float) -> Claim:
    predicted = OUE(1.0, _PAGES).noise.variance(0.0) * _PEOPLE
    return Claim(
        f"The predicted variance is {_PRINTED_VARIANCE:,}, and the fitted one 5,405 with a mean of -3.2",
        f"with the paper's {_PEOPLE:,} clicks and eps = 1 the predicted variance is {brief(predicted)} and its square "
        f"root {np.sqrt(predicted):,.1f}: the paper prints the standard deviation; in our first collection at eps = "
        f"{epsilon:g} the fitted standard deviation is {np.sqrt(noise.variance):,.0f} with a mean of {noise.mean:.1f}",
        abs(predicted / _PRINTED_VARIANCE - 1) < _CLOSE,
    )


def about_errors(both: Sequence[Collections]) -> tuple[Claim, ...]:
    """Figure 7."""
    plan = both[0].plan
    return (
        *(_lower(data, CALIBRATE, f"{data.name}: OUE-Calibrate") for data in both),
        *(_lower(data, LEARNED, f"(ours) {data.name}: OUE-Calibrate with the learned prior") for data in both),
        *(_percentages(both, epsilon) for epsilon in plan.grid if epsilon in PRINTED[both[0].name]),
        *([_other_reading(both)] if plan.likely else []),
        _grows(both),
        _magnitudes(both),
        _then_zero(both),
        *(_learned(data) for data in both),
    )


def _lower(data: Collections, method: str, who: str) -> Claim:
    gains = {e: data.saving(method, e) for e in data.plan.grid}
    return Claim(
        f"{who} has a lower error than OUE-Zero at every eps (here: by two standard errors)",
        f"lower by {', '.join(f'{_points(gain)} (eps = {e:g})' for e, gain in gains.items())}",
        all(gain > 2 * error for gain, error in gains.values()),
    )


def _points(saving: tuple[float, float]) -> str:
    return f"{saving[0] * 100:.1f} \N{PLUS-MINUS SIGN} {saving[1] * 100:.1f} %"


def _percentages(both: Sequence[Collections], epsilon: float) -> Claim:
    printed = {data.name: PRINTED[data.name][epsilon] for data in both}
    gains = {data.name: data.saving(CALIBRATE, epsilon) for data in both}
    listed = " and ".join(f"{_points(gain)} on {name}" for name, gain in gains.items())
    bounds = " and ".join(f"{_points(data.saving(BEST, epsilon))}" for data in both)
    unclear = [name for name, (gain, error) in gains.items() if abs(gain) < 2 * error]
    return Claim(
        f"At eps = {epsilon:g} the improvement upon OUE-Zero is {_percent(printed)} (here: within 5 points)",
        f"{listed} of OUE-Zero's error; with the true distribution of counts as prior, the most that any prior can "
        f"save, {bounds}" + "".join(f"; what is saved on {name} cannot be told from nothing" for name in unclear),
        all(abs(gains[name][0] - share) < _CLOSE for name, share in printed.items()),
    )


def _percent(shares: dict[str, float]) -> str:
    return " and ".join(f"{share * 100:.2g} % on {name}" for name, share in shares.items())


def _other_reading(both: Sequence[Collections]) -> Claim:
    def excess(data: Collections, name: str, epsilon: float) -> float:
        return 1 / (1 - data.gain(name, epsilon)) - 1

    fitted, plain = (
        {(data.name, e): excess(data, name, e) for data in both for e in data.plan.likely}
        for name in (LIKELIHOOD, CALIBRATE)
    )

    def listed(found: dict[tuple[str, float], float]) -> str:
        return ", ".join(f"{share:.1%} ({name}, eps = {e:g})" for (name, e), share in found.items())

    return Claim(
        "(ours) Read as how much larger OUE-Zero's error is than Calibrate's, with the power law fitted by maximum "
        "likelihood, the four percentages come out (here: within 5 points)",
        f"{listed(fitted)}; with the mean-variance method {listed(plain)}",
        all(abs(share - PRINTED[name][e]) < _CLOSE for (name, e), share in fitted.items()),
    )


def _grows(both: Sequence[Collections]) -> Claim:
    gains = {data.name: [data.gain(CALIBRATE, e) for e in data.plan.grid] for data in both}
    return Claim(
        "The improvement grows with eps",
        "; ".join(f"{name} {', '.join(f'{gain:.0%}' for gain in found)}" for name, found in gains.items()),
        all(found == sorted(found) for found in gains.values()),
    )


def _magnitudes(both: Sequence[Collections]) -> Claim:
    listed, least = [], np.inf
    for data in both:
        raw = {e: float(np.mean(data.errors(RAW, e))) for e in data.plan.grid}
        times = {e: [raw[e] / float(np.mean(data.errors(name, e))) for name in (ZERO, CALIBRATE)] for e in raw}
        least = min(least, *(min(pair) for pair in times.values()))
        listed.append(
            f"{data.name}: OUE has "
            + ", ".join(f"{zero:.1f} and {own:.1f} (eps = {e:g})" for e, (zero, own) in times.items())
        )
    return Claim(
        "OUE-Zero and OUE-Calibrate outperform OUE by orders of magnitude (here: at least one, at every eps)",
        f"{'; '.join(listed)} times the error of OUE-Zero and OUE-Calibrate",
        least >= 10,
    )


def _then_zero(both: Sequence[Collections]) -> Claim:
    listed, most = [], 0.0
    for data in both:
        own = {e: float(np.mean(data.errors(CALIBRATE, e))) for e in data.plan.grid}
        changes = {
            rule: [float(np.mean(data.errors(rule, e))) / own[e] - 1 for e in data.plan.grid]
            for rule in (THEN_ZERO, ZERO_WITH_OUE)
        }
        most = max(most, *map(abs, changes[THEN_ZERO]))
        first, second = (", ".join(f"{change:+.0%}" for change in found) for found in changes.values())
        listed.append(f"{data.name} {first} (where OUE's estimate is below it: {second})")
    return Claim(
        "Setting what is below the significance threshold after OUE-Calibrate to zero hardly changes its error "
        "(here: by less than 5 %)",
        f"error at eps = {', '.join(f'{e:g}' for e in both[0].plan.grid)}: {'; '.join(listed)}. What Calibrate saves "
        "it saves below the threshold, where zero is a worse guess than the posterior mean",
        most < 0.05,
    )


def _learned(data: Collections) -> Claim:
    gains = {e: data.saving(LEARNED, e, CALIBRATE) for e in data.plan.grid}
    return Claim(
        f"(ours) {data.name}: the learned prior has a lower error than the power law at every eps (here: by two "
        "standard errors)",
        f"lower by {', '.join(f'{_points(gain)} (eps = {e:g})' for e, gain in gains.items())}; the true counts as "
        f"prior by {', '.join(f'{data.gain(BEST, e, CALIBRATE):.0%}' for e in data.plan.grid)}",
        all(gain > 2 * error for gain, error in gains.values()),
    )


def about_sweep(data: Collections) -> tuple[Claim, ...]:
    """Figures 5 and 6. An F-score is better where it leads on average and nowhere trails by two standard errors."""
    below = [factor for factor in data.plan.factors if factor <= 1]
    above = [factor for factor in data.plan.factors if factor > 1]
    return (
        _better(data, below, "at and below the significance threshold"),
        _better(data, above, "above the significance threshold"),
        _smaller(data),
        _more_precise(data, [(SWEPT, factor) for factor in data.plan.factors], "at every threshold"),
        _same(data, [(SWEPT, factor) for factor in (1.0, *above)], "At and above the significance threshold"),
        _zero_below(data, below),
        _rule(data, LEARNED, "the learned prior"),
        _rule(data, PROBABILITY, "the rule by posterior probability"),
    )


def about_budgets(data: Collections) -> tuple[Claim, ...]:
    """Figures 8 and 9."""
    leads = {e: data.lead(CALIBRATE, ZERO, e) for e in data.plan.grid}
    points = [(e, 1.0) for e in data.plan.grid]
    return (
        Claim(
            "At the significance threshold OUE-Calibrate has a better F-score than OUE-Zero at every eps (here: "
            "higher on average, nowhere lower by two standard errors)",
            f"higher by {', '.join(f'{_plus(lead)} (eps = {e:g})' for e, lead in leads.items())}",
            _ahead(leads.values()),
        ),
        _more_precise(data, points, "at every eps"),
        _same(data, points, "At the significance threshold"),
    )


def _plus(lead: tuple[float, float]) -> str:
    return f"{lead[0]:.4f} \N{PLUS-MINUS SIGN} {lead[1]:.4f}"


def _ahead(leads: Iterable[tuple[float, float]]) -> bool:
    found = np.array(list(leads))
    return bool(found[:, 0].mean() > 0 and (found[:, 0] > -2 * found[:, 1] - 1e-12).all())


def _better(data: Collections, factors: list[float], where: str) -> Claim:
    leads = {factor: data.lead(CALIBRATE, ZERO, SWEPT, factor) for factor in factors}
    lower = [f"at {factor:g} of it {_plus(lead)}" for factor, lead in leads.items() if lead[0] < 0]
    most, at = max((lead[0], factor) for factor, lead in leads.items())
    return Claim(
        f"OUE-Calibrate has a better F-score than OUE-Zero {where} (here: higher on average, nowhere lower by two "
        "standard errors)",
        f"higher by {np.mean([lead[0] for lead in leads.values()]):.4f} on average, by {most:.4f} at {at:g} of it; "
        + (f"not higher {', '.join(lower)}" if lower else "nowhere lower"),
        _ahead(leads.values()),
    )


def _smaller(data: Collections) -> Claim:
    leads = {factor: data.lead(CALIBRATE, ZERO, SWEPT, factor)[0] for factor in data.plan.factors}
    return Claim(
        "The improvement is more significant for smaller thresholds (here: larger at half the significance threshold "
        "than at it, and larger there than at twice)",
        ", ".join(f"{lead:+.3f} ({factor:g})" for factor, lead in leads.items()),
        leads[0.5] > leads[1.0] > leads[2.0],
    )


def _more_precise(data: Collections, points: list[tuple[float, float]], where: str) -> Claim:
    gains = []
    for epsilon, factor in points:
        own, raw = data.hits(CALIBRATE, epsilon, factor), data.hits(RAW, epsilon, factor)
        parts = [(a.precision - b.precision, a.recall - b.recall) for a, b in zip(own, raw, strict=True)]
        gains.append(np.mean(parts, axis=0))
    precise, recalled = np.array(gains).T
    return Claim(
        f"OUE-Calibrate has a higher precision and a lower recall than OUE {where} (here: nowhere the other way round)",
        f"precision higher by {precise.min():.3f} to {precise.max():.3f}, recall lower by "
        f"{-recalled.max() + 0.0:.3f} to {-recalled.min():.3f}",
        bool((precise >= 0).all() and (recalled <= 0).all() and precise.mean() > 0 > recalled.mean()),
    )


def _same(data: Collections, points: list[tuple[float, float]], where: str) -> Claim:
    pairs = [(data.hits(RAW, *point), data.hits(ZERO, *point)) for point in points]
    alike = sum(raw == zero for raw, zero in pairs)
    return Claim(
        f"{where} OUE and OUE-Zero have the same precision, recall and F-score",
        f"they find the same in all runs at {alike} of {len(pairs)} points",
        alike == len(pairs),
        exact=True,
    )


def _zero_below(data: Collections, below: list[float]) -> Claim:
    hits = [data.hits(ZERO, SWEPT, factor) for factor in below]
    precision = [float(np.mean([hit.precision for hit in at])) for at in hits]
    recall = [float(np.mean([hit.recall for hit in at])) for at in hits]
    return Claim(
        "Below the significance threshold, the smaller the threshold, the higher the precision of OUE-Zero and the "
        "lower its recall",
        f"from {below[-1]:g} of it down to {below[0]:g}: precision {precision[-1]:.3f} to {precision[0]:.3f}, recall "
        f"{recall[-1]:.3f} to {recall[0]:.3f}",
        precision == sorted(precision, reverse=True) and recall == sorted(recall),
    )


def _rule(data: Collections, name: str, what: str) -> Claim:
    leads = {factor: data.lead(name, CALIBRATE, SWEPT, factor) for factor in data.plan.factors}
    low, high = (pick((lead[0], factor) for factor, lead in leads.items()) for pick in (min, max))
    return Claim(
        f"(ours) {what} has a better F-score than OUE-Calibrate at all thresholds (here: higher on average, nowhere "
        "lower by two standard errors)",
        f"higher by {np.mean([lead[0] for lead in leads.values()]):.4f} on average; from {low[0]:+.4f} at {low[1]:g} "
        f"of the significance threshold to {high[0]:+.4f} at {high[1]:g}",
        _ahead(leads.values()),
    )
