"""PEOS: a private encrypted oblivious shuffle, in which no party learns the sender of a report (thesis 9.5).

Needs `veil-ldp[peos]` (gmpy2). docs/peos.md describes its guarantees and its use.

    Peos                                      the protocol
    Schedule, check_shufflers                 the rounds of hiders and seekers, and the valid numbers of shufflers
    PublicKey, SecretKey, make_keys, FULL_BITS    DGK encryption
    RandomizerPool                            precomputed random factors of ciphertexts
"""

from veil.shuffle.peos.dgk import FULL_BITS, PublicKey, RandomizerPool, SecretKey, make_keys
from veil.shuffle.peos.protocol import Peos
from veil.shuffle.peos.schedule import Schedule, check_shufflers

__all__ = ["FULL_BITS", "Peos", "PublicKey", "RandomizerPool", "Schedule", "SecretKey", "check_shufflers", "make_keys"]
