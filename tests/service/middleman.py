"""Somebody between a device and a collector: passes requests on or does what a test tells, and remembers them."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOST = "lost"
"""Passes a report on, and breaks the connection before the answer arrives."""

Told = int | str | tuple[int, dict[str, str]] | Callable[[], None]
Said = tuple[int, dict[str, str], bytes]
_PASSED = ("origin", "content-type", "access-control-request-method", "access-control-request-headers")
_OWN = ("connection", "content-length", "date", "server", "transfer-encoding")


@dataclass
class Middleman:
    """What to do with the next requests, in turn: a status, one with headers, LOST, or what to do before it breaks off.

    Then everything is passed on, but for reports while it is `down`.
    """

    port: int
    scheme: str = "http"
    posts: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    on_post: list[Told] = field(default_factory=list)
    on_get: list[Told] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Names in addresses, and what the collector calls it."""
    own_port: int = 0
    down: bool = False
    alter: Callable[[bytes], bytes] = lambda body: body
    """What becomes of the bodies that the collector answers with."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.own_port}"

    def passed_on(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Said:
        for name, real in self.names.items():
            path = path.replace(name, real)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            said = {name: text for name, text in answer.getheaders() if name.lower() not in _OWN}
            return answer.status, said, self.alter(answer.read())
        finally:
            connection.close()


@contextlib.contextmanager
def between(port: int, context: ssl.SSLContext | None = None) -> Iterator[Middleman]:
    """Runs for the length of a block, in front of what listens on a port."""
    middleman = Middleman(port, "http" if context is None else "https")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.handle_with(middleman.on_get, None)

        def do_OPTIONS(self) -> None:
            self.handle_with([], None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            middleman.posts.append(body)
            self.handle_with(middleman.on_post, body)

        def handle_with(self, told: list[Told], body: bytes | None) -> None:
            middleman.headers.append(dict(self.headers.items()))
            do = told.pop(0) if told else None
            if callable(do) or (middleman.down and body is not None):
                if callable(do):
                    do()
                self.close_connection = True  # not a byte of an answer
            elif do is None or do == LOST:
                headers = {name: text for name, text in self.headers.items() if name.lower() in _PASSED}
                try:
                    found = middleman.passed_on(self.command, self.path, body, headers)
                except OSError:
                    found = 502, {}, b""
                if do is None:
                    self.say(*found)
                else:
                    self.close_connection = True
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


def shortened(body: bytes) -> bytes:
    """A published survey with another precision, under the old signature."""
    envelope = json.loads(body)
    document = base64.urlsafe_b64decode(envelope["document"] + "==")
    altered = re.sub(rb'"precision":[0-9]+', b'"precision":1', document)
    assert altered != document
    return json.dumps({**envelope, "document": base64.urlsafe_b64encode(altered).rstrip(b"=").decode()}).encode()
