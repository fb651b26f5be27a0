"""What a shuffler remembers of a collection from one attempt to the next: which messages it was given, and its fakes.

Both are fixed before anything is handed on. Other messages in a later attempt would be a difference between two
outcomes, and so single people's reports; other fakes would tell which messages are fake. The shuffler before this one
and the server may want just that: so this shuffler looks for itself, and trusts neither.

The file is sealed with the secret that the shuffler drew when the collection was closed. Once the collection is over
that secret is gone, and with it the fakes; what stays on disk keeps the collection from being shuffled again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from veil.errors import MismatchError, StoreError
from veil.shuffle.sequential.onion import Bytes
from veil.tools.filesystem import make_private_folder, write_secret

__all__ = ["Memory", "digest_of"]

_DIGEST_BYTES, _NONCE_BYTES = 32, 12
_USE = b"veil sequential shuffle 1: what a shuffler remembers"


def digest_of(messages: Bytes) -> bytes:
    """The digest of a batch, whatever its order.

    >>> batch = np.arange(12, dtype=np.uint8).reshape(3, 4)
    >>> digest_of(batch) == digest_of(batch[::-1]), digest_of(batch) == digest_of(batch[:2])
    (True, False)
    """
    rows = np.ascontiguousarray(messages)
    return hashlib.sha256(b"".join(sorted(row.tobytes() for row in rows))).digest()


class Memory:
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
