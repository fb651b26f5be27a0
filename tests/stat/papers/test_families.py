"""Counts drawn for groups of people: the means and covariances of counts over reports."""

from __future__ import annotations

import numpy as np
import pytest

from veil import GRR, OUE, PGR, Record, SubsetSelection
from veil.entropy import SeededForExperiments
from veil.mechanisms import PureOracle
from veil.survey import AttributeSets, EachOf, ListedSets, Survey
from veil_papers.common import families
from veil_papers.common.families import collect_records, passed_subsets
from veil_papers.datasets import Records

PEOPLE = 600
RECORD = Record.of(a=2, b=3, c=2)


def records(seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(size, size=PEOPLE) // (1 + i % 2) for i, size in enumerate((2, 3, 2))], axis=1)
    return Records(RECORD, codes, "by hand", stand_in=False)


def law(held: np.ndarray, oracle: PureOracle) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the supports of people who hold these cells, exactly."""
    noise, n = oracle.noise, held.sum()
    p, q, hit, miss = (float(part) for part in (noise.p, noise.q, noise.hit, noise.miss))
    mean = held * p + (n - held) * q
    covariance = np.empty((len(held), len(held)))
    for i in range(len(held)):
        for j in range(len(held)):
            both = held[i] + held[j]
            covariance[i, j] = both * (hit - p * q) + (n - both) * (miss - q * q)
        covariance[i, i] = held[i] * p * (1 - p) + (n - held[i]) * q * (1 - q)
    return mean, covariance


def fits(draws: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> bool:
    """Whether draws have this mean and these covariances, within five standard errors of each."""
    count, sd = len(draws), np.sqrt(np.diag(covariance))
    means = np.abs(draws.mean(axis=0) - mean) <= 5 * sd / np.sqrt(count)
    found = (draws - mean).T @ (draws - mean) / count
    room = 5 * np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / count)
    return bool(means.all() and (np.abs(found - covariance) <= room).all())


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_passed_subsets_are_distributed_like_subsets(size: int) -> None:
    oracle, held = SubsetSelection(0.8, 6, subset_size=size), np.array([200, 0, 100, 5, 0, 95])
    many = np.tile(held, (20_000, 1))
    draws = passed_subsets(many, size, float(oracle.p), np.random.default_rng(1))
    assert (draws.sum(axis=1) == size * held.sum()).all()
    mean, covariance = law(held, oracle)
    assert fits(draws, mean, covariance)
    rival = np.random.default_rng(2).binomial(many, float(oracle.p))  # cells that are supported independently
    rival += np.random.default_rng(3).binomial(held.sum() - many, float(oracle.q))
    assert not fits(rival, mean, covariance)


@pytest.mark.parametrize("make", [lambda d: GRR(1.0, d), lambda d: OUE(1.0, d), lambda d: SubsetSelection(1.0, d)])
@pytest.mark.parametrize("passing", [10**9, 0])
def test_a_family_is_drawn_as_it_is_asked(make: object, passing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "_WORTH_PASSING", passing)
    family = EachOf(AttributeSets(RECORD, 2), make)  # type: ignore[arg-type]  # a maker of mechanisms
    survey, people, rng = Survey(family), records(), np.random.default_rng(5)
    runs = 3_000 if passing else 400
    drawn = [collect_records(survey, people, rng) for _ in range(runs)]
    for number in range(3):
        oracle = family.question(number).pure
        held = people.table(family.question(number).view.attributes).ravel() / people.people  # type: ignore[attr-defined]
        counts = np.stack([tally.part(number).counts for tally in drawn])
        answered = np.array([tally.part(number).people for tally in drawn])
        assert all(tally.part(number).task == oracle.digest for tally in drawn)
        # a person answers with 1/3: supports are one person's, thinned
        p, q = float(oracle.p), float(oracle.q)
        mean = PEOPLE / 3 * (held * p + (1 - held) * q)
        assert np.abs(counts.mean(axis=0) - mean).max() <= 5 * np.sqrt(mean.max() / runs)
        inner, one = law(PEOPLE * held, oracle)
        inner = inner / PEOPLE
        second = one / PEOPLE + sum(
            share * np.outer(row, row) for share, row in zip(held, q + (p - q) * np.eye(len(held)), strict=True)
        )
        assert fits(counts, mean, PEOPLE * (second / 3 - np.outer(inner, inner) / 9))
        assert abs(answered.mean() - PEOPLE / 3) < 5 * np.sqrt(PEOPLE * 2 / 9 / runs)


def test_tallies_match_the_survey() -> None:
    survey = Survey(EachOf(ListedSets(RECORD, (("a",), ("a", "b"))), lambda d: SubsetSelection(1.0, d)))
    drawn = collect_records(survey, records(), np.random.default_rng(0))
    asked = survey.tally(survey.randomize(records().to_arrow(), SeededForExperiments(0)))
    assert (drawn.task, drawn.people) == (asked.task, asked.people)
    assert [part.key for part in drawn.parts] == [part.key for part in asked.parts]
    assert sum(part.people for part in drawn.parts) == PEOPLE
    together = drawn + asked
    assert together.people == 2 * PEOPLE


def test_one_question_about_whole_records() -> None:
    family = EachOf(AttributeSets(RECORD, 3), lambda d: OUE(2.0, d))
    survey, people = Survey(family.question(0)), records()
    rng = np.random.default_rng(3)
    counts = np.stack([collect_records(survey, people, rng).part(0).counts for _ in range(2_000)])
    assert fits(counts, *law(people.table(("a", "b", "c")).ravel(), family.question(0).pure))


@pytest.mark.parametrize(
    "make",
    [
        lambda d: SubsetSelection(3.0, d),  # a list of values is shorter than bits
        lambda d: PGR(1.0, d),  # counted by messages
        lambda d: SubsetSelection(0.5, d),
    ],
)
def test_larger_tables_are_drawn_without_bias(make: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "_WORTH_PASSING", 0)
    record, rng = Record.of(a=8, b=9), np.random.default_rng(7)
    people = Records(record, np.stack([rng.integers(3, size=900), rng.integers(4, size=900)], 1), "", stand_in=False)
    family = EachOf(AttributeSets(record, 2), make)  # type: ignore[arg-type]  # a maker of mechanisms
    survey, oracle = Survey(family), family.question(0).pure
    found = np.stack([oracle.shares(collect_records(survey, people, rng).part(0)) for _ in range(300)])
    held = people.table(("a", "b")).ravel() / people.people
    scale = np.sqrt(oracle.noise.variance(held) / people.people)
    off = (found.mean(axis=0) - held) / scale * np.sqrt(300)
    assert np.abs(off).max() < 5
    assert np.abs((found.std(axis=0) / scale).mean() - 1) < 0.05
    assert np.abs((found.mean(axis=0) - np.roll(held, 1)) / scale * np.sqrt(300)).max() > 5


def test_very_large_tables_are_drawn_normally_with_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "_MANY_CELLS", 4)
    family = EachOf(AttributeSets(RECORD, 3), lambda d: SubsetSelection(0.7, d))
    survey, people, rng = Survey(family), records(), np.random.default_rng(4)
    counts = np.stack([collect_records(survey, people, rng).part(0).counts for _ in range(3_000)])
    assert fits(counts, *law(people.table(("a", "b", "c")).ravel(), family.question(0).pure))
