"""Kill the collector while studies run, again and again: the answer is that of a run without any kill, bit by bit."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.service.harness import Collector, running
from tests.service.people import STUDIES, Leader, held, reports, undisturbed

from veil.collector.service import open_store
from veil.collector.surveys.catalogue import parsed
from veil.study import Study

PEOPLE = 6_000
_LONGEST = 1.0


def kills(
    study: str | Study, times: int, folder: Path, *, seed: int = 0, database: Callable[[], str] | None = None
) -> dict[str, int]:
    """SIGKILL so many times at random moments, over as many runs as that takes; returns what happened.

    `database` makes the address of a new one for each run; without it, they are files in the folder.
    """
    study = STUDIES[study] if isinstance(study, str) else study
    expected, chance = undisturbed(study, PEOPLE), random.Random(seed)
    done = runs = retries = 0
    while done < times:
        runs += 1
        settings = {"VEIL_TALLY_SECONDS": "0.05"} | ({} if database is None else {"VEIL_DATABASE_URL": database()})
        with running(folder / f"run-{runs}", **settings) as collector:
            leader = Leader(collector, study, PEOPLE, collector.token())
            found: list[Any] = []
            thread = threading.Thread(target=lambda mine=leader, to=found: to.append(mine.lead()), daemon=True)
            thread.start()
            while thread.is_alive() and done < times:
                thread.join(chance.uniform(0.0, _LONGEST))
                if thread.is_alive():
                    collector.kill()
                    collector.start()
                    done += 1
            thread.join()
            assert found == [expected], collector.log[-3_000:]
            check_nobody_asked_twice(collector, leader)
            retries += leader.retries
    return {"kills": done, "runs": runs, "retries": retries}


def check_nobody_asked_twice(collector: Collector, leader: Leader) -> None:
    """Every round has exactly the reports of its people, and nobody's report is in two rounds."""
    store = open_store(collector.settings)
    seen = 0
    for task in dict.fromkeys(leader.tasks):
        stored = store.find(task)
        assert stored is not None
        assert stored.state == "closed"
        ids = sorted(store.report_ids(stored.key))
        sent = reports(parsed(stored.document), held(leader.study, leader.people)[: len(ids)])
        each = len(sent) // len(ids)
        assert sorted(sent[i + 33 : i + 49] for i in range(0, len(sent), each)) == ids
        seen += len(ids)
    store.close()
    assert seen == leader.people
