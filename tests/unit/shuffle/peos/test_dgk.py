"""DGK: encryption with sums modulo 2^l, and keys that do not reveal their secrets."""

from __future__ import annotations

import dataclasses

import gmpy2
import numpy as np
import pytest
from tests.support.in_memory import small_keys

from veil.errors import MismatchError, ParameterError, WireError
from veil.shuffle.peos import PublicKey, RandomizerPool, SecretKey, make_keys
from veil.shuffle.peos.dgk import FixedBase, _crt, _element, _prime

EDGES = np.array([0, 1, 2, 255, 256, 2**31, 2**32 - 1], dtype=np.uint64)
WIDE = np.array([2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1], dtype=np.uint64)


@pytest.mark.parametrize("ring", [32, 64])
def test_decryption_inverts_encryption(ring: int) -> None:
    public, secret = small_keys(ring)
    plaintexts = EDGES if ring == 32 else np.concatenate([EDGES, WIDE])
    assert np.array_equal(secret.decrypt_all(public.encrypt_all(plaintexts)), plaintexts)


def test_encryption_with_and_without_tables() -> None:
    public, secret = small_keys()
    fresh = dataclasses.replace(public)
    assert secret.decrypt(fresh.encrypt(2**63 + 5)) == 2**63 + 5
    assert "_powers_of_h" not in vars(fresh)
    assert np.array_equal(secret.decrypt_all(fresh.encrypt_all(np.arange(100, dtype=np.uint64))), np.arange(100))
    assert "_powers_of_h" in vars(fresh)


@pytest.mark.parametrize("ring", [32, 64])
def test_many_are_decrypted_by_wide_digits(ring: int) -> None:
    public, secret = small_keys(ring)
    plaintexts = np.random.default_rng(2).integers(0, 1 << ring, 6000, dtype=np.uint64)
    assert np.array_equal(secret.decrypt_all(public.encrypt_all(plaintexts)), plaintexts)


@pytest.mark.parametrize("ring", [32, 64])
def test_sums_are_modulo_the_ring(ring: int) -> None:
    public, secret = small_keys(ring)
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2**64, (2, 50), dtype=np.uint64)
    both = public.renewed(public.encrypt_all(a), b, RandomizerPool(public))
    assert np.array_equal(secret.decrypt_all(both), (a + b) & np.uint64((1 << ring) - 1))
    one, other = public.encrypt_all(a)[0].tobytes(), public.encrypt_all(b)[0].tobytes()
    assert secret.decrypt(public.add(one, other)) == (int(a[0]) + int(b[0])) % (1 << ring)


def test_full_keys_have_the_documented_sizes() -> None:
    public, secret = make_keys()
    assert (public.modulus.bit_length(), public.size, secret.order.bit_length()) == (3072, 384, 256)
    assert np.array_equal(secret.decrypt_all(public.encrypt_all(WIDE)), WIDE)
    assert (secret.p - 1) // 2**64 % 2 == 1  # c is odd
    assert gmpy2.is_prime(secret.p)
    assert gmpy2.is_prime(public.modulus // secret.p)
    assert gmpy2.powmod(public.h, secret.order, secret.p) == 1


def test_equal_plaintexts_have_different_ciphertexts_and_pools_do_not_repeat() -> None:
    public, secret = small_keys()
    pool = RandomizerPool(public)
    pool.fill(20)
    base = public.encrypt_all(np.zeros(40, dtype=np.uint64))
    renewed = public.renewed(base, np.zeros(40, dtype=np.uint64), pool)
    rows = {row.tobytes() for row in np.concatenate([base, renewed])}
    assert len(rows) == 80
    assert not len(pool)
    assert not secret.decrypt_all(renewed).any()


def _leaky_keys() -> tuple[int, int, int]:
    """A modulus whose primes have different powers of two in p - 1: c of one prime is even."""
    (p, v_p), (q, v_q) = _prime(32, 256, 64), _prime(33, 256, 64)
    g = _crt(_element(p, v_p, 32, full=True), p, _element(q, v_q, 32, full=True), q)
    h = _crt(_element(p, v_p, 32, full=False), p, _element(q, v_q, 32, full=False), q)
    return int(p * q), int(g), int(h)


def test_jacobi_symbol_is_constant_and_leaky_keys_are_refused() -> None:
    public, _ = small_keys(32)
    plaintexts = np.random.default_rng(1).integers(0, 2**32, 200, dtype=np.uint64)
    symbols = [gmpy2.jacobi(int.from_bytes(row.tobytes()), public.modulus) for row in public.encrypt_all(plaintexts)]
    assert set(symbols) == {1}
    # the rival: anybody reads the lowest bit off all 200 ciphertexts
    modulus, g, h = _leaky_keys()
    told = [gmpy2.jacobi(pow(g, int(m), modulus) * pow(h, 12345 + int(m), modulus), modulus) for m in plaintexts]
    assert [symbol == -1 for symbol in told] == [bool(m & 1) for m in plaintexts.tolist()]
    with pytest.raises(ParameterError, match="lowest bit"):
        PublicKey(modulus, g, h, 32, 64)


def test_key_that_reveals_its_factors_is_refused() -> None:
    public, secret = small_keys()
    q = public.modulus // secret.p
    trivial = int(_crt(gmpy2.mpz(1), gmpy2.mpz(secret.p), gmpy2.mpz(public.h % q), gmpy2.mpz(q)))
    assert gmpy2.gcd(trivial - 1, public.modulus) == secret.p
    with pytest.raises(ParameterError, match="factors"):
        dataclasses.replace(public, h=trivial)


def test_invalid_ciphertexts_are_refused() -> None:
    public, secret = small_keys()
    good = public.encrypt(7)
    for bad in (good[:-1], good + b"\0", bytes(public.size), b"\xff" * public.size):
        with pytest.raises(WireError):
            secret.decrypt(bad)
    misses = 0
    for i in range(20):  # a random number is an encryption of something with probability 2^-16 at most
        try:
            secret.decrypt((2**400 + 7919 * i).to_bytes(public.size))
        except WireError:
            misses += 1
    assert misses == 20


def test_keys_round_trip_and_mismatched_keys_are_refused() -> None:
    public, secret = small_keys()
    assert PublicKey.from_json(public.to_json()) == public
    assert SecretKey.from_json(secret.to_json(), public) == secret
    other = make_keys(bits=512, order_bits=64)[0]
    with pytest.raises(MismatchError, match="does not belong"):
        SecretKey.from_json(secret.to_json(), other)
    with pytest.raises(WireError, match="damaged"):
        SecretKey.from_json({**secret.to_json(), "p": f"{secret.p + 2:x}"})
    for broken in (None, {}, {**public.to_json(), "g": "xyz"}, {**public.to_json(), "order_bits": 1}):
        with pytest.raises(WireError):
            PublicKey.from_json(broken)
    assert str(secret.p) not in repr(secret)


@pytest.mark.parametrize("arguments", [{"ring": 16}, {"bits": 511}, {"bits": 256}, {"bits": 512, "order_bits": 200}])
def test_bad_sizes_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        make_keys(**arguments)


def test_fixed_base_powers_match_pow() -> None:
    public, _ = small_keys()
    for window in (4, 8, 10):
        table = FixedBase(public.h, public.modulus, 64, window)
        for exponent in (0, 1, 2**64 - 1, 123456789):
            assert table.power(exponent) == pow(public.h, exponent, public.modulus)
        digits = table.digits(np.array([2**64 - 3], dtype=np.uint64))[0].tolist()
        assert table.multiplied(5, digits) == 5 * pow(public.h, 2**64 - 3, public.modulus) % public.modulus
