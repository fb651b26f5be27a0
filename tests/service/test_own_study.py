"""A study of one's own, defined here and registered, goes through the collector like any other."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import httpx
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.service.harness import FRAMED, framed

from veil import GRR, Survey
from veil.collector.http.app import App
from veil.collector.keys_and_tokens import SCOPES, issue_token
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.entropy import SeededForExperiments
from veil.results.estimate import Estimate
from veil.study import STUDIES, Collection, OneRound

PEOPLE = 2_000


@dataclass(frozen=True)
class Agreement(OneRound[Estimate]):
    """How many people agree; `cautious` leaves nothing negative. Guarantee: GRR's."""

    epsilon: float
    cautious: bool = False
    kind: ClassVar[str] = "agreement"

    @cached_property
    def survey(self) -> Survey:
        return Survey(GRR(self.epsilon, ["no", "yes"]))

    def answer(self, collected: Collection) -> Estimate:
        found: Estimate = self.survey.estimate_question(collected.tally(), 0, population=collected.population)
        return found.post("norm-sub") if self.cautious else found


def test_a_study_of_one_s_own_goes_through_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, Agreement.kind, Agreement)
    asyncio.run(_goes_through(Service(CollectorSettings(folder=str(tmp_path / "data")))))


async def _goes_through(service: Service) -> None:
    study = Agreement(2.0)
    _, secret = issue_token(service.store, tuple(SCOPES), None)
    await service.start()
    try:
        transport, headers = httpx.ASGITransport(App(service)), {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://collector", headers=headers) as client:
            await _published_and_answered(client, study)
    finally:
        await service.stop()


async def _published_and_answered(client: httpx.AsyncClient, study: Agreement) -> None:
    made = await client.post("/v1/surveys", json={"survey": json.loads(study.to_bytes())})
    assert (made.status_code, made.json()["kind"], made.json()["task"]) == (201, "agreement", study.survey.task)
    path = f"/v1/surveys/{study.survey.task}"
    assert (await client.post(f"{path}/open")).json()["state"] == "open"
    body = framed(study.survey, ["yes"] * 1_500 + ["no"] * 500, source=SeededForExperiments(1))
    sent = await client.post(f"{path}/reports", content=body, headers=FRAMED)
    assert sent.json() == {"acknowledged": PEOPLE}
    found = (await client.get(f"{path}/answer")).json()
    assert (found["task"], found["people"]) == (study.survey.task, PEOPLE)
    rows = {row["value"]: row for row in found["rows"]}
    assert abs(rows["yes"]["frequency"] - 0.75) < 5 * rows["yes"]["stderr"]
    flat = await client.get(f"{path}/answer", params={"format": "csv"})
    stream = await client.get(f"{path}/answer", params={"format": "arrow"})
    for table in (pacsv.read_csv(io.BytesIO(flat.content)), pa.ipc.open_stream(stream.content).read_all()):
        assert table.column_names == list(found["rows"][0])
        assert table["value"].to_pylist() == [row["value"] for row in found["rows"]]
        assert table["frequency"].to_pylist() == pytest.approx([row["frequency"] for row in found["rows"]])
    posted = (await client.get(f"{path}/answer", params={"set": "cautious=yes"})).json()
    assert posted["lineage"][-1] == "norm-sub"
    assert (await client.get(f"{path}/answer", params={"set": "epsilon=3"})).status_code == 422
