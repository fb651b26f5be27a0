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
from functools import cache
from pathlib import Path

import numpy as np

from bench.peak import peak_mb
from bench.timing import Row, Setting, once
from veil import OLH, Survey
from veil.entropy import SeededForExperiments
from veil.files import ReportWriter, read_reports
from veil.reports.columns import Reports

DOMAIN = 1024
LIMIT_MB = 500
ROOT = Path(__file__).resolve().parent.parent


def memory_rows(setting: Setting) -> Iterator[Row]:
    """Rows for a file of reports: its peak with usual record batches, with one huge one, and identity."""
    reports, survey = setting.reports, Survey(OLH(epsilon=1.0, domain=DOMAIN))

    @cache
    def made() -> Reports:
        values = np.random.default_rng(0).integers(0, DOMAIN, reports)
        return survey.randomize(values, SeededForExperiments(0))

    with tempfile.TemporaryDirectory() as folder:

        @cache
        def tallied(rows: int) -> tuple[float, frozenset[str]]:
            """The largest peak with record batches of so many rows, and the digests of all tallies."""
            path = Path(folder) / f"{rows}.arrow"
            with ReportWriter(path, survey) as writer:
                for start in range(0, reports, rows):
                    writer.write(made()[start : start + rows])
            peaks, digests = zip(*(_tally_apart(path, threads) for threads in (1, 2, 3)), strict=True)
            return max(peaks), frozenset(digests)

        def differing() -> float:
            """The number of different tallies."""
            return len(frozenset[str]().union(*(tallied(rows)[1] for rows in (65_536, 1_000_003, reports))))

        what = f"memory: tally of {reports:,} OLH reports, d = {DOMAIN}"
        usual, whole = once(lambda: tallied(65_536)[0]), once(lambda: tallied(reports)[0])
        yield Row(f"{what}, record batches of 65,536", f"{LIMIT_MB} MB", 1.0, usual, LIMIT_MB, 1)
        yield Row(f"{what}, one record batch", f"{LIMIT_MB} MB", 1.0, whole, LIMIT_MB, 1)
        what, against = f"the same tally bit by bit (1 = yes), {reports:,} OLH reports", "9 runs"
        yield Row(what, f"{against}: 3 batch sizes, 1 to 3 threads", 1.0, once(differing), 1.0, 1)


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
