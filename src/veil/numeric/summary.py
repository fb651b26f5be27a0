"""A distribution or a mean in a few plain facts, for documents: numbers as they are, times as text in ISO 8601."""

from __future__ import annotations

from typing import Any

import numpy as np

from veil.domain import Numeric
from veil.results.bands import Bands
from veil.results.distribution import Distribution
from veil.results.mean import Mean

__all__ = ["QUANTILES", "bands_summary", "distribution_summary", "mean_summary", "written"]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def written(domain: Numeric, number: float) -> float | str | None:
    """A number of a domain as it stands in a document; None for a time that no calendar has.

    >>> import datetime as dt
    >>> from veil import Interval
    >>> written(Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1)), 1767268800.0)
    '2026-01-01T12:00:00'
    """
    try:
        shown = domain.shown(float(number))
    except OverflowError:  # an estimate of a mean is never clipped
        return None
    return shown if isinstance(shown, float) else str(shown.isoformat())


def distribution_summary(found: Distribution) -> dict[str, Any]:
    """Mean, standard deviation, quantiles and how the reconstruction went; null where masses are negative."""
    proper, fit = found.proper, found.fit
    numbers = found.quantile_numbers(np.array(QUANTILES)) if proper else np.empty(0)
    return {
        "proper": proper,
        "mean": written(found.domain, found.mean_number),
        "std": found.std() if proper else None,
        "quantiles": [
            {"level": level, "value": written(found.domain, number)}
            for level, number in zip(QUANTILES, numbers, strict=False)
        ],
        "fit": None if fit is None else {"iterations": fit.iterations, "converged": fit.converged},
    }


def bands_summary(bands: Bands) -> dict[str, Any]:
    """95 % bands of the same: pairs of a low and a high end."""
    domain, proper = bands.estimate.domain, bands.estimate.proper

    def pair(ends: tuple[Any, Any]) -> list[float | str | None]:
        return [written(domain, end) for end in ends]

    return {
        "replicates": len(bands.replicates),
        "mean": pair(bands.mean_numbers()),
        "std": list(bands.std()) if proper else None,
        "quantiles": [pair(bands.quantile_numbers(level)) for level in QUANTILES] if proper else [],
    }


def mean_summary(found: Mean, level: float = 0.95) -> dict[str, Any]:
    """A mean with its interval."""
    low, high = found.interval(level)
    shown = {name: written(found.domain, end) for name, end in (("mean", found.value), ("low", low), ("high", high))}
    return {"mean": shown["mean"], "stderr": found.stderr, "low": shown["low"], "high": shown["high"]}
