"""PEOS: its outcome, the links that parties can find, and fakes that parties can skew."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.significance import counts_fit
from tests.support.in_memory import Seen, secret_of, small_keys, small_plan, walk

from veil import GRR
from veil.accounting import Shuffler
from veil.entropy import Keyed
from veil.errors import ParameterError, PartyError, WireError
from veil.histogram import Histogram
from veil.shuffle.collection import make_folder
from veil.shuffle.peos import Peos, Schedule
from veil.shuffle.peos.protocol import permutation
from veil.shuffle.plan import Address
from veil.shuffle.protocol import OUTCOME, Attempt

Elements = NDArray[np.uint64]


def drawn(count: int, seed: int = 0, ring: int = 64) -> Elements:
    return np.random.default_rng(seed).integers(0, 1 << ring, count, dtype=np.uint64)


def fakes_of(shufflers: int, count: int, ring: int = 64) -> Elements:
    """What the harness's secrets make of the shufflers' shares of the fakes."""
    shares = [Keyed(secret_of(i)).words(count) for i in range(shufflers)]
    return sum(shares, start=np.zeros(count, dtype=np.uint64)) & np.uint64((1 << ring) - 1)


@pytest.mark.parametrize(("shufflers", "ring"), [(3, 64), (3, 32), (5, 64), (7, 32)])
def test_outcome_contains_all_reports_and_the_fakes(shufflers: int, ring: int) -> None:
    plan = small_plan(shufflers, fakes=7, ring=ring)
    reports = drawn(20, ring=ring)
    seen = walk([Peos(plan) for _ in range(shufflers)], reports)
    assert seen.elements is not None
    expected = np.concatenate([reports, fakes_of(shufflers, 7, ring)])
    assert sorted(seen.elements.tolist()) == sorted(expected.tolist())
    assert seen.elements.tolist() != expected.tolist()


@pytest.mark.parametrize("shufflers", [3, 5, 7, 9])
def test_every_tolerated_coalition_leaves_a_round_to_honest_hiders(shufflers: int) -> None:
    schedule = Schedule(shufflers)
    assert schedule.tolerated == shufflers // 2
    for corrupt in combinations(range(shufflers), schedule.tolerated):
        honest = [one for one in schedule.rounds if not set(one.hiders) & set(corrupt)]
        assert honest
        # the argument for a last round of honest hiders: somebody of them hid in the round before
        assert all(set(one.hiders) & set(schedule.rounds[one.number - 1].hiders) for one in honest if one.number)
    beyond = [set(group) for group in combinations(range(shufflers), schedule.tolerated + 1)]
    assert any(all(set(one.hiders) & corrupt for one in schedule.rounds) for corrupt in beyond)


@pytest.mark.parametrize("shufflers", [3, 5, 7])
def test_ciphertexts_are_passed_on_according_to_the_schedule(shufflers: int) -> None:
    rounds = Schedule(shufflers).rounds
    assert rounds[0].holder == 0
    assert sum(one.hands_over for one in rounds) == Schedule(shufflers).tolerated
    for one, following in pairwise(rounds):
        assert following.holder == one.heir


@pytest.mark.parametrize(
    ("count", "reason"),
    [(1, "at least 3"), (2, "at least 3"), (4, "odd number.*with 4 as with 3, no more than 1"), (17, "at most 15")],
)
def test_other_numbers_of_shufflers_are_refused_with_the_reason(count: int, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        Schedule(count)


@pytest.mark.parametrize("shufflers", [3, 5, 7])
def test_bytes_sent_match_the_formula(shufflers: int) -> None:
    seen = walk([Peos(small_plan(shufflers, fakes=5)) for _ in range(shufflers)], drawn(15))
    size = small_keys()[0].size
    seeds = sum(len(vector) for vector in seen.vectors.values() if len(vector) == 32)
    sent = sum(len(vector) for vector in seen.vectors.values()) - seeds
    assert sent == 20 * Schedule(shufflers).bytes_per_report(size)


def randomness(ciphertexts: NDArray[np.uint8]) -> list[int]:
    """What the server finds in ciphertexts: c / g^m, which is h^r. g^(2^64) is left over where sums went around."""
    public, secret = small_keys()
    rows = ciphertexts.reshape(-1, public.size)
    inverse = pow(public.g, -1, public.modulus)
    plain = secret.decrypt_all(rows).tolist()
    return [
        int.from_bytes(row.tobytes()) * pow(inverse, m, public.modulus) % public.modulus
        for row, m in zip(rows, plain, strict=True)
    ]


def linked_by_ciphertexts(seen: Seen) -> int:
    """How many people's ciphertexts the server and the first shuffler find again in the outcome."""
    public, _ = small_keys()
    around = [pow(public.g, turns << 64, public.modulus) for turns in (-2, -1, 0, 1, 2)]
    before = {h * turn % public.modulus for h in randomness(seen.initial[0]) for turn in around}
    (last,) = [v for (_, to, label), v in seen.vectors.items() if label == OUTCOME and len(v) % public.size == 0][:1]
    return sum(h in before for h in randomness(last))


def test_ciphertexts_are_linkable_only_without_renewal() -> None:
    reports = drawn(50)
    assert linked_by_ciphertexts(walk([Peos(small_plan(3)) for _ in range(3)], reports)) == 0
    assert linked_by_ciphertexts(walk([Peos(small_plan(3), renewing=False) for _ in range(3)], reports)) == 50


def test_unknown_part_of_the_order_is_uniform() -> None:
    """The position of a report, as far as a shuffler can follow it: all are equally likely, also with the server."""
    people, runs = 4, 150
    counts = {corrupt: dict.fromkeys(range(people), 0) for corrupt in range(3)}
    for seed in range(runs):
        reports = drawn(people, seed)
        seen = walk([Peos(small_plan(3)) for _ in range(3)], reports)
        assert seen.elements is not None
        for corrupt in range(3):
            (honest,) = [one.number for one in Schedule(3).rounds if corrupt not in one.hiders]
            place = seen.elements.tolist().index(int(reports[0]))  # the server sees where a report ends up
            for one in reversed(Schedule(3).rounds[honest + 1 :]):
                place = int(seen.orders[corrupt, one.number][place])
            start = 0
            for one in Schedule(3).rounds[:honest]:
                start = seen.orders[corrupt, one.number].tolist().index(start)
            counts[corrupt][(place - start) % people] += 1
    expected = dict.fromkeys(range(people), runs / people)
    assert all(counts_fit(found, expected) for found in counts.values())
    assert not counts_fit({0: runs}, expected)  # the rival: no permutation in that round


def test_permutations_are_uniform() -> None:
    counts: dict[Any, int] = {}
    for i in range(2400):
        order = tuple(permutation(i.to_bytes(32), 4).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert counts_fit(counts, dict.fromkeys(counts, 100.0))
    assert len(counts) == 24


def test_shares_of_all_shufflers_are_uniform_without_the_key() -> None:
    """Plain shares of two shufflers are uniform whatever the report: the third share is under the server's key."""
    parts = Peos(small_plan(3)).split(np.full(4000, 12345, dtype=np.uint64))
    total = sum(np.frombuffer(part.tobytes(), dtype="<u8") for part in parts[1:])
    counts = np.bincount((np.asarray(total) >> np.uint64(60)).astype(np.int64), minlength=16)
    assert counts_fit(dict(enumerate(counts.tolist())), dict.fromkeys(range(16), 250.0))


class Constant(Peos):
    """A shuffler that draws the same share for every fake."""

    def _fakes(self, attempt: Attempt) -> Elements:
        return np.full(self.plan.fakes, 2**63, dtype=np.uint64)


@pytest.mark.parametrize("dishonest", [(0,), (1,), (0, 2)])
def test_fakes_are_uniform_if_one_shuffler_is_honest(dishonest: tuple[int, ...]) -> None:
    plan = small_plan(3, fakes=1600)
    parties = [(Constant if i in dishonest else Peos)(plan) for i in range(3)]
    seen = walk(parties, drawn(1))
    assert seen.elements is not None
    counts = np.bincount((seen.elements >> np.uint64(60)).astype(np.int64), minlength=16)
    assert counts_fit(dict(enumerate(counts.tolist())), dict.fromkeys(range(16), 1601 / 16))


def test_fakes_are_not_uniform_if_nobody_is_honest() -> None:
    plan = small_plan(3, fakes=1600)
    seen = walk([Constant(plan) for _ in range(3)], drawn(1))
    assert seen.elements is not None
    counts = np.bincount((seen.elements >> np.uint64(60)).astype(np.int64), minlength=16)
    assert not counts_fit(dict(enumerate(counts.tolist())), dict.fromkeys(range(16), 1601 / 16))


def test_a_key_for_another_ring_is_refused() -> None:
    keys = {"server": small_keys(32)[0].to_json()}
    with pytest.raises(WireError, match="32 bits"):
        Peos(small_plan(3, keys=keys))


def test_invalid_outcome_names_the_party() -> None:
    server = Peos(small_plan(3), small_keys()[1])
    size = small_keys()[0].size
    with pytest.raises(PartyError, match="shuffler-2 handed over what cannot be opened"):
        server.combine({1: np.full(size, 7, dtype=np.uint8), 2: np.zeros(8, dtype=np.uint8)})


def test_one_device_cannot_stop_the_run() -> None:
    """What a device sent in the place of a ciphertext is left out; the other reports are as they were."""
    public, secret = small_keys()
    plan, reports = small_plan(3, fakes=7), drawn(300)
    parties = [Peos(plan) for _ in range(3)]
    odd = next(x for x in range(2, 100) if gmpy2.jacobi(x, public.modulus) == 1)  # nobody else can tell

    class Garbling(Peos):
        def split(self, elements: Elements) -> list[NDArray[np.uint8]]:
            first, *others = super().split(elements)
            first = first.copy()
            first[5] = np.frombuffer(odd.to_bytes(public.size), dtype=np.uint8)
            return [first, *others]

    seen = walk([Garbling(plan), *parties[1:]], reports)
    assert seen.elements is not None
    expected = np.concatenate([np.delete(reports, 5), fakes_of(3, 7)])
    assert sorted(seen.elements.tolist()) == sorted(expected.tolist())
    assert secret.public == public


def test_the_server_needs_the_plan_s_secret_key() -> None:
    with pytest.raises(WireError, match="does not belong"):
        Peos(small_plan(3), small_keys(32)[1]).combine({})


def test_fakes_with_guarantees_need_64_bits(tmp_path: Path) -> None:
    """Of 32 bits fakes are less even than the accountant takes them for."""
    places = [Address("127.0.0.1", 7000 + i) for i in range(3)]
    for fakes, planned in ((None, 50), (50, 0)):
        study = Histogram(GRR(2.0, 4), shuffler=Shuffler(1000, 1e-6, planned))
        with pytest.raises(ParameterError, match="64 bits"):
            make_folder(tmp_path, study, places, collection="c", fakes=fakes, ring=32, bits=512)


def test_orders_have_256_bits_in_large_moduli(tmp_path: Path) -> None:
    places = [Address("127.0.0.1", 7000 + i) for i in range(3)]
    plan = make_folder(tmp_path / "p", Histogram(GRR(2.0, 4)), places, collection="c", bits=1024)
    assert plan.keys["server"]["order_bits"] == 256
