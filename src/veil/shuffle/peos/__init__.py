"""PEOS: a private encrypted oblivious shuffle between parties, none of which learns who sent what (thesis 9.5).

Needs `veil-ldp[peos]` (gmpy2). docs/peos.md says what is promised to whom, and how to run it.
"""

from veil.shuffle.peos.dgk import FULL_BITS, Pool, PublicKey, SecretKey, make_keys
from veil.shuffle.peos.protocol import Peos
from veil.shuffle.peos.schedule import Schedule, check_shufflers

__all__ = ["FULL_BITS", "Peos", "Pool", "PublicKey", "Schedule", "SecretKey", "check_shufflers", "make_keys"]
