"""Rows about strings and sets: PEM's pairs against the bare kernel's, and SVSM on 500,000 people against a limit.

One thread, on both sides. PEM is measured on fewer people than a million: pairs grow with people and overhead hardly,
so that the ratio for more people is no smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.ours import threads
from bench.timing import Contestant, Row, Setting, local
from veil import OLH, Bits, simulate
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.hitters import PEM
from veil.itemsets import SVSM
from veil.kernels.counting import count_hashed, halves
from veil_papers.datasets import exponential_bits, pos_baskets

BITS, K, BUDGET = 64, 16, 1 << 20
PEOPLE = 20_000
KERNEL_REPORTS, KERNEL_CANDIDATES = 4_096, 1 << 17
SET_PEOPLE, SET_SECONDS = 500_000, 5.0


def hitters_rows(setting: Setting) -> Iterator[Row]:
    """Every row, in few turns: each takes seconds."""
    turns = min(setting.repeats, 5)
    with threads(1):
        yield _pem_row(turns)
        yield _svsm_row(min(turns, 3))


def _pem_row(turns: int) -> Row:
    search = PEM(1.0, Bits(BITS), K, BUDGET)
    held, _ = exponential_bits(PEOPLE, BITS, seed=0)
    stored = MemoryCollection(search.survey, search.survey.randomize(held, SeededForExperiments(0)))
    found = search.read(stored)
    pairs = sum(step.people * step.candidates for step in found.history)
    queries = sum(step.candidates for step in found.history)
    return Row(
        f"PEM (OLH), {queries:,} of 2^20 queries, m = {BITS}, n = {PEOPLE:,}: pairs a second (best of {turns})",
        f"the bare kernel, {KERNEL_REPORTS:,} reports and {KERNEL_CANDIDATES:,} candidates",
        0.6,
        local(lambda: search.read(stored), pairs),
        _kernel,
        turns,
    )


def _kernel() -> Contestant:
    oracle = OLH(1.0, Bits(BITS))
    random = np.random.default_rng(0)
    seeds = random.integers(0, 2**64, KERNEL_REPORTS, dtype=np.uint64)
    buckets = random.integers(0, oracle.buckets, KERNEL_REPORTS, dtype=np.uint64)
    low, high = halves(oracle.spread(random.integers(0, 2**64, KERNEL_CANDIDATES, dtype=np.uint64)))
    work = KERNEL_REPORTS * KERNEL_CANDIDATES
    return local(lambda: count_hashed(seeds, buckets, oracle.buckets, low, high), work)


def _svsm_row(turns: int) -> Row:
    baskets = pos_baskets().resample(SET_PEOPLE, seed=0)
    column, study = baskets.to_arrow(), SVSM(64, 2.0, baskets.domain)
    return Row(
        f"SVSM, {SET_PEOPLE:,} people, k = 64, randomized and mined (best of {turns})",
        f"a limit of {SET_SECONDS:g} s",
        1.0,
        local(lambda: simulate(study, column, seed=0), 1),
        SET_SECONDS,
        turns,
    )
