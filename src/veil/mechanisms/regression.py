"""From a sum of Bloom filters back to the values that people hold: LASSO selects, least squares estimates.

As RAPPOR does it (Erlingsson et al. 2014, section 4) and the thesis ran it (3.5.2). Needs scikit-learn:
`pip install veil-ldp[rappor]`.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.tools.messages import missing_extra

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

__all__ = ["regress"]

Floats = NDArray[np.float64]


def regress(matrix: csc_matrix, rates: Floats, spread: Floats) -> Floats:
    """The frequency of each candidate (column), zero where it is not selected.

    `rates` are the estimated shares of people whose filter has each bit (row) set, `spread` their standard deviations.
    A constant stands beside the candidates for everybody who holds none of those selected: their filters, over many
    values, lift all bits alike, and would otherwise be counted as people who hold a candidate.
    """
    selected = _select(matrix, rates, spread)
    frequencies = np.zeros(matrix.shape[1])
    if len(selected):
        chosen = np.column_stack([matrix[:, selected].toarray(), np.ones(len(rates))])
        fitted, *_ = np.linalg.lstsq(chosen / spread[:, None], rates / spread, rcond=None)
        frequencies[selected] = fitted[:-1]
    return frequencies


def _select(matrix: csc_matrix, rates: Floats, spread: Floats) -> NDArray[np.int64]:
    """Candidates that LASSO leaves above zero.

    The penalty is the universal one: a candidate that nobody holds correlates with the noise alone, with standard
    deviation sigma sqrt(bits it sets), and of m such the largest is about sigma sqrt(bits 2 ln m). Below that, none.
    """
    lasso, not_converged = _lasso()
    rows, count = matrix.shape
    sigma = math.sqrt(float(np.mean(spread**2)))
    set_bits = matrix.nnz / count
    penalty = sigma * math.sqrt(2 * math.log(max(count, 2)) * set_bits) / rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", not_converged)  # to the last digit: hardly anybody's selection hangs on it
        fitted = lasso(alpha=penalty, positive=True, max_iter=2_000).fit(matrix, rates)
    return np.flatnonzero(np.asarray(fitted.coef_) > 0)


def _lasso() -> tuple[Any, type[Warning]]:
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso
    except ImportError:
        raise missing_extra("decoding RAPPOR's reports needs scikit-learn", "rappor") from None
    return Lasso, ConvergenceWarning
