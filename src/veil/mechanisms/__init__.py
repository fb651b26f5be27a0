"""The mechanisms, one per file. `MECHANISMS` is the catalogue: a new one is tested and planned for by joining it."""

from __future__ import annotations

from typing import Any

from veil.mechanisms.base import Mechanism
from veil.mechanisms.blh import BLH
from veil.mechanisms.bloom import design_matrix
from veil.mechanisms.grr import GRR
from veil.mechanisms.haar import HaarResponse
from veil.mechanisms.hadamard import HadamardResponse
from veil.mechanisms.linear_hashing import LinearHashing
from veil.mechanisms.moments import MeanMechanism
from veil.mechanisms.numeric import NumericMechanism
from veil.mechanisms.olh import OLH
from veil.mechanisms.oracle import FrequencyOracle, PureOracle
from veil.mechanisms.oue import OUE
from veil.mechanisms.pgr import PGR
from veil.mechanisms.piecewise import Piecewise
from veil.mechanisms.projection import RandomProjection
from veil.mechanisms.rappor import Rappor
from veil.mechanisms.she import SHE
from veil.mechanisms.square_wave import SquareWave, best_width
from veil.mechanisms.stochastic_rounding import StochasticRounding
from veil.mechanisms.subset import SubsetSelection
from veil.mechanisms.sue import SUE
from veil.mechanisms.the import THE
from veil.tools.json_documents import kind_of

__all__ = [
    "BLH",
    "GRR",
    "MECHANISMS",
    "OLH",
    "OUE",
    "PGR",
    "SHE",
    "SUE",
    "THE",
    "FrequencyOracle",
    "HaarResponse",
    "HadamardResponse",
    "LinearHashing",
    "MeanMechanism",
    "Mechanism",
    "NumericMechanism",
    "Piecewise",
    "PureOracle",
    "RandomProjection",
    "Rappor",
    "SquareWave",
    "StochasticRounding",
    "SubsetSelection",
    "best_width",
    "design_matrix",
    "mechanism_from_json",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    "GRR": GRR,
    "OUE": OUE,
    "OLH": OLH,
    "SubsetSelection": SubsetSelection,
    "HadamardResponse": HadamardResponse,
    "SHE": SHE,
    "SUE": SUE,
    "THE": THE,
    "BLH": BLH,
    "RandomProjection": RandomProjection,
    "Rappor": Rappor,
    "PGR": PGR,
    "LinearHashing": LinearHashing,
    "SquareWave": SquareWave,
    "HaarResponse": HaarResponse,
    "StochasticRounding": StochasticRounding,
    "Piecewise": Piecewise,
}


def mechanism_from_json(document: Any) -> Mechanism:
    """The mechanism that a task describes."""
    return MECHANISMS[kind_of(document, MECHANISMS, "a mechanism")].from_json(document)
