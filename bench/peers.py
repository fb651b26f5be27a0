"""pure-ldp in a virtual environment of its own, answering over a pipe so that its repeats interleave with ours."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from types import TracebackType

from bench.timing import Contestant, NotRunError

__all__ = ["PureLdp"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".bench-peers"
# pure-ldp does not declare the last three; xxhash 4 refuses the str that it hashes.
NEEDS = ("pure-ldp==1.2.0", "scikit-learn", "statsmodels", "xxhash==3.8.2")


class PureLdp:
    """A long-lived process with pure-ldp loaded; a context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._problem = "the peer process was not started"

    def __enter__(self) -> PureLdp:
        try:
            python = _installed()
        except (subprocess.SubprocessError, OSError) as problem:
            self._problem = f"pure-ldp could not be installed in {FOLDER.name}/ ({_reason(problem)})"
            return self
        command = [str(python), "-W", "ignore", str(Path(__file__).with_name("pure_ldp_peer.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate()  # closes its input, which ends it

    def contestant(self, job: str, people: int, domain: int, epsilon: float) -> Contestant:
        """A job of bench/pure_ldp_peer.py for so many people."""
        request = json.dumps({"job": job, "people": people, "domain": domain, "epsilon": epsilon})
        return Contestant(lambda: self._ask(request), people)

    def _ask(self, request: str) -> float:
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise NotRunError(self._problem)
        try:
            print(request, file=self._process.stdin, flush=True)
            return float(json.loads(self._process.stdout.readline())["seconds"])
        except (OSError, ValueError, KeyError):
            raise NotRunError("the process with pure-ldp ended early") from None


def _installed() -> Path:
    """The python of the peers' environment, made on first use."""
    python, ready = FOLDER / "bin" / "python", FOLDER / "ready.txt"
    wanted = "\n".join(NEEDS)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"installing {', '.join(NEEDS)} in {FOLDER}", file=sys.stderr)
        venv.create(FOLDER, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDS]
        subprocess.run(install, check=True, capture_output=True, text=True, timeout=900)
        ready.write_text(wanted)
    return python


def _reason(problem: Exception) -> str:
    lines = (getattr(problem, "stderr", None) or str(problem)).strip().splitlines()
    return lines[-1] if lines else type(problem).__name__
