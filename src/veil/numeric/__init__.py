"""Numbers: distributions, ranges, quantiles and means of the values that people hold.

    SquareWave (a mechanism)   the whole distribution, best for smooth ones; EM and EMS reconstruct it
    Hierarchy, HaarHierarchy   the whole distribution by levels of a tree; best for spiky ones and short ranges
    Binning                    an oracle over a few bins: the baseline
    StochasticRounding, Piecewise (mechanisms), HybridMean, TwoPhaseVariance    only a mean or a variance

The results are a `Distribution` or a `Mean` of `veil.results`; `assumed_bands` gives the errors of a distribution.
docs/numeric.md says which to choose.
"""

from veil.mechanisms import HaarResponse, Piecewise, SquareWave, StochasticRounding
from veil.mechanisms.numbers.reconstruction import Stopping, Wave, reconstruct
from veil.numeric.bands import assumed_bands, free_bands, wave_bands
from veil.numeric.distributions import Binning, WaveDistribution, without_bands
from veil.numeric.hierarchy import HaarHierarchy, Hierarchy
from veil.numeric.means import HybridMean, MeanOf, TwoPhaseVariance
from veil.numeric.roughness import Roughness, roughness
from veil.results.bands.base import Bands
from veil.results.bands.free import FreeBands
from veil.results.bands.levels import LevelBands
from veil.results.bands.smooth import SmoothBands
from veil.results.distribution import Distribution, Fit
from veil.results.mean import Mean, MeanAndVariance

__all__ = [
    "Bands",
    "Binning",
    "Distribution",
    "Fit",
    "FreeBands",
    "HaarHierarchy",
    "HaarResponse",
    "Hierarchy",
    "HybridMean",
    "LevelBands",
    "Mean",
    "MeanAndVariance",
    "MeanOf",
    "Piecewise",
    "Roughness",
    "SmoothBands",
    "SquareWave",
    "StochasticRounding",
    "Stopping",
    "TwoPhaseVariance",
    "Wave",
    "WaveDistribution",
    "assumed_bands",
    "free_bands",
    "reconstruct",
    "roughness",
    "wave_bands",
    "without_bands",
]
