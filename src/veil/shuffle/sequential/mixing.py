"""The step of one shuffler: open one layer of every message, refuse bad batches, add fakes, mix, pass on.

No message is ever left out silently. A message that does not open, or that occurs twice, stops the step with an error
that names the sender of the batch and the position. A copy would be a mark: an attacker who sends somebody's message a
second time finds their report among those that occur twice.

A step that is repeated because another party failed must reveal nothing new. The messages passed on are the same bytes
as before, fakes included; only the order is new. Otherwise a comparison of two batches would show which messages
changed, and so which are fake. Therefore `draw_fakes` is called once per collection, and `ShufflerMemory` stores the
wrapped fakes and the digest of the messages before anything is passed on. A later attempt with other messages is
refused: the difference between two outcomes would be the reports of single people. The shuffler checks this itself,
because the shuffler before it and the server might want it.

The file is encrypted with the secret that the shuffler drew when the collection was closed. Once the collection is over
that secret is deleted, and with it the fakes; the file that remains prevents another shuffle of the collection.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from numpy.typing import NDArray

from veil.entropy import Source
from veil.errors import MismatchError, ParameterError, PartyError, StoreError
from veil.shuffle.sequential.onion import Bytes, Key, Route, peel_many, wrap_many
from veil.tools.filesystem import make_private_folder, write_secret
from veil.tools.numbers import is_int

_BEGINNING = 16  # bytes, of a key that was drawn for this message alone
_NAMED = 5  # positions in a message; the error has all of them
_DIGEST_BYTES, _NONCE_BYTES = 32, 12
_USE = b"veil sequential shuffle 1: what a shuffler remembers"


def mix(
    route: Route,
    place: int,
    key: Key,
    messages: Bytes,
    fakes: Bytes,
    source: Source,
    *,
    sender: str,
    expected: int | None = None,
    workers: int = 1,
) -> Bytes:
    """What the shuffler at a place hands on: the messages without its layer, and its fakes, in a random order.

    >>> from veil.entropy import Batch
    >>> mixer, server = Key.new(), Key.new()
    >>> route = Route(b"march", (mixer.public,), server.public)
    >>> people = wrap_many(route, np.arange(10, dtype=np.uint64))
    >>> mix(route, 0, mixer, people, draw_fakes(route, 0, 3, Batch()), Batch(), sender="people").shape
    (13, 56)
    """
    if fakes.ndim != 2 or fakes.dtype != np.uint8 or fakes.shape[1] != route.size(place + 1):
        raise ParameterError(f"fakes of the shuffler at place {place} are rows of {route.size(place + 1)} bytes")
    opened = open_batch(route, place, key, messages, sender=sender, expected=expected, workers=workers)
    everything = np.concatenate([opened, fakes])
    return np.ascontiguousarray(everything[permutation(source, len(everything))])


def open_batch(
    route: Route,
    layer: int,
    key: Key,
    messages: Bytes,
    *,
    sender: str,
    expected: int | None = None,
    workers: int = 1,
) -> Bytes:
    """A batch without one layer, in its order; a BatchError where anything is missing, closed or there twice.

    Copies are looked for before and after: a shuffler may have put one inner message into two layers of its own.
    Reports themselves, at the server, may well be equal.
    """
    if messages.ndim != 2 or messages.dtype != np.uint8 or messages.shape[1] != route.size(layer):
        raise BatchError(sender, f"messages of another length than {route.size(layer)} bytes")
    if expected is not None and len(messages) != expected:
        raise BatchError(sender, f"{len(messages)} messages, and {expected} were expected")
    _refuse_copies(messages, sender)
    opened, closed = peel_many(route, layer, key, messages, workers)
    if len(closed):
        raise BatchError(sender, f"{len(closed)} messages of {len(messages)} that do not open", closed)
    if layer < len(route.shufflers):
        _refuse_copies(opened, sender)
    return opened


def _refuse_copies(messages: Bytes, sender: str) -> None:
    """Messages that begin alike are few, and compared whole."""
    beginnings = np.ascontiguousarray(messages[:, :_BEGINNING]).view("<u8")
    order = np.lexsort(beginnings.T)
    alike = np.flatnonzero((beginnings[order[1:]] == beginnings[order[:-1]]).all(axis=1))
    seen: set[bytes] = set()
    copies = []
    for at in np.unique(order[np.concatenate([alike, alike + 1])]):
        message = messages[at].tobytes()
        if message in seen:
            copies.append(at)
        seen.add(message)
    if copies:
        raise BatchError(sender, f"{len(copies)} messages that are copies of others", copies)


def draw_fakes(route: Route, place: int, count: int, source: Source, *, ring: int = 64, workers: int = 1) -> Bytes:
    """Uniform reports in the layers that are left behind the shuffler at this place. Once for a collection: keep them.

    Reports are integers of `ring` bits.

    >>> from veil.entropy import SeededForExperiments
    >>> keys = [Key.new().public for _ in range(3)]
    >>> draw_fakes(Route(b"march", tuple(keys[:2]), keys[2]), 0, 5, SeededForExperiments(1)).shape
    (5, 104)
    """
    if not is_int(place) or not 0 <= place < len(route.shufflers):
        raise ParameterError(f"shufflers of this route stand at places from 0 to {len(route.shufflers) - 1}")
    return wrap_many(route, source.below(1 << ring, count), place + 1, workers)


def fakes_of(total: int, shufflers: int, place: int) -> int:
    """How many of all fakes the shuffler at a place (from 0) adds: equal parts, what is left over to the first ones.

    >>> [fakes_of(11, 3, place) for place in range(3)]
    [4, 4, 3]
    """
    if not (is_int(total) and is_int(shufflers) and is_int(place)) or total < 0 or not 0 <= place < shufflers:
        raise ParameterError("fakes are 0 or more, divided among the shufflers at places from 0 on")
    return total // shufflers + (place < total % shufflers)


def permutation(source: Source, count: int) -> NDArray[np.intp]:
    """A uniformly random order of 0 .. count - 1, by Fisher and Yates: exactly uniform, as the draws are.

    >>> from veil.entropy import SeededForExperiments
    >>> sorted(permutation(SeededForExperiments(1), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    order = list(range(count))
    if count > 1:
        chosen = source.below(np.arange(count, 1, -1, dtype=np.uint64), count - 1).tolist()
        for last, other in zip(range(count - 1, 0, -1), chosen, strict=True):
            order[last], order[other] = order[other], order[last]
    return np.array(order, dtype=np.intp)


class BatchError(PartyError):
    """A batch is not what it has to be: `party` handed it over, `positions` (from 0) are what is wrong with it."""

    def __init__(self, party: str, problem: str, positions: Iterable[int] = ()) -> None:
        self.positions = tuple(int(at) for at in positions)
        named = ", ".join(str(at) for at in self.positions[:_NAMED]) + (", ..." if len(self.positions) > _NAMED else "")
        super().__init__(party, f"handed over {problem}" + (f" (positions from 0: {named})" if named else ""))


class ShufflerMemory:
    """One collection's file, for whoever has the collection's secret."""

    def __init__(self, folder: Path, secret: bytes) -> None:
        self._path = folder / "step"
        self._cipher = ChaCha20Poly1305(hashlib.sha256(_USE + secret).digest())

    def recall(self, messages: Bytes, size: int) -> Bytes | None:
        """The fakes of an earlier attempt, rows of `size` bytes, if it was about the same messages; None at first."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            known = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _USE)
        except (InvalidTag, ValueError):
            raise StoreError(
                "has shuffled this collection before, and has forgotten it: it is not shuffled again"
            ) from None
        if known[:_DIGEST_BYTES] != digest_of(messages):
            raise MismatchError("other messages than in an earlier attempt: they are the ones that are shuffled")
        return np.frombuffer(known[_DIGEST_BYTES:], dtype=np.uint8).reshape(-1, size)

    def remember(self, messages: Bytes, fakes: Bytes) -> None:
        """Fix messages and fakes for good."""
        nonce = os.urandom(_NONCE_BYTES)
        make_private_folder(self._path.parent)
        sealed = self._cipher.encrypt(nonce, digest_of(messages) + fakes.tobytes(), _USE)
        write_secret(self._path, nonce + sealed)


def digest_of(messages: Bytes) -> bytes:
    """The digest of a batch, whatever its order.

    >>> batch = np.arange(12, dtype=np.uint8).reshape(3, 4)
    >>> digest_of(batch) == digest_of(batch[::-1]), digest_of(batch) == digest_of(batch[:2])
    (True, False)
    """
    rows = np.ascontiguousarray(messages)
    return hashlib.sha256(b"".join(sorted(row.tobytes() for row in rows))).digest()
