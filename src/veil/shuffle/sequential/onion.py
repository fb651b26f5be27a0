"""Onions: one report wrapped in a layer of encryption for each shuffler, and an innermost one for the server.

Each layer is HPKE (RFC 9180, base mode) with X25519, HKDF-SHA256 and ChaCha20-Poly1305: 32 bytes of an encapsulated
key and 16 of a tag, nothing else. A report is one element of the integers mod 2^64, 8 bytes, little-endian. A message
with `layers` layers left is 8 + 48 * layers bytes long, whatever it contains.

A layer's `info` names the protocol, the route (the collection and all public keys of the shufflers and the server) and
the layer's number: a message of another collection, of another chain of shufflers, or out of turn does not open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError, WireError
from veil.tools.filesystem import write_secret
from veil.tools.numbers import is_int

REPORT_BYTES = 8
KEY_BYTES = 32
LAYER_BYTES = 48
"""What a layer adds: an encapsulated key and a tag."""

_PROTOCOL = b"veil sequential shuffle 1"
_MOST_SHUFFLERS = 64
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
_MOST_ROWS = 1 << 13  # of a part: whole batches are not held several times
_PARTS = 4  # parts of a batch per worker: the slowest does not keep the others waiting for long

U64 = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Positions = NDArray[np.intp]


def message_bytes(layers: int) -> int:
    """The length of a message that has so many layers to open.

    >>> message_bytes(4), message_bytes(8)  # three and seven shufflers, and the server
    (200, 392)
    """
    return REPORT_BYTES + LAYER_BYTES * layers


class Key:
    """One party's private key: it opens this party's layer.

    >>> key = Key.new()
    >>> len(key.public), Key(key.private).public == key.public, repr(key) == f"Key of {key.public.hex()}"
    (32, True, True)
    """

    def __init__(self, private: bytes) -> None:
        if not isinstance(private, bytes) or len(private) != KEY_BYTES:
            raise ParameterError(f"a private key is {KEY_BYTES} bytes")
        self.private = private
        """What has to stay where it was made."""
        self._key = X25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()
        """What everybody may know."""

    @classmethod
    def new(cls) -> Key:
        """A fresh key from the operating system."""
        return cls(X25519PrivateKey.generate().private_bytes_raw())

    def to_bytes(self) -> bytes:
        """What stands in the key's file: hexadecimal digits, and the end of a line."""
        return self.private.hex().encode() + b"\n"

    def write(self, path: Path) -> None:
        """Write the private key to a new file that its owner alone may read."""
        try:
            write_secret(path, self.to_bytes(), replace=False)
        except FileExistsError:
            raise InputError(f"{path} is there already: a key is never written over") from None

    @classmethod
    def read(cls, path: Path) -> Key:
        """The key in a file that `write` made."""
        try:
            return cls(bytes.fromhex(path.read_text()))
        except (OSError, ValueError):
            raise InputError(
                f"{path} does not hold a private key of {KEY_BYTES} bytes, as hexadecimal digits"
            ) from None

    def open(self, message: bytes, info: bytes) -> bytes | None:
        """What is in a message, or None if it was not made for this key and this `info`."""
        try:
            return _SUITE.decrypt(message, self._key, info=info)
        except InvalidTag:
            return None

    def __repr__(self) -> str:
        return f"Key of {self.public.hex()}"


@dataclass(frozen=True)
class Route:
    """The way of one collection's messages: the public keys of its shufflers, in their order, and of the server.

    Layers are counted from the outside: layer 0 is the first shuffler's, layer `len(shufflers)` the server's.

    >>> keys = [Key.new().public for _ in range(4)]
    >>> route = Route(b"march", tuple(keys[:3]), keys[3])
    >>> route.layers, route.size(0), route.size(3)
    (4, 200, 56)
    """

    collection: bytes
    shufflers: tuple[bytes, ...]
    server: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.collection, bytes) or not 1 <= len(self.collection) <= 255:
            raise ParameterError("a collection is named by 1 to 255 bytes")
        object.__setattr__(self, "shufflers", tuple(self.shufflers))
        if not 1 <= len(self.shufflers) <= _MOST_SHUFFLERS:
            raise ParameterError(f"a route has between 1 and {_MOST_SHUFFLERS} shufflers")
        if len(set(self.keys)) < len(self.keys):
            raise ParameterError("every party on a route has a key of its own")
        for key in self.keys:
            _check_public(key)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The public key of every layer, from the outside."""
        return (*self.shufflers, self.server)

    @property
    def layers(self) -> int:
        """How many layers a person's message has."""
        return len(self.shufflers) + 1

    def size(self, layer: int) -> int:
        """The length of messages as the one who opens this layer gets them; `size(layers)` is that of a report."""
        return message_bytes(self.layers - self._check(layer, self.layers))

    def info(self, layer: int) -> bytes:
        """What a layer is bound to."""
        return _PROTOCOL + self._digest + bytes([self._check(layer, self.layers - 1)])

    @cached_property
    def _digest(self) -> bytes:
        return hashlib.sha256(bytes([len(self.collection)]) + self.collection + b"".join(self.keys)).digest()

    @staticmethod
    def _check(layer: int, last: int) -> int:
        if not is_int(layer) or not 0 <= layer <= last:
            raise ParameterError(f"layers of this route are counted from 0 to {last}")
        return int(layer)


def wrap(route: Route, report: int, first: int = 0) -> bytes:
    """A report in its layers, from `first` on: all of them on a device, those that are left for a shuffler's fake.

    >>> mixer, server = Key.new(), Key.new()
    >>> route = Route(b"march", (mixer.public,), server.public)
    >>> message = wrap(route, 2**63 + 5)
    >>> inner = peel(route, 0, mixer, message)
    >>> len(message), len(inner), int.from_bytes(peel(route, 1, server, inner), "little") == 2**63 + 5
    (104, 56, True)
    """
    if not is_int(report) or not 0 <= report < 1 << 64:
        raise ParameterError("a report is an integer between 0 and 2^64 - 1")
    return _seal(int(report).to_bytes(REPORT_BYTES, "little"), _seals(route, first))


def wrap_many(route: Route, reports: U64, first: int = 0, workers: int = 1) -> Bytes:
    """The messages of many reports, one per row: what `wrap` does, in so many processes.

    >>> mixer, server = Key.new(), Key.new()
    >>> wrap_many(Route(b"march", (mixer.public,), server.public), np.arange(3, dtype=np.uint64)).shape
    (3, 104)
    """
    if reports.ndim != 1 or reports.dtype != np.uint64:
        raise ParameterError("reports are an array of unsigned integers of 64 bits")
    _seals(route, first)
    work = partial(_wrap_part, route, first)
    sealed = _in_parts(work, reports.astype("<u8").view(np.uint8).reshape(-1, REPORT_BYTES), workers)
    return np.frombuffer(sealed, dtype=np.uint8).reshape(len(reports), route.size(first))


def peel(route: Route, layer: int, key: Key, message: bytes) -> bytes:
    """The message without its outermost layer; a WireError where it does not open."""
    if len(message) != route.size(layer):
        raise WireError(f"a message for layer {layer} is {route.size(layer)} bytes, not {len(message)}")
    opened = key.open(message, route.info(layer))
    if opened is None:
        raise WireError(f"a message for layer {layer} does not open: it was changed, or made for another key or route")
    return opened


def peel_many(route: Route, layer: int, key: Key, messages: Bytes, workers: int = 1) -> tuple[Bytes, Positions]:
    """Many messages without their outermost layer, row by row, and the positions of those that do not open.

    What does not open leaves a row of zeros, so that positions stay what they were.

    >>> mixer, server = Key.new(), Key.new()
    >>> route = Route(b"march", (mixer.public,), server.public)
    >>> messages = wrap_many(route, np.arange(3, dtype=np.uint64)).copy()
    >>> messages[1, 40] ^= 1
    >>> opened, refused = peel_many(route, 0, key=mixer, messages=messages)
    >>> opened.shape, refused.tolist()
    ((3, 56), [1])
    """
    size, info = route.size(layer), route.info(layer)
    if messages.ndim != 2 or messages.shape[1] != size or messages.dtype != np.uint8:
        raise WireError(f"messages for layer {layer} are rows of {size} bytes")
    if key.public != route.keys[layer]:
        raise ParameterError(f"this key is not the one of layer {layer}")
    opened = _in_parts(partial(_peel_part, key.private, info, size), messages, workers)
    inner = np.frombuffer(opened, dtype=np.uint8).reshape(len(messages), size - LAYER_BYTES + 1)
    return inner[:, 1:], np.flatnonzero(inner[:, 0] == 0)


def reports_in(opened: Bytes) -> U64:
    """The reports in messages whose every layer is open.

    >>> reports_in(np.array([[1, 1, 0, 0, 0, 0, 0, 0]], dtype=np.uint8)).tolist()
    [257]
    """
    if opened.ndim != 2 or opened.shape[1] != REPORT_BYTES:
        raise WireError(f"a report is {REPORT_BYTES} bytes")
    return np.ascontiguousarray(opened).view("<u8").astype(np.uint64).ravel()


def _check_public(key: bytes) -> None:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ParameterError(f"a public key is {KEY_BYTES} bytes")
    try:
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:  # a point of small order: everybody would know the secret
        raise ParameterError("a public key on this route is no key") from None


Seals = list[tuple[X25519PublicKey, bytes]]


def _seals(route: Route, first: int) -> Seals:
    """Key and info of every layer from `first` on, the innermost first: the order of wrapping."""
    route.info(first)
    return [
        (X25519PublicKey.from_public_bytes(route.keys[layer]), route.info(layer))
        for layer in reversed(range(first, route.layers))
    ]


def _seal(message: bytes, seals: Seals) -> bytes:
    for key, info in seals:
        message = _SUITE.encrypt(message, key, info=info)
    return message


def _wrap_part(route: Route, first: int, reports: bytes) -> bytes:
    seals = _seals(route, first)
    return b"".join(_seal(reports[at : at + REPORT_BYTES], seals) for at in range(0, len(reports), REPORT_BYTES))


def _peel_part(private: bytes, info: bytes, size: int, messages: bytes) -> bytes:
    """Rows with a leading byte: 1 where the message opened."""
    key, closed = Key(private), bytes(1 + size - LAYER_BYTES)
    opened = (key.open(messages[at : at + size], info) for at in range(0, len(messages), size))
    return b"".join(closed if inner is None else b"\x01" + inner for inner in opened)


def _in_parts(work: Callable[[bytes], bytes], rows: Bytes, workers: int) -> bytes:
    """work(part) for every part of the rows, one behind the other. Threads do not help: the library holds the lock."""
    if not is_int(workers) or workers < 1:
        raise ParameterError("there is at least 1 worker")
    step = max(1, min(_MOST_ROWS, -(-len(rows) // (workers * _PARTS))))
    parts = (rows[at : at + step].tobytes() for at in range(0, len(rows), step))
    if workers == 1:
        return b"".join(work(part) for part in parts)
    # Spawned, not forked: a party's process has threads and sockets that a child must not get.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return b"".join(pool.map(work, parts))
