"""Firefox, driven by the protocol that it speaks itself (Marionette): JSON over a socket, no driver in between."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.patience import LIMIT, until

# No updates, no first-run pages, no question about the last crash, no request to anybody but the page's own.
_PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.aboutwelcome.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.sessionstore.resume_from_crash": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "marionette.port": 0,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.startup.max_resumed_crashes": -1,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


def firefox_path() -> str | None:
    """Where Firefox is, if it is there."""
    return os.environ.get("VEIL_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """One Firefox with a profile that outlives it. Use it as a context; it may be killed in between."""

    def __init__(self, binary: str, profile: Path) -> None:
        self.binary, self.profile = binary, profile
        self._ids = itertools.count(1)

    def __enter__(self) -> Firefox:
        self.profile.mkdir(exist_ok=True)
        lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in _PREFERENCES.items()]
        (self.profile / "user.js").write_text("\n".join(lines) + "\n")
        (self.profile / "MarionetteActivePort").unlink(missing_ok=True)
        command = [self.binary, "--headless", "--marionette", "--no-remote", "--profile", str(self.profile)]
        environment = {**os.environ, "HOME": str(self.profile), "MOZ_CRASHREPORTER_DISABLE": "1"}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._socket = socket.create_connection(("127.0.0.1", until(self._port, lambda: "Firefox does not start")))
        self._socket.settimeout(LIMIT)
        self._buffer = self._socket.makefile("rb")
        self._receive()  # it says who it is
        self.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "normal"}})
        return self

    def _port(self) -> int:
        assert self.process.poll() is None, "Firefox has ended"
        file = self.profile / "MarionetteActivePort"
        return int(file.read_text() or 0) if file.exists() else 0

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._buffer.close()
        self._socket.close()

    def kill(self) -> None:
        """As a power cut would: with all the processes that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def quit(self) -> None:
        """As a person would."""
        self.ask("Marionette:Quit", flags=["eForceQuit"])
        self.process.wait(LIMIT)

    def ask(self, command: str, **parameters: Any) -> Any:
        """One command of WebDriver, and what it returns."""
        written = json.dumps([0, next(self._ids), command, parameters]).encode()
        self._socket.sendall(f"{len(written)}:".encode() + written)
        _, _, error, found = self._receive()
        assert error is None, error
        return found

    def _receive(self) -> Any:
        size = b""
        while (byte := self._buffer.read(1)) != b":":
            assert byte, "Firefox has hung up"
            size += byte
        return json.loads(self._buffer.read(int(size)))

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns in the page."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=list(arguments))["value"]

    def tab(self) -> str:
        """A new tab, by its handle."""
        return str(self.ask("WebDriver:NewWindow", type="tab")["handle"])

    def switch(self, handle: str) -> None:
        """Go to a tab."""
        self.ask("WebDriver:SwitchToWindow", handle=handle)
