"""What the Square Wave paper says about Figures 2 to 4, held against the measured errors."""

from __future__ import annotations

from collections.abc import Callable

from veil_papers.common.exhibits import Claim
from veil_papers.common.sweep import Errors, known, mostly, not_above, with_error
from veil_papers.square_wave.methods import (
    ADMM,
    AUTO,
    BETA,
    BINS,
    DISTRIBUTIONS,
    EM,
    EMS,
    EXACT,
    FLIGHTS,
    HAAR,
    HH,
    INCOME,
    PM,
    SR,
    WAGES,
)

__all__ = ["about_distances", "about_ranges", "about_statistics"]

Sets = dict[str, Errors]
_SMOOTH = (BETA, FLIGHTS, WAGES)
_OTHERS = tuple(name for name in DISTRIBUTIONS if name != EMS)


def about_distances(wasserstein: Sets, ks: Sets) -> tuple[Claim, ...]:
    """Section 6.2."""
    bins = tuple(BINS)
    falls = {
        label: [errors.mean(name)[0] / errors.mean(name)[-1] for name in bins] for label, errors in wasserstein.items()
    }
    binned = {label: errors.over_best(EMS, bins) for label, errors in wasserstein.items()}
    return (
        not_above(wasserstein[BETA], EMS, _OTHERS, f"{BETA}: SW-EMS has the lowest Wasserstein distance at every eps"),
        not_above(
            wasserstein[FLIGHTS],
            EMS,
            _OTHERS,
            f"{FLIGHTS}: SW-EMS has the lowest Wasserstein distance at every eps (here: within 5 % of the lowest)",
            most=1.05,
        ),
        mostly(
            wasserstein,
            tuple(wasserstein),
            EMS,
            "In most cases SW-EMS has the lowest Wasserstein distance",
            DISTRIBUTIONS,
        ),
        Claim(
            "The lines of fewer bins flatten as eps increases (here: on every set the distance of 16 bins falls by a "
            "smaller factor than that of 64)",
            "; ".join(
                f"{label}: by {', '.join(f'{fall:.1f}' for fall in found)} for 16, 32, 64 bins"
                for label, found in falls.items()
            ),
            all(found[0] < found[-1] for found in falls.values()),
        ),
        Claim(
            "Even with the best number of bins for each set and eps, binning is worse than SW-EMS (here: in all cases)",
            "SW-EMS over the best bins: "
            + "; ".join(
                f"{label} {', '.join(with_error(r, e) for r, e in zip(*found, strict=True))}"
                for label, found in binned.items()
            ),
            not any(errors.surely_above(EMS, bins) for errors in wasserstein.values()),
        ),
        mostly(
            ks, _SMOOTH, EMS, "On Beta, flights and wages SW-EMS generally has the lowest KS distance", DISTRIBUTIONS
        ),
        not_above(ks[INCOME], ADMM, (EMS,), f"{INCOME}: HH-ADMM has a lower KS distance than SW-EMS at every eps"),
        not_above(ks[INCOME], ADMM, (EM,), f"{INCOME}: HH-ADMM has a lower KS distance than SW-EM at every eps"),
        not_above(
            wasserstein[INCOME],
            EMS,
            (ADMM,),
            f"{INCOME}: HH-ADMM has a higher Wasserstein distance than SW-EMS at every eps",
        ),
        not_above(
            wasserstein[INCOME],
            AUTO,
            (EMS,),
            f"(ours) {INCOME}: SW-auto has a lower Wasserstein distance than SW-EMS at every eps",
        ),
        *(
            not_above(
                wasserstein[label],
                AUTO,
                (EMS,),
                f"(ours) {label}: SW-auto has at most 1.05 times the Wasserstein distance of SW-EMS at every eps",
                most=1.05,
            )
            for label in _SMOOTH
        ),
        *(
            not_above(
                errors,
                EXACT,
                (ADMM,),
                f"(ours) {label}: HH-exact, with weights, has a lower Wasserstein distance than HH-ADMM at every eps",
            )
            for label, errors in wasserstein.items()
        ),
    )


def about_ranges(short: Sets, long: Sets) -> tuple[Claim, ...]:
    """Section 6.3, range queries."""
    alphas = {"0.1": short, "0.4": long}
    points = short[INCOME].x
    wins = {alpha: found[INCOME].best(DISTRIBUTIONS) for alpha, found in alphas.items()}
    similar, error = short[FLIGHTS].ratio(EMS, "CFO-64")
    return (
        *(
            not_above(
                found[label],
                EMS,
                (HH, HAAR),
                f"{label}: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = {alpha}",
            )
            for label in short
            for alpha, found in alphas.items()
        ),
        mostly(
            {f"{label}, alpha = {alpha}": found[label] for alpha, found in alphas.items() for label in found},
            [f"{label}, alpha = {alpha}" for alpha, found in alphas.items() for label in found],
            EMS,
            "SW-EMS has the lowest error in most cases",
            (*DISTRIBUTIONS, HH, HAAR),
        ),
        Claim(
            f"{FLIGHTS}: SW-EMS is similar to CFO-64 where alpha = 0.1 (here: within a factor of 1.5)",
            "SW-EMS over CFO-64: " + ", ".join(with_error(r, e) for r, e in zip(similar, error, strict=True)),
            bool(max(similar.max(), 1 / similar.min()) < 1.5),
        ),
        Claim(
            f"{INCOME}: SW-EM or SW-EMS has the lowest error up to eps = 2, HH-ADMM above",
            "; ".join(
                f"alpha = {alpha}: {', '.join(f'{name} ({at:g})' for at, name in zip(points, best, strict=True))}"
                for alpha, best in wins.items()
            ),
            all(
                name in ((EM, EMS) if at <= 2 else (ADMM,))
                for best in wins.values()
                for at, name in zip(points, best, strict=True)
            ),
        ),
    )


def about_statistics(mean: Sets, variance: Sets, quantiles: Sets) -> tuple[Claim, ...]:
    """Section 6.3: means, variances and quantiles."""
    crossing = {label: errors.ratio(SR, PM) for label, errors in mean.items()}
    between = _cases(mean, lambda off: off[EMS] < off[ADMM] < min(off[name] for name in BINS))
    spread = _cases(variance, lambda off: min(off[EM], off[EMS]) < min(off[SR], off[PM]))
    coarse, _ = quantiles[INCOME].over_best("CFO-16", DISTRIBUTIONS)
    return (
        *(
            not_above(
                errors,
                EMS,
                (SR, PM),
                f"{label}: SW-EMS's mean is comparable to the better of SR and PM at every eps "
                + ("(here: its error is at most theirs)" if label == BETA else "(here: at most 1.5 times their error)"),
                most=1.0 if label == BETA else 1.5,
            )
            for label, errors in mean.items()
        ),
        Claim(
            "For means SR is better than PM where eps is small, and worse where it is large (here: at the ends of the "
            "axis, on every set)",
            "SR over PM: "
            + "; ".join(
                f"{label} {with_error(r[0], e[0])} to {with_error(r[-1], e[-1])}" for label, (r, e) in crossing.items()
            ),
            all(r[0] - 2 * known(e[0]) <= 1 <= r[-1] + 2 * known(e[-1]) for r, e in crossing.values()),
        ),
        Claim(
            "For means HH-ADMM is better than binning, and worse than SW-EMS (here: in more than half of the cases)",
            f"in {between[0]} of {between[1]} cases",
            between[0] > between[1] / 2,
        ),
        Claim(
            "For variances SR and PM have a larger error than SW-EM or SW-EMS in most cases",
            f"the better of SR and PM than the better of the two in {spread[0]} of {spread[1]} cases",
            spread[0] > spread[1] / 2,
        ),
        mostly(quantiles, _SMOOTH, EMS, "For quantiles SW-EMS is the best on Beta, flights and wages", DISTRIBUTIONS),
        not_above(
            quantiles[INCOME],
            ADMM,
            tuple(name for name in DISTRIBUTIONS if name != ADMM),
            f"{INCOME}: for quantiles HH-ADMM is the best at every eps",
        ),
        Claim(
            f"{INCOME}: for quantiles few bins are worse than other methods by 1 to 2 orders of magnitude (here: 16 "
            "bins, 10 to 100 times the best)",
            "; ".join(
                f"{ratio:.1f} times (eps = {at:g})" for at, ratio in zip(quantiles[INCOME].x, coarse, strict=True)
            ),
            bool(coarse.min() >= 10 and coarse.max() <= 100),
        ),
    )


def _cases(sets: Sets, holds: Callable[[dict[str, float]], bool]) -> tuple[int, int]:
    """In how many cases, a set and an eps each, it holds of the methods' mean errors, and how many there are."""
    found = [
        holds({name: float(errors.mean(name)[i]) for name in errors.runs})
        for errors in sets.values()
        for i in range(len(errors.x))
    ]
    return sum(found), len(found)
