"""Sources of randomness. Mechanisms see only decided draws: coins, and integers below m.

`coin` is true with probability threshold / 2^64, `coin_bits` is many such coins packed into bytes, `below` is exactly
uniform by rejection. The byte rules behind them (docs/wire-format.md) are what every other language reproduces.

    Words                 the given bytes, and no more: the normative source, used by test vectors
    System                the operating system, read anew for every draw: one person's device
    Batch                 AES-256-CTR keyed with 32 fresh bytes of the operating system: many people at once
    SeededForExperiments  the same stream with a key made from a seed: simulations and tests only
    Keyed                 the same stream with a key that several parties share: permutations they agree on
    Enumerated            every outcome with its exact probability: proofs (see `outcomes`)

No noise is drawn twice. Sources refuse copy, deepcopy and pickle. A stream belongs to the process that began it: in a
forked child `Batch` and its chunks continue with a fresh key of the operating system, and sources whose draws are fixed
(`Words`, `SeededForExperiments`, `Keyed`) refuse, because a second process would repeat the draws of the first.
"""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Never, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from veil.errors import EntropyError, ParameterError
from veil.privacy import WORD
from veil.tools.processes import process_mark

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

__all__ = [
    "CHUNK_ROWS",
    "Batch",
    "Enumerated",
    "Keyed",
    "SeededForExperiments",
    "Source",
    "System",
    "Words",
    "check_seed",
    "outcomes",
]

CHUNK_ROWS = 65_536
"""Rows that share one stream: results depend on this number, not on threads or on how a file is split."""

_WORD_BYTES = 8
_KEY_BYTES = 32
_LANES = 64
_WORTH_A_KERNEL = 1 << 12  # draws: one person's device does not load compiled code for a handful
_ALL_LANES = np.uint64(WORD - 1)

Bools = NDArray[np.bool_]
U64 = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Outcome = TypeVar("Outcome", bound=Hashable)
Result = TypeVar("Result")


class Source(ABC):
    """Decided draws from a stream of uniform 64-bit words. Refuses copy and pickle: a copy would repeat the draws."""

    def __reduce_ex__(self, protocol: object) -> Never:
        raise EntropyError(
            f"{type(self).__name__}: a source of randomness cannot be copied or pickled, because the copy would draw"
            " the same noise; make another source"
        )

    @abstractmethod
    def words(self, count: int) -> U64:
        """The next `count` words (8 bytes each, little-endian)."""

    def chunks(self, rows: int) -> Iterator[tuple[slice, Source]]:
        """Cut `rows` into chunks of CHUNK_ROWS, each with the source to use for it."""
        for start in range(0, rows, CHUNK_ROWS):
            yield slice(start, min(start + CHUNK_ROWS, rows)), self

    def each_chunk(self, rows: int, work: Callable[[slice, Source], Result]) -> list[Result]:
        """work(rows, source) for every chunk, in order."""
        return [work(*chunk) for chunk in self.chunks(rows)]

    @overload
    def coin(self, threshold: int) -> bool: ...
    @overload
    def coin(self, threshold: int, count: int) -> Bools: ...
    def coin(self, threshold: int, count: int | None = None) -> bool | Bools:
        """True with probability threshold / 2^64: one word each, word < threshold.

        >>> Words(bytes(8)).coin(1), Words(b"\\xff" * 8).coin(2**63)
        (True, False)
        """
        _check_threshold(threshold)
        words = self.words(1 if count is None else count)
        heads = np.ones(len(words), dtype=np.bool_) if threshold == WORD else words < np.uint64(threshold)
        return bool(heads[0]) if count is None else heads

    def coin_bits(self, threshold: int, rows: int, width: int) -> Bytes:
        """`width` coins for each of `rows` rows, packed: bit i of a row is bit i % 8 of its byte i // 8.

        The coins are compared with the threshold bit by bit, 64 lanes at a time, and a block stops drawing as soon as
        all its lanes are decided: the distribution of `coin`, for about an eighth of the words.
        """
        _check_threshold(threshold)
        blocks = -(-width // _LANES)
        lanes = np.full((rows, blocks), _ALL_LANES)
        if width % _LANES:
            lanes[:, -1] = np.uint64((1 << width % _LANES) - 1)
        heads = lanes.copy().ravel() if threshold == WORD else self._compare_lanes(threshold, lanes.ravel())
        packed = heads.astype("<u8").view(np.uint8).reshape(rows, blocks * _WORD_BYTES)
        return packed[:, : -(-width // 8)]

    def _compare_lanes(self, threshold: int, lanes: U64) -> U64:
        """For every set lane: is its random word below the threshold? Bits are drawn from the highest down."""
        from veil.kernels.draws import compare_bit

        heads, undecided = np.zeros_like(lanes), lanes.copy()
        blocks = np.arange(len(lanes), dtype=np.intp)
        still_open = len(lanes)
        for position in range(_LANES - 1, -1, -1):
            if not threshold & ((2 << position) - 1) or not still_open:
                break  # nothing below an all-zero rest: the words still equal are not below the threshold
            bit = bool(threshold >> position & 1)
            still_open = compare_bit(self.words(still_open), bit, blocks, undecided, heads)
        return heads

    @overload
    def below(self, bound: int) -> int: ...
    @overload
    def below(self, bound: int | U64, count: int) -> U64: ...
    def below(self, bound: int | U64, count: int | None = None) -> int | U64:
        """Exactly uniform on 0 .. bound - 1; an array of bounds gives each draw its own, in turn.

        Words at or above the largest multiple of the bound are rejected and drawn again, then taken modulo the bound.

        >>> Words((12).to_bytes(8, "little")).below(5)
        2
        """
        bounds = _check_bounds(bound, 1 if count is None else count)
        if isinstance(bounds, int):
            drawn = self._below_scalar(bounds, 1 if count is None else count)
        else:
            drawn = self._below_each(bounds, 1 if count is None else count)
        return int(drawn[0]) if count is None else drawn

    def _below_scalar(self, bound: int, count: int) -> U64:
        words = self.words(count)
        if bound == WORD:
            return words
        if bound & (bound - 1):
            limit = np.uint64(WORD // bound * bound)
            rejected = np.flatnonzero(words >= limit)
            while len(rejected):
                words[rejected] = self.words(len(rejected))
                rejected = rejected[words[rejected] >= limit]
        words %= np.uint64(bound)
        return words

    def _below_each(self, bounds: U64, count: int) -> U64:
        words = self.words(count)
        if count >= _WORTH_A_KERNEL:
            from veil.kernels.draws import remainders

            drawn = np.empty_like(words)
            if not remainders(words, bounds, np.uint64(WORD - 1) // bounds, drawn):
                return drawn
        # A word is rejected in the last, incomplete run of length b below 2^64: above 2^64 - 1 - (2^64 mod b). Hardly
        # any lies within b of 2^64, and only for those is the remainder worked out: 2^64 mod b is (2^64 - b) mod b.
        each = np.tile(bounds, count // len(bounds)) if count else bounds
        places = np.flatnonzero(words >= np.uint64(0) - each)
        while len(places):
            rest = (np.uint64(0) - each[places]) % each[places]
            places = places[words[places] > ~rest]
            words[places] = self.words(len(places))
        words %= each
        return words

    def token(self, size: int) -> bytes:
        """`size` random bytes (a multiple of 8), for identifiers that carry no information."""
        return self.words(size // _WORD_BYTES).astype("<u8").tobytes()


class Words(Source):
    """The words of a given byte string, in order. Ends with an EntropyError."""

    def __init__(self, data: bytes) -> None:
        if len(data) % _WORD_BYTES:
            raise ParameterError("entropy is given in words of 8 bytes")
        self._words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
        self._process = process_mark()
        self.used = 0
        """How many words have been drawn."""

    def words(self, count: int) -> U64:
        if count and self._process != process_mark():  # of no words nothing repeats
            _refuse_fork()
        if self.used + count > len(self._words):
            raise EntropyError(f"the given entropy of {len(self._words)} words is used up")
        self.used += count
        return self._words[self.used - count : self.used].copy()


class System(Source):
    """The operating system's generator: what a person's device uses."""

    def words(self, count: int) -> U64:
        return np.frombuffer(bytearray(os.urandom(_WORD_BYTES * count)), dtype="<u8").astype(np.uint64, copy=False)


class _Stream:
    """The stream of one chunk of a key, for all threads of one process; a key's own stream is that of chunk 0."""

    def __init__(self, key: bytes, chunk: int = 0) -> None:
        self.process = process_mark()
        self.key = key
        self._chunk = chunk
        self._lock = threading.Lock()  # a forked child makes a new stream, so that it never waits for its parent's lock
        self._context: CipherContext | None = None
        self._next_chunk = 1

    def words(self, count: int) -> U64:
        with self._lock:
            if self._context is None:
                self._context = _key_stream(self.key, self._chunk)
            return _stream_words(self._context, count)

    def take_chunk(self) -> int:
        """Return the number of a chunk that was not given to anybody before."""
        with self._lock:  # no two threads may get the same stream
            self._next_chunk += 1
            return self._next_chunk - 1


class _OneProcess(Source):
    """Draws from a stream that belongs to the process that began it."""

    def __init__(self, stream: _Stream, renew: Callable[[], bytes]) -> None:
        self._stream, self._renew = stream, renew

    def _own_stream(self) -> _Stream:
        """Return this process's stream. A forked child has the parent's at first, and gets one with another key.

        Two threads of a child that get here at once make two streams, each with a fresh key: nothing repeats.
        """
        stream = self._stream
        if stream.process != process_mark():
            stream = self._stream = _Stream(self._renew())
        return stream

    def words(self, count: int) -> U64:
        return self._own_stream().words(count)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"  # never the key


def _fresh_key() -> bytes:
    return os.urandom(_KEY_BYTES)


def _refuse_fork() -> Never:
    raise EntropyError(
        "this source was made in another process, and its draws are fixed: here it would repeat them. Make a source in"
        " each process, with a seed of its own"
    )


class Batch(_OneProcess):
    """AES-256-CTR keyed with 32 fresh bytes of the operating system: for many people at once.

    Each chunk of rows has the high half of the counter block to itself, so streams never meet. In a forked child the
    source and its chunks continue with a fresh key.
    """

    def __init__(self) -> None:
        super().__init__(_Stream(_fresh_key()), _fresh_key)

    def chunks(self, rows: int) -> Iterator[tuple[slice, Source]]:
        for start in range(0, rows, CHUNK_ROWS):
            stream = self._own_stream()
            chunk = _OneProcess(_Stream(stream.key, stream.take_chunk()), self._renew)
            yield slice(start, min(start + CHUNK_ROWS, rows)), chunk

    def each_chunk(self, rows: int, work: Callable[[slice, Source], Result]) -> list[Result]:
        from veil.kernels.parallel import in_order

        # every chunk has a stream of its own, so they may run side by side
        return in_order(lambda chunk: work(*chunk), list(self.chunks(rows)))


class _Fixed(Batch):
    """The stream of `Batch` with a given key. Its draws are fixed, so a forked child refuses to repeat them."""

    def __init__(self, key: bytes) -> None:
        _OneProcess.__init__(self, _Stream(key), _refuse_fork)


class SeededForExperiments(_Fixed):
    """The stream of `Batch` with a key made from a seed. Never on a device: whoever knows the seed knows the answers.

    >>> SeededForExperiments(7).below(100, 3).tolist() == SeededForExperiments(7).below(100, 3).tolist()
    True
    """

    def __init__(self, seed: int) -> None:
        super().__init__(hashlib.sha256(f"veil.seeded:{check_seed(seed)}".encode()).digest())

    def replays(self, rows: int) -> Callable[[], Iterator[tuple[slice, Source]]]:
        """Take the chunks of `rows`. Returns a function that yields them from their beginning at every call.

        >>> again = SeededForExperiments(7).replays(1)
        >>> next(again())[1].below(100) == next(again())[1].below(100)
        True
        """
        taken = [(part, self._own_stream().take_chunk()) for part, _ in Source.chunks(self, rows)]

        def chunks() -> Iterator[tuple[slice, Source]]:
            for part, chunk in taken:
                yield part, _OneProcess(_Stream(self._own_stream().key, chunk), self._renew)

        return chunks


class Keyed(_Fixed):
    """The stream of `Batch` with a key of 32 secret bytes: what parties that share the bytes draw alike.

    >>> Keyed(bytes(32)).words(2).tolist() == Keyed(bytes(32)).words(2).tolist()
    True
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES:
            raise ParameterError("a key of a source has 32 bytes")
        super().__init__(key)


def check_seed(seed: int) -> int:
    """A seed, or a refusal of what is none."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError("a seed is an integer of at least 0")
    return int(seed)


def _key_stream(key: bytes, chunk: int) -> CipherContext:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    nonce = chunk.to_bytes(8, "big") + bytes(8)
    return Cipher(AES(key), CTR(nonce)).encryptor()


def _stream_words(stream: CipherContext, count: int) -> U64:
    # In place over zeros: the key stream itself, with one pass over the memory less than encrypting a constant.
    buffer = np.zeros(count, dtype="<u8")
    if count:
        view = buffer.view(np.uint8).data
        stream.update_into(view, view)
    return buffer.astype(np.uint64, copy=False)


class Enumerated(Source):
    """Follows a recorded path of decisions, and beyond its end always takes the first branch that is possible.

    `outcomes` drives it. It branches over coins and draws, not over words, and multiplies exact fractions.
    """

    MOST_BRANCHES = 1 << 20

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.branches: list[int] = []
        self.probability = Fraction(1)

    def words(self, count: int) -> U64:
        raise EntropyError("an enumerated source has decisions, not words")

    def _decide(self, weights: list[Fraction] | None, uniform: int = 0) -> int:
        depth = len(self.branches)
        possible = [i for i, w in enumerate(weights) if w] if weights is not None else None
        fan = uniform if possible is None else len(possible)
        if fan > self.MOST_BRANCHES:
            raise EntropyError(f"a draw with {fan} outcomes is too wide to enumerate")
        if depth == len(self.path):
            self.path.append(0)
        self.branches.append(fan)
        taken = self.path[depth]
        if possible is None or weights is None:
            self.probability /= uniform
            return taken
        self.probability *= weights[possible[taken]]
        return possible[taken]

    def _toss(self, threshold: int) -> bool:
        _check_threshold(threshold)
        heads = Fraction(threshold, WORD)
        return bool(self._decide([1 - heads, heads]))

    @overload
    def coin(self, threshold: int) -> bool: ...
    @overload
    def coin(self, threshold: int, count: int) -> Bools: ...
    def coin(self, threshold: int, count: int | None = None) -> bool | Bools:
        if count is None:
            return self._toss(threshold)
        return np.array([self._toss(threshold) for _ in range(count)], dtype=np.bool_)

    def coin_bits(self, threshold: int, rows: int, width: int) -> Bytes:
        bits = [[self._toss(threshold) for _ in range(width)] for _ in range(rows)]
        return np.packbits(np.array(bits, dtype=np.bool_).reshape(rows, width), axis=1, bitorder="little")

    @overload
    def below(self, bound: int) -> int: ...
    @overload
    def below(self, bound: int | U64, count: int) -> U64: ...
    def below(self, bound: int | U64, count: int | None = None) -> int | U64:
        bounds = _check_bounds(bound, 1 if count is None else count)
        turns = [bounds] if isinstance(bounds, int) else bounds.tolist()
        each = turns * ((1 if count is None else count) // max(len(turns), 1))
        drawn = np.array([self._decide(None, int(b)) for b in each], dtype=np.uint64)
        return int(drawn[0]) if count is None else drawn


def outcomes(experiment: Callable[[Source], Outcome]) -> dict[Outcome, Fraction]:
    """Every outcome of an experiment with its exact probability, by running it once for each path of decisions.

    >>> outcomes(lambda source: source.coin(2**62) or source.coin(2**63))
    {False: Fraction(3, 8), True: Fraction(5, 8)}
    """
    found: dict[Outcome, Fraction] = {}
    path: list[int] = []
    while True:
        source = Enumerated(path)
        outcome = experiment(source)
        found[outcome] = found.get(outcome, Fraction(0)) + source.probability
        while path and path[-1] + 1 == source.branches[len(path) - 1]:
            path.pop()
        if not path:
            return found
        path[-1] += 1


def _check_threshold(threshold: int) -> None:
    if not 0 <= threshold <= WORD:
        raise ParameterError("a coin's threshold lies between 0 and 2^64")


def _check_bounds(bound: int | U64, count: int) -> int | U64:
    if isinstance(bound, np.ndarray):
        if (count % len(bound) if len(bound) else count) or (count and not bound.min()):
            raise ParameterError("draws take bounds of at least 1 in turn, as often as there are draws")
        return bound.astype(np.uint64, copy=False)[: count or None]
    if not 1 <= bound <= WORD:
        raise ParameterError("a draw's bound lies between 1 and 2^64")
    return int(bound)
