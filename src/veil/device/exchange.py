"""One HTTP exchange: connect, send, and read the answer, all before one deadline and within limits of bytes.

`http.client` gives each step a timeout of its own, so a server that sends a byte now and then never ends: a head of one
byte a second, `100 Continue` again and again, chunks with long extensions. Here each step gets what is left of the
whole. Only the system's lookup of a name has its own limits.
"""

from __future__ import annotations

import base64
import io
import socket
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.request import getproxies, proxy_bypass

__all__ = ["HEAD_BYTES", "exchange"]

HEAD_BYTES = 1 << 16
"""Of an answer's head, with every 1xx before it."""

_SILENCE = 20.0  # seconds without a byte, at most
_FRAMING = 2  # bytes received for one byte of the body, at most: each chunk has a length and may have extensions


def exchange(
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    *,
    context: ssl.SSLContext | None,
    seconds: float,
    body_bytes: int,
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers (names in lower case) and the body of the answer to a POST, or a GET without a body.

    `context` is for https. Redirects are not followed. Raises OSError or `http.client.HTTPException`.
    """
    where = urllib.parse.urlsplit(url)
    limits = _Limits(seconds)
    with closing(_connected(where, context, limits)) as sock:
        connection = HTTPConnection(where.hostname or "")
        connection.sock = _Stream(sock, limits)
        sent = {"Host": where.netloc, "Connection": "close", **headers}
        connection.request("GET" if body is None else "POST", where.path, body, sent)
        with connection.getresponse() as response:
            limits.bytes = HEAD_BYTES + _FRAMING * body_bytes
            fields = {name.lower(): text for name, text in response.headers.items()}
            return int(response.status), fields, _read_body(response, body_bytes)


class _Limits:
    """What is left of an exchange: the time, and the bytes that may be received."""

    def __init__(self, seconds: float) -> None:
        self.bytes = HEAD_BYTES
        self._end = time.monotonic() + seconds

    def timeout(self) -> float:
        """For the next step."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the exchange took too long")
        return min(left, _SILENCE)

    def receive(self, size: int) -> None:
        """Count received bytes."""
        self.bytes -= size
        if self.bytes < 0:
            raise OSError("the answer is too long")


class _Stream:
    """A socket within limits: as much of one as `http.client` uses. Whoever made the socket closes it."""

    def __init__(self, sock: socket.socket, limits: _Limits) -> None:
        self._sock, self._limits = sock, limits

    def sendall(self, data: Any) -> None:
        left = memoryview(data).cast("B")
        while left:
            self._sock.settimeout(self._limits.timeout())
            left = left[self._sock.send(left) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._sock, self._limits))

    def close(self) -> None:
        """Leave the socket open for the body."""


class _Incoming(io.RawIOBase):
    """The bytes that a socket receives, within limits."""

    def __init__(self, sock: socket.socket, limits: _Limits) -> None:
        self._sock, self._limits = sock, limits

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._limits.timeout())
        size = self._sock.recv_into(buffer)
        self._limits.receive(size)
        return size


def _connected(where: urllib.parse.SplitResult, context: ssl.SSLContext | None, limits: _Limits) -> socket.socket:
    host = where.hostname or ""
    if context is None:
        return _dialed(host, where.port or 80, limits)
    proxy = None if proxy_bypass(host) else getproxies().get("https")
    sock = _dialed(host, where.port or 443, limits) if proxy is None else _tunneled(host, where.port, proxy, limits)
    try:
        sock.settimeout(limits.timeout())  # of the whole handshake
        return context.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _dialed(host: str, port: int, limits: _Limits) -> socket.socket:
    """A connection to the first address of a host that takes one."""
    problem = OSError("this host has no address")
    for *kind, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(*kind)
        try:
            sock.settimeout(limits.timeout())
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as refused:
            sock.close()
            problem = refused
        else:
            return sock
    raise problem


def _tunneled(host: str, port: int | None, proxy: str, limits: _Limits) -> socket.socket:
    """A connection to a host through a proxy (`https_proxy`), as `http://user:password@proxy:3128` or `proxy:3128`."""
    try:
        parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        its_port = parts.port or 80
    except ValueError:
        raise OSError("the address of the proxy cannot be read") from None
    sock = _dialed(parts.hostname or "", its_port, limits)
    try:
        there = f"[{host}]" if ":" in host else host
        head = f"CONNECT {there}:{port or 443} HTTP/1.1\r\nHost: {there}:{port or 443}\r\n"
        if parts.username is not None:
            known = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            head += f"Proxy-Authorization: Basic {base64.b64encode(known.encode()).decode()}\r\n"
        stream = _Stream(sock, limits)
        stream.sendall(f"{head}\r\n".encode())
        answer = HTTPResponse(stream, method="CONNECT")  # type: ignore[arg-type]  # it needs `makefile` alone
        answer.begin()
        if answer.status != 200:
            raise OSError(f"the proxy refuses: {answer.status}")
    except BaseException:
        sock.close()
        raise
    return sock


def _read_body(response: HTTPResponse, most: int) -> bytes:
    parts, size = [], 0
    while part := response.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > most:
            raise OSError("the answer is too long")
    return b"".join(parts)
