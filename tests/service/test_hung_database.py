"""A database that hangs, is full or comes late: posts are refused fast, readiness says so, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running
from tests.service.postgres import Server, new_folder
from tests.service.test_stores import small_disk  # noqa: F401  # a fixture

from veil.collector.monitoring.health import Health
from veil.collector.store.base import Store
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore
from veil.errors import ServiceError, StoreError, StoreFullError, StoreTimeoutError

FULL = "the database takes no writes: the disk is full"
FAST = 1.0
"""Seconds that a refusal may take on a busy machine; a call that waits for the database takes longer than its limit."""


def hang(postgres: Server, tmp_path: Path, limit: int, seconds: float) -> list[float]:
    """Stop the server for so many seconds under a collector that waits `limit`; how long refused posts took."""
    database = {"VEIL_DATABASE_URL": postgres.database(), "VEIL_DATABASE_SECONDS": str(limit)}
    with running(tmp_path / "data", **database) as collector:
        path = f"{collector.open_survey(name='sleep')}/reports"
        with httpx.Client(base_url=collector.url, timeout=LIMIT) as client:
            assert client.get("/v1/surveys/by-name/sleep").status_code == 200
            bodies = [framed(SURVEY, [1] * 3)]
            assert client.post(path, content=bodies[0], headers=FRAMED).status_code == 200
            assert client.get("/readyz").status_code == 200
            times: list[float] = []
            with postgres.hanging():
                end = time.monotonic() + seconds
                first = post_many(collector, path, 30)
                assert {one.status_code for one in first} == {503}
                assert all(int(one.headers["retry-after"]) > 0 for one in first)
                assert all(one.elapsed.total_seconds() < 4 * limit + 10 for one in first)  # and not one limit for each
                while time.monotonic() < end or not times:
                    body = framed(SURVEY, [1] * 3)
                    answer = client.post(path, content=body, headers=FRAMED)
                    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
                    assert int(answer.headers["retry-after"]) > 0
                    times.append(answer.elapsed.total_seconds())
                    time.sleep(0.05)
                    bodies[1:] = [body]  # the device keeps it
                named = [client.get("/v1/surveys/by-name/sleep") for _ in range(3)]
                assert {one.status_code for one in named} == {503}
                assert min(one.elapsed.total_seconds() for one in named) < FAST
                assert client.get("/readyz").status_code == 503
                assert client.get("/healthz").status_code == 200
            until(lambda: client.get("/readyz").status_code == 200, lambda: collector.log)
            for body in bodies:
                until(lambda body=body: client.post(path, content=body, headers=FRAMED).status_code == 200)
            assert len(collector.stored_ids()) >= 6  # what was refused may be there: nobody was told
        assert collector.log.count('"database-hangs"') >= 1
        assert "database-answers" in collector.log
        return times


def post_many(collector: Collector, path: str, devices: int) -> list[httpx.Response]:
    """Posts of many devices at the same time."""
    answers: list[httpx.Response] = []

    def post() -> None:
        sent = httpx.post(f"{collector.url}{path}", content=framed(SURVEY, [1]), headers=FRAMED, timeout=LIMIT)
        answers.append(sent)

    threads = [threading.Thread(target=post) for _ in range(devices)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert len(answers) == devices
    return answers


def test_posts_fail_fast_while_postgres_hangs(postgres: Server, tmp_path: Path) -> None:
    times = hang(postgres, tmp_path, limit=1, seconds=2.0)
    assert min(times) < FAST, times


@pytest.mark.acceptance
def test_posts_fail_fast_while_postgres_hangs_for_30_seconds(postgres: Server, tmp_path: Path) -> None:
    times = sorted(hang(postgres, tmp_path, limit=5, seconds=30.0))
    assert times[len(times) * 9 // 10] < 0.25, times[-10:]


def test_a_store_without_a_deadline_would_wait(postgres: Server) -> None:
    hurried, patient = PostgresStore(postgres.database(), 0.5), PostgresStore(postgres.database())
    done = threading.Event()

    def wait() -> None:
        patient.ping()
        done.set()

    hurried.ping()
    thread = threading.Thread(target=wait, daemon=True)
    with postgres.hanging():
        thread.start()
        with pytest.raises(StoreTimeoutError):
            hurried.ping()
        with pytest.raises(StoreTimeoutError):
            hurried.probe()
        assert not done.is_set()
    thread.join(LIMIT)
    assert done.is_set()
    hurried.ping()
    hurried.close()
    patient.close()


def test_a_lock_that_somebody_holds_is_a_time_out(postgres: Server) -> None:
    url = postgres.database()
    store = PostgresStore(url, 0.5)
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE takes IN ACCESS EXCLUSIVE MODE")  # the probe writes there
        with pytest.raises(StoreTimeoutError):
            store.probe()
        other.rollback()
    store.probe()
    store.close()


def test_a_migration_may_take_its_time(postgres: Server) -> None:
    store = PostgresStore(postgres.database(), 0.2)
    with store.writing(patient=True) as connection:
        connection.execute("SELECT pg_sleep(1)")
    with pytest.raises(StoreTimeoutError), store.writing() as connection:
        connection.execute("SELECT pg_sleep(1)")
    store.close()


def test_serve_waits_for_a_database_that_starts_late(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    postgres.stop()
    collector = Collector(tmp_path / "data", {"VEIL_DATABASE_URL": url})
    starting = threading.Thread(target=collector.start, daemon=True)
    try:
        starting.start()
        until(lambda: (collector.folder / "log").exists() and "waiting-for-database" in collector.log)
    finally:
        postgres.start()
    starting.join(LIMIT)
    assert collector.process is not None
    try:
        assert httpx.get(f"{collector.url}/readyz", timeout=LIMIT).status_code == 200
    finally:
        collector.kill()


def test_serve_gives_up_on_a_database_that_never_comes(tmp_path: Path) -> None:
    database = {"VEIL_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "VEIL_DATABASE_WAIT_SECONDS": "1"}
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(tmp_path / "data")]
    done = subprocess.run(command, env={**os.environ, **database}, capture_output=True, text=True, check=False)
    assert done.returncode not in (0, -signal.SIGKILL)
    assert "cannot be reached: nothing listens, at 127.0.0.1:1" in done.stderr
    assert "nobody" not in done.stderr


@pytest.mark.parametrize("wrong", ["database", "account"])
def test_serve_does_not_wait_for_a_database_that_refuses_it(postgres: Server, tmp_path: Path, wrong: str) -> None:
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(tmp_path / "data")]
    is_database = wrong == "database"
    url = postgres.url("nosuchdatabase") if is_database else postgres.url("postgres").replace("veil@", "nobody@")
    database = {"VEIL_DATABASE_URL": url, "VEIL_DATABASE_WAIT_SECONDS": "100000"}
    done = subprocess.run(
        command, env={**os.environ, **database}, capture_output=True, text=True, check=False, timeout=LIMIT
    )
    assert done.returncode > 0
    assert "the database refuses us" in done.stderr
    why = "there is no database of that name" if is_database else "there is no such account"
    assert f"{why}, at 127.0.0.1:{postgres.port}" in done.stderr
    assert "waiting-for-database" not in done.stderr
    assert "nosuchdatabase" not in done.stderr
    assert "nobody" not in done.stderr


def test_readiness_knows_a_full_disk(small_disk: Path) -> None:  # noqa: F811
    with running(small_disk / "data") as collector, httpx.Client(base_url=collector.url, timeout=LIMIT) as client:
        path = f"{collector.open_survey()}/reports"
        assert client.get("/readyz").status_code == 200
        while client.post(path, content=framed(SURVEY, [1] * 500), headers=FRAMED).status_code == 200:
            pass
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["error"]["message"]) == (503, FULL)
        assert '"problem": "StoreFullError"' in collector.log
        assert '"reason": "the disk is full"' in collector.log
        assert client.get("/healthz").status_code == 200
        subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
        assert client.get("/readyz").status_code == 200  # without a post: nobody sends to what is not ready
        assert client.post(path, content=framed(SURVEY, [1] * 500), headers=FRAMED).status_code == 200


@pytest.fixture
def small_postgres(postgres: Server) -> Iterator[tuple[str, Path]]:
    """A database of PostgreSQL on a disk of 24 MB, and the folder where that is."""
    folder = new_folder()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m,uid=postgres,mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("no right to mount a small disk: a full disk was NOT tested with PostgreSQL")
    name = postgres.url("small").rpartition("/")[2]
    try:
        postgres.execute(f"CREATE TABLESPACE small LOCATION '{folder}'", f"CREATE DATABASE {name} TABLESPACE small")
        yield postgres.url(name), folder
    finally:
        postgres.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", "DROP TABLESPACE IF EXISTS small")
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def test_readiness_knows_a_full_disk_of_postgresql(small_postgres: tuple[str, Path], tmp_path: Path) -> None:
    url, disk = small_postgres
    with (
        running(tmp_path / "data", VEIL_DATABASE_URL=url) as collector,
        httpx.Client(base_url=collector.url, timeout=LIMIT) as client,
    ):
        path = f"{collector.open_survey()}/reports"
        assert client.get("/readyz").status_code == 200
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "filler").write_bytes(bytes(free - (1 << 20)))
        while client.post(path, content=framed(SURVEY, [1] * 5_000), headers=FRAMED).status_code == 200:
            pass
        answer = client.get("/readyz")  # the row of a small probe would still find its place
        assert (answer.status_code, answer.json()["error"]["message"]) == (503, FULL)
        assert '"reason": "the disk is full"' in collector.log
        (disk / "filler").unlink()
        until(lambda: client.get("/readyz").status_code == 200)
        assert client.post(path, content=framed(SURVEY, [1] * 5_000), headers=FRAMED).status_code == 200


def test_a_probe_writes_as_much_as_the_write_that_failed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.sqlite3")
    store.probe(1 << 16)
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages + 20}")
    health = Health(store)
    health.wrote(StoreFullError(), 1 << 20)
    store.probe(100)  # little still fits
    with pytest.raises(ServiceError, match="the disk is full"):
        health.check_store()
    store._writer.execute("PRAGMA max_page_count = 100000")
    health.check_store()
    with store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM takes").fetchone() == (0,)
    store.close()


class Fails(SqliteStore):
    """A store whose probe fails as often as it is told to."""

    left = 0

    def probe(self, size: int = 0) -> None:
        if self.left > 0:
            self.left -= 1
            raise StoreError("still down")
        super().probe(size)


def test_the_way_is_closed_by_a_time_out_and_opened_by_a_probe(tmp_path: Path) -> None:
    store = Fails(tmp_path / "x.sqlite3")
    store.left = 3
    health = Health(store, tries=0.01)
    health.failed(StoreError("full"))  # says no, but at once: nobody waits for it
    health.check()
    health.failed(StoreTimeoutError("hangs"))
    with pytest.raises(ServiceError) as refused:
        health.check()
    assert (refused.value.status, refused.value.retry_after) == (503, 5)
    until(lambda: not health.hangs)
    health.check()
    assert store.left == 0
    health.stop()
    store.close()


def test_a_file_that_is_locked_by_another_process_is_a_time_out(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("veil.collector.store.sqlite._BUSY_SECONDS", 0.05)
    one, other = SqliteStore(tmp_path / "x.sqlite3"), SqliteStore(tmp_path / "x.sqlite3")
    stores: list[Store] = [one, other]
    with one.writing(), pytest.raises(StoreTimeoutError):
        other.probe()
    other.probe()
    for store in stores:
        store.close()
