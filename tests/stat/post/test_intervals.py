"""Honest intervals: over imagined collections they hold the truth as often as they say, whatever the method did."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.significance import ALPHA
from tests.support.everyday import everyday

from veil import OLH, OUE, post
from veil.errors import FitWarning
from veil.post.selection import redraw
from veil.results.estimate import Estimate

SIZE, PEOPLE, RUNS = 64, 100_000, 250
WEIGHTS = 1 / np.arange(1, SIZE + 1) ** 1.5
HELD = np.random.default_rng(0).multinomial(PEOPLE, WEIGHTS / WEIGHTS.sum())
TRUTH = HELD / PEOPLE
CLASSES = {"frequent": range(4), "middle": range(4, 20), "rare": range(44, 64)}
SETS = {"frequent": range(8), "middle": range(8, 24), "rare": range(24, 64)}
BIASED = (
    "base-pos",
    "base-cut",
    "norm-mul",
    "norm-cut",
    "norm-sub",
    "mle-apx",
    "power",
    "power-ns",
    "calibrate",
    "auto",
)
LEARNED = ("calibrate", "auto")  # slower: fewer runs
ORACLE = OLH(1.0, SIZE)


def collections() -> list[Estimate]:
    random = np.random.default_rng(1)
    return [
        Estimate(
            ORACLE.domain,
            redraw(ORACLE.noise, HELD, random),
            PEOPLE,
            ORACLE.noise,
            PEOPLE,
            float(PEOPLE),
            float(PEOPLE),
        )
        for _ in range(RUNS)
    ]


COLLECTIONS = collections()


@dataclass
class Outcome:
    """Whether the truth was within, by run and value, and by run and set; and what was shown."""

    values: NDArray[np.bool_]
    sets: dict[str, NDArray[np.bool_]]
    shown: NDArray[np.float64]


@cache
def outcome(name: str) -> Outcome:
    values, shown = [], []
    sets: dict[str, list[bool]] = {kind: [] for kind in SETS}
    for raw in COLLECTIONS[: 25 if name in LEARNED else RUNS]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            made = raw.post(name)
        low, high = made.interval().T
        values.append((low <= TRUTH) & (high >= TRUTH))
        shown.append(made.frequencies)
        for kind, chosen in SETS.items():
            least, most = made.total(chosen).interval()
            sets[kind].append(least <= TRUTH[list(chosen)].sum() <= most)
    return Outcome(np.array(values), {kind: np.array(hits) for kind, hits in sets.items()}, np.array(shown))


def undercovers(hits: NDArray[np.bool_], level: float = 0.95) -> bool:
    """Whether so few hits cannot be if the coverage is at least the level."""
    return bool(stats.binomtest(int(hits.sum()), hits.size, level, alternative="less").pvalue < ALPHA)


@pytest.mark.parametrize("name", everyday([*BIASED, "post-pos", "base", "norm"], 1, 4, len(BIASED) + 1))
def test_intervals_cover_as_stated(name: str) -> None:
    found = outcome(name)
    for kind, chosen in CLASSES.items():
        assert not undercovers(found.values[:, list(chosen)]), kind
        assert found.values[:, list(chosen)].mean() > 0.93, kind
    for kind, hits in found.sets.items():
        assert not undercovers(hits), kind
        assert hits.mean() > 0.91, kind


def test_intervals_of_norm_are_not_too_wide() -> None:
    found = outcome("norm")
    for chosen in CLASSES.values():
        assert found.values[:, list(chosen)].mean() < 0.98  # of rare values, within 0 and 1, misses are one-sided
    for hits in found.sets.values():
        assert hits.mean() < 0.985


@pytest.mark.parametrize("name", ["norm-mul", "norm-sub", "base-cut", "power", "power-ns"])
def test_the_normal_interval_covers_too_rarely(name: str) -> None:
    """The rival: the shown frequency and 1.96 raw standard errors to either side, for values or for sets."""
    shown = outcome(name).shown
    reach = 1.96 * np.array([raw.stderr for raw in COLLECTIONS])
    hits = np.abs(shown - TRUTH) <= reach
    bad = [kind for kind, chosen in CLASSES.items() if undercovers(hits[:, list(chosen)])]
    for kind, chosen in SETS.items():
        places = list(chosen)
        error = np.abs(shown[:, places].sum(axis=1) - TRUTH[places].sum())
        spread = np.array([post.norm(raw).total(chosen).stderr for raw in COLLECTIONS])
        bad += [f"set of {kind}"] if undercovers(error <= 1.96 * spread) else []
    assert bad


def test_a_plug_in_bootstrap_covers_too_rarely() -> None:
    """The rival: draw again from the processed histogram, take the middle 95 % of what Norm-Sub then shows."""
    random = np.random.default_rng(2)
    hits: dict[str, list[bool]] = {kind: [] for kind in SETS}
    for raw in COLLECTIONS[:120]:
        shown = post.norm_sub(raw.frequencies)
        held = np.diff(np.rint(np.cumsum(shown) * PEOPLE).astype(int), prepend=0)
        again = np.array([post.norm_sub(redraw(ORACLE.noise, held, random)) for _ in range(100)])
        for kind, chosen in SETS.items():
            low, high = np.quantile(again[:, list(chosen)].sum(axis=1), [0.025, 0.975])
            hits[kind].append(bool(low <= TRUTH[list(chosen)].sum() <= high))
    assert all(undercovers(np.array(hits[kind])) for kind in ("frequent", "rare"))
    assert not any(undercovers(honest[:120]) for honest in outcome("norm-sub").sets.values())


def test_other_levels_and_oracles() -> None:
    oracle, random = OUE(3.0, SIZE), np.random.default_rng(3)
    low, high = [], []
    for _ in range(RUNS):
        raw = Estimate(
            oracle.domain,
            redraw(oracle.noise, HELD, random),
            PEOPLE,
            oracle.noise,
            PEOPLE,
            float(PEOPLE),
            float(PEOPLE),
        )
        made = raw.post("norm-sub")
        for level, hits in ((0.5, low), (0.99, high)):
            bounds = made.interval(level)
            hits.append((bounds[:, 0] <= TRUTH) & (bounds[:, 1] >= TRUTH))
    assert not undercovers(np.array(low), 0.5)
    assert not undercovers(np.array(high), 0.99)
    assert undercovers(np.array(low), 0.95)
