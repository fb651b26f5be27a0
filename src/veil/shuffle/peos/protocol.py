"""PEOS between parties: the computations of devices, shufflers and the server (thesis 9.5, Algorithm 5).

A report is split into r shares that add up to it modulo 2^l. The first shuffler gets its share under the server's key,
the others get theirs in the clear. Each shuffler adds one share of each of the n_r fakes: as long as one of them draws
uniformly, the fakes are uniform, whatever the others draw. (More than r - t that deviate together see the others'
shares in the first round, and could choose theirs after that.) `schedule` assigns the roles of each round.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Batch, Keyed
from veil.errors import PartyError, WireError
from veil.shuffle.peos.dgk import PublicKey, RandomizerPool, SecretKey
from veil.shuffle.peos.schedule import HidingRound, Schedule
from veil.shuffle.plan import CollectionPlan
from veil.shuffle.protocol import Attempt, Bytes, Elements, Protocol

Filling = asyncio.Future[None]
"""Work on randomizers that are not needed yet."""

_SEED_BYTES = 32
_SOME = 512
"""Ciphertexts that are renewed and sent at once: about a fifth of a second of work."""

_MOST_OPEN = 0.99
"""Devices may send what only the server can tell from a ciphertext. A few such reports are left out: were they to stop
the run, one device could. Where more do not open, it was a shuffler."""

_HIDE, _SEED, _RESHARE = 1, 2, 3


def permutation(seed: bytes, count: int) -> NDArray[np.intp]:
    """The permutation that a group agreed on: the order of `count` random keys of 128 bits.

    Uniform but for two keys that are equal, whose probability is below count^2 / 2^129.

    >>> sorted(permutation(bytes(32), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    keys = Keyed(seed).words(2 * count)
    return np.lexsort((keys[:count], keys[count:]))


class ShufflerState:
    """What one shuffler has in its hands: a share of each report and fake, for the holder beside the ciphertexts."""

    def __init__(self, ring: int, shares: Elements, ciphertexts: Bytes | None = None) -> None:
        self._mask = np.uint64((1 << ring) - 1)
        self.shares = shares & self._mask
        self.ciphertexts = ciphertexts

    def split(self, parts: int, source: Batch) -> list[Elements]:
        """The shares, split into so many vectors that add up to them; the last is what random ones leave."""
        drawn = [source.words(len(self.shares)) & self._mask for _ in range(parts - 1)]
        rest = self.shares - sum(drawn, start=np.zeros_like(self.shares))
        return [*drawn, rest & self._mask]

    def add(self, others: list[Elements]) -> None:
        """Add vectors to the shares."""
        self.shares = (self.shares + sum(others, start=np.zeros_like(self.shares))) & self._mask

    def permute(self, order: NDArray[np.intp]) -> None:
        """Put everything into a new order."""
        self.shares = self.shares[order]
        if self.ciphertexts is not None:
            self.ciphertexts = self.ciphertexts[order]


class Peos(Protocol):
    """Private encrypted oblivious shuffle.

    No minority of shufflers, the server among them or not, learns who sent which report; fakes are uniform as long
    as one shuffler is honest about its share of them.
    """

    name: ClassVar[str] = "peos"

    def __init__(self, plan: CollectionPlan, secret: SecretKey | None = None, *, renewing: bool = True) -> None:
        super().__init__(plan)
        self._schedule = Schedule(len(plan.shufflers))
        self._secret = secret
        self._renewing = renewing  # without it, ciphertexts can be followed through the shuffle: for a test alone
        self._key = PublicKey.from_json(plan.keys.get("server"))
        if self._key.ring != plan.ring:
            raise WireError(f"the plan's key is for {self._key.ring} bits, its reports have {plan.ring}")

    @cached_property
    def _width(self) -> int:
        return self.plan.ring // 8

    # -- on the device -------------------------------------------------------------------------------------------------

    def share_size(self, shuffler: int) -> int:
        return self._width if shuffler else self._key.size

    def check_shares(self, shuffler: int, shares: Bytes) -> None:
        if not shuffler:
            self._key.check(shares)

    def split(self, reports: Elements) -> list[Bytes]:
        source = Batch()
        first, *others = ShufflerState(self.plan.ring, reports).split(len(self.plan.shufflers), source)
        return [self._key.encrypt_all(first, source), *(self._written(share) for share in others)]

    def _written(self, shares: Elements) -> Bytes:
        return shares.astype(f"<u{self._width}").view(np.uint8).reshape(-1, self._width)

    def _read(self, data: Bytes) -> Elements:
        return np.frombuffer(data.tobytes(), dtype=f"<u{self._width}").astype(np.uint64)

    # -- at a shuffler -------------------------------------------------------------------------------------------------

    async def shuffle(self, attempt: Attempt) -> None:
        source, pool = Batch(), RandomizerPool(self._key)
        state = self._begin(attempt)
        # all who will renew ciphertexts prepare for it at once, not one after the other when their turn comes
        rows = len(state.shares) if attempt.index <= self._schedule.tolerated else 0
        filling = asyncio.ensure_future(self._fill(pool, rows))
        try:
            for one in self._schedule.rounds:
                await self._hide(one, attempt, state, source, pool, filling)
                if attempt.index in one.hiders:
                    attempt.stage(f"round {one.number}: permuting")
                    state.permute(permutation(await self._agreed(one, attempt), len(state.shares)))
                if not one.last:
                    await self._reshare(one, attempt, state, source)
            if attempt.index in self._schedule.last_hiders:
                attempt.stage("handing over to the server")
                await attempt.hand_over(self._outcome(state, pool, filling))
        finally:
            filling.cancel()

    async def _fill(self, pool: RandomizerPool, rows: int) -> None:
        for start in range(0, rows, _SOME):
            await asyncio.to_thread(pool.fill, min(_SOME, rows - start))

    def _begin(self, attempt: Attempt) -> ShufflerState:
        """People's shares, and behind them this shuffler's shares of the fakes: the same in every attempt."""
        attempt.stage("taking shares")
        fakes = self._fakes(attempt)
        if attempt.index:
            return ShufflerState(self.plan.ring, np.concatenate([self._read(attempt.shares), fakes]))
        # an encryption of 0 and the share beside it is as good as an encryption of the share: it is renewed before
        # anybody else sees it
        ciphertexts = np.concatenate([attempt.shares, self._key.trivial(self.plan.fakes)])
        offsets = np.concatenate([np.zeros(attempt.people, dtype=np.uint64), fakes])
        return ShufflerState(self.plan.ring, offsets, ciphertexts)

    def _fakes(self, attempt: Attempt) -> Elements:
        """One shuffler's share of each fake."""
        return Keyed(attempt.secret).words(self.plan.fakes)

    async def _hide(
        self,
        one: HidingRound,
        attempt: Attempt,
        state: ShufflerState,
        source: Batch,
        pool: RandomizerPool,
        filling: Filling,
    ) -> None:
        """Seekers pass on what they have; hiders add up what they get."""
        attempt.stage(f"round {one.number}: hiding")
        label, own = one.number << 4 | _HIDE, attempt.index
        if own not in one.hiders:
            *parts, rest = state.split(len(one.hiders), source)
            heir, others = one.hiders[0], one.hiders[1:]
            sends = [attempt.send(to, label, self._written(part)) for to, part in zip(others, parts, strict=True)]
            if own == one.holder:
                state.shares = rest
                sends.append(attempt.stream(heir, label, self._renewed(state, pool, filling)))
            else:
                sends.append(attempt.send(heir, label, self._written(rest)))
            await asyncio.gather(*sends)
            state.shares, state.ciphertexts = np.zeros_like(state.shares), None
            return
        seekers = [i for i in range(len(self.plan.shufflers)) if i not in one.hiders]
        passing = one.holder if one.hands_over and own == one.heir else None
        rows = len(state.shares)
        sizes = {i: rows * (self._key.size if i == passing else self._width) for i in seekers}
        got = await asyncio.gather(*(attempt.receive(i, label, size) for i, size in sizes.items()))
        found = dict(zip(seekers, got, strict=True))
        if passing is not None:
            state.ciphertexts = found.pop(passing).reshape(rows, self._key.size)
        state.add([self._read(data) for data in found.values()])

    async def _agreed(self, one: HidingRound, attempt: Attempt) -> bytes:
        """A seed that all hiders contributed to, each before it saw the others' parts."""
        label, own = one.number << 4 | _SEED, os.urandom(_SEED_BYTES)
        others = [i for i in one.hiders if i != attempt.index]
        drawn = np.frombuffer(own, dtype=np.uint8)
        await asyncio.gather(*(attempt.send(i, label, drawn) for i in others))
        got = await asyncio.gather(*(attempt.receive(i, label, _SEED_BYTES) for i in others))
        seeds = {attempt.index: own, **{i: seed.tobytes() for i, seed in zip(others, got, strict=True)}}
        return hashlib.sha256(b"".join(seeds[i] for i in one.hiders)).digest()

    async def _reshare(self, one: HidingRound, attempt: Attempt, state: ShufflerState, source: Batch) -> None:
        """Each hider splits what it has among all; everybody adds up."""
        attempt.stage(f"round {one.number}: sharing again")
        label, own, many = one.number << 4 | _RESHARE, attempt.index, len(self.plan.shufflers)
        sends = []
        if own in one.hiders:
            *parts, state.shares = state.split(many, source)
            others = [i for i in range(many) if i != own]
            sends = [attempt.send(i, label, self._written(part)) for i, part in zip(others, parts, strict=True)]
        size = len(state.shares) * self._width
        receives = [attempt.receive(i, label, size) for i in one.hiders if i != own]
        results = await asyncio.gather(*sends, *receives)
        state.add([self._read(data) for data in results[len(sends) :] if data is not None])

    async def _renewed(self, state: ShufflerState, pool: RandomizerPool, filling: Filling) -> AsyncIterator[Bytes]:
        """Fresh encryptions of what the holder has, some at a time."""
        assert state.ciphertexts is not None
        await filling
        for start in range(0, len(state.shares), _SOME):
            rows = slice(start, start + _SOME)
            yield await asyncio.to_thread(self._renew, state.ciphertexts[rows], state.shares[rows], pool)

    def _renew(self, ciphertexts: Bytes, offsets: Elements, pool: RandomizerPool) -> Bytes:
        if self._renewing:
            return self._key.renewed(ciphertexts, offsets, pool).reshape(-1)
        return self._key.shifted(ciphertexts, offsets).reshape(-1)

    async def _outcome(self, state: ShufflerState, pool: RandomizerPool, filling: Filling) -> AsyncIterator[Bytes]:
        if state.ciphertexts is None:
            yield self._written(state.shares).reshape(-1)
        else:
            async for piece in self._renewed(state, pool, filling):
                yield piece

    # -- at the server -------------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        return len(self._schedule.rounds)

    def outcome_size(self, shuffler: int) -> int:
        holder, *others = self._schedule.last_hiders
        return self._key.size if shuffler == holder else self._width if shuffler in others else 0

    def combine(self, outcomes: Mapping[int, Bytes]) -> Elements:
        if self._secret is None or self._secret.public.to_json() != self._key.to_json():
            raise WireError("the server's secret key does not belong to the plan's public key")
        holder, *others = self._schedule.last_hiders
        plaintexts, opened = self._secret.decrypt_each(outcomes[holder].reshape(-1, self._key.size))
        if opened.mean() < _MOST_OPEN:
            raise PartyError(self.plan.names[holder], "handed over what cannot be opened")
        state = ShufflerState(self.plan.ring, plaintexts)
        state.add([self._read(outcomes[i]) for i in others])
        return state.shares[opened]
