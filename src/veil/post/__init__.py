"""Post-processing: from unbiased estimates, often negative and not adding up, to consistent ones.

    methods       the classes of methods                 consistency   rules for a whole histogram, such as norm-sub
    processed     estimates after a method               likelihood    maximum likelihood: mle-apx, mle, and em
    selection     the choice of a method, and queries    calibration   posterior means under a prior
                                                         priors        families of priors, and learned ones

Post-processing reads published estimates only, so it costs no privacy. Every method is a value that says what it
enforces, what it is good for and how it is biased; `estimate.post("norm-sub")` and `veil.post.norm_sub(estimate)` are
the same. `veil post` prints the table.
"""

from __future__ import annotations

from veil.errors import InputError
from veil.post import calibration, consistency, likelihood
from veil.post.likelihood import em
from veil.post.methods import HistogramMethod, Method, ModelMethod, QueryMethod
from veil.post.priors import FAMILIES, Family, Prior
from veil.post.processed import CalibratedEstimate, NormedEstimate, PositiveAnswers, ProcessedEstimate, ProcessedTotal
from veil.post.selection import (
    PAPER_METHODS,
    EveryValue,
    FrequencyQuery,
    MostFrequent,
    Selection,
    Sets,
    quietly,
    recommend,
    redraw_counts,
    select,
    squared_errors,
)
from veil.tools.messages import unknown_name

__all__ = [
    "FAMILIES",
    "METHODS",
    "PAPER_METHODS",
    "CalibratedEstimate",
    "EveryValue",
    "Family",
    "FrequencyQuery",
    "Method",
    "MostFrequent",
    "NormedEstimate",
    "PositiveAnswers",
    "Prior",
    "ProcessedEstimate",
    "ProcessedTotal",
    "Selection",
    "Sets",
    "auto",
    "base",
    "base_cut",
    "base_pos",
    "calibrate",
    "em",
    "method",
    "mle",
    "mle_apx",
    "norm",
    "norm_cut",
    "norm_mul",
    "norm_sub",
    "post_pos",
    "power",
    "power_ns",
    "quietly",
    "recommend",
    "redraw_counts",
    "select",
    "significance",
    "squared_errors",
]

base = HistogramMethod(
    "base", consistency.keep, False, "no",
    good_for="intervals; the most frequent values", bias="none",
)  # fmt: skip
base_pos = HistogramMethod(
    "base-pos", consistency.positive, True, "no",
    good_for="single values, when nothing else is known", bias="upward, most for rare values; adds up over sets",
)  # fmt: skip
post_pos = QueryMethod(
    "post-pos", consistency.positive, True, "no",
    good_for="sets of rare values", bias="upward, only where an answer would be negative",
)  # fmt: skip
base_cut = HistogramMethod(
    "base-cut", consistency.cut_below, True, "no", cuts=2.0,
    good_for="single values, when most are rare", bias="upward just above its threshold, downward below",
)  # fmt: skip
norm = HistogramMethod(
    "norm", consistency.norm, False, "yes",
    good_for="the most frequent values; sets, with intervals", bias="none",
)  # fmt: skip
norm_mul = HistogramMethod(
    "norm-mul", consistency.norm_mul, True, "yes",
    good_for="smooth histograms; poor on skewed ones", bias="downward in proportion for frequent values",
)  # fmt: skip
norm_cut = HistogramMethod(
    "norm-cut", consistency.norm_cut, True, "almost",
    good_for="fixed sets with many rare values", bias="downward for rare values, none for the most frequent",
)  # fmt: skip
norm_sub = HistogramMethod(
    "norm-sub", consistency.norm_sub, True, "yes",
    good_for="sets; a histogram to draw from", bias="upward for rare values, the same amount downward for frequent",
)  # fmt: skip
mle_apx = ModelMethod(
    "mle-apx", likelihood.mle_apx, True, "yes",
    good_for="as norm-sub, from which it hardly differs", bias="as norm-sub",
)  # fmt: skip
power = ModelMethod(
    "power", calibration.power, True, "no",
    good_for="single values of a power law", bias="toward a power law",
)  # fmt: skip
power_ns = ModelMethod(
    "power-ns", calibration.power_ns, True, "yes",
    good_for="sets and single values of a power law", bias="toward a power law",
)  # fmt: skip
calibrate = ModelMethod(
    "calibrate", calibration.calibrate, True, "no",
    good_for="single values, when the prior is right or learned; heavy hitters", bias="toward the prior",
)  # fmt: skip
significance = HistogramMethod(
    "significance", consistency.spread_rest, True, "no", cuts=0.05,
    good_for="only what is certainly there", bias="toward uniform below its threshold",
)  # fmt: skip
mle = ModelMethod(
    "mle", likelihood.mle, True, "yes",
    good_for="whole histograms of GRR: its exact maximum likelihood", bias="upward for rare values",
)  # fmt: skip
auto = ModelMethod(
    "auto", calibration.automatic, True, "yes", needs_law=False,
    good_for="whole histograms of any shape: the learned prior, then norm-sub", bias="toward the learned prior",
)  # fmt: skip

METHODS: dict[str, Method] = {
    entry.name: entry
    for entry in (
        base, base_pos, post_pos, base_cut, norm, norm_mul, norm_cut, norm_sub, mle_apx, power, power_ns, calibrate,
        significance, mle, auto,
    )
}  # fmt: skip


def method(name: str) -> HistogramMethod | QueryMethod | ModelMethod:
    """The method of that name.

    >>> method("norm-sub").enforces
    'non-negative, adds up to 1'
    """
    found = METHODS.get(name.lower().replace("_", "-")) if isinstance(name, str) else None
    if not isinstance(found, (HistogramMethod, QueryMethod, ModelMethod)):
        raise InputError(unknown_name("a method of post-processing", name, METHODS))
    return found
