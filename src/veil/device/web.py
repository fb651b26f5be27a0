"""Requests to a collector, by the standard library alone: over verified TLS, to the given address and no other.

A request carries nothing but the report: no cookies, no identity, no program version. It follows no redirect. Plain
http is refused except on this machine, where it passes no proxy.

One exchange connects, sends and reads the answer before one deadline and within limits of bytes. `http.client` gives
each step a timeout of its own, so a server that sends a byte now and then never ends: a head of one byte a second, `100
Continue` again and again, chunks with long extensions. Here each step gets what is left of the whole. Only the system's
lookup of a name has its own limits.
"""

from __future__ import annotations

import base64
import http.client
import io
import ipaddress
import socket
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

from veil.errors import CollectorError, ParameterError
from veil.tools.json_documents import DOCUMENT, load_json

if TYPE_CHECKING:
    from ssl import SSLContext

HEAD_BYTES = 1 << 16
"""Of an answer's head, with every 1xx before it."""
_SILENCE = 20.0  # seconds without a byte, at most
_FRAMING = 2  # bytes received for one byte of the body, at most: each chunk has a length and may have extensions
_SECONDS = 60.0  # for a whole exchange, from the connection to the last byte of the answer
_MOST_SAID = 1 << 16  # bytes of an answer to a report
_DAY = 86_400.0
_PORTS = {"http": 80, "https": 443}


class UntrustedError(CollectorError):
    """Somebody answers at the collector's address who cannot show that it is the collector."""


@dataclass(frozen=True)
class HttpResponse:
    """What the collector says to one request; names of headers in lower case. Nobody has checked its body yet."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status < 200 or 300 <= self.status < 400 or self.status in (408, 429) or self.status >= 500

    @property
    def document(self) -> dict[str, Any]:
        """The JSON object in the body; an empty one where there is none."""
        try:
            found = load_json(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def retry_after(self, now: float) -> float:
        """Until when the collector wants to be left alone, in seconds since 1970; 0 where it does not say."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            until = now + min(float(text[:9]), _DAY)
        else:
            try:
                until = parsedate_to_datetime(text).timestamp()
            except (ValueError, OverflowError):
                return 0.0
        return min(until, now + _DAY)


class Web:
    """One collector, by its address: `https://collector.example`, or `http://127.0.0.1:8321` on this machine."""

    def __init__(self, address: str) -> None:
        self.address = read_address(address)

    def get(self, path: str) -> HttpResponse:
        """Ask for what lies at a path below the address."""
        return self._ask(path, None, {"Accept": "application/json"}, DOCUMENT.bytes)

    def post(self, path: str, body: bytes, kind: str) -> HttpResponse:
        """Send bytes of a content type. The answer is short: an acknowledgement, or a reason."""
        return self._ask(path, body, {"Content-Type": kind}, _MOST_SAID)

    def _ask(self, path: str, body: bytes | None, headers: dict[str, str], most: int) -> HttpResponse:
        from http.client import HTTPException
        from ssl import SSLCertVerificationError

        own = {"User-Agent": "veil", **headers}
        try:
            return HttpResponse(
                *exchange(self.address + path, body, own, context=self._context, seconds=_SECONDS, body_bytes=most)
            )
        except SSLCertVerificationError:
            raise UntrustedError("the collector's certificate cannot be verified, so nothing is sent") from None
        except (OSError, HTTPException):
            raise CollectorError("the collector cannot be reached") from None

    @cached_property
    def _context(self) -> SSLContext | None:
        if self.address.startswith("http:"):
            return None
        import ssl

        return ssl.create_default_context()


def read_address(text: Any) -> str:
    """A collector's address in one spelling, so that a report waits for the same one however it is written.

    Refuses what would send a report unprotected.

    >>> read_address("https://Collector.example:443/"), read_address("http://127.0.0.1:8321")
    ('https://collector.example', 'http://127.0.0.1:8321')
    """
    expected = ParameterError("expected the collector's address, as https://collector.example")
    if not isinstance(text, str) or not text.isprintable() or " " in text:
        raise expected
    try:
        parts = urllib.parse.urlsplit(text)
        host, port = parts.hostname, parts.port
        spelled = "" if host is None else f"[{host}]" if ":" in host else host.encode("idna").decode()
    except ValueError:  # also of a name that the network could not look up
        raise expected from None
    if parts.scheme not in _PORTS or not host or parts.username is not None or not parts.path.isascii():
        raise expected
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise expected
    if parts.scheme == "http" and not _is_this_machine(host):
        raise ParameterError("expected an https address: over plain http anybody on the way sees and alters reports")
    own = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{spelled}{own}{parts.path.rstrip('/')}"


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
        connection = http.client.HTTPConnection(where.hostname or "")
        connection.sock = _LimitedSocket(sock, limits)
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


class _LimitedSocket:
    """A socket within limits: as much of one as `http.client` uses. Whoever made the socket closes it."""

    def __init__(self, sock: socket.socket, limits: _Limits) -> None:
        self._sock, self._limits = sock, limits

    def sendall(self, data: Any) -> None:
        left = memoryview(data).cast("B")
        while left:
            self._sock.settimeout(self._limits.timeout())
            left = left[self._sock.send(left) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_LimitedReader(self._sock, self._limits))

    def close(self) -> None:
        """Leave the socket open for the body."""


class _LimitedReader(io.RawIOBase):
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
        stream = _LimitedSocket(sock, limits)
        stream.sendall(f"{head}\r\n".encode())
        answer = http.client.HTTPResponse(stream, method="CONNECT")  # type: ignore[arg-type]
        answer.begin()
        if answer.status != 200:
            raise OSError(f"the proxy refuses: {answer.status}")
    except BaseException:
        sock.close()
        raise
    return sock


def _read_body(response: http.client.HTTPResponse, most: int) -> bytes:
    parts, size = [], 0
    while part := response.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > most:
            raise OSError("the answer is too long")
    return b"".join(parts)
