"""Onions: opening, lengths, and no link between a message and its next layer."""

from __future__ import annotations

import hashlib
import hmac
import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from veil.entropy import SeededForExperiments
from veil.errors import ParameterError, WireError
from veil.shuffle.sequential import Key, Route, message_bytes, peel, peel_many, reports_in, wrap, wrap_many
from veil.shuffle.sequential.onion import Bytes

KEYS = [Key.new() for _ in range(8)]
WINDOW = 6
"""Bytes in a row: by chance two messages share so many once in 2^48 pairs of places."""


def route_of(shufflers: int, collection: bytes = b"march") -> Route:
    return Route(collection, tuple(key.public for key in KEYS[:shufflers]), KEYS[shufflers].public)


@pytest.mark.parametrize("shufflers", [1, 2, 3, 7])
def test_report_is_recovered_from_its_layers(shufflers: int) -> None:
    route = route_of(shufflers)
    for report in (0, 1, 2**63, 2**64 - 1):
        message = wrap(route, report)
        for layer in range(route.layers):
            assert len(message) == route.size(layer) == 8 + 48 * (shufflers + 1 - layer)
            message = peel(route, layer, KEYS[layer], message)
        assert message == report.to_bytes(8, "little")


def test_batch_equals_single_messages() -> None:
    route = route_of(3)
    reports = SeededForExperiments(1).below(1 << 64, 20)
    messages = wrap_many(route, reports)
    assert [peel(route, 0, KEYS[0], row.tobytes()) for row in messages] == [
        row.tobytes() for row in peel_many(route, 0, KEYS[0], messages)[0]
    ]
    for layer in range(4):
        messages, refused = peel_many(route, layer, KEYS[layer], messages)
        assert not len(refused)
    assert np.array_equal(reports_in(messages), reports)


def test_empty_batch() -> None:
    route = route_of(3)
    nobody = wrap_many(route, np.zeros(0, dtype=np.uint64))
    assert nobody.shape == (0, 200)
    opened, refused = peel_many(route, 0, KEYS[0], nobody)
    assert opened.shape == (0, 152)
    assert not len(refused)


def test_several_processes_match_one() -> None:
    route = route_of(2)
    reports = SeededForExperiments(2).below(1 << 64, 11)
    messages = wrap_many(route, reports, workers=2).copy()
    messages[7] ^= 1
    one, two = (peel_many(route, 0, KEYS[0], messages, workers) for workers in (1, 2))
    assert np.array_equal(one[0], two[0])
    assert one[1].tolist() == two[1].tolist() == [7]


def test_fakes_are_wrapped_from_an_inner_layer_on() -> None:
    route = route_of(3)
    inner = wrap(route, 77, first=2)
    assert len(inner) == route.size(2)
    assert peel(route, 3, KEYS[3], peel(route, 2, KEYS[2], inner)) == (77).to_bytes(8, "little")


@pytest.mark.parametrize(("layers", "size"), [(2, 104), (4, 200), (8, 392)])
def test_lengths_follow_the_formula(layers: int, size: int) -> None:
    assert message_bytes(layers) == size == len(wrap(route_of(layers - 1), 5))


def open_by_the_rfc(private: bytes, message: bytes, info: bytes) -> bytes:
    """Single-shot opening in base mode, written down from the sections of the RFC: 4.1, 5.1, 5.2."""

    def extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
        return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + secret, "sha256")

    def expand(suite: bytes, key: bytes, label: bytes, context: bytes, length: int) -> bytes:
        labelled = length.to_bytes(2) + b"HPKE-v1" + suite + label + context
        return hmac.digest(key, labelled + b"\x01", "sha256")[:length]

    key, encapsulated = X25519PrivateKey.from_private_bytes(private), message[:32]
    kem, hpke = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x03"
    shared = key.exchange(X25519PublicKey.from_public_bytes(encapsulated))
    context = encapsulated + key.public_key().public_bytes_raw()
    secret = expand(kem, extract(kem, b"", b"eae_prk", shared), b"shared_secret", context, 32)
    schedule = b"\x00" + extract(hpke, b"", b"psk_id_hash", b"") + extract(hpke, b"", b"info_hash", info)
    mixed = extract(hpke, secret, b"secret", b"")
    cipher = ChaCha20Poly1305(expand(hpke, mixed, b"key", schedule, 32))
    return cipher.decrypt(expand(hpke, mixed, b"base_nonce", schedule, 12), message[32:], b"")


def test_a_layer_is_hpke_and_its_info_names_collection_keys_and_layer() -> None:
    route = route_of(3)
    message = wrap(route, 1234)
    digest = hashlib.sha256(b"\x05march" + b"".join(key.public for key in KEYS[:4])).digest()
    for layer in range(4):
        message = open_by_the_rfc(KEYS[layer].private, message, b"veil sequential shuffle 1" + digest + bytes([layer]))
    assert message == (1234).to_bytes(8, "little")


def test_every_changed_byte_is_refused() -> None:
    route = route_of(1)
    message = wrap(route, 9)
    changed = np.tile(np.frombuffer(message, dtype=np.uint8), (len(message), 1))
    # The highest bit of an encapsulated key's last byte is one that X25519 ignores: HPKE binds it nevertheless.
    changed[np.arange(len(message)), np.arange(len(message))] ^= 0x80
    assert peel_many(route, 0, KEYS[0], changed)[1].tolist() == list(range(len(message)))
    with pytest.raises(WireError, match="does not open"):
        peel(route, 0, KEYS[0], changed[50].tobytes())


@pytest.mark.parametrize("length", [0, 1, 31, 32, 47, 103, 105, 200])
def test_another_length_is_refused(length: int) -> None:
    route = route_of(1)
    with pytest.raises(WireError, match=f"is 104 bytes, not {length}"):
        peel(route, 0, KEYS[0], bytes(length))
    with pytest.raises(WireError, match="rows of 104 bytes"):
        peel_many(route, 0, KEYS[0], np.zeros((2, length), dtype=np.uint8))


def test_another_key_does_not_open_it() -> None:
    route = route_of(2)
    with pytest.raises(WireError, match="does not open"):
        peel(route, 0, KEYS[1], wrap(route, 5))
    with pytest.raises(ParameterError, match="not the one of layer 0"):
        peel_many(route, 0, KEYS[1], wrap_many(route, np.zeros(1, dtype=np.uint64)))


def test_layers_open_in_their_order_only() -> None:
    """Also with the right key: the number of a layer is bound to it."""
    route = route_of(3)
    for layer, other in itertools.permutations(range(4), 2):
        message = wrap(route, 5, first=layer)
        with pytest.raises(WireError):
            peel(route, other, KEYS[layer], message)
        assert KEYS[layer].open(message, route.info(layer)) is not None
        assert KEYS[layer].open(message, route.info(other)) is None


def test_messages_of_another_collection_or_chain_do_not_open() -> None:
    route = route_of(2)
    message = wrap(route, 5)
    others = [
        route_of(2, b"april"),
        Route(route.collection, route.shufflers, KEYS[5].public),
        Route(route.collection, (KEYS[0].public, KEYS[6].public), route.server),
    ]
    for other in others:
        with pytest.raises(WireError, match="does not open"):
            peel(other, 0, KEYS[0], message)
    assert len(peel(route, 0, KEYS[0], message)) == 104


def windows(message: Bytes) -> set[bytes]:
    data = message.tobytes()
    return {data[at : at + WINDOW] for at in range(len(data) - WINDOW + 1)}


def linked(before: Bytes, after: Bytes) -> int:
    """How many outgoing messages have some bytes in common with any incoming one."""
    known = set().union(*(windows(row) for row in before))
    return sum(bool(known & windows(row)) for row in after)


def test_opened_messages_share_no_bytes_with_their_layers() -> None:
    """A layer changes every byte: those that stay the same in their place are as many as by chance."""
    route = route_of(2)
    before = wrap_many(route, np.zeros(300, dtype=np.uint64))
    for layer in range(2):
        after, _ = peel_many(route, layer, KEYS[layer], before)
        assert linked(before, after) == 0
        for shift in (0, 32):  # at the same place, and behind the encapsulated key
            same = int((before[:, shift : shift + after.shape[1]] == after).sum())
            assert abs(same - after.size / 256) < 6.5 * (after.size / 256) ** 0.5
        before = after


def test_unopened_messages_share_bytes_with_their_layers() -> None:
    route = route_of(2)
    before = wrap_many(route, np.zeros(30, dtype=np.uint64))
    lazy = before[::-1, : route.size(1)]
    assert linked(before, lazy) == 30
    assert peel_many(route, 1, KEYS[1], np.ascontiguousarray(lazy))[1].tolist() == list(range(30))


def test_equal_reports_have_messages_with_nothing_in_common() -> None:
    route = route_of(3)
    assert linked(wrap_many(route, np.full(50, 7, dtype=np.uint64)), wrap_many(route, np.full(50, 7, np.uint64))) == 0


@pytest.mark.parametrize("report", [-1, 2**64, 1.0, True, "5"])
def test_invalid_reports_are_refused(report: int) -> None:
    with pytest.raises(ParameterError, match="a report is an integer"):
        wrap(route_of(1), report)


def test_invalid_report_arrays_are_refused() -> None:
    with pytest.raises(ParameterError, match="unsigned integers"):
        wrap_many(route_of(1), np.zeros(3, dtype=np.int64))
    with pytest.raises(WireError, match="8 bytes"):
        reports_in(np.zeros((2, 56), dtype=np.uint8))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"collection": b""}, "1 to 255 bytes"),
        ({"collection": "march"}, "1 to 255 bytes"),
        ({"shufflers": ()}, "between 1 and 64"),
        ({"shufflers": (KEYS[0].public, KEYS[0].public)}, "key of its own"),
        ({"server": KEYS[0].public}, "key of its own"),
        ({"server": b"short"}, "32 bytes"),
        ({"server": bytes(32)}, "no key"),
        ({"server": b"\x01" + bytes(31)}, "no key"),
    ],
)
def test_invalid_routes_are_refused(change: dict[str, object], problem: str) -> None:
    fields: dict[str, object] = {
        "collection": b"march",
        "shufflers": (KEYS[0].public, KEYS[1].public),
        "server": KEYS[2].public,
    }
    with pytest.raises(ParameterError, match=problem):
        Route(**(fields | change))  # type: ignore[arg-type]


@pytest.mark.parametrize("layer", [-1, 4, True, 1.0])
def test_invalid_layers_are_refused(layer: int) -> None:
    with pytest.raises(ParameterError, match="counted from 0 to 3"):
        route_of(3).info(layer)
    with pytest.raises(ParameterError, match="counted from 0 to 3"):
        wrap(route_of(3), 5, first=layer)


def test_invalid_workers_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least 1 worker"):
        wrap_many(route_of(1), np.zeros(1, dtype=np.uint64), workers=0)


def test_a_private_key_is_not_shown() -> None:
    key = Key.new()
    assert key.private.hex() not in repr(key)
    with pytest.raises(ParameterError, match="32 bytes"):
        Key(b"short")
