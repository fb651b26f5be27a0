"""Joint distributions of many attributes: any marginal, conditionals, correlations, synthetic people.

    CALM          tables of a few attributes each, made to agree; any marginal is reconstructed from them
    Marginals     what it finds: `.marginal(["age", "sex"])`, `.conditional`, `.correlation`, `.synthesize(n)`

People hold a `veil.Record`. docs/marginals.md says how they are asked, what it costs and what errors mean.
"""

from veil.marginals.association import Correlation, correlation_between
from veil.marginals.intervals import Bounds, cell_bounds, conditional_bounds
from veil.marginals.marginal import Marginal
from veil.marginals.result import Inference, Joint, Marginals
from veil.marginals.scatter import Scatter
from veil.marginals.study import CALM, MarginalStudy

__all__ = [
    "CALM",
    "Bounds",
    "Correlation",
    "Inference",
    "Joint",
    "Marginal",
    "MarginalStudy",
    "Marginals",
    "Scatter",
    "cell_bounds",
    "conditional_bounds",
    "correlation_between",
]
