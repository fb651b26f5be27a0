"""Heavy hitters through a collector: a search is published, reported to, and answered over HTTP; or exported."""

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

from veil import Text
from veil.device.client import Client
from veil.device.ledger import Ledger
from veil.device.verification import verified
from veil.engines import FileCollection
from veil.entropy import Words
from veil.hitters import PEM
from veil.results.render.files import document

WORDS = ["tea", "milk", "zug", "so"]
PEOPLE = 4_000


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("collector") / "data") as one:
        yield one


def held() -> Any:
    return np.random.default_rng(1).choice(WORDS, PEOPLE, p=[0.5, 0.3, 0.15, 0.05])


def hides(client: httpx.Client, path: str) -> None:
    some, every = (client.get(path, params={"set": "k=8", "all": word}).json() for word in ("false", "true"))
    assert len(every["rows"]) == 8
    assert some["rows"] == [row for row in every["rows"] if row["significant"]]
    assert (some["hidden"], some["significant"]) == (8 - len(some["rows"]), len(some["rows"]))
    assert some["hidden"] > 0
    assert "all=true" in some["remarks"][-1]
    assert client.post(path, json={"set": ["k=8"], "all": True}).json() == every


@pytest.mark.parametrize("oracle", ["OLH", "PGR"])
def test_a_search_is_answered_and_its_export_is_searched(collector: Collector, tmp_path: Path, oracle: str) -> None:
    search, export, file = PEM(4.0, Text(3), 2, 2**12, oracle), tmp_path / "reports.parquet", tmp_path / "study.json"  # type: ignore[arg-type]
    survey = search.survey
    path = collector.open_survey(search, precision=3600)
    with httpx.Client(base_url=collector.url, headers=collector.token()) as client:
        published = verified(client.get(path).json(), task=survey.task)  # what a device checks before it answers
        assert published == survey
        one = Client(published, Ledger(lifetime=4.0)).answer("tea")
        for body in (one, framed(survey, held())):
            assert client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200
        export.write_bytes(client.get(f"{path}/export").content)
        found = client.get(f"{path}/answer").json()
        assert [row["value"] for row in found["rows"]] == ["tea", "mil"]
        assert [row["truncated"] for row in found["rows"]] == [True, True]
        assert client.get(f"{path}/answer").json() == found
        # the same reports tell about another number of hitters
        more = client.get(f"{path}/answer", params={"set": "k=3"}).json()
        assert [row["value"] for row in more["rows"]] == ["tea", "mil", "zug"]
        # what is not significant is hidden unless asked for
        if oracle == "OLH":  # through PGR another k may be another task
            hides(client, f"{path}/answer")
        assert code(client.get(f"{path}/answer", params={"all": "yes"})) == (422, "bad-input")
        assert code(client.post(f"{path}/answer", json={"candidates": ["tea"]})) == (422, "bad-input")
        # a prefix that somebody names is answered as well; to name all is what the search is for
        first = survey.questions[0].view.domain
        codes = survey.questions[0].view.apply(Text(3).encode(["tea", "xyz"]), Words(b""))
        listed = first.decode(codes)
        bare = {"study": survey.to_json(), "set": ["question=0"]}
        named = client.post(f"{path}/answer", json={**bare, "candidates": listed})
        assert named.status_code == 200, named.text
        shares = {row["value"]: row["frequency"] for row in named.json()["rows"]}
        assert shares[listed[0]] > 0.3 > 0.1 > shares[listed[1]]
        last = len(survey.questions) - 1
        refused = client.post(f"{path}/answer", json={**bare, "set": [f"question={last}"]})
        assert code(refused) == (422, "candidates-needed")
    file.write_bytes(search.to_bytes())
    by_files = veil_json("estimate", file, export)
    library = document(search.read(FileCollection(survey, [export])))
    for name in ("rows", "rounds", "population"):
        assert found[name] == by_files[name] == library[name], name
    assert found["population"] == PEOPLE + 1


def test_the_operator_publishes_and_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    search, file, out = PEM(4.0, Text(3), 2, 2**12), tmp_path / "study.json", tmp_path / "out.parquet"
    file.write_bytes(search.to_bytes())
    shown = veil_json("survey", "create", file, "--new", "--open")
    assert (shown["state"], shown["task"], shown["kind"]) == ("open", search.survey.task, "pem")
    veil("survey", "export", search.survey.task, "-o", out)
    assert "at least one report" in veil("estimate", file, out, code=3).stderr
    assert "too few" in veil("survey", "answer", search.survey.task, code=7).stderr
