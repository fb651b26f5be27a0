"""`veil demo`: a collector on SQLite, a survey, and simulated devices that report over HTTP.

The collector and the crowds of devices are processes of their own: only HTTP goes between them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veil.cli.crowd import call
from veil.cli.demo import EPSILON, beside_truth, step
from veil.cli.example import APPS, QUESTION, made_up
from veil.cli.outcome import Document, plural
from veil.collector.access import issue_token
from veil.collector.service import open_store
from veil.collector.settings import Settings
from veil.domain import Categories
from veil.engines import Watch
from veil.errors import StoreError
from veil.planning import Wishes, plan
from veil.tools.json_documents import parse_json

if TYPE_CHECKING:
    from veil.cli.screen import Screen

__all__ = ["walk_online"]

_CROWDS = 2
_SCOPES = ("surveys:write", "surveys:read", "answers:read")


def walk_online(people: int, screen: Screen, watch: Watch) -> Document:
    """Plan, serve, open, report, answer; in a temporary folder that is gone afterwards."""
    screen.print(f"[bold]{QUESTION}[/]\n{people:,} simulated people, {len(APPS)} possible answers.", markup=True)
    step(screen, 1, "plan", "choose the frequency oracle")
    choice = plan("histogram", Wishes(EPSILON, Categories(APPS), people))
    survey, start = choice.study.survey, time.monotonic()
    screen.print(f"[bold green]*[/] {choice.why}", markup=True)

    step(screen, 2, "serve", "start a collector on SQLite, then sign and open the survey")
    with tempfile.TemporaryDirectory(prefix="veil-demo-") as folder, _serving(Path(folder)) as port:
        token = _token(folder)
        asked = json.dumps({"survey": parse_json(choice.study.to_bytes())}).encode()
        path = f"/v1/surveys/{survey.task}"
        _ask(port, "POST", "/v1/surveys", token, asked)
        _ask(port, "POST", f"{path}/open", token)
        url = f"http://127.0.0.1:{port}{path}"
        screen.print_line(f"  survey: {url}")

        step(screen, 3, "report", "each device checks the guarantee, charges its ledger, and sends a randomized report")
        held = made_up(people)
        with watch("reporting", people) as advance:
            _report(url, held, advance)
        state = _ask(port, "GET", f"{path}/state", token)
        seconds = time.monotonic() - start
        reports, size = plural(state["reports"], "report"), plural(survey.layout.size, "byte")
        screen.print(f"  {reports} of {size} received over HTTP, each stored on disk before it was acknowledged")

        step(screen, 4, "estimate", "the estimated shares, and the true shares, which the collector never receives")
        answer = _ask(port, "GET", f"{path}/answer", token)
    return _shown(screen, answer, held, seconds)


def _shown(screen: Screen, answer: Document, held: Any, seconds: float) -> Document:
    known, covered = beside_truth(screen, answer["rows"], held, seconds)
    screen.print("Next: run veil demo --offline (the same steps with files), or read docs/collector/service.md.")
    return {"task": answer["task"], "people": answer["people"], "answer": answer, "truth": known, "covered": covered}


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[int]:
    """A `veil serve` for the length of a block, and its port."""
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(folder)]
    # no setting of a collector that is set up here may reach this one: neither a variable nor a veil.toml
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VEIL_")}
    environment["VEIL_REQUESTS_PER_MINUTE"] = "0"  # all devices of the demo have one address
    process = subprocess.Popen(  # noqa: S603  # our own command
        command, stderr=subprocess.PIPE, cwd=folder, env=environment
    )
    assert process.stderr is not None
    drain = threading.Thread(target=process.stderr.read, daemon=True)  # a full pipe would hold the collector up
    try:
        port = None
        for line in process.stderr:
            event = json.loads(line)
            port = event.get("port", port)
            if event["event"] == "started":
                break
        if port is None:
            raise StoreError("the collector did not start")
        drain.start()
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)
        if drain.ident is not None:
            drain.join(timeout=5)
        process.stderr.close()


def _token(folder: str) -> str:
    store = open_store(Settings(folder=folder))
    _, secret = issue_token(store, _SCOPES, note="demo")
    store.close()
    return secret


def _ask(port: int, method: str, path: str, token: str, body: bytes | None = None) -> Document:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"} | ({} if body is None else {"Content_Type": "application/json"})
    status, answer = call(connection, method, path, body, **headers)
    connection.close()
    document: Document = json.loads(answer)
    if status >= 400:
        raise StoreError(f"the collector refused: {document['error']['message']}")
    return document


def _report(url: str, held: Sequence[int] | Any, advance: Any) -> None:
    """Crowds of devices, each in a process of its own."""
    crowds = []
    for some in np.array_split(held, _CROWDS):
        command = [sys.executable, "-m", "veil.cli.crowd", url]
        crowd = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # our own too
        assert crowd.stdin is not None
        crowd.stdin.write(json.dumps([APPS[i] for i in some]).encode())
        crowd.stdin.close()
        crowds.append(crowd)
    readers = [threading.Thread(target=_follow, args=(crowd, advance)) for crowd in crowds]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    if any(crowd.wait() for crowd in crowds):
        raise StoreError("a crowd of devices gave up")


def _follow(crowd: subprocess.Popen[bytes], advance: Any) -> None:
    assert crowd.stdout is not None
    with crowd.stdout as lines:
        for line in lines:
            advance(int(line))
