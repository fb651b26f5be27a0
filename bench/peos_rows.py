"""Rows about PEOS: encryption and decryption of a share against limits, and against plain powers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import gmpy2
import numpy as np

from bench.timing import Outcome, best_times, local
from veil.shuffle.peos import make_keys

__all__ = ["peos_rows"]

SHARES, ENCRYPTION, DECRYPTION = 200, 0.4e-3, 0.45e-3


def peos_rows(repeats: int) -> Iterator[Outcome]:
    """Every row."""
    turns = min(repeats, 20)
    public, secret = make_keys()
    wide = replace(public, window=10)
    plaintexts = np.random.default_rng(0).integers(0, 2**64, SHARES, dtype=np.uint64)
    ciphertexts = public.encrypt_all(plaintexts)
    wide.encrypt(1)
    many = np.tile(ciphertexts, (26, 1))  # so many that the tables are those of a server
    secret.decrypt_all(many)
    few = 20

    def plainly() -> None:
        for m in plaintexts[:few].tolist():
            power = gmpy2.powmod(public.h, int.from_bytes(np.random.default_rng().bytes(80)), public.modulus)
            gmpy2.powmod(public.g, m, public.modulus) * power % public.modulus

    times, _ = best_times(
        (
            local(lambda: public.encrypt_all(plaintexts), 1),
            local(lambda: wide.encrypt_all(plaintexts), 1),
            local(plainly, 1),
            local(lambda: secret.decrypt_all(many), 1),
        ),
        turns,
    )
    device, shuffler, plain = times[0] / SHARES, times[1] / SHARES, times[2] / few
    decryption = times[3] / len(many)
    what = f"DGK encryption of a share, 3072 bits, tables of a device (best of {turns})"
    yield Outcome(what, "a limit of 0.4 ms", ENCRYPTION / device, 1.0)
    yield Outcome(what, "the same powers by gmpy2.powmod", plain / device, 4.0)
    what = f"DGK encryption of a share, tables of a shuffler (best of {turns})"
    yield Outcome(what, "tables of a device", device / shuffler, None)
    what = f"DGK decryption of a share (best of {turns})"
    yield Outcome(what, "a limit of 0.45 ms", DECRYPTION / decryption, 1.0)
