"""Requests to a collector, by the standard library alone: over TLS that is verified, to the address asked and no other.

A request carries nothing but the report: no cookies, no identity, no name of a program's version, and it follows no
redirect. Plain http is refused but for this machine itself, where it passes no proxy. Not here: when to try again.
"""

from __future__ import annotations

import ipaddress
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from veil.errors import CollectorError, ParameterError
from veil.tools.json_documents import DOCUMENT, load_json

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Answer", "UntrustedError", "Web", "read_address"]

_SECONDS = 60.0  # for a whole exchange, from the connection to the last byte of the answer
_MOST_SAID = 1 << 16  # bytes of an answer to a report
_DAY = 86_400.0
_PORTS = {"http": 80, "https": 443}


class UntrustedError(CollectorError):
    """Somebody answers at the collector's address who cannot show that it is the collector."""


@dataclass(frozen=True)
class Answer:
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

    def get(self, path: str) -> Answer:
        """Ask for what lies at a path below the address."""
        return self._ask(path, None, {"Accept": "application/json"}, DOCUMENT.bytes)

    def post(self, path: str, body: bytes, kind: str) -> Answer:
        """Send bytes of a content type. The answer is short: an acknowledgement, or a reason."""
        return self._ask(path, body, {"Content-Type": kind}, _MOST_SAID)

    def _ask(self, path: str, body: bytes | None, headers: dict[str, str], most: int) -> Answer:
        from http.client import HTTPException
        from ssl import SSLCertVerificationError

        from veil.device.exchange import exchange

        own = {"User-Agent": "veil", **headers}
        try:
            return Answer(
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
