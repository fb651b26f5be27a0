"""Peak memory of tallying an Arrow file of OLH reports, and proof that no split and no number of threads shows.

Each tally runs in a fresh process (`python -m bench.memory FILE`) that prints its peak and the digest of its tally.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.peak import peak_mb
from bench.timing import Outcome
from veil import OLH, Survey
from veil.entropy import SeededForExperiments
from veil.files import ReportWriter, read_reports

__all__ = ["memory_rows"]

DOMAIN = 1024
LIMIT_MB = 500
ROOT = Path(__file__).resolve().parent.parent


def memory_rows(reports: int) -> Iterator[Outcome]:
    """Rows for a file of so many reports: its peak with usual record batches, with one huge one, and identity."""
    survey = Survey(OLH(epsilon=1.0, domain=DOMAIN))
    values = np.random.default_rng(0).integers(0, DOMAIN, reports)
    made = survey.randomize(values, SeededForExperiments(0))
    peaks: list[float] = []
    digests: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for rows in (65_536, 1_000_003, reports):
            path = Path(folder) / f"{rows}.arrow"
            with ReportWriter(path, survey) as writer:
                for start in range(0, reports, rows):
                    writer.write(made[start : start + rows])
            for threads in (1, 2, 3):
                peak_mb, digest = _tally_apart(path, threads)
                peaks.append(peak_mb)
                digests.add(digest)
    what = f"memory: tally of {reports:,} OLH reports, d = {DOMAIN}"
    yield Outcome(what, f"{LIMIT_MB} MB, record batches of 65,536", LIMIT_MB / max(peaks[:3]), 1.0)
    yield Outcome(what, f"{LIMIT_MB} MB, one record batch", LIMIT_MB / max(peaks[-3:]), 1.0)
    yield Outcome(
        f"the same tally bit by bit (1 = yes), {reports:,} OLH reports",
        f"{len(peaks)} runs: 3 batch sizes, 1 to 3 threads",
        float(len(digests) == 1),
        1.0,
    )


def _tally_apart(path: Path, threads: int) -> tuple[float, str]:
    answer = subprocess.run(
        [sys.executable, "-m", "bench.memory", str(path)],
        env={**os.environ, "VEIL_THREADS": str(threads)},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(answer.stdout)
    return float(found["peak_mb"]), str(found["digest"])


def _tally_here(path: str) -> None:
    survey = Survey(OLH(epsilon=1.0, domain=DOMAIN))
    total = None
    for reports in read_reports(path, survey):
        part = survey.tally(reports)
        total = part if total is None else total + part
    if total is None:
        raise SystemExit("no reports in the file")
    digest = hashlib.sha256(total.parts[0].counts.tobytes() + total.people.to_bytes(8, "little")).hexdigest()
    print(json.dumps({"peak_mb": peak_mb(), "digest": digest}))


if __name__ == "__main__":
    _tally_here(sys.argv[1])
