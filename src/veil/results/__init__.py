"""What comes out for the analyst: estimates, distributions, means; each with its error.

Every one is a `Result`: a table, facts and remarks, which the terminal, JSON, files and notebooks render alike.
docs/results.md says what every result can do.
"""

from veil.results.answers import Answers
from veil.results.bands import Bands
from veil.results.base import Result
from veil.results.change import Change, FrequencyChange, MeanChange
from veil.results.coefficients import Coefficients
from veil.results.distribution import Distribution, Fit
from veil.results.distribution_change import DistributionChange
from veil.results.estimate import Estimate
from veil.results.files import load, save
from veil.results.free_bands import FreeBands
from veil.results.level_bands import LevelBands
from veil.results.mean import Mean, MeanAndVariance
from veil.results.smooth_bands import SmoothBands

__all__ = [
    "Answers",
    "Bands",
    "Change",
    "Coefficients",
    "Distribution",
    "DistributionChange",
    "Estimate",
    "Fit",
    "FreeBands",
    "FrequencyChange",
    "LevelBands",
    "Mean",
    "MeanAndVariance",
    "MeanChange",
    "Result",
    "SmoothBands",
    "load",
    "save",
]
