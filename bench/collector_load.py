"""The collector under load, by wrk beside it on the same machine: a real `veil serve` on SQLite, every commit synced.

Rates and the latency are the best of several turns; the bare endpoint takes turns with the collector.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.timing import Outcome
from veil import OLH, Survey
from veil.collector.catalogue import Catalogue, draft_of
from veil.collector.service import open_store
from veil.collector.settings import Settings

__all__ = ["collector_rows"]

ROOT = Path(__file__).resolve().parent.parent
SURVEY = Survey(OLH(epsilon=1.0, domain=1024))
BATCH, CONNECTIONS = 500, 32
BATCHED_RATE, SINGLE_RATE, P99_MS, MEMORY_MB, BARE_SHARE = 20_000, 1_500, 100, 300, 0.6
BATCHES = f"collector: durable reports a second, {BATCH} to a request"
SINGLE = "collector: durable reports a second, one to a request"
BARE = "a bare Starlette endpoint that stores nothing"


@dataclass(frozen=True)
class Load:
    """What wrk measured."""

    requests: int
    seconds: float
    p99_ms: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


def collector_rows(turns: int, seconds: int, reports: int) -> Iterator[Outcome]:
    """All rows: so many turns of so many seconds each, and the memory over so many reports, and over all of them."""
    why = "needs wrk (Debian: apt-get install wrk)"
    if shutil.which("wrk") is None:
        for what, against, required in (
            (BATCHES, f"{BATCHED_RATE:,}", 1.0),
            (SINGLE, f"{SINGLE_RATE:,}", 1.0),
            (SINGLE, BARE, BARE_SHARE),
        ):
            yield Outcome(what, against, None, required, why)
        return
    # /var/tmp is a disk, where /tmp may be memory
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, _collector(Path(folder)) as ours, _bare() as bare:
        _load(ours.port, seconds, 1)  # compiles the kernels of the tally
        stored = 0
        while stored < reports:
            stored += BATCH * _load(ours.port, 1, BATCH).requests
        used = MEMORY_MB / _peak_mb(ours.process)
        batched = [_load(ours.port, seconds, BATCH) for _ in range(turns)]
        yield Outcome(BATCHES, f"{BATCHED_RATE:,}", BATCH * max(one.rate for one in batched) / BATCHED_RATE, 1.0)
        alone, rival = [], []
        for _ in range(turns):
            alone.append(_load(ours.port, seconds, 1))
            rival.append(_load(bare.port, seconds, 1))
        best = max(one.rate for one in alone)
        yield Outcome(SINGLE, f"{SINGLE_RATE:,}", best / SINGLE_RATE, 1.0)
        p99 = f"collector: 99 % of single posts within so many ms, {CONNECTIONS} connections"
        yield Outcome(p99, f"a limit of {P99_MS} ms", P99_MS / min(one.p99_ms for one in alone), 1.0)
        yield Outcome(SINGLE, BARE, best / max(one.rate for one in rival), BARE_SHARE)
        yield Outcome(f"memory: the collector over {reports:,} reports and more", f"{MEMORY_MB} MB", used, 1.0)
        stored += BATCH * sum(one.requests for one in batched)  # their ids are known by four bytes each, in filters
        what = f"memory: the collector over {stored / 1e6:.0f} million reports, all of one survey"
        yield Outcome(what, f"{MEMORY_MB} MB", MEMORY_MB / _peak_mb(ours.process), None)


@dataclass(frozen=True)
class _Server:
    process: int
    port: int


@contextlib.contextmanager
def _collector(folder: Path) -> Iterator[_Server]:
    store = open_store(Settings(folder=str(folder)))
    catalogue = Catalogue(store)
    catalogue.create(draft_of(SURVEY, {}, precision=86_400, minimum=100))
    catalogue.open(SURVEY.task)
    store.close()
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(folder)]
    environment = {**os.environ, "VEIL_REQUESTS_PER_MINUTE": "0"}  # all devices have one address
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stderr is not None
            port = 0
            while (event := json.loads(process.stderr.readline()))["event"] != "started":
                port = event.get("port", port)
            yield _Server(process.pid, port)
        finally:
            process.kill()


@contextlib.contextmanager
def _bare() -> Iterator[_Server]:
    command = [sys.executable, str(ROOT / "bench" / "bare_endpoint.py"), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield _Server(process.pid, int(process.stdout.readline()))
        finally:
            process.kill()


def _load(port: int, seconds: int, batch: int) -> Load:
    script = ROOT / "bench" / "collector_load.lua"
    connections = CONNECTIONS if batch == 1 else 8
    options = ["-t1", f"-c{connections}", f"-d{seconds}", "-s", str(script), f"http://127.0.0.1:{port}", "--"]
    path = f"/v1/surveys/{SURVEY.task}/reports"
    command = ["wrk", *options, path, SURVEY.task, str(batch)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    if found["failed"] or found["timeouts"]:
        raise AssertionError(f"requests were refused under load: {found}")
    return Load(found["requests"], found["microseconds"] / 1e6, found["p99_ms"])


def _peak_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


if __name__ == "__main__":
    for row in collector_rows(turns=3, seconds=4, reports=1_000_000):
        print(row.what, "|", row.against, "|", row.ratio, "|", row.required, row.verdict)
