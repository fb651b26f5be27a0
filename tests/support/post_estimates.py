"""Unbiased estimates for tests of post-processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from veil import OLH, simulate
from veil.mechanisms import FrequencyOracle
from veil.post.selection import redraw
from veil.results.estimate import Estimate

HUNDRED = simulate(OLH(1.0, 100), [0] * 500 + [1] * 300 + [2] * 200, seed=1)
"""A hundred values, of which a thousand people hold three."""


def drawn_estimate(oracle: FrequencyOracle, held: Any, random: np.random.Generator) -> Estimate:
    """Return the estimate of an oracle from simulated counts, where `held` people hold each value."""
    n = int(np.sum(held))
    frequencies = redraw(oracle.noise, np.asarray(held), random)
    return Estimate(oracle.domain, frequencies, n, oracle.noise, n, float(n), float(n), lineage=("OLH",))
