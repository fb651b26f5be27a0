"""Joint distributions of many attributes: any marginal, conditionals, correlations, synthetic people.

    CALM          tables of a few attributes each, made to agree; any marginal is reconstructed from them
    FullContingency, AllMarginals, FourierMarginals, SplitEM, BinaryCALM, Uniform    what it is compared with
    Marginals     what it finds: `.marginal(["age", "sex"])`, `.conditional`, `.correlation`, `.synthesize(n)`

People hold a `veil.Record`. docs/marginals.md says how they are asked, what it costs and what errors mean.
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
