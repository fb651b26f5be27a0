"""A crowd of devices for the demo: `python -m veil.cli.crowd URL`, in a process of its own.

Standard input holds the people's answers, as JSON. Each device checks the survey's guarantee, charges its own ledger,
randomizes with the system's entropy and makes its own report. Ten devices share a request, as behind a relay.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from veil.device import Client, Ledger, verified

_TOGETHER = 10
_FRAMED = "application/vnd.veil.reports"


def call(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    """One request over a connection that stays open."""
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read()


def report_all(url: str, answers: Sequence[Any]) -> None:
    """Report every answer once; say on standard output how many more are acknowledged."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    _, published = call(connection, "GET", parts.path)
    survey = verified(json.loads(published), task=parts.path.rpartition("/")[2])
    for start in range(0, len(answers), _TOGETHER):
        some = answers[start : start + _TOGETHER]
        reports = b"".join(Client(survey, Ledger(lifetime=1.0)).answer(answer) for answer in some)
        while call(connection, "POST", f"{parts.path}/reports", reports, Content_Type=_FRAMED)[0] != 200:
            time.sleep(0.1)  # the very same bytes again: they are counted once
        print(len(some), flush=True)
    connection.close()


if __name__ == "__main__":
    report_all(sys.argv[1], json.load(sys.stdin))
