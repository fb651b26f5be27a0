"""Peers in a virtual environment of their own, answering over a pipe so that their repeats interleave with ours."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.timing import Contestant, NotRunError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".bench-peers"
# pure-ldp does not declare scikit-learn, statsmodels and xxhash; xxhash 4 refuses the str that both peers hash.
NEEDS = ("pure-ldp==1.2.0", "multi-freq-ldpy==0.2.5", "scikit-learn", "statsmodels", "scipy", "xxhash==3.8.2")


@dataclass(frozen=True)
class Library:
    """A peer: its name and version, the script that runs it, whether its estimators clip and renormalise inside."""

    title: str
    script: str
    clips: bool


PURE_LDP = Library("pure-ldp 1.2.0", "pure_ldp_peer.py", clips=False)
MULTI_FREQ = Library("multi-freq-ldpy 0.2.5", "multi_freq_peer.py", clips=True)


class LacksError(NotRunError):
    """The peer has no such oracle."""


@dataclass(frozen=True)
class Whole:
    """One run for everybody: the peak, and the frequencies (if any) from so many of the reports."""

    peak_mb: float
    counted: int
    frequencies: list[float] | None


class Peer:
    """A long-lived process with a library loaded; a context manager."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._process: subprocess.Popen[str] | None = None
        self._problem = "the peer process was not started"

    def __enter__(self) -> Peer:
        try:
            python = _installed()
        except (subprocess.SubprocessError, OSError) as problem:
            self._problem = f"the peers could not be installed in {FOLDER.name}/ ({_reason(problem)})"
            return self
        command = [str(python), "-W", "ignore", str(Path(__file__).with_name(self.library.script))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate()  # closes its input, which ends it

    @property
    def running(self) -> bool:
        """Whether there is a process to ask."""
        return self._process is not None

    def contestant(self, job: str, oracle: str, people: int, domain: int, epsilon: float) -> Contestant:
        """The job ("randomize" or "collect") of bench/peer_loop.py, for so many people."""
        request = {"job": job, "oracle": oracle, "people": people, "domain": domain, "epsilon": epsilon}
        return Contestant(lambda: float(self._ask(request)["seconds"]), people)

    def whole(self, oracle: str, people: int, domain: int, epsilon: float) -> Whole:
        """Randomize and collect once, all reports held in memory: for a process that has done nothing else."""
        request = {"job": "whole", "oracle": oracle, "people": people, "domain": domain, "epsilon": epsilon}
        return Whole(**self._ask(request))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise NotRunError(self._problem)
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise NotRunError(f"the process with {self.library.title} ended early") from None
        if "lacks" in answer:
            raise LacksError(f"{self.library.title} has no {answer['lacks']}")
        return answer


def _installed() -> Path:
    """The python of the peers' environment, made on first use."""
    python, ready = FOLDER / "bin" / "python", FOLDER / "ready.txt"
    wanted = "\n".join(NEEDS)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"installing {', '.join(NEEDS)} in {FOLDER}", file=sys.stderr)
        if not python.exists():
            venv.create(FOLDER, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDS]
        subprocess.run(install, check=True, capture_output=True, text=True, timeout=900)
        ready.write_text(wanted)
    return python


def _reason(problem: Exception) -> str:
    lines = (getattr(problem, "stderr", None) or str(problem)).strip().splitlines()
    return lines[-1] if lines else type(problem).__name__
