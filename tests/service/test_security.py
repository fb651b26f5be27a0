"""Who may do what, and what hostile input does: nothing. Everything but reports and published surveys is closed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.patience import LIMIT
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running

from veil import GRR, OLH, Survey
from veil.collector.http.openapi import document
from veil.collector.http.routes import ROUTES
from veil.collector.keys_and_tokens import SCOPES
from veil.collector.service import open_store
from veil.itemsets import SVIM
from veil.tools.json_documents import digest

TARGET = Survey(OLH(1.0, 30))  # what may be opened and closed here
SCHEMA_TARGET = Survey(OLH(1.0, 29))
STUDY = SVIM(2, 2.0, 9)
OPEN = {"postReports", "getSurvey", "getSurveyByName", "getRound", "getHealth", "getReady", "getOpenapi"}
HOSTILE = (
    "' OR 1=1 --",
    "x'; DROP TABLE reports; --",
    '"; DELETE FROM tokens; --',
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%ff%fe",
    "\u202e\u0000",
    "%s%n{0}${7*7}",
    "0" * 64 + "' OR 'a'='a",
    "A" * 64,
    "-1",
    "9" * 400,
)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("security") / "data", VEIL_MAX_BODY_BYTES="200000") as one:
        one.open_survey()
        one.open_survey(TARGET)
        one.open_survey(STUDY)
        yield one


@pytest.fixture(scope="module")
def client(collector: Collector) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=collector.url) as one:
        yield one


def operations() -> list[tuple[str, str, str, Any]]:
    """Name, method, path with a real survey in it, and the operation."""
    found = []
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                real = path.replace("{task}", TARGET.task).replace("{study}", digest(STUDY.to_json()))
                found.append((operation["operationId"], method.upper(), real, operation))
    return found


def scope_of(operation: Any) -> str:
    return str(operation["description"].removeprefix("Needs a token with the scope ").rstrip("."))


def test_the_description_has_exactly_the_routes() -> None:
    described = {(method, path) for path, item in document()["paths"].items() for method in item}
    assert {(route.method.lower(), route.path) for route in ROUTES} == {d for d in described if d[0] != "parameters"}
    closed = {name: operation for name, _, _, operation in operations() if "security" in operation}
    assert OPEN | set(closed) == {name for name, *_ in operations()}
    # reports are open to all: their scope only lifts the limit by address
    assert {scope_of(operation) for operation in closed.values()} | {"reports:write"} == set(SCOPES)


@pytest.mark.parametrize(("name", "method", "path", "operation"), operations(), ids=lambda part: str(part)[:20])
def test_everything_else_is_closed(
    collector: Collector, client: httpx.Client, name: str, method: str, path: str, operation: Any
) -> None:
    if name in OPEN:
        assert "security" not in operation
        return
    scope = scope_of(operation)
    others = tuple(other for other in SCOPES if other != scope)
    revoked = collector.token(scope)
    _revoke_last(collector)
    cases: list[tuple[dict[str, str], int, str]] = [
        ({}, 401, "no-token"),
        ({"Authorization": "Basic abc"}, 401, "no-token"),
        ({"Authorization": "Bearer"}, 401, "no-token"),
        ({"Authorization": "Bearer veil_" + "A" * 43}, 401, "bad-token"),
        ({"Authorization": "Bearer ' OR 1=1 --"}, 401, "bad-token"),
        (revoked, 401, "bad-token"),
        (collector.token(*others), 403, "wrong-scope"),
    ]
    if name != "listSurveys":
        cases.append((collector.token(scope, task="0" * 64), 403, "wrong-survey"))
    for headers, status, code in cases:
        answer = client.request(method, path, headers=headers, json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), (name, headers)
    right = client.request(method, path, headers=collector.token(scope))
    assert right.status_code not in (401, 403)


def _revoke_last(collector: Collector) -> None:
    store = open_store(collector.settings)
    assert store.revoke_token(store.tokens()[-1].name)
    store.close()


def test_a_token_for_one_survey_sees_only_that_one(collector: Collector, client: httpx.Client) -> None:
    other = Survey(OLH(1.0, 31))
    collector.open_survey(other)
    mine = collector.token("surveys:read", task=other.task)
    assert [one["task"] for one in client.get("/v1/surveys", headers=mine).json()["surveys"]] == [other.task]
    assert client.get(f"/v1/surveys/{other.task}/state", headers=mine).status_code == 200
    for task in (SURVEY.task, "any", "ANY"):
        assert client.get(f"/v1/surveys/{task}/state", headers=mine).status_code == 403


def test_secrets_are_nowhere_on_the_disk(collector: Collector) -> None:
    secret = collector.token("answers:read")["Authorization"].removeprefix("Bearer ")
    for file in collector.folder.iterdir():
        assert secret.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_in_every_place(collector: Collector, client: httpx.Client, text: str) -> None:
    token = collector.token()
    header = {**token, "Content-Type": "application/json"}
    survey, study = SURVEY.to_json(), json.loads(STUDY.to_bytes())
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/v1/surveys", {"survey": text}),
        ("POST", "/v1/surveys", {"survey": {**survey, "kind": text}}),
        ("POST", "/v1/surveys", {"survey": survey, "opens": text}),
        ("POST", "/v1/surveys", {"survey": survey, "precision": text}),
        ("POST", "/v1/surveys", {"survey": survey, "minimum": text}),
        ("POST", "/v1/surveys", {"survey": survey, text: 1}),
        ("POST", "/v1/surveys", {"survey": {**study, "kind": text}}),
        ("POST", "/v1/surveys", {"survey": {**study, "version": text}}),
        ("POST", "/v1/surveys", {"survey": {**study, "study": {**study["study"], "kind": text}}}),
        ("POST", "/v1/surveys", {"survey": {**study, "study": {**study["study"], "sizes": text}}}),
        ("POST", "/v1/surveys", {"survey": study, "people": text}),
        ("POST", f"/v1/surveys/{SURVEY.task}/answer", {"set": [f"post={text}"]}),
        ("POST", f"/v1/surveys/{SURVEY.task}/answer", {"set": [f"{text}=1"]}),
        ("POST", f"/v1/surveys/{SURVEY.task}/answer", {"set": text}),
        ("POST", f"/v1/surveys/{SURVEY.task}/answer", {"format": text}),
        ("POST", f"/v1/surveys/{SURVEY.task}/answer", {"level": text}),
        ("POST", f"/v1/surveys/{SURVEY.task}/answer", {"candidates": [text]}),
        ("POST", f"/v1/surveys/{SURVEY.task}/answer", {"study": text}),
        ("POST", f"/v1/studies/{digest(STUDY.to_json())}/next", {"round": text}),
    ]
    for method, path, body in requests:
        answer = client.request(method, path, headers=header, content=json.dumps(body))
        assert 400 <= answer.status_code < 500, (path, body, answer.text)
        assert set(answer.json()) == {"error"}
    # whoever makes a label of it gets it back as it was
    labelled = Survey(GRR(1.0, [text.replace("\0", ""), "other"]))
    made = client.post("/v1/surveys", headers=header, content=json.dumps({"survey": labelled.to_json()}))
    assert made.status_code in (200, 201), made.text
    raw = text.encode("utf-8", "surrogatepass").replace(b"\0", b"%00").replace(b" ", b"%20")
    for path in (
        b"/v1/surveys/%s",
        b"/v1/surveys/%s/reports",
        b"/v1/surveys/%s/answer",
        b"/v1/studies/%s",
        b"/v1/studies/%s/round",
        b"/v1/studies/%s/next",
        b"/%s",
        b"/v1/surveys/%s/open",
    ):
        for method in ("GET", "POST"):
            status = _raw(collector.port, method, path % raw, token["Authorization"])
            assert status in (400, 404, 405, 415), (path, status)
    assert client.get("/v1/surveys", headers=token).status_code == 200
    assert client.get("/readyz").status_code == 200


def _raw(port: int, method: str, path: bytes, authorization: str) -> int:
    """A request whose path nobody tidies up."""
    with socket.create_connection(("127.0.0.1", port), LIMIT) as connection:
        head = (
            f"HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nAuthorization: {authorization}\r\nConnection: close\r\n\r\n"
        )
        connection.sendall(method.encode() + b" " + path + b" " + head.encode())
        return int(connection.recv(100).split()[1])


def test_cors_is_for_devices_only(collector: Collector, client: httpx.Client) -> None:
    path, origin = f"/v1/surveys/{SURVEY.task}", {"Origin": "https://page.example"}
    asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for one in (path, f"{path}/reports", f"/v1/studies/{digest(STUDY.to_json())}/round"):
        preflight = client.options(one, headers=asked)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, "*")
        assert "access-control-allow-credentials" not in preflight.headers
        assert "authorization" not in preflight.headers["access-control-allow-headers"].lower()
    answer = client.post(f"{path}/reports", content=framed(SURVEY, [1]), headers=FRAMED | origin)
    assert answer.headers["access-control-allow-origin"] == "*"
    refused = client.post(f"{path}/reports", content=b"x", headers=FRAMED | origin)  # the page can read why
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (422, "*")
    study = f"/v1/studies/{digest(STUDY.to_json())}"
    for one in (
        "/v1/surveys",
        study,
        f"{study}/next",
        f"{path}/answer",
        f"{path}/state",
        f"{path}/export",
        "/v1/audit",
        "/metrics",
    ):
        for answer in (client.options(one, headers=asked), client.get(one, headers=origin)):
            assert "access-control-allow-origin" not in answer.headers
            assert answer.status_code in (401, 405)


def test_cors_for_named_origins(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_CORS_ORIGINS="https://a.example, https://b.example") as one:
        path = one.url + one.open_survey()
        assert httpx.get(path, headers={"Origin": "https://b.example"}).headers["access-control-allow-origin"] == (
            "https://b.example"
        )
        for origin in ("https://c.example", "https://a.example.c.example", "null"):
            answer = httpx.get(path, headers={"Origin": origin})
            assert "access-control-allow-origin" not in answer.headers
            assert answer.headers["vary"] == "Origin"


def test_no_cookie_is_set_and_nothing_about_the_sender_is_kept(collector: Collector, client: httpx.Client) -> None:
    mark = "sender-of-this-request"  # longer than chance: four hex digits also stood in a token's random name
    marks = {"User-Agent": f"agent-{mark}", "Cookie": f"track={mark}", "X-Forwarded-For": "203.0.113.77"}
    marks |= {"Referer": f"https://{mark}.example"}
    path = f"/v1/surveys/{SURVEY.task}"
    answers = [client.get(path, headers=marks), client.post(f"{path}/reports", content=mark.encode(), headers=marks)]
    answers.append(client.post(f"{path}/reports", content=framed(SURVEY, [1]), headers=FRAMED | marks))
    assert answers[-1].status_code == 200
    assert not any("set-cookie" in answer.headers or "server" in answer.headers for answer in answers)
    for file in collector.folder.iterdir():
        content = file.read_bytes()
        assert mark.encode() not in content, file
        assert b"203.0.113.77" not in content, file


def test_schemathesis_finds_no_server_error(collector: Collector) -> None:
    path = collector.open_survey(SCHEMA_TARGET)
    sent = framed(SCHEMA_TARGET, [1] * 50)
    assert httpx.post(f"{collector.url}{path}/reports", content=sent, headers=FRAMED).status_code == 200
    token = collector.token()["Authorization"]
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{collector.url}/openapi.json"),
        *(
            "--header",
            f"Authorization: {token}",
            "--max-examples",
            "25",
            "--seed",
            "1",
            "--generation-database",
            "none",
        ),
        *("--phases", "examples,coverage,fuzzing", "--no-color", "--suppress-health-check", "all"),
        *("--request-timeout", str(LIMIT)),
        "--checks",
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
        "negative_data_rejection,ignored_auth,unsupported_method",
    ]
    told = {"SCHEMATHESIS_HOOKS": "tests.service.schemathesis_hooks", "VEIL_TEST_TASK": SCHEMA_TARGET.task}
    told["VEIL_TEST_STUDY"] = digest(STUDY.to_json())
    environment = {**os.environ, **told, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
