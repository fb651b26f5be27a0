"""Several collectors on one PostgreSQL behind nginx with `deploy/nginx/veil.conf`: each report counts once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed
from tests.service.kills import Devices, check_nothing_lost, ids_of
from tests.service.postgres import Server

from veil.shuffle.rehearsal import free_addresses

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nginx" / "veil.conf"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")


def without_tls(text: str, folder: Path, port: int, servers: list[str]) -> str:
    """Return the deployed configuration for `servers`, on another port, without TLS and outside of system folders."""
    text = re.sub(r"^ *(ssl_.*|listen \[::\].*)\n", "", text, flags=re.MULTILINE)
    text, listens = re.subn(r"listen 443 ssl;", f"listen 127.0.0.1:{port};", text)
    lines = "".join(f"    server {server};\n" for server in servers)
    text, upstreams = re.subn(r"^    server 127\.0\.0\.1:8321;.*\n", lines, text, flags=re.MULTILINE)
    assert (listens, upstreams) == (1, 1)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    text = text.replace("/var/log/nginx/veil.log", f"{folder}/error.log")
    whole = f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
    return f"{whole}http {{\n{paths}{text}}}\n"


@contextlib.contextmanager
def proxy(folder: Path, collectors: list[Collector]) -> Iterator[int]:
    """Run nginx before these collectors; yield its port."""
    if NGINX is None:
        message = "nginx is not installed (Debian: nginx-light): collectors behind a proxy were NOT tested"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    folder.mkdir()
    (place,) = free_addresses(1)
    file = folder / "nginx.conf"
    servers = [f"127.0.0.1:{one.port}" for one in collectors]
    file.write_text(without_tls(CONFIGURATION.read_text(encoding="utf-8"), folder, place.port, servers))
    command = [NGINX, "-p", str(folder), "-c", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            until(lambda: is_up(place.port) or process.poll() is not None)
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield place.port
        finally:
            process.terminate()


def is_up(port: int) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    return False


@pytest.fixture
def collectors(postgres: Server, tmp_path: Path) -> Iterator[list[Collector]]:
    """Two collectors, each with a folder of its own; the key is the same file."""
    environment = {
        "VEIL_DATABASE_URL": postgres.database(),
        "VEIL_KEY_FILE": str(tmp_path / "signing.key"),
        "VEIL_METRICS_OPEN": "true",
        "VEIL_TALLY_SECONDS": "0.2",
    }
    made = [Collector(tmp_path / name, environment) for name in ("one", "two")]
    try:
        for one in made:
            one.start()
        yield made
    finally:
        for one in made:
            if one.process is not None and one.process.poll() is None:
                one.kill()


def counted(collector: Collector, line: str) -> int:
    text = httpx.get(f"{collector.url}/metrics").text
    return next((int(one.split()[-1]) for one in text.splitlines() if one.startswith(line)), 0)


def test_a_report_counts_once_whichever_collector_it_reaches(collectors: list[Collector], tmp_path: Path) -> None:
    with proxy(tmp_path / "nginx", collectors) as port:
        url, path = f"http://127.0.0.1:{port}", collectors[0].open_survey()
        bodies = [framed(SURVEY, [1]) for _ in range(20)]

        def send_all() -> None:
            for body in bodies:
                answer = httpx.post(f"{url}{path}/reports", content=body, headers=FRAMED)
                assert answer.status_code == 200

        threads = [threading.Thread(target=send_all) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        assert collectors[1].stored_ids() == sorted(ids_of(bodies))
        both = [
            [counted(one, f'veil_reports_total{{outcome="{outcome}"}}') for outcome in ("stored", "replayed")]
            for one in collectors
        ]
        assert [sum(column) for column in zip(*both, strict=True)] == [20, 40]
        assert all(sum(row) for row in both)  # the proxy sends to both
        token = collectors[0].token("answers:read")
        answers = [httpx.get(f"{one.url}{path}/answer", headers=token) for one in collectors]
        assert json.loads(answers[0].content)["people"] == 20
        assert answers[0].content == answers[1].content
        documents = {httpx.get(f"{url}{path}").content for _ in range(4)}
        assert len(documents) == 1  # the same key signs


def test_one_collector_dies_and_no_acknowledged_report_is_lost(collectors: list[Collector], tmp_path: Path) -> None:
    with proxy(tmp_path / "nginx", collectors) as port:
        path = collectors[0].open_survey()
        devices = Devices(replace(collectors[0], port=port), path)
        threads = [threading.Thread(target=devices.send, args=(i,), daemon=True) for i in range(4)]
        for thread in threads:
            thread.start()
        for one in collectors:
            devices.wait_for_acknowledgements(10)
            one.kill()
            devices.wait_for_acknowledgements(10)  # the other one takes reports
            one.start()
        devices.wait_for_acknowledgements(10)
        devices.stopping.set()
        for thread in threads:
            thread.join(LIMIT)
            assert not thread.is_alive()
        stored = check_nothing_lost(collectors[0], devices.acknowledged)
        assert sorted(ids_of(devices.acknowledged)) == stored
