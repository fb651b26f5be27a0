"""The mechanisms, one a file. `MECHANISMS` is the catalogue: a new one is tested and planned for by joining it."""

from __future__ import annotations

from typing import Any

from veil.errors import WireError
from veil.mechanisms.base import Mechanism
from veil.mechanisms.grr import GRR
from veil.mechanisms.olh import OLH
from veil.mechanisms.oracle import FrequencyOracle, PureOracle
from veil.mechanisms.oue import OUE
from veil.mechanisms.subset import SubsetSelection

__all__ = [
    "GRR",
    "MECHANISMS",
    "OLH",
    "OUE",
    "FrequencyOracle",
    "Mechanism",
    "PureOracle",
    "SubsetSelection",
    "mechanism_from_json",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    "GRR": GRR,
    "OUE": OUE,
    "OLH": OLH,
    "SubsetSelection": SubsetSelection,
}


def mechanism_from_json(document: Any) -> Mechanism:
    """The mechanism that a task describes."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in MECHANISMS:
        raise WireError(f"expected a mechanism: one of {', '.join(MECHANISMS)}")
    return MECHANISMS[kind].from_json(document)
