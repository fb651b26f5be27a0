"""What comes out for the analyst: estimates, distributions, means; each with its error.

Every one is a `Result`: a table, facts and remarks, which the terminal, JSON, files and notebooks render alike.
docs/results.md says what every result can do.
"""

from veil.results.answers import Answers
from veil.results.bands.base import Bands
from veil.results.bands.free import FreeBands
from veil.results.bands.levels import LevelBands
from veil.results.bands.smooth import SmoothBands
from veil.results.base import Result
from veil.results.change import Change, FrequencyChange, MeanChange
from veil.results.differences import DistributionChange
from veil.results.distribution import Distribution, Fit
from veil.results.estimate import Estimate
from veil.results.mean import Coefficients, Mean, MeanAndVariance
from veil.results.render.files import load, save

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
