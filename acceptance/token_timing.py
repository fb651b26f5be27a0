"""Whether the time of a token's check tells anything: many samples in this process, where a difference shows best.

Cases take turns in random order. Compared are medians, which a busy machine moves together.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from veil.collector.keys_and_tokens import authorised, issue_token
from veil.collector.store.blocks import BlockStore
from veil.errors import ServiceError

_SCOPE = "answers:read"
_TOKENS = 200
_SHARED = (0, 1, 8, 16, 31)  # bytes that a digest shares with a stored one
_MOST = 0.05


def measure(rounds: int) -> list[tuple[str, dict[str, float]]]:
    """Return the median microseconds of every case, for SQLite and PostgreSQL."""
    from tests.service.postgres import server

    from veil.collector.store.postgres import PostgresStore
    from veil.collector.store.sqlite import SqliteStore

    with tempfile.TemporaryDirectory() as folder, server() as one:
        stores: tuple[tuple[str, BlockStore], ...] = (
            ("SQLite", SqliteStore(Path(folder) / "x.sqlite3")),
            ("PostgreSQL", PostgresStore(one.database())),
        )
        found = [(name, _medians(_cases(store), rounds)) for name, store in stores]
        for _, store in stores:
            store.close()
    return found


def judge(name: str, medians: Mapping[str, float]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of (what, measured, required), and whether look-ups and unknown tokens take the same time."""
    rows, passed = [], True
    for kind in ("look-up", "unknown"):
        times = [median for case, median in medians.items() if case.startswith(kind)]
        spread = max(times) / min(times) - 1
        passed &= spread <= _MOST
        required = f"at most {_MOST:.0%}"
        rows.append((f"{name}: {kind}, {len(times)} cases, spread of medians", f"{spread:.1%}", required))
    rows += [(f"{name}: {case}", f"{median:.1f} us", "") for case, median in medians.items()]
    return rows, passed


def _cases(store: BlockStore) -> dict[str, Callable[[], object]]:
    made = [issue_token(store, (_SCOPE,)) for _ in range(_TOKENS)]
    known, right = made[_TOKENS // 2]
    record, revoked = issue_token(store, (_SCOPE,))
    store.revoke_token(record.name)
    other = issue_token(store, ("audit:read",))[1]

    def check(secret: str) -> None:
        with contextlib.suppress(ServiceError):
            authorised(store, f"Bearer {secret}", _SCOPE, None)

    cases: dict[str, Callable[[], object]] = {}
    for shared in _SHARED:
        digest = known.digest[:shared] + bytes(255 - byte for byte in known.digest[shared:])
        cases[f"look-up, {shared} of 32 bytes shared"] = partial(store.find_token, digest)
    unknown = {
        "random": f"veil_{secrets.token_urlsafe(32)}",
        "one letter off": right[:-1] + ("A" if right[-1] != "A" else "B"),
    }
    unknown["a stranger's"] = f"veil_{secrets.token_urlsafe(32)}"
    cases |= {f"unknown, {what}": partial(check, secret) for what, secret in unknown.items()}
    return cases | {
        "revoked": partial(check, revoked),
        "of another scope": partial(check, other),
        "right": partial(check, right),
    }


def _medians(cases: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    names, generator = list(cases), np.random.default_rng(0)
    taken = np.empty((rounds, len(names)))
    for row in taken:
        for i in generator.permutation(len(names)):
            start = time.perf_counter_ns()
            cases[names[i]]()
            row[i] = time.perf_counter_ns() - start
    return dict(zip(names, (np.median(taken[rounds // 10 :], axis=0) / 1_000).tolist(), strict=True))
