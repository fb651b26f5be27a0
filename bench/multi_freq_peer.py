"""multi-freq-ldpy's oracles, inside the peers' environment (`peer_loop` answers requests). Its estimators clip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Aggregator_MI, HE_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

from peer_loop import Build, Oracle, serve


def made_by(client: Callable[..., Any], aggregator: Callable[..., Any], slow: bool = False) -> Build:
    """For functions of (item, domain, epsilon) and (reports, domain, epsilon)."""

    def build(domain: int, epsilon: float) -> Oracle:
        return Oracle(lambda item: client(item, domain, epsilon), lambda r: aggregator(r, domain, epsilon), slow)

    return build


def unary(optimal: bool) -> Build:
    return made_by(
        lambda item, domain, epsilon: UE_Client(item, domain, epsilon, optimal),
        lambda reports, domain, epsilon: UE_Aggregator_MI(reports, epsilon, optimal),
    )


def hashing(optimal: bool) -> Build:
    return made_by(
        lambda item, domain, epsilon: LH_Client(item, domain, epsilon, optimal),
        lambda reports, domain, epsilon: LH_Aggregator_MI(reports, domain, epsilon, optimal),
        slow=True,
    )


def histogram(threshold: bool) -> Build:
    return made_by(HE_Client, lambda reports, domain, epsilon: HE_Aggregator_MI(reports, domain, epsilon, threshold))


ORACLES: dict[str, Build] = {
    "GRR": made_by(GRR_Client, GRR_Aggregator_MI),
    "SUE": unary(optimal=False),
    "OUE": unary(optimal=True),
    "SHE": histogram(threshold=False),
    "THE": histogram(threshold=True),
    "BLH": hashing(optimal=False),
    "OLH": hashing(optimal=True),
    "SubsetSelection": made_by(SS_Client, SS_Aggregator_MI),
}

serve(ORACLES, first_item=0)
