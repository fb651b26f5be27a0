"""Kill the collector under load, again and again, and look whether anything is lost or doubled."""

from __future__ import annotations

import http.client
import random
import threading
import time
from dataclasses import dataclass, field

from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, values

from veil.collector.service import open_store
from veil.collector.surveys.collection import rebuild
from veil.wire.frames import report_size

EACH = report_size(SURVEY)


@dataclass
class Devices:
    """Senders that repeat a request with the same report ids until it is acknowledged, as devices do."""

    collector: Collector
    path: str
    acknowledged: list[bytes] = field(default_factory=list)
    retries: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    def send(self, seed: int) -> None:
        chance = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.port, timeout=LIMIT)
        while not self.stopping.is_set():
            body = framed(SURVEY, values(chance.choice([1, 1, 1, 20, 300]), seed))
            while True:
                try:
                    connection.request("POST", f"{self.path}/reports", body, FRAMED)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200:
                        self.acknowledged.append(body)
                        break
                    assert answer.status in (429, 502, 503), answer.status  # 502 is a proxy's
                except (OSError, http.client.HTTPException):
                    connection.close()  # it opens again by itself
                self.retries += 1
                time.sleep(0.02)
        connection.close()

    def wait_for_acknowledgements(self, more: int) -> None:
        goal = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= goal, lambda: self.collector.log)


def ids_of(bodies: list[bytes]) -> list[bytes]:
    return [body[i + 33 : i + 49] for body in bodies for i in range(0, len(body), EACH)]


def kill_under_load(collector: Collector, kills: int, seed: int = 0, senders: int = 6) -> dict[str, int]:
    """Kill so many times at random moments. Asserts after each restart; returns what happened."""
    chance = random.Random(seed)
    devices = Devices(collector, collector.open_survey())
    threads = [threading.Thread(target=devices.send, args=(i,), daemon=True) for i in range(senders)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        devices.wait_for_acknowledgements(5)
        time.sleep(chance.uniform(0.0, 0.5))
        collector.kill()
        sure = list(devices.acknowledged)
        collector.start()
        check_nothing_lost(collector, sure)
    devices.stopping.set()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
    stored = check_nothing_lost(collector, devices.acknowledged)
    assert sorted(ids_of(devices.acknowledged)) == stored  # whoever retried got through, and nothing is there twice
    return {"kills": kills, "reports": len(stored), "retries": devices.retries}


def check_nothing_lost(collector: Collector, acknowledged: list[bytes]) -> list[bytes]:
    """Every acknowledged report is stored exactly once, and the tally is that of the stored reports."""
    stored = collector.stored_ids()
    assert len(stored) == len(set(stored))
    assert set(ids_of(acknowledged)) <= set(stored)
    store = open_store(collector.settings)
    found = store.find(SURVEY.task)
    assert found is not None
    tally, right = rebuild(store, found, SURVEY)
    assert right
    assert tally is not None
    after = store.find(SURVEY.task)
    store.close()
    assert after is not None
    assert len(stored) <= tally.people <= after.reports
    return stored
