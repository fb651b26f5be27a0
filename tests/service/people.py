"""People of a study whose reports are always the same bytes with the same ids: sending them again changes nothing.

And one who leads a study through a collector, whatever happens to it meanwhile.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.service.harness import FRAMED, Collector, framed

from veil import Text
from veil.device.verification import verified
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.hitters import PEM
from veil.itemsets import SVIM, SVSM
from veil.results.render.files import document
from veil.study import Study, StudyRun
from veil.survey import Survey
from veil.tools.json_documents import digest

STUDIES: dict[str, Study] = {
    "pem": PEM(4.0, Text(6), 3, 2**17),
    "svim": SVIM(3, 4.0, 40),
    "svsm": SVSM(4, 4.0, 12),
}
_BATCH = 500


def held(study: Study, people: int) -> list[Any]:
    """What people hold: words for a search, sets of items for the miners."""
    rng = np.random.default_rng(7)
    if isinstance(study, PEM):
        return rng.choice(["orange", "banana", "cherry", "fig", "date"], people, p=[0.4, 0.3, 0.2, 0.05, 0.05]).tolist()
    baskets = [[0, 1], [1, 2, 3], [0, 2], [5], []]
    return [baskets[i] for i in rng.choice(len(baskets), people, p=[0.3, 0.3, 0.2, 0.1, 0.1])]


def part_of(values: list[Any], begin: float, end: float) -> list[Any]:
    """The people whose number lies in a part of all numbers."""
    return values[round(len(values) * begin) : round(len(values) * end)]


def reports(survey: Survey, values: list[Any]) -> bytes:
    """Framed reports of these people: the same bytes whenever they are made."""
    ids = [hashlib.sha256(f"{survey.task} {i}".encode()).digest()[:16] for i in range(len(values))]
    return framed(survey, values, ids, SeededForExperiments(int(survey.task[:8], 16)))


def undisturbed(study: Study, people: int, hide: str | None = "all=true") -> Any:
    """The answer that a study gives without a collector, from the same reports in memory; told as a collector does."""
    run, values, begin = StudyRun(study), held(study, people), 0.0
    while run.round is not None:
        survey, end = run.round.survey, begin + float(run.round.people)
        source = SeededForExperiments(int(survey.task[:8], 16))
        run.answer(MemoryCollection(survey, survey.randomize(part_of(values, begin, end), source)))
        begin = end
    assert run.result is not None
    return json.loads(json.dumps(document(run.result, hide=hide)))


@dataclass
class Leader:
    """Publishes a study, lets its people report, moves it from round to round; tries again until it is answered."""

    collector: Collector
    study: Study
    people: int
    token: dict[str, str]
    tasks: list[str] = field(default_factory=list)
    retries: int = 0

    def lead(self) -> Any:
        """From publication to the answer."""
        asked = {"survey": json.loads(self.study.to_bytes()), "minimum": 10}
        first = self.ask("POST", "/v1/surveys", asked)
        self.ask("POST", f"/v1/surveys/{first['task']}/open", refused=(409,))  # it may be closed already
        if first["study"] is None:
            self.report(self.study.survey, held(self.study, self.people))
            self.ask("POST", f"/v1/surveys/{first['task']}/close")
        else:
            self._rounds(f"/v1/studies/{digest(self.study.to_json())}")
        found = self.ask("GET", f"/v1/surveys/{first['task']}/answer")
        return {name: fact for name, fact in found.items() if name != "task"}

    def _rounds(self, path: str) -> None:
        values = held(self.study, self.people)
        while (state := self.ask("GET", path))["state"] != "finished":
            if state["state"] == "reading":  # a restart goes on with it by itself
                time.sleep(0.01)
                continue
            published = self.ask("GET", f"{path}/round", refused=(409, 410))
            if "document" not in published or published["round"] != state["rounds"][-1]["round"]:
                continue
            survey = verified({name: published[name] for name in ("document", "key", "signature")})
            if self.report(survey, part_of(values, published["from"], published["to"])):
                self.ask("POST", f"{path}/next", {"round": published["round"]})

    def report(self, survey: Survey, values: list[Any]) -> bool:
        """All reports of some people, in several requests; False where the round was closed by somebody else."""
        body, path = reports(survey, values), f"/v1/surveys/{survey.task}/reports"
        self.tasks.append(survey.task)
        each = len(body) // len(values)
        for start in range(0, len(values), _BATCH):
            some = body[start * each : (start + _BATCH) * each]
            if "error" in self.ask("POST", path, some, refused=(410,)):
                return False
        return True

    def ask(self, method: str, path: str, body: Any = None, refused: tuple[int, ...] = ()) -> Any:
        """Ask until there is an answer: a collector that was killed comes back."""
        headers = FRAMED if isinstance(body, bytes) else {**self.token, "Content-Type": "application/json"}
        sent = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.collector.port, timeout=300)
            try:
                connection.request(method, path, sent if method == "POST" else None, headers)
                answer = connection.getresponse()
                found = json.loads(answer.read())
                if answer.status in (200, 201, *refused):
                    return found
                assert answer.status in (429, 503), (method, path, answer.status, found)
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            self.retries += 1
            time.sleep(0.02)
