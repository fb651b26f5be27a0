"""PostgreSQL for the tests that need it: skipped loudly where it is missing, an error where CI=true. Stores of both.

Also the middleman and the fresh name that tests of devices share; each file has a collector of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.service.harness import SURVEY, Collector
from tests.service.middleman import Middleman, between
from tests.service.postgres import Server, binaries, server

from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store import blocks, seen
from veil.collector.store.blocks import BlockStore
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    if binaries() is None:
        message = "PostgreSQL is not installed (Debian: apt-get install postgresql): its store was NOT tested"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with server() as one:
        yield one


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], BlockStore]]:
    """The same database again each time, as several collectors open it."""
    url = request.getfixturevalue("postgres").database() if request.param == "postgres" else ""
    opened: list[BlockStore] = []

    def one() -> BlockStore:
        opened.append(PostgresStore(url) if url else SqliteStore(tmp_path / "x.sqlite3"))
        return opened[-1]

    yield one
    for store in opened:
        store.close()


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandth of everything: a run is 64 ids."""
    monkeypatch.setattr(seen, "FOLDED", 64)
    monkeypatch.setattr(seen, "PAGE", 16)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 10 * SURVEY.layout.size)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the file of a survey, and with an empty database in `data`, which operators' commands use."""
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    open_store(CollectorSettings(folder=str(tmp_path / "data"))).close()
    (tmp_path / "task.json").write_bytes(SURVEY.to_bytes())
    return tmp_path


@pytest.fixture
def middleman(collector: Collector) -> Iterator[Middleman]:
    with between(collector.port) as one:
        yield one


@pytest.fixture
def name() -> str:
    """Return a name that no other test uses."""
    return f"drinks-{os.urandom(4).hex()}"
