"""`veil serve`: its options, refusals at the start, and a log that nobody reads any more, which must not end it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.patience import LIMIT
from tests.service.harness import Collector
from tests.support.commands import CliRunner

from veil import GRR, Survey
from veil.cli.main import app
from veil.collector.serve import _bound
from veil.collector.settings import CollectorSettings
from veil.errors import InputError

SURVEY = Survey(GRR(1.0, 4))


def use(client: httpx.Client) -> None:
    client.post("/v1/surveys", json={"survey": SURVEY.to_json()}).raise_for_status()
    client.post(f"/v1/surveys/{SURVEY.task}/open").raise_for_status()  # writes a line to the log
    client.get("/healthz").raise_for_status()


def test_a_place_to_listen_that_is_none_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wrong = {
            ("nosuchhost.invalid", 0): "no address belongs to this host",
            ("192.0.2.1", 0): "not one of this machine",
            ("127.0.0.1", taken.getsockname()[1]): "is it in use",
        }
        for (host, port), why in wrong.items():
            with pytest.raises(InputError, match=why):
                _bound(CollectorSettings(host=host, port=port))


@pytest.mark.parametrize("rival", [False, True], ids=["veil serve", "a rival that dies of SIGPIPE"])
def test_a_reader_of_the_log_that_goes_away(tmp_path: Path, rival: bool) -> None:
    script = "import signal; signal.SIG_IGN = signal.SIG_DFL; " if rival else ""
    script += "from veil.cli.main import run; run()"
    command = [sys.executable, "-c", script, "serve", "--port", "0", "--folder", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            port = json.loads(process.stderr.readline())["port"]
            while b'"started"' not in process.stderr.readline():
                pass
            process.stderr.close()
            token = Collector(tmp_path).token("surveys:write")
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=token) as client:
                if rival:
                    with pytest.raises(httpx.TransportError):
                        use(client)
                    assert process.wait(LIMIT) == -signal.SIGPIPE
                else:
                    use(client)
        finally:
            process.kill()


def test_serve_has_no_option_for_several_processes(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["serve", "--folder", str(tmp_path / "data"), "--workers", "2"])
    assert done.exit_code == 2
    assert "No such option: --workers" in done.stderr
    named = CliRunner().invoke(app, ["serve", "--folder", str(tmp_path / "data")], env={"VEIL_WORKERS": "2"})
    assert named.exit_code == 3
    assert "VEIL_WORKERS" in named.stderr
    assert not (tmp_path / "data").exists()


def test_serve_refuses_a_file_that_is_no_key(tmp_path: Path) -> None:
    key = tmp_path / "data" / "signing.key"
    key.parent.mkdir()
    key.write_text("no key")
    key.chmod(0o600)
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(key.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 3
    assert "is not a key in PEM" in done.stderr
