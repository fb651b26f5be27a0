"""Rows about PEOS: encryption and decryption of a share against limits, and against plain powers."""

from __future__ import annotations

from collections.abc import Iterator

import gmpy2
import numpy as np

from bench.timing import Row, Setting, local
from veil.shuffle.peos import make_keys

SHARES, ENCRYPTION, DECRYPTION = 200, 0.4e-3, 0.45e-3


def peos_rows(setting: Setting) -> Iterator[Row]:
    """Every row."""
    turns = min(setting.repeats, 20)
    public, secret = make_keys()
    plaintexts = np.random.default_rng(0).integers(0, 2**64, SHARES, dtype=np.uint64)
    ciphertexts = public.encrypt_all(plaintexts)
    many = np.tile(ciphertexts, (26, 1))  # so many that the tables are those of a server
    secret.decrypt_all(many)
    few = 20

    def plainly() -> None:
        for m in plaintexts[:few].tolist():
            power = gmpy2.powmod(public.h, int.from_bytes(np.random.default_rng().bytes(80)), public.modulus)
            gmpy2.powmod(public.g, m, public.modulus) * power % public.modulus

    encryption = local(lambda: public.encrypt_all(plaintexts), SHARES)
    decryption = local(lambda: secret.decrypt_all(many), len(many))
    what = f"DGK encryption of a share, 3072 bits (best of {turns})"
    yield Row(what, "a limit of 0.4 ms", 1.0, encryption, ENCRYPTION, turns)
    yield Row(what, "the same powers by gmpy2.powmod", 4.0, encryption, local(plainly, few), turns)
    yield Row(f"DGK decryption of a share (best of {turns})", "a limit of 0.45 ms", 1.0, decryption, DECRYPTION, turns)
