"""Post-processing methods as values: the rule, what it enforces, what it is good for and how it is biased."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError, ParameterError
from veil.post.consistency import keep, norm
from veil.post.processed import NormedEstimate, PositiveAnswers, ProcessedEstimate
from veil.results.estimate import Estimate
from veil.tools.numbers import critical, is_int

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """What every method says of itself."""

    name: str
    rule: Callable[..., Any]
    nonnegative: bool
    sums: str
    """Whether the result adds up to one: "yes", "almost" or "no"."""
    good_for: str
    bias: str

    @property
    def enforces(self) -> str:
        """In a word, for tables."""
        adds = {"yes": "adds up to 1", "almost": "adds up to at most 1", "no": ""}[self.sums]
        return ", ".join(part for part in ("non-negative" if self.nonnegative else "", adds) if part) or "nothing"

    def _check_options(self, options: dict[str, Any], known: set[str]) -> None:
        unknown = sorted(set(options) - known)
        if unknown:
            allowed = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise ParameterError(f"{self.name} has no option {unknown[0]!r}; {allowed}")

    def _label(self, options: dict[str, Any]) -> str:
        given = ", ".join(f"{key}={value:g}" for key, value in options.items() if value is not None)
        return f"{self.name}({given})" if given else self.name


@dataclass(frozen=True)
class HistogramMethod(Method):
    """A rule on the frequencies alone: for an Estimate, or for any vector of frequencies."""

    cuts: float | None = None
    """For rules with a threshold: the alpha that sets it where there is a noise model."""

    def __call__(self, data: Estimate | Any, *, total: float | None = None, **options: Any) -> Any:
        """Apply the rule to an Estimate or a vector of frequencies, which add up to `total`."""
        wanted = inspect.signature(self.rule).parameters
        self._check_options(options, {"alpha", "k"} if self.cuts is not None else set())
        chosen: dict[str, Any] = {}
        if "total" in wanted:
            chosen["total"] = _known_total(data, total, self.name)
        elif total is not None:
            raise ParameterError(f"{self.name} has no option 'total'")
        frequencies = as_frequencies(data.frequencies if isinstance(data, Estimate) else data)
        if self.cuts is not None:
            chosen["threshold"] = self._threshold(data, frequencies, **options)
        with np.errstate(over="ignore", invalid="ignore"):
            made: Floats = self.rule(frequencies, **chosen)
        if not np.isfinite(made).all():
            raise InputError("these frequencies are too large to be added up")
        if not isinstance(data, Estimate):
            return made
        label = self._label(options if total is None else {"total": total, **options})
        if self.rule is keep:
            return replace(data, lineage=(*data.lineage, label))
        if (
            self.rule is norm
            and data.noise.known
            and (isinstance(data, NormedEstimate) or not isinstance(data, ProcessedEstimate))
        ):
            return NormedEstimate.of_raw(data, chosen["total"], label)
        return ProcessedEstimate.of_estimate(data, made, label)

    def _threshold(self, data: Any, frequencies: Floats, alpha: float | None = None, k: int | None = None) -> float:
        """Of (7), for alpha; or the k-th largest frequency."""
        if k is not None:
            if alpha is not None or not is_int(k) or not 1 <= k <= len(frequencies):
                raise ParameterError(f"{self.name} takes alpha, or an integer k of 1 to the number of values")
            return float(np.partition(frequencies, -k)[-k])
        if not isinstance(data, Estimate):
            raise ParameterError(f"{self.name} of plain frequencies needs k: their noise is not known")
        check_raw(data, self.name)
        chance = self.cuts if alpha is None else alpha
        if not isinstance(chance, Real) or not 0 < chance < np.inf:
            raise ParameterError("alpha, the expected number of absent values above the threshold, is positive")
        tail = min(chance / len(frequencies), 0.5)  # at one half the threshold is zero
        return critical(tail) * float(np.sqrt(data.variance_at(np.zeros(1))[0]))


@dataclass(frozen=True)
class QueryMethod(Method):
    """A rule on answers to queries: it leaves the histogram as it is."""

    def __call__(self, data: Estimate, **options: Any) -> ProcessedEstimate:
        """An estimate whose totals, rows and single values obey the rule."""
        self._check_options(options, set())
        if not isinstance(data, Estimate):
            raise InputError(f"{self.name} is a rule for answers: it needs an Estimate to ask")
        return PositiveAnswers.of_estimate(data, data.frequencies, self.name)


@dataclass(frozen=True)
class ModelMethod(Method):
    """A rule that knows the noise of the oracle: for an unbiased Estimate."""

    needs_law: bool = True
    """Whether it is refused where the noise has no known law."""

    def __call__(self, data: Estimate, **options: Any) -> ProcessedEstimate:
        """The processed estimate."""
        self._check_options(options, set(list(inspect.signature(self.rule).parameters)[1:]))
        check_raw(data, self.name, self.needs_law)
        made: ProcessedEstimate = self.rule(data, **options)
        return made


def as_frequencies(data: Any) -> Floats:
    """A vector of finite numbers, at least one."""
    try:
        found = np.asarray(data)
        if found.dtype.kind in "USM":  # numpy would read numbers out of text
            raise TypeError
        found = found.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("expected an Estimate, or frequencies as a list of numbers") from None
    if found.ndim != 1:
        raise InputError("frequencies are one list of numbers")
    if not len(found):
        raise EmptyError("expected at least one frequency")
    if not np.isfinite(found).all():
        raise InputError("frequencies are finite numbers: there is a NaN or an infinite one")
    return found


def check_raw(data: Any, name: str, needs_law: bool = True) -> None:
    """Refuse what has no noise model, or is no longer the oracle's own estimate."""
    if not isinstance(data, Estimate):
        raise InputError(f"{name} needs an Estimate: plain frequencies have no noise model")
    if needs_law and not data.noise.known:
        raise InputError(f"{name} needs the variance of the oracle's noise, and this oracle has none in closed form")
    if isinstance(data, ProcessedEstimate):
        raise InputError(f"{name} models the noise of an oracle: apply it before {data.step}, not after")
    as_frequencies(data.frequencies)


def _known_total(data: Any, total: float | None, name: str) -> float:
    """What the true frequencies add up to."""
    if total is None:
        if isinstance(data, Estimate) and not data.adds_up:
            raise InputError(
                f"{name} needs to know what the frequencies add up to: these are of some candidates or of items in "
                "sets, so give total="
            )
        return 1.0
    if isinstance(total, bool) or not isinstance(total, Real) or not 0 < total < np.inf:
        raise ParameterError("a total is a positive number")
    return float(total)
