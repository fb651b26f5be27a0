"""The most likely histogram: approximately from any estimate, exactly for GRR, and by EM from whole reports."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veil.errors import FitWarning, InputError, MismatchError, ParameterError
from veil.post.processed import ProcessedEstimate
from veil.reports.columns import Reports
from veil.reports.layout import Layout
from veil.reports.tally import Tally
from veil.results.estimate import Estimate
from veil.results.laws import Noise, SupportNoise
from veil.tools.numbers import is_int

Floats = NDArray[np.float64]

_MOST_BITS = 12.0


def mle_apx(estimate: Estimate) -> ProcessedEstimate:
    """Runs at the collector: the most likely histogram if the noise is normal, with variance a + b f.

    Minimises sum of (f' - f)^2 / (a + b f') over the simplex (consistency paper, appendix B, with its signs put right).
    On the values that stay positive, x = (f' - f) / (a + b f') is the same for all.
    """
    _check_adds_up(estimate, "mle-apx")
    f = estimate.frequencies
    fakes = estimate.fake_variance() * estimate.effective
    at_zero, at_one = (estimate.noise.variance(share) + fakes for share in (0.0, 1.0))
    ratio = (at_one - at_zero) / at_zero  # b / a; no unbiased estimate lies below -a / b, so 1 - ratio * x > 0

    def moved(kept: NDArray[np.bool_]) -> Floats:
        x = (1.0 - float(f[kept].sum())) / (int(kept.sum()) + ratio)
        return np.asarray((x + f) / (1.0 - ratio * x))

    return ProcessedEstimate.of_estimate(estimate, _settled(moved, len(f)), "mle-apx")


def mle(estimate: Estimate) -> ProcessedEstimate:
    """Runs at the collector: the exact maximum of GRR's likelihood, in closed form (Kairouz et al., ICML 2016).

    A report is v with probability q + (p - q) f_v, so f_v = c_v / L - q / (p - q) on the values that stay positive,
    with the L that makes them add up to one. With n_r fakes beside n people, n_r / n (1 / d) comes to each q.

    >>> from veil import GRR, simulate
    >>> made = simulate(GRR(epsilon=1.0, domain=3), [0] * 90 + [1] * 10, seed=2).post("mle")
    >>> round(float(made.frequencies.sum()), 9), made.lineage[-1]
    (1.0, 'mle')
    """
    noise = estimate.noise
    if not isinstance(noise, SupportNoise) or noise.hit != 0 or noise.miss != 0:
        raise InputError("mle is exact for GRR, whose reports support one value each; use mle-apx, or veil.post.em")
    _check_adds_up(estimate, "mle")
    p, q = float(noise.p), float(noise.q)
    fakes = 0.0 if estimate.fakes is None else estimate.fakes.expected / estimate.n
    floor = (q + fakes) / (p - q)
    reported = estimate.frequencies + floor  # in proportion to the reports of each value

    def found(kept: NDArray[np.bool_]) -> Floats:
        return np.asarray(reported * ((1.0 + int(kept.sum()) * floor) / float(reported[kept].sum())) - floor)

    return ProcessedEstimate.of_estimate(estimate, _settled(found, len(reported)), "mle")


@runtime_checkable
class Oracle(Protocol):
    """What is needed of a frequency oracle: the mechanisms stand above this room."""

    name: ClassVar[str]

    @property
    def noise(self) -> Noise: ...
    @property
    def digest(self) -> str: ...
    @property
    def layout(self) -> Layout: ...
    def channel(self) -> dict[bytes, list[Fraction]]: ...
    def tally(self, reports: Reports) -> Tally: ...
    def estimate(self, tally: Tally) -> Estimate: ...


def em(mechanism: Oracle, reports: Reports, *, gap: float = 1e-8, most: int = 100_000) -> ProcessedEstimate:
    """Runs at the collector: the most likely histogram from whole reports, by EM over the mechanism's exact channel.

    Also known as iterative Bayesian update (IBU). It sees what a tally forgets: which bits came together. For oracles
    without a random seed and with at most 4,096 different reports (OUE: 12 values). Stops when no histogram can have a
    log-likelihood a person that is better by `gap`; after `most` steps it warns. All reports are taken for people's.

    >>> from veil import OUE
    >>> oracle = OUE(epsilon=2.0, domain=3)
    >>> made = em(oracle, oracle.randomize([0] * 60 + [1] * 30 + [2] * 10))
    >>> round(float(made.frequencies.sum()), 9)
    1.0
    """
    if not isinstance(mechanism, Oracle):
        raise ParameterError("em needs a frequency oracle")
    if not isinstance(reports, Reports) or reports.task != mechanism.digest:
        raise MismatchError("expected reports of this mechanism; these were made for another task")
    if not isinstance(gap, Real) or not gap > 0 or not is_int(most) or most < 1:
        raise ParameterError("em takes a positive gap and a number of steps of at least 1")
    if _report_bits(mechanism) > _MOST_BITS:
        raise ParameterError(f"em lists all reports that can be: {mechanism.name} over this domain has too many")
    raw = mechanism.estimate(mechanism.tally(reports))
    channel = mechanism.channel()
    width = mechanism.layout.size
    packed = np.frombuffer(reports.to_bytes(), dtype=np.uint8).reshape(-1, width)
    different, counts = np.unique(packed, axis=0, return_counts=True)
    try:
        rows = np.array([[float(p) for p in channel[row.tobytes()]] for row in different])
    except KeyError:
        raise InputError("a report is none that this mechanism can make") from None
    shares = counts / counts.sum()
    found = np.full(len(raw), 1.0 / len(raw))
    for _ in range(most):
        score = rows.T @ (shares / (rows @ found))
        if np.log(score.max()) < gap:
            break
        found = found * score
    else:
        warnings.warn(f"em stopped after {most} steps, before its gap was reached", FitWarning, stacklevel=2)
    return ProcessedEstimate.of_estimate(raw, found / found.sum(), "em")


def _settled(solve: Callable[[NDArray[np.bool_]], Floats], size: int) -> Floats:
    """The solution on the values that stay positive, 0 elsewhere: whoever falls to 0 is left out, until nobody does."""
    kept = np.ones(size, dtype=bool)
    while True:
        found = solve(kept)
        falling = kept & (found <= 0.0)
        if not falling.any():
            return np.where(kept, found, 0.0)
        kept &= ~falling


def _report_bits(mechanism: Oracle) -> float:
    """How many bits a report's payload has, as far as its columns say."""
    fields = mechanism.layout.fields
    return float(sum(field.bits or field.count * math.log2(field.bound) for field in fields))


def _check_adds_up(estimate: Any, name: str) -> None:
    if not estimate.adds_up:
        raise InputError(
            f"{name} needs a whole histogram of one value per person: these frequencies do not add up to one"
        )
