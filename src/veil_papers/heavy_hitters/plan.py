"""How much of the heavy hitters' experiments is run."""

from __future__ import annotations

from dataclasses import dataclass

from veil_papers.heavy_hitters.searching import IMPROVED, OURS, PAPER

__all__ = ["FULL", "QUERIES", "QUICK", "SYNTHETIC", "URLS", "Plan"]

SYNTHETIC, URLS, QUERIES = "synthetic", "URL stand-in", "query stand-in"


@dataclass(frozen=True)
class Plan:
    """Runs and points."""

    runs: int
    few: int
    """Where rivals take long."""
    text_runs: int
    """On text, where everything does."""
    urls: int
    """How many different strings there are."""
    names: int | None
    words: int | None
    methods: tuple[str, ...]
    """What is run on text."""
    people: dict[str, int]
    text_people: int
    """For names and words of 48 bits."""
    epsilons: tuple[float, ...]
    text_epsilons: tuple[float, ...]
    tops: tuple[int, ...]
    text_tops: tuple[int, ...]
    steps: tuple[int, ...]
    step_epsilons: tuple[float, ...]
    split_epsilons: tuple[float, ...]
    thetas: tuple[float, ...]
    real_runs: int


FULL = Plan(
    runs=10,
    few=5,
    text_runs=3,
    urls=27_000,
    names=None,
    words=None,
    methods=tuple(IMPROVED),
    people={SYNTHETIC: 1_000_000, URLS: 1_200_000, QUERIES: 500_000},
    text_people=1_000_000,
    epsilons=(0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
    text_epsilons=(1.0, 2.0, 3.0, 4.0),
    tops=(8, 16, 24, 32, 48, 64),
    text_tops=(8, 16, 32, 64),
    steps=(1, 2, 4, 6, 8, 10, 12, 15, 20),
    step_epsilons=(0.6, 0.9, 1.0, 1.2, 1.5, 2.0),
    split_epsilons=(0.6, 0.9, 1.2, 1.5, 2.0, 3.0, 4.0),
    thetas=(0.01, 0.015, 0.02, 0.023, 0.03, 0.04),
    real_runs=10,
)
QUICK = Plan(
    runs=2,
    few=2,
    text_runs=2,
    urls=1_000,
    names=1_000,
    words=1_000,
    methods=(PAPER, OURS, "PrivTrie, no threshold"),
    people={SYNTHETIC: 200_000, URLS: 200_000, QUERIES: 200_000},
    text_people=200_000,
    epsilons=(1.0, 2.0),
    text_epsilons=(4.0,),
    tops=(8,),
    text_tops=(8,),
    steps=(1, 2, 10),
    step_epsilons=(0.9, 1.0),
    split_epsilons=(1.2, 4.0),
    thetas=(0.023,),
    real_runs=2,
)
