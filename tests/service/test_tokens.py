"""What the check of a token does, whatever the token: the time that it takes must not tell secrets. No clock here."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.service.harness import SURVEY

from veil.collector import keys_and_tokens as tokens
from veil.collector.http.routes import _authorised_study
from veil.collector.keys_and_tokens import authorised, issue_token
from veil.collector.store.sqlite import SqliteStore
from veil.errors import ServiceError

SCOPE = "answers:read"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    one = SqliteStore(tmp_path / "x.sqlite3")
    yield one
    one.close()


def traced(store: SqliteStore, secret: str) -> tuple[list[str], str]:
    """Return the functions that the check of a token calls, and how it ends."""
    calls: list[str] = []
    code = authorised.__code__

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call" and frame.f_code is code:
            calls.append(argument.__name__)
        elif event == "call" and frame.f_back is not None and frame.f_back.f_code is code:
            calls.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        authorised(store, f"Bearer {secret}", SCOPE, SURVEY.task)
        end = "right"
    except ServiceError as problem:
        end = problem.code
    finally:
        sys.setprofile(None)
    return calls, end


def test_unknown_and_revoked_tokens_take_the_same_way(store: SqliteStore) -> None:
    record, revoked = issue_token(store, (SCOPE,))
    store.revoke_token(record.name)
    unknown = [f"veil_{secrets.token_urlsafe(32)}", revoked[:-1], revoked + "A", "x", "é", "A" * 9_000]
    ways = [traced(store, secret) for secret in (revoked, *unknown)]
    assert all(way == ways[0] for way in ways)
    assert ways[0][1] == "bad-token"
    assert [name for name in ways[0][0] if name in ("_digest", "find_token", "compare_digest")] == [
        "_digest",
        "find_token",
        "compare_digest",
    ]


def test_tokens_that_are_known_take_the_same_way_up_to_the_answer(store: SqliteStore) -> None:
    right, other = issue_token(store, (SCOPE,))[1], issue_token(store, ("audit:read",))[1]
    elsewhere = issue_token(store, (SCOPE,), task="0" * 64)[1]
    ways = {end: calls for calls, end in (traced(store, secret) for secret in (right, other, elsewhere))}
    assert set(ways) == {"right", "wrong-scope", "wrong-survey"}
    unknown = traced(store, "veil_x")[0]
    start = unknown[: unknown.index("compare_digest") + 1]
    for calls in ways.values():
        assert calls[: len(start)] == start


def test_only_digests_are_looked_up_and_compared(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    record, secret = issue_token(store, (SCOPE,))
    seen: list[tuple[Any, ...]] = []
    compare, find = hmac.compare_digest, store.find_token

    def compared(first: Any, second: Any) -> bool:
        seen.append((first, second))
        return compare(first, second)

    def looked_up(digest: bytes) -> Any:
        seen.append((digest,))
        return find(digest)

    monkeypatch.setattr(tokens.hmac, "compare_digest", compared)
    monkeypatch.setattr(store, "find_token", looked_up)
    authorised(store, f"Bearer {secret}", SCOPE, None)
    unknown = "veil_" + secrets.token_urlsafe(32)
    with pytest.raises(ServiceError):
        authorised(store, f"Bearer {unknown}", SCOPE, None)
    known, sent = record.digest, hashlib.sha256(unknown.encode()).digest()
    assert seen == [(known,), (known, known), (sent,), (bytes(32), sent)]
    assert hashlib.sha256(secret.encode()).digest() == known
    source = inspect.getsource(authorised)
    assert "secret ==" not in source
    assert "digest ==" not in source


def test_no_study_is_looked_up_for_an_unknown_token(store: SqliteStore) -> None:
    looked_up: list[str] = []

    async def in_thread(work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    studies = SimpleNamespace(first_task=looked_up.append)
    service: Any = SimpleNamespace(store=store, studies=studies, in_thread=in_thread)
    token = issue_token(store, (SCOPE,))[1]
    request: Any = SimpleNamespace(headers={"authorization": "Bearer veil_x"}, path_params={"study": "0" * 64})
    with pytest.raises(ServiceError, match="unknown or was revoked"):
        asyncio.run(_authorised_study(service, request, SCOPE))
    assert looked_up == []
    request.headers = {"authorization": f"Bearer {token}"}
    asyncio.run(_authorised_study(service, request, SCOPE))
    assert looked_up == ["0" * 64]
