"""JSON from strangers and analysts: deep and large bodies are refused before the collector makes objects of them."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from tests.service.harness import SURVEY, running

BODIES = {
    "deep": b"[" * 3_000_000,
    "deep objects": b'{"a":' * 500_000,
    "many": b"[" + b"[]," * 1_300_000 + b"0]",
    "deep study": json.dumps({"survey": 0}).encode().replace(b"0", b"[" * 1_000 + b"]" * 1_000),
}


@pytest.mark.parametrize("scope", ["surveys:write", "answers:read"])
def test_deep_and_large_documents_are_refused(scope: str, tmp_path: Path) -> None:
    with running(tmp_path / "data") as one:
        path = one.open_survey(SURVEY)
        place = "/v1/surveys" if scope == "surveys:write" else f"{path}/answer"
        headers = one.token(scope) | {"Content-Type": "application/json"}
        for name, body in BODIES.items():
            answer = httpx.post(f"{one.url}{place}", content=body, headers=headers, timeout=60.0)
            assert answer.status_code == 422, (name, answer.text)
            assert answer.json()["error"]["code"] == "malformed", name
        assert httpx.get(f"{one.url}{path}").status_code == 200
