"""The sequential shuffle between parties: messages, memory of earlier attempts, refusals."""

from __future__ import annotations

import asyncio
import stat
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.significance import counts_fit

from veil.entropy import SeededForExperiments
from veil.errors import InputError, MismatchError, ParameterError, StoreError
from veil.shuffle.coordinator import ShuffleOutcome
from veil.shuffle.plan import Address, CollectionPlan
from veil.shuffle.protocol import Attempt, protocol_of
from veil.shuffle.sequential import (
    BatchError,
    Key,
    Sequential,
    SpotCheckError,
    SpotChecks,
    keys_in_plan,
    route_of,
    submissions_of,
    without_checks,
    wrap_many,
)
from veil.shuffle.sequential.onion import U64, Bytes
from veil.shuffle.settings import PartySettings
from veil.shuffle.transport.certificates import PartyIdentity

KEYS = [Key.new() for _ in range(4)]
ADDRESSES = tuple((f"mixer-{i}", Address("127.0.0.1", 7100 + i)) for i in (1, 2, 3))
PLAN = CollectionPlan(
    "sequential", "march", {"kind": "x"}, 11, 64, ADDRESSES, keys_in_plan([k.public for k in KEYS[:3]], KEYS[3].public)
)
SECRET = bytes(range(32))


@dataclass
class Wires:
    """What was sent, and to whom."""

    vectors: dict[int, Bytes] = field(default_factory=dict)
    outcome: Bytes = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))


class WiredAttempt(Attempt):
    """An attempt without a network."""

    wires: Wires

    def stage(self, text: str) -> None:
        pass

    async def send(self, to: int, label: int, array: Any) -> None:
        self.wires.vectors[to] = array.reshape(-1)

    async def receive(self, sender: int, label: int, size: int) -> Bytes:
        assert len(self.wires.vectors[self.index]) == size
        return self.wires.vectors[self.index]

    async def hand_over(self, pieces: AsyncIterator[Bytes]) -> None:
        self.wires.outcome = np.concatenate([piece async for piece in pieces])


def run(plan: CollectionPlan, shares: Bytes, folder: Path, place: int, wires: Wires, secret: bytes = SECRET) -> None:
    protocol = Sequential(plan, KEYS[place], folder / str(place))
    attempt = WiredAttempt(f"mixer-{place + 1}", place, len(shares), shares, secret, {}, None)  # type: ignore[arg-type]
    attempt.wires = wires
    asyncio.run(protocol.shuffle(attempt))


def run_all(plan: CollectionPlan, shares: Bytes, folder: Path) -> Wires:
    wires = Wires()
    for place in range(3):
        run(plan, shares, folder, place, wires)
    return wires


def opened(plan: CollectionPlan, wires: Wires) -> U64:
    return Sequential(plan, KEYS[3]).combine({2: wires.outcome})


@pytest.mark.parametrize("ring", [64, 32])
def test_outcome_has_all_reports_and_the_planned_fakes(ring: int, tmp_path: Path) -> None:
    plan = replace(PLAN, ring=ring, fakes=400)
    reports = SeededForExperiments(1).below(1 << ring, 20)
    device = Sequential(plan)
    shares = device.split(reports)
    assert [rows.shape for rows in shares] == [(20, 200), (20, 0), (20, 0)]
    assert [device.share_size(i) for i in range(3)] == [200, 0, 0]
    assert [device.outcome_size(i) for i in range(3)] == [0, 0, 56]
    out = opened(plan, run_all(plan, shares[0], tmp_path))
    assert len(out) == 420
    fakes = Counter(out.tolist()) - Counter(reports.tolist())
    assert sum(fakes.values()) == 400
    eighths = Counter(fake >> (ring - 3) for fake in fakes.elements())
    assert counts_fit(eighths, dict.fromkeys(range(8), 50.0))


def test_reports_are_reduced_modulo_the_ring(tmp_path: Path) -> None:
    """A device may send what it likes: it is one report of the ring, and nothing stops."""
    plan = replace(PLAN, ring=32, fakes=0)
    shares = wrap_many(route_of(plan), np.array([(7 << 32) + 5], dtype=np.uint64))
    assert opened(plan, run_all(plan, shares, tmp_path)).tolist() == [5]


def test_messages_are_bound_to_collection_and_study_but_not_to_addresses(tmp_path: Path) -> None:
    shares = Sequential(PLAN).split(SeededForExperiments(1).below(1 << 64, 3))[0]
    moved = replace(PLAN, shufflers=tuple((name, Address("10.0.0.1", 9)) for name, _ in ADDRESSES))
    run(moved, shares, tmp_path / "moved", 0, Wires())
    for change in ({"collection": "april"}, {"study": {"kind": "y"}}):
        with pytest.raises(BatchError, match="device handed over 3 messages of 3 that do not open"):
            run(replace(PLAN, **change), shares, tmp_path / "other", 0, Wires())  # type: ignore[arg-type]


def test_a_second_attempt_has_the_same_messages_at_every_place(tmp_path: Path) -> None:
    shares = Sequential(PLAN).split(SeededForExperiments(1).below(1 << 64, 30))[0]
    first, second = run_all(PLAN, shares, tmp_path), run_all(PLAN, shares, tmp_path)
    for place, size in [(1, 152), (2, 104)]:
        batches = [w.vectors[place].reshape(-1, size) for w in (first, second)]
        assert len({frozenset(row.tobytes() for row in batch) for batch in batches}) == 1
        assert not np.array_equal(*batches)
    assert sorted(opened(PLAN, first).tolist()) == sorted(opened(PLAN, second).tolist())


def test_redrawn_fakes_are_revealed_by_a_second_attempt(tmp_path: Path) -> None:
    """The rival: what the memory is for. The server subtracts two outcomes, and has the fakes of one shuffler."""
    shares = Sequential(PLAN).split(SeededForExperiments(1).below(1 << 64, 30))[0]
    first = opened(PLAN, run_all(PLAN, shares, tmp_path))
    (tmp_path / "2" / "step").unlink()
    second = opened(PLAN, run_all(PLAN, shares, tmp_path))
    assert len(Counter(first.tolist()) - Counter(second.tolist())) == 3


@pytest.mark.parametrize(("place", "sender"), [(0, "device"), (1, "mixer-1")])
def test_other_messages_in_a_later_attempt_are_refused(place: int, sender: str, tmp_path: Path) -> None:
    """One person fewer would be the difference of two outcomes. Each shuffler looks for itself, whoever asks."""
    plan = replace(PLAN, fakes=0)
    messages = wrap_many(route_of(plan), SeededForExperiments(1).below(1 << 64, 30), first=place)
    run(plan, messages, tmp_path, place, Wires({place: messages.reshape(-1)}))
    run(plan, messages[::-1], tmp_path, place, Wires({place: messages[::-1].reshape(-1)}))
    with pytest.raises(BatchError, match="other messages than in an earlier attempt") as caught:
        run(plan, messages[1:], tmp_path, place, Wires({place: messages[1:].reshape(-1)}))
    assert caught.value.party == sender


def test_refused_messages_are_not_remembered(tmp_path: Path) -> None:
    messages = Sequential(PLAN).split(SeededForExperiments(1).below(1 << 64, 30))[0]
    changed = messages.copy()
    changed[3, 50] ^= 1
    with pytest.raises(BatchError, match="positions from 0: 3"):
        run(PLAN, changed, tmp_path, 0, Wires())
    run(PLAN, messages, tmp_path, 0, Wires())


def test_finished_collection_is_not_shuffled_again(tmp_path: Path) -> None:
    messages, wires = Sequential(PLAN).split(SeededForExperiments(1).below(1 << 64, 30))[0], Wires()
    run(PLAN, messages, tmp_path, 0, wires)
    kept = (tmp_path / "0" / "step").read_bytes()
    assert not any(row.tobytes()[:32] in kept for row in wires.vectors[1].reshape(-1, 152))
    with pytest.raises(StoreError, match="has forgotten it"):
        run(PLAN, messages, tmp_path, 0, Wires(), secret=bytes(32))


def test_spot_checks_are_submitted_like_reports_and_removed(tmp_path: Path) -> None:
    device, checks, reports = (
        Sequential(PLAN),
        SpotChecks.draw(4, SeededForExperiments(5)),
        SeededForExperiments(1).below(1 << 64, 10),
    )
    own = submissions_of(device, checks)
    assert all((one.people, [len(part) for part in one.payloads]) == (1, [200, 0, 0]) for one in own)
    assert len({one.name for one in own}) == 4
    rows = [np.frombuffer(one.payloads[0], dtype=np.uint8)[None] for one in own]
    out = opened(PLAN, run_all(PLAN, np.concatenate([device.split(reports)[0], *rows]), tmp_path))
    left = without_checks(ShuffleOutcome(out, 14, (), 0, 0.0), checks)
    assert (left.people, len(left.elements)) == (10, 21)
    assert set(reports.tolist()) <= set(left.elements.tolist())
    out[np.isin(out, np.array(checks.reports[:2], dtype=np.uint64))] = 0  # what the last shuffler may have done
    with pytest.raises(SpotCheckError, match="2 of 4"):
        without_checks(ShuffleOutcome(out, 14, (), 0, 0.0), checks)


def test_a_key_is_written_once_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "mixer.secret"
    KEYS[0].write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Key.read(path).public == KEYS[0].public
    with pytest.raises(InputError, match="never written over"):
        KEYS[1].write(path)


@pytest.mark.parametrize("text", [None, "", "00" * 31, "no key"])
def test_files_without_a_key_are_refused(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "key").write_text(text)
    with pytest.raises(InputError, match="does not hold a private key"):
        Key.read(tmp_path / "key")


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"server": "00"},
        keys_in_plan([KEYS[0].public], KEYS[3].public),
        {**PLAN.keys, "more": 1},
        {**PLAN.keys, "server": 5},
        {**PLAN.keys, "shufflers": 5},
        {**PLAN.keys, "server": "zz"},
    ],
)
def test_plans_without_valid_keys_are_refused(keys: Any) -> None:
    with pytest.raises(ParameterError, match="a plan's keys are"):
        Sequential(replace(PLAN, keys=keys))


def test_a_plan_of_another_protocol_is_refused() -> None:
    with pytest.raises(MismatchError, match="for the protocol peos"):
        Sequential(replace(PLAN, protocol="peos"))


def test_a_party_has_its_own_key(tmp_path: Path) -> None:
    KEYS[1].write(tmp_path / "secret")
    identity = PartyIdentity(tmp_path, tmp_path, tmp_path)
    settings = PartySettings("mixer-2", PLAN, identity, tmp_path, tmp_path / "secret")
    Sequential.of(settings)
    Sequential.of(replace(settings, party="device", secret=None))
    with pytest.raises(InputError, match="key of mixer-1 in the plan"):
        Sequential.of(replace(settings, party="mixer-1"))
    with pytest.raises(InputError, match="key of server in the plan"):
        Sequential.of(replace(settings, party="server"))
    with pytest.raises(InputError, match="has no party mixer-9"):
        Sequential.of(replace(settings, party="mixer-9"))
    with pytest.raises(InputError, match="lack the setting secret"):
        Sequential.of(replace(settings, secret=None))
    with pytest.raises(InputError, match="key of server in the plan"):
        Sequential(PLAN, KEYS[0]).combine({2: np.zeros(56, dtype=np.uint8)})


def test_unknown_key_is_refused() -> None:
    with pytest.raises(InputError, match="no party in the plan"):
        Sequential(PLAN, Key.new())


def test_a_plan_says_which_protocol_it_is(tmp_path: Path) -> None:
    KEYS[0].write(tmp_path / "secret")
    found = protocol_of(CollectionPlan.from_json(PLAN.to_json()), tmp_path / "secret", tmp_path)
    assert isinstance(found, Sequential)
    assert found.route == route_of(PLAN)
    with pytest.raises(InputError, match="expected peos or sequential"):
        protocol_of(replace(PLAN, protocol="pigeons"))


def test_a_shuffler_needs_a_folder() -> None:
    attempt = WiredAttempt("mixer-1", 0, 0, np.zeros((0, 200), dtype=np.uint8), SECRET, {}, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs a folder"):
        asyncio.run(Sequential(PLAN, KEYS[0]).shuffle(attempt))


def test_the_server_names_the_last_shuffler() -> None:
    with pytest.raises(BatchError, match="do not open") as caught:
        Sequential(PLAN, KEYS[3]).combine({2: np.arange(56, dtype=np.uint8)})
    assert caught.value.party == "mixer-3"
