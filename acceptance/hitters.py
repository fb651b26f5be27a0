"""Decoding at full size: 2^26 candidates from 1,000,000 real reports through LinearHashing, each in a fresh process.

`python -m acceptance.hitters EPS SEED` makes the reports, searches them on one thread, and prints what it took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.peak import peak_mb

from veil.domain import Bits
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.hitters import PEM
from veil.metrics import f1
from veil_papers.datasets import exponential_bits

PEOPLE, BITS, K, BUDGET = 1_000_000, 64, 16, 1 << 27
CANDIDATES, SECONDS, MEGABYTES, SCORE = 1 << 26, 20.0, 1_000.0, 0.94


@dataclass(frozen=True)
class Decoded:
    """One search: candidates, seconds of one core, memory at its peak, and F1."""

    candidates: int
    seconds: float
    peak_mb: float
    score: float


def decode(epsilon: float, seeds: range) -> list[Decoded]:
    """One search per seed, each in a process of its own with one thread."""
    alone = dict.fromkeys(("VEIL_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    found = []
    for seed in seeds:
        command = [sys.executable, "-m", "acceptance.hitters", str(epsilon), str(seed)]
        root = Path(__file__).parent.parent
        done = subprocess.run(
            command, cwd=root, env={**os.environ, **alone}, check=True, capture_output=True, text=True
        )
        found.append(Decoded(**json.loads(done.stdout)))
    return found


def judge(found: dict[float, list[Decoded]]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of (what, measured, required), and whether all holds; F1 is required at eps = 1."""
    rows, passed = [], True
    for epsilon, runs in found.items():
        at, required = f"eps = {epsilon:g}, {len(runs)} seeds", epsilon == 1.0
        score = float(np.mean([run.score for run in runs]))
        least, longest = min(run.candidates for run in runs), max(run.seconds for run in runs)
        largest = max(run.peak_mb for run in runs)
        rows += [
            (f"candidates over 2^26, {at}", f"{least / CANDIDATES:.2f}", "at least 1"),
            (f"seconds of one core, the slowest, {at}", f"{longest:.1f}", f"at most {SECONDS:g}"),
            (f"memory of the process at its peak, MB, {at}", f"{largest:.0f}", f"at most {MEGABYTES:g}"),
            (f"F1, mean, {at}", f"{score:.3f}", f"at least {SCORE}" if required else ""),
        ]
        passed &= (
            least >= CANDIDATES and longest <= SECONDS and largest <= MEGABYTES and (score >= SCORE or not required)
        )
    return rows, passed


def _decode_here(epsilon: float, seed: int) -> Decoded:
    small = PEM(epsilon, Bits(32), 2, 1 << 12, oracle="PGR")
    small.read(MemoryCollection(small.survey, small.survey.randomize([1, 2, 3] * 100)))  # compiles
    held, ranking = exponential_bits(PEOPLE, BITS, seed)
    search = PEM(epsilon, Bits(BITS), K, BUDGET, oracle="PGR")
    reports = search.survey.randomize(held, SeededForExperiments(seed))
    start = time.process_time()  # one thread: the seconds that it would take on a core of its own
    found = search.read(MemoryCollection(search.survey, reports))
    seconds = time.process_time() - start
    candidates = sum(step.candidates for step in found.history)
    return Decoded(candidates, seconds, peak_mb(), f1(found.values, ranking[:K]))


if __name__ == "__main__":
    print(json.dumps(vars(_decode_here(float(sys.argv[1]), int(sys.argv[2])))))
