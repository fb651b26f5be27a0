"""The step of one shuffler: uniform orders, complete batches, no copies, repeated steps."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from tests.significance import counts_fit

from veil.entropy import Batch, SeededForExperiments, Source, outcomes
from veil.errors import ParameterError, PartyError
from veil.shuffle.sequential import (
    BatchError,
    Key,
    Route,
    draw_fakes,
    fakes_of,
    mix,
    open_batch,
    peel,
    permutation,
    reports_in,
    wrap_many,
)
from veil.shuffle.sequential.onion import U64, Bytes

KEYS = [Key.new() for _ in range(4)]
ROUTE = Route(b"march", tuple(key.public for key in KEYS[:3]), KEYS[3].public)


def rows(messages: Bytes) -> Counter[bytes]:
    return Counter(row.tobytes() for row in messages)


def reports(count: int, seed: int = 1) -> U64:
    return SeededForExperiments(seed).below(1 << 64, count)


def swapped_with_anybody(source: Source, count: int) -> tuple[int, ...]:
    """The rival: the well-known mistake in Fisher and Yates."""
    order = list(range(count))
    for at in range(count):
        other = source.below(count)
        order[at], order[other] = order[other], order[at]
    return tuple(order)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_every_order_is_equally_likely(count: int) -> None:
    found = outcomes(lambda source: tuple(permutation(source, count).tolist()))
    assert len(found) == factorial(count)
    assert set(found.values()) == {Fraction(1, factorial(count))}


def test_biased_shuffle_is_not_uniform() -> None:
    assert len(set(outcomes(lambda source: swapped_with_anybody(source, 3)).values())) > 1


def test_the_order_of_many_is_random_too() -> None:
    """Beyond what can be enumerated: where the first message goes."""
    places = Counter(int(np.flatnonzero(permutation(SeededForExperiments(seed), 20) == 0)[0]) for seed in range(2000))
    assert counts_fit(places, dict.fromkeys(range(20), 100.0))
    assert sorted(permutation(SeededForExperiments(0), 5000).tolist()) == list(range(5000))


def test_outcome_is_the_reports_and_the_fakes() -> None:
    given, total = reports(40), 11
    messages = wrap_many(ROUTE, given)
    fakes: list[int] = []
    for place in range(3):
        drawn = draw_fakes(ROUTE, place, fakes_of(total, 3, place), SeededForExperiments(place))
        inner = drawn
        for layer in range(place + 1, 4):
            inner = open_batch(ROUTE, layer, KEYS[layer], inner, sender="me")
        fakes += reports_in(inner).tolist()
        messages = mix(ROUTE, place, KEYS[place], messages, drawn, Batch(), sender="before", expected=len(messages))
    out = reports_in(open_batch(ROUTE, 3, KEYS[3], messages, sender="mixer-3", expected=51))
    assert len(fakes) == total
    assert Counter(out.tolist()) == Counter([*given.tolist(), *fakes])
    assert out[:40].tolist() != given.tolist()


@pytest.mark.parametrize("total", [0, 1, 2, 3, 100, 101])
def test_fakes_are_divided_among_shufflers(total: int) -> None:
    parts = [fakes_of(total, 3, place) for place in range(3)]
    assert sum(parts) == total
    assert max(parts) - min(parts) <= 1
    assert parts == sorted(parts, reverse=True)


def test_fakes_are_uniform_and_a_skewed_one_is_not() -> None:
    drawn = draw_fakes(ROUTE, 2, 800, SeededForExperiments(5))
    values = reports_in(open_batch(ROUTE, 3, KEYS[3], drawn, sender="me"))
    uniform = dict.fromkeys(range(16), 50.0)
    assert counts_fit(Counter((values >> np.uint64(60)).tolist()), uniform)
    assert counts_fit(Counter((values % np.uint64(16)).tolist()), uniform)
    assert not counts_fit(Counter((values >> np.uint64(61)).tolist()), uniform)


def test_message_that_does_not_open_is_refused_with_its_position() -> None:
    messages = wrap_many(ROUTE, reports(20)).copy()
    messages[[3, 11], 60] ^= 1
    with pytest.raises(BatchError, match=r"mixer-1 handed over 2 messages of 20 that do not open .*: 3, 11") as caught:
        mix(ROUTE, 0, KEYS[0], messages, draw_fakes(ROUTE, 0, 1, Batch()), Batch(), sender="mixer-1")
    assert (caught.value.party, caught.value.positions) == ("mixer-1", (3, 11))


def test_many_positions_are_shortened_in_the_message_only() -> None:
    with pytest.raises(BatchError, match=r"0, 1, 2, 3, 4, \.\.\.") as caught:
        open_batch(ROUTE, 0, KEYS[0], np.arange(2000, dtype=np.uint8).reshape(10, 200) + np.uint8(1), sender="x")
    assert caught.value.positions == tuple(range(10))


def test_a_copy_is_refused_before_it_is_opened() -> None:
    messages = wrap_many(ROUTE, reports(20))
    twice = np.concatenate([messages, messages[4:5]])
    with pytest.raises(BatchError, match="1 messages that are copies") as caught:
        open_batch(ROUTE, 0, KEYS[0], twice, sender="people")
    assert caught.value.positions == (20,)


def test_an_inner_copy_in_a_layer_of_its_own_is_refused() -> None:
    """Whoever got hold of somebody's inner message wraps it anew: the outer ones differ, and yet it is a mark."""
    messages = wrap_many(ROUTE, reports(5))
    inner = peel(ROUTE, 0, KEYS[0], messages[2].tobytes())
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
    again = suite.encrypt(inner, X25519PublicKey.from_public_bytes(KEYS[0].public), info=ROUTE.info(0))
    marked = np.concatenate([messages, np.frombuffer(again, dtype=np.uint8)[None]])
    assert max(rows(marked).values()) == 1
    with pytest.raises(BatchError, match="copies") as caught:
        open_batch(ROUTE, 0, KEYS[0], marked, sender="people")
    assert caught.value.positions == (5,)


def test_messages_with_equal_beginnings_are_accepted() -> None:
    """Whoever uses one encapsulated key for two messages breaks no rule here; they do not open, or they differ."""
    messages = wrap_many(ROUTE, reports(20)).copy()
    messages[[3, 9], :32] = messages[5, :32]
    with pytest.raises(BatchError, match="2 messages of 20 that do not open") as caught:
        open_batch(ROUTE, 0, KEYS[0], messages, sender="people")
    assert caught.value.positions == (3, 9)
    many = np.concatenate([messages, messages[[3, 9, 0]], messages[[0]]])
    with pytest.raises(BatchError, match="4 messages that are copies") as caught:
        open_batch(ROUTE, 0, KEYS[0], many, sender="people")
    assert caught.value.positions == (20, 21, 22, 23)


@pytest.mark.parametrize("count", [0, 1])
def test_batches_of_few_messages(count: int) -> None:
    messages = wrap_many(ROUTE, reports(count))
    assert mix(ROUTE, 0, KEYS[0], messages, draw_fakes(ROUTE, 0, 0, Batch()), Batch(), sender="x").shape == (count, 152)


def test_equal_reports_are_accepted() -> None:
    messages = wrap_many(ROUTE, np.full(10, 7, dtype=np.uint64), first=3)
    assert reports_in(open_batch(ROUTE, 3, KEYS[3], messages, sender="mixer-3")).tolist() == [7] * 10


@pytest.mark.parametrize("count", [9, 11])
def test_another_number_of_messages_is_refused(count: int) -> None:
    with pytest.raises(BatchError, match=f"mixer-2 handed over {count} messages, and 10 were expected"):
        open_batch(ROUTE, 0, KEYS[0], wrap_many(ROUTE, reports(count)), sender="mixer-2", expected=10)


def test_messages_of_another_layer_are_refused() -> None:
    with pytest.raises(BatchError, match="another length than 152 bytes"):
        open_batch(ROUTE, 1, KEYS[1], wrap_many(ROUTE, reports(3)), sender="mixer-1")
    assert issubclass(BatchError, PartyError)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="rows of 152 bytes"):
        mix(ROUTE, 0, KEYS[0], wrap_many(ROUTE, reports(3)), draw_fakes(ROUTE, 1, 2, Batch()), Batch(), sender="x")
    for total, shufflers, place in [(-1, 3, 0), (3, 3, 3), (3, 0, 0), (3.0, 3, 0), (3, 3, -1)]:
        with pytest.raises(ParameterError, match="fakes are 0 or more"):
            fakes_of(total, shufflers, place)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="places from 0 to 2"):
        draw_fakes(ROUTE, 3, 1, Batch())


def test_repeated_step_passes_on_the_same_messages_in_another_order() -> None:
    messages, fakes = wrap_many(ROUTE, reports(30)), draw_fakes(ROUTE, 0, 10, Batch())
    first, second = (mix(ROUTE, 0, KEYS[0], messages, fakes, Batch(), sender="people") for _ in range(2))
    assert rows(first) == rows(second)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("mistake", ["new reports", "new layers"])
def test_redrawn_fakes_are_revealed_by_a_repeated_step(mistake: str) -> None:
    """The rival: fakes that are drawn, or only wrapped, once more. The next shuffler counts them by comparing bytes."""
    messages = wrap_many(ROUTE, reports(30))
    batches = []
    for seed in (2, 3 if mistake == "new reports" else 2):
        fakes = wrap_many(ROUTE, reports(10, seed), first=1)
        batches.append(rows(mix(ROUTE, 0, KEYS[0], messages, fakes, Batch(), sender="people")))
    changed = batches[1] - batches[0]
    assert sum(changed.values()) == 10  # all fakes, and no person
