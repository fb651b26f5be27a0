"""A collector that wants to hang or fill a device: raw sockets that answer as no server should.

Each attack goes on for `ENOUGH` seconds, and then ends as an answer that a client without limits would take.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_CONTROL = "/attack/"

ENOUGH = 8.0
"""Seconds after which an attack ends by itself: longer than the deadline that a test gives its client."""

_OPEN = (
    "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: GET, POST\r\n"
    "Access-Control-Allow-Headers: Content-Type\r\n"
)
_OK = f"HTTP/1.1 200 OK\r\n{_OPEN}Content-Type: application/json\r\n".encode()
_TAKEN = b'{"acknowledged":1}'


class Line:
    """One connection: `send`, `drip` a byte now and then, or `pour` as fast as the other end reads."""

    def __init__(self, sock: socket.socket, over: threading.Event) -> None:
        self._sock, self._over, self._end = sock, over, time.monotonic() + ENOUGH

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self._end and not self._over.is_set()

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def drip(self, data: bytes) -> None:
        while self.goes_on:
            for byte in data:
                self.send(bytes([byte]))
                self._over.wait(0.02)

    def pour(self, data: bytes) -> None:
        block = data * max(1, (1 << 16) // len(data))
        while self.goes_on:
            self.send(block)

    def wait(self) -> None:
        while self.goes_on:
            self._over.wait(0.02)

    def taken(self, head: bytes = _OK) -> None:
        self.send(head + b"Content-Length: %d\r\n\r\n%s" % (len(_TAKEN), _TAKEN))


Attack = Callable[[Line], None]


def _silent(line: Line) -> None:
    line.wait()
    line.taken()


def _endless_continue(line: Line) -> None:
    line.pour(b"HTTP/1.1 100 Continue\r\n\r\n")
    line.taken()


def _slow_continue(line: Line) -> None:
    line.drip(b"HTTP/1.1 100 Continue\r\n\r\n")
    line.taken()


def _slow_head(line: Line) -> None:
    line.send(_OK + b"X-Slow: ")
    line.drip(b"a")
    line.taken(b"\r\n")


def _long_head(line: Line) -> None:
    line.send(_OK)
    line.pour(b"X-Filler: " + b"a" * 1000 + b"\r\n")
    line.taken(b"")


def _slow_body(line: Line) -> None:
    line.send(_OK + b"Content-Length: 1000000\r\n\r\n")
    line.drip(b" ")


def _endless_body(line: Line) -> None:
    line.send(_OK + b"Connection: close\r\n\r\n")
    line.pour(b" " * 1000)
    line.send(_TAKEN)


def _slow_extension(line: Line) -> None:
    line.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n12;")
    line.drip(b"a")
    line.send(b"\r\n" + _TAKEN + b"\r\n0\r\n\r\n")


def _long_extensions(line: Line) -> None:
    line.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n")
    line.pour(b"1;" + b"a" * 30_000 + b"\r\n \r\n")
    line.send(b"12\r\n" + _TAKEN + b"\r\n0\r\n\r\n")


def _endless_trailers(line: Line) -> None:
    line.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n12\r\n" + _TAKEN + b"\r\n0\r\n")
    line.pour(b"X-Filler: " + b"a" * 1000 + b"\r\n")
    line.send(b"\r\n")


def _deep(line: Line) -> None:
    line.send(_OK + b"Connection: close\r\n\r\n" + b"[" * 10_000_000)


def _many_values(line: Line) -> None:
    line.send(_OK + b"Connection: close\r\n\r\n[" + b"[]," * 5_000_000 + b"0]")


def _elsewhere(line: Line) -> None:
    line.send(f"HTTP/1.1 307 Away\r\n{_OPEN}Location: /elsewhere\r\nContent-Length: 0\r\n\r\n".encode())


def _cut_off(line: Line) -> None:
    line.send(_OK + b"Content-Length: 1000\r\n\r\n" + _TAKEN)


def _page(line: Line) -> None:
    line.send(f"HTTP/1.1 200 OK\r\n{_OPEN}Content-Type: text/html\r\n\r\n<script>alert(1)</script>".encode())


ATTACKS: dict[str, Attack] = {
    "silent": _silent,
    "endless 100 Continue": _endless_continue,
    "slow 100 Continue": _slow_continue,
    "slow head": _slow_head,
    "long head": _long_head,
    "slow body": _slow_body,
    "endless body": _endless_body,
    "slow chunk extension": _slow_extension,
    "long chunk extensions": _long_extensions,
    "endless trailers": _endless_trailers,
}
"""Answers that never end."""

WRONG: dict[str, Attack] = {
    "deep": _deep,
    "many values": _many_values,
    "elsewhere": _elsewhere,
    "cut off": _cut_off,
    "page": _page,
}
"""Answers that end, and are none."""


@dataclass
class Hostile:
    """How the next requests are answered. Those without an attack are passed on to a collector."""

    own_port: int
    port: int = 0
    attack: Attack | None = None
    methods: tuple[str, ...] = ("GET", "POST")
    requests: list[tuple[str, bytes]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.own_port}"

    def command(self, text: str) -> None:
        """Set the attack: `GET/slow-body`; `GET/none` ends it. A script gets `/attack/GET/slow-body`."""
        method, _, name = text.partition("/")
        self.methods = (method,)
        self.attack = {known.replace(" ", "-"): attack for known, attack in (ATTACKS | WRONG).items()}.get(name)

    @property
    def goes_on(self) -> bool:
        """Whether no attack has come to its own end yet."""
        return all(line.goes_on for line in self.lines)


@contextlib.contextmanager
def hostile(port: int = 0) -> Iterator[Hostile]:
    """Runs for the length of a block, in front of a collector if a port is given."""
    listener = socket.create_server(("127.0.0.1", 0))
    one, over = Hostile(listener.getsockname()[1], port), threading.Event()

    def serve(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            line = Line(sock, over)
            one.lines.append(line)
            if one.attack is not None and not one.methods:  # before a request, as in a handshake
                one.attack(line)
                return
            method, path, body = _read(sock)
            if path.startswith(_CONTROL):
                one.command(path.removeprefix(_CONTROL))
                line.taken()
                return
            if method == "OPTIONS":
                line.send(f"HTTP/1.1 204 No Content\r\n{_OPEN}Connection: close\r\n\r\n".encode())
                return
            one.requests.append((f"{method} {path}", body))
            if one.attack is not None and method in one.methods:
                one.attack(line)
            else:
                line.send(_passed_on(port, method, path, body))

    def accept() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                sock, _ = listener.accept()
                threading.Thread(target=serve, args=(sock,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # `accept` returns
        listener.close()
        thread.join()


def _read(sock: socket.socket) -> tuple[str, str, bytes]:
    """The method, the path and the body of a request."""
    data = b""
    while b"\r\n\r\n" not in data and (some := sock.recv(1 << 16)):
        data += some
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    lengths = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
    while len(body) < int(lengths[0] if lengths else 0) and (some := sock.recv(1 << 16)):
        body += some
    method, path, *_ = lines[0].split(" ")
    return method, path, body


def _passed_on(port: int, method: str, path: str, body: bytes) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    with contextlib.closing(connection):
        kind = {"Content-Type": "application/vnd.veil.reports"} if body else {}
        connection.request(method, path, body or None, kind)
        answer = connection.getresponse()
        said = answer.read()
    head = f"HTTP/1.1 {answer.status} Passed\r\n{_OPEN}Content-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(said)}\r\n\r\n".encode() + said
