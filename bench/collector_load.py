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

from bench.timing import Contestant, NotRunError, Row, Setting, once
from veil import OLH, Survey
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.surveys.catalogue import Catalogue, draft_of

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


def collector_rows(setting: Setting) -> Iterator[Row]:
    """Rates, a latency and the memory of one collector, which is started before and fed with reports."""
    turns, seconds = (1, 1) if setting.quick else (5, 5)
    # /var/tmp is a disk, where /tmp may be memory
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, _collector(Path(folder)) as ours, _bare() as bare:

        def fill(reports: int) -> float:
            _load(ours.port, seconds, 1)  # compiles the kernels of the tally
            stored = 0
            while stored < reports:
                stored += BATCH * _load(ours.port, 1, BATCH).requests
            return _peak_mb(ours.process)

        def cost(port: int, batch: int) -> Contestant:
            """Seconds a report."""
            return Contestant(lambda: 1 / (batch * _load(port, seconds, batch).rate), 1)

        memory = f"memory: the collector over {setting.reports // 10:,} reports and more"
        yield Row(memory, f"{MEMORY_MB} MB", 1.0, once(lambda: fill(setting.reports // 10)), MEMORY_MB, 1)
        yield Row(BATCHES, f"{BATCHED_RATE:,}", 1.0, cost(ours.port, BATCH), 1 / BATCHED_RATE, turns)
        yield Row(SINGLE, f"{SINGLE_RATE:,}", 1.0, cost(ours.port, 1), 1 / SINGLE_RATE, turns)
        p99 = f"collector: 99 % of single posts within so many ms, {CONNECTIONS} connections"
        latency = Contestant(lambda: _load(ours.port, seconds, 1).p99_ms, 1)
        yield Row(p99, f"a limit of {P99_MS} ms", 1.0, latency, P99_MS, turns)
        yield Row(SINGLE, BARE, BARE_SHARE, cost(ours.port, 1), cost(bare.port, 1), turns)
        peak = once(lambda: _peak_mb(ours.process))  # ids are known by four bytes each, in filters
        yield Row(
            "memory: the collector after all loads, all of one survey", f"{MEMORY_MB} MB", None, peak, MEMORY_MB, 1
        )


@dataclass(frozen=True)
class _Server:
    process: int
    port: int


@contextlib.contextmanager
def _collector(folder: Path) -> Iterator[_Server]:
    store = open_store(CollectorSettings(folder=str(folder)))
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
    if shutil.which("wrk") is None:
        raise NotRunError("needs wrk (Debian: apt-get install wrk)")
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
