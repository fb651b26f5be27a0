"""The rows of the table: what is timed against what, and the ratio that is asked for (None: for orientation)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from acceptance.hadamard import transform_over_fft
from acceptance.pgr import decode_over_fft

from bench.c_loop import CLoop
from bench.numpy_rivals import rival_of
from bench.ours import held_values, randomize, reports_of, tally, threads
from bench.peers import MULTI_FREQ, PURE_LDP, Peer
from bench.timing import Contestant, NotRunError, Outcome, local, ratio
from veil import GRR, OLH, OUE, SubsetSelection
from veil.kernels.counting import halves
from veil.mechanisms import PureOracle
from veil.wire.reports import Reports

__all__ = ["DOMAIN", "EPSILON", "speed_rows", "start_row", "transform_rows"]

DOMAIN, EPSILON = 1024, 1.0
MILLION = 1_000_000
HELP_SECONDS = 0.5
PGR_TURNS = 50
Pair = tuple[Contestant, Contestant]


def speed_rows(repeats: int, pure_ldp: Peer, multi_freq: Peer) -> Iterator[Outcome]:
    """Every row, measured as it is asked for."""

    def row(what: str, against: str, required: float | None, pair: Callable[[], Pair]) -> Outcome:
        try:
            return Outcome(what, against, ratio(*pair(), repeats), required)
        except NotRunError as why:
            return Outcome(what, against, None, required, str(why))

    olh, grr, oue = OLH(EPSILON, DOMAIN), GRR(EPSILON, DOMAIN), OUE(EPSILON, DOMAIN)
    subset = SubsetSelection(EPSILON, DOMAIN)

    def peer(job: str, oracle: PureOracle, people: int, at: Peer = pure_ldp) -> Contestant:
        return at.contestant(job, oracle.name, people, DOMAIN, EPSILON)

    reports = reports_of(olh, 100_000)
    counting = "OLH support counting, one thread"
    yield row(counting, PURE_LDP.title, 2000, lambda: (tally(olh, reports, 1), peer("collect", olh, 10)))
    yield row(counting, "C, gcc -O3 -march=native", 0.8, lambda: (tally(olh, reports, 1), _c_count(olh, reports)))
    many = reports_of(olh, 400_000)
    yield row(
        "OLH support counting, two threads", "one thread", 1.7, lambda: (tally(olh, many, 2), tally(olh, many, 1))
    )
    weighted = "OLH support counting with weights, one thread"
    yield row(weighted, "without", None, lambda: (tally(olh, reports, 1, weighted=True), tally(olh, reports, 1)))

    fresh = "randomizing 1,000,000 people, one thread"
    yield row(f"OLH {fresh}", PURE_LDP.title, 50, lambda: (randomize(olh, MILLION), peer("randomize", olh, 2_000)))
    yield row(f"GRR {fresh}", PURE_LDP.title, 5, lambda: (randomize(grr, MILLION), peer("randomize", grr, 20_000)))
    unary, subsets = "OUE randomizing, one thread", "SubsetSelection randomizing"
    yield row(unary, "numpy, Generator.random", None, lambda: (randomize(oue, 65_536), _numpy_randomize(oue)))
    yield row(
        f"{subsets}, one thread",
        "numpy, argpartition",
        None,
        lambda: (randomize(subset, 65_536), _numpy_randomize(subset)),
    )
    theirs = peer("randomize", subset, 1_000, multi_freq)
    yield row(f"{subsets}, one thread", MULTI_FREQ.title, 10, lambda: (randomize(subset, 65_536), theirs))
    yield row(f"{subsets}, two threads", MULTI_FREQ.title, None, lambda: (randomize(subset, 131_072, 2), theirs))
    yield row(
        f"{subsets}, two threads",
        "one thread",
        None,
        lambda: (randomize(subset, 131_072, cores=2), randomize(subset, 131_072)),
    )

    packed = reports_of(oue, 20_000)
    bits = "OUE tally from packed reports, one thread"
    yield row(bits, "numpy unpackbits and sum", 3, lambda: (tally(oue, packed, 1), _numpy_unpack_sum(packed)))
    yield row(bits, "numpy sum, unpacked before", 3, lambda: (tally(oue, packed, 1), _numpy_sum(packed)))
    values = reports_of(grr, MILLION)
    yield row("GRR tally", "np.bincount", None, lambda: (tally(grr, values, 1), _numpy_bincount(values)))


def transform_rows(repeats: int, people: int = MILLION) -> Iterator[Outcome]:
    """Decoding by fast transforms against the library's own, one thread each; PGR for so many people and values."""
    with threads(1):
        slower = transform_over_fft(1 << 20, repeats)
        yield Outcome("Walsh-Hadamard transform of 2^20 integers", "numpy.fft.fft of the same length", 1 / slower, 0.5)
        slower = decode_over_fft(people, people, EPSILON, min(repeats, PGR_TURNS))
        what = f"PGR tally and decode, d = n = {people:,}, one thread (best of {min(repeats, PGR_TURNS)})"
        yield Outcome(what, "the bare scipy.fft.fftn of q^t cells", 1 / slower, 1 / 3)


def start_row(repeats: int) -> Outcome:
    """How `veil --help` compares with the half second that it may take."""
    command = Path(sys.executable).with_name("veil")
    what, against = "veil --help", f"a limit of {HELP_SECONDS} s"
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        try:
            subprocess.run([str(command), "--help"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return Outcome(what, against, None, 1.0, "the command line does not run here")
        best = min(best, time.perf_counter() - start)
    return Outcome(what, against, HELP_SECONDS / best, 1.0)


def _c_count(olh: OLH, reports: Reports) -> Contestant:
    loop = CLoop()
    columns = reports.columns
    low, high = halves(olh.spread(np.arange(DOMAIN, dtype=np.uint64)))
    counts = loop.count(columns["seed"], columns["bucket"], olh.hash_range, low, high)
    if not np.array_equal(counts, olh.tally(reports).counts):
        raise AssertionError("the C loop counts something else")
    return local(lambda: loop.count(columns["seed"], columns["bucket"], olh.hash_range, low, high), len(reports))


def _numpy_randomize(oracle: PureOracle, people: int = 4_096) -> Contestant:
    rival, values = rival_of(oracle), held_values(oracle, people)
    if rival is None:
        raise NotRunError("no numpy version")
    return local(lambda: rival.randomize(values), people)


def _numpy_unpack_sum(reports: Reports) -> Contestant:
    bits = reports.columns["bits"]
    return local(lambda: np.unpackbits(bits, axis=1, bitorder="little").sum(axis=0), len(reports))


def _numpy_sum(reports: Reports) -> Contestant:
    unpacked = np.unpackbits(reports.columns["bits"], axis=1, bitorder="little")
    return local(lambda: unpacked.sum(axis=0), len(reports))


def _numpy_bincount(reports: Reports) -> Contestant:
    values = reports.columns["value"]
    return local(lambda: np.bincount(values, minlength=DOMAIN), len(reports))
