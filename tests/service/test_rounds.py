"""Studies of several rounds over real HTTP: opened, closed, read, answered; by an operator or by a rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.harness import FRAMED, Collector, framed, running
from tests.service.people import STUDIES, Leader, held, part_of, reports, undisturbed
from tests.service.test_collector import code
from tests.support.commands import CliRunner

from veil import Bits, Interval, Piecewise, Survey
from veil.cli.main import app
from veil.collector.edge.decoding import decode_requests
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store.base import Group, Store, StoredSurvey
from veil.collector.surveys.answers import AnswerRequest, prepare
from veil.collector.surveys.catalogue import Catalogue, parsed
from veil.collector.surveys.rounds import RunningStudies
from veil.device.verification import verified
from veil.errors import ServiceError
from veil.hitters import PrivTrie
from veil.itemsets import PSFO, SVIM, Adap
from veil.numeric import TwoPhaseVariance
from veil.study import Study
from veil.tools.json_documents import digest

PEOPLE = 3_000
SIGNED = ("document", "key", "signature")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("collector") / "data", VEIL_TALLY_SECONDS="0.05") as one:
        yield one


@pytest.fixture(scope="module")
def client(collector: Collector) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=collector.url, timeout=300, headers=collector.token()) as one:
        yield one


def path_of(study: Study) -> str:
    return f"/v1/studies/{digest(study.to_json())}"


def publish(client: httpx.Client, study: Study, **options: Any) -> httpx.Response:
    return client.post("/v1/surveys", json={"survey": json.loads(study.to_bytes()), "minimum": 10, **options})


def report(client: httpx.Client, study: Study, people: int = PEOPLE) -> tuple[Survey, httpx.Response]:
    """The people of the round that is open now report; what they were asked, and what became of it."""
    published = client.get(f"{path_of(study)}/round").json()
    survey = verified({name: published[name] for name in SIGNED})
    body = reports(survey, part_of(held(study, people), published["from"], published["to"]))
    return survey, client.post(f"/v1/surveys/{survey.task}/reports", content=body, headers=FRAMED)


@pytest.mark.parametrize("name", ["svim", "svsm"])
def test_a_study_goes_from_round_to_round(collector: Collector, name: str) -> None:
    study = STUDIES[name]
    leader = Leader(collector, study, PEOPLE, collector.token())
    assert leader.lead() == undisturbed(study, PEOPLE)
    state = leader.ask("GET", path_of(study))
    assert [one["state"] for one in state["rounds"]] == ["closed"] * len(leader.tasks)
    assert [one["task"] for one in state["rounds"]] == leader.tasks
    assert sum(one["reports"] for one in state["rounds"]) == PEOPLE
    assert state["rounds"][-1]["to"] == pytest.approx(1)
    assert leader.lead() == undisturbed(study, PEOPLE)  # all of it again changes nothing


def test_what_a_round_refuses(collector: Collector, client: httpx.Client) -> None:
    study = SVIM(2, 3.0, 30)
    made = publish(client, study)
    assert (made.status_code, publish(client, study).status_code) == (201, 200)
    first, path = made.json()["task"], path_of(study)
    assert (made.json()["study"], made.json()["kind"]) == (digest(study.to_json()), "svim")
    assert client.get(path).json()["state"] == "draft"
    assert code(client.get(f"{path}/round")) == (404, "unknown-survey")  # a draft is nobody's business
    assert code(client.post(f"{path}/next")) == (409, "wrong-state")
    client.post(f"/v1/surveys/{first}/open")
    assert code(client.post(f"{path}/next")) == (409, "too-few-reports")
    assert code(client.get(f"/v1/surveys/{first}/answer")) == (409, "study-not-finished")
    survey, sent = report(client, study)
    assert sent.json() == {"acknowledged": PEOPLE // 2}
    assert code(client.post(f"{path}/next", json={"round": 1})) == (409, "wrong-state")
    for wrong in ({"round": "0"}, {"round": -1}, {"round": True}, {"rounds": 0}):
        assert code(client.post(f"{path}/next", json=wrong)) == (422, "bad-input")
    state = client.post(f"{path}/next", json={"round": 0}).json()
    assert ([one["state"] for one in state["rounds"]], state["state"]) == (["closed", "open"], "asking")
    assert client.post(f"{path}/next", json={"round": 0}).json() == state  # again is fine
    assert code(client.post(f"{path}/next")) == (409, "too-few-reports")  # nobody has answered the next one yet
    late = framed(survey, [[1]])
    assert code(client.post(f"/v1/surveys/{first}/reports", content=late, headers=FRAMED)) == (410, "survey-closed")
    assert code(client.get(f"/v1/surveys/{first}")) == (410, "survey-closed")
    for asked in ({"set": ["sizes=threshold"]}, {"candidates": [1]}):
        assert code(client.post(f"/v1/surveys/{first}/answer", json=asked)) == (422, "bad-input")
    bare = client.post(f"/v1/surveys/{first}/answer", json={"study": survey.to_json()})  # the round by itself
    assert (bare.json()["kind"], bare.json()["people"]) == ("frequencies", PEOPLE // 2)
    while client.get(path).json()["state"] != "finished":
        report(client, study)
        client.post(f"{path}/next")
    assert code(client.get(f"{path}/round")) == (410, "study-finished")
    assert code(client.post(f"{path}/next")) == (409, "wrong-state")
    assert client.get(f"/v1/surveys/{first}/answer").json()["kind"] == "items"


def test_rounds_are_closed_by_people_and_by_time(collector: Collector, client: httpx.Client) -> None:
    study = TwoPhaseVariance(Piecewise, 4.0, Interval(0, 10))
    made = publish(client, study, people=2_000, round_seconds=1)
    assert made.status_code == 201
    assert code(publish(client, study, people=3_000)) == (409, "survey-exists")
    task = made.json()["task"]
    client.post(f"/v1/surveys/{task}/open")
    for share in (1_000, 400):  # half of the people; then as many as come within a second
        published = client.get(f"{path_of(study)}/round").json()
        survey = verified({name: published[name] for name in SIGNED})
        body = framed(survey, [3.0, 7.0] * (share // 2))
        assert client.post(f"/v1/surveys/{survey.task}/reports", content=body, headers=FRAMED).status_code == 200
        while client.get(path_of(study)).json()["rounds"][-1]["task"] == survey.task:
            if client.get(path_of(study)).json()["state"] == "finished":
                break
    state = client.get(path_of(study)).json()
    assert ([one["reports"] for one in state["rounds"]], state["state"]) == ([1_000, 400], "finished")
    found = client.get(f"/v1/surveys/{task}/answer").json()
    assert (found["kind"], round(found["mean"])) == ("mean-and-variance", 5)


def test_a_round_that_was_closed_by_hand_needs_the_minimum_too(collector: Collector, client: httpx.Client) -> None:
    study = TwoPhaseVariance(Piecewise, 4.5, Interval(0, 10))
    task = publish(client, study, minimum=100).json()["task"]
    client.post(f"/v1/surveys/{task}/open")
    survey, path = study.survey, f"/v1/surveys/{task}"
    body = framed(survey, [3.0, 5.0, 7.0])
    assert client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200
    assert client.post(f"{path}/close").json()["state"] == "closed"
    for asked in ({}, {"json": {"round": 0}}):
        assert code(client.post(f"{path_of(study)}/next", **asked)) == (409, "too-few-reports")
    state = client.get(path_of(study)).json()
    assert (len(state["rounds"]), state["state"]) == (1, "asking")
    assert code(client.get(f"{path}/answer")) == (409, "study-not-finished")


def test_a_finished_study_is_not_answered_from_too_few(tmp_path: Path) -> None:
    """Whatever let a round be read with fewer: a database of an earlier version, say."""
    store = open_store(CollectorSettings(folder=str(tmp_path / "data")))
    catalogue = Catalogue(store)
    studies, study = RunningStudies(store, catalogue), TwoPhaseVariance(Piecewise, 4.0, Interval(0, 10))
    first, _ = studies.publish(study, {}, precision=3_600, minimum=100)
    id_ = digest(study.to_json())
    catalogue.open(first.task)
    for number, people in enumerate((200, 2)):
        stored, _ = studies.current(id_)
        fill(store, stored, framed(parsed(stored.document), [3.0, 7.0] * (people // 2)))
        store.want_rounds(id_, number + 1)
        studies.advance(id_)
    assert studies.look_up(id_).finished
    with pytest.raises(ServiceError, match="too few reports") as refused:
        prepare(store, studies, catalogue.look_up(first.task), AnswerRequest()).read()
    assert refused.value.code == "too-few-reports"
    store.close()


def test_a_study_of_several_rounds_does_not_read_a_survey_of_one(client: httpx.Client) -> None:
    study, several = PSFO(1, Adap, 2.0, 30), SVIM(2, 2.0, 30)
    assert study.survey.task == several.survey.task
    path = f"/v1/surveys/{publish(client, study).json()['task']}"
    client.post(f"{path}/open")
    body = reports(study.survey, held(study, 100))
    assert client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200
    assert client.get(f"{path}/answer").status_code == 200
    refused = client.post(f"{path}/answer", json={"study": json.loads(several.to_bytes())})
    assert code(refused) == (422, "bad-input")
    assert refused.json()["error"]["message"] == "expected a study of one round"


def test_what_cannot_be_published(client: httpx.Client) -> None:
    study = SVIM(3, 3.0, 30)  # asks the same in its first round as the one with k = 2
    assert publish(client, SVIM(2, 3.0, 30)).status_code == 200
    refused = publish(client, study)
    assert code(refused) == (409, "survey-exists")
    again = PrivTrie(1.0, Bits(16), 2, people=10**5)
    refused = publish(client, again)
    assert code(refused) == (422, "bad-input")
    assert "asks the same task in several rounds" in refused.json()["error"]["message"]
    fresh = SVIM(2, 3.5, 30)
    assert code(publish(client, fresh, closes="2999-01-01T00:00:00Z")) == (422, "bad-input")
    assert code(publish(client, fresh, people=0)) == (422, "bad-input")
    file = json.loads(fresh.to_bytes())
    for wrong, status in (
        ({**file, "version": 2}, "malformed"),
        ({**file, "kind": "other"}, "malformed"),
        ({**file, "study": {**file["study"], "kind": "other"}}, "malformed"),
        ({**file, "study": {**file["study"], "epsilon": "3.6"}}, "foreign-survey"),  # its task id differs
        ({**file, "study": {**file["study"], "more": 1}}, "malformed"),
        ({name: file[name] for name in ("kind", "version", "study")}, "malformed"),
    ):
        assert code(client.post("/v1/surveys", json={"survey": wrong})) == (422, status)
    whole = json.dumps({"survey": file}).encode()
    cut = client.post("/v1/surveys", content=whole[:-40], headers={"Content-Type": "application/json"})
    assert code(cut) == (422, "malformed")
    one_round = STUDIES["pem"]
    assert code(publish(client, one_round, people=100)) == (422, "bad-input")


def test_a_token_for_a_study_is_one_for_its_first_survey(collector: Collector, client: httpx.Client) -> None:
    study = SVIM(2, 3.1, 30)
    task = publish(client, study).json()["task"]
    mine = collector.token("surveys:read", "surveys:write", task=task)
    other = collector.token("surveys:read", "surveys:write", task="0" * 64)
    assert httpx.get(f"{collector.url}{path_of(study)}", headers=mine).status_code == 200
    assert code(httpx.get(f"{collector.url}{path_of(study)}", headers=other)) == (403, "wrong-survey")
    assert code(client.get(f"/v1/studies/{'0' * 64}")) == (404, "unknown-study")
    assert code(httpx.get(f"{collector.url}/v1/studies/{'0' * 64}", headers=mine)) == (403, "wrong-survey")


def test_the_operator_leads_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    study, file = STUDIES["svim"], tmp_path / "study.json"
    file.write_bytes(study.to_bytes())

    def veil(*args: Any, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [*map(str, args), "--json"])
        assert result.exit_code == code, (result.output, result.exception)
        return json.loads(result.stdout)

    shown = veil("survey", "create", file, "--new", "--open", "--minimum", 10)
    task, id_ = shown["task"], shown["study"]
    veil("survey", "next", task[:8], code=7)  # nobody has answered
    store = open_store(CollectorSettings(folder=str(tmp_path / "data")))
    studies = RunningStudies(store, Catalogue(store))
    while not store.find_study(id_).finished:  # type: ignore[union-attr]
        stored, part = studies.current(id_)
        fill(
            store,
            stored,
            reports(parsed(stored.document), part_of(held(study, PEOPLE), float(part.begin), float(part.end))),
        )
        veil("survey", "answer", task[:8], code=7)  # not yet
        state = veil("survey", "next", id_[:8], "--round", part.number)
    store.close()
    assert state["state"] == "finished"
    assert veil("survey", "show", id_[:8]) == state
    assert [one["state"] for one in veil("survey", "list")["studies"]] == ["finished"]
    out = tmp_path / "items.csv"
    found = veil("survey", "answer", id_, "-o", out)
    expected = undisturbed(study, PEOPLE)
    assert found["rows"] == expected["rows"]
    assert len(out.read_text().splitlines()) == 1 + len(expected["rows"])
    veil("survey", "next", "ffff", code=7)
    veil("survey", "answer", task, "--set", "sizes=threshold", code=3)


def fill(store: Store, stored: StoredSurvey, body: bytes) -> None:
    decoded = decode_requests(parsed(stored.document), [body])
    assert store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 1_000) == [decoded.count]
