"""Rows about PEOS: encryption and decryption of a share against limits, and against plain powers."""

from __future__ import annotations

from collections.abc import Iterator

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
    plaintexts = np.random.default_rng(0).integers(0, 2**64, SHARES, dtype=np.uint64)
    ciphertexts = public.encrypt_all(plaintexts)
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
            local(plainly, 1),
            local(lambda: secret.decrypt_all(many), 1),
        ),
        turns,
    )
    encryption, plain, decryption = times[0] / SHARES, times[1] / few, times[2] / len(many)
    what = f"DGK encryption of a share, 3072 bits (best of {turns})"
    yield Outcome(what, "a limit of 0.4 ms", ENCRYPTION / encryption, 1.0)
    yield Outcome(what, "the same powers by gmpy2.powmod", plain / encryption, 4.0)
    what = f"DGK decryption of a share (best of {turns})"
    yield Outcome(what, "a limit of 0.45 ms", DECRYPTION / decryption, 1.0)
