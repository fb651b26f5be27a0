"""Tests of significance at 1e-9 on fixed seeds: the truth must pass, a rival must be rejected on the same sample."""

from __future__ import annotations

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
