"""The helpers themselves: what is true passes, what is off by a little with enough samples does not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.significance import frequency_fits, mean_fits, variance_fits


@pytest.mark.parametrize("seed", range(20))
def test_true_parameters_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert frequency_fits(int(rng.binomial(100_000, 0.3)), 100_000, 0.3)
    sample = rng.normal(2.0, 3.0, 5_000)
    assert variance_fits(float(sample.var(ddof=1)), 5_000, 9.0)
    assert mean_fits(float(sample.mean()), 2.0, 3.0 / np.sqrt(5_000))


@pytest.mark.parametrize("seed", range(20))
def test_parameters_ten_percent_off_are_rejected(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert not frequency_fits(int(rng.binomial(100_000, 0.3)), 100_000, 0.33)
    sample = rng.normal(2.0, 3.0, 20_000)
    assert not variance_fits(float(sample.var(ddof=1)), 20_000, 9.0 * 1.21)
    assert not mean_fits(float(sample.mean()), 2.2, 3.0 / np.sqrt(20_000))
