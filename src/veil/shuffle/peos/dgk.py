"""DGK: additively homomorphic encryption of integers modulo 2^32 or 2^64, with full decryption.

Damgard, Geisler and Kroigaard 2008/2009, with full decryption by Pohlig and Hellman as in the thesis (9.5.1). A modulus
N = p q has p - 1 = 2^l v_p c_p and q - 1 = 2^l v_q c_q; g has order 2^l v_p v_q, h has order v_p v_q, and

    Enc(m) = g^m h^r mod N,    r uniform of 2 t + 128 bits, where v_p and v_q are primes of t bits

so that h^r is uniform in its group but for 2^-128. Products of ciphertexts are encryptions of sums modulo 2^l.
Decryption: c^(v_p) mod p is a power of an element of order 2^l, whose exponent is found a byte or two at a time.
`FixedBase` computes powers of g and h from tables.

**What is claimed.** Without the secret key, ciphertexts hide their plaintext if elements of order v_p v_q are hard to
tell from others modulo N, a subgroup decision: a stronger assumption than the hardness of factoring, which the thesis
names. Parties follow the protocol. Ciphertexts are malleable, as they must be: nobody may have foreign ciphertexts
decrypted and see the result. Python with GMP is not constant time: run the server where nobody can time it.

**What key generation takes care of.** c_p and c_q are odd: otherwise g may be a square modulo one prime only, and the
Jacobi symbol of a ciphertext, which anybody can compute, would be the plaintext's lowest bit. h is not 1 modulo either
prime: otherwise gcd(h - 1, N) is a factor. The low l bits of p and q are known to be 0...01, far fewer than it takes to
factor N from them (Coppersmith 1996: a quarter of N's bits).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Batch, Source
from veil.errors import MismatchError, ParameterError, WireError
from veil.tools.json_documents import Json, digest
from veil.tools.messages import missing_extra
from veil.tools.numbers import is_int
from veil.tools.processes import process_mark

if TYPE_CHECKING:
    from gmpy2 import mpz


Bytes = NDArray[np.uint8]
Elements = NDArray[np.uint64]
FULL_BITS = 3072
"""Bits of a modulus that is as hard to factor as AES-128 is to break (NIST SP 800-57)."""

_DIGIT, _WIDE_DIGIT = 8, 16  # bits of the plaintext that decryption finds at a time
_MANY = 5000  # ciphertexts for which tables of wide digits, 60 MB, are worth making: a seventh of the work less
_STATISTICAL = 128
_WINDOW = 10
"""Bits of a window of the tables for encryption: 27 MB, and 71 multiplications instead of 900."""

_FEW = 64  # encryptions for which tables are not worth making
_SMALLEST = 512
_ROOM_FOR_ORDERS = 1024  # bits of a modulus that has room for orders of 256 bits


def make_keys(ring: int = 64, bits: int = FULL_BITS, order_bits: int | None = None) -> tuple[PublicKey, SecretKey]:
    """A new pair of keys. Fewer `bits` than 3072 are for tests: they protect nobody.

    Two primes p = 2^l v c + 1, each with a prime v of `order_bits` bits and an odd c. Orders have 256 bits where there
    is room; with 64, 2^32 steps find the factors, which is only for a modulus that protects nobody itself.
    """
    gmpy2 = import_gmpy2()
    if ring not in (32, 64):
        raise ParameterError("plaintexts are integers of 32 or 64 bits")
    if not is_int(bits) or bits % 2 or not _SMALLEST <= bits <= 1 << 14:
        raise ParameterError(f"a modulus has an even number of bits, at least {_SMALLEST}")
    if order_bits is None:
        order_bits = 256 if bits >= _ROOM_FOR_ORDERS else 64
    if not is_int(order_bits) or not 32 <= order_bits <= bits // 2 - ring - 64:
        raise ParameterError("the orders have at least 32 bits, and leave room for 64 more beside the ring's")
    (p, v_p), (q, v_q) = _prime(ring, bits // 2, order_bits), _prime(ring, bits // 2, order_bits)
    while p == q or v_p == v_q:
        q, v_q = _prime(ring, bits // 2, order_bits)
    g = _crt(_element(p, v_p, ring, full=True), p, _element(q, v_q, ring, full=True), q)
    h = _crt(_element(p, v_p, ring, full=False), p, _element(q, v_q, ring, full=False), q)
    assert gmpy2.jacobi(g, p * q) == 1
    public = PublicKey(int(p * q), int(g), int(h), ring, order_bits)
    return public, SecretKey(public, int(p), int(v_p))


@dataclass(frozen=True)
class PublicKey:
    """What everybody encrypts with. `ring` is l, `order_bits` is t.

    >>> public, secret = make_keys(ring=64, bits=512, order_bits=64)
    >>> total = public.add(public.encrypt(2**64 - 1), public.encrypt(3))
    >>> secret.decrypt(total)
    2
    """

    modulus: int
    g: int
    h: int
    ring: int
    order_bits: int

    def __post_init__(self) -> None:
        if self.ring not in (32, 64):
            raise ParameterError("plaintexts are integers of 32 or 64 bits")
        gmpy2 = import_gmpy2()
        within = all(1 < number < self.modulus for number in (self.g, self.h))
        if not within or self.modulus.bit_length() < _SMALLEST or self.modulus % 2 == 0:
            raise ParameterError("this is not a public key: its numbers do not belong together")
        if gmpy2.jacobi(self.g, self.modulus) != 1 or gmpy2.jacobi(self.h, self.modulus) != 1:
            raise ParameterError("this public key would tell the lowest bit of what it encrypts")
        if any(gmpy2.gcd(number - 1, self.modulus) != 1 for number in (self.g, self.h)):
            raise ParameterError("this public key would tell the factors of its modulus")

    @property
    def size(self) -> int:
        """Bytes of a ciphertext."""
        return -(-self.modulus.bit_length() // 8)

    @property
    def fingerprint(self) -> str:
        """Names the key."""
        return digest(self.to_json())

    @cached_property
    def _n(self) -> mpz:
        return import_gmpy2().mpz(self.modulus)

    @cached_property
    def _powers_of_g(self) -> FixedBase:
        return FixedBase(self.g, self.modulus, self.ring, _WINDOW)

    @cached_property
    def _powers_of_h(self) -> FixedBase:
        return FixedBase(self.h, self.modulus, self._random_bits, _WINDOW)

    @property
    def _random_bits(self) -> int:
        """Bits of the randomness in a ciphertext."""
        return 2 * self.order_bits + _STATISTICAL

    # -- one at a time -------------------------------------------------------------------------------------------------

    def encrypt(self, plaintext: int, source: Source | None = None) -> bytes:
        """One ciphertext."""
        return self.encrypt_all(np.array([plaintext], dtype=np.uint64), source).tobytes()

    def add(self, ciphertext: bytes, other: bytes) -> bytes:
        """A ciphertext of the sum of two. It is as linkable to them as they are: see `renewed`."""
        return self._written(self._read(ciphertext) * self._read(other) % self._n)

    # -- many at once --------------------------------------------------------------------------------------------------

    def encrypt_all(self, plaintexts: Elements, source: Source | None = None) -> Bytes:
        """A ciphertext for each plaintext, a row of `size` bytes each."""
        fresh = RandomizerPool(self, source or Batch()).take(len(plaintexts))
        return self._rows(self._shifted(fresh, plaintexts))

    def _shifted(self, starts: Iterable[mpz], exponents: Elements) -> Iterator[mpz]:
        """start * g^exponent, for each."""
        reduced = exponents & np.uint64((1 << self.ring) - 1)
        if len(reduced) <= _FEW and "_powers_of_g" not in vars(self):
            powmod, n = import_gmpy2().powmod, self._n
            yield from (start * powmod(self.g, m, n) % n for start, m in zip(starts, reduced.tolist(), strict=True))
            return
        powers = self._powers_of_g
        for start, digits in zip(starts, powers.digits(reduced).tolist(), strict=True):
            yield powers.multiplied(start, digits)

    def renewed(self, ciphertexts: Bytes, offsets: Elements, pool: RandomizerPool) -> Bytes:
        """Fresh encryptions of each plaintext plus its offset: nobody can tell which ciphertext became which.

        Each is multiplied by g^offset h^r with a new r, so that it is distributed as a fresh encryption of the sum,
        also for whoever has the secret key.
        """
        fresh = zip(self._read_all(ciphertexts), pool.take(len(ciphertexts)), strict=True)
        return self._rows(self._shifted((number * start % self._n for number, start in fresh), offsets))

    def shifted(self, ciphertexts: Bytes, offsets: Elements) -> Bytes:
        """Encryptions of each plaintext plus its offset, with the randomness they had: only to show what that leaks."""
        return self._rows(self._shifted(self._read_all(ciphertexts), offsets))

    def trivial(self, count: int) -> Bytes:
        """Encryptions of 0 without any randomness: for what is renewed before anybody else sees it."""
        return self._rows(import_gmpy2().mpz(1) for _ in range(count))

    def randomizers(self, count: int, source: Source) -> Iterator[mpz]:
        """So many h^r, each with an r of its own; a few without tables, which a person's own device need not make."""
        if count <= _FEW and "_powers_of_h" not in vars(self):
            powmod, words = import_gmpy2().powmod, -(-self._random_bits // 64)
            for _ in range(count):
                yield powmod(self.h, int.from_bytes(source.words(words).astype("<u8").tobytes(), "little"), self._n)
            return
        powers = self._powers_of_h
        for _ in range(count):
            yield powers.multiplied(1, powers.random_digits(source.words(powers.rows)).tolist())

    def check(self, ciphertexts: Bytes) -> None:
        """Refuse rows that cannot be ciphertexts, as far as anybody can tell who lacks the secret key."""
        gmpy2 = import_gmpy2()
        for number in self._read_all(ciphertexts):
            if gmpy2.jacobi(number, self._n) != 1:  # 0 where it has a factor of the modulus
                raise WireError("this is not a ciphertext of this key")

    def _rows(self, numbers: Iterable[mpz]) -> Bytes:
        whole = b"".join(self._written(number) for number in numbers)
        return np.frombuffer(whole, dtype=np.uint8).reshape(-1, self.size)

    def _written(self, number: mpz) -> bytes:
        return bytes(number.to_bytes(self.size, "big"))

    def _read_all(self, ciphertexts: Bytes) -> Iterator[mpz]:
        return (self._read(row.tobytes()) for row in ciphertexts)

    def _read(self, ciphertext: bytes) -> mpz:
        if len(ciphertext) != self.size:
            raise WireError(f"a ciphertext of this key has {self.size} bytes")
        number = import_gmpy2().mpz.from_bytes(ciphertext, "big")
        if not 0 < number < self._n:
            raise WireError("this is not a ciphertext of this key: it is out of range")
        return number

    # -- as a document -------------------------------------------------------------------------------------------------

    def to_json(self) -> Json:
        """The key as it stands in a plan."""
        numbers = {name: f"{getattr(self, name):x}" for name in ("modulus", "g", "h")}
        return {**numbers, "ring": self.ring, "order_bits": self.order_bits}

    @classmethod
    def from_json(cls, document: Any) -> PublicKey:
        """The same backwards."""
        try:
            modulus, g, h = (int(document[name], 16) for name in ("modulus", "g", "h"))
            ring, order_bits = document["ring"], document["order_bits"]
        except (TypeError, KeyError, ValueError):
            raise WireError("a public key has modulus, g, h, ring and order_bits") from None
        if not is_int(ring) or not is_int(order_bits) or not 32 <= order_bits <= 1024:
            raise WireError("a public key has modulus, g, h, ring and order_bits")
        return cls(modulus, g, h, ring, order_bits)


class RandomizerPool:
    """Randomizers that are computed before they are needed, when there is time: encrypting is then 10 times faster.

    Each is used once: a forked child throws away those that its parent computed.
    """

    def __init__(self, key: PublicKey, source: Source | None = None) -> None:
        self._key, self._source = key, source or Batch()
        self._made: tuple[object, list[mpz]] = process_mark(), []

    @property
    def _ready(self) -> list[mpz]:
        """The randomizers that this process computed."""
        if self._made[0] != process_mark():
            self._made = process_mark(), []
        return self._made[1]

    def __len__(self) -> int:
        return len(self._ready)

    def fill(self, count: int) -> None:
        """Compute `count` randomizers, to be taken later."""
        self._ready.extend(self._key.randomizers(count, self._source))

    def take(self, count: int) -> Iterator[mpz]:
        """Yield `count` randomizers, the ready ones first."""
        waiting = self._ready
        ready = [waiting.pop() for _ in range(min(count, len(waiting)))]
        yield from ready
        yield from self._key.randomizers(count - len(ready), self._source)


@dataclass(frozen=True, repr=False)
class SecretKey:
    """What decrypts. Never printed; `public` is the key that belongs to it."""

    public: PublicKey
    p: int
    order: int

    @lru_cache(maxsize=2)  # noqa: B019  # a key is hardly ever thrown away
    def _tables(self, bits: int) -> tuple[dict[mpz, int], list[list[mpz]]]:
        """Digits of so many bits by the powers they belong to, and the powers that take a digit out again.

        With G = g^(v_p) mod p of order 2^l: G^(d 2^(l-bits)) -> d, and G^(-d 2^(bits j)) for each place j but the last.
        """
        gmpy2 = import_gmpy2()
        p, count = gmpy2.mpz(self.p), 1 << bits
        base = gmpy2.powmod(self.public.g, self.order, p)
        last = gmpy2.powmod(base, 1 << (self.public.ring - bits), p)
        known, power = {}, gmpy2.mpz(1)
        for digit in range(count):
            known[power] = digit
            power = power * last % p
        inverse, rows = gmpy2.invert(base, p), []
        for _ in range(self.public.ring // bits - 1):
            row = [gmpy2.mpz(1)]
            for _ in range(count - 1):
                row.append(row[-1] * inverse % p)
            rows.append(row)
            inverse = row[-1] * inverse % p
        return known, rows

    def decrypt(self, ciphertext: bytes) -> int:
        """The plaintext; refuses what is not a ciphertext of this key."""
        return self._opener(_DIGIT)(ciphertext)

    def decrypt_all(self, ciphertexts: Bytes) -> Elements:
        """The plaintext of each row; refuses a row that is not a ciphertext of this key."""
        plaintexts, opened = self.decrypt_each(ciphertexts)
        if not opened.all():
            raise WireError("this is not a ciphertext of this key: it does not decrypt")
        return plaintexts

    def decrypt_each(self, ciphertexts: Bytes) -> tuple[Elements, NDArray[np.bool_]]:
        """The plaintext of each row, and whether it is one: 0 where a row is not a ciphertext of this key."""
        decrypt = self._opener(_WIDE_DIGIT if len(ciphertexts) > _MANY else _DIGIT)
        plaintexts, opened = np.zeros(len(ciphertexts), dtype=np.uint64), np.ones(len(ciphertexts), dtype=np.bool_)
        for i, row in enumerate(ciphertexts):
            try:
                plaintexts[i] = decrypt(row.tobytes())
            except WireError:
                opened[i] = False
        return plaintexts, opened

    def _opener(self, bits: int) -> Callable[[bytes], int]:
        gmpy2 = import_gmpy2()
        powmod, p, order = gmpy2.powmod, gmpy2.mpz(self.p), gmpy2.mpz(self.order)
        known, inverses = self._tables(bits)
        places, step, read = self.public.ring // bits, 1 << bits, self.public._read

        def opened(ciphertext: bytes) -> int:
            # powers[i] is G^(m step^i): the last of them tells the lowest digit of m, the first the highest
            powers = [powmod(read(ciphertext) % p, order, p)]
            for _ in range(places - 1):
                powers.append(powmod(powers[-1], step, p))
            digits: list[int] = []
            for place in range(places):
                left = powers[places - 1 - place]
                for j, digit in enumerate(digits, start=places - 1 - place):
                    left = left * inverses[j][digit] % p
                if left not in known:
                    raise WireError("this is not a ciphertext of this key: it does not decrypt")
                digits.append(known[left])
            return sum(digit << bits * place for place, digit in enumerate(digits))

        return opened

    def to_json(self) -> Json:
        """The key as it stands in its file."""
        return {**self.public.to_json(), "p": f"{self.p:x}", "order": f"{self.order:x}"}

    @classmethod
    def from_json(cls, document: Any, public: PublicKey | None = None) -> SecretKey:
        """The same backwards; refused where it does not belong to the given public key."""
        own = PublicKey.from_json(document)
        if public is not None and own.to_json() != public.to_json():
            raise MismatchError("this secret key does not belong to the plan's public key: they were made separately")
        try:
            p, order = int(document["p"], 16), int(document["order"], 16)
        except (TypeError, KeyError, ValueError):
            raise WireError("a secret key has p and order beside the public key") from None
        if own.modulus % p or (p - 1) % order:
            raise WireError("this secret key is damaged: its numbers do not belong together")
        return cls(own, p, order)


class FixedBase:
    """base^e modulo a number for exponents of so many bits: one multiplication per window of the exponent.

    A table holds bits / window rows of 2^window powers: with a modulus of 3072 bits, exponents of 640 bits and windows
    of 8 bits that is 8 MB and 80 multiplications; with windows of 10 bits, 27 MB and 64.

    >>> FixedBase(3, 1009, bits=16, window=4).power(1000) == pow(3, 1000, 1009)
    True
    """

    def __init__(self, base: int | mpz, modulus: int | mpz, bits: int, window: int) -> None:
        from gmpy2 import mpz

        self.modulus = mpz(modulus)
        self.rows = -(-bits // window)
        self._window = window
        self._table: list[list[mpz]] = []
        step = mpz(base) % self.modulus
        for _ in range(self.rows):
            row = [mpz(1)]
            for _ in range((1 << window) - 1):
                row.append(row[-1] * step % self.modulus)
            self._table.append(row)
            step = row[-1] * step % self.modulus

    def digits(self, exponents: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Exponents of at most 64 bits cut into windows, the lowest first: a row for each."""
        shifts = np.arange(self.rows, dtype=np.uint64) * np.uint64(self._window)
        return (exponents[:, None] >> shifts) & np.uint64((1 << self._window) - 1)

    def random_digits(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Digits of uniformly random exponents, from a uniformly random word each."""
        return words & np.uint64((1 << self._window) - 1)

    def power(self, exponent: int) -> mpz:
        """One power."""
        mask = (1 << self._window) - 1
        return self.multiplied(1, [exponent >> i * self._window & mask for i in range(self.rows)])

    def multiplied(self, start: int | mpz, digits: Sequence[int]) -> mpz:
        """start * base^exponent, the exponent by its digits."""
        from gmpy2 import mpz

        found, modulus = mpz(start), self.modulus
        for row, digit in zip(self._table, digits, strict=True):
            if digit:
                found = found * row[digit] % modulus
        return found


def _prime(ring: int, bits: int, order_bits: int) -> tuple[mpz, mpz]:
    """A prime p = 2^ring v c + 1 of so many bits, its two highest set, with v prime and c odd; and v."""
    gmpy2 = import_gmpy2()
    v = gmpy2.next_prime(secrets.randbits(order_bits) | 1 << (order_bits - 1))
    unit = v << ring
    low, high = (gmpy2.mpz(3) << (bits - 2)) // unit + 1, (gmpy2.mpz(1) << bits) // unit
    while True:
        c = (low + secrets.randbelow(int(high - low))) | 1
        p = unit * c + 1
        if p.bit_length() == bits and gmpy2.gcd(c, v) == 1 and gmpy2.is_prime(p, 40):
            return p, v


def _element(p: mpz, v: mpz, ring: int, *, full: bool) -> mpz:
    """An element modulo p of order v, or with `full` of order 2^ring v."""
    gmpy2 = import_gmpy2()
    order = v << ring if full else v
    while True:
        found = gmpy2.powmod(2 + secrets.randbelow(int(p) - 3), (p - 1) // order, p)
        of_v = gmpy2.powmod(found, order // v, p) != 1
        of_two = not full or gmpy2.powmod(found, order // 2, p) != 1
        if found != 1 and of_v and of_two:
            return found


def _crt(a: mpz, p: mpz, b: mpz, q: mpz) -> mpz:
    """The number that is a modulo p and b modulo q."""
    return (a + p * ((b - a) * import_gmpy2().invert(p, q) % q)) % (p * q)


def import_gmpy2() -> Any:
    """The library for large numbers, or a sentence that says how to get it."""
    try:
        import gmpy2
    except ModuleNotFoundError:
        raise missing_extra("PEOS needs gmpy2, for arithmetic with large numbers", "peos") from None
    return gmpy2
