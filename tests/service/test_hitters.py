"""Heavy hitters through a collector: a search's task is published and reported to, and its export is searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.e2e.test_cli import veil, veil_json
from tests.service.harness import FRAMED, Collector, framed, running
from tests.service.test_collector import code

from veil import Survey, Text
from veil.device import Client, Ledger, verified
from veil.entropy import Words
from veil.files import read_reports
from veil.hitters import PEM, Stored

WORDS = ["tea", "milk", "zug", "so"]
PEOPLE = 4_000


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("collector") / "data") as one:
        yield one


def held() -> Any:
    return np.random.default_rng(1).choice(WORDS, PEOPLE, p=[0.5, 0.3, 0.15, 0.05])


@pytest.mark.parametrize("oracle", ["OLH", "PGR"])
def test_an_export_is_searched(collector: Collector, tmp_path: Path, oracle: str) -> None:
    task, export = tmp_path / "task.json", tmp_path / "reports.parquet"
    asked = ["--epsilon", 4, "-k", 2, "--max-bytes", 3, "--budget", 2**12, "--oracle", oracle]
    veil("hitters", "plan", *asked, "-o", task)
    survey = Survey.from_json(task.read_bytes())
    path = collector.open_survey(survey, precision=3600)
    with httpx.Client(base_url=collector.url, timeout=60, headers=collector.token()) as client:
        published = verified(client.get(path).json(), task=survey.task)  # what a device checks before it answers
        assert published == survey
        one = Client(published, Ledger(lifetime=4.0)).answer("tea")
        for body in (one, framed(survey, held())):
            assert client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200
        export.write_bytes(client.get(f"{path}/export").content)
        # a prefix that somebody names is answered as well; to name all is what the search is for
        first = survey.question(0).view.domain
        codes = survey.question(0).view.apply(Text(3).encode(["tea", "xyz"]), Words(b""))
        listed = first.decode(codes)
        found = client.post(f"{path}/answers/0", json={"candidates": listed})
        assert found.status_code == 200, found.text
        shares = {row["value"]: row["frequency"] for row in found.json()["values"]}
        assert shares[listed[0]] > 0.3 > 0.1 > shares[listed[1]]
        last = len(survey.questions) - 1
        assert code(client.get(f"{path}/answers/{last}")) == (422, "candidates-needed")
    document = veil_json("hitters", "find", task, export, "-k", 2)
    assert [row["value"] for row in document["hitters"]] == ["tea", "mil"]
    assert [row["truncated"] for row in document["hitters"]] == [True, True]
    assert document["people"] == PEOPLE + 1
    library = PEM(4.0, Text(3), 2, 2**12, oracle).find(Stored(survey, list(read_reports(export, survey))))  # type: ignore[arg-type]
    assert [row["frequency"] for row in document["hitters"]] == library.estimates.frequencies.tolist()


def test_the_operator_exports_and_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    task, out = tmp_path / "task.json", tmp_path / "out.parquet"
    veil("hitters", "plan", "--epsilon", 4, "-k", 2, "--max-bytes", 3, "--budget", 2**12, "-o", task)
    survey = Survey.from_json(task.read_bytes())
    shown = veil_json("survey", "create", task, "--open")
    assert (shown["state"], shown["task"]) == ("open", survey.task)
    veil("survey", "export", survey.task, "-o", out)
    assert "at least one report" in veil("hitters", "find", task, out, "-k", 2, code=3).stderr
