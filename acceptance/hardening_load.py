"""The collector of this code and that of an earlier commit under the same mixed load, taking turns.

Each serves from its own checkout and folder, by this interpreter or by the one that `VEIL_TEST_RIVAL_PYTHON` names. The
load is single posts, whose times are measured, beside batches, answers, SQL readings and requests that must be refused.
In the end this collector takes batches alone until its memory after two million reports can be compared with later.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx
import numpy as np
from tests.service.harness import FRAMED, framed

from veil import OLH, Integers, Record, Survey
from veil.entropy import SeededForExperiments
from veil.sql import Category, Measure, Table

ROOT = Path(__file__).parent.parent
BEFORE = "3623274"
"""The commit that was attacked, before it was hardened."""
SURVEY = Survey(OLH(epsilon=1.0, domain=1024))
PUBLIC = (Measure("spent", 2), Category("os", ("a", "b")))
TABLE = Table(4.0, Record.of(age=Integers(18, 81), state=["NY", "WA"]), PUBLIC)
QUERY = "SELECT os, COUNT(*) AS n, AVG(spent) AS mean FROM people WHERE age < 50 GROUP BY os"
SINGLES, BATCH, PEOPLE, WARM_SECONDS = 8, 500, 2_000, 5.0
SLACK_MEGABYTES, MEGABYTES_A_MILLION = 16.0, 8.0  # ids are known by some bytes each
SLOWER = 1.1
REPORTS, ANSWER = (f"/v1/surveys/{SURVEY.task}/{end}" for end in ("reports", "answer"))
SQL = f"/v1/surveys/{TABLE.survey.task}/answer"


@dataclass
class Turn:
    """What one turn of load measured: milliseconds of single posts, and how many answers had which status."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def p99(self) -> float:
        return float(np.quantile(self.milliseconds, 0.99))


class _Server(NamedTuple):
    process: int
    port: int
    token: str


def run(commit: str, seconds: float, count: int, millions: int) -> tuple[list[tuple[str, str, str]], bool]:
    """Measure this code against a commit: `count` turns of each; the one that comes first changes."""
    rival = os.environ.get("VEIL_TEST_RIVAL_PYTHON", sys.executable)
    with _checkout(commit) as other, _serving(other, rival) as before, _serving(ROOT, sys.executable) as after:
        for server in (before, after):
            asyncio.run(_Load(server, min(seconds, WARM_SECONDS)).run())
        found = []
        for number in range(count):
            order = (before, after)[:: -1 if number % 2 else 1]
            measured = {server: asyncio.run(_Load(server, seconds).run()) for server in order}
            found.append((measured[before], measured[after]))
        return judge(found, _memory(after, millions))


def judge(found: Sequence[tuple[Turn, Turn]], megabytes: Sequence[float]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of (what, measured, required), and whether all of it holds; `megabytes` are those after each million."""
    statuses = sum((turn.statuses for pair in found for turn in pair), Counter[str]())
    errors = sum(number for status, number in statuses.items() if status.startswith("5"))
    ratios = [after.p99 / before.p99 for before, after in found]
    growth = megabytes[-1] - megabytes[1] if len(megabytes) > 2 else 0.0
    most = SLACK_MEGABYTES + MEGABYTES_A_MILLION * max(0, len(megabytes) - 2)
    rows = [
        ("answers by status", ", ".join(f"{status}: {number:,}" for status, number in sorted(statuses.items())), ""),
        ("answers with 5xx; with another status than expected", f"{errors}; {statuses['unexpected']}", "0; 0"),
        ("p99 of single posts, after over before", ", ".join(f"{r:.2f}" for r in ratios), f"{SLOWER}, but for one"),
        ("p99 in ms, before and after", ", ".join(f"{b.p99:.1f} {a.p99:.1f}" for b, a in found), ""),
        ("megabytes after each million reports", ", ".join(f"{one:.0f}" for one in megabytes) or "not measured", ""),
        ("megabytes more since the second million", f"{growth:.0f}", f"at most {most:.0f}"),
    ]
    steady = sum(ratio > SLOWER for ratio in ratios) <= 1 and growth <= most
    return rows, steady and not errors and not statuses["unexpected"]


@contextlib.contextmanager
def _checkout(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "-q", "--detach", folder, commit], cwd=ROOT, check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


@contextlib.contextmanager
def _serving(source: Path, python: str) -> Iterator[_Server]:
    """A collector of a checkout, with a survey, a table of some people and a token."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "VEIL_REQUESTS_PER_MINUTE": "0"}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, (Path(name) / "log").open("wb") as log:  # on a disk

        def veil(*arguments: str) -> bytes:
            command = [python, "-m", "veil.cli", *arguments, "--folder", "data", "--json"]
            return subprocess.run(command, cwd=name, env=environment, check=True, capture_output=True).stdout

        asked = [python, "-m", "veil.cli", "survey", "create", "--help"]
        offered = subprocess.run(asked, cwd=name, env=environment, check=True, capture_output=True).stdout
        new = ["--new"] if b"--new" in offered else []  # commits before this option make a database without it
        for file, study in (("survey", SURVEY), ("table", TABLE)):
            (Path(name) / file).write_bytes(study.to_bytes())
            veil("survey", "create", file, "--open", *new)
        token = json.loads(veil("token", "create", "--scope", "answers:read"))["token"]
        command = [python, "-m", "veil.cli", "serve", "--port", "0", "--folder", "data"]
        process = subprocess.Popen(command, cwd=name, env=environment, stderr=log)
        try:
            while b'"started"' not in (lines := (Path(name) / "log").read_bytes()):
                if process.poll() is not None:
                    raise RuntimeError(f"the collector of {source} ended: {lines.decode()}")
                time.sleep(0.05)
            server = _Server(
                process.pid, next(e["port"] for e in map(json.loads, lines.splitlines()) if "port" in e), token
            )
            rng = np.random.default_rng(1)
            people = [{"age": int(age), "state": "NY"} for age in rng.integers(18, 82, PEOPLE)]
            public = TABLE.encode_public({"spent": rng.normal(50, 10, PEOPLE), "os": rng.choice(["a", "b"], PEOPLE)})
            for survey, values, columns in ((TABLE.survey, people, public), (SURVEY, [1] * PEOPLE, None)):
                url = f"http://127.0.0.1:{server.port}/v1/surveys/{survey.task}/reports"
                body = framed(survey, values, source=SeededForExperiments(1), public=columns)
                httpx.post(url, content=body, headers=FRAMED).raise_for_status()
            time.sleep(3)  # the tally catches up once a second
            yield server
        finally:
            process.kill()
            process.wait()


class _Load:
    """Connections of one turn, each sending again as soon as it has its answer, until the time is over."""

    def __init__(self, server: _Server, seconds: float) -> None:
        self._server, self._end, self.turn = server, time.monotonic() + seconds, Turn()
        frame = framed(SURVEY, [1], [bytes(16)], SeededForExperiments(1))
        self._begin, self._payload = frame[:33], frame[49:]

    async def run(self, *, batches_alone: bool = False) -> Turn:
        work = [self._send(lambda number: self._post(BATCH), "200", 0.0 if batches_alone else 0.02)]
        if not batches_alone:
            paths = (ANSWER, f"{ANSWER}?format=csv", f"{SQL}?set={quote('query=' + QUERY)}")
            readings = [_request("GET", path, f"Authorization: Bearer {self._server.token}") for path in paths]
            refused = [_request("GET", "/v1/audit", "Authorization: Bearer veil_x"), self._post(1, cut=1)]
            work += [self._send(lambda number: self._post(1), "200", 0.0, timed=True) for _ in range(SINGLES)]
            work += [self._send(lambda number: readings[number % len(readings)], "200", 0.2)]
            work += [self._send(lambda number: refused[number % len(refused)], "4", 0.05)]
        await asyncio.gather(*work)
        return self.turn

    def _post(self, count: int, cut: int = 0) -> bytes:
        ids = os.urandom(16 * count)
        body = b"".join(self._begin + ids[i : i + 16] + self._payload for i in range(0, 16 * count, 16))
        return _request("POST", REPORTS, f"Content-Type: {FRAMED['Content-Type']}", body[: len(body) - cut])

    async def _send(self, request: Callable[[int], bytes], well: str, pause: float, *, timed: bool = False) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        for number in itertools.takewhile(lambda number: time.monotonic() < self._end, itertools.count()):
            sent, start = request(number), time.perf_counter()
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
            if timed:
                self.turn.milliseconds.append(1_000 * (time.perf_counter() - start))
            status = head.split()[1].decode()
            self.turn.statuses.update([status] if status.startswith(well) else [status, "unexpected"])
            await asyncio.sleep(pause)
        writer.close()


def _request(method: str, path: str, line: str, body: bytes = b"") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{line}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _memory(server: _Server, millions: int) -> list[float]:
    """Megabytes that the collector takes after each further million reports."""
    found, stored = list[float](), 0
    while len(found) < millions:
        stored += BATCH * asyncio.run(_Load(server, 2.0).run(batches_alone=True)).statuses["200"]
        if stored >= 1_000_000 * (len(found) + 1):
            status = Path(f"/proc/{server.process}/status").read_text(encoding="ascii").splitlines()
            found.append(int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) / 1024)
    return found
