"""pure-ldp's oracles, inside the peers' environment (`peer_loop` answers requests). It counts items from 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
from pure_ldp.frequency_oracles.histogram_encoding import HEClient, HEServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.rappor import RAPPORClient, RAPPORServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

from peer_loop import Build, Oracle, serve


def oracle(client: Any, server: Any, slow: bool = False) -> Oracle:
    """Aggregate one by one, then all estimates at once, as numbers of people."""

    def collect(reports: list[Any]) -> Any:
        server.reset()
        server.aggregate_all(reports)
        server.check_and_update_estimates()
        return server.estimated_data / len(reports)

    return Oracle(client.privatise, collect, slow)


def made_by(client: Callable[..., Any], server: Callable[..., Any], slow: bool = False) -> Build:
    """For classes that take (epsilon, domain)."""
    return lambda domain, epsilon: oracle(client(epsilon, domain), server(epsilon, domain), slow)


def hadamard(domain: int, epsilon: float) -> Oracle:
    server = HadamardResponseServer(epsilon, domain)
    return oracle(HadamardResponseClient(epsilon, domain, server.get_hash_funcs()), server)


def rappor(domain: int, epsilon: float, bits: int = 128, hashes: int = 2, cohorts: int = 8) -> Oracle:
    """Without the regression, whose time does not depend on the number of people."""
    f = 2 / (math.exp(epsilon / (2 * hashes)) + 1)
    server = RAPPORServer(f, bits, hashes, domain, num_of_cohorts=cohorts)
    client = RAPPORClient(f, bits, server.get_hash_funcs(), num_of_cohorts=cohorts)
    return Oracle(client.privatise, server.aggregate_all)


ORACLES: dict[str, Build] = {
    "GRR": made_by(DEClient, DEServer),
    "SUE": made_by(UEClient, UEServer),
    "OUE": made_by(lambda e, d: UEClient(e, d, use_oue=True), lambda e, d: UEServer(e, d, use_oue=True)),
    "SHE": made_by(HEClient, HEServer),
    "THE": made_by(HEClient, lambda e, d: HEServer(e, d, use_the=True)),
    "BLH": made_by(LHClient, LHServer, slow=True),
    "OLH": made_by(lambda e, d: LHClient(e, d, use_olh=True), lambda e, d: LHServer(e, d, use_olh=True), slow=True),
    "HadamardResponse": hadamard,
    "Rappor": rappor,
}

serve(ORACLES, first_item=1)
