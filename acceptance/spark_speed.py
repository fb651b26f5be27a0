"""What Spark costs on one machine, beside the local engine: time and memory of a tally of 20,000,000 OLH reports.

`python -m acceptance.spark_speed FOLDER PEOPLE` prints what was found as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import psutil
from bench.timing import best_times, local

from veil import OLH, Survey
from veil.engines import FileCollection
from veil.engines.spark import SparkCollection, open_session
from veil.entropy import SeededForExperiments
from veil.files.reports import write_parquet
from veil.simulation import SimulatedCollection
from veil.survey import People
from veil.wire.tallies import encode_tally

PEOPLE, TURNS, SEED = 20_000_000, 6, 18
MOST_RATIO, MOST_MB = 1.3, 1000.0
WHAT = "Spark on local[2] over the local engine with two threads, 20,000,000 reports, d = 1,024"


def measure() -> dict[str, float]:
    """The ratio of times, best of turns that alternate, and the most memory that a worker's process took."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "acceptance.spark_speed", folder, str(PEOPLE)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def judge(found: dict[str, float]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of what was measured and required."""
    rows = [
        (
            WHAT,
            f"{found['ratio']:.2f}",
            f"<= {MOST_RATIO}",
        ),
        ("memory of a Python worker, MB", f"{found['worker_mb']:.0f}", f"< {MOST_MB:.0f}"),
        ("the same tally, byte by byte", str(bool(found["same"])), "True"),
    ]
    return rows, found["ratio"] <= MOST_RATIO and found["worker_mb"] < MOST_MB and bool(found["same"])


class _Memory:
    """The largest memory of any Python process below this one, looked at while something runs."""

    def __init__(self) -> None:
        self.most, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(0.05):
            for child in psutil.Process().children(recursive=True):
                try:
                    if "python" in child.name():
                        self.most = max(self.most, child.memory_info().rss)
                except psutil.Error:
                    continue

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self.most / 2**20


def _reports(folder: Path, survey: Survey, people: int) -> Path:
    path = folder / "reports.parquet"
    codes = np.random.default_rng(SEED).integers(0, survey.domain.size, people).astype(np.uint64)
    write_parquet(path, survey, SimulatedCollection(survey, People(codes), SeededForExperiments(SEED)).reports())
    return path


def main(folder: Path, people: int) -> None:
    """Take turns, and print what was found."""
    os.environ["VEIL_THREADS"] = "2"
    survey = Survey(OLH(1.0, 1024))
    path = _reports(folder, survey, people)
    spark = open_session("spark-local", **{"spark.master": "local[2]"})
    far, here = SparkCollection.files(spark, survey, [path]), FileCollection(survey, [path])
    tallies = encode_tally(far.tally()), encode_tally(here.tally())  # the JVM, the workers and the kernels are warm now
    memory = _Memory()
    (spark_s, local_s), _ = best_times([local(place.tally, 1) for place in (far, here)], TURNS)
    found = {"ratio": spark_s / local_s, "worker_mb": memory.stop(), "same": float(tallies[0] == tallies[1])}
    sys.stdout.write(json.dumps({**found, "spark_s": spark_s, "local_s": local_s}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
