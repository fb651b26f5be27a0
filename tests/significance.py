"""Tests of significance at 1e-9 on fixed seeds: the truth must pass, a rival must be rejected on the same sample."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from scipy import stats

ALPHA = 1e-9


def frequency_fits(successes: int, trials: int, probability: float) -> bool:
    """Whether `successes` may come from a binomial with this probability."""
    return bool(stats.binomtest(successes, trials, probability).pvalue > ALPHA)


def variance_fits(sample_variance: float, samples: int, variance: float) -> bool:
    """Whether an unbiased sample variance of normal samples may come from this variance."""
    statistic = (samples - 1) * sample_variance / variance
    tail = min(stats.chi2.cdf(statistic, samples - 1), stats.chi2.sf(statistic, samples - 1))
    return bool(2 * tail > ALPHA)


def mean_fits(sample_mean: float, mean: float, stderr: float) -> bool:
    """Whether a sample mean may have this expectation."""
    return bool(2 * stats.norm.sf(abs(sample_mean - mean) / stderr) > ALPHA)


def counts_fit(counts: Mapping[Hashable, int], expected: Mapping[Hashable, float]) -> bool:
    """Whether counts of outcomes may come from these means, by Pearson's chi-square; an outcome without a mean cannot.

    Where draws differ in their distributions the statistic is smaller than that of one distribution, never larger.
    """
    if not set(counts) <= set(expected):
        return False
    statistic = sum((counts.get(outcome, 0) - mean) ** 2 / mean for outcome, mean in expected.items())
    return bool(stats.chi2.sf(statistic, len(expected) - 1) > ALPHA)
