"""Python programs that start at once: a process that has imported the heavy libraries forks a child for each of them.

For tests that start many processes: importing takes seconds, and what is tested takes a moment. `program` makes a
command for a shell, `start` a process of one's own that can be waited for and killed. A child has imported nothing of
veil itself, unless that is asked for: what it imports, it imports as a new interpreter would.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO, Any

LIBRARIES = ("numpy", "numba", "scipy.special", "pyarrow.parquet", "matplotlib.pyplot", "typer", "rich.table")
# of veil itself, for processes of one's own: commands, the collector and parties of a shuffle
VEIL = (
    "veil.cli.main",
    "veil.cli.input",
    "veil.cli.trials",
    "veil.collector.edge.protocol",
    "veil.collector.serve",
    "veil.collector.service",
    "veil.collector.store.sqlite",
    "veil.histogram",
    "veil.hitters",
    "veil.itemsets",
    "veil.marginals",
    "veil.numeric",
    "veil.sql",
    "veil.engines",
    "veil.shuffle.shuffler",
    "veil.shuffle.protocol",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "tests.support.warm_kernels",
)
ROOT = Path(__file__).parents[2]
COMMAND = "from veil.cli.main import run; run()"
"""What `veil` runs."""

# Hands its arguments, folder, environment and standard streams to the server, and ends as the child does.
PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] in {alone!r}:  # what runs until it is killed is killed with its own process
    os.execv({python!r}, [{python!r}, "-c", {code!r}, *sys.argv[1:]])
asked = dict(code={code!r}, arguments=sys.argv, folder=os.getcwd(), environment=dict(os.environ))
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"x"], [0, 1, 2])
    server.sendall(json.dumps(asked).encode())
    server.shutdown(socket.SHUT_WR)
    code = int((server.makefile().read().split() or [70])[-1])
    sys.exit(code if code >= 0 else 128 - code)
"""


def program(path: Path, address: Path, code: str, alone: Sequence[str] = ()) -> None:
    """Write a program that runs this code; with one of `alone` as its first argument, in a process of its own."""
    words = [[word] for word in alone]
    path.write_text(PROGRAM.format(python=sys.executable, code=code, address=str(address), alone=words))
    path.chmod(0o755)


@contextlib.contextmanager
def warm_start(address: Path, *more: str) -> Iterator[None]:
    """Serve programs for the length of a block; `more` is imported before any of them starts."""
    server = _served(address, *LIBRARIES, *more)
    try:
        yield
    finally:
        server.terminate()
        server.communicate()


def _served(address: Path, *imported: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.warm_start", str(address), *imported]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return server


# -- processes of one's own --------------------------------------------------------------------------------------------


class Started:
    """A running program, with what tests use of `subprocess.Popen`."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._said = server.makefile("rb")
        self.pid = int(self._said.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None as long as it runs."""
        return self.returncode if self._ended(0.0) else None

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has."""
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> bool:
        if self.returncode is None and select.select([self._server], [], [], timeout)[0]:
            self.returncode = int(self._said.readline())
            self._said.close()
            self._server.close()
        return self.returncode is not None


def start(
    code: str,
    *arguments: str,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
) -> Started:
    """Run code in a new process whose `sys.argv` are these arguments; veil is imported already."""
    asked = {
        "code": code,
        "arguments": list(arguments),
        "folder": str(folder),
        "environment": dict(os.environ if environment is None else environment),
    }
    server = socket.socket(socket.AF_UNIX)
    server.connect(str(_own()))
    with contextlib.ExitStack() as stack:
        nothing = stack.enter_context(Path(os.devnull).open("r+b"))
        streams = [nothing, *(_stream(given, usual, nothing) for given, usual in ((stdout, 1), (stderr, 2)))]
        socket.send_fds(server, [b"x"], [one if isinstance(one, int) else one.fileno() for one in streams])
    server.sendall(json.dumps(asked).encode())
    server.shutdown(socket.SHUT_WR)
    return Started(server)


def _stream(given: int | IO[Any] | None, usual: int, nothing: IO[Any]) -> int | IO[Any]:
    return usual if given is None else nothing if given == subprocess.DEVNULL else given


def run(code: str, *arguments: str, **options: Any) -> tuple[int, str, str]:
    """Run code in a new process to its end: how it ended, and what it wrote to its standard streams."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        ended = start(code, *arguments, stdout=out, stderr=err, **options).wait()
        out.seek(0)
        err.seek(0)
        return ended, out.read(), err.read()


@cache
def _own() -> Path:
    """The address of this process's own server; it ends when this process does, however that comes."""
    folder = tempfile.TemporaryDirectory(prefix="veil-warm-")
    address = Path(folder.name) / "own"
    server = _served(address, *LIBRARIES, *VEIL)

    def end() -> None:
        server.terminate()
        server.communicate()
        folder.cleanup()

    atexit.register(end)
    return address


# -- the server --------------------------------------------------------------------------------------------------------


def serve(address: str, *imported: str) -> None:
    """Fork a child for every program that asks, until standard input ends: whoever started this has ended."""
    for name in imported:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    print("ready", flush=True)
    while sys.stdin not in (ready := select.select([listening, sys.stdin], [], [])[0]):
        assert ready
        client, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(client)
        client.close()


def _answer(client: socket.socket) -> None:
    """One program in a child of its own; another child below it, so that its end can be told to the program."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    asked = json.loads(client.makefile().read())
    child = os.fork()
    if child == 0:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
        os._exit(_run(asked))
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):  # whoever asked has ended
        client.sendall(f"{child}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        client.sendall(f"{code}\n".encode())
    os._exit(0)


def _run(asked: dict[str, Any]) -> int:
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    if hasattr(time, "tzset"):
        time.tzset()
    sys.argv = asked["arguments"]
    sys.path[0] = ""
    code: Any = 0
    try:
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(asked["code"], vars(main))
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    return code or 0 if isinstance(code, int | None) else 1


if __name__ == "__main__":
    serve(*sys.argv[1:])
