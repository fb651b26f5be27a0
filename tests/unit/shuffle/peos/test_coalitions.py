"""Views of every tolerated coalition of PEOS, with and without the server: no link between sender and report."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.in_memory import Seen, secret_of, small_keys, small_plan, walk

from veil.entropy import Keyed
from veil.shuffle.peos import Peos, Schedule
from veil.shuffle.protocol import OUTCOME, Attempt

Elements = NDArray[np.uint64]


class Keeping(Peos):
    """A rival whose hiders do not split what they have anew: parts are zero, and they keep everything."""

    async def _reshare(self, one: Any, attempt: Attempt, state: Any, source: Any) -> None:
        class Zeros:
            def words(self, count: int) -> Elements:
                return np.zeros(count, dtype=np.uint64)

        await super()._reshare(one, attempt, state, Zeros())  # type: ignore[arg-type]


def rank(rows: NDArray[np.uint8]) -> int:
    """The rank of a matrix of bits, modulo 2."""
    left, found = rows.copy(), 0
    for column in range(left.shape[1]):
        pivots = np.flatnonzero(left[found:, column])
        if len(pivots):
            left[[found, found + pivots[0]]] = left[[found + pivots[0], found]]
            others = np.flatnonzero(left[:, column])
            left[others[others != found]] ^= left[found]
            found += 1
    return found


def links(seen: Seen, shufflers: int, corrupt: tuple[int, ...], *, server: bool, fakes: int) -> int:
    """How many linear relations hold between what a coalition saw before and after a round of honest hiders.

    All vectors are put into people's first order, by all permutations: those of honest rounds too, which the coalition
    does not know. If what it saw before and after were tied together in any linear way, the lowest bits would be as
    well; with the true order in hand that shows. Where the server is in it, ciphertexts are decrypted.
    """
    schedule, rows = Schedule(shufflers), len(seen.initial[1]) + fakes
    barrier = next(one.number for one in schedule.rounds if not set(one.hiders) & set(corrupt))
    orders = [np.arange(rows)]
    for one in schedule.rounds:
        orders.append(orders[-1][seen.orders[one.hiders[0], one.number]])
    before, after = [], []

    def add(vector: NDArray[np.uint8], round_number: int, more: Elements | None = None) -> None:
        plain = len(vector) == 8 * (rows - (0 if more is None else fakes))
        if not plain and not server:
            return
        width = small_keys()[0].size
        numbers = (
            np.frombuffer(vector.tobytes(), "<u8") if plain else small_keys()[1].decrypt_all(vector.reshape(-1, width))
        )
        placed = np.empty(rows, dtype=np.uint64)
        placed[orders[round_number]] = numbers if more is None else np.concatenate([numbers, more])
        (before if round_number <= barrier else after).append((placed & np.uint64(1)).astype(np.uint8))

    for party in corrupt:
        add(seen.initial[party].reshape(-1), 0, Keyed(secret_of(party)).words(fakes))
    for (sender, receiver, label), vector in seen.vectors.items():
        concerns = {sender, receiver} & set(corrupt) or (server and receiver == -1)
        if concerns and len(vector) != 32:  # not the seeds of permutations
            add(vector, len(schedule.rounds) if label == OUTCOME else (label >> 4) + (label & 15 == 3))
    if not before or not after:
        return 0
    sides = [np.array(side).T for side in (before, after)]
    both = np.hstack(sides)
    assert rows > both.shape[1] + 60  # chance relations have probability 2^-60
    return rank(sides[0]) + rank(sides[1]) - rank(both)


def linked(kind: type[Peos], shufflers: int, people: int, fakes: int) -> list[tuple[tuple[int, ...], bool]]:
    """The coalitions that can link."""
    reports = np.random.default_rng(5).integers(0, 2**64, people, dtype=np.uint64)
    seen = walk([kind(small_plan(shufflers, fakes)) for _ in range(shufflers)], reports)
    sizes = range(1, Schedule(shufflers).tolerated + 1)
    every = [corrupt for size in sizes for corrupt in combinations(range(shufflers), size)]
    return [
        (corrupt, server)
        for corrupt in every
        for server in (False, True)
        if links(seen, shufflers, corrupt, server=server, fakes=fakes)
    ]


@pytest.mark.parametrize(("shufflers", "people"), [(3, 200), (5, 400)])
def test_tolerated_coalitions_find_no_links(shufflers: int, people: int) -> None:
    assert linked(Peos, shufflers, people, fakes=20) == []


def test_coalitions_find_links_without_fresh_shares() -> None:
    assert linked(Keeping, 3, 200, fakes=20) == [((0,), True)]
