"""50,000 people report through the browser client's modules, over HTTP: estimates and reports at the collector fit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.browser.javascript import run_node
from tests.service.browser.running import Asking, asking
from tests.significance import counts_fit, mean_fits

from veil import (
    GRR,
    OLH,
    AllOf,
    HaarResponse,
    Integers,
    Items,
    LinearHashing,
    Piecewise,
    Question,
    SquareWave,
    StochasticRounding,
    Survey,
)
from veil.entropy import Words, outcomes
from veil.mechanisms import Mechanism, PureOracle
from veil.view import Ancestor, CountContained, Identity, SampleContained, SetSize, View

PEOPLE = 50_000
SCRIPT = Path(__file__).parent / "browser" / "people.mjs"


@pytest.mark.parametrize(
    ("oracle", "rival"),
    [
        (GRR(epsilon=2.0, domain=8), GRR(epsilon=1.8, domain=8)),
        (OLH(epsilon=2.0, domain=32, hash_range=8), OLH(epsilon=1.8, domain=32, hash_range=8)),
        (LinearHashing(2.0, 32, hash_range=7, suffix=4), LinearHashing(1.8, 32, hash_range=7, suffix=4)),
    ],
    ids=["GRR", "OLH", "LinearHashing"],
)
def test_estimates_fit_and_a_wrong_threshold_does_not(oracle: PureOracle, rival: PureOracle, tmp_path: Path) -> None:
    values = people(oracle.domain.size, first=0.4)
    truth = np.bincount(values, minlength=oracle.domain.size) / PEOPLE
    survey = Survey(oracle)
    with asking(tmp_path, survey) as collector:
        report(values.tolist(), survey, collector, tmp_path)
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


HELD = Integers(0, 19)
THIRDS = Ancestor(HELD, branching=2, level=2)
NUMBERS: list[tuple[Mechanism, Mechanism]] = [
    (SquareWave(2.0, HELD, half_width=3), SquareWave(1.7, HELD, half_width=3)),
    (SquareWave(2.0, HELD, half_width=3, ramp=3), SquareWave(2.0, HELD, half_width=3, ramp=2)),
    (StochasticRounding(2.0, HELD), StochasticRounding(1.7, HELD)),
    (Piecewise(2.0, HELD, steps=12), Piecewise(1.7, HELD, steps=12)),
    (Piecewise(2.0, HELD, steps=12, window=4), Piecewise(2.0, HELD, steps=12, window=3)),
    (HaarResponse(2.0, THIRDS.domain), HaarResponse(1.7, THIRDS.domain)),
]


def test_reports_about_numbers_have_their_exact_distribution(tmp_path: Path) -> None:
    """The shipped Python code says, by enumeration, how likely each report is under each value."""
    views = [THIRDS if mechanism.domain == THIRDS.domain else Identity(HELD) for mechanism, _ in NUMBERS]
    survey = Survey(AllOf(*(Question(mechanism, view) for (mechanism, _), view in zip(NUMBERS, views, strict=True))))
    values = people(HELD.size, first=0.8)
    with asking(tmp_path, survey) as collector:
        report(values.tolist(), survey, collector, tmp_path)
        parts = list(survey.parts(collector.export(survey, tmp_path / "reports.parquet")))
    for (mechanism, rival), view, (_, _, columns) in zip(NUMBERS, views, parts, strict=True):
        codes = view.apply(HELD.encode(values), Words(b""))
        payloads, width = mechanism.layout.pack(columns), mechanism.layout.size
        found = Counter(payloads[i : i + width] for i in range(0, len(payloads), width))
        assert counts_fit(found, expected(mechanism, codes)), mechanism
        assert not counts_fit(found, expected(rival, codes)), rival


SETS = Items(6)
HELD_SETS = [[], [1], [0, 1], [2, 3, 4], [0, 1, 2, 5]]
LISTED = ((1,), (0, 1), (2,), (3, 4))
SET_VIEWS: list[tuple[View, View]] = [
    (SetSize(SETS, most=3), SetSize(SETS, most=2)),
    (CountContained(SETS, LISTED, most=3), CountContained(SETS, LISTED[::-1][:3], most=3)),
    (SampleContained(SETS, LISTED, length=2), SampleContained(SETS, LISTED, length=1)),
    (SampleContained(SETS, LISTED, length=2), SampleContained(SETS, LISTED[::-1], length=2)),
]


def test_reports_about_sets_have_their_exact_distribution(tmp_path: Path) -> None:
    """The shipped Python code says, by enumeration, what each view shows of each set."""
    oracles = [GRR(2.0, view.domain) for view, _ in SET_VIEWS]
    survey = Survey(AllOf(*(Question(oracle, view) for oracle, (view, _) in zip(oracles, SET_VIEWS, strict=True))))
    held = people(len(HELD_SETS), first=0.3)
    with asking(tmp_path, survey) as collector:
        report([HELD_SETS[i] for i in held], survey, collector, tmp_path)
        parts = list(survey.parts(collector.export(survey, tmp_path / "reports.parquet")))
    for oracle, (view, rival), (_, _, columns) in zip(oracles, SET_VIEWS, parts, strict=True):
        found = Counter(columns["value"].tolist())
        assert counts_fit(found, expected_of_sets(oracle, view, held)), view
        assert not counts_fit(found, expected_of_sets(oracle, rival, held)), rival


def expected_of_sets(oracle: GRR, view: View, held: np.ndarray) -> dict[int, float]:
    """How many of each value GRR reports on average, where people with these sets look at them so."""
    shown = np.zeros(oracle.domain.size)
    for i, count in enumerate(np.bincount(held)):
        codes = SETS.encode([HELD_SETS[i]])
        for code, chance in outcomes(lambda source, codes=codes: int(view.apply(codes, source)[0])).items():
            shown[code] += count * float(chance)
    return dict(enumerate(shown * float(oracle.p) + (shown.sum() - shown) * float(oracle.q)))


def expected(mechanism: Mechanism, codes: np.ndarray) -> dict[bytes, float]:
    """How many of each report people with these codes make on average."""
    held = np.bincount(codes, minlength=mechanism.domain.size)
    return {payload: float(held @ np.array(chances, dtype=float)) for payload, chances in mechanism.channel().items()}


def people(size: int, first: float) -> np.ndarray:
    """What they hold: so many of them the first value, the others any of the others."""
    shares = np.array([first, *np.full(size - 1, (1 - first) / (size - 1))])
    return np.random.default_rng(5).choice(size, PEOPLE, p=shares)


def report(values: Sequence[Any], survey: Survey, collector: Asking, folder: Path) -> None:
    """Everybody reports by the browser client's modules, and the collector has it."""
    (folder / "task.json").write_bytes(survey.to_bytes())
    (folder / "values.json").write_text(json.dumps(list(values)))
    job = {"task": f"{folder}/task.json", "values": f"{folder}/values.json", "seed": 11, "address": collector.address}
    done = json.loads(run_node(SCRIPT, json.dumps(job)))
    assert done["acknowledged"] == PEOPLE
    assert collector.reports() == PEOPLE
