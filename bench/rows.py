"""The rows of the table: what is timed against what, and the ratio that is asked for (None: for orientation)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.c_loop import CLoop
from bench.peers import PureLdp
from bench.timing import Contestant, NotRunError, Outcome, local, ratio
from veil import GRR, OLH, OUE, SubsetSelection
from veil.kernels.counting import halves
from veil.mechanisms import PureOracle
from veil.report import Reports

__all__ = ["speed_rows", "start_row"]

DOMAIN, EPSILON = 1024, 1.0
MILLION = 1_000_000
HELP_SECONDS = 0.5
Pair = tuple[Contestant, Contestant]


def speed_rows(repeats: int, pure_ldp: PureLdp) -> Iterator[Outcome]:
    """Every row, measured as it is asked for."""

    def row(what: str, against: str, required: float | None, pair: Callable[[], Pair]) -> Outcome:
        try:
            return Outcome(what, against, ratio(*pair(), repeats), required)
        except NotRunError as why:
            return Outcome(what, against, None, required, str(why))

    olh, grr, oue = OLH(EPSILON, DOMAIN), GRR(EPSILON, DOMAIN), OUE(EPSILON, DOMAIN)
    subset = SubsetSelection(EPSILON, DOMAIN)

    def peer(job: str, people: int) -> Contestant:
        return pure_ldp.contestant(job, people, DOMAIN, EPSILON)

    reports = _reports(olh, 100_000)
    counting = "OLH support counting, one thread"
    yield row(counting, "pure-ldp 1.2.0", 2000, lambda: (_tally(olh, reports, 1), peer("olh-tally", 10)))
    yield row(counting, "C, gcc -O3 -march=native", 0.8, lambda: (_tally(olh, reports, 1), _c_count(olh, reports)))
    many = _reports(olh, 400_000)
    yield row(
        "OLH support counting, two threads", "one thread", 1.7, lambda: (_tally(olh, many, 2), _tally(olh, many, 1))
    )
    weighted = "OLH support counting with weights, one thread"
    yield row(weighted, "without", None, lambda: (_tally(olh, reports, 1, weighted=True), _tally(olh, reports, 1)))

    fresh = "randomizing 1,000,000 people, one thread"
    yield row(f"OLH {fresh}", "pure-ldp 1.2.0", 50, lambda: (_randomize(olh, MILLION), peer("olh-randomize", 2_000)))
    yield row(f"GRR {fresh}", "pure-ldp 1.2.0", 5, lambda: (_randomize(grr, MILLION), peer("grr-randomize", 20_000)))
    unary, subsets = "OUE randomizing, one thread", "SubsetSelection randomizing"
    yield row(unary, "numpy, Generator.random", None, lambda: (_randomize(oue, 65_536), _numpy_oue(oue)))
    yield row(
        f"{subsets}, one thread",
        "numpy, argpartition",
        None,
        lambda: (_randomize(subset, 65_536), _numpy_subset(subset)),
    )
    yield row(
        f"{subsets}, two threads",
        "one thread",
        None,
        lambda: (_randomize(subset, 131_072, threads=2), _randomize(subset, 131_072)),
    )

    packed = _reports(oue, 20_000)
    tally = "OUE tally from packed reports, one thread"
    yield row(tally, "numpy unpackbits and sum", 3, lambda: (_tally(oue, packed, 1), _numpy_unpack_sum(packed)))
    yield row(tally, "numpy sum, unpacked before", 3, lambda: (_tally(oue, packed, 1), _numpy_sum(packed)))
    values = _reports(grr, MILLION)
    yield row("GRR tally", "np.bincount", None, lambda: (_tally(grr, values, 1), _numpy_bincount(values)))


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


def _values(people: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, DOMAIN, people)


def _reports(oracle: PureOracle, people: int) -> Reports:
    return oracle.randomize(_values(people))


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    before = os.environ.get("VEIL_THREADS")
    os.environ["VEIL_THREADS"] = str(count)
    try:
        yield
    finally:
        del os.environ["VEIL_THREADS"]
        if before is not None:
            os.environ["VEIL_THREADS"] = before


def _randomize(oracle: PureOracle, people: int, threads: int = 1) -> Contestant:
    """From fresh entropy of the operating system, as everybody gets it."""
    values = _values(people)

    def work() -> None:
        with _threads(threads):
            oracle.randomize(values)

    return local(work, people)


def _tally(oracle: PureOracle, reports: Reports, threads: int, weighted: bool = False) -> Contestant:
    weights = np.arange(len(reports)) % 1000 if weighted else None

    def work() -> None:
        with _threads(threads):
            oracle.tally(reports, weights=weights)

    return local(work, len(reports))


def _c_count(olh: OLH, reports: Reports) -> Contestant:
    loop = CLoop()
    columns = reports.columns
    low, high = halves(olh.spread(np.arange(DOMAIN, dtype=np.uint64)))
    counts = loop.count(columns["seed"], columns["bucket"], olh.hash_range, low, high)
    if not np.array_equal(counts, olh.tally(reports).counts):
        raise AssertionError("the C loop counts something else")
    return local(lambda: loop.count(columns["seed"], columns["bucket"], olh.hash_range, low, high), len(reports))


def _numpy_oue(oue: OUE, people: int = 4_096) -> Contestant:
    """Unary encoding as one would write it in numpy: 64-bit floats, not exact."""
    values, random, q = _values(people), np.random.default_rng(), float(oue.q)

    def work() -> NDArray[np.uint8]:
        bits = random.random((people, DOMAIN)) < q
        bits[np.arange(people), values] = random.random(people) < 0.5
        return np.packbits(bits, axis=1, bitorder="little")

    return local(work, people)


def _numpy_subset(subset: SubsetSelection, people: int = 4_096) -> Contestant:
    """Subsets as one would write them in numpy: the smallest of random keys, the held value's key forced."""
    values, random, p = _values(people), np.random.default_rng(), float(subset.p)

    def work() -> NDArray[np.uint8]:
        keys = random.random((people, DOMAIN))
        keys[np.arange(people), values] = np.where(random.random(people) < p, -1.0, 2.0)
        chosen = np.argpartition(keys, subset.subset_size, axis=1)[:, : subset.subset_size]
        bits = np.zeros((people, DOMAIN), np.uint8)
        np.put_along_axis(bits, chosen, 1, axis=1)
        return np.packbits(bits, axis=1, bitorder="little")

    return local(work, people)


def _numpy_unpack_sum(reports: Reports) -> Contestant:
    bits = reports.columns["bits"]
    return local(lambda: np.unpackbits(bits, axis=1, bitorder="little").sum(axis=0), len(reports))


def _numpy_sum(reports: Reports) -> Contestant:
    unpacked = np.unpackbits(reports.columns["bits"], axis=1, bitorder="little")
    return local(lambda: unpacked.sum(axis=0), len(reports))


def _numpy_bincount(reports: Reports) -> Contestant:
    values = reports.columns["value"]
    return local(lambda: np.bincount(values, minlength=DOMAIN), len(reports))
