"""Nothing lost, nothing doubled: SIGKILL at random moments under load. `make acceptance` does it 25 times a store."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.patience import LIMIT, until
from tests.service.harness import running
from tests.service.kills import kill_under_load
from tests.service.reports import SIZE, opened
from tests.support.warm_start import start

from veil.collector.store.blocks import BlockStore
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.seen import names_of

# A collector that sends itself the ids 0, 1, 2, ..., each often, and notes what was acknowledged; a run is 64 ids.
SENDER = """
import os, random, sys
from tests.service.reports import group, opened
from veil.collector.store import seen
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore

place, log, seed = sys.argv[1:]
seen.FOLDED, seen.PAGE = 64, 16
store = PostgresStore(place) if "dbname=" in place else SqliteStore(place)
stored, chance = opened(store), random.Random(seed)
said = os.open(log, os.O_WRONLY | os.O_APPEND)
while True:
    last = store.survey(stored.key).reports + 20
    some = [chance.randrange(max(0, last - 150) if chance.random() < 0.7 else 0, last) for _ in range(50)]
    ids = b"".join(i.to_bytes(16, "big") for i in some)
    store.append([group(stored, ids)], 1_000)
    os.write(said, ids)
"""


def test_five_kills_on_sqlite(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.1") as collector:
        happened = kill_under_load(collector, kills=5)
        assert happened["retries"]  # the kills did hit requests under way


@pytest.mark.acceptance
def test_25_kills_on_sqlite(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.1") as collector:
        assert kill_under_load(collector, kills=25, seed=1)["retries"]


def test_kills_among_runs_of_ids(make: Callable[[], BlockStore], tmp_path: Path) -> None:
    """Several collectors on one database, each killed at some moment: while it stores, makes a run, or reads one."""
    store, chance, log = make(), random.Random(0), tmp_path / "log"
    stored = opened(store)
    place = store._url if isinstance(store, PostgresStore) else str(tmp_path / "x.sqlite3")
    log.touch()
    senders = [start(SENDER, "sender", place, str(log), str(seed)) for seed in range(3)]
    for seed in range(3, 13):
        goal = log.stat().st_size + 25 * 800
        until(lambda goal=goal: log.stat().st_size > goal)
        time.sleep(chance.uniform(0.0, 0.1))
        killed = senders.pop(0)
        killed.kill()
        killed.wait(LIMIT)
        senders.append(start(SENDER, "sender", place, str(log), str(seed)))
    for sender in senders:
        sender.kill()
        sender.wait(LIMIT)
    kept = list(store.report_ids(stored.key))
    assert len(kept) == len(set(kept))
    assert set(names_of(log.read_bytes())) <= set(kept)
    found = store.chunk(stored.key, 0, len(kept) + 1)
    assert found is not None
    assert (found.last, len(found.payloads)) == (len(kept), SIZE * len(kept))
    assert store.survey(stored.key).reports == len(kept) > 20 * 64
