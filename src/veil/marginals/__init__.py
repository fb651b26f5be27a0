"""Joint distributions of many attributes: marginals, conditionals, correlations, synthetic people.

People hold a `veil.Record`. docs/marginals.md describes the studies, their cost and their errors.

    CALM                           asks for views of a few attributes each; any marginal is reconstructed from them
    FullContingency, AllMarginals, FourierMarginals, SplitEM, BinaryCALM, Uniform    the rivals of CALM
    JointStudy, MarginalStudy      base classes of studies; `noise_error`, `covering_design` and `variance_factor`
                                   are parts of how views are chosen
    Marginals                      the result of CALM: `.marginal(["age", "sex"])`, `.conditional`, `.synthesize(n)`
    FourierCoefficients, SplitReports, BinaryMarginals    the results of rivals; `Joint` is the base class of all
    Marginal, Conditional, Correlation, Correlations    answers for some attributes
    Bounds, Scatter, Inference     intervals, exact variances, and the names of methods of reconstruction
"""

from veil.marginals.association import Correlation
from veil.marginals.choosing import noise_error
from veil.marginals.conditional import Conditional, Correlations
from veil.marginals.covering import covering_design
from veil.marginals.intervals import Bounds
from veil.marginals.joint import Joint
from veil.marginals.marginal import Marginal
from veil.marginals.result import Inference, Marginals
from veil.marginals.rivals.binary import BinaryCALM, BinaryMarginals
from veil.marginals.rivals.contingency import AllMarginals, FullContingency, Uniform, variance_factor
from veil.marginals.rivals.fourier import FourierCoefficients, FourierMarginals
from veil.marginals.rivals.split_em import SplitEM, SplitReports
from veil.marginals.scatter import Scatter
from veil.marginals.study import CALM, JointStudy, MarginalStudy

__all__ = [
    "CALM",
    "AllMarginals",
    "BinaryCALM",
    "BinaryMarginals",
    "Bounds",
    "Conditional",
    "Correlation",
    "Correlations",
    "FourierCoefficients",
    "FourierMarginals",
    "FullContingency",
    "Inference",
    "Joint",
    "JointStudy",
    "Marginal",
    "MarginalStudy",
    "Marginals",
    "Scatter",
    "SplitEM",
    "SplitReports",
    "Uniform",
    "covering_design",
    "noise_error",
    "variance_factor",
]
