"""Results: estimates, distributions and means, each with its error.

    base, answers    the base class Result; the results of several questions
    estimate         frequencies of values                      laws     how estimates scatter: variances and intervals
    distribution     the distribution of a number               bands    its intervals, by what they assume
    mean             means, variances and Haar coefficients
    change, differences, change_tests    changes between two results, with intervals and tests
    units, codec     columns with units; results as JSON        render   terminal, notebooks, files and pictures

Every result is a `Result` with a table, facts and remarks, which the terminal, JSON, files and notebooks render alike.
docs/results.md describes what every result can do.
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
from veil.results.render.plot import need_matplotlib, save_figure

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
    "need_matplotlib",
    "save",
    "save_figure",
]
