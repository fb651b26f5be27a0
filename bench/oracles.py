"""Every registered oracle against both peers and plain numpy: speed on the device and at the collector, memory, error.

`python -m bench.oracles NAME PEOPLE` is one run of ours in a fresh process, which prints its peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import veil
from bench import ours
from bench.numpy_rivals import rival_of
from bench.peak import peak_mb
from bench.peers import LacksError, Library, Peer, Whole
from bench.timing import Contestant, NotRunError, best_times, local, several, sized
from veil.entropy import SeededForExperiments
from veil.mechanisms import FrequencyOracle, Rappor

DOMAIN, EPSILON = 1024, 1.0
RAPPOR_EPSILON = 4.39  # two hashes, f = 1/2: at 1 nothing would be left of the answers
NUMPY_PEOPLE = 8_192
NUMPY_SIZES = (256, 2_048, 16_384, 131_072, 1_048_576)  # the best of these: matrices of doubles leave the cache
OURS, NUMPY = "veil", "numpy"
ROOT = Path(__file__).resolve().parent.parent
Cell = float | str
"""A number, or why there is none."""


@dataclass(frozen=True)
class Effort:
    """How much to spend: turns a cell, seconds a side, people in the runs for memory and error, seeds of ours."""

    turns: int = 100
    seconds: float = 6.0
    people: int = 100_000
    seeds: int = 5
    size: float = 0.02
    """Seconds that a turn is to take."""
    apart: bool = True
    """Whether to start a process for each peak."""


@dataclass(frozen=True)
class OracleLine:
    """What was measured of one oracle, by rival; speeds are our people a second over theirs."""

    oracle: str
    epsilon: float
    device_rate: float
    collector_rate: float
    device: dict[str, Cell]
    collector: dict[str, Cell]
    peak: dict[str, Cell]
    error: dict[str, Cell]
    turns: int


def all_oracles(effort: Effort, peers: Sequence[Peer]) -> Iterator[OracleLine]:
    """One line for each frequency oracle of the registry."""
    for name in veil.MECHANISMS:
        oracle = make(name)
        if oracle is not None:
            yield _line(oracle, effort, peers)


def make(name: str) -> FrequencyOracle | None:
    """The oracle with the parameters of the table; None for a mechanism that is no frequency oracle."""
    kind = veil.MECHANISMS[name]
    if not issubclass(kind, FrequencyOracle):
        return None
    return kind(RAPPOR_EPSILON if issubclass(kind, Rappor) else EPSILON, DOMAIN)


def _line(oracle: FrequencyOracle, effort: Effort, peers: Sequence[Peer]) -> OracleLine:
    device_rate, device, turns = _against(
        lambda people: ours.randomize(oracle, people), _rivals("randomize", oracle, peers), effort
    )
    collector_rate, collector, more = _against(
        lambda people: ours.collect(oracle, people), _rivals("collect", oracle, peers), effort
    )
    wholes = {peer.library: _whole(peer, oracle, effort) for peer in peers}
    peak: dict[str, Cell] = {OURS: _own_peak(oracle, effort)}
    error: dict[str, Cell] = {OURS: _own_error(oracle, effort), NUMPY: _numpy_error(oracle)}
    for library, whole in wholes.items():
        peak[library.title] = whole if isinstance(whole, str) else whole.peak_mb
        error[library.title] = whole if isinstance(whole, str) else _peer_error(oracle, library, whole)
    return OracleLine(
        oracle.name, oracle.epsilon, device_rate, collector_rate, device, collector, peak, error, min(turns, more)
    )


# -- speed -------------------------------------------------------------------------------------------------------------

Make = Callable[[int], Contestant]


def _rivals(job: str, oracle: FrequencyOracle, peers: Sequence[Peer]) -> dict[str, Make]:
    def of(peer: Peer) -> Make:
        return lambda people: peer.contestant(job, oracle.name, people, DOMAIN, oracle.epsilon)

    return {**{peer.library.title: of(peer) for peer in peers}, NUMPY: lambda people: _numpy(job, oracle, people)}


def _numpy(job: str, oracle: FrequencyOracle, people: int) -> Contestant:
    rival = rival_of(oracle)
    if rival is None:
        raise LacksError("no numpy version")
    values = ours.held_values(oracle, people)
    if job == "randomize":
        return local(lambda: rival.randomize(values), people)
    reports = rival.randomize(values)
    return local(lambda: rival.collect(reports), people)


def _against(own: Make, rivals: dict[str, Make], effort: Effort) -> tuple[float, dict[str, Cell], int]:
    """Our people a second, how many times those of each rival they are, and the turns that this took."""
    found: dict[str, Cell] = {}
    running: list[tuple[str, Contestant]] = [(OURS, sized(own, effort.size))]
    for title, rival in rivals.items():
        try:
            made = several(rival, NUMPY_SIZES, 8 * effort.size) if title == NUMPY else [sized(rival, effort.size)]
            running += [(title, contestant) for contestant in made]
        except NotRunError as why:
            found[title] = _reason(why)
    times, turns = best_times([contestant for _, contestant in running], effort.turns, effort.seconds)
    best: dict[str, float] = {}
    for (title, _), seconds in zip(running, times, strict=True):
        best[title] = min(seconds, best.get(title, seconds))
    found |= {title: best[title] / best[OURS] for title in rivals if title in best}
    return 1 / best[OURS], found, turns


def _reason(why: NotRunError) -> str:
    return "" if isinstance(why, LacksError) else "not run"


# -- memory ------------------------------------------------------------------------------------------------------------


def _whole(peer: Peer, oracle: FrequencyOracle, effort: Effort) -> Whole | str:
    if not effort.apart or not peer.running:
        return "not run"
    with Peer(peer.library) as fresh:
        try:
            return fresh.whole(oracle.name, effort.people, DOMAIN, oracle.epsilon)
        except NotRunError as why:
            return _reason(why)


def _own_peak(oracle: FrequencyOracle, effort: Effort) -> Cell:
    if not effort.apart:
        return "not run"
    command = [sys.executable, "-m", "bench.oracles", oracle.name, str(effort.people)]
    environment = {**os.environ, "VEIL_THREADS": "1"}
    answer = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(json.loads(answer.stdout)["peak_mb"])


def _run_here(name: str, people: int) -> None:
    oracle = make(name)
    if oracle is None:
        raise SystemExit(f"{name} is no frequency oracle")
    tally = oracle.tally(oracle.randomize(np.arange(people) % DOMAIN))
    if not isinstance(oracle, Rappor):
        oracle.estimate(tally)
    print(json.dumps({"peak_mb": peak_mb()}))


# -- error -------------------------------------------------------------------------------------------------------------


def _over_theory(oracle: FrequencyOracle, found: NDArray[np.float64], people: int) -> float:
    """Mean squared error over veil's variance, person i holding value i mod DOMAIN."""
    truth = np.bincount(np.arange(people) % DOMAIN, minlength=DOMAIN) / people
    theory = np.mean([oracle.variance(people, frequency) for frequency in truth])
    return float(np.mean((found - truth) ** 2) / theory)


def _own_error(oracle: FrequencyOracle, effort: Effort) -> Cell:
    if isinstance(oracle, Rappor):
        return "no law"
    values = np.arange(effort.people) % DOMAIN
    estimates = (
        oracle.estimate(oracle.tally(oracle.randomize(values, SeededForExperiments(seed))))
        for seed in range(effort.seeds)
    )
    return float(np.mean([_over_theory(oracle, found.frequencies, effort.people) for found in estimates]))


def _numpy_error(oracle: FrequencyOracle) -> Cell:
    rival = rival_of(oracle)
    found = None if rival is None else rival.collect(rival.randomize(np.arange(NUMPY_PEOPLE) % DOMAIN))
    return "" if found is None else _over_theory(oracle, found, NUMPY_PEOPLE)


def _peer_error(oracle: FrequencyOracle, library: Library, whole: Whole) -> Cell:
    if library.clips:
        return "clips"
    return "" if whole.frequencies is None else _over_theory(oracle, np.array(whole.frequencies), whole.counted)


if __name__ == "__main__":
    _run_here(sys.argv[1], int(sys.argv[2]))
