"""Several worker processes on one socket: each report once, numbers of all of them, and none is missed when it dies."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running
from tests.service.kills import Devices, check_nothing_lost, ids_of
from tests.service.postgres import Server

from veil.collector.board import Board
from veil.collector.metrics import Metrics


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    settings = {"VEIL_WORKERS": "3", "VEIL_METRICS_OPEN": "true", "VEIL_TALLY_SECONDS": "0.2"}
    with running(tmp_path_factory.mktemp("workers") / "data", **settings) as one:
        until(lambda: one.log.count('"event": "started"') == 3, lambda: one.log)
        yield one


def workers(collector: Collector) -> list[psutil.Process]:
    assert collector.process is not None
    return psutil.Process(collector.process.pid).children()


def counted(collector: Collector, line: str) -> int:
    text = httpx.get(f"{collector.url}/metrics", timeout=LIMIT).text
    return next((int(one.split()[-1]) for one in text.splitlines() if one.startswith(line)), 0)


def test_a_report_counts_once_whichever_worker_it_meets(collector: Collector) -> None:
    path = collector.open_survey()
    bodies = [framed(SURVEY, [1]) for _ in range(20)]

    def send_all() -> None:
        for body in bodies:  # a new connection for each, so that they meet different workers
            answer = httpx.post(f"{collector.url}{path}/reports", content=body, headers=FRAMED, timeout=LIMIT)
            assert answer.status_code == 200

    threads = [threading.Thread(target=send_all) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert collector.stored_ids() == sorted(ids_of(bodies))
    stored, replayed = (f'veil_reports_total{{outcome="{outcome}"}}' for outcome in ("stored", "replayed"))
    until(lambda: counted(collector, stored) == 20)  # of all workers, whichever is asked
    until(lambda: counted(collector, replayed) == 40)
    told = {line["worker"] for line in map(json.loads, collector.log.splitlines()) if "worker" in line}
    assert told == {0, 1, 2}
    answer = httpx.get(f"{collector.url}{path}/answer", headers=collector.token("answers:read"), timeout=LIMIT)
    assert answer.json()["people"] == 20


def test_workers_on_postgres_store_a_report_once(postgres: Server, tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_WORKERS="2", VEIL_DATABASE_URL=postgres.database()) as collector:
        path = collector.open_survey()
        until(lambda: collector.log.count('"event": "started"') == 2, lambda: collector.log)
        body = framed(SURVEY, [1] * 5)
        for _ in range(12):
            answer = httpx.post(f"{collector.url}{path}/reports", content=body, headers=FRAMED, timeout=LIMIT)
            assert answer.status_code == 200
        assert collector.stored_ids() == sorted(ids_of([body]))


def test_another_takes_the_place_of_a_worker_that_dies(collector: Collector) -> None:
    path = collector.open_survey()
    devices = Devices(collector, path)
    threads = [threading.Thread(target=devices.send, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for victim in workers(collector)[:2]:
        devices.wait_for_acknowledgements(5)
        before = counted(collector, 'veil_reports_total{outcome="stored"}')
        victim.kill()
        victim_gone = victim.pid
        until(
            lambda gone=victim_gone: len(found := workers(collector)) == 3 and gone not in [one.pid for one in found],
            lambda: collector.log,
        )
        devices.wait_for_acknowledgements(5)
        assert counted(collector, 'veil_reports_total{outcome="stored"}') >= before  # counters do not fall
    devices.stopping.set()
    for thread in threads:
        thread.join(LIMIT)
    stored = check_nothing_lost(collector, devices.acknowledged)
    assert set(ids_of(devices.acknowledged)) <= set(stored)
    assert "worker-ended" in collector.log


def test_all_of_them_end_together_and_with_their_supervisor(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_WORKERS="2") as collector:
        until(lambda: collector.log.count('"Application startup complete."') == 2)
        children = workers(collector)
        assert collector.stop() == 0
        assert not any(child.is_running() for child in children)
        assert collector.log.count('"event": "stopped"') == 2
        collector.start()
        until(lambda: len(workers(collector)) == 2)
        children = workers(collector)
        collector.kill()  # the supervisor alone
        until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))


def test_what_cannot_start_says_why_and_ends(tmp_path: Path) -> None:
    key = tmp_path / "data" / "signing.key"
    key.parent.mkdir()
    key.write_text("no key")
    key.chmod(0o600)
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(key.parent), "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT, env={**os.environ})
    assert done.returncode not in (0, -signal.SIGTERM)
    assert "key" in done.stderr


def test_numbers_of_several_processes_add_up_and_go_on() -> None:
    board = Board(2)
    first, second = Metrics(board.of(0)), Metrics(board.of(1))
    for metrics, amount in ((first, 3), (second, 4)):
        metrics.add("veil_reports_total", amount, outcome="stored")
        metrics.set("veil_queue_reports", amount)
        metrics.observe("veil_commit_seconds", 0.004)
        metrics.publish()
    for metrics in (first, second):
        lines = metrics.text().splitlines()
        assert 'veil_reports_total{outcome="stored"} 7' in lines
        assert "veil_queue_reports 7" in lines
        assert 'veil_commit_seconds_bucket{le="0.005"} 2' in lines
        assert 'veil_commit_seconds_bucket{le="0.0025"} 0' in lines
        assert 'veil_commit_seconds_bucket{le="+Inf"} 2' in lines
        assert "veil_commit_seconds_sum 0.008000" in lines
        assert "veil_commit_seconds_count 2" in lines
    again = Metrics(board.of(1))  # in the place of one that ended
    assert 'veil_reports_total{outcome="stored"} 7' in again.text().splitlines()
    assert "veil_queue_reports 3" in again.text().splitlines()
    board.of(0).write(b"")
    assert 'veil_reports_total{outcome="stored"} 4' in again.text().splitlines()


def test_a_place_that_is_being_written_still_tells_what_was_there() -> None:
    board = Board(2)
    for said in (b"one", b"two", b"three"):
        board.of(1).write(said)
        assert board.of(0).others() == [said]
    whole = bytes(board._memory)
    board.of(1).write(b"number four, which is longer")
    changed = [i for i in range(len(whole)) if whole[i] != board._memory[i]]
    for left in (1, len(changed) // 2, len(changed) - 1):  # killed after so many bytes, in whichever order they came
        for some in (changed[:left], changed[-left:]):
            torn = bytearray(whole)
            for i in some:
                torn[i] = board._memory[i]
            memory = mmap.mmap(-1, len(whole))
            memory[:] = bytes(torn)
            assert Board(2, 0, memory).others() == [b"three"]
            assert Board(2, 1, memory).own() == b"three"


def test_numbers_are_integers_however_large() -> None:
    metrics = Metrics()
    metrics.add("veil_reports_total", 12_345_678_901, outcome="stored")
    assert 'veil_reports_total{outcome="stored"} 12345678901' in metrics.text().splitlines()
