"""What the tests of the collector share: a real `veil serve` in its own process, devices, and a look into the store."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from tests.patience import LIMIT, until
from tests.support.warm_start import COMMAND, Started, start

from veil import OLH, Survey
from veil.collector.keys_and_tokens import SCOPES, issue_token
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.surveys.catalogue import Catalogue
from veil.collector.surveys.rounds import RunningStudies
from veil.entropy import Batch, Source
from veil.study import Study, study_from_json
from veil.wire.frames import VERSION

FRAMED = {"Content-Type": "application/vnd.veil.reports"}
UNLIMITED = {"VEIL_REQUESTS_PER_MINUTE": "0"}  # all devices of a test have one address
SURVEY = Survey(OLH(epsilon=1.0, domain=16))


def framed(survey: Survey, values: Any, ids: Any = None, source: Source | None = None, public: Any = None) -> bytes:
    """Reports of several devices, framed, end to end. Ids are drawn unless they are given."""
    payloads = survey.randomize(values, source or Batch(), public).to_bytes()
    size, task = survey.layout.size, bytes.fromhex(survey.task)
    ids = [os.urandom(16) for _ in values] if ids is None else ids
    return b"".join(bytes([VERSION]) + task + name + payloads[size * i : size * (i + 1)] for i, name in enumerate(ids))


@dataclass
class Collector:
    """A `veil serve` that can be killed and started again on the same folder and port."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: Started | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> CollectorSettings:
        return CollectorSettings(folder=str(self.folder), database_url=self.environment.get("VEIL_DATABASE_URL", ""))

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        command = ["veil", "serve", "--port", str(self.port), "--folder", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            before = log.tell()
            self.process = start(
                COMMAND, *command, environment={**os.environ, **UNLIMITED, **self.environment}, stderr=log
            )
        self.port = until(lambda: self._announced_port(before), lambda: self.log)
        until(self._answers, lambda: self.log)

    def _announced_port(self, before: int) -> int:
        """The port that it listens on; 0 as long as it has not said so."""
        assert self.process is not None
        assert self.process.poll() is None, self.log
        for line in (self.folder / "log").read_bytes()[before:].splitlines(keepends=True):
            if b'"listening"' in line and line.endswith(b"\n"):
                return int(json.loads(line)["port"])
        return 0

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/healthz").status_code == 200
        return False

    def kill(self) -> None:
        """As a power cut would: no handler runs."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """As an operator would. Returns the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT)

    def open_survey(self, survey: Survey | Study = SURVEY, **options: Any) -> str:
        """Publish and open a survey or a study, as `veil survey create --open` does. Returns the survey's path."""
        store = open_store(self.settings)
        catalogue = Catalogue(store)
        study, options = study_from_json(survey.to_bytes()), {"minimum": 1, **options}
        bare = isinstance(survey, Survey)
        stored, _ = RunningStudies(store, catalogue).publish(study, options, precision=86_400, minimum=1, bare=bare)
        catalogue.open(stored.task)
        store.close()
        return f"/v1/surveys/{stored.task}"

    def token(self, *scopes: str, task: str | None = None) -> dict[str, str]:
        """An Authorization header with these scopes; without any, with all."""
        store = open_store(self.settings)
        _, secret = issue_token(store, scopes or tuple(SCOPES), task)
        store.close()
        return {"Authorization": f"Bearer {secret}"}

    def stored_ids(self, survey: Survey = SURVEY) -> list[bytes]:
        """The ids of all stored reports, read past the service."""
        store = open_store(self.settings)
        found = store.find(survey.task)
        assert found is not None
        ids = sorted(store.report_ids(found.key))
        store.close()
        return ids


@contextlib.contextmanager
def running(folder: Path, **environment: str) -> Iterator[Collector]:
    """A collector for the length of a block."""
    collector = Collector(folder, environment)
    collector.start()
    try:
        yield collector
    finally:
        if collector.process is not None and collector.process.poll() is None:
            collector.kill()


def values(people: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 16, people)
