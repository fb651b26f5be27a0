"""Python programs that start at once: a process that has imported the heavy libraries forks a child for each of them.

For tests that run many small commands through a real shell. A child has imported nothing of veil itself, unless
that is asked for: what it imports, it imports as a new interpreter would.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["program", "warm_start"]

LIBRARIES = ("numpy", "numba", "scipy.special", "pyarrow.parquet", "matplotlib.pyplot", "typer", "rich.table")

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
    sys.exit(int(server.makefile().read() or 70))
"""


def program(path: Path, address: Path, code: str, alone: Sequence[str] = ()) -> None:
    """Write a program that runs this code; with one of `alone` as its first argument, in a process of its own."""
    words = [[word] for word in alone]
    path.write_text(PROGRAM.format(python=sys.executable, code=code, address=str(address), alone=words))
    path.chmod(0o755)


@contextlib.contextmanager
def warm_start(address: Path, *more: str) -> Iterator[None]:
    """Serve programs for the length of a block; `more` is imported before any of them starts."""
    command = [sys.executable, "-m", "tests.support.warm_start", str(address), *LIBRARIES, *more]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    try:
        yield
    finally:
        server.stdout.close()
        server.terminate()
        server.wait()


def serve(address: str, *imported: str) -> None:
    """Fork a child for every program that asks; never returns."""
    for name in imported:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    print("ready", flush=True)
    while True:
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
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    client.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def _run(asked: dict[str, Any]) -> int:
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
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
