"""Somebody between a device and a collector: passes requests on or does what a test tells, and remembers them."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["LOST", "Middleman", "between"]

LOST = "lost"
"""Passes a report on, and breaks the connection before the answer arrives."""

Told = int | str | tuple[int, dict[str, str]]


@dataclass
class Middleman:
    """What to do with the next requests, in turn: a status, one with headers, or LOST; then everything is passed on."""

    port: int
    scheme: str = "http"
    posts: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    on_post: list[Told] = field(default_factory=list)
    on_get: list[Told] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Names in addresses, and what the collector calls it."""
    own_port: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.own_port}"

    def passed_on(self, method: str, path: str, body: bytes | None, kind: str) -> tuple[int, bytes]:
        for name, real in self.names.items():
            path = path.replace(name, real)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextlib.contextmanager
def between(port: int, context: ssl.SSLContext | None = None) -> Iterator[Middleman]:
    """Runs for the length of a block, in front of what listens on a port."""
    middleman = Middleman(port, "http" if context is None else "https")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.handle_with(middleman.on_get, None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            middleman.posts.append(body)
            self.handle_with(middleman.on_post, body)

        def handle_with(self, told: list[Told], body: bytes | None) -> None:
            middleman.headers.append(dict(self.headers.items()))
            do = told.pop(0) if told else None
            if do is None or do == LOST:
                kind = self.headers.get("Content-Type", "")
                try:
                    found = middleman.passed_on(self.command, self.path, body, kind)
                except OSError:
                    found = 502, b""
                if do is None:
                    self.say(found[0], {}, found[1])
                else:
                    self.close_connection = True  # not a byte of the answer
            else:
                status, headers = do if isinstance(do, tuple) else (int(do), {})
                self.say(status, headers, b"{}")

        def say(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, text in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass  # a device that hangs up, or does not trust the certificate

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    middleman.own_port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield middleman
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
