"""50,000 people report through the browser client's modules, over HTTP, and the collector's estimates fit theory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.service.browser.javascript import run_node
from tests.service.browser.running import asking
from tests.significance import mean_fits

from veil import GRR, OLH, Survey
from veil.mechanisms import PureOracle

PEOPLE = 50_000
SCRIPT = Path(__file__).parent / "browser" / "people.mjs"


@pytest.mark.parametrize(
    ("oracle", "rival"),
    [
        (GRR(epsilon=2.0, domain=8), GRR(epsilon=1.8, domain=8)),
        (OLH(epsilon=2.0, domain=32, hash_range=8), OLH(epsilon=1.8, domain=32, hash_range=8)),
    ],
    ids=["GRR", "OLH"],
)
def test_estimates_fit_and_a_wrong_threshold_does_not(oracle: PureOracle, rival: PureOracle, tmp_path: Path) -> None:
    size = oracle.domain.size
    shares = np.array([0.4, *np.full(size - 1, 0.6 / (size - 1))])
    values = np.random.default_rng(5).choice(size, PEOPLE, p=shares)
    truth = np.bincount(values, minlength=size) / PEOPLE
    survey = Survey(oracle)
    (tmp_path / "task.json").write_bytes(survey.to_bytes())
    (tmp_path / "values.json").write_text(json.dumps(values.tolist()))
    with asking(tmp_path, survey) as collector:
        job = {"task": f"{tmp_path}/task.json", "values": f"{tmp_path}/values.json", "seed": 11}
        done = json.loads(run_node(SCRIPT, json.dumps(job | {"address": collector.address})))
        assert done["acknowledged"] == PEOPLE
        assert done["seconds"] < 30  # it takes two or three; a slow machine is not a bug
        assert collector.reports() == PEOPLE
        found = np.array(collector.frequencies())
    assert all(fits(oracle, found, truth))
    # The same reports, read as if the coin had the threshold of another epsilon: 10 % less.
    supported = found * float(oracle.p - oracle.q) + float(oracle.q)
    misread = (supported - float(rival.q)) / float(rival.p - rival.q)
    assert not all(fits(rival, misread, truth))


def fits(oracle: PureOracle, found: np.ndarray, truth: np.ndarray) -> list[bool]:
    """Whether each estimate may have the true frequency as its mean."""
    errors = [oracle.variance(PEOPLE, float(frequency)) ** 0.5 for frequency in truth]
    return [mean_fits(float(f), float(t), e) for f, t, e in zip(found, truth, errors, strict=True)]
