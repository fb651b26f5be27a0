"""The rows of the table: what is timed against what, and the ratio that is asked for (None: for orientation)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from acceptance.hadamard import transform_over_fft
from acceptance.pgr import decode_over_fft

from bench.c_loop import CLoop
from bench.numpy_rivals import rival_of
from bench.ours import held_values, randomize, reports_of, tally, threads
from bench.peers import MULTI_FREQ, PURE_LDP, Peer
from bench.timing import Contestant, NotRunError, Row, Setting, local, once
from veil import GRR, OLH, OUE, SubsetSelection
from veil.kernels.counting import halves
from veil.mechanisms import PureOracle
from veil.reports.columns import Reports

DOMAIN, EPSILON = 1024, 1.0
MILLION = 1_000_000
HELP_SECONDS = 0.5
PGR_TURNS = 50


def speed_rows(setting: Setting) -> Iterator[Row]:
    """Every row about oracles."""
    turns = setting.repeats
    olh, grr, oue = OLH(EPSILON, DOMAIN), GRR(EPSILON, DOMAIN), OUE(EPSILON, DOMAIN)
    subset = SubsetSelection(EPSILON, DOMAIN)
    with ExitStack() as stack:
        pure_ldp, multi_freq = Peer(PURE_LDP), Peer(MULTI_FREQ)
        if setting.rivals:
            stack.enter_context(pure_ldp)
            stack.enter_context(multi_freq)

        def peer(job: str, oracle: PureOracle, people: int, at: Peer = pure_ldp) -> Contestant:
            return at.contestant(job, oracle.name, people, DOMAIN, EPSILON)

        reports = reports_of(olh, 100_000)
        counting, one = "OLH support counting, one thread", tally(olh, reports, 1)
        yield Row(counting, PURE_LDP.title, 2000, one, peer("collect", olh, 10), turns)
        yield Row(counting, "C, gcc -O3 -march=native", 0.8, one, lambda: _c_count(olh, reports), turns)
        many, two = reports_of(olh, 400_000), "OLH support counting, two threads"
        yield Row(two, "one thread", 1.7, tally(olh, many, 2), tally(olh, many, 1), turns)
        weighted = "OLH support counting with weights, one thread"
        yield Row(weighted, "without", None, tally(olh, reports, 1, weighted=True), one, turns)

        for oracle, required, people in ((olh, 50, 2_000), (grr, 5, 20_000)):
            fresh = f"{oracle.name} randomizing 1,000,000 people, one thread"
            rival = peer("randomize", oracle, people)
            yield Row(fresh, PURE_LDP.title, required, randomize(oracle, MILLION), rival, turns)
        unary, subsets = "OUE randomizing, one thread", "SubsetSelection randomizing"
        ours = randomize(oue, 65_536)
        yield Row(unary, "numpy, Generator.random", None, ours, lambda: _numpy_randomize(oue), turns)
        alone, both = f"{subsets}, one thread", f"{subsets}, two threads"
        ours, theirs = randomize(subset, 65_536), peer("randomize", subset, 1_000, multi_freq)
        yield Row(alone, "numpy, argpartition", None, ours, lambda: _numpy_randomize(subset), turns)
        yield Row(alone, MULTI_FREQ.title, 10, ours, theirs, turns)
        ours = randomize(subset, 131_072, cores=2)
        yield Row(both, MULTI_FREQ.title, None, ours, theirs, turns)
        yield Row(both, "one thread", None, ours, randomize(subset, 131_072), turns)

        packed = reports_of(oue, 20_000)
        bits, ours = "OUE tally from packed reports, one thread", tally(oue, packed, 1)
        yield Row(bits, "numpy unpackbits and sum", 3, ours, _numpy_unpack_sum(packed), turns)
        yield Row(bits, "numpy sum, unpacked before", 3, ours, _numpy_sum(packed), turns)
        values = reports_of(grr, MILLION)
        yield Row("GRR tally", "np.bincount", None, tally(grr, values, 1), _numpy_bincount(values), turns)


def transform_rows(setting: Setting) -> Iterator[Row]:
    """Decoding by fast transforms, one thread; the cost of ours is its time over the library's."""
    people, turns = setting.reports // 10, min(setting.repeats, PGR_TURNS)
    with threads(1):
        ours = once(lambda: transform_over_fft(1 << 20, setting.repeats))
        yield Row("Walsh-Hadamard transform of 2^20 integers", "numpy.fft.fft of the same length", 0.5, ours, 1.0, 1)
        ours = once(lambda: decode_over_fft(people, people, EPSILON, turns))
        what = f"PGR tally and decode, d = n = {people:,}, one thread (best of {turns})"
        yield Row(what, "the bare scipy.fft.fftn of q^t cells", 1 / 3, ours, 1.0, 1)


def start_rows(setting: Setting) -> Iterator[Row]:
    """How `veil --help` compares with the half second that it may take."""
    command = Path(sys.executable).with_name("veil")

    def seconds() -> float:
        start = time.perf_counter()
        try:
            subprocess.run([str(command), "--help"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise NotRunError("the command line does not run here") from None
        return time.perf_counter() - start

    ours, turns = Contestant(seconds, 1, warm=False), min(setting.repeats, 20)
    yield Row("veil --help", f"a limit of {HELP_SECONDS} s", 1.0, ours, HELP_SECONDS, turns)


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
